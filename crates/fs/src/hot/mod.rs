//! The high-performance zone (Jin 2014 §II.D): a part of the area of the metadata, on flash or in conventional zones, or parts
//! of the drives of an array, in which files have a second copy of their contents, or lie alone. Here is what lies where in it,
//! how hot files are, and who comes in; the core moves the bytes ([`crate::core`]).
//!
//! ```text
//!   out ─► wanted ─► (copied, durable) ─► in ─► out        changed, colder than another that wants its room, or damaged
//! ```
//!
//! Where the metadata lie on one device, a file in the zone keeps its blocks in the store, so the loss of the zone loses no file.
//! Where they are mirrored the zone is too, and a file there takes no room in the store, unless that is wanted ([`Keeping`]).
//! On the drives of an array there are copies alone, each whole on one drive ([`Rooms`]): the loss of that drive costs no more
//! than them.
//!
//! Invariants:
//! 1. A block of the zone belongs to one file at most; when that is gone, it is free only once it is given back
//!    ([`HotZone::take`], [`HotZone::free`]).
//! 2. A file is pushed out only by one that is hotter, block for block, and was read more than once.
//! 3. Files that wait to come in, files whose heat is known, and those of which something else is said than before are no more
//!    than [`Limits::files`] each.

mod heat;
mod room;
mod rooms;
mod split;

use std::collections::BTreeSet;

pub use self::heat::{ACCESS, ACCESS_UNITS, Heat};
pub use self::room::Room;
pub use self::rooms::Rooms;
pub use self::split::{HotPart, PART_FIRST, room_on, split};
use crate::format::change::{Extent, Inode};
use crate::store::Run;

/// A file takes at most this share of the zone, unless it is small.
const SHARE: u64 = 4;
/// Where files are pushed out, this share of the zone is made free besides.
const PUSHED_SHARE: u64 = 32;
/// A file must have been read so often, decay apart, to push others out.
const ACCESSES_TO_PUSH: u64 = 2;

/// What a user says of a file, or of the directory that it is in.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Hint {
    /// Nothing: heat decides.
    #[default]
    None,
    /// It is to be in the zone whenever there is room, and is pushed out last.
    Always,
    /// It is never to be there.
    Never,
}

/// The extended attribute that holds a [`Hint`].
pub const HINT_ATTRIBUTE: &[u8] = b"user.imbrex.hot";

/// The extended attribute of a directory that says by the extension of their names what holds for the files in it, such as
/// `db=always tmp=never`; that of the uppermost directory is for all files of which nothing else is said.
pub const EXTENSIONS_ATTRIBUTE: &[u8] = b"user.imbrex.hot.extensions";

/// Number that stands for all files in the queue of changed hints. No file has number 0.
pub const EVERY_FILE: Inode = 0;

impl Hint {
    /// What the value of the attribute says; what it does not know says nothing.
    pub fn parse(value: &[u8]) -> Hint {
        match value {
            b"always" => Hint::Always,
            b"never" => Hint::Never,
            _ => Hint::None,
        }
    }

    /// What a list of extensions says of a file of this name: the first that is its own counts, in capitals or not.
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

/// What of a file in the zone is in the store too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keeping {
    /// All of it: the zone has a copy.
    Copies,
    /// Nothing, as long as the zone is on two devices that are up to date; else all of it.
    Alone,
}

impl Keeping {
    /// The option that says it, of `mkfs` and of a mount.
    pub const OPTION: &str = "hot_files";

    /// What the value of the option says; where nothing was said when it was made, files have copies.
    pub fn named(value: Option<&str>) -> Result<Keeping, String> {
        match value {
            None | Some("copies") => Ok(Keeping::Copies),
            Some("alone") => Ok(Keeping::Alone),
            Some(other) => Err(format!("hot_files is {other}: it is copies or alone")),
        }
    }
}

/// What the zone did since it was mounted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Pieces of files that were read from the zone.
    pub hits: u64,
    /// Pieces of files that were read from where the store has them.
    pub misses: u64,
    /// Files that came in.
    pub came_in: u64,
    /// Files that went out, whatever for.
    pub went_out: u64,
    /// Times that something in the zone was not what its checksum says on some device; it was read from another, or from where the
    /// store has it.
    pub damaged: u64,
}

/// How the zone is doing.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct HotStatus {
    /// Blocks of the zone; 0 where there is none.
    pub blocks: u64,
    /// Blocks that files lie in.
    pub used: u64,
    /// Files that are there.
    pub files: u64,
    /// Those of them that lie nowhere else.
    pub alone_files: u64,
    /// Their blocks in the zone.
    pub alone_blocks: u64,
    /// What it did since it was mounted.
    pub counters: Counters,
}

/// The bounds of the zone, its size apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Files whose heat is known at most; as many may wait to come in, and as many for their hint that changed.
    pub files: usize,
    /// Heat halves in this time.
    pub half_ns: u64,
    /// Files of up to so many blocks are small: they come in where there is room as soon as they are written.
    pub small_blocks: u64,
}

/// A file that is in the zone, or wants to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Which.
    pub inode: Inode,
    /// Its blocks.
    pub blocks: u64,
    /// What is said of it.
    pub hint: Hint,
}

/// What is done with a file that wants to come in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// There is room for it.
    Fits,
    /// There is in one part, once these have gone out.
    Push {
        /// The part.
        part: usize,
        /// Who goes out there.
        colder: Vec<Inode>,
    },
    /// It stays out.
    Stays,
}

/// The zone.
pub struct HotZone {
    limits: Limits,
    rooms: Rooms,
    heat: Heat,
    wanted: BTreeSet<Inode>,
    suspects: BTreeSet<Inode>,
    rehinted: BTreeSet<Inode>,
    copying: BTreeSet<Inode>,
    /// All files inside are to be judged anew.
    is_reviewed: bool,
    /// Blocks of files that lie nowhere else.
    pub alone_blocks: u64,
    /// What it did.
    pub counters: Counters,
}

impl HotZone {
    /// One in parts of so many blocks, all of them free.
    pub fn new(parts: &[u64], limits: Limits) -> HotZone {
        let heat = Heat::new(limits.files, limits.half_ns);
        HotZone {
            limits,
            rooms: Rooms::new(parts),
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

    /// How many blocks it has.
    pub fn blocks(&self) -> u64 {
        self.rooms.blocks()
    }

    /// How many parts.
    pub fn parts(&self) -> usize {
        self.rooms.count()
    }

    /// The part that block `block` is in.
    pub fn part_of(&self, block: u64) -> usize {
        self.rooms.part_of(block)
    }

    /// Whether files come into part `number` from now on. If not, no copy that is being made is one.
    pub fn set_open(&mut self, number: usize, is_open: bool) {
        self.rooms.set_open(number, is_open);
        if !is_open {
            self.copying.clear();
        }
    }

    /// Whether files come into some part.
    pub fn is_open(&self) -> bool {
        self.rooms.largest() > 0
    }

    /// Blocks that files lie in, or that are on their way to being free.
    pub fn used(&self) -> u64 {
        self.rooms.used(None)
    }

    /// The same of part `number`.
    pub fn used_in(&self, number: usize) -> u64 {
        self.rooms.used(Some(number))
    }

    /// Something of a file, found when the file system was mounted, lies there; an error says why it cannot.
    pub fn claim(&mut self, extent: &Extent) -> Result<(), String> {
        self.rooms.claim(Run { start: extent.start, blocks: u64::from(extent.blocks) })
    }

    /// Takes `blocks` of one part, in as few runs as there are; nothing if none has so many.
    pub fn take(&mut self, blocks: u64) -> Option<Vec<Run>> {
        self.rooms.take(blocks)
    }

    /// Gives blocks back.
    pub fn free(&mut self, run: Run) {
        self.rooms.free(run);
    }

    /// Somebody read blocks `first` to `end` of a file.
    pub fn touch(&mut self, inode: Inode, (first, end): (u64, u64), now_ns: u64) {
        self.heat.touch(inode, (first, end), now_ns);
    }

    /// The hottest `count` files, to be kept in a checkpoint.
    pub fn hottest(&self, count: usize, now_ns: u64) -> Vec<(Inode, u32)> {
        self.heat.hottest(count.min(self.limits.files), now_ns)
    }

    /// A file was so hot when a checkpoint was taken.
    pub fn warm(&mut self, inode: Inode, units: u32, now_ns: u64) {
        self.heat.warm(inode, units, now_ns);
    }

    /// The file is gone.
    pub fn forget(&mut self, inode: Inode) {
        self.heat.forget(inode);
        self.wanted.remove(&inode);
    }

    /// A file may want to come in; whether it was not waiting already.
    pub fn want(&mut self, inode: Inode) -> bool {
        self.wanted.len() < self.limits.files.max(1) && self.wanted.insert(inode)
    }

    /// Takes up to `count` files that wait to come in.
    pub fn take_wanted(&mut self, count: usize) -> Vec<Inode> {
        let taken: Vec<Inode> = self.wanted.iter().take(count).copied().collect();
        taken.iter().for_each(|inode| _ = self.wanted.remove(inode));
        taken
    }

    /// The copy of a file was found damaged: it is to be dropped, and made anew.
    pub fn suspect(&mut self, inode: Inode) {
        self.suspects.insert(inode);
    }

    /// Takes the files whose copies were found damaged; they want to come in again.
    pub fn take_suspects(&mut self) -> BTreeSet<Inode> {
        let suspects = std::mem::take(&mut self.suspects);
        suspects.iter().for_each(|inode| _ = self.want(*inode));
        suspects
    }

    /// Queues a file or directory whose hint has changed, to be judged anew. Returns whether it is in the queue: a full queue takes
    /// only [`EVERY_FILE`].
    pub fn rehint(&mut self, inode: Inode) -> bool {
        let has_room = inode == EVERY_FILE || self.rehinted.len() < self.limits.files.max(1);
        if has_room {
            self.rehinted.insert(inode);
        }
        has_room || self.rehinted.contains(&inode)
    }

    /// Takes one of which something else is said now.
    pub fn take_rehinted(&mut self) -> Option<Inode> {
        self.rehinted.pop_first()
    }

    /// All files that are in the zone are to be judged anew.
    pub fn ask_review(&mut self) {
        self.is_reviewed = true;
    }

    /// Whether they are; it is asked once.
    pub fn take_review(&mut self) -> bool {
        std::mem::take(&mut self.is_reviewed)
    }

    /// A copy of a file is begun.
    pub fn begin_copy(&mut self, inode: Inode) {
        self.copying.insert(inode);
    }

    /// The file changes: a copy of it that is being made is none. So it is where that fails.
    pub fn give_up_copy(&mut self, inode: Inode) {
        self.copying.remove(&inode);
    }

    /// The copy is made; whether it is one, because its file has not changed since it was begun.
    pub fn end_copy(&mut self, inode: Inode) -> bool {
        self.copying.remove(&inode)
    }

    /// How hot a file is, block for block.
    fn score(&self, of: &Candidate, now_ns: u64) -> u64 {
        match of.hint {
            Hint::Always => u64::MAX,
            Hint::Never => 0,
            Hint::None => self.heat.of(of.inode, now_ns) / of.blocks.max(1),
        }
    }

    /// Whether a file is one that may be in the zone at all.
    pub fn may_hold(&self, of: &Candidate) -> bool {
        let largest = self.rooms.largest();
        let most = (largest / SHARE).max(self.limits.small_blocks).min(largest);
        of.blocks > 0 && of.blocks <= most && of.hint != Hint::Never
    }

    /// Whether `of` comes in, where of each part `leaving` blocks of files that go out are free soon and nobody's yet. `inside` lists
    /// the files that are in the zone, each with its part, and is called only where some of them might have to go out. More of the
    /// coldest go than must, up to a small share of the part, so that this is seldom looked for.
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

/// Those that go, of `colder` with their heat and blocks, so that where `room` is free there are `needed` blocks and, if it can be,
/// `more`; and the heat of the hottest of them. Nothing if all of them are not enough.
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
        // What was read long ago is colder than what was read just now.
        let late_ns = 3 * HALF_NS;
        (0..2).for_each(|_| zone.touch(7, (0, 1), late_ns));
        assert_eq!(zone.judge(&file(7, 2), &[0], || inside.to_vec(), late_ns), push(&[2]));
    }

    /// Of two drives the one on which what goes is colder, and only files of that one.
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

    /// Files that come in one after the other before what went out is free do not drive out more than they need.
    #[test]
    fn what_is_leaving_makes_room_too() {
        let mut zone = zone(128);
        assert!(zone.take(128).is_some());
        let inside: Vec<(usize, Candidate)> = (100..164).map(|inode| (0, file(inode, 2))).collect();
        let always = Candidate { hint: Hint::Always, ..file(1, 6) };
        // For six blocks three files go, and two more for a thirty-second of the zone.
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
