//! Goal: copies to the hot zone are made in the background and hinder no one. Space freed meanwhile can be used at
//! once, a file that changes meanwhile gets no mixed copy, and no record of a copy is too large for the log. Method:
//! drives with times in closed form ([`timed`]), in virtual time, so that a copy takes long enough for other
//! operations; the smallest logs.

use imbrex_fs::core::{Caller, MakeOptions, MountOptions, Parts, SetAttr, SetAttribute, make_on};
use imbrex_fs::device::memory::Memory;
use imbrex_fs::device::{BLOCK_BYTES, Geometry, Kind};
use imbrex_fs::format::change::Inode;
use imbrex_fs::format::file_type::REGULAR;
use imbrex_fs::hot::HINT_ATTRIBUTE;
use imbrex_fs::journal::Checksums;
use imbrex_fs::namespace::ROOT;
use imbrex_fs::{Bounds, Device, Executor, Fs};

use crate::support::timed::{BLOCK_NS, SECOND_NS, SEEK_NS, Timed};

const ZONE_BLOCKS: u64 = 1024;
const DRIVES: usize = 3;

/// Data capacity of the drives: a zone of each holds its superblock, and another has no partner for a group.
const DATA_BLOCKS: u64 = (DRIVES as u64 * 47 / 2) * (DRIVES as u64 - 1) * (ZONE_BLOCKS - 1);

/// Runs `task` with a file system on three drives with one parity, with a hot zone and a log of the given blocks.
fn on<T: 'static>(
    (hot_blocks, log_blocks): (u64, u64),
    bounds: Bounds,
    task: impl AsyncFnOnce(Fs, Executor) -> T + 'static,
) -> T {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let done = executor.run(async move {
        let drive = |number| Device::new(&own, &format!("drive {number}"), Box::new(Timed::new(48, ZONE_BLOCKS)));
        let drives: Vec<Device> = (0..DRIVES).map(drive).collect();
        let checksums = Checksums::blocks_for(DATA_BLOCKS + hot_blocks);
        // Two superblocks; the log is a fourth of the space that remains for log and checkpoints.
        let blocks = 2 + checksums + 4 * log_blocks + hot_blocks;
        let metadata = Memory::new(Geometry { blocks, kind: Kind::Plain });
        let metadata = [Device::new(&own, "metadata", Box::new(metadata))];
        let options = MakeOptions { store: Some("log".into()), parity: 1, hot_blocks, ..MakeOptions::default() };
        make_on(Parts { drives: &drives, metadata: &metadata, spares: &[] }, &options, 0).await.unwrap();
        let devices: Vec<Device> = drives.into_iter().chain(metadata).collect();
        let options = MountOptions { bounds: Some(bounds), ..MountOptions::default() };
        let (fs, _) = Fs::mount(&own, &devices, &options).await.unwrap();
        assert_eq!(fs.superblock().layout.log.1, log_blocks);
        task(fs, own).await
    });
    executor.shut_down();
    done.unwrap()
}

async fn create(fs: &Fs, name: &str) -> Inode {
    fs.make_node(ROOT, name.as_bytes(), REGULAR | 0o644, 0, Caller::default()).await.unwrap().inode
}

/// Makes a file of `blocks` blocks of one byte, to be promoted as soon as it is written.
async fn wanted(fs: &Fs, name: &str, blocks: u64, byte: u8) -> Inode {
    let inode = create(fs, name).await;
    fs.set_attribute(inode, HINT_ATTRIBUTE, b"always", SetAttribute::Any).await.unwrap();
    fs.write(inode, 0, &bytes(blocks, byte)).await.unwrap();
    inode
}

fn bytes(blocks: u64, byte: u8) -> Vec<u8> {
    vec![byte; blocks as usize * BLOCK_BYTES]
}

/// Waits until `is_so` returns true, at most a second.
async fn until(executor: &Executor, is_so: impl Fn() -> bool) {
    let end_ns = executor.now_ns() + SECOND_NS;
    while !is_so() {
        assert!(executor.now_ns() < end_ns, "it is never so");
        executor.sleep(BLOCK_NS).await;
    }
}

/// Returns bounds with which copies are read from the drives, and not from memory.
fn from_drives() -> Bounds {
    Bounds { written_blocks: 0, ..Bounds::default() }
}

#[test]
fn what_is_freed_while_files_are_copied_can_be_used_at_once() {
    const FILES: u64 = 12;
    on((8192, 500), from_drives(), async |fs: Fs, executor: Executor| {
        for number in 0..=FILES {
            let inode = create(&fs, &format!("f{number}")).await;
            fs.write(inode, 0, &bytes(256, 2)).await.unwrap();
        }
        fs.sync().await.unwrap();
        assert_eq!(fs.status().hot.used, 0, "none of them is small");
        let first = fs.lookup(ROOT, b"f0").unwrap().inode;
        fs.set_attribute(first, HINT_ATTRIBUTE, b"never", SetAttribute::Any).await.unwrap();
        fs.set_attribute(ROOT, HINT_ATTRIBUTE, b"always", SetAttribute::Any).await.unwrap();
        until(&executor, || fs.status().hot.used == FILES * 256).await;
        fs.unlink(ROOT, b"f0").await.unwrap();
        fs.sync().await.unwrap();
        // A read that began earlier ends within the time of one read.
        executor.sleep(SEEK_NS + 256 * BLOCK_NS).await;
        assert_eq!(fs.status().hot.counters.came_in, 0, "the copies are still being made");
        assert_eq!(fs.status().usage.freed, 256);
        executor.sleep(60 * SECOND_NS).await;
        assert_eq!(fs.status().hot.counters.came_in, FILES);
    });
}

#[test]
fn a_file_that_changes_while_it_is_copied_has_no_copy_of_two_times() {
    on((8192, 500), from_drives(), async |fs: Fs, executor: Executor| {
        let inode = wanted(&fs, "f", 2048, 1).await;
        fs.fsync(inode).await.unwrap();
        until(&executor, || fs.status().hot.used > 0).await;
        executor.sleep(SEEK_NS).await;
        fs.set_attr(inode, &SetAttr { size: Some(0), ..SetAttr::default() }).await.unwrap();
        assert_eq!(fs.status().hot.counters.came_in, 0, "it is still being copied");
        fs.write(inode, 0, &bytes(2048, 9)).await.unwrap();
        fs.fsync(inode).await.unwrap();
        executor.sleep(60 * SECOND_NS).await;
        let counters = fs.status().hot.counters;
        assert_eq!((counters.came_in, counters.went_out), (1, 0), "only what it is now");
        assert!(fs.read(inode, 0, 2048 * BLOCK_BYTES).await.unwrap() == bytes(2048, 9));
        assert!(fs.status().hot.counters.hits > 0 && fs.status().hot.counters.damaged == 0);
    });
}

/// The checksums of a file of 17,000 blocks need more than a log of 16 blocks.
#[test]
fn a_copy_of_which_there_is_more_to_tell_than_the_log_holds_comes_in() {
    const BLOCKS: u64 = 17_000;
    on((4 * BLOCKS, 16), Bounds::default(), async |fs: Fs, executor: Executor| {
        let inode = wanted(&fs, "f", BLOCKS, 7).await;
        fs.fsync(inode).await.unwrap();
        executor.sleep(600 * SECOND_NS).await;
        let hot = fs.status().hot;
        assert_eq!((hot.files, hot.used), (1, BLOCKS));
        fs.sync().await.expect("the log can be written");
        assert!(fs.read(inode, 0, BLOCKS as usize * BLOCK_BYTES).await.unwrap() == bytes(BLOCKS, 7));
        assert!(fs.status().hot.counters.hits > 0);
    });
}

#[test]
fn what_one_record_tells_of_is_bounded() {
    // A record takes 13 bytes for the change and 4 for each checksum; each write to the zone has one record.
    let writes = |hot_record_bytes| {
        let bounds = Bounds { hot_record_bytes, ..from_drives() };
        on((8192, 500), bounds, async |fs: Fs, executor: Executor| {
            let inode = create(&fs, "f").await;
            fs.write(inode, 0, &bytes(100, 3)).await.unwrap();
            fs.sync().await.unwrap();
            let before = fs.status().metadata_traffic.writes;
            fs.set_attribute(inode, HINT_ATTRIBUTE, b"always", SetAttribute::Any).await.unwrap();
            until(&executor, || fs.status().hot.counters.came_in == 1).await;
            fs.status().metadata_traffic.writes - before
        })
    };
    assert_eq!([1 << 20, 13 + 4 * 40, 13 + 4 * 4 + 3, 1].map(writes), [1, 3, 25, 100]);
}

#[test]
fn a_file_in_more_pieces_than_a_record_holds_stays_out() {
    // A record takes 13 bytes for the change and 16 for each piece; the largest frame has two blocks less 52 bytes.
    for (hot_record_bytes, pieces_max) in [(1, 1), (13 + 3 * 16, 3), (13 + 4 * 16, 4), (1 << 20, 507)] {
        let bounds = Bounds { hot_record_bytes, ..from_drives() };
        on((8192, 16), bounds, async move |fs: Fs, executor: Executor| {
            for pieces in [1, 2, 3, 4, 5, 200, 506, 507, 508] {
                let inode = wanted(&fs, &format!("{pieces}"), 1, 5).await;
                for piece in 1..pieces {
                    fs.write(inode, 3 * piece * BLOCK_BYTES as u64, &bytes(2, 5)).await.unwrap();
                }
                fs.fsync(inode).await.unwrap();
                let before = fs.status().hot.files;
                executor.sleep(60 * SECOND_NS).await;
                let is_in = fs.status().hot.files > before;
                assert_eq!(is_in, pieces <= pieces_max, "{pieces} pieces, {hot_record_bytes} bytes");
            }
        });
    }
}
