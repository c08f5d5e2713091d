//! The directory: which slot holds which chunk. Each fact is stored in three places: the directory's entry of the slot,
//! the header of the slot, and the blocks of its sector table that were written since it was assigned.
//!
//! Invariants:
//! 1. A slot belongs to one chunk. The slot of a chunk never changes.
//! 2. A slot is prepared durably before it is assigned: its header says "free", its sector table "never written".
//! 3. After an opening, assignment continues after the last slot that is known to be assigned. The slots from there on
//!    are prepared anew, so leftovers of a power cut are overwritten before the slots are used.

use super::checksum::{Salt, What};
use super::layout::{BLOCK_BYTES, ENTRY_BYTES};
use uuid::Uuid;

const HEADER_MAGIC: u32 = 0x534c_4f54;
/// Number of chunks in a page of the table in memory that maps chunks to slots.
const PAGE: u64 = 1024;

/// Owner of a slot according to a directory entry or a slot header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    /// The entry was never written, or the header says that the slot is free.
    Nobody,
    /// The slot holds this chunk.
    Chunk(u64),
    /// The entry or header is damaged.
    Spoilt,
}

/// The directory in memory, and the seeds of the checksums of its entries and of slot headers.
#[derive(Debug)]
pub(super) struct Directory {
    entries: Salt,
    headers: Salt,
    /// For each chunk, its slot + 1, or 0. A page exists once one of its chunks has a slot.
    slots: Vec<Option<Box<[u32]>>>,
    /// For each slot, its chunk + 1, or 0.
    chunks: Vec<u32>,
    /// Number of assigned slots.
    pub(super) given: u64,
}

impl Directory {
    /// Returns the directory of the image `uuid` with `chunks` chunks, no slot assigned.
    pub(super) fn new(uuid: Uuid, chunks: u64) -> Directory {
        Directory {
            entries: Salt::new(uuid, What::Directory),
            headers: Salt::new(uuid, What::SlotHeader),
            slots: vec![None; chunks.div_ceil(PAGE) as usize],
            chunks: Vec::new(),
            given: 0,
        }
    }

    /// Returns the slot of `chunk`, if it has one.
    pub(super) fn slot(&self, chunk: u64) -> Option<u64> {
        let page = self.slots[(chunk / PAGE) as usize].as_ref()?;
        page[(chunk % PAGE) as usize].checked_sub(1).map(u64::from)
    }

    /// Returns the chunk in `slot`, if the slot is assigned.
    pub(super) fn chunk(&self, slot: u64) -> Option<u64> {
        self.chunks.get(slot as usize)?.checked_sub(1).map(u64::from)
    }

    /// Returns the number of the last assigned slot, plus one.
    pub(super) fn end(&self) -> u64 {
        self.chunks.len() as u64
    }

    /// Returns the assigned slots with their chunks, as (slot, chunk), in the order of slots.
    pub(super) fn given_slots(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let chunks = self.chunks.iter().enumerate();
        chunks.filter_map(|(slot, chunk)| Some((slot as u64, u64::from(chunk.checked_sub(1)?))))
    }

    /// Returns the chunks of `range` that have a slot, in order.
    pub(super) fn chunks_with_slot(&self, range: std::ops::Range<u64>) -> impl Iterator<Item = u64> + '_ {
        let pages = range.start / PAGE..range.end.div_ceil(PAGE);
        let there = pages.filter(|&page| self.slots[page as usize].is_some());
        let chunks = there.flat_map(|page| page * PAGE..(page + 1) * PAGE);
        chunks.filter(move |chunk| range.contains(chunk) && self.slot(*chunk).is_some())
    }

    /// Records that `slot` holds `chunk`. Returns false, and records nothing, if `chunk` has another slot.
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

    /// Returns the bytes of the directory entry for a `slot` that holds `chunk`.
    pub(super) fn entry(&self, slot: u64, chunk: u64) -> [u8; ENTRY_BYTES as usize] {
        let mut bytes = [0; ENTRY_BYTES as usize];
        bytes[8..].copy_from_slice(&(chunk + 1).to_le_bytes());
        let sum = self.entries.sum(slot, &bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Parses the directory entry of `slot`.
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

    /// Returns the header of `slot`, which holds `chunk`, or is free if `chunk` is `None`.
    pub(super) fn header(&self, slot: u64, chunk: Option<u64>) -> [u8; BLOCK_BYTES] {
        let mut bytes = [0; BLOCK_BYTES];
        bytes[4..8].copy_from_slice(&HEADER_MAGIC.to_le_bytes());
        bytes[8..16].copy_from_slice(&chunk.map_or(0, |chunk| chunk + 1).to_le_bytes());
        let sum = self.headers.sum(slot, &bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Parses the header of `slot`.
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
