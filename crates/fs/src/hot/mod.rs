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

/// User's hint whether a file belongs in the hot zone, the fast storage for files that are read often. It is given to a
/// file, to a directory for the files directly in it, or to a file name extension.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Hint {
    /// No hint: the heat of the file, which counts its recent reads, and its size decide.
    #[default]
    None,
    /// The file is promoted even if it is not read, if its size allows: at most a quarter of the largest open part of
    /// the zone, or a small file. It evicts files without this hint if necessary. No other file evicts it.
    Always,
    /// The file is never promoted, and is evicted if it is in the zone.
    Never,
}

/// Name of the extended attribute that holds the [`Hint`] of a file, or that of a directory for the files directly in
/// it. Values are `always` and `never`; any other value means no hint.
pub const HINT_ATTRIBUTE: &[u8] = b"user.imbrex.hot";

/// Name of the extended attribute of a directory that holds hints by file name extension, such as `db=always
/// tmp=never`. It applies to the files directly in the directory. That of the root directory applies to all files
/// without another hint.
pub const EXTENSIONS_ATTRIBUTE: &[u8] = b"user.imbrex.hot.extensions";

/// Number that stands for all files in the queue of files and directories whose hint changed. No file has inode number
/// 0.
pub const EVERY_FILE: Inode = 0;

impl Hint {
    /// Returns the hint for a value of the attribute: `always` or `never`, in lower case. Any other value is
    /// [`Hint::None`].
    pub fn parse(value: &[u8]) -> Hint {
        match value {
            b"always" => Hint::Always,
            b"never" => Hint::Never,
            _ => Hint::None,
        }
    }

    /// Returns the hint for the file name `name` in `list`, entries such as `db=always` separated by white space or
    /// commas. The extension of `name` follows its last dot; the case of extensions is ignored. The first entry with
    /// that extension decides. Returns [`Hint::None`] if there is none, or if `name` has no dot behind its first byte.
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

/// Whether a file in the hot zone is also stored in the store, on the data device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keeping {
    /// The file is stored in both: the blocks in the zone are a copy.
    Copies,
    /// A file that is promoted while at least two copies of the metadata area are up to date is stored only in the
    /// zone, which lies in that area. A file promoted at another time is stored in both until two copies are up to
    /// date. A file that is stored only in the zone stays so if copies are lost later.
    Alone,
}

impl Keeping {
    /// Key of the option of `mkfs` and mount that selects a [`Keeping`]: whether files in the hot zone are also stored
    /// outside of it. Values are `copies` and `alone`.
    pub const OPTION: &str = "hot_files";

    /// Returns the variant for a value of the option: `copies` or `alone`. Without a value it is [`Keeping::Copies`];
    /// `mkfs` stores `alone` by default if the metadata area with the zone is mirrored.
    ///
    /// # Errors
    /// Any other value; the text is a message for the user.
    pub fn named(value: Option<&str>) -> Result<Keeping, String> {
        match value {
            None | Some("copies") => Ok(Keeping::Copies),
            Some("alone") => Ok(Keeping::Alone),
            Some(other) => Err(format!("hot_files is {other}: expected copies or alone")),
        }
    }
}

/// Counts of events in the hot zone since the mount. A piece is a part of one read, of at most
/// [`Bounds::piece_blocks`](crate::core::Bounds::piece_blocks) blocks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Number of pieces of reads of files since the mount that the hot zone held: read from a copy there, or pieces of
    /// a file stored only there, even if the data were in memory. A read counts once for each piece of at most
    /// `Bounds::piece_blocks` blocks.
    pub hits: u64,
    /// Number of pieces of reads of files since the mount for which the hot zone held no usable contents, also if the
    /// data were in memory or in a hole. A read counts once for each piece of at most `Bounds::piece_blocks` blocks. 0
    /// without a hot zone.
    pub misses: u64,
    /// Number of times since the mount that a file came into the hot zone: copied or moved there, or written only
    /// there.
    pub came_in: u64,
    /// Number of times since the mount that a file left the hot zone, for any reason: evicted, changed, removed or
    /// damaged.
    pub went_out: u64,
    /// Number of times since the mount that a read found damage on some device of the hot zone: once for each piece of
    /// a copy, and once for each block of a file stored only in the zone.
    pub damaged: u64,
}

/// Status of the hot zone: numbers of its blocks and files now, and counts of its events since the mount.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct HotStatus {
    /// Number of blocks of 4 KiB in the hot zone, used and free ones; 0 if there is no zone.
    pub blocks: u64,
    /// Number of blocks of 4 KiB of the hot zone that are not free: they hold files, are being written, or are about to
    /// be freed.
    pub used: u64,
    /// Number of files in the hot zone: files with a copy there, and files stored only there.
    pub files: u64,
    /// Number of files that have blocks only in the hot zone, not in the store. Usually these are all stored blocks of
    /// the file.
    pub alone_files: u64,
    /// Number of blocks of 4 KiB in the hot zone that are the only copy of a file's contents, without a block in the
    /// store.
    pub alone_blocks: u64,
    /// Counts since the mount of reads from the hot zone and past it, of files that came and left, and of damage found.
    pub counters: Counters,
}

/// Limits of the hot zone: number of files with known heat, half-life of heat, and size of a small file. The size of
/// the zone is not among them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum number of files with known heat, a count of their recent reads; also of files that wait for promotion,
    /// and of files whose hint changed. Each has this limit. 0 counts as 1.
    pub files: usize,
    /// Half-life of heat, in nanoseconds: the heat of a file, a count of its reads, halves at the end of each such
    /// interval. 0 counts as 1.
    pub half_ns: u64,
    /// Maximum number of blocks of 4 KiB of a small file. A small file is promoted once it is written back or read, if
    /// free blocks suffice. It may take more than a quarter of a part of the zone, unlike other files.
    pub small_blocks: u64,
}

/// File that is in the hot zone, or may be promoted to it, with the properties that decide besides its heat: its size
/// and its hint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Inode number of the file.
    pub inode: Inode,
    /// Number of stored blocks of the file, of 4 KiB; holes are not counted.
    pub blocks: u64,
    /// Hint that applies to the file.
    pub hint: Hint,
}

/// Decision whether a file is promoted to the hot zone, and in place of which files, by [`HotZone::judge`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The file is promoted to free blocks; nothing is evicted.
    Fits,
    /// The file is promoted into one part once the files `colder` are evicted and their blocks are free.
    Push {
        /// Number of the part of the hot zone into which the file goes, counted from 0.
        part: usize,
        /// Files to evict from the part, those with the least heat per block first. Empty if blocks of earlier
        /// evictions suffice once they are free.
        colder: Vec<Inode>,
    },
    /// The file is not promoted.
    Stays,
}

/// State of the hot zone in memory: its free blocks, the heat of files, and the queues of files to be judged. It has no
/// list of the files in the zone.
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
    /// Number of blocks of 4 KiB of files that are stored only in the hot zone. The owner of the [`HotZone`] updates
    /// this number.
    pub alone_blocks: u64,
    /// Counts since the mount of reads from the hot zone and past it, of files that came and left, and of damage found.
    /// The owner of the [`HotZone`] updates them.
    pub counters: Counters,
}

impl HotZone {
    /// Returns a hot zone with one part for each entry of `parts`, the number of its blocks of 4 KiB. All blocks are
    /// free, and all parts are open.
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

    /// Returns the number of blocks of 4 KiB of all parts of the zone, used and free ones.
    pub fn blocks(&self) -> u64 {
        self.rooms.blocks()
    }

    /// Returns the number of parts of the zone: 1 in the metadata area, or one for each drive of an array that gives
    /// blocks to the zone; 0 if there is no zone.
    pub fn parts(&self) -> usize {
        self.rooms.count()
    }

    /// Returns the number, counted from 0, of the part that holds block `block`. Blocks are numbered through all parts.
    /// For a block behind the end of the zone it is the last part; without parts it is 0.
    pub fn part_of(&self, block: u64) -> usize {
        self.rooms.part_of(block)
    }

    /// Sets whether blocks of part `number` may be allocated, so that files are promoted into it. Closing a part also
    /// cancels the copies in progress to all parts.
    ///
    /// # Panics
    /// There is no part `number`.
    pub fn set_open(&mut self, number: usize, is_open: bool) {
        self.rooms.set_open(number, is_open);
        if !is_open {
            self.copying.clear();
        }
    }

    /// Returns whether at least one part with blocks is open, so that files can be promoted.
    pub fn is_open(&self) -> bool {
        self.rooms.largest() > 0
    }

    /// Returns the number of blocks of 4 KiB of the whole zone, closed parts included, that are not free: they hold
    /// files, are being written, or are about to be freed.
    pub fn used(&self) -> u64 {
        self.rooms.used(None)
    }

    /// Returns the number of blocks of 4 KiB in part `number`, counted from 0, that are not free; 0 if there is no such
    /// part.
    pub fn used_in(&self, number: usize) -> u64 {
        self.rooms.used(Some(number))
    }

    /// Marks the blocks of an extent as used, during the mount: the metadata name them as a file's blocks in the zone.
    /// The extent's `start` is a block of the zone.
    ///
    /// # Errors
    /// The extent is empty, its blocks are not all in one part, or one of them is used already. The text is a message
    /// for the user.
    pub fn claim(&mut self, extent: &Extent) -> Result<(), String> {
        self.rooms.claim(BlockRun { start: extent.start, blocks: u64::from(extent.blocks) })
    }

    /// Allocates `blocks` blocks in the open part with the most free blocks: one run if there is one long enough,
    /// otherwise the longest runs first. Returns `None` if no part is open, the part has too few free blocks, or
    /// `blocks` is 0.
    pub fn take(&mut self, blocks: u64) -> Option<Vec<BlockRun>> {
        self.rooms.take(blocks)
    }

    /// Frees a run of blocks that were allocated or claimed.
    ///
    /// # Panics
    /// Blocks of the run are free already, more blocks would be free than its part has, or there is no part.
    pub fn free(&mut self, run: BlockRun) {
        self.rooms.free(run);
    }

    /// Counts a read of the blocks `first` up to, and without, `end` of a file for the heat of the file at time
    /// `now_ns`. A read that continues where the file's last read ended adds no heat. If the heat of more files than
    /// [`Limits::files`] would be known, the colder half of them is forgotten.
    pub fn touch(&mut self, inode: Inode, (first, end): (u64, u64), now_ns: u64) {
        self.heat.touch(inode, (first, end), now_ns);
    }

    /// Returns up to `count` of the hottest files at time `now_ns` with their heat, the hottest first. A counted read
    /// adds 256 units ([`ACCESS_UNITS`]), which decay with time. Files with less than one unit are left out.
    pub fn hottest(&self, count: usize, now_ns: u64) -> Vec<(Inode, u32)> {
        self.heat.hottest(count.min(self.limits.files), now_ns)
    }

    /// Sets the heat of a file at time `now_ns` to `units`, a value of [`HotZone::hottest`] that a checkpoint stored:
    /// 256 for each counted read. Does nothing if the heat of as many files as possible is known already.
    pub fn warm(&mut self, inode: Inode, units: u32, now_ns: u64) {
        self.heat.warm(inode, units, now_ns);
    }

    /// Removes a file from the table of heat and from the queue for promotion, because the file was removed.
    pub fn forget(&mut self, inode: Inode) {
        self.heat.forget(inode);
        self.wanted.remove(&inode);
    }

    /// Queues a file for promotion. Returns whether it was added: false if it was queued already or the queue is full.
    pub fn want(&mut self, inode: Inode) -> bool {
        self.wanted.len() < self.limits.files.max(1) && self.wanted.insert(inode)
    }

    /// Removes and returns up to `count` files from the queue for promotion, in ascending order of inode numbers.
    pub fn take_wanted(&mut self, count: usize) -> Vec<Inode> {
        let taken: Vec<Inode> = self.wanted.iter().take(count).copied().collect();
        taken.iter().for_each(|inode| _ = self.wanted.remove(inode));
        taken
    }

    /// Notes that contents of a file in the zone were found damaged. A background task takes the file with
    /// [`HotZone::take_suspects`].
    pub fn suspect(&mut self, inode: Inode) {
        self.suspects.insert(inode);
    }

    /// Removes and returns the files whose contents in the zone were found damaged. They are also queued for promotion,
    /// as far as that queue has room.
    pub fn take_suspects(&mut self) -> BTreeSet<Inode> {
        let suspects = std::mem::take(&mut self.suspects);
        suspects.iter().for_each(|inode| _ = self.want(*inode));
        suspects
    }

    /// Queues a file, or a directory for its files, whose hint has changed, to be judged again. Returns whether it is
    /// in the queue, newly or from before. A full queue takes only [`EVERY_FILE`].
    pub fn rehint(&mut self, inode: Inode) -> bool {
        let has_room = inode == EVERY_FILE || self.rehinted.len() < self.limits.files.max(1);
        if has_room {
            self.rehinted.insert(inode);
        }
        has_room || self.rehinted.contains(&inode)
    }

    /// Removes and returns the lowest number from the queue of changed hints: a file, a directory or [`EVERY_FILE`].
    /// Returns `None` if the queue is empty.
    pub fn take_rehinted(&mut self) -> Option<Inode> {
        self.rehinted.pop_first()
    }

    /// Marks all files in the zone to be judged again. The mark stays until [`HotZone::take_review`].
    pub fn ask_review(&mut self) {
        self.is_reviewed = true;
    }

    /// Returns whether the files in the zone are marked to be judged again, and clears the mark.
    pub fn take_review(&mut self) -> bool {
        std::mem::take(&mut self.is_reviewed)
    }

    /// Notes that a copy of file `inode` to the zone was started.
    pub fn begin_copy(&mut self, inode: Inode) {
        self.copying.insert(inode);
    }

    /// Cancels the copy of file `inode` to the zone, if one is in progress: the file has changed, or the copying
    /// failed. [`HotZone::end_copy`] then returns false.
    pub fn give_up_copy(&mut self, inode: Inode) {
        self.copying.remove(&inode);
    }

    /// Ends the copy of file `inode` to the zone. Returns whether the copy is valid: it was begun with
    /// [`HotZone::begin_copy`] and not cancelled since.
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

    /// Returns whether a file may be in the zone by its size and hint. It must not be empty, nor have [`Hint::Never`].
    /// It must be at most a quarter of the largest open part, or a small file ([`Limits::small_blocks`]) that fits into
    /// that part. Returns false if no part is open.
    pub fn may_hold(&self, of: &Candidate) -> bool {
        let largest = self.rooms.largest();
        let most = (largest / SHARE).max(self.limits.small_blocks).min(largest);
        of.blocks > 0 && of.blocks <= most && of.hint != Hint::Never
    }

    /// Decides whether file `of`, which is not in the zone, is promoted at time `now_ns`. A file that is empty, too
    /// large or has [`Hint::Never`] is not ([`HotZone::may_hold`]). If the free blocks of one part suffice, a file is
    /// promoted that is small, has [`Hint::Always`], or has a heat of at least two accesses. Otherwise only a file of
    /// the latter two kinds is promoted, in place of files of one part that are colder per block.
    ///
    /// `leaving` has one entry for each part: the number of blocks of evicted files that will be free soon and are not
    /// promised to another file. `inside` returns the files in the zone, each with its part; it is called only if some
    /// of them may have to be evicted. To make evictions rare, more of the coldest files are evicted than necessary, to
    /// free another 1/32 of the part if possible.
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
