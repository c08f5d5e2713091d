//! Records stored with the data in the store `log`. They give the file of each block, the name of the file, and the
//! checksums of the blocks. So files can be recovered if every device with metadata is lost (Jin 2014 has no such
//! mechanism).
//!
//! Records are stored in *units* of one block, behind the data that they describe, in the same stripe group:
//!
//! ```text
//!   group:   data of a · data of b · unit (a, b) · data of c, 900 blocks · unit (c) · …
//!   unit:    "imbrexrc" · checksum u32 · bytes u32 · file system u128 · the group's sequence u64 · own place in the group u32 · entries
//!   entry:   1 directory | 2 file | 3 run: blocks of a file of this unit, with their checksums
//! ```
//!
//! All records of one append are in one unit. Of two records of a file, the one with the larger sequence is newer. No
//! sequence is given twice. If the cleaner copies blocks, the record of the copy has a sequence between that of the
//! copied write and that of the next write.
//!
//! Invariants:
//! 1. A unit is accepted only in the group, and at the place in it, for which it was written.
//! 2. [`FileRecord::bytes`], [`DirectoryRecord::bytes`] and [`run_bytes`] return the exact size of the encoding.

use std::rc::Rc;

use super::change::Inode;
use super::coding::{Decoder, Encoder, Malformed, checksum};
use super::limits::COUNT_FAR;
use crate::device::BLOCK_BYTES;

const MAGIC: &[u8; 8] = b"imbrexrc";
const HEAD_BYTES: usize = 44;
/// Maximum number of bytes of all entries in a unit: a block of 4096 bytes, less its head.
pub const UNIT_BYTES: usize = BLOCK_BYTES - HEAD_BYTES;
/// Maximum number of runs of blocks that a record lists for a file. If the file has more, its record does not say where
/// its holes are.
pub const RANGES_MAX: usize = 16;

const DIRECTORY: u8 = 1;
const FILE: u8 = 2;
const RUN: u8 = 3;
const RUN_HEAD_BYTES: usize = 13;
/// Number of runs that stands for a list too long to be stored.
const NO_RANGES: u8 = u8::MAX;
/// Number of runs that stands for one run from the start to the end of the file.
const ONE_RANGE: u8 = u8::MAX - 1;

/// Record of a file, stored behind blocks of the file: its attributes, one of its names, and its blocks at the time
/// when those blocks were written or copied. Extended attributes are not included.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FileRecord {
    /// Inode number of the file.
    pub inode: Inode,
    /// Generation: distinguishes files that had the same inode number one after the other.
    pub generation: u32,
    /// Sequence of the record: a number that grows with each write of any file. Of two records of a file, the one with
    /// the larger sequence is newer.
    pub sequence: u64,
    /// Inode of the directory in which the file has its name; 0 if the record gives no name.
    pub parent: Inode,
    /// Name of the file in `parent`; empty if the record gives no name.
    pub name: Box<[u8]>,
    /// File type and permissions, in the encoding of `st_mode`.
    pub mode: u32,
    /// User ID of the owner.
    pub uid: u32,
    /// ID of the owning group.
    pub gid: u32,
    /// Size of the file in bytes when the record was written.
    pub size: u64,
    /// Time of the last change of the contents, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// Whether blocks with older sequences do not belong to the file any more. This is so if the write contains all
    /// blocks of the file, or if some of the others are only in the hot zone.
    pub is_whole: bool,
    /// Runs of blocks of 4 KiB of the whole file, without its holes, in ascending order: first block within the file
    /// and number of blocks of each. `None` if there are more than [`RANGES_MAX`] (16) runs.
    pub ranges: Option<Vec<(u32, u32)>>,
}

impl FileRecord {
    /// Returns the encoded size of the record in a unit, in bytes.
    pub fn bytes(&self) -> usize {
        let ranges = self.ranges.as_ref().filter(|_| !self.is_dense()).map_or(0, |ranges| 8 * ranges.len());
        52 + ranges + self.name.len()
    }

    /// Returns whether the file has all blocks up to its end, and no others.
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

/// Record of a directory that contains files of the stripe group, directly or in subdirectories.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirectoryRecord {
    /// Inode number of the directory.
    pub inode: Inode,
    /// Sequence of the write with which the record was stored. Of two records of a directory, the one with the larger
    /// sequence is newer.
    pub sequence: u64,
    /// Inode number of the parent directory; 0 for the root directory.
    pub parent: Inode,
    /// Name of the directory in `parent`; empty for the root directory.
    pub name: Box<[u8]>,
    /// File type and permissions, in the encoding of `st_mode`.
    pub mode: u32,
    /// User ID of the owner.
    pub uid: u32,
    /// ID of the owning group.
    pub gid: u32,
}

impl DirectoryRecord {
    /// Returns the encoded size of the record in a unit, in bytes.
    pub fn bytes(&self) -> usize {
        30 + self.name.len()
    }

    /// Returns whether both records have equal parents, names, modes, owners and groups. Inode numbers and sequences
    /// are not compared.
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

/// Returns the runs of a file of `size` bytes without holes: one run of all its blocks.
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

/// A range of consecutive blocks of a file that are stored in consecutive blocks of a stripe group, with the record of
/// the file. The place of the blocks in the group is not included.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Record of the file that the blocks belong to.
    pub file: Rc<FileRecord>,
    /// First block of the piece, of 4 KiB, counted from 0 within the file.
    pub at: u32,
    /// Number of blocks of 4 KiB of the piece. They are consecutive in the file and in the stripe group.
    pub blocks: u32,
}

/// Returns the encoded size in bytes of the entry for a run of `blocks` blocks, with their checksums.
pub fn run_bytes(blocks: u32) -> usize {
    RUN_HEAD_BYTES + 4 * blocks as usize
}

/// Entry of a unit for a run of consecutive blocks of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunRecord {
    /// Index of the file, counted from 0, among the file records of the unit that contains this entry.
    pub file: u16,
    /// First block of the run, of 4 KiB, counted from 0 within the file.
    pub at: u32,
    /// Data block of the stripe group that holds the first block of the run, counted from 0 within the group.
    pub place: u32,
    /// Checksums (CRC-32C) of the blocks of the run, one each, in order. Their number is the number of blocks.
    pub sums: Vec<u32>,
}

/// Unit of records (one block) that is being filled with entries.
#[derive(Clone, Default, Debug)]
pub struct Filling {
    entries: Encoder,
    files: u16,
}

impl Filling {
    /// Returns the number of bytes of the entries added to the unit so far.
    pub fn bytes(&self) -> usize {
        self.entries.bytes.len()
    }

    /// Adds the record of a directory to the unit, a block of records that is stored behind the data it describes. Does
    /// not check whether the record still fits into the block.
    pub fn add_directory(&mut self, directory: &DirectoryRecord) {
        directory.encode(&mut self.entries);
    }

    /// Adds entries for `pieces` to the unit: the record of each file once per call, and a run for each piece. Pieces
    /// are of one file if they share its `Rc`. The blocks of the pieces are stored one after the other in the stripe
    /// group, from its data block `place` on. `sums` has one checksum for each of these blocks, in order.
    ///
    /// # Panics
    /// `sums` has fewer checksums than the pieces have blocks.
    pub fn add(&mut self, pieces: &[Piece], place: u32, sums: &[u32]) {
        let mut described: Vec<(Rc<FileRecord>, u16)> = Vec::new();
        let (mut place, mut left) = (place, sums);
        for piece in pieces {
            let known = described.iter().find(|(file, _)| Rc::ptr_eq(file, &piece.file)).map(|(_, number)| *number);
            let file = known.unwrap_or_else(|| {
                piece.file.encode(&mut self.entries);
                described.push((piece.file.clone(), self.files));
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

    /// Returns the unit as a block of 4096 bytes with a checksum, and continues with an empty unit. `file_system` is
    /// the UUID of the file system, `group_sequence` the sequence of the stripe group, and `place` the data block of
    /// the group to which the unit will be written.
    ///
    /// # Panics
    /// The entries have more than [`UNIT_BYTES`] bytes.
    pub fn seal(&mut self, file_system: u128, group_sequence: u64, place: u32) -> Vec<u8> {
        let entries = std::mem::take(self).entries.bytes;
        assert!(entries.len() <= UNIT_BYTES, "a unit of records of {} bytes", entries.len());
        let mut to = Encoder::default();
        to.bytes.extend_from_slice(MAGIC);
        to.u32(0); // checksum, written at the end
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

/// Returns the number of bytes that [`Filling::add`] appends for `pieces`: the record of each file, and a run with
/// checksums for each piece. A record that several pieces share by its `Rc` counts once.
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

/// Unit of records that was read from a drive and decoded.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Unit {
    /// Records of the directories that the unit describes, in the order in which they were added.
    pub directories: Vec<DirectoryRecord>,
    /// Records of the files that the unit describes. The entries in `runs` name a file by its index here.
    pub files: Vec<FileRecord>,
    /// Runs of blocks of the files in `files`: blocks of each file, their places in the stripe group, and checksums.
    pub runs: Vec<RunRecord>,
}

impl Unit {
    /// Returns whether a block begins with the magic number of a unit. Most blocks do not, and need no further check.
    pub fn is_named(block: &[u8]) -> bool {
        block.starts_with(MAGIC)
    }

    /// Decodes the data block with number `place` in the group of sequence `group_sequence`. Returns `None` if the
    /// block is not a unit, is damaged, or was written for another file system, group or place.
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

    /// Returns the data block of the group after the last one that the unit describes, counted from 0 within the group;
    /// 0 if the unit describes no block.
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
                    return Err(Malformed("a run of a file without a record"));
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
            // The cut may lie between two entries.
            assert!(cut.is_err() || cut.expect("it is no error").runs.len() < 3);
        }
        for at in 0..whole.len() {
            let mut altered = whole.clone();
            altered[at] = altered[at].wrapping_add(101);
            let _ = decode_entries(&altered);
        }
    }
}
