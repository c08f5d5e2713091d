//! Goal: the cleaner of the store `log` copies hardly more than a greedy one must, does not stall writers for long, and
//! refuses nothing while space is free. Method: a drive with times in closed form that keeps one word of each block.
//! Files of one size are deleted and created at random in virtual time, beside a greedy simulation of zones and files
//! that shares no code.
//!
//! `IMBREX_LONG=1` selects larger drives and longer runs.

use imbrex_fs::core::{Caller, MakeOptions, MountOptions, Status, make};
use imbrex_fs::device::memory::Memory;
use imbrex_fs::device::{BLOCK_BYTES, Geometry, Kind};
use imbrex_fs::format::file_type::REGULAR;
use imbrex_fs::namespace::ROOT;
use imbrex_fs::{Bounds, Device, Executor, Fs, FsError};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::support::timed::{SECOND_NS, Timed};

/// A workload and its drive.
#[derive(Clone, Copy)]
struct Load {
    zones: u32,
    zone_blocks: u64,
    /// Blocks of a file.
    file_blocks: u64,
    /// Share of the capacity that is filled, percent.
    fill_percent: u64,
    /// Share of the files that gets nine tenths of the writes, percent; 100 if all files are alike.
    hot_percent: u64,
    /// Amounts written once the drive is full, in capacities of the drive: first to reach a steady state, then for the
    /// measurement.
    settling: u64,
    measured: u64,
    /// Pause between the end of a write and the next.
    pause_ns: u64,
    /// Number of files, taken from another drive: to run the load on a drive that needs no cleaning.
    files: Option<u64>,
    /// Policy of the cleaner: which zone it empties, and how.
    cleaner: &'static str,
}

/// Results of a workload.
#[derive(Debug)]
struct Came {
    /// Blocks written to the drive per block of a file, during the measurement.
    amplification: f64,
    /// Share of the written blocks that hold records.
    record_share: f64,
    files: u64,
    rows: u64,
    /// Latencies of the writes, sorted.
    latencies_ns: Vec<u64>,
    status: Status,
}

impl Came {
    fn percentile_ns(&self, share: f64) -> u64 {
        let at = (self.latencies_ns.len() as f64 * share) as usize;
        self.latencies_ns[at.min(self.latencies_ns.len() - 1)]
    }
}

/// Returns the file to be written next.
fn choose(random: &mut Xoshiro256PlusPlus, files: u64, hot_percent: u64) -> u64 {
    let hot = (files * hot_percent / 100).max(1);
    match (hot_percent, random.next_u64() % 10) {
        (100, _) => random.next_u64() % files,
        (_, 0) => hot + random.next_u64() % (files - hot),
        _ => random.next_u64() % hot,
    }
}

struct Files {
    fs: Fs,
    blocks: u64,
    words: Vec<u64>,
    made: u64,
}

impl Files {
    /// Deletes a file, if it exists, and writes another in its place.
    async fn write(&mut self, slot: usize) -> Result<(), FsError> {
        let old = (slot < self.words.len()).then(|| self.words[slot]);
        if let Some(old) = old {
            self.fs.unlink(ROOT, format!("f{old}").as_bytes()).await?;
        }
        self.made += 1;
        let (word, name) = (self.made, format!("f{}", self.made));
        let inode = self.fs.make_node(ROOT, name.as_bytes(), REGULAR | 0o644, 0, Caller::default()).await?.inode;
        self.fs.open(inode)?;
        let bytes = word.to_le_bytes().repeat(BLOCK_BYTES / 8 * self.blocks as usize);
        self.fs.write(inode, 0, &bytes).await?;
        self.fs.close(inode).await?;
        match old {
            Some(_) => self.words[slot] = word,
            None => self.words.push(word),
        }
        Ok(())
    }

    async fn compare(&self) {
        for word in &self.words {
            let inode = self.fs.lookup(ROOT, format!("f{word}").as_bytes()).unwrap().inode;
            let bytes = self.fs.read(inode, 0, 1 << 30).await.unwrap();
            assert_eq!(bytes.len() as u64, self.blocks * BLOCK_BYTES as u64);
            assert!(bytes.chunks(8).all(|chunk| chunk == word.to_le_bytes()), "file {word} has other bytes");
        }
    }
}

/// Blocks for metadata, if their number does not matter.
const METADATA_BLOCKS: u64 = 40_000;

/// Makes and mounts a file system on a drive of `shape.0` zones of `shape.1` blocks.
async fn fresh(executor: &Executor, shape: (u32, u64), cleaner: &str, bounds: Bounds) -> (Fs, Device) {
    fresh_with(executor, METADATA_BLOCKS, shape, cleaner, bounds).await
}

/// Like [`fresh`], with `metadata_blocks` blocks for metadata.
async fn fresh_with(
    executor: &Executor,
    metadata_blocks: u64,
    (zones, zone_blocks): (u32, u64),
    cleaner: &str,
    bounds: Bounds,
) -> (Fs, Device) {
    let drive = Device::new(executor, "drive", Box::new(Timed::new(zones, zone_blocks)));
    let metadata = Memory::new(Geometry { blocks: metadata_blocks, kind: Kind::Plain });
    let metadata = Device::new(executor, "metadata", Box::new(metadata));
    let options = vec![("cleaner".to_string(), cleaner.to_string())];
    let options = MakeOptions { store: Some("log".into()), options, ..MakeOptions::default() };
    make(&drive, Some(&metadata), &options, 0).await.unwrap();
    let options = MountOptions { bounds: Some(bounds), ..MountOptions::default() };
    let (fs, _) = Fs::mount(executor, &[drive.clone(), metadata], &options).await.unwrap();
    (fs, drive)
}

fn run(load: Load) -> Came {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let task = async move {
        let (fs, drive) = fresh(&own, (load.zones, load.zone_blocks), load.cleaner, Bounds::default()).await;
        let room = fs.statfs().blocks;
        let count = load.files.unwrap_or(room * load.fill_percent / 100 / load.file_blocks);
        let mut files = Files { fs: fs.clone(), blocks: load.file_blocks, words: Vec::new(), made: 0 };
        for slot in 0..count {
            files.write(slot as usize).await.unwrap_or_else(|error| panic!("file {slot} of {count}: {error}"));
        }
        let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
        let turns = |drives: u64| count * drives * 100 / load.fill_percent;
        for _ in 0..turns(load.settling) {
            files.write(choose(&mut random, count, load.hot_percent) as usize).await.unwrap();
            own.sleep(load.pause_ns).await;
        }
        fs.sync().await.unwrap();
        let (before, mut latencies_ns) = (drive.traffic().blocks_written, Vec::new());
        for turn in 0..turns(load.measured) {
            let (slot, began) = (choose(&mut random, count, load.hot_percent), own.now_ns());
            let written = files.write(slot as usize).await;
            written.unwrap_or_else(|error| panic!("turn {turn}: {error}; {:?}", fs.status()));
            latencies_ns.push(own.now_ns() - began);
            own.sleep(load.pause_ns).await;
        }
        fs.sync().await.unwrap();
        let of_files = turns(load.measured) * load.file_blocks;
        let amplification = (drive.traffic().blocks_written - before) as f64 / of_files as f64;
        let (records, written) = (fs.status().usage.records.1, fs.status().traffic.blocks_written);
        let record_share = records as f64 / written as f64;
        files.compare().await;
        latencies_ns.sort_unstable();
        Came {
            amplification,
            record_share,
            files: count,
            rows: load.zone_blocks - 1,
            latencies_ns,
            status: fs.status(),
        }
    };
    let came = executor.run(task).unwrap();
    executor.shut_down();
    came
}

/// Simulates a greedy cleaner with zones for `files_of_zone` files: one zone is written, one receives copies, one is
/// kept in reserve. Returns the number of files written, copies included, per file of the workload.
fn greedy(zones: u64, files_of_zone: u64, files: u64, hot_percent: u64, settling: u64, measured: u64) -> f64 {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(99);
    let mut live: Vec<u64> = vec![0; zones as usize];
    let mut members: Vec<Vec<u64>> = vec![Vec::new(); zones as usize];
    let mut lies_in: Vec<usize> = vec![usize::MAX; files as usize];
    let mut free: Vec<usize> = (0..zones as usize).collect();
    let (mut own, mut copies) = (free.pop().unwrap(), free.pop().unwrap());
    let (mut written, mut copied, all) = (0u64, 0u64, files + settling + measured);
    let mut base = (0, 0);
    for turn in 0..all {
        if turn == files + settling {
            base = (written, copied);
        }
        let file = if turn < files { turn } else { choose(&mut random, files, hot_percent) };
        if members[own].len() as u64 == files_of_zone {
            while free.len() <= 1 {
                let is_full = |zone: &usize| *zone != own && *zone != copies && !free.contains(zone);
                let victim = (0..zones as usize).filter(is_full).min_by_key(|zone| live[*zone]).unwrap();
                let moved: Vec<u64> =
                    members[victim].iter().copied().filter(|file| lies_in[*file as usize] == victim).collect();
                for file in moved {
                    if lies_in[file as usize] != victim {
                        continue;
                    }
                    if members[copies].len() as u64 == files_of_zone {
                        copies = free.pop().unwrap();
                    }
                    live[victim] -= 1;
                    (lies_in[file as usize], live[copies]) = (copies, live[copies] + 1);
                    members[copies].push(file);
                    copied += 1;
                }
                members[victim].clear();
                live[victim] = 0;
                free.push(victim);
            }
            own = free.pop().unwrap();
        }
        if lies_in[file as usize] != usize::MAX {
            live[lies_in[file as usize]] -= 1;
        }
        (lies_in[file as usize], live[own]) = (own, live[own] + 1);
        members[own].push(file);
        written += 1;
    }
    (written - base.0 + copied - base.1) as f64 / (written - base.0) as f64
}

fn is_long() -> bool {
    std::env::var_os("IMBREX_LONG").is_some()
}

fn load() -> Load {
    let zones = if is_long() { 512 } else { 128 };
    Load {
        zones,
        zone_blocks: 256,
        file_blocks: 2,
        fill_percent: 80,
        hot_percent: 100,
        settling: if is_long() { 4 } else { 2 },
        measured: if is_long() { 4 } else { 1 },
        pause_ns: 0,
        files: None,
        cleaner: "cost-benefit",
    }
}

/// Runs the greedy simulation with as many files and zones, each with `rows` blocks for data.
fn greedy_on(load: &Load, came: &Came, rows: u64) -> f64 {
    let turns = |drives: u64| came.files * drives * 100 / load.fill_percent;
    let (settling, measured) = (turns(load.settling), turns(load.measured));
    greedy(u64::from(load.zones) - 1, rows / load.file_blocks, came.files, load.hot_percent, settling, measured)
}

/// Records are not simulated, so they are removed from both sides: from the written blocks, and from the space of the
/// zones.
#[test]
fn small_files_cost_little_more_than_a_greedy_simulation_and_a_hot_and_cold_mix_less() {
    let uniform = load();
    let came = run(uniform);
    let whole = greedy_on(&uniform, &came, came.rows);
    let without_records = came.amplification * (1.0 - came.record_share);
    let simulated = greedy_on(&uniform, &came, (came.rows as f64 * (1.0 - came.record_share)) as u64);
    println!(
        "files of 2 blocks: {:.3}, simulated {whole:.3}; {:.2} % of it records, without them {without_records:.3}, simulated {simulated:.3}",
        came.amplification,
        came.record_share * 100.0
    );
    assert!(came.amplification < 2.9, "{:.3}", came.amplification);
    assert!(without_records <= 1.05 * simulated, "{without_records:.3}, simulated {simulated:.3}");
    let mixed = run(Load { hot_percent: 10, ..uniform });
    println!("a tenth of them hot: {:.3}", mixed.amplification);
    assert!(mixed.amplification < came.amplification, "{:.3} and {:.3}", mixed.amplification, came.amplification);
}

#[test]
fn files_of_a_quarter_zone_cost_less_than_twice_what_they_are() {
    let large = Load { file_blocks: 64, settling: 5, measured: 5, ..load() };
    let came = run(large);
    println!("files of a quarter zone: {:.3}", came.amplification);
    assert!(came.amplification < 2.0, "{:.3}", came.amplification);
    let mixed = run(Load { hot_percent: 10, ..large });
    println!("a tenth of them hot: {:.3}", mixed.amplification);
    assert!(mixed.amplification < came.amplification, "{:.3} and {:.3}", mixed.amplification, came.amplification);
}

#[test]
fn a_drive_that_is_nearly_full_refuses_nothing() {
    let full = Load {
        fill_percent: 95,
        file_blocks: 17,
        settling: 2,
        measured: if is_long() { 10 } else { 3 },
        zones: 96,
        ..load()
    };
    let came = run(full);
    let simulated = greedy_on(&full, &came, came.rows);
    let waited_s = came.status.counters.waited_ns as f64 / SECOND_NS as f64;
    println!(
        "95 % full: {:.3}, simulated {simulated:.3}; writers waited {waited_s:.1} s for zones",
        came.amplification
    );
    assert!(came.amplification <= 1.25 * simulated, "{:.3}, simulated {simulated:.3}", came.amplification);
}

#[test]
fn cleaning_delays_writers_little() {
    // The load is a third of the drive's throughput, so that there is time for cleaning.
    let paced = Load {
        zones: 64,
        zone_blocks: 1024,
        file_blocks: 16,
        fill_percent: 70,
        settling: 2,
        measured: 1,
        pause_ns: 40_000_000,
        ..load()
    };
    let with = run(paced);
    let without = run(Load { zones: 64 * 6, files: Some(with.files), ..paced });
    assert_eq!(without.status.counters.zones_cleaned, 0, "there was room for all of it");
    assert!(with.status.counters.zones_cleaned > 50);
    let tail = (with.percentile_ns(0.999), without.percentile_ns(0.999));
    let longest = *with.latencies_ns.last().unwrap();
    let ms = |ns: u64| ns as f64 / 1e6;
    println!(
        "p99.9 {:.1} ms, without cleaning {:.1} ms; longest {:.1} ms; slowed down for {:.1} ms, waited {:.1} ms in all; median {:.1} and {:.1} ms",
        ms(tail.0),
        ms(tail.1),
        ms(longest),
        ms(with.status.counters.throttled_ns),
        ms(with.status.counters.waited_ns),
        ms(with.percentile_ns(0.5)),
        ms(without.percentile_ns(0.5)),
    );
    assert!(tail.0 <= 3 * tail.1, "{tail:?}");
    assert!(longest <= SECOND_NS, "{longest} ns");
}

/// Checks that files in one piece are moved like by any greedy cleaner.
#[test]
fn moving_whole_files_costs_no_more_where_files_lie_in_one_piece() {
    let large = Load { file_blocks: 64, settling: 5, measured: 5, cleaner: "files", ..load() };
    let came = run(large);
    println!("files of a quarter zone, moved as a whole: {:.3}", came.amplification);
    assert!(came.amplification < 2.0, "{:.3}", came.amplification);
}

/// Results of changing files block by block.
#[derive(Debug)]
struct Changed {
    /// Blocks written to the drive per block of a file.
    amplification: f64,
    /// Number of pieces of all files, and the time to read all of them sequentially.
    pieces: u64,
    read_ns: u64,
    /// Longest time of a change.
    longest_ns: u64,
    files_moved: u64,
}

const CHANGED_FILES: u64 = 120;
const CHANGED_BLOCKS: u64 = 128;

/// Changes random blocks of files that are larger than the cache, so that each block is written by itself. Afterwards
/// nothing is written, and zones are emptied by command.
fn change(cleaner: &'static str, turns: u64) -> Changed {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let task = async move {
        let bounds = Bounds { cache_bytes: 64 << 10, ..Bounds::default() };
        let (fs, drive) = fresh(&own, (128, 256), cleaner, bounds).await;
        let (mut inodes, mut words) = (Vec::new(), Vec::new());
        for number in 0..CHANGED_FILES {
            let name = format!("f{number}");
            let inode = fs.make_node(ROOT, name.as_bytes(), REGULAR | 0o644, 0, Caller::default()).await.unwrap().inode;
            let bytes = number.to_le_bytes().repeat(BLOCK_BYTES / 8 * CHANGED_BLOCKS as usize);
            fs.write(inode, 0, &bytes).await.unwrap();
            fs.fsync(inode).await.unwrap();
            inodes.push(inode);
            words.push(vec![number; CHANGED_BLOCKS as usize]);
        }
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        let (before, mut longest_ns) = (drive.traffic().blocks_written, 0);
        for turn in 0..turns {
            let (file, at) = ((random.next_u64() % CHANGED_FILES) as usize, random.next_u64() % CHANGED_BLOCKS);
            let (word, began_ns) = (1_000_000 + turn, own.now_ns());
            fs.open(inodes[file]).unwrap();
            fs.write(inodes[file], at * BLOCK_BYTES as u64, &word.to_le_bytes().repeat(BLOCK_BYTES / 8)).await.unwrap();
            fs.close(inodes[file]).await.unwrap();
            words[file][at as usize] = word;
            longest_ns = longest_ns.max(own.now_ns() - began_ns);
        }
        fs.sync().await.unwrap();
        let amplification = (drive.traffic().blocks_written - before) as f64 / turns as f64;
        // Nothing is written now, so there is time to move fragmented files.
        fs.clean(60).await.unwrap();
        fs.sync().await.unwrap();
        let pieces = inodes.iter().map(|inode| fs.extents(*inode).unwrap().len() as u64).sum();
        let began_ns = own.now_ns();
        for (inode, words) in inodes.iter().zip(&words) {
            let bytes = fs.read(*inode, 0, 1 << 30).await.unwrap();
            let expected: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes().repeat(BLOCK_BYTES / 8)).collect();
            assert!(bytes == expected, "file {inode} has other bytes");
        }
        let files_moved = fs.status().counters.files_moved;
        Changed { amplification, pieces, read_ns: own.now_ns() - began_ns, longest_ns, files_moved }
    };
    let changed = executor.run(task).unwrap();
    executor.shut_down();
    changed
}

#[test]
fn files_that_are_moved_as_a_whole_are_read_in_fewer_pieces() {
    let turns = if is_long() { 60_000 } else { 20_000 };
    let (bands, files) = (change("greedy", turns), change("files", turns));
    for (name, changed) in [("band by band", &bands), ("as a whole", &files)] {
        println!(
            "{name}: {:.3} blocks written for each, {} pieces of {CHANGED_FILES} files, read in {:.1} s, longest change {:.1} ms, {} files moved",
            changed.amplification,
            changed.pieces,
            changed.read_ns as f64 / 1e9,
            changed.longest_ns as f64 / 1e6,
            changed.files_moved
        );
    }
    assert_eq!(bands.files_moved, 0);
    assert!(files.files_moved > 0);
    assert!(files.pieces * 2 < bands.pieces && files.read_ns < bands.read_ns, "{files:?}, {bands:?}");
    // While writers are throttled, files in so many pieces are not moved: no more is written than with moves zone by
    // zone.
    assert!(files.amplification <= 1.05 * bands.amplification, "{files:?}, {bands:?}");
    assert!(files.longest_ns <= SECOND_NS, "{files:?}");
}

/// Checks that emptying a zone with many pieces of a file that has many more does not fill the log, which a checkpoint
/// needs. A record lists all pieces of its file: one record for each of 600 of 1,200 pieces would be 11 MB, in a log of
/// 3 MB.
#[test]
fn a_file_of_many_pieces_does_not_fill_the_log() {
    const BLOCKS: u64 = 1200;
    for cleaner in ["greedy", "files"] {
        let executor = Executor::in_virtual_time();
        let own = executor.clone();
        let task = async move {
            let bounds = Bounds { cache_bytes: 64 << 10, ..Bounds::default() };
            let (fs, _) = fresh_with(&own, 3_000, (12, 1024), cleaner, bounds).await;
            let inode = fs.make_node(ROOT, b"f", REGULAR | 0o644, 0, Caller::default()).await.unwrap().inode;
            fs.open(inode).unwrap();
            let mut words = vec![0; BLOCKS as usize];
            // All blocks in an order without neighbours in succession; then every third of them again.
            let order = (0..BLOCKS).map(|turn| turn * 7 % BLOCKS);
            for (turn, at) in order.clone().chain(order.step_by(3)).enumerate() {
                words[at as usize] = turn as u64 + 1;
                let bytes = words[at as usize].to_le_bytes().repeat(BLOCK_BYTES / 8);
                fs.write(inode, at * BLOCK_BYTES as u64, &bytes).await.unwrap();
                fs.fsync(inode).await.unwrap();
            }
            let pieces = fs.extents(inode).unwrap().len() as u64;
            assert!(pieces > BLOCKS / 2, "{cleaner}: {pieces} pieces");
            assert!(fs.clean(12).await.unwrap() > 0, "{cleaner}: something was worth it");
            fs.sync().await.unwrap();
            assert!(fs.extents(inode).unwrap().len() as u64 <= pieces);
            let bytes = fs.read(inode, 0, 1 << 30).await.unwrap();
            let expected: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes().repeat(BLOCK_BYTES / 8)).collect();
            assert!(bytes == expected, "{cleaner}: the file has other bytes");
        };
        executor.run(task).unwrap();
        executor.shut_down();
    }
}
