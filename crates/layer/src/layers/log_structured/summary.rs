//! Summary of a zone: the blocks appended to the zone, in order. It takes four bytes for an append of one block, and
//! twelve for a longer one.
//!
//! Invariants:
//! 1. Entries are not empty. Those of more than one block are listed in `longer`, in order.

use crate::map::short_run::ABSENT;

/// A run of consecutive logical blocks that were appended to a zone one after the other. `block` is the first of them,
/// or [`ABSENT`] for a dead part of the zone; `blocks` is their number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub block: u32,
    pub blocks: u32,
}

/// Length of an entry of more than one block.
#[derive(Clone, Copy, Debug)]
struct Longer {
    index: u32,
    blocks: u32,
}

/// The summary of a zone: the logical blocks that were appended to the zone, in order, as entries.
#[derive(Clone, Debug, Default)]
pub(super) struct Summary {
    firsts: Vec<u32>,
    longer: Vec<Longer>,
}

impl Summary {
    /// Returns the entry at `index`, counted from 0, or `None` if there are not as many entries.
    pub(super) fn get(&self, index: usize) -> Option<Entry> {
        let block = *self.firsts.get(index)?;
        let at = self.longer.binary_search_by_key(&index, |longer| longer.index as usize);
        Some(Entry { block, blocks: at.map_or(1, |at| self.longer[at].blocks) })
    }

    /// Returns all entries, in the order in which they were appended.
    pub(super) fn iter(&self) -> impl Iterator<Item = Entry> + '_ {
        let mut longer = self.longer.iter().peekable();
        (0..).zip(&self.firsts).map(move |(index, &block)| {
            let blocks = longer.next_if(|longer| longer.index == index).map_or(1, |longer| longer.blocks);
            Entry { block, blocks }
        })
    }

    /// Appends an entry, even if its blocks follow those of the last entry.
    pub(super) fn push(&mut self, entry: Entry) {
        if entry.blocks > 1 {
            self.longer.push(Longer { index: self.firsts.len() as u32, blocks: entry.blocks });
        }
        self.firsts.push(entry.block);
    }

    /// Appends the `blocks` logical blocks from `block` on. They extend the last entry if they follow its blocks;
    /// otherwise they become an entry.
    pub(super) fn append(&mut self, block: u32, blocks: u32) {
        let last_index = self.firsts.len().wrapping_sub(1);
        let is_longer = self.longer.last().is_some_and(|longer| longer.index as usize == last_index);
        match (self.firsts.last(), self.longer.last_mut().filter(|_| is_longer)) {
            (Some(&first), Some(last)) if first != ABSENT && block == first + last.blocks => last.blocks += blocks,
            (Some(&first), None) if first != ABSENT && block == first + 1 => {
                self.longer.push(Longer { index: last_index as u32, blocks: 1 + blocks });
            }
            _ => self.push(Entry { block, blocks }),
        }
    }

    /// Frees unused capacity, because no more entries will be added.
    pub(super) fn close(&mut self) {
        self.firsts.shrink_to_fit();
        self.longer.shrink_to_fit();
    }

    /// Returns the bytes of heap memory that the summary takes.
    pub(super) fn measured_bytes(&self) -> u64 {
        (self.firsts.capacity() * size_of::<u32>() + self.longer.capacity() * size_of::<Longer>()) as u64
    }
}

#[cfg(test)]
mod tests {
    //! Goal: a summary equals a vector of entries. Method: random appends and pushes on both, many of which continue
    //! the last entry.

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_a_vector(steps in prop::collection::vec((0u8..6, 0u32..9, 1u32..4), 0..60)) {
            let (mut summary, mut twin) = (Summary::default(), Vec::<Entry>::new());
            for (what, block, blocks) in steps {
                let next = twin.last().filter(|last| last.block != ABSENT).map(|last| last.block + last.blocks);
                let block = if what < 3 { next.unwrap_or(block) } else { block };
                match twin.last_mut() {
                    _ if what == 5 => twin.push(Entry { block: ABSENT, blocks }),
                    Some(last) if next == Some(block) => last.blocks += blocks,
                    _ => twin.push(Entry { block, blocks }),
                }
                if what == 5 {
                    summary.push(Entry { block: ABSENT, blocks });
                } else {
                    summary.append(block, blocks);
                }
                prop_assert_eq!(summary.iter().collect::<Vec<_>>(), twin.clone());
            }
            (0..=twin.len()).for_each(|index| assert_eq!(summary.get(index), twin.get(index).copied()));
            summary.close();
            let longer = twin.iter().filter(|entry| entry.blocks > 1).count();
            prop_assert_eq!(summary.measured_bytes() as usize, twin.len() * 4 + longer * 8);
        }
    }
}
