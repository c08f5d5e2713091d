//! Flashcache in write-back mode: its policy, and the replay of a block trace with it.
//!
//! Flashcache is not in today's kernels. Its policy is taken from its documentation: blocks of 4 KiB; sets of 512 blocks, by
//! the address, so that 2 MiB that are adjacent share a set; all reads and writes go into the cache; replacement in order
//! of arrival (FIFO) among clean blocks; a write of metadata when a block becomes dirty or clean; cleaning of a set that has
//! more than 20 % of dirty blocks, the oldest first. A request that finds no clean block in its set goes to the disks alone.
//!
//! The replay runs in a guest, on the flash and on md RAID 5: a number of workers takes the requests of the trace in order,
//! each when its request before has ended, and some cleaners work beside them.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard};

use imbrex::Failure;
use serde::{Deserialize, Serialize};

/// Size of a block of the cache, and of a block of its metadata, in bytes.
pub(super) const BLOCK_BYTES: u64 = 4096;
/// Number of blocks in a set.
const SET_BLOCKS: usize = 512;
/// Share of a set, in percent, that may be dirty before it is cleaned.
const DIRTY_PERCENT: usize = 20;
/// Number of entries in a block of metadata: 24 bytes each.
const ENTRIES: u64 = BLOCK_BYTES / 24;
/// Number of requests in progress: the load has 50 threads.
const WORKERS: usize = 50;
/// Number of cleanings in progress.
const CLEANERS: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Invalid,
    Clean,
    Dirty,
    /// Dirty, and being written to the disks.
    Cleaning,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    block: u64,
    state: State,
}

#[derive(Clone, Debug)]
struct Set {
    slots: Vec<Slot>,
    /// The slots from which the search for the oldest clean and the oldest dirty block begins.
    next: usize,
    next_dirty: usize,
}

/// Contents of the cache. A slot is a number from 0 on.
struct Policy {
    sets: Vec<Set>,
}

/// Where a block is read or written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Access {
    ReadFlash(u64),
    /// The block is read from the disks and written to the slot, if there is one.
    ReadDisk(Option<u64>),
    WriteFlash {
        slot: u64,
        becomes_dirty: bool,
    },
    WriteDisk,
}

impl Policy {
    /// Returns an empty cache in `bytes` of flash, metadata included.
    fn new(bytes: u64) -> Policy {
        let blocks = bytes / BLOCK_BYTES;
        let metadata = 1 + blocks.div_ceil(ENTRIES);
        let slots = vec![Slot { block: 0, state: State::Invalid }; SET_BLOCKS];
        let set = Set { slots, next: 0, next_dirty: 0 };
        Policy { sets: vec![set; (blocks - metadata) as usize / SET_BLOCKS] }
    }

    fn slots(&self) -> u64 {
        (self.sets.len() * SET_BLOCKS) as u64
    }

    /// Returns the number of blocks that the cache holds.
    fn used(&self) -> u64 {
        let slots = self.sets.iter().flat_map(|set| &set.slots);
        slots.filter(|slot| slot.state != State::Invalid).count() as u64
    }

    fn set_of(&self, block: u64) -> usize {
        (block as usize / SET_BLOCKS) % self.sets.len()
    }

    fn read(&mut self, block: u64) -> Access {
        let index = self.set_of(block);
        let number = |slot: usize| (index * SET_BLOCKS + slot) as u64;
        let set = &mut self.sets[index];
        match set.find(block) {
            Some(slot) => Access::ReadFlash(number(slot)),
            None => Access::ReadDisk(set.take(block, State::Clean).map(number)),
        }
    }

    fn write(&mut self, block: u64) -> Access {
        let index = self.set_of(block);
        let number = |slot: usize| (index * SET_BLOCKS + slot) as u64;
        let set = &mut self.sets[index];
        match set.find(block) {
            Some(slot) => {
                let becomes_dirty = set.slots[slot].state == State::Clean;
                set.slots[slot].state = State::Dirty;
                Access::WriteFlash { slot: number(slot), becomes_dirty }
            }
            None => match set.take(block, State::Dirty) {
                Some(slot) => Access::WriteFlash { slot: number(slot), becomes_dirty: true },
                None => Access::WriteDisk,
            },
        }
    }

    /// Returns the blocks that the set of `block` has to clean, as (block, slot), oldest first, and marks them.
    fn begin_cleaning(&mut self, block: u64) -> Vec<(u64, u64)> {
        let index = self.set_of(block);
        let set = &mut self.sets[index];
        let dirty = set.slots.iter().filter(|slot| slot.state == State::Dirty).count();
        let excess = dirty.saturating_sub(SET_BLOCKS * DIRTY_PERCENT / 100);
        let mut found = Vec::with_capacity(excess);
        while found.len() < excess {
            let slot = set.next_dirty;
            set.next_dirty = (slot + 1) % SET_BLOCKS;
            if set.slots[slot].state == State::Dirty {
                set.slots[slot].state = State::Cleaning;
                found.push((set.slots[slot].block, (index * SET_BLOCKS + slot) as u64));
            }
        }
        found
    }

    /// Notes that a slot was written to the disks. It stays dirty if it was written meanwhile.
    fn cleaned(&mut self, slot: u64) {
        let slot = slot as usize;
        let state = &mut self.sets[slot / SET_BLOCKS].slots[slot % SET_BLOCKS].state;
        if *state == State::Cleaning {
            *state = State::Clean;
        }
    }
}

impl Set {
    fn find(&self, block: u64) -> Option<usize> {
        self.slots.iter().position(|slot| slot.state != State::Invalid && slot.block == block)
    }

    /// Gives the block an invalid slot, or the oldest clean one, if there is any.
    fn take(&mut self, block: u64, state: State) -> Option<usize> {
        let is_free = |slot: &Slot| slot.state == State::Invalid;
        let mut in_order = (0..SET_BLOCKS).map(|step| (self.next + step) % SET_BLOCKS);
        let mut oldest_clean = || in_order.find(|slot| self.slots[*slot].state == State::Clean);
        let slot = self.slots.iter().position(is_free).or_else(&mut oldest_clean)?;
        self.next = (slot + 1) % SET_BLOCKS;
        self.slots[slot] = Slot { block, state };
        Some(slot)
    }
}

/// Request of a trace, in blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Request {
    is_write: bool,
    first: u64,
    blocks: u64,
}

/// Returns the line of a trace for a request: `r` or `w`, first byte, number of bytes.
pub(super) fn line(is_write: bool, offset: u64, bytes: u64) -> String {
    format!("{} {offset} {bytes}\n", if is_write { 'w' } else { 'r' })
}

fn parse(line: &str) -> Option<Request> {
    let [word, offset, bytes] = line.split(' ').collect::<Vec<_>>().try_into().ok()?;
    let (offset, bytes): (u64, u64) = (offset.parse().ok()?, bytes.parse().ok()?);
    let first = offset / BLOCK_BYTES;
    Some(Request { is_write: word == "w", first, blocks: (offset + bytes).div_ceil(BLOCK_BYTES) - first })
}

/// Results of a replay.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Replayed {
    /// Begin and end of each phase by the guest's monotonic clock, in nanoseconds.
    pub phases: Vec<(u64, u64)>,
    /// Number of blocks that the cache holds at the end.
    pub used_blocks: u64,
    /// Numbers of blocks that were read: found in the cache, and all of them.
    pub found: u64,
    pub read: u64,
    /// Numbers of blocks that were written: to the cache, and all of them.
    pub cached: u64,
    pub written: u64,
}

/// Contents and progress of a replay, which its threads share.
struct Shared {
    policy: Policy,
    next: usize,
    working: usize,
    cleaning: VecDeque<Vec<(u64, u64)>>,
    replayed: Replayed,
    failure: Option<io::Error>,
}

struct Replay {
    flash: File,
    disks: File,
    /// First byte of the data on the flash.
    data: u64,
    shared: Mutex<Shared>,
    changed: Condvar,
}

/// Replays a trace on the flash and on the disks. `trace` has a file for each phase.
pub(super) fn replay(trace: &[&str], flash_bytes: u64, flash: &str, disks: &str) -> Result<String, Failure> {
    let open = |path: &str| {
        let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
        OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).map_err(Failure::failed)
    };
    let policy = Policy::new(flash_bytes);
    let data = (1 + policy.slots().div_ceil(ENTRIES)) * BLOCK_BYTES;
    let replayed = Replayed { phases: Vec::new(), used_blocks: 0, found: 0, read: 0, cached: 0, written: 0 };
    let shared = Shared { policy, next: 0, working: 0, cleaning: VecDeque::new(), replayed, failure: None };
    let (shared, changed) = (Mutex::new(shared), Condvar::new());
    let replay = Replay { flash: open(flash)?, disks: open(disks)?, data, shared, changed };
    for path in trace {
        let text = std::fs::read_to_string(Path::new(path)).map_err(Failure::failed)?;
        let requests: Option<Vec<Request>> = text.lines().map(parse).collect();
        let requests = requests.ok_or_else(|| Failure::failed(format!("{path} is no trace")))?;
        let begin = super::ext4::monotonic_ns();
        replay.phase(&requests).map_err(Failure::failed)?;
        let phase = (begin, super::ext4::monotonic_ns());
        replay.lock().replayed.phases.push(phase);
    }
    let mut shared = replay.lock();
    shared.replayed.used_blocks = shared.policy.used();
    serde_json::to_string(&shared.replayed).map_err(Failure::failed)
}

impl Replay {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().expect("no thread of a replay panics")
    }

    /// Replays a phase. It ends when all its data are on the flash or on the disks.
    fn phase(&self, requests: &[Request]) -> io::Result<()> {
        let mut shared = self.lock();
        (shared.next, shared.working) = (0, WORKERS);
        drop(shared);
        std::thread::scope(|scope| {
            for _ in 0..WORKERS {
                scope.spawn(|| self.work(requests));
            }
            for _ in 0..CLEANERS {
                scope.spawn(|| self.clean());
            }
        });
        self.lock().failure.take().map_or(Ok(()), Err)?;
        self.flash.sync_all()?;
        self.disks.sync_all()
    }

    fn work(&self, requests: &[Request]) {
        loop {
            let mut shared = self.lock();
            let Some(request) = requests.get(shared.next).filter(|_| shared.failure.is_none()) else {
                shared.working -= 1;
                self.changed.notify_all();
                return;
            };
            shared.next += 1;
            let steps = shared.steps(request);
            drop(shared);
            // This wakes one cleaner, which takes the oldest entry of the queue.
            self.changed.notify_one();
            self.note(self.run(&steps));
        }
    }

    fn clean(&self) {
        loop {
            let mut shared = self.lock();
            let blocks = loop {
                if shared.working == 0 || shared.failure.is_some() {
                    return;
                }
                match shared.cleaning.pop_front() {
                    Some(blocks) => break blocks,
                    None => shared = self.changed.wait(shared).expect("no thread of a replay panics"),
                }
            };
            drop(shared);
            let slots = || blocks.iter().map(|(_, slot)| *slot);
            let steps = Steps {
                flash_reads: slots().collect(),
                disk_writes: blocks.iter().map(|(block, _)| *block).collect(),
                metadata: slots().map(|slot| slot / ENTRIES).collect(),
                ..Steps::default()
            };
            self.note(self.run(&steps));
            let mut shared = self.lock();
            slots().for_each(|slot| shared.policy.cleaned(slot));
        }
    }

    fn note(&self, result: io::Result<()>) {
        if let Err(error) = result {
            self.lock().failure.get_or_insert(error);
        }
    }

    /// Does reads first, then writes, then metadata.
    fn run(&self, steps: &Steps) -> io::Result<()> {
        let longest = [&steps.flash_reads, &steps.disk_reads, &steps.flash_writes, &steps.disk_writes];
        let longest = longest.iter().flat_map(|blocks| runs(blocks)).map(|(_, length)| length).max().unwrap_or(1);
        let bytes = longest.max(1) * BLOCK_BYTES;
        let mut buffer = vec![1; (bytes + BLOCK_BYTES) as usize];
        let begin = buffer.as_ptr().align_offset(BLOCK_BYTES as usize);
        let part = |length: u64| begin..begin + (length * BLOCK_BYTES) as usize;
        for (first, length) in runs(&steps.flash_reads) {
            self.flash.read_exact_at(&mut buffer[part(length)], self.data + first * BLOCK_BYTES)?;
        }
        for (first, length) in runs(&steps.disk_reads) {
            self.disks.read_exact_at(&mut buffer[part(length)], first * BLOCK_BYTES)?;
        }
        for (first, length) in runs(&steps.flash_writes) {
            self.flash.write_all_at(&buffer[part(length)], self.data + first * BLOCK_BYTES)?;
        }
        for (first, length) in runs(&steps.disk_writes) {
            self.disks.write_all_at(&buffer[part(length)], first * BLOCK_BYTES)?;
        }
        for block in &steps.metadata {
            self.flash.write_all_at(&buffer[part(1)], (1 + block) * BLOCK_BYTES)?;
        }
        Ok(())
    }
}

/// Reads and writes of a request or a cleaning: slots of the flash, blocks of the disks, blocks of metadata.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Steps {
    flash_reads: BTreeSet<u64>,
    disk_reads: BTreeSet<u64>,
    flash_writes: BTreeSet<u64>,
    disk_writes: BTreeSet<u64>,
    metadata: BTreeSet<u64>,
}

impl Shared {
    /// Returns the steps of a request, and queues the blocks of its sets that are to be cleaned.
    fn steps(&mut self, request: &Request) -> Steps {
        let mut steps = Steps::default();
        for block in request.first..request.first + request.blocks {
            let access = if request.is_write { self.policy.write(block) } else { self.policy.read(block) };
            match access {
                Access::ReadFlash(slot) => _ = steps.flash_reads.insert(slot),
                Access::ReadDisk(slot) => {
                    steps.disk_reads.insert(block);
                    steps.flash_writes.extend(slot);
                }
                Access::WriteFlash { slot, becomes_dirty } => {
                    steps.flash_writes.insert(slot);
                    steps.metadata.extend(becomes_dirty.then_some(slot / ENTRIES));
                }
                Access::WriteDisk => _ = steps.disk_writes.insert(block),
            }
            // A set is done with its blocks.
            if request.is_write && ((block + 1) % SET_BLOCKS as u64 == 0 || block + 1 == request.first + request.blocks)
            {
                let blocks = self.policy.begin_cleaning(block);
                if !blocks.is_empty() {
                    self.cleaning.push_back(blocks);
                }
            }
        }
        if request.is_write {
            self.replayed.written += request.blocks;
            self.replayed.cached += steps.flash_writes.len() as u64;
        } else {
            self.replayed.read += request.blocks;
            self.replayed.found += steps.flash_reads.len() as u64;
        }
        steps
    }
}

/// Returns the runs of adjacent numbers, as (first, length).
fn runs(numbers: &BTreeSet<u64>) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((first, length)) if *first + *length == number => *length += 1,
            _ => runs.push((number, 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    //! Goal: the policy is that of Flashcache's documentation. Method: requests written here, on a cache of two sets.

    use super::*;

    /// Returns a cache of two sets: 1,024 slots, 8 blocks of metadata and what does not fill a set.
    fn two_sets() -> Policy {
        let policy = Policy::new(1100 * BLOCK_BYTES);
        assert_eq!(policy.slots(), 1024);
        policy
    }

    #[test]
    fn reads_and_writes_go_into_the_cache_and_are_found_there() {
        let mut policy = two_sets();
        assert_eq!(policy.read(7), Access::ReadDisk(Some(0)));
        assert_eq!(policy.read(7), Access::ReadFlash(0));
        assert_eq!(policy.write(7), Access::WriteFlash { slot: 0, becomes_dirty: true });
        assert_eq!(policy.write(7), Access::WriteFlash { slot: 0, becomes_dirty: false });
        // 2 MiB share a set, and the next 2 MiB have the other one.
        assert_eq!(policy.write(511), Access::WriteFlash { slot: 1, becomes_dirty: true });
        assert_eq!(policy.write(512), Access::WriteFlash { slot: 512, becomes_dirty: true });
        assert_eq!(policy.used(), 3);
    }

    #[test]
    fn the_oldest_clean_block_is_replaced_and_dirty_ones_are_not() {
        let mut policy = two_sets();
        assert_eq!(policy.write(0), Access::WriteFlash { slot: 0, becomes_dirty: true });
        (1..512).for_each(|block| _ = policy.read(block));
        // The set is full; its third part of 2 MiB shares it.
        assert_eq!(policy.read(1024), Access::ReadDisk(Some(1)));
        assert_eq!(policy.read(1025), Access::ReadDisk(Some(2)));
        assert_eq!(policy.read(1), Access::ReadDisk(Some(3)));
        assert_eq!(policy.read(0), Access::ReadFlash(0));
    }

    #[test]
    fn a_set_with_too_many_dirty_blocks_cleans_the_oldest() {
        let mut policy = two_sets();
        (0..102).for_each(|block| _ = policy.write(block));
        assert_eq!(policy.begin_cleaning(0), [], "a fifth of 512");
        (102..105).for_each(|block| _ = policy.write(block));
        assert_eq!(policy.begin_cleaning(0), [(0, 0), (1, 1), (2, 2)]);
        assert_eq!(policy.begin_cleaning(0), [], "they are being cleaned");
        // One is written meanwhile, and stays dirty.
        assert_eq!(policy.write(1), Access::WriteFlash { slot: 1, becomes_dirty: false });
        (0..3).for_each(|slot| policy.cleaned(slot));
        assert_eq!(policy.write(0), Access::WriteFlash { slot: 0, becomes_dirty: true });
        assert_eq!(policy.write(1), Access::WriteFlash { slot: 1, becomes_dirty: false });
    }

    #[test]
    fn a_set_full_of_dirty_blocks_sends_writes_to_the_disks() {
        let mut policy = two_sets();
        (0..512).for_each(|block| _ = policy.write(block));
        assert_eq!(policy.write(1024), Access::WriteDisk);
        assert_eq!(policy.read(1024), Access::ReadDisk(None));
    }

    #[test]
    fn a_request_becomes_runs_and_its_metadata_are_written_once() {
        let replayed = Replayed { phases: Vec::new(), used_blocks: 0, found: 0, read: 0, cached: 0, written: 0 };
        let mut shared =
            Shared { policy: two_sets(), next: 0, working: 0, cleaning: VecDeque::new(), replayed, failure: None };
        let request = parse(line(true, 0, 110 * BLOCK_BYTES - 1).trim_end()).expect("a request");
        assert_eq!(request, Request { is_write: true, first: 0, blocks: 110 });
        let steps = shared.steps(&request);
        assert_eq!((runs(&steps.flash_writes), runs(&steps.metadata)), (vec![(0, 110)], vec![(0, 1)]));
        assert_eq!(shared.cleaning.iter().map(Vec::len).collect::<Vec<_>>(), [8]);
        assert_eq!((shared.replayed.cached, shared.replayed.written), (110, 110));
        assert_eq!(parse("w 5"), None);
    }
}
