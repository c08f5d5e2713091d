//! Goal: with `--sync barrier` data acknowledged as durable is on the host's disk. Method: right after the answer,
//! Linux's count of the image's pages that are not yet on the disk (`cachestat`, Linux 6.5).

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::Path;

use super::common::*;

/// End of the headers with the state. The state is written behind a barrier, and contains nothing that must be durable.
const HEADS_END: u64 = 3 << 20;

/// The bytes that `cachestat` examines; a length of 0 means up to the end.
#[repr(C)]
struct Range {
    offset: u64,
    length: u64,
}

/// Numbers of pages in the range.
#[repr(C)]
#[derive(Default)]
struct Pages {
    cached: u64,
    dirty: u64,
    in_writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Returns the number of pages of a file, from byte `offset` on, that are not on its disk; `None` where the kernel does
/// not report it.
fn not_on_disk(path: &Path, offset: u64) -> Option<u64> {
    pages(path, offset).map(|pages| pages.dirty + pages.in_writeback)
}

/// Returns the numbers of pages of a file from byte `offset` on; `None` where the kernel does not report them.
fn pages(path: &Path, offset: u64) -> Option<Pages> {
    const CACHESTAT: libc::c_long = 451;
    let file = File::open(path).expect("it is there");
    let (range, mut pages) = (Range { offset, length: 0 }, Pages::default());
    // SAFETY: the call reads `range` and writes `pages`, which have the layout that the kernel's header gives them, and
    // outlive it; a kernel without it touches neither.
    #[allow(unsafe_code)]
    let outcome = unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut pages, 0) };
    (outcome == 0).then_some(pages)
}

/// Returns whether the kernel reports dirty pages of files in `folder`; if not, prints which test is skipped.
fn is_told_in(folder: &Path) -> bool {
    let path = folder.join("probe");
    let mut file = File::create(&path).expect("the folder is ours");
    file.write_all(&[1; 65_536]).expect("there is room");
    let before = not_on_disk(&path, 0);
    file.sync_all().expect("it can be synced");
    let is_told = before > Some(0) && not_on_disk(&path, 0) == Some(0);
    if !is_told {
        eprintln!("skipped: what --sync barrier has brought to the disk (this kernel or file system does not tell)");
    }
    is_told
}

/// Goal: after a clean end the image is on the host's disk, regardless of `--sync`. Method: afterwards no page of the
/// image is dirty in the host's cache.
#[test]
fn a_good_end_is_on_the_hosts_disk_without_sync_barrier() {
    let folder = tempfile::tempdir().unwrap();
    if !is_told_in(folder.path()) {
        return;
    }
    for layer in imbrex_layer::registry::all().into_iter().filter(|layer| !layer.host_managed) {
        let folder = folder.path().join(layer.name);
        std::fs::create_dir(&folder).unwrap();
        let image = image(&folder, &small_drive(&folder, layer));
        assert_eq!(not_on_disk(Path::new(&image), 0), Some(0), "{}: made", layer.name);
        let server = Server::start(&folder, &[&image, "--time", "none"]);
        let mut client = Client::connect(&server.socket);
        for block in 0..64 {
            assert_eq!(client.write(block << 16, &[7; 65_536]), 0);
        }
        assert_ne!(not_on_disk(Path::new(&image), HEADS_END), Some(0), "{}: the test has nothing to see", layer.name);
        drop(client);
        server.stop();
        assert_eq!(not_on_disk(Path::new(&image), 0), Some(0), "{}: ended", layer.name);
    }
}

/// Goal: an opening after a kill reads the data on the host's disk, not pages in the host's cache; one after a clean
/// end may use the cache. Method: the number of cached pages of the contents before and after.
#[test]
fn an_opening_after_a_kill_drops_the_images_cached_pages() {
    let folder = tempfile::tempdir().unwrap();
    if !is_told_in(folder.path()) {
        return;
    }
    let image = image(folder.path(), "cmr-7200:host.write_cache_bytes=0");
    let cached = || pages(Path::new(&image), HEADS_END).expect("it was told before").cached;
    for (is_kill, byte) in [(true, 1), (false, 2)] {
        let mut server = Server::start(folder.path(), &[&image, "--time", "none", "--sync", "barrier"]);
        let mut client = Client::connect(&server.socket);
        for block in 0..16 {
            assert_eq!(client.write(block << 20, &vec![byte; 1 << 20]), 0);
        }
        if is_kill {
            server.kill();
        } else {
            drop(client);
            server.stop();
        }
        let before = cached();
        assert!(before >= 4096, "{before} pages were cached of 16 MiB");
        let server = Server::start(folder.path(), &[&image, "--time", "none"]);
        let after = cached();
        // The kernel's readahead goes beyond the sector tables.
        assert!(
            if is_kill { after < before / 2 } else { after >= 4096 },
            "killed: {is_kill}: {before} pages, then {after}"
        );
        let mut client = Client::connect(&server.socket);
        assert_eq!(client.read(15 << 20, 65_536), Ok(vec![byte; 65_536]));
        drop(client);
        server.stop();
    }
}

/// Goal: a new image is on the host's disk before it has a name, and then its name is too. Method: the program's own
/// calls, by strace.
#[test]
fn a_new_image_and_its_folder_are_synced() {
    if !has(&["strace"], "that the folder of a new image is synced") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (path, log) = (folder.path().join("image"), folder.path().join("log"));
    let words =
        ["-f", "-y", "-e", "trace=fsync,fdatasync,write,pwrite64,linkat,renameat2", "-o", log.to_str().unwrap()];
    let program = [env!("CARGO_BIN_EXE_imbrex"), "drive", "create", path.to_str().unwrap(), "--drive", "cmr-7200"];
    let traced = output("strace", &[&words[..], &program[..]].concat());
    let log = std::fs::read_to_string(&log).unwrap_or_default();
    if !traced.status.success() || !log.contains("pwrite64(") {
        eprintln!("skipped: that the folder of a new image is synced (strace is not let trace here)");
        return;
    }
    // Until the file has its name, strace shows a name of the kernel's in the folder.
    let lines_of = |call: &str, file: &str| {
        let is_one = |line: &&str| line.contains(call) && line.contains(file);
        log.lines().enumerate().filter(|(_, line)| is_one(line)).map(|(number, _)| number).collect::<Vec<_>>()
    };
    let inside = format!("<{}/", folder.path().display());
    let (written, synced) = (lines_of("pwrite64(", &inside), lines_of(" fsync(", &inside));
    let named = [lines_of(" linkat(", "image\""), lines_of(" renameat2(", "image\"")].concat();
    let folder_synced = lines_of(" fsync(", &format!("<{}>", folder.path().display()));
    assert!(
        written.last() < synced.last() && synced.last() < named.first() && named.last() < folder_synced.last(),
        "{log}"
    );
    assert_eq!(named.len(), 1, "{log}");
}

/// Goal: without a volatile cache zeros and trims are answered when they are on the host's disk, also on layers that
/// keep trims.
#[test]
fn zeros_and_trims_are_on_the_hosts_disk_with_sync_barrier() {
    let folder = tempfile::tempdir().unwrap();
    if !is_told_in(folder.path()) {
        return;
    }
    for layer in imbrex_layer::registry::all().into_iter().filter(|layer| !layer.host_managed) {
        let folder = folder.path().join(layer.name);
        std::fs::create_dir(&folder).unwrap();
        let image = image(&folder, &small_drive(&folder, layer));
        let server = Server::start(&folder, &[&image, "--time", "none", "--sync", "barrier"]);
        let mut client = Client::connect(&server.socket);
        assert_eq!(client.write(0, &[7; 131_072]), 0);
        for command in [WRITE_ZEROES, TRIM] {
            assert_eq!(client.ask(command, 0, if command == TRIM { 65_536 } else { 0 }, 65_536, &[]), 0);
            let left = not_on_disk(Path::new(&image), HEADS_END);
            assert_eq!(left, Some(0), "{}: after command {command}", layer.name);
        }
        server.stop();
    }
}

#[test]
fn what_is_durable_is_on_the_hosts_disk_with_sync_barrier() {
    let folder = tempfile::tempdir().unwrap();
    if !is_told_in(folder.path()) {
        return;
    }
    // A drive that is served without background work writes nothing between the answer and the check.
    for (number, drive) in ["cmr-7200", "cmr-7200:host.write_cache_bytes=0"].into_iter().enumerate() {
        let folder = folder.path().join(number.to_string());
        std::fs::create_dir(&folder).unwrap();
        let image = image(&folder, drive);
        let server = Server::start(&folder, &[&image, "--time", "none", "--sync", "barrier"]);
        let mut client = Client::connect(&server.socket);
        let left = || not_on_disk(Path::new(&image), HEADS_END);
        for round in 1..=5 {
            for block in 0..8 {
                assert_eq!(client.write((round * 8 + block) << 30, &[round as u8; 65_536]), 0);
            }
            assert_eq!(client.ask(FLUSH, 0, 0, 0, &[]), 0);
            assert_eq!(left(), Some(0), "{drive}: after flush {round}");
            assert_eq!(client.ask(WRITE, FUA, round << 20, 4096, &[round as u8; 4096]), 0);
            assert_eq!(left(), Some(0), "{drive}: after write {round} with FUA");
        }
        server.stop();
    }
}
