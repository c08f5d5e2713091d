//! Policies that choose the S-block to destage (Cassuto 2010 §V.C). The choice determines the longest wait of a write.
//!
//! Invariants:
//! 1. The chosen S-block has live sectors in the cache: destaging it frees some.
//! 2. The choice depends on the map alone; ties go to the S-block nearest the tail of the S-block buffer.

use super::queue::DEAD;
use super::state::State;

/// A destage policy: the rule that chooses the S-block whose cached sectors are merged into a new copy, to free cache
/// space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Policy {
    /// The S-block with cached sectors whose copy is nearest to the tail of the S-block buffer.
    ClosestToTail,
    /// The S-block with the most cached sectors; of several, the one nearest to the tail of the S-block buffer.
    MostCachedBlocks,
    /// The S-block to which the oldest live sectors of the cache buffer belong.
    CacheTail,
    /// A combination of the first two: of the S-blocks with cached sectors, the nearest to the tail of the S-block
    /// buffer, as many as a quarter of the buffer holds, are candidates; the one with the most cached sectors is
    /// chosen.
    MostCachedNearTail,
}

/// Share of the S-block buffer that holds the candidates of [`Policy::MostCachedNearTail`]: one in this many.
const NEAR_TAIL: usize = 4;

impl Policy {
    /// The names of the policies in parameters, in the order of the variants.
    pub(super) const NAMES: &'static [&'static str] =
        &["closest-to-tail", "most-cached-blocks", "cache-tail", "most-cached-near-tail"];

    /// Returns the policy called `name`, which must be one of [`Policy::NAMES`]; any other name gives
    /// [`Policy::ClosestToTail`].
    pub(super) fn named(name: &str) -> Policy {
        match name {
            "most-cached-blocks" => Policy::MostCachedBlocks,
            "cache-tail" => Policy::CacheTail,
            "most-cached-near-tail" => Policy::MostCachedNearTail,
            _ => Policy::ClosestToTail,
        }
    }

    /// Returns the number of the S-block to destage in `section`.
    ///
    /// # Panics
    ///
    /// If the section has no live sectors in the cache.
    pub(super) fn choose(self, state: &State, section: usize) -> u64 {
        let chosen = match self {
            Policy::ClosestToTail => in_order_of_slots(state, section).next(),
            Policy::MostCachedBlocks => {
                // `max_by_key` returns the last of several equal S-blocks: in the order from head to tail, that is the
                // one nearest the tail.
                let sectors = |sblock: &u64| state.cached(section, *sblock).sectors();
                in_order_of_slots(state, section).rev().max_by_key(sectors)
            }
            Policy::CacheTail => oldest_cached(state, section),
            Policy::MostCachedNearTail => {
                let candidates = state.sections[section].slots.len().div_ceil(NEAR_TAIL);
                let sectors = |sblock: u64| state.cached(section, sblock).sectors();
                let more = |best, next| if sectors(next) > sectors(best) { next } else { best };
                in_order_of_slots(state, section).take(candidates).reduce(more)
            }
        };
        chosen.expect("a section with live cached sectors has an S-block they belong to")
    }
}

/// Returns the S-blocks of a section that have cached sectors, from the tail of the S-block buffer on.
fn in_order_of_slots(state: &State, section: usize) -> impl DoubleEndedIterator<Item = u64> + '_ {
    let slots = &state.sections[section].slots;
    (0..slots.len()).filter_map(move |index| {
        let sblock = slots.get(index)?;
        let holds = sblock != DEAD && state.is_in_slot(sblock, section, index);
        (holds && state.cached(section, sblock).sectors() > 0).then_some(sblock)
    })
}

/// Returns the S-block of the first live piece from the tail of the cache buffer on.
fn oldest_cached(state: &State, section: usize) -> Option<u64> {
    let mut position = state.sections[section].cache_ring.tail();
    for (spot, entry) in state.sections[section].entries.iter() {
        let mut skip = 0;
        while skip < entry.sectors {
            let piece = state.entry_piece(section, spot, skip, position)?;
            if piece.live {
                return Some(piece.lba / state.shape.sblock_sectors);
            }
            skip += piece.sectors;
            position = position.plus(piece.sectors);
        }
    }
    None
}
