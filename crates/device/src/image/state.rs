//! The state of an image: era, valid journal, epochs, number of slots and of records. It is rewritten at every barrier,
//! alternately in two places, each with three copies far apart.
//!
//! Everything that a state says was durable before the state was written. So if a power cut loses a state, the previous
//! one is still correct, only older. A flush follows where the image depends on the new state
//! ([`super::Space::update`]), and before a flush of the host is answered ([`crate::store::Store::flush`]).
//!
//! Invariants:
//! 1. The valid state is the undamaged one with the highest generation.
//! 2. A state lies in one block, which a power cut leaves old or new: a copy that is neither is damaged.

use super::checksum::Salt;

/// Size of a state in bytes.
pub(super) const STATE_BYTES: usize = 72;
const MAGIC: u32 = 0x5354_4154;

/// State of an image: its valid journal, its era and epochs, and how many slots and records exist. It is rewritten at
/// every barrier after a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct State {
    /// Number of times that the state was written. The two places of the state are used alternately: even generations
    /// lie in place 0, odd ones in place 1.
    pub generation: u64,
    /// Number of the current era. Each barrier after a change, and each update of the state, increments the number. All
    /// writes of earlier eras are durable.
    pub era: u64,
    /// Number of the valid journal: 0 or 1. The other one is unused until the next checkpoint.
    pub journal: u32,
    /// Number of the epoch in which the valid journal begins. Records of earlier epochs in its place are leftovers.
    pub journal_epoch: u32,
    /// Number of the current epoch. Each opening for writing and each checkpoint begins a new one.
    pub epoch: u32,
    /// Whether the image was closed cleanly, and not opened for writing since.
    pub is_sealed: bool,
    /// Number of prepared slots: the slots from 0 to `slot_mark` − 1. A slot is the place of one chunk in the image
    /// file. A prepared slot has a slot header and a sector table in the file.
    pub slot_mark: u64,
    /// Number of slots (places for a chunk in the image file) that were assigned to chunks when the state was written.
    /// More may have been assigned since.
    pub slots_given: u64,
    /// Number of records that were durable in the valid journal when the state was written. More may have been appended
    /// since.
    pub journal_records: u64,
}

impl State {
    /// Returns the bytes of the state on the medium.
    pub(super) fn bytes(&self, salt: Salt) -> [u8; STATE_BYTES] {
        let mut bytes = [0; STATE_BYTES];
        bytes[4..8].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.generation.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.era.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.journal.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.journal_epoch.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[36..40].copy_from_slice(&u32::from(self.is_sealed).to_le_bytes());
        bytes[40..48].copy_from_slice(&self.slot_mark.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.slots_given.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.journal_records.to_le_bytes());
        let sum = salt.sum(self.place(), &bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Returns the state in `bytes`, or `None` if it is damaged or does not belong to `place`.
    pub(super) fn parse(bytes: &[u8; STATE_BYTES], salt: Salt, place: u64) -> Option<State> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let is_whole = word(0) == salt.sum(place, &bytes[4..]) && word(4) == MAGIC && word(24) < 2 && word(36) < 2;
        is_whole
            .then(|| State {
                generation: long(8),
                era: long(16),
                journal: word(24),
                journal_epoch: word(28),
                epoch: word(32),
                is_sealed: word(36) == 1,
                slot_mark: long(40),
                slots_given: long(48),
                journal_records: long(56),
            })
            .filter(|state| state.place() == place)
    }

    /// Returns the place of the state, 0 or 1.
    pub(super) fn place(&self) -> u64 {
        self.generation % 2
    }
}
