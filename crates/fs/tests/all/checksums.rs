//! Goal: a sequential reader waits for few reads of checksums. Even if few pages of checksums are in memory and other
//! tasks use them too, each task gets the checksums of its own blocks. Method: the reads of the metadata device are
//! compared with a closed form. Tasks read and write concurrently on a device that takes time, with bounds from one
//! page on: an outdated checksum would be a read error.

use std::cell::Cell;
use std::rc::Rc;

use imbrex_fs::core::{Caller, MakeOptions, MountOptions, make};
use imbrex_fs::device::memory::Memory;
use imbrex_fs::device::{BLOCK_BYTES, Geometry, Kind};
use imbrex_fs::format::file_type::REGULAR;
use imbrex_fs::namespace::ROOT;
use imbrex_fs::{Bounds, Device, Executor, Fs};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::support::devices::Late;

/// Number of checksums in a page: `docs/fs/format.md`.
const PAGE_SUMS: u64 = 1020;
const CAVEAT: Kind = Kind::Caveat { isolation: 4, no_overlap: 2 };

fn device(executor: &Executor, name: &str, blocks: u64, kind: Kind, each_ns: u64) -> Device {
    Device::new(executor, name, Box::new(Late::new(Memory::new(Geometry { blocks, kind }), each_ns)))
}

async fn mount(executor: &Executor, devices: &[Device; 2], bounds: Bounds) -> Fs {
    let options = MountOptions { bounds: Some(bounds), ..MountOptions::default() };
    Fs::mount(executor, devices, &options).await.unwrap().0
}

async fn made(executor: &Executor, blocks: u64, each_ns: u64, bounds: Bounds) -> (Fs, [Device; 2]) {
    let devices =
        [device(executor, "disk", blocks, CAVEAT, each_ns), device(executor, "metadata", 4096, Kind::Plain, each_ns)];
    make(&devices[0], Some(&devices[1]), &MakeOptions::default(), 0).await.unwrap();
    let fs = mount(executor, &devices, bounds).await;
    (fs, devices)
}

async fn create(fs: &Fs, name: &str) -> u32 {
    fs.make_node(ROOT, name.as_bytes(), REGULAR | 0o644, 0, Caller::default()).await.unwrap().inode
}

/// Returns the number of reads of the metadata while a file of `pages` pages is read sequentially, a page at a time.
fn reads_in_order(pages: u64, checksum_pages: usize) -> u64 {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let work = async move {
        let bounds = Bounds { checksum_pages, ..Bounds::default() };
        let (fs, devices) = made(&own, (pages + 2) * PAGE_SUMS, 0, bounds).await;
        let page = vec![7; PAGE_SUMS as usize * BLOCK_BYTES];
        let inode = create(&fs, "f").await;
        for at in 0..pages {
            fs.write(inode, at * page.len() as u64, &page).await.unwrap();
        }
        fs.unmount().await.unwrap();
        let fs = mount(&own, &devices, bounds).await;
        let before = devices[1].traffic().reads;
        for at in 0..pages {
            assert!(fs.read(inode, at * page.len() as u64, page.len()).await.unwrap() == page, "page {at}");
        }
        devices[1].traffic().reads - before
    };
    let reads = executor.run(work).unwrap();
    executor.shut_down();
    reads
}

#[test]
fn checksums_are_read_ahead_of_whoever_reads_in_order() {
    // The file may cross one page more than it fills: 1, 1, 2, 4, 8 and 16 pages at once are 32.
    assert!((5..=6).contains(&reads_in_order(31, 1000)), "{}", reads_in_order(31, 1000));
    // A page at a time if only one may be in memory.
    assert!(reads_in_order(31, 1) >= 31);
}

#[test]
fn reads_write_no_page_of_checksums() {
    for checksum_pages in [1, 3, 64] {
        let executor = Executor::in_virtual_time();
        let own = executor.clone();
        let work = async move {
            let bounds = Bounds { checksum_pages, cache_bytes: 4096, ..Bounds::default() };
            let (fs, devices) = made(&own, 30 * PAGE_SUMS, 0, bounds).await;
            let page = vec![7; PAGE_SUMS as usize * BLOCK_BYTES];
            let inode = create(&fs, "f").await;
            for at in 0..8 {
                fs.write(inode, at * page.len() as u64, &page).await.unwrap();
            }
            fs.fsync(inode).await.unwrap();
            let before = devices[1].traffic();
            for at in [3, 0, 7, 1, 5, 2, 6, 4, 0, 7] {
                assert!(fs.read(inode, at * page.len() as u64, page.len()).await.unwrap() == page, "page {at}");
            }
            let after = devices[1].traffic();
            assert_eq!(after.writes, before.writes, "of {checksum_pages} pages in memory");
            assert!(checksum_pages > 3 || after.reads > before.reads, "no page had left memory");
        };
        executor.run(work).unwrap();
        executor.shut_down();
    }
}

/// Runs tasks that rewrite and read their own files, which share pages of checksums, for `rounds` rounds each, and a
/// task that reads all of them sequentially, repeatedly.
fn at_once(seed: u64, checksum_pages: usize, rounds: u64) {
    const TASKS: u64 = 6;
    const FILE_BLOCKS: usize = 1300;
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let work = async move {
        let bounds = Bounds { checksum_pages, written_blocks: 0, piece_blocks: 64, ..Bounds::default() };
        let (fs, devices) = made(&own, 20 * PAGE_SUMS, 1_000, bounds).await;
        let tasks = (0..TASKS).map(|task| {
            let (fs, own) = (fs.clone(), own.clone());
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed * 100 + task);
            own.clone().spawn(async move {
                let inode = create(&fs, &format!("f{task}")).await;
                for round in 0..rounds {
                    let byte = (task * 40 + round) as u8;
                    fs.write(inode, 0, &vec![byte; FILE_BLOCKS * BLOCK_BYTES]).await.unwrap();
                    fs.fsync(inode).await.unwrap();
                    for _ in 0..4 {
                        own.sleep(random.next_u64() % 20_000).await;
                        let from = random.next_u64() % (FILE_BLOCKS as u64 - 9);
                        let read = fs.read(inode, from * BLOCK_BYTES as u64, 9 * BLOCK_BYTES).await;
                        let read =
                            read.unwrap_or_else(|error| panic!("seed {seed}, file {task}, round {round}: {error}"));
                        assert!(read.iter().all(|other| *other == byte), "seed {seed}, file {task}, round {round}");
                    }
                }
            })
        });
        let tasks: Vec<_> = tasks.collect();
        let (left, reader) = (Rc::new(Cell::new(true)), fs.clone());
        let (goes_on, executor) = (left.clone(), own.clone());
        let reader = own.spawn(async move {
            while goes_on.get() {
                executor.sleep(1_000).await;
                for task in 0..TASKS {
                    let Ok(found) = reader.lookup(ROOT, format!("f{task}").as_bytes()) else { continue };
                    let read = reader.read(found.inode, 0, FILE_BLOCKS * BLOCK_BYTES).await;
                    read.unwrap_or_else(|error| panic!("seed {seed}, file {task}, beside its writer: {error}"));
                }
            }
        });
        for task in tasks {
            task.await;
        }
        left.set(false);
        reader.await;
        fs.unmount().await.unwrap();
        let fs = mount(&own, &devices, Bounds::default()).await;
        for task in 0..TASKS {
            let inode = fs.lookup(ROOT, format!("f{task}").as_bytes()).unwrap().inode;
            let read = fs.read(inode, 0, FILE_BLOCKS * BLOCK_BYTES).await.unwrap();
            assert!(read.iter().all(|byte| *byte == (task * 40 + rounds - 1) as u8), "seed {seed}, file {task}");
        }
    };
    executor.run(work).unwrap();
    executor.shut_down();
}

#[test]
fn tasks_that_share_few_pages_find_the_checksums_of_their_blocks() {
    for seed in 0..6 {
        for checksum_pages in [1, 2, 8, 12, 100] {
            at_once(seed, checksum_pages, 8);
        }
    }
}
