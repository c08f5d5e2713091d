//! Checks of the layer's invariants, and the memory that its map takes. The numbers of the invariants are those of the
//! layer's header.

use super::INFO;
use super::entries::{Entry, Spot};
use super::queue::DEAD;
use super::ring::Position;
use super::shape::Shape;
use super::state::{Section, State};
use crate::violation::Violation;

/// Sectors of a host block (4 KiB), the unit of the paper's map of the cache.
const CACHED_BLOCK_SECTORS: u64 = 8;

/// Checks the invariants of the layer in every section.
///
/// # Errors
///
/// The first broken invariant that the check finds.
pub(super) fn check(state: &State) -> Result<(), Violation> {
    for number in 0..state.sections.len() {
        check_rings(state, number)?;
        check_sblocks(state, number)?;
        check_cached(state, number)?;
        check_open(state, number)?;
    }
    Ok(())
}

fn ensure(holds: bool, invariant: u32, detail: impl FnOnce() -> String) -> Result<(), Violation> {
    if holds {
        return Ok(());
    }
    Err(Violation { layer: INFO.name, invariant, detail: detail() })
}

fn check_rings(state: &State, number: usize) -> Result<(), Violation> {
    let section = &state.sections[number];
    for ring in [&section.sblock_ring, &section.cache_ring] {
        let detail = || format!("section {number}: {} of {} sectors in use", ring.used(), ring.payload());
        ensure(ring.used() <= ring.payload(), 1, detail)?;
    }
    let slots = section.slots.len() as u64 * state.shape.sblock_sectors;
    let slots_detail = || format!("section {number}: slots of {slots} sectors, {} in use", section.sblock_ring.used());
    ensure(slots == section.sblock_ring.used(), 5, slots_detail)?;
    let entries: u64 = section.entries.iter().map(|(_, entry)| entry.sectors).sum();
    let entries_detail = || format!("section {number}: entries of {entries}, {} in use", section.cache_ring.used());
    ensure(entries == section.cache_ring.used(), 5, entries_detail)
}

fn sblocks_of(state: &State, number: usize) -> std::ops::Range<u64> {
    let native = state.shape.native_sblocks;
    number as u64 * native..(number as u64 + 1) * native
}

fn check_sblocks(state: &State, number: usize) -> Result<(), Violation> {
    let section = &state.sections[number];
    for sblock in sblocks_of(state, number) {
        let position = state.position(sblock);
        let offset =
            position.0.checked_sub(section.sblock_ring.tail().0).filter(|_| section.sblock_ring.holds(position));
        let slot = offset.and_then(|offset| section.slots.get((offset / state.shape.sblock_sectors) as usize));
        let aligned = offset.is_some_and(|offset| offset % state.shape.sblock_sectors == 0);
        let detail = || format!("S-block {sblock} at {position:?} lies in slot {slot:?} of section {number}");
        ensure(aligned && slot == Some(sblock), 2, detail)?;
    }
    Ok(())
}

fn check_cached(state: &State, number: usize) -> Result<(), Violation> {
    let section = &state.sections[number];
    let starts = entry_starts(section);
    let mut live = 0;
    for sblock in sblocks_of(state, number) {
        let cached = state.cached(number, sblock);
        let mut end = 0;
        for run in cached.runs() {
            let detail = || format!("S-block {sblock}: {run:?} after one that ends at {end}");
            ensure(run.sectors > 0 && run.offset >= end && run.end() as u64 <= state.shape.sblock_sectors, 3, detail)?;
            end = run.end();
            if !run.is_absent() {
                let lba = state.first_lba(sblock) + run.offset as u64;
                let within = lies_in_an_entry(&starts, run.position, lba, run.sectors as u64);
                ensure(within, 3, || format!("S-block {sblock}: {run:?} lies in no entry of LBA {lba}"))?;
                let marked = section.live.run_at(run.position, run.sectors as u64) == (true, run.sectors as u64);
                ensure(marked, 4, || format!("S-block {sblock}: {run:?} is not marked live"))?;
            }
        }
        live += cached.sectors() as u64;
    }
    let detail = || format!("section {number}: {live} live sectors, counted {}", section.live_sectors);
    ensure(live == section.live_sectors && live <= section.cache_ring.used(), 4, detail)?;
    let detail = || format!("section {number}: {live} live sectors, {} bits of such", section.live.count());
    ensure(live == section.live.count(), 4, detail)
}

/// Returns the entries of a section with their positions, in order.
fn entry_starts(section: &Section) -> Vec<(Position, Entry)> {
    let mut position = section.cache_ring.tail();
    let place = |(_, entry): (Spot, Entry)| {
        let start = position;
        position = position.plus(entry.sectors);
        (start, entry)
    };
    section.entries.iter().map(place).collect()
}

fn lies_in_an_entry(starts: &[(Position, Entry)], position: Position, lba: u64, sectors: u64) -> bool {
    let after = starts.partition_point(|(start, _)| *start <= position);
    let Some((start, entry)) = after.checked_sub(1).map(|index| starts[index]) else {
        return false;
    };
    let offset = position.0 - start.0;
    entry.lba != DEAD && offset + sectors <= entry.sectors && entry.lba + offset == lba
}

fn check_open(state: &State, number: usize) -> Result<(), Violation> {
    let section = &state.sections[number];
    let Some(open) = section.open else {
        return Ok(());
    };
    let newest = section.slots.back() == Some(open.sblock);
    let partly = open.filled > 0 && open.filled < state.shape.sblock_sectors;
    let elsewhere = state.position(open.sblock) != state.open_position(number);
    ensure(newest && partly && elsewhere, 6, || {
        format!("section {number}: {open:?}, slots end in {:?}", section.slots.back())
    })
}

impl Shape {
    /// Returns the bytes of memory that a controller would need for the map, with fields of whole bits: for each
    /// S-block its position in the ring, and for each 8 sectors of cache their block number and their position in the
    /// ring.
    pub(super) fn formula_bytes(&self) -> u64 {
        let sblock_bits = bits_for(self.native_sblocks + self.spare_sblocks);
        let blocks = (self.cache_sectors / CACHED_BLOCK_SECTORS).max(1);
        let cached_bits = bits_for(self.section_sectors().div_ceil(CACHED_BLOCK_SECTORS)) + bits_for(blocks);
        (self.sblocks() * sblock_bits + self.sections * blocks * cached_bits).div_ceil(8)
    }
}

/// Returns the number of bits that distinguish `count` values.
fn bits_for(count: u64) -> u64 {
    (u64::BITS - count.saturating_sub(1).leading_zeros()) as u64
}

impl State {
    /// Returns the bytes of memory that the structures of the map take in this program now.
    pub(super) fn measured_bytes(&self) -> u64 {
        let queues = |section: &Section| {
            section.slots.measured_bytes() + section.entries.measured_bytes() + section.live.measured_bytes()
        };
        let sections = (self.sections.capacity() * size_of::<Section>()) as u64;
        self.sblocks_bytes() + sections + self.sections.iter().map(queues).sum::<u64>()
    }
}
