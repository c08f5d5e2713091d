//! High-performance zone, or hot zone (Jin 2014 §II.D): blocks in which files have a second copy of their contents, or
//! their only one. The zone is a part of the metadata area, on flash or in conventional zones, or parts of the drives
//! of an array. This module keeps the allocation of the zone and the heat of files, and decides which files are
//! promoted. The core moves the bytes ([`crate::core`]).
//!
//! ```text
//!   out ─► wanted ─► (copied, durable) ─► in ─► out        changed, colder than another that wants its room, or damaged
//! ```
//!
//! If the metadata are on one device, a file in the zone keeps its blocks in the store, so the loss of the zone loses
//! no file. If they are mirrored, the zone is mirrored too, and a file in the zone takes no space in the store, unless
//! the user wants a copy there ([`Keeping`]). On the drives of an array the zone holds only copies, each whole on one
//! drive ([`FreeExtentsOfParts`]). The loss of such a drive then loses only these copies.
//!
//! Invariants:
//! 1. A block of the zone belongs to at most one file. After the file is removed the block is free only once it is
//!    returned ([`HotZone::take`], [`HotZone::free`]).
//! 2. A file is evicted only for another one that is hotter per block and was read more than once. A file with
//!    [`Hint::Always`] counts as hotter than any without.
//! 3. Files that wait for promotion, files with known heat, and files whose hint changed are at most [`Limits::files`]
//!    each.

mod free_extents;
mod free_extents_of_parts;
mod heat;
mod split;

use std::collections::BTreeSet;

pub use self::free_extents::FreeExtents;
pub use self::free_extents_of_parts::FreeExtentsOfParts;
pub use self::heat::{ACCESS, ACCESS_UNITS, Heat};
pub use self::split::split;
use crate::block_run::BlockRun;
use crate::format::change::{Extent, Inode};

/// Divisor of the largest part: a file takes at most a quarter of it, unless the file is small.
const SHARE: u64 = 4;
/// Divisor of a part: an eviction frees in addition a thirty-second of it.
const PUSHED_SHARE: u64 = 32;
/// Accesses from which on a file may evict others, counted with decay.
const ACCESSES_TO_PUSH: u64 = 2;

/// User's hint for a file, or for the directory that holds the file.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Hint {
    /// No hint: heat decides.
    #[default]
    None,
    /// The file is promoted whenever there is room, and evicted last.
    Always,
    /// The file is never promoted.
    Never,
}

/// Name of the extended attribute that holds a [`Hint`].
pub const HINT_ATTRIBUTE: &[u8] = b"user.imbrex.hot";

/// Name of the extended attribute of a directory that gives hints to its files by their extensions, such as `db=always
/// tmp=never`. The attribute of the root directory applies to all files without another hint.
pub const EXTENSIONS_ATTRIBUTE: &[u8] = b"user.imbrex.hot.extensions";

/// Number that stands for all files in the queue of changed hints. No file has number 0.
pub const EVERY_FILE: Inode = 0;

impl Hint {
    /// Returns the hint in a value of the attribute; an unknown value is no hint.
    pub fn parse(value: &[u8]) -> Hint {
        match value {
            b"always" => Hint::Always,
            b"never" => Hint::Never,
            _ => Hint::None,
        }
    }

    /// Returns the hint for a file name in a list of extensions. The first entry with the file's extension counts; case
    /// is ignored.
    pub fn of_name(list: &[u8], name: &[u8]) -> Hint {
        let Some(dot) = name.iter().rposition(|byte| *byte == b'.').filter(|dot| *dot > 0) else { return Hint::None };
        let words = list.split(|byte| byte.is_ascii_whitespace() || *byte == b',');
        let said = words.filter_map(|word| {
            let at = word.iter().position(|byte| *byte == b'=')?;
            let extension = word[..at].strip_prefix(b".").unwrap_or(&word[..at]);
            extension.eq_ignore_ascii_case(&name[dot + 1..]).then(|| Hint::parse(&word[at + 1..]))
        });
        said.into_iter().next().unwrap_or_default()
    }
}

/// Whether a file in the zone is also stored in the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keeping {
    /// The file is stored in both: the zone has a copy.
    Copies,
    /// The file is stored only in the zone, as long as the zone is on two up-to-date devices; else in both.
    Alone,
}

impl Keeping {
    /// Name of the option of `mkfs` and mount that selects a variant.
    pub const OPTION: &str = "hot_files";

    /// Returns the variant for a value of the option; without a value it is [`Keeping::Copies`].
    ///
    /// # Errors
    /// The value is unknown.
    pub fn named(value: Option<&str>) -> Result<Keeping, String> {
        match value {
            None | Some("copies") => Ok(Keeping::Copies),
            Some("alone") => Ok(Keeping::Alone),
            Some(other) => Err(format!("hot_files is {other}: expected copies or alone")),
        }
    }
}

/// Counts of events in the zone since the mount.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Number of pieces of files that were read from the zone.
    pub hits: u64,
    /// Number of pieces of files that were read from the store.
    pub misses: u64,
    /// Number of times that a file came into the zone: copied or moved there, or written there as its only contents.
    pub came_in: u64,
    /// Number of times that a file left the zone, for any reason.
    pub went_out: u64,
    /// Blocks of the zone that did not match their checksum on some device and were read from another device or the
    /// store.
    pub damaged: u64,
}

/// Status of the zone.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct HotStatus {
    /// Number of blocks of 4 KiB in the zone; 0 if there is no zone.
    pub blocks: u64,
    /// Number of blocks of the zone that hold files or are about to be freed.
    pub used: u64,
    /// Number of files in the zone.
    pub files: u64,
    /// Number of files in the zone that are stored nowhere else.
    pub alone_files: u64,
    /// Number of blocks of the files that are stored only in the zone.
    pub alone_blocks: u64,
    /// Counts of events since the mount.
    pub counters: Counters,
}

/// Limits of the zone, except its size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Largest number of files with known heat, of files that wait for promotion, and of files whose hint changed.
    pub files: usize,
    /// Nanoseconds in which heat halves.
    pub half_ns: u64,
    /// Largest number of blocks of a small file: it is promoted as soon as it is written, if there is room.
    pub small_blocks: u64,
}

/// File that is in the zone, or may be promoted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Inode of the file.
    pub inode: Inode,
    /// Blocks of the file.
    pub blocks: u64,
    /// User's hint for the file.
    pub hint: Hint,
}

/// Decision about a file that may be promoted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The file fits into free blocks.
    Fits,
    /// The file fits into one part once the files `colder` are evicted.
    Push {
        /// Number of the part.
        part: usize,
        /// Files to evict from the part.
        colder: Vec<Inode>,
    },
    /// The file is not promoted.
    Stays,
}

/// State of the hot zone.
pub struct HotZone {
    limits: Limits,
    rooms: FreeExtentsOfParts,
    heat: Heat,
    wanted: BTreeSet<Inode>,
    suspects: BTreeSet<Inode>,
    rehinted: BTreeSet<Inode>,
    copying: BTreeSet<Inode>,
    /// Whether all files in the zone must be judged again.
    is_reviewed: bool,
    /// Blocks of files that are stored only in the zone.
    pub alone_blocks: u64,
    /// Counts of events since the mount.
    pub counters: Counters,
}

impl HotZone {
    /// Returns a zone of parts with these numbers of blocks, all of them free.
    pub fn new(parts: &[u64], limits: Limits) -> HotZone {
        let heat = Heat::new(limits.files, limits.half_ns);
        HotZone {
            limits,
            rooms: FreeExtentsOfParts::new(parts),
            heat,
            wanted: BTreeSet::new(),
            suspects: BTreeSet::new(),
            rehinted: BTreeSet::new(),
            copying: BTreeSet::new(),
            is_reviewed: false,
            alone_blocks: 0,
            counters: Counters::default(),
        }
    }

    /// Returns the number of blocks of the zone.
    pub fn blocks(&self) -> u64 {
        self.rooms.blocks()
    }

    /// Returns the number of parts of the zone: one in the metadata area, or one for each drive of an array that gives
    /// blocks to the zone; 0 if there is no zone.
    pub fn parts(&self) -> usize {
        self.rooms.count()
    }

    /// Returns the number, counted from 0, of the part of the zone that holds block `block`.
    pub fn part_of(&self, block: u64) -> usize {
        self.rooms.part_of(block)
    }

    /// Sets whether files are promoted into part `number`. Closing a part also cancels all copies in progress.
    pub fn set_open(&mut self, number: usize, is_open: bool) {
        self.rooms.set_open(number, is_open);
        if !is_open {
            self.copying.clear();
        }
    }

    /// Returns whether files can be promoted into some part.
    pub fn is_open(&self) -> bool {
        self.rooms.largest() > 0
    }

    /// Returns the number of blocks that hold files or are about to be freed.
    pub fn used(&self) -> u64 {
        self.rooms.used(None)
    }

    /// Returns the number of blocks in part `number` that hold files or are about to be freed.
    pub fn used_in(&self, number: usize) -> u64 {
        self.rooms.used(Some(number))
    }

    /// Takes the blocks of an extent that the metadata place in the zone, during the mount.
    ///
    /// # Errors
    /// The blocks are not in the zone, or are taken; the error says why.
    pub fn claim(&mut self, extent: &Extent) -> Result<(), String> {
        self.rooms.claim(BlockRun { start: extent.start, blocks: u64::from(extent.blocks) })
    }

    /// Takes `blocks` of one part, in as few runs as possible; `None` if no open part has so many free.
    pub fn take(&mut self, blocks: u64) -> Option<Vec<BlockRun>> {
        self.rooms.take(blocks)
    }

    /// Frees a run.
    pub fn free(&mut self, run: BlockRun) {
        self.rooms.free(run);
    }

    /// Adds a read of the blocks `first` to before `end` of a file to its heat.
    pub fn touch(&mut self, inode: Inode, (first, end): (u64, u64), now_ns: u64) {
        self.heat.touch(inode, (first, end), now_ns);
    }

    /// Returns the hottest `count` files with their heat, for a checkpoint.
    pub fn hottest(&self, count: usize, now_ns: u64) -> Vec<(Inode, u32)> {
        self.heat.hottest(count.min(self.limits.files), now_ns)
    }

    /// Sets the heat of a file to the value that a checkpoint stored.
    pub fn warm(&mut self, inode: Inode, units: u32, now_ns: u64) {
        self.heat.warm(inode, units, now_ns);
    }

    /// Removes a file from the heat table and the promotion queue.
    pub fn forget(&mut self, inode: Inode) {
        self.heat.forget(inode);
        self.wanted.remove(&inode);
    }

    /// Queues a file for promotion. Returns whether it was added: it was not queued, and the queue was not full.
    pub fn want(&mut self, inode: Inode) -> bool {
        self.wanted.len() < self.limits.files.max(1) && self.wanted.insert(inode)
    }

    /// Takes up to `count` files from the promotion queue.
    pub fn take_wanted(&mut self, count: usize) -> Vec<Inode> {
        let taken: Vec<Inode> = self.wanted.iter().take(count).copied().collect();
        taken.iter().for_each(|inode| _ = self.wanted.remove(inode));
        taken
    }

    /// Marks a file whose copy was found damaged: the copy is to be dropped, and the file promoted anew.
    pub fn suspect(&mut self, inode: Inode) {
        self.suspects.insert(inode);
    }

    /// Takes the files whose copies were found damaged, and queues them for promotion.
    pub fn take_suspects(&mut self) -> BTreeSet<Inode> {
        let suspects = std::mem::take(&mut self.suspects);
        suspects.iter().for_each(|inode| _ = self.want(*inode));
        suspects
    }

    /// Queues a file or directory whose hint has changed, to be judged again. Returns whether it is in the queue: a
    /// full queue takes only [`EVERY_FILE`].
    pub fn rehint(&mut self, inode: Inode) -> bool {
        let has_room = inode == EVERY_FILE || self.rehinted.len() < self.limits.files.max(1);
        if has_room {
            self.rehinted.insert(inode);
        }
        has_room || self.rehinted.contains(&inode)
    }

    /// Takes one file from the queue of changed hints.
    pub fn take_rehinted(&mut self) -> Option<Inode> {
        self.rehinted.pop_first()
    }

    /// Marks all files in the zone to be judged again.
    pub fn ask_review(&mut self) {
        self.is_reviewed = true;
    }

    /// Returns whether a review of all files was requested, and clears the request.
    pub fn take_review(&mut self) -> bool {
        std::mem::take(&mut self.is_reviewed)
    }

    /// Records that a copy of a file is started.
    pub fn begin_copy(&mut self, inode: Inode) {
        self.copying.insert(inode);
    }

    /// Cancels the copy of a file in progress, because the file changes or the copying failed.
    pub fn give_up_copy(&mut self, inode: Inode) {
        self.copying.remove(&inode);
    }

    /// Ends the copy of a file. Returns whether it is valid: it was not cancelled since it was started.
    pub fn end_copy(&mut self, inode: Inode) -> bool {
        self.copying.remove(&inode)
    }

    /// Returns the heat of a file per block, or an extreme value if a hint decides.
    fn score(&self, of: &Candidate, now_ns: u64) -> u64 {
        match of.hint {
            Hint::Always => u64::MAX,
            Hint::Never => 0,
            Hint::None => self.heat.of(of.inode, now_ns) / of.blocks.max(1),
        }
    }

    /// Returns whether a file may be in the zone at all, by its size and hint.
    pub fn may_hold(&self, of: &Candidate) -> bool {
        let largest = self.rooms.largest();
        let most = (largest / SHARE).max(self.limits.small_blocks).min(largest);
        of.blocks > 0 && of.blocks <= most && of.hint != Hint::Never
    }

    /// Decides whether `of` is promoted. `leaving` is, by part, the number of blocks of evicted files that will be free
    /// soon and are not promised to another file. `inside` lists the files in the zone, each with its part, and is
    /// called only if some of them might have to be evicted. More of the coldest files are evicted than necessary, up
    /// to a small share of the part, so that evictions are decided seldom.
    pub fn judge(
        &self,
        of: &Candidate,
        leaving: &[u64],
        inside: impl FnOnce() -> Vec<(usize, Candidate)>,
        now_ns: u64,
    ) -> Verdict {
        if !self.may_hold(of) {
            return Verdict::Stays;
        }
        let is_pushing = of.hint == Hint::Always || self.heat.of(of.inode, now_ns) >= ACCESSES_TO_PUSH * ACCESS;
        if self.rooms.open().any(|(.., free)| of.blocks <= free) {
            let comes = is_pushing || of.blocks <= self.limits.small_blocks;
            return if comes { Verdict::Fits } else { Verdict::Stays };
        }
        if !is_pushing {
            return Verdict::Stays;
        }
        if let Some((part, ..)) = self.rooms.open().find(|(part, ..)| of.blocks <= leaving[*part]) {
            return Verdict::Push { part, colder: Vec::new() };
        }
        let score = self.score(of, now_ns);
        let inside = inside();
        let scored = inside.iter().map(|(part, other)| (*part, self.score(other, now_ns), other));
        let mut colder: Vec<(u64, Inode, u64, usize)> = scored
            .filter(|(_, other, _)| *other < score)
            .map(|(part, score, it)| (score, it.inode, it.blocks, part))
            .collect();
        colder.sort_unstable();
        let ways = self.rooms.open().filter_map(|(part, blocks, free)| {
            let of_part =
                colder.iter().filter(|other| other.3 == part).map(|&(score, inode, blocks, _)| (score, inode, blocks));
            let (hottest, gone) = coldest(of_part, free + leaving[part], (of.blocks, blocks / PUSHED_SHARE))?;
            Some((hottest, part, gone))
        });
        match ways.min() {
            Some((_, part, colder)) => Verdict::Push { part, colder },
            None => Verdict::Stays,
        }
    }
}

/// Returns the files to evict, the first ones of `colder` (score, inode, blocks), and the highest score among them.
/// `room` blocks are free already; the eviction frees enough for `needed` blocks and, if possible, for `more` besides.
/// `None` if all files are not enough.
fn coldest(
    colder: impl Iterator<Item = (u64, Inode, u64)>,
    mut room: u64,
    (needed, more): (u64, u64),
) -> Option<(u64, Vec<Inode>)> {
    let (mut hottest, mut gone) = (0, Vec::new());
    for (score, inode, blocks) in colder {
        if room >= needed + more {
            break;
        }
        hottest = score;
        gone.push(inode);
        room += blocks;
    }
    (room >= needed).then_some((hottest, gone))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF_NS: u64 = 1000;

    fn zone(blocks: u64) -> HotZone {
        HotZone::new(&[blocks], Limits { files: 10, half_ns: HALF_NS, small_blocks: 2 })
    }

    fn file(inode: Inode, blocks: u64) -> Candidate {
        Candidate { inode, blocks, hint: Hint::None }
    }

    fn push(colder: &[Inode]) -> Verdict {
        Verdict::Push { part: 0, colder: colder.to_vec() }
    }

    #[test]
    fn an_extension_is_what_comes_behind_the_last_dot() {
        let list = b"db=always, .tmp=never jpg=perhaps\nTMP=always";
        let said = |name: &[u8]| Hint::of_name(list, name);
        assert_eq!([said(b"a.db"), said(b"a.tmp.DB"), said(b"b.Tmp")], [Hint::Always, Hint::Always, Hint::Never]);
        for name in [&b"db"[..], b".db", b"a.", b"a.d", b"a.jpg", b"a.db "] {
            assert_eq!(said(name), Hint::None, "{name:?}");
        }
        assert_eq!(Hint::of_name(b"", b"a.db"), Hint::None);
    }

    #[test]
    fn small_files_come_in_while_there_is_room_and_others_when_they_were_read_twice() {
        let mut zone = zone(20);
        assert_eq!(zone.judge(&file(1, 2), &[0], Vec::new, 0), Verdict::Fits);
        assert_eq!(zone.judge(&file(1, 3), &[0], Vec::new, 0), Verdict::Stays, "larger, and never read");
        zone.touch(1, (0, 1), 0);
        assert_eq!(zone.judge(&file(1, 3), &[0], Vec::new, 0), Verdict::Stays, "read once");
        zone.touch(1, (0, 1), 0);
        assert_eq!(zone.judge(&file(1, 3), &[0], Vec::new, 0), Verdict::Fits);
        assert_eq!(zone.judge(&file(1, 6), &[0], Vec::new, 0), Verdict::Stays, "more than a fourth of the zone");
        assert_eq!(zone.judge(&Candidate { hint: Hint::Always, ..file(2, 5) }, &[0], Vec::new, 0), Verdict::Fits);
        assert_eq!(zone.judge(&Candidate { hint: Hint::Never, ..file(2, 1) }, &[0], Vec::new, 0), Verdict::Stays);
    }

    #[test]
    fn the_coldest_go_first_and_only_for_what_is_hotter() {
        let mut zone = zone(4);
        assert!(zone.take(4).is_some());
        let inside = [file(1, 1), file(2, 2), Candidate { hint: Hint::Always, ..file(3, 1) }].map(|it| (0, it));
        (0..3).for_each(|_| zone.touch(1, (0, 1), 0));
        (0..4).for_each(|_| zone.touch(2, (0, 1), 0));
        (0..2).for_each(|_| zone.touch(9, (0, 1), 0));
        assert_eq!(
            zone.judge(&file(9, 1), &[0], || inside.to_vec(), 0),
            Verdict::Stays,
            "two reads a block, as file 2 has"
        );
        zone.touch(9, (0, 1), 0);
        assert_eq!(zone.judge(&file(9, 1), &[0], || inside.to_vec(), 0), push(&[2]), "three reads");
        assert_eq!(zone.judge(&file(9, 2), &[0], || inside.to_vec(), 0), Verdict::Stays, "one and a half a block");
        let always = Candidate { hint: Hint::Always, ..file(8, 2) };
        assert_eq!(zone.judge(&always, &[0], || inside.to_vec(), 0), push(&[2]));
        // A file that was read long ago is colder than one that was read just now.
        let late_ns = 3 * HALF_NS;
        (0..2).for_each(|_| zone.touch(7, (0, 1), late_ns));
        assert_eq!(zone.judge(&file(7, 2), &[0], || inside.to_vec(), late_ns), push(&[2]));
    }

    /// Checks that files of one drive are evicted, and of the drive whose evicted files are colder.
    #[test]
    fn who_is_pushed_out_makes_room_on_one_drive() {
        let mut zone = HotZone::new(&[2, 2], Limits { files: 10, half_ns: HALF_NS, small_blocks: 2 });
        assert!(zone.take(2).is_some() && zone.take(2).is_some());
        let inside = [(0, file(1, 1)), (0, file(2, 1)), (1, file(3, 1)), (1, file(4, 1))];
        for (inode, reads) in [(1, 1), (2, 5), (3, 3), (4, 2), (9, 8)] {
            (0..reads).for_each(|_| zone.touch(inode, (0, 1), 0));
        }
        let judge = |zone: &HotZone, of, leaving: [u64; 2]| zone.judge(&of, &leaving, || inside.to_vec(), 0);
        assert_eq!(judge(&zone, file(9, 1), [0, 0]), Verdict::Push { part: 0, colder: vec![1] }, "the coldest of all");
        assert_eq!(
            judge(&zone, file(9, 2), [0, 0]),
            Verdict::Push { part: 1, colder: vec![4, 3] },
            "four reads a block"
        );
        assert_eq!(judge(&zone, file(9, 2), [1, 0]), Verdict::Push { part: 0, colder: vec![1] });
        assert_eq!(judge(&zone, file(9, 2), [0, 2]), Verdict::Push { part: 1, colder: Vec::new() });
        zone.set_open(0, false);
        assert_eq!(judge(&zone, file(9, 1), [0, 0]), Verdict::Push { part: 1, colder: vec![4] });
        zone.set_open(1, false);
        assert_eq!(judge(&zone, file(9, 1), [0, 0]), Verdict::Stays, "nobody comes in");
    }

    /// Checks that promotions before the evicted blocks are free do not evict more files than they need.
    #[test]
    fn what_is_leaving_makes_room_too() {
        let mut zone = zone(128);
        assert!(zone.take(128).is_some());
        let inside: Vec<(usize, Candidate)> = (100..164).map(|inode| (0, file(inode, 2))).collect();
        let always = Candidate { hint: Hint::Always, ..file(1, 6) };
        // For six blocks three files are evicted, and two more for a thirty-second of the zone.
        let coldest = |count: u32| push(&Vec::from_iter(100..100 + count));
        assert_eq!(zone.judge(&always, &[0], || inside.clone(), 0), coldest(5));
        assert_eq!(zone.judge(&always, &[4], || inside.clone(), 0), coldest(3), "four blocks are free soon");
        assert_eq!(zone.judge(&always, &[6], || panic!("nobody has to go"), 0), push(&[]));
    }

    #[test]
    fn a_zone_of_one_block_takes_a_file_of_one() {
        let mut zone = zone(1);
        assert_eq!(zone.judge(&file(1, 1), &[0], Vec::new, 0), Verdict::Fits);
        assert_eq!(zone.judge(&file(1, 2), &[0], Vec::new, 0), Verdict::Stays);
        let taken = zone.take(1).expect("it is empty");
        assert_eq!((zone.used(), zone.take(1)), (1, None));
        zone.free(taken[0]);
        assert_eq!(zone.used(), 0);
    }

    #[test]
    fn no_more_wait_than_may() {
        let mut zone = HotZone::new(&[4], Limits { files: 2, half_ns: 1, small_blocks: 1 });
        assert!(zone.want(1) && !zone.want(1) && zone.want(2) && !zone.want(3));
        assert_eq!((zone.take_wanted(1), zone.take_wanted(9)), (vec![1], vec![2]));
        assert!(zone.rehint(1) && zone.rehint(2) && zone.rehint(1) && !zone.rehint(3));
        assert_eq!([zone.take_rehinted(), zone.take_rehinted(), zone.take_rehinted()], [Some(1), Some(2), None]);
    }
}
