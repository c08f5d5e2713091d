//! The directory: which slot holds which chunk. Each fact stands in three places: in the directory's entry of the slot, in
//! the header of the slot itself, and in the blocks of its sector table that were written since it was given.
//!
//! Invariants:
//! 1. A slot belongs to one chunk; a chunk's slot, once given, stays.
//! 2. A slot is prepared, durably, before it is given: its header says "free", its sector table "never written".
//! 3. After an opening slots go on behind the last one known to be given, and are prepared anew: what a power cut left
//!    in them is gone before they are given.

use super::checksum::{Salt, What};
use super::layout::{BLOCK_BYTES, ENTRY_BYTES};
use uuid::Uuid;

const HEADER_MAGIC: u32 = 0x534c_4f54;
/// Slots that are kept together in memory.
const PAGE: u64 = 1024;

/// What a directory's entry or a slot's header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    /// Nothing was ever given (an entry), or it is free (a header).
    Nobody,
    /// The slot holds this chunk.
    Chunk(u64),
    /// What stands there is damaged.
    Spoilt,
}

/// The directory in memory, and how its entries are written.
#[derive(Debug)]
pub(super) struct Directory {
    entries: Salt,
    headers: Salt,
    /// By chunk: the slot's number + 1, or 0; pages exist once a chunk of theirs has a slot.
    slots: Vec<Option<Box<[u32]>>>,
    /// By slot: its chunk + 1, or 0.
    chunks: Vec<u32>,
    /// How many slots are given.
    pub(super) given: u64,
}

impl Directory {
    /// Of the image `uuid`, which has so many chunks; nothing is given yet.
    pub(super) fn new(uuid: Uuid, chunks: u64) -> Directory {
        Directory {
            entries: Salt::new(uuid, What::Directory),
            headers: Salt::new(uuid, What::SlotHeader),
            slots: vec![None; chunks.div_ceil(PAGE) as usize],
            chunks: Vec::new(),
            given: 0,
        }
    }

    /// The slot of `chunk`.
    pub(super) fn slot(&self, chunk: u64) -> Option<u64> {
        let page = self.slots[(chunk / PAGE) as usize].as_ref()?;
        page[(chunk % PAGE) as usize].checked_sub(1).map(u64::from)
    }

    /// The chunk in `slot`.
    pub(super) fn chunk(&self, slot: u64) -> Option<u64> {
        self.chunks.get(slot as usize)?.checked_sub(1).map(u64::from)
    }

    /// One past the last slot given.
    pub(super) fn end(&self) -> u64 {
        self.chunks.len() as u64
    }

    /// The slots that are given, with their chunks, in order of slots.
    pub(super) fn given_slots(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let chunks = self.chunks.iter().enumerate();
        chunks.filter_map(|(slot, chunk)| Some((slot as u64, u64::from(chunk.checked_sub(1)?))))
    }

    /// The chunks of `range` that have a slot, in order.
    pub(super) fn chunks_with_slot(&self, range: std::ops::Range<u64>) -> impl Iterator<Item = u64> + '_ {
        let pages = range.start / PAGE..range.end.div_ceil(PAGE);
        let there = pages.filter(|&page| self.slots[page as usize].is_some());
        let chunks = there.flat_map(|page| page * PAGE..(page + 1) * PAGE);
        chunks.filter(move |chunk| range.contains(chunk) && self.slot(*chunk).is_some())
    }

    /// Takes down that `slot` holds `chunk`; whether that was possible, which it is not if the chunk has another.
    pub(super) fn set(&mut self, slot: u64, chunk: u64) -> bool {
        let page = self.slots[(chunk / PAGE) as usize].get_or_insert_with(|| vec![0; PAGE as usize].into());
        let entry = &mut page[(chunk % PAGE) as usize];
        if *entry != 0 {
            return u64::from(*entry) == slot + 1;
        }
        *entry = slot as u32 + 1;
        if self.chunks.len() <= slot as usize {
            self.chunks.resize(slot as usize + 1, 0);
        }
        self.chunks[slot as usize] = chunk as u32 + 1;
        self.given += 1;
        true
    }

    /// The entry that says that `slot` holds `chunk`.
    pub(super) fn entry(&self, slot: u64, chunk: u64) -> [u8; ENTRY_BYTES as usize] {
        let mut bytes = [0; ENTRY_BYTES as usize];
        bytes[8..].copy_from_slice(&(chunk + 1).to_le_bytes());
        let sum = self.entries.sum(slot, &bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// What the entry of `slot` says.
    pub(super) fn parse_entry(&self, slot: u64, bytes: &[u8; ENTRY_BYTES as usize]) -> Owner {
        if *bytes == [0; ENTRY_BYTES as usize] {
            return Owner::Nobody;
        }
        let (sum, chunk) = bytes.split_at(8);
        let chunk = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
        let is_whole = self.entries.sum(slot, &bytes[4..]).to_le_bytes() == sum[..4];
        match chunk.checked_sub(1).filter(|_| is_whole) {
            Some(chunk) if chunk / PAGE < self.slots.len() as u64 => Owner::Chunk(chunk),
            _ => Owner::Spoilt,
        }
    }

    /// The header of `slot` that holds `chunk`, or is free.
    pub(super) fn header(&self, slot: u64, chunk: Option<u64>) -> [u8; BLOCK_BYTES] {
        let mut bytes = [0; BLOCK_BYTES];
        bytes[4..8].copy_from_slice(&HEADER_MAGIC.to_le_bytes());
        bytes[8..16].copy_from_slice(&chunk.map_or(0, |chunk| chunk + 1).to_le_bytes());
        let sum = self.headers.sum(slot, &bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// What the header of `slot` says.
    pub(super) fn parse_header(&self, slot: u64, bytes: &[u8; BLOCK_BYTES]) -> Owner {
        let chunk = u64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes"));
        let is_whole = self.headers.sum(slot, &bytes[4..]).to_le_bytes() == bytes[..4]
            && bytes[4..8] == HEADER_MAGIC.to_le_bytes();
        match chunk.checked_sub(1) {
            _ if !is_whole => Owner::Spoilt,
            None => Owner::Nobody,
            Some(chunk) if chunk / PAGE < self.slots.len() as u64 => Owner::Chunk(chunk),
            Some(_) => Owner::Spoilt,
        }
    }
}
