//! Conversions between the core's types and the kernel's.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{Errno, FileAttr, FileType, Generation, INodeNo};
use imbrex_fs::FsError;
use imbrex_fs::core::Attr;
use imbrex_fs::format::change::Inode;

/// Time for which the kernel may cache names and attributes: only this server changes them.
const KEPT: Duration = Duration::from_secs(3600);
const SET_IDS: u32 = 0o6000;
const FORMAT: u32 = 0o170_000;

/// Returns how long the kernel may cache the attributes of a file. Zero for a file with set-id bits, because a write by
/// another user removes these bits without the kernel's knowledge.
pub(crate) fn kept(attr: &Attr) -> Duration {
    let is_regular = attr.attributes.mode & FORMAT == 0o100_000;
    if is_regular && attr.attributes.mode & SET_IDS != 0 {
        return Duration::ZERO;
    }
    KEPT
}

/// Returns how long the kernel may cache a name: an hour, since only this server changes names.
pub(crate) fn kept_name() -> Duration {
    KEPT
}

/// Returns the error number of Linux that the kernel gets for `error`.
pub(crate) fn errno(error: &FsError) -> Errno {
    Errno::from_i32(error.errno())
}

/// Returns the core's inode number. A number that the core cannot have issued becomes one that no file has.
pub(crate) fn number(inode: INodeNo) -> Inode {
    Inode::try_from(inode.0).unwrap_or(Inode::MAX)
}

/// Returns the file type in a mode; a regular file if the type is unknown.
pub(crate) fn file_type(mode: u32) -> FileType {
    match mode & FORMAT {
        0o010_000 => FileType::NamedPipe,
        0o020_000 => FileType::CharDevice,
        0o040_000 => FileType::Directory,
        0o060_000 => FileType::BlockDevice,
        0o120_000 => FileType::Symlink,
        0o140_000 => FileType::Socket,
        _ => FileType::RegularFile,
    }
}

/// Returns the attributes of a file for the kernel.
pub(crate) fn file_attr(attr: &Attr) -> FileAttr {
    let attributes = &attr.attributes;
    FileAttr {
        ino: INodeNo(u64::from(attr.inode)),
        size: attributes.size,
        blocks: attr.blocks,
        atime: time(attributes.accessed_ns),
        mtime: time(attributes.modified_ns),
        ctime: time(attributes.changed_ns),
        crtime: UNIX_EPOCH,
        kind: file_type(attributes.mode),
        perm: (attributes.mode & 0o7777) as u16,
        nlink: attributes.links,
        uid: attributes.uid,
        gid: attributes.gid,
        rdev: attributes.rdev,
        blksize: 4096,
        flags: 0,
    }
}

/// Returns the generation: which of the files that had this inode number it is.
pub(crate) fn generation(attr: &Attr) -> Generation {
    Generation(u64::from(attr.attributes.generation))
}

/// Returns the time that is `ns` nanoseconds after 1970.
pub(crate) fn time(ns: i64) -> SystemTime {
    let distance = Duration::from_nanos(ns.unsigned_abs());
    if ns >= 0 { UNIX_EPOCH + distance } else { UNIX_EPOCH - distance }
}

/// Returns a time that the kernel sent, in nanoseconds since 1970, limited to the range of 64 bits.
///
/// The kernel sends whole seconds, rounded down, and nanoseconds after them. Before 1970 `fuser` subtracts both from
/// 1970; the nanoseconds must be added. A test with a real mount fails if `fuser` changes that.
pub(crate) fn nanoseconds(time: SystemTime) -> i64 {
    let clamp = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => clamp(since),
        Err(before) => {
            let before = before.duration();
            i64::from(before.subsec_nanos()) - clamp(Duration::from_secs(before.as_secs()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_as_the_kernel_sends_them() {
        // The times that `fuser` makes from whole seconds and the nanoseconds after them.
        let sent = |seconds: i64, ns: u32| match seconds {
            0.. => UNIX_EPOCH + Duration::new(seconds as u64, ns),
            _ => UNIX_EPOCH - Duration::new(seconds.unsigned_abs(), ns),
        };
        assert_eq!(nanoseconds(sent(1_700_000_000, 123_456_789)), 1_700_000_000_123_456_789);
        assert_eq!((nanoseconds(sent(0, 1)), nanoseconds(sent(-1, 0))), (1, -1_000_000_000));
        assert_eq!(nanoseconds(sent(-2, 750_000_000)), -1_250_000_000, "a second and a quarter before 1970");
        assert_eq!(nanoseconds(sent(-1, 999_999_999)), -1);
        assert_eq!(nanoseconds(sent(-1 << 40, 5)), 5 - i64::MAX);
        assert_eq!(time(-1_250_000_000), UNIX_EPOCH - Duration::from_millis(1_250), "what is sent to the kernel");
        assert_eq!(nanoseconds(UNIX_EPOCH + Duration::from_secs(1 << 40)), i64::MAX);
    }
}
