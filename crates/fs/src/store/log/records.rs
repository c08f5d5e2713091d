//! Records behind data: when a unit of them is written, and where (the units themselves are in [`crate::format::record`]).
//!
//! What records are to tell of an append waits in memory until a unit of its group is full, until a row has a place
//! that would be zeros, until the group ends, or until somebody asks for what waits
//! ([`super::Store::lease_for_records`]: every few seconds, and at the end). A unit goes behind the data of an append,
//! in the same command.
//!
//! ```text
//!   waiting ─► in the unit of a later append of the group     told
//!          └─► the group takes no more                        unrecorded: the data are moved, with records of their own
//! ```
//!
//! Invariants:
//! 1. All that is told of one append is in one unit: so an append has at most about a thousand blocks, and its records
//!    lie no farther than [`REACH`] behind it.
//! 2. Appends of a group are planned when what is told of those before is known, and are over in the order in which they were planned;
//!    if one fails, so do all behind it.
//! 3. Behind an append a group is at its end, or has room for a unit and for an append of one block: what would be too little
//!    is filled up with zeros.

use std::collections::{BTreeMap, VecDeque};

use crate::format::change::Inode;
use crate::format::record::{DirectoryRecord, Filling, Piece, UNIT_BYTES, bytes_of};
use crate::store::{Run, Told};

/// Blocks behind an append within which its records lie, when they are written at all: two appends, and what fills up rows.
pub const REACH: u64 = 2200;
/// A unit with less room than this takes no more.
const ROOM_MIN: usize = 128;

/// Where an append goes that was planned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Blocks of data.
    pub blocks: u64,
    /// Blocks of records behind them, and zeros that end the group.
    pub record_blocks: u64,
    /// Blocks of the group that are taken by both, whole rows.
    pub total: u64,
    /// What waits is written behind the data, and a new unit is begun for this append.
    seals_before: bool,
    /// What is told of this append is written with it as well.
    seals_after: bool,
    /// Whether the unit tells of directories.
    has_directories: bool,
}

impl Plan {
    /// Units that it writes.
    pub fn units(&self) -> u64 {
        u64::from(self.seals_before) + u64::from(self.seals_after)
    }
}

/// What is told of the appends of a group.
#[derive(Default, Debug)]
pub struct GroupRecords {
    filling: Filling,
    /// The data that are told of in `filling` alone.
    waiting: Vec<Run>,
    /// The directories that units of the group told of.
    directories: BTreeMap<Inode, DirectoryRecord>,
    /// The appends that are under way, in order.
    planned: VecDeque<(Plan, Told)>,
}

impl GroupRecords {
    /// Whether something waits to be written.
    pub fn is_waiting(&self) -> bool {
        self.filling.bytes() > 0
    }

    /// Whether an append is under way.
    pub fn is_under_way(&self) -> bool {
        !self.planned.is_empty()
    }

    /// How an append of up to `want` blocks goes to a group with `room` blocks left, in rows of `row`. Nothing where there is
    /// too little room.
    pub fn plan(&self, (room, row): (u64, u64), want: u64, told: &Told) -> Option<Plan> {
        let directories = self.unknown(told).map(DirectoryRecord::bytes).sum();
        let with = (directories > 0).then(|| self.plan_with((room, row), want, (&told.pieces, directories)));
        // Where their directories are too many for a unit, files are told of without them.
        with.flatten().or_else(|| self.plan_with((room, row), want, (&told.pieces, 0)))
    }

    /// The directories of `told` of which the group has not told yet, or not as they are now.
    fn unknown<'a>(&'a self, told: &'a Told) -> impl Iterator<Item = &'a DirectoryRecord> {
        let is_known = |it: &DirectoryRecord| self.directories.get(&it.inode).is_some_and(|had| had.says_the_same(it));
        told.directories.iter().filter(move |directory| !is_known(directory))
    }

    fn plan_with(&self, (room, row): (u64, u64), want: u64, told: (&[Piece], usize)) -> Option<Plan> {
        let mut want = want.min(room);
        while want > 0 {
            let (blocks, seals_before, bytes) = self.choose(want, row, told);
            if blocks == 0 {
                return None;
            }
            // One that is full, or was cut short, takes no more; and a place that would be zeros costs nothing.
            let is_full = bytes + ROOM_MIN > UNIT_BYTES || (blocks < want && bytes > 0);
            let before = u64::from(seals_before);
            let mut seals_after = bytes > 0 && (is_full || !(blocks + before).is_multiple_of(row));
            let taken = |seals_after: bool| (blocks + before + u64::from(seals_after)).next_multiple_of(row);
            let least = (2 * row).max(3u64.next_multiple_of(row));
            seals_after |= bytes > 0 && room < taken(false) + least;
            let total = taken(seals_after);
            if total <= room {
                return Some(plan_of(blocks, (room, row), total, (seals_before, seals_after), told.1 > 0));
            }
            want = blocks - 1;
        }
        None
    }

    /// How many of `want` blocks are told of in one unit, whether it is a new one, and how full it is then.
    fn choose(&self, want: u64, row: u64, (pieces, directories): (&[Piece], usize)) -> (u64, bool, usize) {
        if pieces.is_empty() {
            return (want, false, self.filling.bytes());
        }
        let waiting = self.filling.bytes();
        let bytes = |blocks: u64| directories + bytes_of(&first_of(pieces, blocks));
        let whole = bytes(want);
        if waiting + whole <= UNIT_BYTES {
            return (want, false, waiting + whole);
        }
        let is_new = waiting > 0 && (whole <= UNIT_BYTES || waiting > UNIT_BYTES / 2);
        let space = UNIT_BYTES - if is_new { 0 } else { waiting };
        let mut blocks = fitting(pieces, want, space.saturating_sub(directories));
        if blocks < want && blocks > row {
            blocks -= (blocks + 1 + u64::from(is_new)) % row;
        }
        let used = if is_new { 0 } else { waiting } + bytes(blocks);
        (blocks, is_new, used)
    }

    /// The append of `plan` is under way, behind those that are: nobody else writes to the group.
    pub fn begin(&mut self, plan: Plan, told: &Told) {
        let directories = if plan.has_directories { self.unknown(told).cloned().collect() } else { Vec::new() };
        let told = Told { pieces: first_of(&told.pieces, plan.blocks), directories };
        self.planned.push_back((plan, told));
    }

    /// The bytes that go behind the data of the append that was planned last, which lie from block `place` of the group on.
    pub fn bytes(&mut self, place: u64, sums: &[u32], (file_system, sequence): (u128, u64)) -> Vec<u8> {
        let Some((plan, told)) = self.planned.back() else { return Vec::new() };
        let (mut bytes, behind) = (Vec::new(), place + plan.blocks);
        if plan.seals_before {
            bytes.extend(self.filling.seal(file_system, sequence, behind as u32));
        }
        told.directories.iter().for_each(|directory| self.filling.add_directory(directory));
        self.filling.add(&told.pieces, place as u32, sums);
        if plan.seals_after {
            bytes.extend(self.filling.seal(file_system, sequence, (behind + u64::from(plan.seals_before)) as u32));
        }
        bytes.resize(plan.record_blocks as usize * crate::device::BLOCK_BYTES, 0);
        let known = told.directories.iter().map(|directory| (directory.inode, directory.clone()));
        self.directories.extend(known);
        bytes
    }

    /// The append at `run` went well, the first of those that were under way.
    pub fn settle(&mut self, run: Run) {
        let Some((plan, told)) = self.planned.pop_front() else { return };
        assert_eq!(plan.blocks, run.blocks, "appends are over in order: invariant 2");
        if plan.seals_before {
            self.waiting.clear();
        }
        self.waiting.extend(Some(run).filter(|run| run.blocks > 0 && !told.pieces.is_empty()));
        if plan.seals_after {
            self.waiting.clear();
        }
    }

    /// Gives the group up, since it takes no more, or nobody knows what of it was written. Returns the data that have
    /// no records.
    pub fn give_up(self) -> Vec<Run> {
        self.waiting
    }

    /// How what waits is written by itself to a group with `room` blocks left, in rows of `row`; `None` if nothing
    /// waits and the group has room for an append.
    pub fn plan_alone(&self, (room, row): (u64, u64)) -> Option<Plan> {
        let is_at_end = room < 2 * row;
        let total = if self.is_waiting() { row } else { 0 };
        (total > 0 || is_at_end).then(|| plan_of(0, (room, row), total.min(room), (self.is_waiting(), false), false))
    }
}

/// A plan in which `total` blocks are taken; what would be left of the group and too little for an append is taken too.
fn plan_of(
    blocks: u64,
    (room, row): (u64, u64),
    total: u64,
    (seals_before, seals_after): (bool, bool),
    has_directories: bool,
) -> Plan {
    let mut plan = Plan { blocks, record_blocks: 0, total, seals_before, seals_after, has_directories };
    plan.record_blocks = plan.units();
    if room < total + 2 * row {
        plan.total = room;
        plan.record_blocks = room - blocks;
    }
    plan
}

/// How many of the first `want` blocks of `pieces` can be told of in so many bytes.
fn fitting(pieces: &[Piece], want: u64, bytes: usize) -> u64 {
    let (mut low, mut high) = (0, want);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if bytes_of(&first_of(pieces, middle)) <= bytes {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// The first `blocks` of `pieces`.
pub fn first_of(pieces: &[Piece], blocks: u64) -> Vec<Piece> {
    let (mut taken, mut left) = (Vec::new(), blocks);
    for piece in pieces {
        if left == 0 {
            break;
        }
        let blocks = left.min(u64::from(piece.blocks)) as u32;
        taken.push(Piece { file: piece.file.clone(), at: piece.at, blocks });
        left -= u64::from(blocks);
    }
    taken
}

/// Blocks of records, at most, that copying `live` blocks takes besides them, where names are told as long as that allows.
pub fn blocks_for_copies(live: u64) -> u64 {
    live / 32 + 2
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use rand_core::{RngCore, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;
    use crate::device::BLOCK_BYTES;
    use crate::format::record::{FileRecord, Unit};

    fn file(inode: Inode, name: usize) -> Rc<FileRecord> {
        Rc::new(FileRecord {
            inode,
            generation: 0,
            sequence: u64::from(inode),
            parent: 1,
            name: vec![b'n'; name].into(),
            mode: 0o100_600,
            uid: 0,
            gid: 0,
            size: 1,
            modified_ns: 0,
            is_whole: true,
            ranges: Some(vec![(0, 1)]),
        })
    }

    fn directory(inode: Inode) -> DirectoryRecord {
        DirectoryRecord { inode, sequence: 1, parent: 1, name: vec![b'd'; 200].into(), mode: 0o040_700, uid: 0, gid: 0 }
    }

    /// Appends of all kinds, until the group is at its end: every block of data is told of by a unit within reach, in the place
    /// that the unit says, and the group ends exactly.
    #[test]
    fn every_block_of_a_group_is_told_of_and_the_group_ends_exactly() {
        for row in [1, 2, 3, 4, 7, 15] {
            for seed in 0..60 {
                fill_a_group(row, seed);
            }
        }
    }

    fn fill_a_group(row: u64, seed: u64) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut below = |end: u64| random.next_u64() % end;
        let capacity = row * [7, 63, 900, 4000][below(4) as usize];
        let (largest, longest) = ([3, 40, 3000][below(3) as usize], [10, 255][below(2) as usize]);
        let (mut records, mut written, mut data, mut told_of) = (GroupRecords::default(), 0, Vec::new(), Vec::new());
        let mut read = |bytes: &[u8], place: u64| {
            for (number, block) in bytes.chunks(BLOCK_BYTES).enumerate() {
                if let Some(unit) = Unit::decode(block, 5, 6, (place + number as u64) as u32) {
                    told_of.extend(unit.runs.iter().map(|run| (run.place, run.sums.clone(), place + number as u64)));
                }
            }
        };
        while written < capacity {
            let room = capacity - written;
            assert!(room >= 2 * row, "{room} blocks of {capacity} are left in rows of {row}");
            let pieces: Vec<Piece> = (0..1 + below(3))
                .map(|_| Piece {
                    file: file(below(1000) as u32, below(longest) as usize),
                    at: below(100) as u32,
                    blocks: 1 + below(largest) as u32,
                })
                .collect();
            let directories = (0..below(4)).map(|_| directory(below(9) as u32)).collect();
            let want = pieces.iter().map(|piece| u64::from(piece.blocks)).sum();
            let told = Told { pieces, directories };
            let plan = match below(5) {
                0 => records.plan_alone((room, row)).filter(|plan| plan.total > 0),
                _ => Some(records.plan((room, row), want, &told).expect("there is room for a block")),
            };
            let Some(plan) = plan else { continue };
            assert!(plan.blocks <= want && plan.total <= room && plan.total.is_multiple_of(row));
            let sums: Vec<u32> = (0..plan.blocks as u32).map(|number| (written as u32 + number) ^ 0x5555).collect();
            let (run, plan_total) = (Run { start: written, blocks: plan.blocks }, plan.total);
            let expected = plan.record_blocks;
            assert!(plan.blocks + expected <= plan.total);
            records.begin(plan, &told);
            let bytes = records.bytes(written, &sums, (5, 6));
            assert_eq!(bytes.len() as u64, expected * BLOCK_BYTES as u64);
            read(&bytes, written + run.blocks);
            records.settle(run);
            data.push(run);
            written += plan_total;
        }
        assert!(!records.is_waiting() && records.give_up().is_empty(), "at the end of a group nothing waits");
        let mut found = std::collections::BTreeMap::new();
        for (place, sums, unit) in told_of {
            assert!(unit <= u64::from(place) + REACH, "a unit at {unit} tells of block {place}");
            for (number, sum) in sums.into_iter().enumerate() {
                assert_eq!(found.insert(place + number as u32, sum), None, "block {place} is told of twice");
            }
        }
        let all = data.iter().flat_map(|run| run.start as u32..run.end() as u32);
        let expected: std::collections::BTreeMap<u32, u32> = all.map(|block| (block, block ^ 0x5555)).collect();
        assert_eq!(found, expected, "row {row}, seed {seed}");
    }

    #[test]
    fn small_appends_share_a_unit() {
        let (mut records, mut units, mut written) = (GroupRecords::default(), 0, 0);
        for inode in 0..1000 {
            let told =
                Told { pieces: vec![Piece { file: file(inode, 16), at: 0, blocks: 1 }], directories: Vec::new() };
            let plan = records.plan((100_000 - written, 1), 1, &told).unwrap();
            units += plan.units();
            let run = Run { start: written, blocks: 1 };
            written += plan.total;
            records.begin(plan, &told);
            records.bytes(run.start, &[7], (5, 6));
            records.settle(run);
        }
        // 68 bytes for a file of one block with a name of 16, 17 for the run, in 4,052, of which 128 stay free: 47 of them.
        assert_eq!(units, 1000 / 47);
    }
}
