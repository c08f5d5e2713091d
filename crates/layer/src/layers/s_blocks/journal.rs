//! The checkpoint: the records (see [`super::record`]) that rebuild the present map in a fresh layer. A section that
//! was never written needs none but those of its trims.
//!
//! Invariants:
//! 1. The records of a section come in this order: restart, S-blocks by position, the stream's slot, cached runs by
//!    position, trims, heads. No record lies before the head that the records before it give.

use imbrex_disk::{Lba, Sectors};

use super::cached::CachedRun;
use super::queue::DEAD;
use super::record::Record;
use super::state::State;
use crate::plan::note::Note;

/// Appends to `notes` the journal records from which [`State::apply`] rebuilds `state`.
pub(super) fn checkpoint(state: &State, notes: &mut Vec<Note>) {
    for section in 0..state.sections.len() {
        if has_changed(state, section) {
            checkpoint_section(state, section, notes);
        } else {
            trims(state, section, notes);
        }
    }
}

/// Returns whether anything was ever written in the section.
fn has_changed(state: &State, section: usize) -> bool {
    let section = &state.sections[section];
    section.cache_ring.head().0 > 0 || section.sblock_ring.head().0 > state.shape.section_sectors()
}

fn checkpoint_section(state: &State, number: usize, notes: &mut Vec<Note>) {
    let section = &state.sections[number];
    let (sblock_tail, cache_tail) = (section.sblock_ring.tail(), section.cache_ring.tail());
    notes.push(Record::Restart { section: number as u64, sblock_tail, cache_tail }.encode());
    for (index, sblock) in section.slots.iter().enumerate() {
        let position = sblock_tail.plus(index as u64 * state.shape.sblock_sectors);
        if sblock != DEAD && state.position(sblock) == position {
            notes.push(Record::Placed { sblock, position, tail: sblock_tail, is_direct: false }.encode());
        }
    }
    if let Some(open) = section.open {
        let position = state.open_position(number);
        let (sblock, filled_sectors) = (open.sblock, open.filled);
        notes.push(Record::Streamed { sblock, position, filled_sectors, tail: sblock_tail }.encode());
    }
    cached_runs(state, number, notes);
    trims(state, number, notes);
    let (sblock_head, cache_head) = (section.sblock_ring.head(), section.cache_ring.head());
    notes.push(Record::Heads { section: number as u64, sblock_head, cache_head }.encode());
}

/// Appends the records of the live pieces of the cache buffer, from the tail on.
fn cached_runs(state: &State, number: usize, notes: &mut Vec<Note>) {
    let tail = state.sections[number].cache_ring.tail();
    let mut position = tail;
    for (spot, entry) in state.sections[number].entries.iter() {
        let mut skip = 0;
        while skip < entry.sectors {
            let piece = state.entry_piece(number, spot, skip, position).expect("the entry is there");
            if piece.live {
                let (lba, sectors) = (Lba(piece.lba), Sectors(piece.sectors));
                notes.push(Record::Cached { lba, sectors, position, tail }.encode());
            }
            skip += piece.sectors;
            position = position.plus(piece.sectors);
        }
    }
}

fn trims(state: &State, number: usize, notes: &mut Vec<Note>) {
    let native = state.shape.native_sblocks;
    for sblock in number as u64 * native..(number as u64 + 1) * native {
        for run in state.cached(number, sblock).runs().filter(CachedRun::is_absent) {
            let lba = Lba(state.first_lba(sblock) + run.offset as u64);
            notes.push(Record::Trimmed { lba, sectors: Sectors(run.sectors as u64) }.encode());
        }
    }
}
