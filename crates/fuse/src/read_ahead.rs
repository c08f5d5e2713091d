//! The amount of data that the kernel reads ahead of a program that reads a file sequentially.
//!
//! Linux gives every FUSE directory 128 KiB, less than a track of one drive. So the disk makes an extra rotation
//! between two such reads, and the other drives of an array are idle meanwhile. Only root may set a larger amount, and
//! only after the kernel has processed the answer to its first request, which reduces the amount.

use std::fs::{read_to_string, write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};

/// Bytes read ahead for each drive: two requests of the largest size, one in service and one queued.
const DRIVE_BYTES: u64 = 2 << 20;
/// Maximum number of bytes read ahead, however many drives there are.
const BYTES_MAX: u64 = 32 << 20;

/// Returns the number of the device (`st_dev`) of a directory; `None` if its attributes cannot be read.
pub(crate) fn device(directory: &Path) -> Option<u64> {
    std::fs::metadata(directory).ok().map(|about| about.dev())
}

/// Sets the read-ahead of `directory` to the amount for `drives` drives, in a separate thread. The thread first
/// requests the directory's attributes: when they arrive, the kernel has its first answer. A larger value stays, and so
/// does any value that this user may not change. `below` is the device of the directory when nothing is mounted there;
/// its read-ahead is not changed.
pub(crate) fn set(directory: &Path, below: Option<u64>, drives: usize) {
    let directory = directory.to_owned();
    let kib = bytes(drives) / 1024;
    let ask = move || {
        if let Some(number) = ours(&directory, below) {
            raise(&place(number), kib);
        }
    };
    let _ = std::thread::Builder::new().name("read-ahead".into()).spawn(ask);
}

/// Returns the number of the device that is mounted at `directory`; `None` if the mount has ended already, and the
/// directory is again on the device `below`.
fn ours(directory: &Path, below: Option<u64>) -> Option<u64> {
    device(directory).filter(|own| below.is_some_and(|below| below != *own))
}

fn bytes(drives: usize) -> u64 {
    (DRIVE_BYTES * drives as u64).min(BYTES_MAX)
}

fn place(number: u64) -> PathBuf {
    format!("/sys/class/bdi/{}:{}/read_ahead_kb", major(number), minor(number)).into()
}

fn raise(place: &Path, kib: u64) {
    let before = read_to_string(place).ok().and_then(|text| text.trim().parse::<u64>().ok());
    if before.is_some_and(|before| before < kib) {
        let _ = write(place, kib.to_string());
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test that cannot go on says where
mod tests {
    use super::*;

    #[test]
    fn it_grows_with_the_drives_up_to_a_bound() {
        assert_eq!([1, 5, 16, 40].map(bytes), [2 << 20, 10 << 20, 32 << 20, 32 << 20]);
    }

    #[test]
    fn it_is_raised_and_never_lowered() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("read_ahead_kb");
        for (before, kib, after) in [("128\n", 2048, "2048"), ("4096\n", 2048, "4096\n")] {
            write(&place, before).unwrap();
            raise(&place, kib);
            assert_eq!(read_to_string(&place).unwrap(), after);
        }
        raise(&folder.path().join("none"), 2048);
        assert!(!folder.path().join("none").exists());
    }

    #[test]
    fn what_lies_below_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let below = device(folder.path());
        assert!(below.is_some());
        assert_eq!(ours(folder.path(), below), None);
        assert_eq!(ours(folder.path(), None), None);
        assert_eq!(ours(folder.path(), Some(below.unwrap() + 1)), below, "another is mounted over it");
    }

    #[test]
    fn the_place_is_named_by_the_device_s_number() {
        assert_eq!(place(rustix::fs::makedev(0, 55)), Path::new("/sys/class/bdi/0:55/read_ahead_kb"));
    }
}
