//! Records that data carry with them in the store `log`: whose blocks they are, what the file is called, and what the blocks'
//! checksums are. So files are found again where every device with metadata is lost (Jin 2014 has nothing of the kind).
//!
//! Records come in *units* of one block, behind the data that they tell of, in the same stripe group:
//!
//! ```text
//!   group:   data of a · data of b · unit (a, b) · data of c, 900 blocks · unit (c) · …
//!   unit:    "imbrexrc" · checksum u32 · bytes u32 · file system u128 · the group's sequence u64 · own place in the group u32 · entries
//!   entry:   1 directory | 2 file | 3 run: blocks of a file of this unit, with their checksums
//! ```
//!
//! What belongs to one append is in one unit. Which of two records is newer their sequences say, none of which is given
//! twice; a copy that the cleaner makes has one that lies between those of the write that it copies and of the next
//! one.
//!
//! Invariants:
//! 1. A unit is believed only at the place, and in the group, that it was written for.
//! 2. [`FileRecord::bytes`], [`DirectoryRecord::bytes`] and [`run_bytes`] are what encoding takes.

use std::rc::Rc;

use super::change::Inode;
use super::check_superblock::COUNT_FAR;
use super::coding::{Decoder, Encoder, Malformed, checksum};
use crate::device::BLOCK_BYTES;

const MAGIC: &[u8; 8] = b"imbrexrc";
const HEAD_BYTES: usize = 44;
/// Bytes of entries in a unit at most.
pub const UNIT_BYTES: usize = BLOCK_BYTES - HEAD_BYTES;
/// Runs of a file that a record lists at most; of a file in more pieces it does not say where the holes are.
pub const RANGES_MAX: usize = 16;

const DIRECTORY: u8 = 1;
const FILE: u8 = 2;
const RUN: u8 = 3;
const RUN_HEAD_BYTES: usize = 13;
/// Stands for a list of runs that is too long to be told.
const NO_RANGES: u8 = u8::MAX;
/// Stands for one run that is all of the file.
const ONE_RANGE: u8 = u8::MAX - 1;

/// What is told of a file whenever blocks of it are written.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FileRecord {
    /// Its number.
    pub inode: Inode,
    /// Tells apart files that had the same number one after the other.
    pub generation: u32,
    /// The newer of two has the larger one.
    pub sequence: u64,
    /// The directory that it has a name in; 0 where none is told.
    pub parent: Inode,
    /// Its name there; empty where none is told.
    pub name: Box<[u8]>,
    /// Type and permissions.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bytes.
    pub size: u64,
    /// Contents last changed, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// Whether all its blocks were written with this sequence, and nothing that is older counts.
    pub is_whole: bool,
    /// The blocks that it has: first and how many, of each run; nothing where they are too many to be told.
    pub ranges: Option<Vec<(u32, u32)>>,
}

impl FileRecord {
    /// Bytes that it takes in a unit.
    pub fn bytes(&self) -> usize {
        let ranges = self.ranges.as_ref().filter(|_| !self.is_dense()).map_or(0, |ranges| 8 * ranges.len());
        52 + ranges + self.name.len()
    }

    /// Whether it has all blocks up to its end, and no others.
    fn is_dense(&self) -> bool {
        self.ranges.as_ref().is_some_and(|ranges| *ranges == all_of(self.size))
    }

    fn encode(&self, to: &mut Encoder) {
        to.u8(FILE);
        [self.inode, self.generation, self.parent, self.mode, self.uid, self.gid].iter().for_each(|one| to.u32(*one));
        to.u64(self.sequence);
        to.u64(self.size);
        to.u64(self.modified_ns as u64);
        to.u8(u8::from(self.is_whole));
        let ranges = self.ranges.as_deref().filter(|_| !self.is_dense());
        let count = ranges.map_or(NO_RANGES, |ranges| ranges.len() as u8);
        to.u8(if self.is_dense() { ONE_RANGE } else { count });
        for (first, blocks) in ranges.unwrap_or_default() {
            to.u32(*first);
            to.u32(*blocks);
        }
        put_name(to, &self.name);
    }

    fn decode(from: &mut Decoder<'_>) -> Result<FileRecord, Malformed> {
        let (inode, generation, parent) = (from.u32()?, from.u32()?, from.u32()?);
        let (mode, uid, gid) = (from.u32()?, from.u32()?, from.u32()?);
        let (sequence, size, modified_ns) = (from.u64()?, from.u64()?, from.u64()? as i64);
        let is_whole = from.u8()? != 0;
        let ranges = match from.u8()? {
            NO_RANGES => None,
            ONE_RANGE => Some(all_of(size)),
            count => Some((0..count).map(|_| Ok((from.u32()?, from.u32()?))).collect::<Result<_, Malformed>>()?),
        };
        let name = get_name(from)?;
        Ok(FileRecord {
            inode,
            generation,
            sequence,
            parent,
            name,
            mode,
            uid,
            gid,
            size,
            modified_ns,
            is_whole,
            ranges,
        })
    }
}

/// What is told of a directory that files of a group are in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirectoryRecord {
    /// Its number.
    pub inode: Inode,
    /// The newer of two has the larger one.
    pub sequence: u64,
    /// The directory that it is in; 0 for the uppermost.
    pub parent: Inode,
    /// Its name there.
    pub name: Box<[u8]>,
    /// Type and permissions.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

impl DirectoryRecord {
    /// Bytes that it takes in a unit.
    pub fn bytes(&self) -> usize {
        30 + self.name.len()
    }

    /// Whether both say the same, sequences apart.
    pub fn says_the_same(&self, other: &DirectoryRecord) -> bool {
        let said = |it: &DirectoryRecord| (it.parent, it.mode, it.uid, it.gid);
        said(self) == said(other) && self.name == other.name
    }

    fn encode(&self, to: &mut Encoder) {
        to.u8(DIRECTORY);
        [self.inode, self.parent, self.mode, self.uid, self.gid].iter().for_each(|one| to.u32(*one));
        to.u64(self.sequence);
        put_name(to, &self.name);
    }

    fn decode(from: &mut Decoder<'_>) -> Result<DirectoryRecord, Malformed> {
        let (inode, parent) = (from.u32()?, from.u32()?);
        let (mode, uid, gid) = (from.u32()?, from.u32()?, from.u32()?);
        let sequence = from.u64()?;
        Ok(DirectoryRecord { inode, sequence, parent, name: get_name(from)?, mode, uid, gid })
    }
}

/// The one range of a file that has all its blocks.
fn all_of(size: u64) -> Vec<(u32, u32)> {
    vec![(0, size.div_ceil(BLOCK_BYTES as u64).min(u64::from(u32::MAX)) as u32)]
}

fn put_name(to: &mut Encoder, name: &[u8]) {
    to.u8(name.len() as u8);
    to.bytes.extend_from_slice(name);
}

fn get_name(from: &mut Decoder<'_>) -> Result<Box<[u8]>, Malformed> {
    let count = from.u8()?;
    (0..count).map(|_| from.u8()).collect()
}

/// Blocks of a file that lie in one run, and what the file is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// What the file is.
    pub file: Rc<FileRecord>,
    /// The first block, within the file.
    pub at: u32,
    /// How many.
    pub blocks: u32,
}

/// Bytes that a run of `blocks` takes in a unit.
pub fn run_bytes(blocks: u32) -> usize {
    RUN_HEAD_BYTES + 4 * blocks as usize
}

/// A run as a unit tells of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunRecord {
    /// Which file: its number among those of the unit.
    pub file: u16,
    /// The first block, within the file.
    pub at: u32,
    /// Where that lies, within the group.
    pub place: u32,
    /// The checksums of the blocks, one each.
    pub sums: Vec<u32>,
}

/// The entries of a unit that is being filled.
#[derive(Clone, Default, Debug)]
pub struct Filling {
    entries: Encoder,
    files: u16,
}

impl Filling {
    /// Bytes of entries so far.
    pub fn bytes(&self) -> usize {
        self.entries.bytes.len()
    }

    /// Tells of a directory.
    pub fn add_directory(&mut self, directory: &DirectoryRecord) {
        directory.encode(&mut self.entries);
    }

    /// Tells of `pieces`, which lie one behind the other from block `place` of the group on and have these checksums.
    pub fn add(&mut self, pieces: &[Piece], place: u32, sums: &[u32]) {
        let mut told: Vec<(Rc<FileRecord>, u16)> = Vec::new();
        let (mut place, mut left) = (place, sums);
        for piece in pieces {
            let known = told.iter().find(|(file, _)| Rc::ptr_eq(file, &piece.file)).map(|(_, number)| *number);
            let file = known.unwrap_or_else(|| {
                piece.file.encode(&mut self.entries);
                told.push((piece.file.clone(), self.files));
                self.files += 1;
                self.files - 1
            });
            let (own, rest) = left.split_at(piece.blocks as usize);
            self.entries.u8(RUN);
            self.entries.bytes.extend_from_slice(&file.to_le_bytes());
            self.entries.u32(piece.at);
            self.entries.u32(place);
            self.entries.bytes.extend_from_slice(&(own.len() as u16).to_le_bytes());
            own.iter().for_each(|sum| self.entries.u32(*sum));
            (place, left) = (place + piece.blocks, rest);
        }
    }

    /// The unit's block, and an empty one to go on with.
    pub fn seal(&mut self, file_system: u128, group_sequence: u64, place: u32) -> Vec<u8> {
        let entries = std::mem::take(self).entries.bytes;
        assert!(entries.len() <= UNIT_BYTES, "a unit of records of {} bytes", entries.len());
        let mut to = Encoder::default();
        to.bytes.extend_from_slice(MAGIC);
        to.u32(0); // the checksum
        to.u32(entries.len() as u32);
        to.u128(file_system);
        to.u64(group_sequence);
        to.u32(place);
        to.bytes.extend_from_slice(&entries);
        to.bytes.resize(BLOCK_BYTES, 0);
        let sum = checksum(&[&to.bytes]);
        to.bytes[8..12].copy_from_slice(&sum.to_le_bytes());
        to.bytes
    }
}

/// Bytes that telling of `pieces` takes, a file that has several of them told once.
pub fn bytes_of(pieces: &[Piece]) -> usize {
    let mut files: Vec<*const FileRecord> = Vec::new();
    let mut bytes = 0;
    for piece in pieces {
        let file = Rc::as_ptr(&piece.file);
        if !files.contains(&file) {
            files.push(file);
            bytes += piece.file.bytes();
        }
        bytes += run_bytes(piece.blocks);
    }
    bytes
}

/// A unit as it was read.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Unit {
    /// Directories that it tells of.
    pub directories: Vec<DirectoryRecord>,
    /// Files that it tells of.
    pub files: Vec<FileRecord>,
    /// Where their blocks lie.
    pub runs: Vec<RunRecord>,
}

impl Unit {
    /// Whether a block begins as a unit does: most do not, and need no closer look.
    pub fn is_named(block: &[u8]) -> bool {
        block.starts_with(MAGIC)
    }

    /// Reads the block at `place` of a group; nothing if it is no unit that was written there.
    pub fn decode(block: &[u8], file_system: u128, group_sequence: u64, place: u32) -> Option<Unit> {
        if block.len() < BLOCK_BYTES || !Unit::is_named(block) {
            return None;
        }
        let mut bytes = block[..BLOCK_BYTES].to_vec();
        let sum = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
        bytes[8..12].fill(0);
        if checksum(&[&bytes]) != sum {
            return None;
        }
        let mut from = Decoder::new(&bytes[12..]);
        let length = from.u32().ok()? as usize;
        let is_here = from.u128().ok()? == file_system && from.u64().ok()? == group_sequence;
        if !is_here || from.u32().ok()? != place || length > UNIT_BYTES {
            return None;
        }
        decode_entries(&bytes[HEAD_BYTES..HEAD_BYTES + length]).ok()
    }

    /// The block of the group behind the last one that it tells of; 0 if it tells of none.
    pub fn end(&self) -> u64 {
        self.runs.iter().map(|run| u64::from(run.place) + run.sums.len() as u64).max().unwrap_or(0)
    }
}

fn decode_entries(bytes: &[u8]) -> Result<Unit, Malformed> {
    let (mut unit, mut from) = (Unit::default(), Decoder::new(bytes));
    while !from.is_done() {
        match from.u8()? {
            DIRECTORY => unit.directories.push(DirectoryRecord::decode(&mut from)?),
            FILE => unit.files.push(FileRecord::decode(&mut from)?),
            RUN => {
                let run = run(&mut from)?;
                if usize::from(run.file) >= unit.files.len() {
                    return Err(Malformed("a run of a file that is not told of"));
                }
                unit.runs.push(run);
            }
            _ => return Err(Malformed("an entry of no known kind")),
        }
    }
    let files = unit.files.iter().map(|file| file.sequence);
    let mut sequences = files.chain(unit.directories.iter().map(|directory| directory.sequence));
    if sequences.any(|sequence| sequence >= COUNT_FAR) {
        return Err(Malformed("the sequence of a record"));
    }
    Ok(unit)
}

fn run(from: &mut Decoder<'_>) -> Result<RunRecord, Malformed> {
    let short = |from: &mut Decoder<'_>| Ok(u16::from_le_bytes([from.u8()?, from.u8()?]));
    let file = short(from)?;
    let (at, place) = (from.u32()?, from.u32()?);
    let count = short(from)?;
    let sums: Vec<u32> = (0..count).map(|_| from.u32()).collect::<Result<_, _>>()?;
    let is_sound = at.checked_add(u32::from(count)).is_some() && place.checked_add(u32::from(count)).is_some();
    is_sound.then_some(RunRecord { file, at, place, sums }).ok_or(Malformed("a run beyond all places"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(inode: Inode, name: &[u8], ranges: Option<Vec<(u32, u32)>>) -> Rc<FileRecord> {
        Rc::new(FileRecord {
            inode,
            generation: 7,
            sequence: 1 << 40,
            parent: 1,
            name: name.into(),
            mode: 0o100_644,
            uid: 1000,
            gid: 100,
            size: 1 << 33,
            modified_ns: -4,
            is_whole: true,
            ranges,
        })
    }

    fn directory() -> DirectoryRecord {
        let name = b"some directory".as_slice().into();
        DirectoryRecord { inode: 9, sequence: 3, parent: 1, name, mode: 0o040_755, uid: 1, gid: 2 }
    }

    fn pieces() -> Vec<Piece> {
        let (one, other) = (file(5, b"one", Some(vec![(0, 3), (9, 2)])), file(6, &[b'x'; 255], None));
        let piece = |file: &Rc<FileRecord>, at, blocks| Piece { file: file.clone(), at, blocks };
        vec![piece(&one, 0, 3), piece(&other, 70, 1), piece(&one, 9, 2)]
    }

    fn filled() -> Filling {
        let mut filling = Filling::default();
        filling.add_directory(&directory());
        filling.add(&pieces(), 40, &[1, 2, 3, 4, 5, 6]);
        filling
    }

    #[test]
    fn what_is_written_is_read_and_takes_what_was_reckoned() {
        let mut filling = filled();
        assert_eq!(filling.bytes(), directory().bytes() + bytes_of(&pieces()));
        let unit = Unit::decode(&filling.seal(11, 12, 46), 11, 12, 46).expect("it is one");
        assert_eq!(filling.bytes(), 0);
        assert_eq!(unit.directories, [directory()]);
        let files: Vec<FileRecord> = pieces()[..2].iter().map(|piece| (*piece.file).clone()).collect();
        assert_eq!(unit.files, files);
        let runs: Vec<_> = unit.runs.iter().map(|run| (run.file, run.at, run.place, run.sums.clone())).collect();
        assert_eq!(runs, [(0, 0, 40, vec![1, 2, 3]), (1, 70, 43, vec![4]), (0, 9, 44, vec![5, 6])]);
        assert_eq!(unit.end(), 46);
    }

    #[test]
    fn it_is_believed_at_its_own_place_alone_and_every_altered_byte_is_noticed() {
        let block = filled().seal(11, 12, 46);
        for (file_system, sequence, place) in [(10, 12, 46), (11, 13, 46), (11, 12, 47)] {
            assert_eq!(Unit::decode(&block, file_system, sequence, place), None);
        }
        for at in 0..BLOCK_BYTES {
            let mut altered = block.clone();
            altered[at] ^= 0x20;
            assert_eq!(Unit::decode(&altered, 11, 12, 46), None, "byte {at}");
        }
    }

    #[test]
    fn entries_that_make_no_sense_are_no_unit_and_no_panic() {
        let whole = filled().entries.bytes;
        for length in 1..whole.len() {
            let cut = decode_entries(&whole[..length]);
            // An entry may end just there.
            assert!(cut.is_err() || cut.expect("it is no error").runs.len() < 3);
        }
        for at in 0..whole.len() {
            let mut altered = whole.clone();
            altered[at] = altered[at].wrapping_add(101);
            let _ = decode_entries(&altered);
        }
    }
}
