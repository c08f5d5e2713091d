//! The pieces of a store: every block, or run of blocks, with a checksum of its own. Pieces are found by their magic
//! numbers and places only, and sealed again after an alteration. The code follows `docs/fs/format.md` and the headers
//! of `crates/fs/src/format`. It shares no code with the readers of a store, except for the places in the superblock.
//!
//! Invariant: a piece that is put back has a correct checksum.

use std::collections::BTreeMap;

use imbrex_fs::device::BLOCK_BYTES;
use imbrex_fs::device::area::Place;
use imbrex_fs::device::model::Contents;
use imbrex_fs::format::superblock::{Role, Superblock};

/// Kind of a piece.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    /// The superblock of a device.
    Superblock,
    /// The header of a checkpoint.
    Header,
    /// A chunk of a checkpoint.
    Chunk,
    /// A frame of the log.
    Frame,
    /// A page of checksums of data.
    Page,
    /// The first block of a zone of an array.
    ZoneHeader,
    /// A unit of records among data.
    Unit,
    /// The stamp of a part of the hot zone.
    Stamp,
}

/// A piece and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    /// Kind.
    pub kind: Kind,
    /// Index of the device.
    pub device: usize,
    /// Blocks of the device, in order.
    pub blocks: Vec<u64>,
    /// Contents of the blocks.
    pub bytes: Vec<u8>,
    /// Number that is equal for all copies of the piece.
    pub same: u64,
}

/// Bytes before the contents of a frame or a chunk.
pub(crate) const HEAD_BYTES: usize = 40;

fn number(bytes: &[u8], at: usize, width: usize) -> u64 {
    bytes[at..at + width].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl Piece {
    /// Returns the range of the contents, behind magic number, checksum and length.
    pub(crate) fn body(&self) -> std::ops::Range<usize> {
        match self.kind {
            Kind::Superblock | Kind::ZoneHeader | Kind::Stamp => 16..BLOCK_BYTES,
            Kind::Header | Kind::Chunk | Kind::Frame => {
                HEAD_BYTES..(HEAD_BYTES + number(&self.bytes, 36, 4) as usize).min(self.bytes.len())
            }
            Kind::Page => 16..BLOCK_BYTES,
            Kind::Unit => 44..(44 + number(&self.bytes, 12, 4) as usize).min(BLOCK_BYTES),
        }
    }

    /// Computes and sets the checksum.
    pub(crate) fn seal(&mut self) {
        let (at, end) = match self.kind {
            Kind::Superblock | Kind::ZoneHeader | Kind::Stamp => (12, BLOCK_BYTES),
            Kind::Header | Kind::Chunk | Kind::Frame => (4, self.body().end),
            Kind::Page | Kind::Unit => (8, BLOCK_BYTES),
        };
        self.bytes[at..at + 4].fill(0);
        let sum = crc32c::crc32c(&self.bytes[..end]);
        self.bytes[at..at + 4].copy_from_slice(&sum.to_le_bytes());
    }

    /// Returns whether the checksum is right.
    fn is_right(&self) -> bool {
        let mut sealed = self.clone();
        sealed.seal();
        sealed.bytes == self.bytes
    }

    /// Seals the piece and writes it back.
    pub(crate) fn put(&mut self, contents: &mut [Contents]) {
        self.seal();
        for (block, bytes) in self.blocks.iter().zip(self.bytes.chunks(BLOCK_BYTES)) {
            contents[self.device].corrupt(*block, |to| to.copy_from_slice(bytes));
        }
    }
}

/// Returns the block of the device that holds block `block` of an area.
fn at_place(place: &Place, block: u64) -> u64 {
    if place.gap == 0 {
        return place.first + block;
    }
    place.first + block / place.island * (place.island + place.gap) + block % place.island
}

/// Returns all pieces of a store on these devices.
pub(crate) fn of(contents: &[Contents]) -> Vec<Piece> {
    let mut found = Vec::new();
    for (device, holds) in contents.iter().enumerate() {
        for block in holds.used_blocks() {
            let Some(bytes) = holds.block(block) else { continue };
            let kind = match &bytes[..8] {
                b"imbrexfs" => Kind::Superblock,
                b"imbrexzn" => Kind::ZoneHeader,
                b"imbrexht" => Kind::Stamp,
                b"imbrexrc" => Kind::Unit,
                _ => continue,
            };
            let same = if kind == Kind::Superblock { 0 } else { found.len() as u64 };
            found.push(Piece { kind, device, blocks: vec![block], bytes: bytes.to_vec(), same });
        }
        found.extend(of_metadata(device, holds));
    }
    found.retain(Piece::is_right);
    found
}

fn of_metadata(device: usize, holds: &Contents) -> Vec<Piece> {
    let superblock = (0..2).find_map(|block| Superblock::decode(holds.block(block)?).ok());
    let is_meant = |it: &Superblock| matches!(it.own().role, Role::Both | Role::Metadata);
    let Some(superblock) = superblock.filter(is_meant) else { return Vec::new() };
    let layout = superblock.layout;
    let at = |block: u64| at_place(&layout.place, block);
    let mut found = Vec::new();
    let (first, pages) = layout.checksums;
    for page in first..first + pages {
        let Some(bytes) = holds.block(at(page)).filter(|bytes| bytes.iter().any(|byte| *byte != 0)) else { continue };
        found.push(Piece { kind: Kind::Page, device, blocks: vec![at(page)], bytes: bytes.to_vec(), same: page });
    }
    let [one, other] = layout.checkpoints;
    for (first, blocks) in [layout.log, one, other] {
        for block in first..first + blocks {
            let Some(head) = holds.block(at(block)) else { continue };
            let kind = match (&head[..4], number(head, 32, 4)) {
                (b"Ilog", _) => Kind::Frame,
                (b"Ichk", 0xFFFF_FFFF) => Kind::Header,
                (b"Ichk", _) => Kind::Chunk,
                _ => continue,
            };
            let length = (HEAD_BYTES + number(head, 36, 4) as usize).div_ceil(BLOCK_BYTES) as u64;
            let all: Vec<u64> = (block..(block + length).min(first + blocks)).map(at).collect();
            let Some(bytes) = all.iter().map(|block| holds.block(*block)).collect::<Option<Vec<_>>>() else { continue };
            found.push(Piece { kind, device, blocks: all, bytes: bytes.concat(), same: block });
        }
    }
    found
}

/// Returns the indices of the pieces by kind.
pub(crate) fn by_kind(pieces: &[Piece]) -> BTreeMap<Kind, Vec<usize>> {
    let mut kinds: BTreeMap<Kind, Vec<usize>> = BTreeMap::new();
    for (index, piece) in pieces.iter().enumerate() {
        kinds.entry(piece.kind).or_default().push(index);
    }
    kinds
}
