//! Goal: data that is appended to a file is written while more arrives, several pieces at a time, and every reader and
//! every change of the file meanwhile sees it as documented. Method: a drive with times in closed form ([`timed`]), in
//! virtual time; random sequences of operations compared with the naive file system, also with power cuts.

use std::cell::Cell;
use std::rc::Rc;

use imbrex_fs::core::{Allocate, Caller, MakeOptions, MountOptions, Parts, make_on};
use imbrex_fs::device::memory::Memory;
use imbrex_fs::device::model::Model;
use imbrex_fs::device::{BLOCK_BYTES, Backend, Geometry, Kind};
use imbrex_fs::format::file_type::REGULAR;
use imbrex_fs::namespace::ROOT;
use imbrex_fs::verify::cuts::{compare_all, judge};
use imbrex_fs::verify::naive::Naive;
use imbrex_fs::verify::operation::find;
use imbrex_fs::verify::trial::Trial;
use imbrex_fs::verify::{Operation, arrays, in_short_appends, perform, toys, with_hot_zones};
use imbrex_fs::{Bounds, Device, Executor, Fs, FsError};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::support::devices::{Counting, Late, Refusing};
use crate::support::sequences::setting;
use crate::support::timed::{BLOCK_NS, SEEK_NS, Timed};

const CAVEAT: Kind = Kind::Caveat { isolation: 16, no_overlap: 6 };
const ZONE_BLOCKS: u64 = 4096;
const PIECE_BLOCKS: u64 = 256;
const PIECE_BYTES: u64 = PIECE_BLOCKS * BLOCK_BYTES as u64;
const PIECE_NS: u64 = PIECE_BLOCKS * BLOCK_NS;

/// Returns a device over `inner`, with the numbers of operations in flight now and at most.
fn counted<B: Backend + 'static>(executor: &Executor, inner: B) -> (Device, Rc<Cell<(usize, usize)>>) {
    let counting = Counting::new(inner);
    let at_once = counting.at_once.clone();
    (Device::new(executor, "drive", Box::new(counting)), at_once)
}

/// Returns a file system with `store` on a timed drive, its devices, and the numbers of operations in flight on the
/// drive now and at most.
async fn mounted(executor: &Executor, store: &str, bounds: Bounds) -> (Fs, Vec<Device>, Rc<Cell<(usize, usize)>>) {
    let (drive, at_once) = if store == "caveat" {
        let disk = Memory::new(Geometry { blocks: 32 * ZONE_BLOCKS, kind: CAVEAT });
        counted(executor, Late::new(disk, PIECE_NS))
    } else {
        counted(executor, Timed::new(32, ZONE_BLOCKS))
    };
    let metadata = Memory::new(Geometry { blocks: 8192, kind: Kind::Plain });
    let devices = vec![drive, Device::new(executor, "metadata", Box::new(metadata))];
    let options = MakeOptions { store: Some(store.into()), ..MakeOptions::default() };
    let parts = Parts { drives: &devices[..1], metadata: &devices[1..], spares: &[] };
    make_on(parts, &options, 0).await.unwrap();
    let fs = mount(executor, &devices, bounds).await;
    at_once.set((0, 0));
    (fs, devices, at_once)
}

async fn mount(executor: &Executor, devices: &[Device], bounds: Bounds) -> Fs {
    let options = MountOptions { bounds: Some(bounds), ..MountOptions::default() };
    Fs::mount(executor, devices, &options).await.unwrap().0
}

/// Returns the byte that fills a piece of a file; it differs from file to file.
fn byte_of(inode: u32, piece: u64) -> u8 {
    (u64::from(inode) * 41 + piece) as u8
}

/// Makes a file of `pieces` pieces that arrive `each_ns` apart.
async fn append(fs: &Fs, name: &str, pieces: u64, each_ns: u64) -> u32 {
    let inode = fs.make_node(ROOT, name.as_bytes(), REGULAR | 0o644, 0, Caller::default()).await.unwrap().inode;
    for piece in 0..pieces {
        fs.write(inode, piece * PIECE_BYTES, &vec![byte_of(inode, piece); PIECE_BYTES as usize]).await.unwrap();
        fs.executor().sleep(each_ns).await;
    }
    fs.fsync(inode).await.unwrap();
    inode
}

async fn check(fs: &Fs, inode: u32, pieces: u64) {
    for piece in 0..pieces {
        let read = fs.read(inode, piece * PIECE_BYTES, PIECE_BYTES as usize).await.unwrap();
        assert!(read.iter().all(|byte| *byte == byte_of(inode, piece)), "piece {piece}");
    }
    assert_eq!(fs.self_check(), Vec::<String>::new());
}

/// Writes a file of 64 pieces that arrive as fast as the drive writes. Returns the time until it is durable,
/// nanoseconds; the most operations in flight on the drive; and the blocks written.
fn stream(store: &'static str, bounds: Bounds) -> (u64, usize, u64) {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let work = async move {
        let (fs, devices, at_once) = mounted(&own, store, bounds).await;
        let began_ns = own.now_ns();
        let inode = append(&fs, "f", 64, PIECE_NS).await;
        let (took_ns, written) = (own.now_ns() - began_ns, devices[0].traffic().blocks_written);
        check(&fs, inode, 64).await;
        (took_ns, at_once.get().1, written)
    };
    let outcome = executor.run(work).unwrap();
    executor.shut_down();
    outcome
}

#[test]
fn what_is_appended_is_written_while_more_comes() {
    for store in ["strict-append", "log", "caveat"] {
        let behind = Bounds { behind_bytes: 4 * PIECE_BYTES, ..Bounds::default() };
        let (took_ns, ..) = stream(store, behind);
        // Additional time: the pieces before the first write and the last pieces; a seek to each zone; and records.
        assert!(took_ns <= (64 + 8) * PIECE_NS + 20 * SEEK_NS, "{store}: {took_ns} ns");
        let (at_the_end_ns, ..) = stream(store, Bounds { behind_bytes: u64::MAX, ..Bounds::default() });
        assert!(at_the_end_ns >= 128 * PIECE_NS, "{store}: {at_the_end_ns} ns where nothing is written before");
    }
}

/// Four writers append, each a piece in six times the time that the drive takes for one, so that some data always
/// waits.
#[test]
fn what_was_appended_before_is_made_durable_beside_those_who_go_on() {
    const PIECES: u64 = 40;
    for store in ["strict-append", "log", "caveat"] {
        let executor = Executor::in_virtual_time();
        let own = executor.clone();
        let work = async move {
            let behind = Bounds { behind_bytes: 4 * PIECE_BYTES, ..Bounds::default() };
            let (fs, devices, _) = mounted(&own, store, behind).await;
            let writers: Vec<_> = (0..4)
                .map(|number| {
                    let fs = fs.clone();
                    own.spawn(async move { append(&fs, &format!("f{number}"), PIECES, 6 * PIECE_NS).await })
                })
                .collect();
            own.sleep(60 * PIECE_NS).await;
            let sizes = |fs: &Fs| -> u64 {
                let inodes = (0..4).map(|number| find(fs, &format!("f{number}")).unwrap());
                inodes.map(|inode| fs.attr(inode).unwrap().attributes.size / PIECE_BYTES).sum()
            };
            let before = sizes(&fs);
            fs.sync().await.unwrap();
            assert!(sizes(&fs) < 4 * PIECES, "{store}: it ended only when the files were complete");
            let written = devices[0].traffic().blocks_written;
            assert!(written >= before * PIECE_BLOCKS, "{store}: {written} blocks of {before} pieces");
            for writer in writers {
                check(&fs, writer.await, PIECES).await;
            }
        };
        executor.run(work).unwrap();
        executor.shut_down();
    }
}

#[test]
fn several_pieces_are_at_the_drive_at_a_time() {
    for (pieces, most) in [(1, 1), (4, 4)] {
        let bounds = Bounds { pieces, behind_bytes: u64::MAX, ..Bounds::default() };
        assert_eq!(stream("strict-append", bounds).1, most);
    }
}

#[test]
fn what_must_lie_in_one_piece_is_written_once_where_it_has_room() {
    let bounds = |behind| Bounds { behind_bytes: behind * PIECE_BYTES, ..Bounds::default() };
    let (_, _, before) = stream("caveat", bounds(1000));
    let (_, _, once) = stream("caveat", bounds(4));
    assert_eq!(before, once);
}

/// Writes a file of `pieces` pieces, `each_ns` apart, on a disk with gaps of 2, 6 and 12 pieces: each is the best fit
/// until the file outgrows it.
fn outgrow(pieces: u64, each_ns: u64) {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let work = async move {
        let bounds = Bounds { behind_bytes: PIECE_BYTES, ..Bounds::default() };
        let (fs, devices, _) = mounted(&own, "caveat", bounds).await;
        for (number, gap) in [2, 6, 12].into_iter().enumerate() {
            append(&fs, &format!("gap {number}"), gap, 0).await;
            append(&fs, &format!("between {number}"), 1, 0).await;
        }
        for number in 0..3 {
            fs.unlink(ROOT, format!("gap {number}").as_bytes()).await.unwrap();
        }
        fs.sync().await.unwrap();
        let before = devices[0].traffic().blocks_written;
        let inode = append(&fs, "f", pieces, each_ns).await;
        let written = devices[0].traffic().blocks_written - before;
        let most = pieces * PIECE_BLOCKS..=3 * pieces * PIECE_BLOCKS;
        assert!(most.contains(&written), "{pieces} pieces, {each_ns} ns: {written} blocks");
        check(&fs, inode, pieces).await;
        fs.unmount().await.unwrap();
        let fs = mount(&own, &devices, Bounds::default()).await;
        check(&fs, find(&fs, "f").unwrap(), pieces).await;
    };
    executor.run(work).unwrap();
    executor.shut_down();
}

#[test]
fn a_file_that_outgrows_its_room_again_and_again_is_found_whole_and_written_thrice_at_most() {
    for pieces in [1, 2, 3, 4, 7, 8, 13, 14, 40] {
        for each_ns in [0, PIECE_NS / 2, PIECE_NS, 2 * PIECE_NS] {
            outgrow(pieces, each_ns);
        }
    }
}

/// Grows a file while its drive refuses writes for some pieces, from piece `from` on. The failure is reported, and once
/// the drive accepts writes again, everything is written and found.
fn grow_while_writes_fail(store: &str, from: u64, pieces_refused: u64) {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let store = store.to_string();
    let work = async move {
        let blocks = 32 * ZONE_BLOCKS;
        let zoned = Kind::Zoned { zone_blocks: ZONE_BLOCKS, zones: 32, conventional: 0, active_max: None };
        let kind = if store == "caveat" { CAVEAT } else { zoned };
        let refusing = Refusing::new(Model::new(Geometry { blocks, kind }));
        let refused = refusing.refused.clone();
        let drive = Device::new(&own, "drive", Box::new(Late::new(refusing, PIECE_NS)));
        let metadata = Memory::new(Geometry { blocks: 8192, kind: Kind::Plain });
        let devices = vec![drive, Device::new(&own, "metadata", Box::new(metadata))];
        let options = MakeOptions { store: Some(store.clone()), ..MakeOptions::default() };
        make_on(Parts { drives: &devices[..1], metadata: &devices[1..], spares: &[] }, &options, 0).await.unwrap();
        let bounds = Bounds { behind_bytes: PIECE_BYTES, ..Bounds::default() };
        let fs = mount(&own, &devices, bounds).await;
        let inode = fs.make_node(ROOT, b"f", REGULAR | 0o644, 0, Caller::default()).await.unwrap().inode;
        let mut failures = 0;
        for piece in 0..24 {
            let is_refused = (from..from + pieces_refused).contains(&piece);
            *refused.borrow_mut() = 0..if is_refused { blocks } else { 0 };
            // Now and then an fsync asks for durable data, may fail, and appends continue.
            if piece % 5 == 4 {
                failures += u64::from(fs.fsync(inode).await.is_err());
            }
            let written =
                fs.write(inode, piece * PIECE_BYTES, &vec![byte_of(inode, piece); PIECE_BYTES as usize]).await;
            written.unwrap_or_else(|error| panic!("{store}: {pieces_refused} from {from} on: piece {piece}: {error}"));
            own.sleep(PIECE_NS / 2).await;
        }
        *refused.borrow_mut() = 0..0;
        assert!(failures > 0 || pieces_refused < 8, "{store}: {pieces_refused} pieces from {from} on: nothing failed");
        check(&fs, inode, 24).await;
        fs.sync().await.unwrap_or_else(|error| panic!("{store}: {pieces_refused} pieces from {from} on: {error}"));
        check(&fs, inode, 24).await;
        fs.unmount().await.unwrap();
        let fs = mount(&own, &devices, Bounds::default()).await;
        check(&fs, find(&fs, "f").unwrap(), 24).await;
    };
    executor.run(work).unwrap();
    executor.shut_down();
}

#[test]
fn a_file_grows_on_once_its_drive_takes_writes_again() {
    for store in ["caveat", "strict-append"] {
        for from in 0..16 {
            for pieces_refused in [1, 2, 5, 8] {
                grow_while_writes_fail(store, from, pieces_refused);
            }
        }
    }
}

/// An append waits for space, until the close of a deleted file, while its own file loses its name. The write-back of
/// the file is abandoned, and the append must still find its staged data.
#[test]
fn an_append_that_waits_outlives_the_name_of_its_file() {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let work = async move {
        let closing_ns = 1_000 * PIECE_NS;
        let bounds = Bounds { behind_bytes: 4 * PIECE_BYTES, closing_ns, ..Bounds::default() };
        let (fs, _, _) = mounted(&own, "strict-append", bounds).await;
        let deleted = append(&fs, "deleted", 1, 0).await;
        fs.open(deleted).unwrap();
        fs.unlink(ROOT, b"deleted").await.unwrap();
        append(&fs, "filler", fs.statfs().free / PIECE_BLOCKS - 6, 0).await;
        fs.sync().await.unwrap();
        let free = fs.statfs().free / PIECE_BLOCKS;
        assert!((5..8).contains(&free), "four pieces leave at once, and fewer wait: {free}");
        let inode = fs.make_node(ROOT, b"f", REGULAR | 0o644, 0, Caller::default()).await.unwrap().inode;
        let writer = own.spawn({
            let fs = fs.clone();
            async move {
                let piece = vec![1; PIECE_BYTES as usize];
                for at in 0..=free {
                    fs.write(inode, at * PIECE_BYTES, &piece).await?;
                    fs.executor().sleep(1).await;
                }
                Ok::<(), FsError>(())
            }
        });
        own.sleep(8 * PIECE_NS).await;
        assert!(fs.attr(inode).unwrap().attributes.size == free * PIECE_BYTES, "the last append waits");
        fs.unlink(ROOT, b"f").await.unwrap();
        own.sleep(20 * PIECE_NS).await;
        fs.close(deleted).await.unwrap();
        let _ = writer.await;
        fs.sync().await.unwrap();
        assert_eq!((fs.self_check(), fs.status().staged_bytes), (Vec::<String>::new(), 0));
    };
    executor.run(work).unwrap();
    executor.shut_down();
}

/// Generates operations on two files, most of them appends, of whole blocks or not.
struct Appends {
    random: Xoshiro256PlusPlus,
    sizes: [u64; 2],
}

impl Appends {
    fn new(seed: u64) -> Appends {
        Appends { random: Xoshiro256PlusPlus::seed_from_u64(seed), sizes: [0; 2] }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random.next_u64() % end.max(1)
    }

    fn next(&mut self) -> Operation {
        let number = self.below(2) as usize;
        let (path, size, seed) = (["a", "b"][number].to_string(), self.sizes[number], self.below(250) as u8);
        let (offset, length) = (self.below(size), 1 + self.below(9000));
        let (operation, size) = match self.below(24) {
            0..=7 => {
                let length = BLOCK_BYTES as u64 * (1 + self.below(4));
                (Operation::Write(path, size, length as usize, seed), size + length)
            }
            8..=10 => (Operation::Write(path, size, length as usize, seed), size + length),
            11 => {
                let to_block = size.next_multiple_of(BLOCK_BYTES as u64) - size + BLOCK_BYTES as u64;
                (Operation::Write(path, size, to_block as usize, seed), size + to_block)
            }
            12..=13 => (Operation::Write(path, offset, length as usize, seed), size.max(offset + length)),
            14 => (Operation::Truncate(path, offset), offset),
            15 => (Operation::Truncate(path, size + length), size + length),
            16 => (Operation::Allocate(path, offset, length, Allocate::PunchHole), size),
            17..=20 => (Operation::Fsync(path), size),
            21 => (Operation::Close(path), size),
            _ => (Operation::Sync, size),
        };
        self.sizes[number] = size;
        // The limit keeps the files small enough for a toy.
        if size > 40_000 {
            self.sizes[number] = 0;
            return Operation::Truncate(["a", "b"][number].into(), 0);
        }
        operation
    }

    fn sequence(seed: u64, length: usize) -> Vec<Operation> {
        let mut appends = Appends::new(seed);
        let first = ["a", "b"].map(|name| Operation::Create(name.into()));
        first.into_iter().chain((0..length).map(|_| appends.next())).collect()
    }
}

#[test]
fn power_cuts_while_it_is_written_behind_find_what_is_promised() {
    let (first, count) = (setting("IMBREX_FS_SEED", 1), setting("IMBREX_FS_BEHIND", 2));
    let all = [toys(), arrays(), with_hot_zones(), in_short_appends()].concat();
    for (number, (name, usual)) in all.into_iter().enumerate() {
        for (pieces, piece_blocks, appends) in [(3, 1, 2), (4, 256, 4)] {
            let bounds = Bounds { behind_bytes: 1, pieces, piece_blocks, appends, ..usual.bounds };
            let trial = Trial { bounds, random_subsets: 4, ..usual.clone() };
            for seed in first..first + count {
                let seed = seed + 1000 * number as u64 + 100 * pieces as u64;
                let operations = Appends::sequence(seed, 24);
                judge(&trial, &operations)
                    .unwrap_or_else(|why| panic!("{name}, {pieces} pieces, seed {seed}: {why}\n{operations:#?}"));
            }
        }
    }
}

/// Performs a sequence on a timed drive, so that writes are in flight at each operation, and compares it with the naive
/// file system.
fn compare_beside(store: &'static str, seed: u64, bounds: Bounds) {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let work = async move {
        let (fs, devices, _) = mounted(&own, store, bounds).await;
        let (mut naive, mut random) = (Naive::default(), Xoshiro256PlusPlus::seed_from_u64(seed ^ 0xB0B));
        for operation in Appends::sequence(seed, 150) {
            perform(&fs, &operation).await.unwrap_or_else(|error| panic!("{operation:?}: {error}"));
            naive.perform(&operation).unwrap();
            let path = ["a", "b"][random.next_u64() as usize % 2];
            let Some(expected) = naive.find(path).ok().and_then(|number| naive.bytes(number)) else { continue };
            let inode = find(&fs, path).unwrap();
            assert_eq!(fs.attr(inode).unwrap().attributes.size, expected.len() as u64, "{operation:?}");
            let from = random.next_u64() as usize % (expected.len() + 1);
            let read = fs.read(inode, from as u64, expected.len()).await.unwrap();
            assert!(read == expected[from..], "{store}, seed {seed}: '{path}' from {from} after {operation:?}");
            own.sleep(random.next_u64() % (2 * SEEK_NS)).await;
        }
        compare_all(&fs, &naive).await.unwrap();
        assert_eq!(fs.self_check(), Vec::<String>::new());
        fs.unmount().await.unwrap();
        let fs = mount(&own, &devices, Bounds::default()).await;
        compare_all(&fs, &naive).await.unwrap_or_else(|why| panic!("{store}, seed {seed}, mounted again: {why}"));
        Ok::<(), FsError>(())
    };
    executor.run(work).unwrap().unwrap();
    executor.shut_down();
}

#[test]
fn whoever_reads_or_changes_a_file_that_is_written_behind_finds_it_as_it_is() {
    let (first, count) = (setting("IMBREX_FS_SEED", 1), setting("IMBREX_FS_BEHIND", 6));
    for seed in first..first + count {
        for store in ["strict-append", "log", "caveat"] {
            for behind_bytes in [1, 20_000] {
                compare_beside(store, seed, Bounds { behind_bytes, piece_blocks: 2, ..Bounds::default() });
            }
        }
    }
}
