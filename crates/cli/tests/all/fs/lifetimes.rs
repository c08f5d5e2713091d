//! Goal: through FUSE, objects that the kernel holds stay valid, as on any Linux file system: directories that were
//! removed or replaced while open, unlinked files behind descriptors of `O_PATH`; and no two files share a handle.
//! Method: the calls, compared with the man pages; and two processes that create and remove files in directories of
//! their own, none of whose calls may fail.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use imbrex_testkit::patience::until;
use rustix::fs::{CWD, FileType, Mode, OFlags, fchmod, fstat, open};

use super::common::{Bench, Mounted, STORES, has_fuse, shell};

fn on_each_store(test: impl Fn(&Mounted<'_>, &str)) {
    if !has_fuse() {
        return;
    }
    for (store, drive) in STORES {
        let bench = Bench::new(drive);
        let mounted = bench.mount(&[]);
        test(&mounted, store);
        mounted.unmount();
        bench.check();
    }
}

fn descriptor(path: &Path, flags: OFlags) -> OwnedFd {
    open(path, flags | OFlags::CLOEXEC, Mode::empty()).expect("it is there")
}

/// Opens a descriptor again through `/proc/self/fd`, and returns the contents.
fn reopened(descriptor: &OwnedFd) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(format!("/proc/self/fd/{}", descriptor.as_raw_fd()))?.read_to_string(&mut text)?;
    Ok(text)
}

#[test]
fn a_directory_that_is_removed_stays_for_who_has_it_open() {
    on_each_store(|mounted, store| {
        let (path, other) = (mounted.path("removed"), mounted.path("replaced"));
        std::fs::create_dir(&path).unwrap();
        std::fs::create_dir(&other).unwrap();
        let (removed, replaced) = (descriptor(&path, OFlags::DIRECTORY), descriptor(&other, OFlags::DIRECTORY));
        std::fs::remove_dir(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        std::fs::rename(&path, &other).unwrap();
        for open in [&removed, &replaced] {
            let stat = fstat(open).unwrap_or_else(|error| panic!("{store}: {error}"));
            assert_eq!((stat.st_nlink, FileType::from_raw_mode(stat.st_mode)), (0, FileType::Directory), "{store}");
            fchmod(open, Mode::RUSR).unwrap();
            assert_eq!(fstat(open).unwrap().st_mode & 0o777, 0o400, "{store}");
            let names = std::fs::read_dir(format!("/proc/self/fd/{}", open.as_raw_fd())).unwrap();
            assert_eq!(names.filter_map(Result::ok).count(), 0, "{store}: nothing is in it");
            let made = rustix::fs::mkdirat(open, "in it", Mode::RWXU);
            assert_eq!(made, Err(rustix::io::Errno::NOENT), "{store}: nothing comes into it");
        }
    });
}

#[test]
fn a_descriptor_of_a_removed_file_never_gives_another() {
    /// Number of files that are removed, and of files created after them.
    const COUNT: usize = 200;
    on_each_store(|mounted, store| {
        let (removed, path) = (mounted.path("removed"), mounted.path("secret"));
        let mut held = Vec::new();
        for number in 0..COUNT {
            std::fs::write(&removed, format!("file {number}")).unwrap();
            held.push(descriptor(&removed, OFlags::PATH));
            std::fs::remove_file(&removed).unwrap();
        }
        let kept: Vec<OwnedFd> = (0..COUNT)
            .map(|number| {
                let path = path.with_extension(number.to_string());
                std::fs::write(&path, "secret").unwrap();
                descriptor(&path, OFlags::PATH)
            })
            .collect();
        for (number, descriptor) in held.iter().enumerate() {
            let read = reopened(descriptor).unwrap_or_else(|error| panic!("{store}, file {number}: {error}"));
            assert_eq!(read, format!("file {number}"), "{store}");
        }
        let numbers: BTreeSet<u64> = held.iter().chain(&kept).map(|held| fstat(held).unwrap().st_ino).collect();
        assert_eq!(numbers.len(), 2 * COUNT, "{store}: files that are held at once have numbers of their own");
    });
}

#[test]
fn a_file_that_is_given_up_makes_room_at_once() {
    on_each_store(|mounted, store| {
        let free = || rustix::fs::statvfs(mounted.directory()).unwrap().f_bfree;
        std::fs::write(mounted.path("file"), vec![1; 8 << 20]).unwrap();
        let before = free();
        let held = descriptor(&mounted.path("file"), OFlags::PATH);
        std::fs::remove_file(mounted.path("file")).unwrap();
        assert!(free() < before + 2048, "{store}: it is held");
        drop(held);
        // The kernel forgets its lookups at any time later, and the file may be written at that moment.
        until("room", || (free() >= before + 2048 - 64).then_some(()));
    });
}

/// A shell script that creates and removes files, directories and links in a directory of its own, and ends at the
/// first call that fails.
const CHURN: &str = "mkdir $0; cd $0; n=0; while [ $n -lt 400 ]; do n=$((n+1))
    : > f; mkdir d; ln -s x s; [ -f f ]; [ -d d ]; mv f g; rmdir d; rm s g; done";

#[test]
fn processes_in_directories_of_their_own_do_not_meet() {
    on_each_store(|mounted, _| {
        std::thread::scope(|scope| {
            for name in ["one", "two", "three"] {
                scope.spawn(move || shell(mounted.directory(), &format!("sh -eu -c '{CHURN}' {name}")));
            }
        });
        let opened = rustix::fs::openat(CWD, mounted.directory(), OFlags::DIRECTORY, Mode::empty());
        assert!(opened.is_ok());
    });
}
