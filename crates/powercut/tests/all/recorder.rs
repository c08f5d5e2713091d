//! Goal: the recorder sees every way in which a program changes files or makes them durable, in order, and reports
//! operations that it cannot follow. Method: this test program runs itself, as `recorded_child`, under the recorder.
//! Each part makes raw system calls, which the log must contain. The recorder itself checks at each end that the log is
//! complete.

#![allow(clippy::unwrap_used, unsafe_code)] // a panic is the report; raw system calls are what is tested

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use imbrex_powercut::recorder::is_available;
use imbrex_powercut::{Event, Log, Options, Recorder, Recording, Replay, Survival};
use libc::{c_long, syscall};

/// A function that the recorded child runs in the folder.
type Part = fn(&Path);

/// Parts, each with the calls that its log must contain.
const PARTS: &[(&str, Part, &[&str])] = &[
    ("write", part_write, &["write", "writev", "pwrite64", "pwritev", "pwritev2"]),
    ("append", part_append, &["write"]),
    ("sizes", part_sizes, &["ftruncate", "truncate", "openat"]),
    ("fallocate", part_fallocate, &["fallocate"]),
    ("copies", part_copies, &["copy_file_range", "sendfile", "splice"]),
    ("clones", part_clones, &["ioctl"]),
    ("names", part_names, &["openat", "rename", "renameat2", "link", "unlink", "linkat"]),
    ("syncs", part_syncs, &["fsync", "fdatasync", "syncfs", "sync"]),
    ("mmap", part_mmap, &["mmap", "msync"]),
    ("threads", part_threads, &["pwrite64", "fsync"]),
    ("fork", part_fork, &["pwrite64"]),
    ("durable", part_durable, &["pwrite64", "pwritev2"]),
    ("creat", part_creat, &["creat", "pwrite64"]),
];

fn c(path: &Path) -> CString {
    CString::new(path.to_str().unwrap()).unwrap()
}

fn file(folder: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(folder.join("file")).unwrap()
}

fn must(result: c_long) -> c_long {
    assert!(result >= 0, "{}", std::io::Error::last_os_error());
    result
}

fn raw_write(fd: i32, bytes: &[u8], offset: i64) {
    let written = unsafe { syscall(libc::SYS_pwrite64, fd, bytes.as_ptr(), bytes.len(), offset) };
    assert_eq!(must(written), bytes.len() as c_long);
}

fn part_write(folder: &Path) {
    let (file, pieces) = (file(folder), [[1u8; 300], [2; 300]]);
    let fd = file.as_raw_fd();
    let vector: Vec<libc::iovec> =
        pieces.iter().map(|piece| libc::iovec { iov_base: piece.as_ptr() as *mut _, iov_len: 300 }).collect();
    unsafe {
        must(syscall(libc::SYS_write, fd, pieces[0].as_ptr(), 300));
        must(syscall(libc::SYS_writev, fd, vector.as_ptr(), 2));
        must(syscall(libc::SYS_pwritev, fd, vector.as_ptr(), 2, 5000, 0));
        must(syscall(libc::SYS_pwritev2, fd, vector.as_ptr(), 2, -1i64, 0, 0));
        must(syscall(libc::SYS_pwritev2, fd, vector.as_ptr(), 2, 9000, 0, 0));
    }
    raw_write(fd, &[3; 700], 20_000);
    // If the second half of a buffer is not mapped, the kernel writes a part or nothing.
    unsafe {
        let pages = libc::mmap(std::ptr::null_mut(), 8192, 3, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
        std::ptr::write_bytes(pages.cast::<u8>(), 7, 4096);
        libc::munmap(pages.byte_add(4096), 4096);
        syscall(libc::SYS_pwrite64, fd, pages, 8192, 30_000);
    }
    // A write across the limit of a file's length writes the part below the limit.
    unsafe {
        let limit = libc::rlimit { rlim_cur: 50_000, rlim_max: libc::RLIM_INFINITY };
        libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit);
        assert_eq!(syscall(libc::SYS_pwrite64, fd, [8u8; 9000].as_ptr(), 9000, 45_000i64), 5000);
    }
}

fn part_append(folder: &Path) {
    let mut file = OpenOptions::new().append(true).open(folder.join("file")).unwrap();
    file.write_all(&[4; 100]).unwrap();
    file.write_all(&[5; 100]).unwrap();
}

fn part_sizes(folder: &Path) {
    let path = c(&folder.join("file"));
    file(folder).set_len(100_000).unwrap();
    must(unsafe { syscall(libc::SYS_truncate, path.as_ptr(), 3000) });
    file(folder).write_all_at(&[1; 50], 50_000).unwrap();
    File::create(folder.join("file")).unwrap().write_all(b"anew").unwrap();
}

fn part_fallocate(folder: &Path) {
    let file = file(folder);
    let fallocate = |mode: i32, offset: i64, length: i64| {
        must(unsafe { syscall(libc::SYS_fallocate, file.as_raw_fd(), mode, offset, length) })
    };
    fallocate(0, 0, 200_000);
    fallocate(libc::FALLOC_FL_KEEP_SIZE, 0, 400_000);
    fallocate(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, 700, 5000);
    let zeros =
        unsafe { syscall(libc::SYS_fallocate, file.as_raw_fd(), libc::FALLOC_FL_ZERO_RANGE, 7000i64, 300_000i64) };
    let collapsed =
        unsafe { syscall(libc::SYS_fallocate, file.as_raw_fd(), libc::FALLOC_FL_COLLAPSE_RANGE, 4096i64, 4096i64) };
    eprintln!("zero range {zeros}, collapse {collapsed}: -1 where the file system cannot");
}

fn part_copies(folder: &Path) {
    let (from, to) = (file(folder), File::create(folder.join("copy")).unwrap());
    let (from_fd, to_fd) = (from.as_raw_fd(), to.as_raw_fd());
    let (mut in_at, mut out_at) = (100i64, 3000i64);
    let mut pipe = [0; 2];
    unsafe {
        must(syscall(libc::SYS_copy_file_range, from_fd, &raw mut in_at, to_fd, &raw mut out_at, 5000, 0));
        must(syscall(libc::SYS_copy_file_range, from_fd, 0, to_fd, 0, 100, 0));
        must(syscall(libc::SYS_sendfile, to_fd, from_fd, &raw mut in_at, 1000));
        libc::pipe(pipe.as_mut_ptr());
        libc::write(pipe[1], [6u8; 400].as_ptr().cast(), 400);
        out_at = 12_000;
        must(syscall(libc::SYS_splice, pipe[0], 0, to_fd, &raw mut out_at, 400, 0));
    }
}

fn part_clones(folder: &Path) {
    const FICLONE: u64 = 0x4004_9409;
    let (from, to) = (file(folder), File::create(folder.join("clone")).unwrap());
    let cloned = unsafe { syscall(libc::SYS_ioctl, to.as_raw_fd(), FICLONE, from.as_raw_fd()) };
    if cloned != 0 {
        eprintln!("FICLONE: {}", std::io::Error::last_os_error());
        std::process::exit(77);
    }
}

fn part_names(folder: &Path) {
    let path = |name: &str| c(&folder.join(name));
    File::create(folder.join("new")).unwrap().write_all(b"new contents").unwrap();
    unsafe {
        must(syscall(libc::SYS_rename, path("new").as_ptr(), path("file").as_ptr()));
        must(syscall(libc::SYS_link, path("file").as_ptr(), path("linked").as_ptr()));
    }
    fs::create_dir(folder.join("inner")).unwrap();
    File::create(folder.join("inner/deep")).unwrap().write_all(b"deep").unwrap();
    let at = libc::AT_FDCWD;
    unsafe {
        let (from, to) = (path("linked"), path("inner/deep"));
        must(syscall(libc::SYS_renameat2, at, from.as_ptr(), at, to.as_ptr(), libc::RENAME_EXCHANGE));
        must(syscall(libc::SYS_unlink, path("file").as_ptr()));
        // A file without a name gets one.
        let folder_path = c(folder);
        let fd =
            must(syscall(libc::SYS_openat, at, folder_path.as_ptr(), libc::O_TMPFILE | libc::O_RDWR, 0o600)) as i32;
        raw_write(fd, b"had no name", 0);
        let own = CString::new(format!("/proc/self/fd/{fd}")).unwrap();
        must(syscall(libc::SYS_linkat, at, own.as_ptr(), at, path("named").as_ptr(), libc::AT_SYMLINK_FOLLOW));
    }
}

fn part_syncs(folder: &Path) {
    let file = file(folder);
    raw_write(file.as_raw_fd(), &[1; 512], 0);
    unsafe {
        must(syscall(libc::SYS_fsync, file.as_raw_fd()));
        must(syscall(libc::SYS_fdatasync, file.as_raw_fd()));
        must(syscall(libc::SYS_sync_file_range, file.as_raw_fd(), 0, 512, 7));
        must(syscall(libc::SYS_syncfs, file.as_raw_fd()));
        syscall(libc::SYS_sync);
    }
    File::open(folder).unwrap().sync_all().unwrap();
}

fn part_mmap(folder: &Path) {
    let file = file(folder);
    unsafe {
        let map = libc::mmap(std::ptr::null_mut(), 16_384, 3, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(map, libc::MAP_FAILED);
        std::ptr::write_bytes(map.cast::<u8>().add(5000), 9, 100);
        must(syscall(libc::SYS_msync, map.byte_add(4096), 4096, libc::MS_SYNC));
        std::ptr::write_bytes(map.cast::<u8>().add(100), 8, 100);
        must(syscall(libc::SYS_fdatasync, file.as_raw_fd()));
        std::ptr::write_bytes(map.cast::<u8>().add(9000), 7, 100);
    }
}

fn part_threads(folder: &Path) {
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            scope.spawn(move || {
                let file = file(folder);
                for round in 0..50i64 {
                    // The writes overlap, so their order counts.
                    raw_write(file.as_raw_fd(), &[thread * 50 + round as u8; 1500], round * 700);
                    if round % 10 == 0 {
                        must(unsafe { syscall(libc::SYS_fsync, file.as_raw_fd()) });
                    }
                }
            });
        }
    });
}

fn part_fork(folder: &Path) {
    let file = file(folder);
    let child = unsafe { libc::fork() };
    if child == 0 {
        raw_write(file.as_raw_fd(), &[11; 900], 3000);
        unsafe { libc::_exit(0) };
    }
    raw_write(file.as_raw_fd(), &[12; 900], 6000);
    let mut status = 0;
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    let words = format!("printf abc > {}/shell", folder.display());
    assert!(Command::new("sh").args(["-c", &words]).status().unwrap().success());
}

fn part_durable(folder: &Path) {
    let file = OpenOptions::new().write(true).custom_flags(libc::O_DSYNC).open(folder.join("file")).unwrap();
    raw_write(file.as_raw_fd(), &[1; 512], 0);
    let (file, bytes) = (self::file(folder), [2u8; 512]);
    let piece = libc::iovec { iov_base: bytes.as_ptr() as *mut _, iov_len: 512 };
    must(unsafe { syscall(libc::SYS_pwritev2, file.as_raw_fd(), &raw const piece, 1, 512, 0, libc::RWF_DSYNC) });
}

fn part_creat(folder: &Path) {
    let path = c(&folder.join("made"));
    let fd = must(unsafe { syscall(libc::SYS_creat, path.as_ptr(), 0o600) }) as i32;
    raw_write(fd, b"made", 0);
}

/// Not a test: the program that is recorded.
#[test]
#[ignore = "it is what the other tests record"]
fn recorded_child() {
    let Ok(part) = std::env::var("RECORDED_PART") else { return };
    let folder = std::env::var("RECORDED_FOLDER").unwrap();
    let (folder, others) = (Path::new(&folder), others as fn(&str, &Path));
    match PARTS.iter().find(|(name, ..)| *name == part) {
        Some((_, run, _)) => run(folder),
        None => others(&part, folder),
    }
}

/// Parts of single tests.
fn others(part: &str, folder: &Path) {
    match part {
        "ring" => {
            let mut parameters = [0u8; 120];
            let ring = unsafe { syscall(libc::SYS_io_uring_setup, 4, parameters.as_mut_ptr()) };
            assert_eq!((ring, std::io::Error::last_os_error().raw_os_error()), (-1, Some(libc::ENOSYS)));
        }
        "failing" => {
            let file = file(folder);
            raw_write(file.as_raw_fd(), &[1; 512], 0);
            file.sync_data().unwrap();
            raw_write(file.as_raw_fd(), &[2; 512], 0);
            assert_eq!(file.sync_all().unwrap_err().raw_os_error(), Some(libc::EIO));
            file.sync_all().unwrap();
        }
        "client" => {
            let mut stream = UnixStream::connect(std::env::var("RECORDED_SOCKET").unwrap()).unwrap();
            let file = file(folder);
            for round in 0..5 {
                raw_write(file.as_raw_fd(), &[round; 512], 0);
                stream.write_all(&[round; 3]).unwrap();
                stream.read_exact(&mut [0; 1]).unwrap();
            }
        }
        "killed" => loop {
            for round in 0..100 {
                raw_write(file(folder).as_raw_fd(), &[round; 60_000], i64::from(round) * 1000);
            }
        },
        "foreign" => {
            let other = folder.parent().unwrap().join("outside");
            fs::write(&other, "contents that were written elsewhere").unwrap();
            fs::rename(other, folder.join("moved")).unwrap();
        }
        "compat" => {
            // Call 20 of the 32-bit table, getpid(2), through that table's own entry.
            let number: u32;
            unsafe { std::arch::asm!("int 0x80", inlateout("eax") 20u32 => number, options(nostack)) };
            assert!(number > 0);
        }
        other => panic!("no part {other}"),
    }
}

struct Bench {
    parent: tempfile::TempDir,
}

impl Bench {
    /// Creates a temporary folder with a file of 10,000 bytes.
    fn new() -> Bench {
        let parent = tempfile::tempdir().unwrap();
        fs::create_dir(parent.path().join("recorded")).unwrap();
        fs::write(parent.path().join("recorded/file"), (0..10_000u32).map(|at| (at / 7) as u8).collect::<Vec<_>>())
            .unwrap();
        Bench { parent }
    }

    fn start(&self, part: &str, options: Options) -> Recorder {
        let folder = self.parent.path().join("recorded");
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "recorder::recorded_child", "--ignored", "--nocapture"]).env("RECORDED_PART", part);
        // The child's test results do not belong to this run.
        command.stdout(Stdio::null());
        command.env("RECORDED_FOLDER", &folder).env("RECORDED_SOCKET", self.parent.path().join("socket"));
        Recorder::start(command, &folder, options).expect("it can be recorded")
    }

    fn record(&self, part: &str) -> Recording {
        self.start(part, Options::default()).finish().unwrap_or_else(|error| panic!("{part}: {error}"))
    }
}

fn without_sends(log: &Log) -> Vec<&Event> {
    log.entries.iter().map(|entry| &entry.event).filter(|event| !matches!(event, Event::Sent { .. })).collect()
}

#[test]
fn each_kind_of_call_is_seen_and_nothing_is_missed() {
    if !is_available() {
        return;
    }
    for (part, _, calls) in PARTS {
        let recording = Bench::new().record(part);
        if *part == "clones" && recording.status.code() == Some(77) {
            eprintln!("skipped: FICLONE (this file system does not share blocks)");
            continue;
        }
        assert!(recording.status.success(), "{part}: {:?}", recording.status);
        let seen = recording.log.calls();
        for call in *calls {
            assert!(seen.contains_key(call), "{part}: {call} is not among {seen:?}");
        }
    }
}

#[test]
fn a_static_build_is_recorded_too() {
    if !is_available() {
        return;
    }
    let bench = Bench::new();
    let (source, program) = (bench.parent.path().join("raw.c"), bench.parent.path().join("raw"));
    let text = "#define _GNU_SOURCE\n#include <fcntl.h>\n#include <sys/syscall.h>\n#include <unistd.h>\nint main(int n, char **words) {\n\
                int fd = syscall(SYS_open, words[1], O_RDWR);\nreturn syscall(SYS_fallocate, fd, 3, 1000, 2000) \
                || syscall(SYS_pwrite64, fd, \"static\", 6, 50) != 6 || syscall(SYS_fdatasync, fd); }\n";
    fs::write(&source, text).unwrap();
    let built = Command::new("cc").arg("-static").arg("-o").args([&program, &source]).output();
    if !built.as_ref().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: a static build under the recorder (cc -static makes none here)");
        return;
    }
    let folder = bench.parent.path().join("recorded");
    let mut command = Command::new(program);
    command.arg(folder.join("file"));
    let recording = Recorder::start(command, &folder, Options::default()).unwrap().finish().unwrap();
    assert!(recording.status.success());
    let calls: Vec<_> = recording.log.entries.iter().map(|entry| entry.call).collect();
    assert_eq!(calls, ["fallocate", "pwrite64", "fdatasync"]);
    assert_eq!(recording.log.entries[0].event, Event::Zero { file: 0, range: 1000..3000 });
}

#[test]
fn writes_are_durable_when_synced_and_not_before() {
    if !is_available() {
        return;
    }
    let recording = Bench::new().record("syncs");
    let log = &recording.log;
    let position = |call| log.entries.iter().position(|entry| entry.call == call).unwrap();
    let mut replay = Replay::new(log, 512);
    replay.advance(position("pwrite64") + 1);
    assert_eq!(replay.pending().len(), 1);
    replay.advance(position("fsync") + 1);
    assert_eq!(replay.pending().len(), 0);
    let is_durable = |event: &&Event| matches!(event, Event::Write { is_durable: true, .. });
    let recording = Bench::new().record("durable");
    assert_eq!(without_sends(&recording.log).into_iter().filter(is_durable).count(), 2);
    // The bytes of a mapping synced by `msync` are durable. Bytes changed later are durable only after a sync of the
    // file.
    let recording = Bench::new().record("mmap");
    let mut replay = Replay::new(&recording.log, 512);
    replay.advance(recording.log.entries.len());
    let byte = |disk: &imbrex_powercut::Disk, at| {
        let mut byte = [0];
        disk.named("file").unwrap().read(at, &mut byte);
        byte[0]
    };
    let (none, all) = (replay.cut(Survival::None, None).0, replay.cut(Survival::All, None).0);
    assert_eq!([byte(&none, 5000), byte(&none, 100)], [9, 8]);
    assert_eq!((byte(&none, 9000) == 7, byte(&all, 9000)), (false, 7));
}

#[test]
fn the_sync_that_is_to_fail_fails() {
    if !is_available() {
        return;
    }
    let options = Options { failing_sync: Some(2), answers_syncs: true };
    let recording = Bench::new().start("failing", options).finish().unwrap();
    assert!(recording.status.success());
    let failed: Vec<bool> = without_sends(&recording.log)
        .into_iter()
        .filter_map(|event| match event {
            Event::Sync { has_failed, .. } => Some(*has_failed),
            _ => None,
        })
        .collect();
    assert_eq!(failed, [false, true, false]);
    let mut replay = Replay::new(&recording.log, 512);
    replay.advance(recording.log.entries.len());
    assert_eq!(replay.pending().len(), 1, "what the failed sync covered stays in doubt");
}

#[test]
fn a_ring_is_refused_and_counted() {
    if is_available() {
        let recording = Bench::new().record("ring");
        assert!(recording.status.success() && recording.refused == 1, "{recording:?}");
    }
}

#[test]
fn what_is_sent_has_its_place_among_the_writes() {
    if !is_available() {
        return;
    }
    let bench = Bench::new();
    let listener = std::os::unix::net::UnixListener::bind(bench.parent.path().join("socket")).unwrap();
    let recorder = bench.start("client", Options::default());
    let (mut stream, _) = listener.accept().unwrap();
    for _ in 0..5 {
        stream.read_exact(&mut [0; 3]).unwrap();
        stream.write_all(&[1]).unwrap();
    }
    let recording = recorder.finish().unwrap();
    let sends = recording.log.sends();
    assert_eq!(sends.iter().map(|&(total, _)| total).collect::<Vec<_>>(), [3, 6, 9, 12, 15]);
    for (round, &(_, position)) in sends.iter().enumerate() {
        let writes = recording.log.entries[..position].iter().filter(|entry| entry.call == "pwrite64").count();
        assert_eq!(writes, round + 1, "each answer comes after its write");
    }
}

#[test]
fn a_killed_program_leaves_a_complete_log() {
    if !is_available() {
        return;
    }
    for _ in 0..10 {
        let bench = Bench::new();
        let recorder = bench.start("killed", Options::default());
        while recorder.position() < 50 && !recorder.has_ended() {
            std::thread::yield_now();
        }
        recorder.signal(libc::SIGKILL);
        assert!(
            !recorder.finish().map(|recording| recording.status.success()).unwrap_or_else(|error| panic!("{error}"))
        );
    }
}

#[test]
fn what_cannot_be_followed_is_an_error() {
    if !is_available() {
        return;
    }
    let error = |part: &str| Bench::new().start(part, Options::default()).finish().unwrap_err().to_string();
    assert!(error("foreign").contains("moved, which came with contents"), "{}", error("foreign"));
    assert!(error("compat").contains("another architecture"), "{}", error("compat"));
    // A write from outside, which no call of the program made.
    let bench = Bench::new();
    let listener = std::os::unix::net::UnixListener::bind(bench.parent.path().join("socket")).unwrap();
    let recorder = bench.start("client", Options::default());
    let (mut stream, _) = listener.accept().unwrap();
    file(&bench.parent.path().join("recorded")).write_all_at(b"stranger", 7000).unwrap();
    stream.write_all(&[1; 5]).unwrap();
    stream.read_exact(&mut [0; 15]).unwrap();
    let missed = recorder.finish().unwrap_err().to_string();
    assert!(missed.contains("not complete: file: bytes 4096 to 8191"), "{missed}");
}
