//! Goal: through FUSE, Linux's rules hold that other programs rely on: names of extended attributes, set-group-id,
//! times before 1970, whiteouts, and durability. Method: the calls, compared with the man pages; a real overlay file
//! system on top; for durability, servers that are killed.
//!
//! The names of tests say which of xfstests' generic tests they restate: 035, 103, 213, 375, 683, 684 and 685. 451
//! fails on every FUSE file system: `scripts/fuse-limits.sh` shows it.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use rustix::fs::{CWD, FallocateFlags, RenameFlags, Timespec, Timestamps, XattrFlags, fstat, renameat_with};
use rustix::io::Errno;

use super::common::{Bench, Mounted, STORES, as_user, has_fuse, imbrex, json, nobody, shell, text, word};

fn on_each_store(test: impl Fn(&Mounted<'_>, &str)) {
    if !has_fuse() {
        return;
    }
    for (store, drive) in STORES {
        let bench = Bench::new(drive);
        let mounted = bench.mount(&["-o", "allow_other,suid,dev"]);
        test(&mounted, store);
        mounted.unmount();
        bench.check();
    }
}

fn set(path: &Path, name: &str, value: &[u8]) -> Result<(), Errno> {
    rustix::fs::lsetxattr(path, name, value, XattrFlags::empty())
}

fn names(path: &Path) -> Vec<String> {
    let mut bytes = [0u8; 1024];
    let length = rustix::fs::listxattr(path, &mut bytes).unwrap();
    bytes[..length].split(|byte| *byte == 0).map(|name| String::from_utf8(name.into()).unwrap()).collect()
}

/// xattr(7).
#[test]
fn attributes_have_the_namespaces_of_linux() {
    on_each_store(|mounted, store| {
        let (file, link, pipe) = (mounted.path("file"), mounted.path("link"), mounted.path("pipe"));
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        symlink("file", &link).unwrap();
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        for name in ["plain", "system.foreign", "system.nfs4_acl", "other.name"] {
            assert_eq!(set(&file, name, b"x"), Err(Errno::OPNOTSUPP), "{store}: {name}");
            let got = rustix::fs::getxattr(&file, name, &mut [0u8; 8][..]);
            assert_eq!(got, Err(Errno::OPNOTSUPP), "{store}: {name}");
            assert_eq!(rustix::fs::removexattr(&file, name), Err(Errno::OPNOTSUPP), "{store}: {name}");
        }
        assert_eq!(set(&file, "user.", b"x"), Err(Errno::INVAL), "{store}");
        for path in [&link, &pipe] {
            assert_eq!(set(path, "user.a", b"x"), Err(Errno::PERM), "{store}: {path:?}");
            assert_eq!(set(path, "trusted.a", b"x"), Ok(()), "{store}: {path:?}");
        }
        for name in ["user.a", "trusted.a", "security.a"] {
            assert_eq!(set(&file, name, b"x"), Ok(()), "{store}: {name}");
        }
        assert_eq!(names(&file), ["security.a", "trusted.a", "user.a", ""], "{store}: in order");
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
        let listed = as_user(65_534, 65_534, &[], || names(&file));
        assert_eq!(listed, ["security.a", "user.a", ""], "{store}: trusted ones are root's");
        let as_nobody = |name: &str| as_user(65_534, 65_534, &[], || set(&file, name, b"x")).expect_err(name);
        assert_eq!(as_nobody("system.foreign"), Errno::OPNOTSUPP, "{store}");
        assert_eq!((as_nobody("trusted.b"), as_nobody("security.b")), (Errno::PERM, Errno::PERM), "{store}");
        assert_eq!(as_nobody("user.b"), Errno::ACCESS, "{store}");
        let list = as_user(65_534, 65_534, &[], || set(&file, "system.posix_acl_access", LIST));
        assert_eq!(list, Err(Errno::PERM), "{store}: a list is the owner's to set");
        let got = as_user(65_534, 65_534, &[], || rustix::fs::getxattr(&file, "trusted.a", &mut [0u8; 8][..]));
        assert_eq!(got, Err(Errno::NODATA), "{store}");
    });
}

/// Version 2; the owner rwx, group r-x, user 1 rwx, the mask rwx, others r-x.
const LIST: &[u8] = b"\x02\0\0\0\x01\0\x07\0\xff\xff\xff\xff\x02\0\x07\0\x01\0\0\0\x04\0\x05\0\xff\xff\xff\xff\
    \x10\0\x07\0\xff\xff\xff\xff\x20\0\x05\0\xff\xff\xff\xff";

/// xfstests generic/375; chmod(2): set-group-id is cleared if the owner is not in the file's group.
#[test]
fn an_access_list_by_an_owner_outside_the_group_takes_set_group_id() {
    on_each_store(|mounted, store| {
        let file = mounted.path("file");
        let set_as = |gid: u32, groups: &[u32]| {
            std::fs::write(&file, "").unwrap();
            chown(&file, Some(1000), Some(2000)).unwrap();
            std::fs::set_permissions(&file, PermissionsExt::from_mode(0o2755)).unwrap();
            as_user(1000, gid, groups, || set(&file, "system.posix_acl_access", LIST)).unwrap();
            file.metadata().unwrap().permissions().mode() & 0o7777
        };
        assert_eq!(set_as(1000, &[]), 0o775, "{store}: outside the group");
        assert_eq!(set_as(2000, &[]), 0o2775, "{store}: in it");
        assert_eq!(set_as(1000, &[7, 2000]), 0o2775, "{store}: in it besides");
    });
}

/// utimensat(2): whole seconds, rounded down, and nanoseconds after them.
#[test]
fn times_before_1970_have_fractions() {
    on_each_store(|mounted, store| {
        let path = mounted.path("file");
        std::fs::write(&path, "").unwrap();
        for (seconds, ns) in [(-1, 250_000_000), (-1, 999_999_999), (-2, 0), (-86_400 * 365, 1), (0, 5), (5, 0)] {
            let time = Timespec { tv_sec: seconds, tv_nsec: ns };
            let times = Timestamps { last_access: time, last_modification: time };
            rustix::fs::utimensat(CWD, &path, &times, rustix::fs::AtFlags::empty()).unwrap();
            let shown = path.metadata().unwrap();
            assert_eq!((shown.mtime(), shown.mtime_nsec()), (seconds, ns), "{store}");
            assert_eq!((shown.atime(), shown.atime_nsec()), (seconds, ns), "{store}");
        }
    });
}

/// rename(2), `RENAME_WHITEOUT`; also xfstests generic/035.
#[test]
fn a_whiteout_takes_the_place_of_what_is_renamed() {
    on_each_store(|mounted, store| {
        let (old, new) = (mounted.path("old"), mounted.path("new"));
        std::fs::write(&old, "contents").unwrap();
        std::fs::write(&new, "replaced").unwrap();
        let replaced = File::open(&new).unwrap();
        renameat_with(CWD, &old, CWD, &new, RenameFlags::WHITEOUT).unwrap_or_else(|error| panic!("{store}: {error}"));
        assert_eq!(std::fs::read_to_string(&new).unwrap(), "contents", "{store}");
        let whiteout = old.metadata().unwrap();
        assert!(whiteout.file_type().is_char_device(), "{store}");
        assert_eq!((whiteout.rdev(), whiteout.nlink(), whiteout.mode() & 0o7777), (0, 1, 0), "{store}");
        assert_eq!(fstat(&replaced).unwrap().st_nlink, 0, "{store}: what was replaced has no name");
        let both = RenameFlags::WHITEOUT | RenameFlags::EXCHANGE;
        assert_eq!(renameat_with(CWD, &old, CWD, &new, both), Err(Errno::INVAL), "{store}");
    });
}

/// The file system as the upper layer, with merged directories, whiteouts, opaque directories and files that are copied
/// up.
#[test]
fn an_overlay_stands_on_it() {
    if !std::fs::read_to_string("/proc/filesystems").unwrap().lines().any(|line| line.ends_with("\toverlay")) {
        eprintln!("skipped: this kernel has no overlay file system, or it is not loaded");
        return;
    }
    on_each_store(|mounted, _| {
        let script =
            "mkdir lower upper work merged; mkdir lower/d lower/e; echo one > lower/d/one; echo two > lower/two
            mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged
            trap 'cd /; umount \"$OLDPWD/merged\"' EXIT
            echo more >> merged/two; rm merged/d/one; mv merged/two merged/three; rm -r merged/d; mkdir merged/d
            test \"$(cat merged/three)\" = 'two
more'; test -z \"$(ls merged/d)\"; test -c upper/two; test \"$(cat lower/two)\" = two";
        shell(mounted.directory(), script);
    });
}

/// xfstests generic/103 and 213: writes without space are refused with `ENOSPC`, and no other error.
#[test]
fn what_there_is_no_room_for_is_refused_as_such() {
    on_each_store(|mounted, store| {
        let file = File::create(mounted.path("file")).unwrap();
        let free = rustix::fs::statvfs(mounted.directory()).unwrap();
        let more = (free.f_bfree + 1024) * free.f_bsize;
        let allocated = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, more);
        assert_eq!(allocated, Err(Errno::NOSPC), "{store}: 213");
        // Names and attributes are added until the metadata is full.
        let mut number = 0;
        let refused = loop {
            let path = mounted.path(&format!("small-{}", number / 50));
            if number % 50 == 0 {
                std::fs::write(&path, "").unwrap();
            }
            if let Err(error) = set(&path, &format!("user.{number}"), &[7; 60_000]) {
                break error;
            }
            number += 1;
            assert!(number < 20_000, "{store}: a gigabyte of attributes was taken");
        };
        assert_eq!(refused, Errno::NOSPC, "{store}: 103");
    });
}

/// xfstests generic/683 to 685: allocating, punching and zeroing by another user clears the set-id bits.
#[test]
fn allocations_by_somebody_else_take_set_id_bits() {
    on_each_store(|mounted, store| {
        let path = mounted.path("file");
        for before in [0o6666, 0o6766, 0o6676, 0o6667, 0o6777] {
            let after = before & 0o777;
            for words in ["-l 65536", "-p -o 0 -l 65536", "-z -l 65536", "-z -n -l 4096"] {
                std::fs::write(&path, vec![1; 65_536]).unwrap();
                std::fs::set_permissions(&path, PermissionsExt::from_mode(before)).unwrap();
                let done = nobody(&["sh", "-c", &format!("fallocate {words} {}", path.display())]);
                assert!(done.status.success(), "{store}: {words}: {}", String::from_utf8_lossy(&done.stderr));
                let mode = path.metadata().unwrap().mode() & 0o7777;
                assert_eq!(mode, after, "{store}: {words} of {before:o}: {mode:o}");
                std::fs::set_permissions(&path, PermissionsExt::from_mode(before)).unwrap();
                let root = Command::new("sh").args(["-c", &format!("fallocate {words} {}", path.display())]).status();
                assert!(root.unwrap().success());
                assert_eq!(path.metadata().unwrap().mode() & 0o7777, before, "{store}: {words} by root");
            }
        }
    });
}

/// Kills the server, like a power failure of the host except for the data in the host's kernel, and mounts again.
fn killed<'a>(bench: &'a Bench, mounted: Mounted<'_>) -> Mounted<'a> {
    mounted.kill();
    drop(mounted);
    let _ = imbrex(&["fs", "umount", word(&bench.directory)]);
    bench.mount(&[])
}

#[test]
fn what_is_synced_by_command_or_by_option_outlives_a_kill() {
    if !has_fuse() {
        return;
    }
    for (store, drive) in STORES {
        let bench = Bench::new(drive);
        let mounted = bench.mount(&[]);
        std::fs::write(mounted.path("file"), "written").unwrap();
        let mut open = File::options().write(true).open(mounted.path("file")).unwrap();
        std::io::Write::write_all(&mut open, b"changed").unwrap();
        text(&["fs", "sync", word(mounted.directory())]);
        let mounted = killed(&bench, mounted);
        assert_eq!(std::fs::read_to_string(mounted.path("file")).unwrap(), "changed", "{store}: fs sync");
        mounted.unmount();
        let mounted = bench.mount(&["-o", "sync"]);
        let file = File::options().write(true).open(mounted.path("file")).unwrap();
        file.write_all_at(b"durable", 0).unwrap();
        std::fs::create_dir(mounted.path("folder")).unwrap();
        std::fs::rename(mounted.path("folder"), mounted.path("renamed")).unwrap();
        set(&mounted.path("renamed"), "user.a", b"b").unwrap();
        std::fs::set_permissions(mounted.path("renamed"), PermissionsExt::from_mode(0o711)).unwrap();
        symlink("target", mounted.path("link")).unwrap();
        std::fs::hard_link(mounted.path("file"), mounted.path("other")).unwrap();
        let mounted = killed(&bench, mounted);
        assert_eq!(std::fs::read_to_string(mounted.path("other")).unwrap(), "durable", "{store}: -o sync");
        assert_eq!(mounted.path("renamed").metadata().unwrap().mode() & 0o7777, 0o711, "{store}");
        assert_eq!(names(&mounted.path("renamed")), ["user.a", ""], "{store}");
        assert_eq!(mounted.path("link").read_link().unwrap().as_os_str(), OsStr::new("target"), "{store}");
        mounted.unmount();
        bench.check();
    }
}

#[test]
fn the_last_scrub_is_told_also_after_a_remount() {
    on_each_store(|mounted, store| {
        let stat = || json(&["fs", "stat", word(mounted.directory()), "--json"]);
        assert!(stat()["last_scrub"].is_null(), "{store}");
        std::fs::write(mounted.path("file"), "contents").unwrap();
        text(&["fs", "scrub", word(mounted.directory())]);
        let found = stat();
        assert_eq!(found["last_scrub"]["is_whole"], true, "{store}: {found}");
        assert_eq!(found["last_scrub"]["damaged"], 0, "{store}");
        assert_eq!(found["since_mounted"]["data"]["failures"], 0, "{store}");
        let lines = text(&["fs", "stat", word(mounted.directory())]);
        assert!(lines.lines().any(|line| line.starts_with("last scrub") && line.ends_with(": whole")), "{lines}");
    });
}
