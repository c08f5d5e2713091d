//! The cache that is overwritten in place (`placement=in-place`): slots of a block each on tracks that can be
//! rewritten, any of which takes any block (the later drives, measured in public).
//!
//! Blocks are cut so that none lies in two bands. Slots are grouped in cache zones; whose turn it is to give one up
//! goes round by zone.
//!
//! Invariants:
//! 1. A slot has an owner exactly while it holds live sectors, and each block at most one slot.
//! 2. A sector of a block lies at its own offset in the slot.

use std::collections::{BTreeMap, BTreeSet};

use imbrex_disk::{Lba, Pba};

use crate::extent_map::{Run, Target};

/// A slot.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// First LBA of its block; meaningless while nothing is live.
    block: u64,
    /// Live sectors.
    live: u64,
}

/// The slots.
#[derive(Debug)]
pub(super) struct Slots {
    starts: Vec<u64>,
    slots: Vec<Slot>,
    pub(super) block_sectors: u64,
    zone_slots: usize,
    by_block: BTreeMap<u64, u32>,
    free: BTreeSet<u32>,
    /// Whose turn it is: the zone, and in each zone the slot.
    zone: usize,
    turns: Vec<u32>,
}

impl Slots {
    /// Empty slots of `block_sectors` that begin at `starts`.
    pub(super) fn new(starts: Vec<u64>, block_sectors: u64, zone_slots: usize) -> Slots {
        let count = starts.len();
        Slots {
            slots: vec![Slot::default(); count],
            block_sectors,
            zone_slots,
            by_block: BTreeMap::new(),
            free: (0..count as u32).collect(),
            zone: 0,
            turns: vec![0; count.div_ceil(zone_slots)],
            starts,
        }
    }

    /// How many.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// How many hold something.
    pub(super) fn used(&self) -> usize {
        self.by_block.len()
    }

    /// The place of `block`, in the slot it has or in a free one; nothing if there is none.
    pub(super) fn place(&self, block: Lba) -> Option<Pba> {
        let slot = self.by_block.get(&block.0).or_else(|| self.free.first())?;
        Some(Pba(self.starts[*slot as usize]))
    }

    /// The slot that `pba` lies in.
    fn slot_at(&self, pba: Pba) -> Option<usize> {
        let slot = self.starts.partition_point(|&start| start <= pba.0).checked_sub(1)?;
        (pba.0 - self.starts[slot] < self.block_sectors).then_some(slot)
    }

    /// Whether `sectors` from `pba` lie in one slot, at `offset` in it, and the slot is free or has `block`.
    pub(super) fn accepts(&self, block: Lba, offset: u64, pba: Pba, sectors: u64) -> bool {
        self.slot_at(pba).is_some_and(|slot| {
            let is_mine =
                self.by_block.get(&block.0).map_or(self.free.contains(&(slot as u32)), |&own| own as usize == slot);
            is_mine && pba.0 == self.starts[slot] + offset && offset + sectors <= self.block_sectors
        })
    }

    /// `sectors` more of `block` live at `pba`.
    pub(super) fn add(&mut self, block: Lba, pba: Pba, sectors: u64) {
        let index = self.slot_at(pba).expect("placed by us");
        let slot = &mut self.slots[index];
        if slot.live == 0 {
            slot.block = block.0;
            self.by_block.insert(block.0, index as u32);
            self.free.remove(&(index as u32));
        }
        slot.live += sectors;
    }

    /// What `run` says of live sectors is so no more.
    pub(super) fn remove(&mut self, run: Run) {
        let Target::At(pba) = run.target else { return };
        let index = self.slot_at(pba).expect("placed by us");
        let slot = &mut self.slots[index];
        slot.live -= run.sectors.0;
        if slot.live == 0 {
            self.by_block.remove(&slot.block);
            self.free.insert(index as u32);
        }
    }

    /// The block whose turn it is to leave: zone after zone, and within a zone slot after slot.
    pub(super) fn next_out(&mut self) -> Option<Lba> {
        for _ in 0..self.turns.len() {
            let zone = self.zone;
            self.zone = (zone + 1) % self.turns.len();
            let first = zone * self.zone_slots;
            let count = self.zone_slots.min(self.slots.len() - first);
            let turn = self.turns[zone] as usize;
            let found = (0..count).map(|step| (turn + step) % count).find(|&at| self.slots[first + at].live > 0);
            if let Some(at) = found {
                self.turns[zone] = ((at + 1) % count) as u32;
                return Some(Lba(self.slots[first + at].block));
            }
        }
        None
    }

    /// Live sectors of each slot that has an owner: (slot's first sector, block, live sectors).
    pub(super) fn owned(&self) -> impl Iterator<Item = (Pba, Lba, u64)> + '_ {
        self.by_block.iter().map(|(&block, &slot)| {
            let slot = slot as usize;
            (Pba(self.starts[slot]), Lba(block), self.slots[slot].live)
        })
    }

    /// Bytes it takes.
    pub(super) fn measured_bytes(&self) -> u64 {
        let slots = self.slots.len() * (std::mem::size_of::<Slot>() + 8);
        (slots + self.by_block.len() * 24 + self.free.len() * 8 + self.turns.len() * 4) as u64
    }
}
