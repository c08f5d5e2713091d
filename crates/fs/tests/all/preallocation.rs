//! Goal: space reserved by `fallocate` is available. Each block of the range can be written once, whatever other files
//! take meanwhile, also after a mount. It counts as used until it is written, truncated, punched or removed. Reserving
//! takes as long for many blocks as for one. Method: toys of every store are filled by other files between the
//! reservation and the writes. Free blocks are compared with closed sums, contents with the written bytes, and work
//! with the devices' counts.

use imbrex_fs::core::{Allocate, MountOptions};
use imbrex_fs::device::BLOCK_BYTES;
use imbrex_fs::verify::cuts::fresh;
use imbrex_fs::verify::operation::{find, pattern};
use imbrex_fs::verify::rig::Rig;
use imbrex_fs::verify::trial::Trial;
use imbrex_fs::verify::{Operation, arrays, perform, toys};
use imbrex_fs::{Executor, Fs, FsError};

const BYTES: u64 = BLOCK_BYTES as u64;

async fn done(fs: &Fs, operation: Operation, name: &str) {
    perform(fs, &operation).await.unwrap_or_else(|error| panic!("{name}: {operation:?}: {error}"));
}

/// Writes files of a block until there is no space; returns the number of files that had space.
async fn fill(fs: &Fs) -> u64 {
    for number in 0.. {
        let file = format!("others{number}");
        done(fs, Operation::Create(file.clone()), "filling").await;
        match perform(fs, &Operation::WriteOut(file, 0, BLOCK_BYTES, 3)).await {
            Ok(()) => {}
            Err(FsError::NoSpace) => return number,
            Err(error) => panic!("file {number}: {error}"),
        }
    }
    unreachable!("a toy is full some time")
}

async fn remount(executor: &Executor, trial: &Trial, rig: &Rig, fs: Fs) -> Fs {
    fs.unmount().await.unwrap();
    let options = MountOptions { bounds: Some(trial.bounds), ..MountOptions::default() };
    Fs::mount(executor, &rig.devices(executor, &[]), &options).await.unwrap().0
}

/// Returns whether the store reserves specific blocks: then a reservation covers one write-back of the file.
fn is_for_one_writing(name: &str) -> bool {
    name.starts_with("caveat")
}

fn on_each(test: impl AsyncFn(&Executor, &'static str, Trial) + Copy + 'static) {
    for (name, trial) in toys().into_iter().chain(arrays()) {
        let executor = Executor::in_virtual_time();
        let own = executor.clone();
        executor.run(async move { test(&own, name, trial).await }).unwrap();
        executor.shut_down();
    }
}

#[test]
fn each_block_that_was_promised_can_be_written_whatever_others_take() {
    for what in [Allocate::Room, Allocate::RoomKeepingSize, Allocate::Zeros] {
        for is_mounted_anew in [false, true] {
            on_each(async move |executor, name, trial| {
                let (mut fs, rig) = fresh(executor, &trial).await.unwrap();
                let broken = rig.broken_rules();
                let (before, blocks) = (fs.statfs().free, 9);
                done(&fs, Operation::Create("promised".into()), name).await;
                done(&fs, Operation::Allocate("promised".into(), 0, blocks * BYTES, what), name).await;
                let size = if what == Allocate::RoomKeepingSize { 0 } else { blocks * BYTES };
                if is_mounted_anew {
                    fs = remount(executor, &trial, &rig, fs).await;
                }
                let attr = fs.attr(find(&fs, "promised").unwrap()).unwrap();
                assert_eq!((attr.attributes.size, attr.blocks), (size, blocks * BYTES / 512), "{name}");
                let free = fs.statfs().free;
                assert!(free <= before - blocks, "{name}: {free} blocks are free, and {before} were");
                assert!(is_for_one_writing(name) || free == before - blocks, "{name}: {free} of {before}");
                let others = fill(&fs).await;
                assert!(others > 0, "{name}: there is room for others");
                fs.sync().await.unwrap();
                // Out of order; and where each block is reserved by itself, each is made durable by itself.
                for at in [4, 0, 8, 1, 2, 7, 6, 5, 3] {
                    done(&fs, Operation::Write("promised".into(), at * BYTES, BLOCK_BYTES, 7), name).await;
                    if !is_for_one_writing(name) {
                        done(&fs, Operation::Fsync("promised".into()), name).await;
                    }
                }
                fs.sync().await.unwrap();
                fs = remount(executor, &trial, &rig, fs).await;
                let read = fs.read(find(&fs, "promised").unwrap(), 0, 100_000).await.unwrap();
                assert!(read == pattern(7, 0, (blocks * BYTES) as usize), "{name}: other bytes");
                assert_eq!(fs.self_check(), Vec::<String>::new());
                if !is_for_one_writing(name) {
                    assert_eq!(fs.statfs().free, before - blocks - others, "{name}: nothing is promised any more");
                }
                assert_eq!(rig.broken_rules(), broken, "{name}");
            });
        }
    }
}

#[test]
fn a_promise_ends_where_it_is_cut_punched_or_removed() {
    let ends: [(&str, Operation, u64); 4] = [
        ("cut", Operation::Truncate("promised".into(), 0), 0),
        ("cut in part", Operation::Truncate("promised".into(), 2 * BYTES), 2),
        ("punched", Operation::Allocate("promised".into(), 3 * BYTES, 4 * BYTES, Allocate::PunchHole), 6),
        ("removed", Operation::Unlink("promised".into()), 0),
    ];
    for (how, operation, left) in ends {
        let operation = &operation.clone();
        let operation: &'static Operation = Box::leak(Box::new(operation.clone()));
        for is_mounted_anew in [false, true] {
            on_each(async move |executor, name, trial| {
                let (mut fs, rig) = fresh(executor, &trial).await.unwrap();
                let before = fs.statfs().free;
                done(&fs, Operation::Create("promised".into()), name).await;
                // A truncation that shortens the file removes blocks behind its end.
                let what = if left == 2 { Allocate::Room } else { Allocate::RoomKeepingSize };
                let promise = Operation::Allocate("promised".into(), 0, 10 * BYTES, what);
                done(&fs, promise, name).await;
                done(&fs, operation.clone(), name).await;
                fs.sync().await.unwrap();
                if is_mounted_anew {
                    fs = remount(executor, &trial, &rig, fs).await;
                }
                // Blocks that are reserved together lose their reservation together.
                let left = if is_for_one_writing(name) { 0 } else { left };
                assert_eq!(fs.statfs().free, before - left, "{name}: {how}");
                assert_eq!(fs.self_check(), Vec::<String>::new());
            });
        }
    }
}

#[test]
fn as_little_is_done_for_many_blocks_as_for_one_and_nothing_where_there_is_no_room() {
    on_each(async |executor, name, trial| {
        let (fs, rig) = fresh(executor, &trial).await.unwrap();
        let free = fs.statfs().free;
        let mut works = Vec::new();
        for (number, blocks) in [1, free / 2].into_iter().enumerate() {
            let file = format!("f{number}");
            done(&fs, Operation::Create(file.clone()), name).await;
            fs.sync().await.unwrap();
            let (events, began_ns) = (rig.events(), executor.now_ns());
            done(&fs, Operation::Allocate(file.clone(), 0, blocks * BYTES, Allocate::Room), name).await;
            done(&fs, Operation::Fsync(file), name).await;
            works.push((rig.events() - events, executor.now_ns() - began_ns));
        }
        assert_eq!(works[0], works[1], "{name}: writes, flushes and resets; nanoseconds");
        done(&fs, Operation::Create("large".into()), name).await;
        fs.sync().await.unwrap();
        let (events, free) = (rig.events(), fs.statfs().free);
        for what in [Allocate::Room, Allocate::RoomKeepingSize, Allocate::Zeros] {
            for length in [(free + 1) * BYTES, 1 << 40] {
                let refused = perform(&fs, &Operation::Allocate("large".into(), 0, length, what)).await;
                assert_eq!(refused, Err(FsError::NoSpace), "{name}: {length} bytes");
            }
        }
        assert_eq!((rig.events(), fs.statfs().free), (events, free), "{name}: nothing was written");
        assert_eq!(fs.attr(find(&fs, "large").unwrap()).unwrap().attributes.size, 0, "{name}");
    });
}

/// Checks that a hole of 8 TB takes no more time than one of a block.
#[test]
fn punching_and_zeroing_look_at_what_is_there_alone() {
    on_each(async |executor, name, trial| {
        let (fs, _) = fresh(executor, &trial).await.unwrap();
        if is_for_one_writing(name) {
            // Files of this store have no holes.
            return;
        }
        done(&fs, Operation::Create("sparse".into()), name).await;
        done(&fs, Operation::Write("sparse".into(), 1 << 42, 3 * BLOCK_BYTES, 9), name).await;
        done(&fs, Operation::Truncate("sparse".into(), 1 << 43), name).await;
        fs.sync().await.unwrap();
        let free = fs.statfs().free;
        done(&fs, Operation::Allocate("sparse".into(), BYTES, 1 << 43, Allocate::PunchHole), name).await;
        fs.sync().await.unwrap();
        assert_eq!(fs.statfs().free, free + 3, "{name}");
        let inode = find(&fs, "sparse").unwrap();
        assert_eq!(fs.attr(inode).unwrap().attributes.size, 1 << 43, "{name}");
        assert!(fs.read(inode, 1 << 42, 4 * BLOCK_BYTES).await.unwrap().iter().all(|byte| *byte == 0), "{name}");
    });
}
