//! Goal: a file on five drives gets nearly their whole sequential throughput; and a million files need no more memory
//! than on one drive, and are found after a power cut. Method: emulated drives, and for the files drives with times in
//! closed form, in virtual time. `IMBREX_FILES=N` sets the number of files.

use std::rc::Rc;

use imbrex_device::EmulatedDrive;
use imbrex_device::drive::{Making, header_of};
use imbrex_disk::Profile;
use imbrex_fs::core::{Caller, MakeOptions, MountOptions, Parts, make_on};
use imbrex_fs::device::emulated::Emulated;
use imbrex_fs::device::memory::Memory;
use imbrex_fs::device::{BLOCK_BYTES, Backend, Device, Geometry, Kind};
use imbrex_fs::format::file_type::REGULAR;
use imbrex_fs::namespace::ROOT;
use imbrex_fs::{Executor, Fs};
use imbrex_sim::{Drive, DriveSpec};
use uuid::Uuid;

use crate::support::timed::{SECOND_NS, Timed};

const DRIVES: usize = 5;
/// Profile strict-append: blocks of a track, and the time of a track, that is, a rotation of 8,333,333 ns and a skew of
/// 1 ms.
const TRACK_BLOCKS: u64 = 256;
const TRACK_NS: u64 = 9_333_333;
const CALLER: Caller = Caller { uid: 1000, gid: 1000 };

/// Write cache of a commercial drive (WD Caviar Black 2 TB data sheet).
const CACHE_BYTES: u64 = 64 << 20;

fn emulated(number: u128, cache_bytes: u64) -> Box<dyn Backend> {
    let spec = DriveSpec::parse(&format!("strict-append:host.write_cache_bytes={cache_bytes}")).unwrap();
    let profile = Profile::named("strict-append").unwrap();
    let drive = Drive::build(&spec, &profile).unwrap();
    let making = Making { uuid: Uuid::from_u128(7 + number), chunk_bytes: 1 << 20, journal_bytes: 1 << 30 };
    let drive = EmulatedDrive::in_memory(header_of(&drive, &spec, &making).unwrap()).unwrap();
    Box::new(Emulated::new(drive).unwrap())
}

/// Runs `task` on five drives made by `drive`; the task also gets a function that mounts them again.
fn on_five<T: 'static>(
    parity: u8,
    drive: impl Fn(usize) -> Box<dyn Backend> + 'static,
    metadata_blocks: u64,
    task: impl AsyncFnOnce(Fs, Rc<dyn Fn() -> Mounting>) -> T + 'static,
) -> T {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let done = executor.run(async move {
        let device = |number| Device::new(&own, &format!("drive {number}"), drive(number));
        let drives: Vec<Device> = (0..DRIVES).map(device).collect();
        let flash = Memory::new(Geometry { blocks: metadata_blocks, kind: Kind::Plain });
        let metadata = [Device::new(&own, "flash", Box::new(flash))];
        let options = MakeOptions { store: Some("log".into()), parity, ..MakeOptions::default() };
        make_on(Parts { drives: &drives, metadata: &metadata, spares: &[] }, &options, 0).await.unwrap();
        let all: Vec<Device> = drives.into_iter().chain(metadata).collect();
        let again: Rc<dyn Fn() -> Mounting> = Rc::new(move || {
            let (executor, all) = (own.clone(), all.clone());
            Box::pin(async move { Fs::mount(&executor, &all, &MountOptions::default()).await.unwrap().0 })
        });
        let fs = again().await;
        task(fs, again).await
    });
    executor.shut_down();
    done.unwrap()
}

type Mounting = std::pin::Pin<Box<dyn Future<Output = Fs>>>;

/// Returns the throughput of writing and of reading a file in one go, as percentages of the drives with data.
fn shares(parity: u8, cache_bytes: u64) -> [u64; 2] {
    const BLOCKS: u64 = 256 << 10;
    const MIB_BLOCKS: u64 = 256;
    let drive = move |number| emulated(number as u128, cache_bytes);
    on_five(parity, drive, 20_000, async move |fs: Fs, _| {
        let executor = fs.executor().clone();
        let inode = fs.make_node(ROOT, b"f", REGULAR | 0o644, 0, CALLER).await.unwrap().inode;
        let least_ns = BLOCKS / TRACK_BLOCKS * TRACK_NS / (DRIVES as u64 - u64::from(parity));
        let began = executor.now_ns();
        for mib in 0..BLOCKS / MIB_BLOCKS {
            let bytes = vec![mib as u8; MIB_BLOCKS as usize * BLOCK_BYTES];
            fs.write(inode, mib * bytes.len() as u64, &bytes).await.unwrap();
        }
        fs.fsync(inode).await.unwrap();
        let written_ns = executor.now_ns() - began;
        // Ten requests at a time, as the kernel's read-ahead does on five drives.
        let began = executor.now_ns();
        let mut reads = std::collections::VecDeque::new();
        for mib in 0..BLOCKS / MIB_BLOCKS {
            let own = fs.clone();
            let read = async move { own.read(inode, mib << 20, 1 << 20).await.unwrap() };
            reads.push_back((mib, executor.spawn(read)));
            if reads.len() == 10 || mib + 1 == BLOCKS / MIB_BLOCKS {
                let all = if mib + 1 == BLOCKS / MIB_BLOCKS { reads.len() } else { 1 };
                for (mib, read) in reads.drain(..all) {
                    assert!(read.await == vec![mib as u8; 1 << 20], "MiB {mib}");
                }
            }
        }
        let read_ns = executor.now_ns() - began;
        [written_ns, read_ns].map(|ns| least_ns * 100 / ns)
    })
}

#[test]
fn a_file_gets_nearly_all_that_the_drives_take() {
    for (parity, cache_bytes) in [(1, CACHE_BYTES), (2, CACHE_BYTES), (1, 0), (2, 0)] {
        let shares = shares(parity, cache_bytes);
        let told = format!("parity {parity}, caches of {cache_bytes} bytes: written and read at {shares:?} %");
        println!("{told} of what the drives with data take");
        assert!(shares.iter().all(|share| *share >= 95), "{told}");
    }
}

fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap() * 4096
}

/// Runs itself in a process of its own, because the memory of other tests counts as well.
#[test]
#[ignore = "takes gigabytes and minutes"]
fn a_million_files_take_little_memory_and_are_found_after_a_cut() {
    const NAME: &str = "five_drives::a_million_files_take_little_memory_and_are_found_after_a_cut";
    const IS_CHILD: &str = "IMBREX_FIVE_DRIVES_CHILD";
    if std::env::var_os(IS_CHILD).is_none() {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", NAME, "--ignored", "--nocapture"]).env(IS_CHILD, "1");
        assert!(child.status().unwrap().success(), "see above");
        return;
    }
    let files: u64 = std::env::var("IMBREX_FILES").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let zones = 24 + (files * 2 / DRIVES as u64 / (32 << 10)) as u32 * 2;
    let metadata_blocks = 40_000 + files * 140 / 4096 * 4;
    let drive = move |_| -> Box<dyn Backend> { Box::new(Timed::new(zones, 32 << 10)) };
    on_five(1, drive, metadata_blocks, async move |fs: Fs, again| {
        let mut folders = Vec::new();
        for folder in 0..1000 {
            let name = format!("folder{folder}");
            folders.push(fs.make_directory(ROOT, name.as_bytes(), 0o755, CALLER).await.unwrap().inode);
        }
        for number in 0..files {
            let (folder, name) = (folders[number as usize % 1000], format!("file{number:012}"));
            let inode = fs.make_node(folder, name.as_bytes(), REGULAR | 0o644, 0, CALLER).await.unwrap().inode;
            fs.open(inode).unwrap();
            fs.write(inode, 0, &[number as u8; BLOCK_BYTES]).await.unwrap();
            fs.close(inode).await.unwrap();
        }
        fs.sync().await.unwrap();
        let executor = fs.executor().clone();
        println!("{files} files in {} s of the drives' time", executor.now_ns() / SECOND_NS);
        // Like after a power cut: the log is replayed.
        drop(fs);
        let (before, began, wall) = (resident_bytes(), executor.now_ns(), std::time::Instant::now());
        let fs = again().await;
        let (ns, grown) = (executor.now_ns() - began, resident_bytes().saturating_sub(before));
        println!(
            "mounted after a cut in {} ms of the drives' time, {:?}; {} bytes a file",
            ns / 1_000_000,
            wall.elapsed(),
            grown / files
        );
        assert_eq!(fs.statfs().files - fs.statfs().files_free, files + 1001);
        for number in (0..files).step_by(997) {
            let inode = fs.lookup(folders[number as usize % 1000], format!("file{number:012}").as_bytes()).unwrap();
            assert!(
                fs.read(inode.inode, 0, BLOCK_BYTES).await.unwrap() == [number as u8; BLOCK_BYTES],
                "file {number}"
            );
        }
        assert!(grown / files < 300, "{} bytes a file", grown / files);
    });
}
