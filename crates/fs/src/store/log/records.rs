//! Records behind data: when and where a unit of records is written. The units themselves are defined in
//! [`crate::format::record`].
//!
//! The records of an append wait in memory until one of four events. A unit of the group is full, a row has a block
//! that would otherwise be padding, the group ends, or [`super::Records::allocate_for_records`] is called (every few
//! seconds, and at unmount). The unit follows the data of an append, and one command writes both.
//!
//! ```text
//!   waiting ─► in the unit of a later append of the group     recorded
//!          └─► the group takes no more                        unrecorded: the data are moved, with records of their own
//! ```
//!
//! Invariants:
//! 1. All records of one append are in one unit. So an append has at most about a thousand blocks, and its records lie
//!    at most [`REACH`] blocks behind it.
//! 2. An append to a group is planned only after the records of the earlier appends are known. Appends complete in the
//!    order in which they were planned; if one fails, so do all later ones.
//! 3. After each append the group is at its end, or has space for a unit and an append of one block. Smaller remainders
//!    are filled with zeros.

use std::collections::{BTreeMap, VecDeque};

use crate::block_run::BlockRun;
use crate::format::change::Inode;
use crate::format::record::{DirectoryRecord, Filling, Piece, UNIT_BYTES, bytes_of};
use crate::store::RecordContext;

/// Largest distance within a stripe group, in data blocks of 4 KiB, from a data block to the later block with the
/// record that describes it. It allows for two appends and the padding of rows.
pub const REACH: u64 = 2200;
/// A unit with fewer free bytes than this is sealed.
const ROOM_MIN: usize = 128;

/// The layout of a planned append.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    /// Number of blocks of 4 KiB with data in this append to a stripe group; 0 for an append of records alone.
    pub blocks: u64,
    /// Number of blocks of 4 KiB that the append writes after its data: records, and zeros if the append fills the
    /// stripe group to its end.
    pub record_blocks: u64,
    /// Number of blocks of 4 KiB of the stripe group that data and records take, rounded up to whole rows. A row has
    /// one block of each data zone of the group.
    pub total: u64,
    /// Whether the waiting records are sealed into a unit behind the data, and the records of this append begin a new
    /// unit.
    seals_before: bool,
    /// Whether the unit with the records of this append is written with the append.
    seals_after: bool,
    /// Whether the unit describes directories.
    has_directories: bool,
}

impl Plan {
    /// Returns the number of units that the append writes.
    pub(super) fn units(&self) -> u64 {
        u64::from(self.seals_before) + u64::from(self.seals_after)
    }
}

/// Pending and known records of the appends to a group.
#[derive(Default, Debug)]
pub(super) struct GroupRecords {
    filling: Filling,
    /// Runs of data whose records are only in `filling`.
    waiting: Vec<BlockRun>,
    /// Directories for which the group has records.
    directories: BTreeMap<Inode, DirectoryRecord>,
    /// Appends in flight, in order.
    planned: VecDeque<(Plan, RecordContext)>,
}

impl GroupRecords {
    /// Returns whether any records wait to be written.
    pub(super) fn is_waiting(&self) -> bool {
        self.filling.bytes() > 0
    }

    /// Returns whether an append is in flight.
    pub(super) fn is_under_way(&self) -> bool {
        !self.planned.is_empty()
    }

    /// Returns the layout of an append of up to `want` blocks to a group with `room` blocks left, in rows of `row`
    /// blocks. Returns `None` if too little space is left.
    pub(super) fn plan(&self, (room, row): (u64, u64), want: u64, context: &RecordContext) -> Option<Plan> {
        let directories = self.unknown(context).map(DirectoryRecord::bytes).sum();
        let with = (directories > 0).then(|| self.plan_with((room, row), want, (&context.pieces, directories)));
        // If the directories do not fit into a unit, the files are recorded without them.
        with.flatten().or_else(|| self.plan_with((room, row), want, (&context.pieces, 0)))
    }

    /// Returns the directories of `context` for which the group has no record, or an outdated one.
    fn unknown<'a>(&'a self, context: &'a RecordContext) -> impl Iterator<Item = &'a DirectoryRecord> {
        let is_known = |it: &DirectoryRecord| self.directories.get(&it.inode).is_some_and(|had| had.says_the_same(it));
        context.directories.iter().filter(move |directory| !is_known(directory))
    }

    fn plan_with(&self, (room, row): (u64, u64), want: u64, recorded: (&[Piece], usize)) -> Option<Plan> {
        let mut want = want.min(room);
        while want > 0 {
            let (blocks, seals_before, bytes) = self.choose(want, row, recorded);
            if blocks == 0 {
                return None;
            }
            // Seal a unit that is full, or that has no space for all blocks of this append. A unit in a block of
            // padding costs nothing.
            let is_full = bytes + ROOM_MIN > UNIT_BYTES || (blocks < want && bytes > 0);
            let before = u64::from(seals_before);
            let mut seals_after = bytes > 0 && (is_full || !(blocks + before).is_multiple_of(row));
            let taken = |seals_after: bool| (blocks + before + u64::from(seals_after)).next_multiple_of(row);
            let least = (2 * row).max(3u64.next_multiple_of(row));
            seals_after |= bytes > 0 && room < taken(false) + least;
            let total = taken(seals_after);
            if total <= room {
                return Some(plan_of(blocks, (room, row), total, (seals_before, seals_after), recorded.1 > 0));
            }
            want = blocks - 1;
        }
        None
    }

    /// Returns how many of `want` blocks fit into one unit, whether that unit is a new one, and how many bytes of the
    /// unit are then used.
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

    /// Marks the append of `plan` as in flight, after earlier ones. No other task writes to the group.
    pub(super) fn begin(&mut self, plan: Plan, context: &RecordContext) {
        let directories = if plan.has_directories { self.unknown(context).cloned().collect() } else { Vec::new() };
        let context = RecordContext { pieces: first_of(&context.pieces, plan.blocks), directories };
        self.planned.push_back((plan, context));
    }

    /// Returns the bytes behind the data of the append that was planned last. The data begin at block `place` of the
    /// group.
    pub(super) fn bytes(&mut self, place: u64, sums: &[u32], (file_system, sequence): (u128, u64)) -> Vec<u8> {
        let Some((plan, context)) = self.planned.back() else { return Vec::new() };
        let (mut bytes, behind) = (Vec::new(), place + plan.blocks);
        if plan.seals_before {
            bytes.extend(self.filling.seal(file_system, sequence, behind as u32));
        }
        context.directories.iter().for_each(|directory| self.filling.add_directory(directory));
        self.filling.add(&context.pieces, place as u32, sums);
        if plan.seals_after {
            bytes.extend(self.filling.seal(file_system, sequence, (behind + u64::from(plan.seals_before)) as u32));
        }
        bytes.resize(plan.record_blocks as usize * crate::device::BLOCK_BYTES, 0);
        let known = context.directories.iter().map(|directory| (directory.inode, directory.clone()));
        self.directories.extend(known);
        bytes
    }

    /// Completes the oldest append in flight, which wrote `run`.
    pub(super) fn commit(&mut self, run: BlockRun) {
        let Some((plan, context)) = self.planned.pop_front() else { return };
        assert_eq!(plan.blocks, run.blocks, "appends are over in order: invariant 2");
        if plan.seals_before {
            self.waiting.clear();
        }
        self.waiting.extend(Some(run).filter(|run| run.blocks > 0 && !context.pieces.is_empty()));
        if plan.seals_after {
            self.waiting.clear();
        }
    }

    /// Ends the records of a group that takes no more writes, or whose written extent is unknown. Returns the data
    /// without records.
    pub(super) fn give_up(self) -> Vec<BlockRun> {
        self.waiting
    }

    /// Returns the layout of an append of the waiting records alone, to a group with `room` blocks left in rows of
    /// `row` blocks. Returns `None` if none wait and the group has space for an append of data.
    pub(super) fn plan_alone(&self, (room, row): (u64, u64)) -> Option<Plan> {
        let is_at_end = room < 2 * row;
        let total = if self.is_waiting() { row } else { 0 };
        (total > 0 || is_at_end).then(|| plan_of(0, (room, row), total.min(room), (self.is_waiting(), false), false))
    }
}

/// Returns a plan that takes `total` blocks, and also the rest of the group if that is too small for another append.
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

/// Returns how many of the first `want` blocks of `pieces` can be recorded in `bytes` bytes.
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

/// Returns the first `blocks` blocks of `pieces`.
pub(super) fn first_of(pieces: &[Piece], blocks: u64) -> Vec<Piece> {
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

/// Returns the maximum number of blocks of records for copying `live` blocks. The longest names are left out to stay
/// below it.
pub(super) fn blocks_for_copies(live: u64) -> u64 {
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

    /// Appends of all kinds, until the group is at its end. Every block of data must have a record within reach that
    /// gives its place, and the group must end exactly.
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
            let context = RecordContext { pieces, directories };
            let plan = match below(5) {
                0 => records.plan_alone((room, row)).filter(|plan| plan.total > 0),
                _ => Some(records.plan((room, row), want, &context).expect("there is room for a block")),
            };
            let Some(plan) = plan else { continue };
            assert!(plan.blocks <= want && plan.total <= room && plan.total.is_multiple_of(row));
            let sums: Vec<u32> = (0..plan.blocks as u32).map(|number| (written as u32 + number) ^ 0x5555).collect();
            let (run, plan_total) = (BlockRun { start: written, blocks: plan.blocks }, plan.total);
            let expected = plan.record_blocks;
            assert!(plan.blocks + expected <= plan.total);
            records.begin(plan, &context);
            let bytes = records.bytes(written, &sums, (5, 6));
            assert_eq!(bytes.len() as u64, expected * BLOCK_BYTES as u64);
            read(&bytes, written + run.blocks);
            records.commit(run);
            data.push(run);
            written += plan_total;
        }
        assert!(!records.is_waiting() && records.give_up().is_empty(), "at the end of a group nothing waits");
        let mut found = std::collections::BTreeMap::new();
        for (place, sums, unit) in told_of {
            assert!(unit <= u64::from(place) + REACH, "a unit at {unit} has a record of block {place}");
            for (number, sum) in sums.into_iter().enumerate() {
                assert_eq!(found.insert(place + number as u32, sum), None, "block {place} has two records");
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
            let context = RecordContext {
                pieces: vec![Piece { file: file(inode, 16), at: 0, blocks: 1 }],
                directories: Vec::new(),
            };
            let plan = records.plan((100_000 - written, 1), 1, &context).unwrap();
            units += plan.units();
            let run = BlockRun { start: written, blocks: 1 };
            written += plan.total;
            records.begin(plan, &context);
            records.bytes(run.start, &[7], (5, 6));
            records.commit(run);
        }
        // A file of one block with a name of 16 takes 68 bytes, its run 17. A unit has 4,052, of which 128 stay free:
        // 47 files.
        assert_eq!(units, 1000 / 47);
    }
}
