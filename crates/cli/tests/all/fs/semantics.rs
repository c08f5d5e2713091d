//! Goal: system calls behave as Linux documents. Method: each call on each store, with expected values from the manual.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{FallocateFlags, SeekFrom, XattrFlags};
use rustix::io::Errno;

use super::common::{Bench, Mounted, STORES, has_fuse, nobody};

fn on_each_store(test: impl Fn(&Mounted<'_>, &str)) {
    if !has_fuse() {
        return;
    }
    for (store, drive) in STORES {
        let bench = Bench::new(drive);
        let mounted = bench.mount(&["-o", "allow_other,suid"]);
        test(&mounted, store);
        mounted.unmount();
        bench.check();
    }
}

fn as_nobody(script: &str) -> bool {
    nobody(&["sh", "-c", script]).status.success()
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_write_by_somebody_else_takes_the_set_id_bits() {
    on_each_store(|mounted, store| {
        let path = mounted.path("program");
        let place = path.display();
        mounted.directory().metadata().unwrap();
        for (what, script) in [
            ("a write", format!("echo more >> {place}")),
            ("a cut", format!("truncate -s 3 {place}")),
            ("an allocation", format!("fallocate -l 100000 {place}")),
        ] {
            std::fs::write(&path, "contents").unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o6777)).unwrap();
            assert_eq!(mode(&path), 0o6777);
            assert!(as_nobody(&script), "{store}: {what}");
            assert_eq!(mode(&path), 0o777, "{store}: {what}");
        }
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o6755)).unwrap();
        std::fs::write(&path, "root may").unwrap();
        assert_eq!(mode(&path), 0o6755, "{store}: root keeps them");
        std::os::unix::fs::chown(&path, Some(1000), Some(1000)).unwrap();
        assert_eq!(mode(&path), 0o755, "{store}: a new owner takes them");
    });
}

#[test]
fn extended_attributes_are_kept() {
    on_each_store(|mounted, store| {
        let path = mounted.path("file");
        std::fs::write(&path, "").unwrap();
        let get = |name: &str, size: usize| {
            let mut value = vec![0; size];
            rustix::fs::getxattr(&path, name, &mut value).map(|length| value[..length].to_vec())
        };
        rustix::fs::setxattr(&path, "user.one", b"first", XattrFlags::CREATE).unwrap();
        rustix::fs::setxattr(&path, "user.two", b"", XattrFlags::empty()).unwrap();
        assert_eq!(rustix::fs::setxattr(&path, "user.one", b"x", XattrFlags::CREATE), Err(Errno::EXIST), "{store}");
        assert_eq!(rustix::fs::setxattr(&path, "user.six", b"x", XattrFlags::REPLACE), Err(Errno::NODATA), "{store}");
        assert_eq!(get("user.one", 100), Ok(b"first".to_vec()));
        assert_eq!(get("user.one", 3), Err(Errno::RANGE));
        let mut names = [0u8; 64];
        let length = rustix::fs::listxattr(&path, &mut names).unwrap();
        assert_eq!(&names[..length], b"user.one\0user.two\0", "{store}");
        rustix::fs::removexattr(&path, "user.one").unwrap();
        assert_eq!(get("user.one", 100), Err(Errno::NODATA), "{store}");
    });
}

#[test]
fn an_access_list_and_the_mode_agree() {
    /// Version 2; the owner rwx, user 65534 r-x, the group ---, the mask rwx, others ---.
    const LIST: &[u8] = b"\x02\0\0\0\x01\0\x07\0\xff\xff\xff\xff\x02\0\x05\0\xfe\xff\0\0\x04\0\0\0\xff\xff\xff\xff\
        \x10\0\x07\0\xff\xff\xff\xff\x20\0\0\0\xff\xff\xff\xff";
    on_each_store(|mounted, store| {
        let (folder, file) = (mounted.path("folder"), mounted.path("folder/file"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
        rustix::fs::setxattr(&folder, "system.posix_acl_default", LIST, XattrFlags::empty()).unwrap();
        std::fs::write(&file, "secret").unwrap();
        // 0o666 by open(2), restricted by the list: the mask, rw-, is the group part of the mode; the umask is ignored.
        assert_eq!(mode(&file), 0o660, "{store}");
        let read = format!("cat {} > /dev/null 2>&1", file.display());
        assert!(as_nobody(&read), "{store}: the list lets user 65534 read");
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        assert!(!as_nobody(&read), "{store}: chmod took it by the mask");
        rustix::fs::setxattr(&file, "system.posix_acl_access", LIST, XattrFlags::empty()).unwrap();
        assert_eq!(mode(&file), 0o770, "{store}: the list gave the mode");
        assert!(as_nobody(&read), "{store}");
        std::fs::create_dir(mounted.path("folder/below")).unwrap();
        let mut list = [0u8; 64];
        let length = rustix::fs::getxattr(mounted.path("folder/below"), "system.posix_acl_default", &mut list).unwrap();
        assert_eq!(&list[..length], LIST, "{store}: a directory passes it on");
    });
}

#[test]
fn holes_are_made_found_and_filled() {
    on_each_store(|mounted, store| {
        let path = mounted.path("sparse");
        let file = File::create_new(&path).unwrap();
        let file_to_read = File::open(&path).unwrap();
        file.write_all_at(&[1; 1 << 20], 0).unwrap();
        let allocate = |flags, offset, length| rustix::fs::fallocate(&file, flags, offset, length);
        allocate(FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 65_536, 131_072).unwrap();
        let mut bytes = vec![0; 1 << 20];
        file_to_read.read_exact_at(&mut bytes, 0).unwrap();
        let zeros = bytes.iter().filter(|byte| **byte == 0).count();
        assert_eq!(zeros, 131_072, "{store}");
        assert!(bytes[65_536..196_608].iter().all(|byte| *byte == 0), "{store}");
        allocate(FallocateFlags::ZERO_RANGE, 1_000_000, 100_000).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 1_100_000, "{store}");
        allocate(FallocateFlags::empty(), 0, 1_200_000).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 1_200_000, "{store}");
        let blocks = file.metadata().unwrap().blocks();
        allocate(FallocateFlags::KEEP_SIZE, 1_228_800, 40_960).unwrap();
        let facts = file.metadata().unwrap();
        assert_eq!(facts.len(), 1_200_000, "{store}: the size is kept");
        assert!(facts.blocks() >= blocks + 80, "{store}: {} blocks, then {}", blocks, facts.blocks());
        assert_eq!(allocate(FallocateFlags::COLLAPSE_RANGE, 0, 4096), Err(Errno::OPNOTSUPP), "{store}");
        assert!(rustix::fs::seek(&file, SeekFrom::Hole(0)).is_ok_and(|at| at <= 1_200_000), "{store}");
        let at = rustix::fs::seek(&file, SeekFrom::Data(1_200_000));
        assert_eq!(at, Err(Errno::NXIO), "{store}: no data behind the end");
    });
}

#[test]
fn renames_take_their_flags_and_links_are_counted() {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    on_each_store(|mounted, store| {
        let (one, two) = (mounted.path("one"), mounted.path("two"));
        std::fs::write(&one, "1").unwrap();
        std::fs::write(&two, "2").unwrap();
        let rename = |flags| renameat_with(CWD, &one, CWD, &two, flags);
        assert_eq!(rename(RenameFlags::NOREPLACE), Err(Errno::EXIST), "{store}");
        rename(RenameFlags::EXCHANGE).unwrap();
        assert_eq!(std::fs::read_to_string(&one).unwrap(), "2", "{store}");
        std::fs::hard_link(&one, mounted.path("three")).unwrap();
        assert_eq!(one.metadata().unwrap().nlink(), 2, "{store}");
        assert_eq!(one.metadata().unwrap().ino(), mounted.path("three").metadata().unwrap().ino());
        std::fs::rename(&one, &two).unwrap();
        assert_eq!(std::fs::read_to_string(&two).unwrap(), "2", "{store}");
        assert!(!one.exists());
    });
}

#[test]
fn a_file_without_a_name_stays_until_it_is_closed() {
    on_each_store(|mounted, store| {
        let path = mounted.path("file");
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        file.write_all(b"still here").unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(file.metadata().unwrap().nlink(), 0, "{store}");
        let mut bytes = [0; 10];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"still here", "{store}");
        drop(file);
        assert_eq!(std::fs::read_dir(mounted.directory()).unwrap().count(), 0, "{store}");
    });
}

#[test]
fn ranges_are_copied_and_large_directories_listed() {
    on_each_store(|mounted, store| {
        let bytes: Vec<u8> = (0..3_000_001u32).map(|at| (at % 249) as u8).collect();
        std::fs::write(mounted.path("from"), &bytes).unwrap();
        let from = File::open(mounted.path("from")).unwrap();
        let to = File::create(mounted.path("to")).unwrap();
        let (mut at, mut into) = (1000, 0);
        while rustix::fs::copy_file_range(&from, Some(&mut at), &to, Some(&mut into), 10_000_000).unwrap() > 0 {}
        assert!(std::fs::read(mounted.path("to")).unwrap() == bytes[1000..], "{store}");
        std::fs::create_dir(mounted.path("many")).unwrap();
        for number in 0..2000 {
            File::create(mounted.path(&format!("many/file-{number:05}"))).unwrap();
        }
        let mut names: Vec<_> =
            std::fs::read_dir(mounted.path("many")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names.len(), 2000, "{store}");
        assert_eq!(names[1234], "file-01234", "{store}");
    });
}

#[test]
fn a_full_drive_says_so_at_the_write_and_deletes_still_work() {
    on_each_store(|mounted, store| {
        let mut filler = File::create(mounted.path("filler")).unwrap();
        let piece = vec![5; 4 << 20];
        let mut count = 0;
        let error = loop {
            match filler.write_all(&piece) {
                Ok(()) => count += 1,
                Err(error) => break error,
            }
            assert!(count < 1000, "{store}: a drive of 1 GiB takes no more");
        };
        assert_eq!(error.raw_os_error(), Some(28), "{store}: {error}");
        assert!(count > 100, "{store}: {count} pieces of 4 MiB are too few");
        drop(filler);
        std::fs::remove_file(mounted.path("filler")).unwrap();
        let mut file = File::create(mounted.path("after")).unwrap();
        file.write_all(&piece).unwrap();
        file.sync_all().unwrap();
        let mut read = Vec::new();
        File::open(mounted.path("after")).unwrap().read_to_end(&mut read).unwrap();
        assert!(read == piece, "{store}");
    });
}
