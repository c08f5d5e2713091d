//! What was written to a cache buffer, from the tail on, at 12 bytes an entry.

use std::collections::VecDeque;

use super::state::DEAD;

/// What was written in one go; live as far as the S-blocks' runs still point into it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    /// The low and the high half of the first LBA.
    lba: [u32; 2],
    sectors: u32,
}

impl Entry {
    /// An entry; [`DEAD`] for an LBA that is not known any more.
    pub fn new(lba: u64, sectors: u64) -> Entry {
        let sectors = u32::try_from(sectors).expect("a cache buffer is shorter than 2³² sectors");
        Entry { lba: [lba as u32, (lba >> 32) as u32], sectors }
    }

    /// Its first LBA, or [`DEAD`].
    pub fn lba(&self) -> u64 {
        u64::from(self.lba[0]) | u64::from(self.lba[1]) << 32
    }

    /// How many sectors.
    pub fn sectors(&self) -> u64 {
        u64::from(self.sectors)
    }

    /// What is left of it without its first `sectors`.
    fn without(&self, sectors: u64) -> Entry {
        let lba = if self.lba() == DEAD { DEAD } else { self.lba() + sectors };
        Entry::new(lba, self.sectors() - sectors)
    }
}

/// The entries.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries(VecDeque<Entry>);

impl Entries {
    /// All of them, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter()
    }

    /// Entry `index`, counted from the oldest.
    pub fn get(&self, index: usize) -> Option<&Entry> {
        self.0.get(index)
    }

    /// The newest.
    pub fn back(&self) -> Option<&Entry> {
        self.0.back()
    }

    /// Adds one behind all others.
    pub fn push(&mut self, entry: Entry) {
        grow(&mut self.0);
        self.0.push_back(entry);
    }

    /// Takes `sectors` away from the oldest on.
    pub fn release(&mut self, mut sectors: u64) {
        while sectors > 0 {
            let oldest = self.0.front_mut().expect("entries cover the buffer: invariant 5");
            if oldest.sectors() > sectors {
                *oldest = oldest.without(sectors);
                return;
            }
            sectors -= oldest.sectors();
            self.0.pop_front();
        }
    }

    /// Takes all away.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Bytes that they take beside themselves.
    pub fn measured_bytes(&self) -> u64 {
        (self.0.capacity() * size_of::<Entry>()) as u64
    }
}

/// Makes room for one more, and where there was none for a few: an eighth of what there is, so that a thousand queues that grow
/// together do not take twice what they need.
pub(super) fn grow<T>(queue: &mut VecDeque<T>) {
    if queue.len() == queue.capacity() {
        queue.reserve_exact(4.max(queue.len() / 8));
    }
}
