//! What the core knows of a file, in the kernel's words.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{Errno, FileAttr, FileType, Generation, INodeNo};
use imbrex_fs::FsError;
use imbrex_fs::core::Attr;
use imbrex_fs::format::change::Inode;

/// How long the kernel may keep what it was told: nobody else changes it.
const KEPT: Duration = Duration::from_secs(3600);
const SET_IDS: u32 = 0o6000;
const FORMAT: u32 = 0o170_000;

/// How long the kernel may keep the attributes of a file. A write by somebody else takes the set-id bits without the kernel
/// noticing.
pub fn kept(attr: &Attr) -> Duration {
    let is_regular = attr.attributes.mode & FORMAT == 0o100_000;
    if is_regular && attr.attributes.mode & SET_IDS != 0 {
        return Duration::ZERO;
    }
    KEPT
}

/// How long it may keep a name.
pub fn kept_name() -> Duration {
    KEPT
}

/// The error as the kernel has it.
pub fn errno(error: &FsError) -> Errno {
    Errno::from_i32(error.errno())
}

/// The number of a file, as the core has it; one that it never gave is that of no file.
pub fn number(inode: INodeNo) -> Inode {
    Inode::try_from(inode.0).unwrap_or(Inode::MAX)
}

/// The type of a file of this mode.
pub fn file_type(mode: u32) -> FileType {
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

/// The attributes of a file.
pub fn file_attr(attr: &Attr) -> FileAttr {
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

/// Which of the files that had this number it is.
pub fn generation(attr: &Attr) -> Generation {
    Generation(u64::from(attr.attributes.generation))
}

/// A time.
pub fn time(ns: i64) -> SystemTime {
    let distance = Duration::from_nanos(ns.unsigned_abs());
    if ns >= 0 { UNIX_EPOCH + distance } else { UNIX_EPOCH - distance }
}

/// A time that the kernel sent, in nanoseconds since 1970, as near as 64 bits come.
///
/// The kernel sends whole seconds, rounded down, and nanoseconds after them. Before 1970 `fuser` subtracts both from 1970; the
/// nanoseconds must be added. A test through a mount notices when `fuser` changes that.
pub fn nanoseconds(time: SystemTime) -> i64 {
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
        // What `fuser` makes of whole seconds and nanoseconds after them.
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
