//! The dirty ranges in slots, with their order by age as a linked list.
//!
//! Invariants:
//! 1. The list contains every slot in use, ordered by the number of the oldest write.
//! 2. A slot that is not in use is in the list of free slots.

/// The number that means no slot.
const NONE: u32 = u32::MAX;

/// A dirty range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dirty {
    pub start: u64,
    pub end: u64,
    /// Number, in the order of the workload, of the oldest write in the dirty range.
    pub sequence: u64,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    older: u32,
    newer: u32,
}

/// All dirty ranges, linked in order of age.
#[derive(Clone, Debug)]
pub(super) struct Ages {
    ranges: Vec<Dirty>,
    links: Vec<Link>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
}

impl Default for Ages {
    fn default() -> Ages {
        Ages { ranges: Vec::new(), links: Vec::new(), free: Vec::new(), oldest: NONE, newest: NONE }
    }
}

impl Ages {
    /// Returns the range in `slot`.
    #[inline]
    pub(super) fn get(&self, slot: u32) -> Dirty {
        self.ranges[slot as usize]
    }

    /// Returns the oldest range.
    #[inline]
    pub(super) fn oldest(&self) -> Option<Dirty> {
        self.ranges.get(self.oldest as usize).copied()
    }

    /// Adds `dirty`, and returns its slot.
    pub(super) fn add(&mut self, dirty: Dirty) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.ranges.push(dirty);
            self.links.push(Link { older: NONE, newer: NONE });
            self.ranges.len() as u32 - 1
        });
        self.ranges[slot as usize] = dirty;
        self.link(slot);
        slot
    }

    /// Replaces the range in `slot`.
    #[inline]
    pub(super) fn set(&mut self, slot: u32, dirty: Dirty) {
        let was = std::mem::replace(&mut self.ranges[slot as usize], dirty);
        if was.sequence != dirty.sequence {
            self.unlink(slot);
            self.link(slot);
        }
    }

    /// Frees `slot`.
    pub(super) fn remove(&mut self, slot: u32) {
        self.unlink(slot);
        self.free.push(slot);
    }

    /// Links `slot` behind all ranges that are as old or older. Nearly always that is at one of the two ends of the
    /// list.
    fn link(&mut self, slot: u32) {
        let sequence = self.get(slot).sequence;
        let is_first = self.oldest().is_none_or(|oldest| sequence < oldest.sequence);
        let mut older = if is_first { NONE } else { self.newest };
        while older != NONE && self.get(older).sequence > sequence {
            older = self.links[older as usize].older;
        }
        let newer = if older == NONE { self.oldest } else { self.links[older as usize].newer };
        self.links[slot as usize] = Link { older, newer };
        self.join(older, slot);
        self.join(slot, newer);
    }

    fn unlink(&mut self, slot: u32) {
        let Link { older, newer } = self.links[slot as usize];
        self.join(older, newer);
    }

    /// Makes `newer` the successor of `older` in the list; either may be `NONE`, for an end of the list.
    fn join(&mut self, older: u32, newer: u32) {
        match older {
            NONE => self.oldest = newer,
            _ => self.links[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            _ => self.links[newer as usize].older = older,
        }
    }
}
