//! The extents of an open file, from the kernel (FS_IOC_FIEMAP, Documentation/filesystems/fiemap.rst).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::extents::{Extents, FileExtent};

/// Extents that one call returns.
const AT_ONCE: usize = 256;

const FS_IOC_FIEMAP: libc::c_ulong = 0xC020_660B;
/// Flag of a request: write back delayed data first.
const SYNC: u32 = 1;
/// Flag of the last extent of a file.
const LAST: u32 = 1;

/// Flags of extents whose places on the drive cannot be used, with the reason.
const UNFIT: [(u32, &str); 6] = [
    (0x2, "the file system does not tell its place"),
    (0x4, "the kernel has not decided on its place yet"),
    (0x8, "it is compressed or encrypted by the file system"),
    (0x100 | 0x200 | 0x400, "it shares a block with other data"),
    (0x800, "it was reserved, and never written"),
    (0x2000, "it is shared with another file (a snapshot or a reflink), so a write would move it"),
];

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_words: [u32; 3],
}

#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [RawExtent; AT_ONCE],
}

/// Returns the extents of `file`, which has no hole.
///
/// # Errors
///
/// The file system does not tell extents, or one of them cannot be used; the text says why.
pub(super) fn extents(file: &File) -> Result<Extents, String> {
    let mut found = Vec::new();
    let mut start = 0;
    loop {
        let batch =
            batch(file, start).map_err(|error| format!("the kernel does not tell the places of the file: {error}"))?;
        let Some(last) = batch.last().copied() else { break };
        for extent in &batch {
            if let Some((_, why)) = UNFIT.iter().find(|(flag, _)| extent.flags & flag != 0) {
                return Err(format!("the file at byte {}: {why}", extent.logical));
            }
            found.push(FileExtent { logical: extent.logical, physical: extent.physical, bytes: extent.length });
        }
        if last.flags & LAST != 0 {
            break;
        }
        start = last.logical + last.length;
    }
    Extents::new(found)
}

fn batch(file: &File, start: u64) -> io::Result<Vec<RawExtent>> {
    let mut request = Request {
        start,
        length: u64::MAX - start,
        flags: SYNC,
        mapped: 0,
        count: AT_ONCE as u32,
        reserved: 0,
        extents: [RawExtent::default(); AT_ONCE],
    };
    // SAFETY: the request has the layout of the kernel's `struct fiemap` with room for `count` extents, and outlives the call.
    #[expect(unsafe_code, reason = "an ioctl is a raw call by its nature")]
    let outcome = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut request) };
    if outcome < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(request.extents[..(request.mapped as usize).min(AT_ONCE)].to_vec())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_request_has_the_layout_of_the_kernel() {
        assert_eq!((size_of::<RawExtent>(), size_of::<Request>()), (56, 32 + 56 * AT_ONCE));
    }

    #[test]
    fn a_written_file_has_extents_of_its_length_and_one_that_was_only_reserved_has_none() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a temporary folder");
        let mut file = File::create_new(folder.path().join("file")).expect("a file");
        if extents(&file).is_err_and(|error| error.contains("does not tell")) {
            eprintln!("skipped: FIEMAP (this file system does not tell extents)");
            return;
        }
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 1 << 20).expect("room");
        assert!(extents(&file).is_err_and(|error| error.contains("never written")));
        file.write_all(&vec![7; 1 << 20]).expect("it is written");
        assert_eq!(extents(&file).expect("extents").bytes(), 1 << 20);
    }
}
