//! Log of the writes to a cache buffer, from the tail on. An entry takes one 32-bit word, or four if it does not fit in
//! one.
//!
//! ```text
//!   short   LBA within the section │ sectors       the sectors in as many low bits as the LBAs of a section leave
//!   long    a zero in their place  │ LBA, two words │ sectors
//! ```
//!
//! Invariants:
//! 1. No entry is empty.

use std::collections::VecDeque;

use super::queue::{DEAD, grow};

/// One contiguous write to a cache buffer. Those of its sectors are live that the map still looks up there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    /// First LBA of the write, or [`DEAD`] if it is not known, because all sectors of the entry are dead: no LBA has
    /// its newest contents there.
    pub lba: u64,
    /// Number of sectors of the write, without those already released at its start. Live and dead sectors count.
    pub sectors: u64,
}

/// Words of a long entry.
const LONG_WORDS: usize = 4;
/// Most bits for the number of sectors in a short entry.
const SECTORS_BITS_MAX: u32 = 16;

/// The place of an entry in the log of writes of a cache buffer. Valid until entries are removed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Spot(usize);

/// The log of the writes to one cache buffer, from the oldest sector in use to the newest.
#[derive(Clone, Debug)]
pub(super) struct Entries {
    words: VecDeque<u32>,
    first_lba: u64,
    sectors_bits: u32,
}

impl Entries {
    /// The spot of the oldest entry, if there are entries.
    pub(super) const OLDEST: Spot = Spot(0);

    /// Returns an empty log for a section of `section_sectors` logical sectors that begins at `first_lba`.
    pub(super) fn new(first_lba: u64, section_sectors: u64) -> Entries {
        let lba_bits = u64::BITS - section_sectors.saturating_sub(1).leading_zeros();
        let sectors_bits = u32::BITS.saturating_sub(lba_bits).min(SECTORS_BITS_MAX);
        Entries { words: VecDeque::new(), first_lba, sectors_bits }
    }

    /// Returns all entries with their spots, in order of writing, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Spot, Entry)> + '_ {
        let mut spot = Entries::OLDEST;
        std::iter::from_fn(move || {
            let entry = self.get(spot)?;
            let at = spot;
            spot = self.behind(at);
            Some((at, entry))
        })
    }

    /// Returns the entry at a spot, or `None` if the spot lies after the newest entry.
    #[inline]
    pub(super) fn get(&self, Spot(at): Spot) -> Option<Entry> {
        let word = *self.words.get(at)?;
        Some(match self.short_sectors(word) {
            0 => Entry {
                lba: u64::from(self.words[at + 1]) | u64::from(self.words[at + 2]) << u32::BITS,
                sectors: u64::from(self.words[at + 3]),
            },
            sectors => {
                Entry { lba: self.first_lba + (u64::from(word) >> self.sectors_bits), sectors: u64::from(sectors) }
            }
        })
    }

    /// Returns the spot after that of an existing entry: the spot of the next entry, or of the end of the log.
    #[inline]
    pub(super) fn behind(&self, Spot(at): Spot) -> Spot {
        Spot(at + self.words_of(self.words[at]))
    }

    /// Returns the last 32-bit word of the log, or `None` if the log is empty. The caller prefetches its memory,
    /// because the next entry is written after it.
    #[inline]
    pub(super) fn end(&self) -> Option<&u32> {
        self.words.back()
    }

    /// Adds an entry as the newest one.
    pub(super) fn push(&mut self, entry: Entry) {
        match self.short(entry) {
            Some(word) => {
                grow(&mut self.words, 1);
                self.words.push_back(word);
            }
            None => {
                grow(&mut self.words, LONG_WORDS);
                self.words.extend(long(entry));
            }
        }
    }

    /// Removes `sectors` from the oldest entry on. An entry of which only a part is removed is shortened at its start.
    ///
    /// # Panics
    ///
    /// If the entries have fewer sectors in total.
    pub(super) fn release(&mut self, mut sectors: u64) {
        while sectors > 0 {
            let oldest = self.get(Entries::OLDEST).expect("entries cover the buffer: invariant 5");
            if oldest.sectors > sectors {
                return self.shorten_oldest(oldest, sectors);
            }
            sectors -= oldest.sectors;
            self.words.drain(..self.words_of(self.words[0]));
        }
    }

    /// Removes all entries.
    pub(super) fn clear(&mut self) {
        self.words.clear();
    }

    /// Returns the bytes of heap memory that the log takes now.
    pub(super) fn measured_bytes(&self) -> u64 {
        (self.words.capacity() * size_of::<u32>()) as u64
    }

    fn shorten_oldest(&mut self, oldest: Entry, sectors: u64) {
        let lba = if oldest.lba == DEAD { DEAD } else { oldest.lba + sectors };
        let rest = Entry { lba, sectors: oldest.sectors - sectors };
        match self.short_sectors(self.words[0]) {
            0 => long(rest).into_iter().zip(&mut self.words).for_each(|(word, place)| *place = word),
            _ => self.words[0] = self.short(rest).expect("the rest of a short entry is short"),
        }
    }

    fn words_of(&self, word: u32) -> usize {
        if self.short_sectors(word) == 0 { LONG_WORDS } else { 1 }
    }

    fn short_sectors(&self, word: u32) -> u32 {
        word & ((1 << self.sectors_bits) - 1)
    }

    /// Returns an entry as one word, or `None` if it does not fit.
    fn short(&self, entry: Entry) -> Option<u32> {
        let lba =
            entry.lba.checked_sub(self.first_lba).filter(|&lba| lba <= u64::from(u32::MAX >> self.sectors_bits))?;
        (entry.sectors >> self.sectors_bits == 0).then_some((lba << self.sectors_bits | entry.sectors) as u32)
    }
}

fn long(entry: Entry) -> [u32; LONG_WORDS] {
    let sectors = u32::try_from(entry.sectors).expect("a cache buffer is shorter than 2³¹ sectors");
    [0, entry.lba as u32, (entry.lba >> u32::BITS) as u32, sectors]
}

#[cfg(test)]
mod tests {
    //! Goal: the entries equal a queue. Method: random short and long entries are added to both and partly released.
    //! The sections have so many LBAs that many, few or no bits are left for the number of sectors.

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn entries_equal_a_queue(
            section_sectors in prop::sample::select(vec![1, 1000, 1 << 28, 1 << 32, 1 << 40]),
            steps in prop::collection::vec((any::<u64>(), 1u64..40, 0u64..30), 1..80),
        ) {
            let first = 3 * section_sectors;
            let (mut entries, mut twin) = (Entries::new(first, section_sectors), VecDeque::new());
            for (at, sectors, released) in steps {
                let lba = if at % 8 == 0 { DEAD } else { first + at % section_sectors };
                let sectors = if at % 16 == 1 { sectors << 20 } else { sectors };
                twin.push_back((lba, sectors));
                entries.push(Entry { lba, sectors });
                let mut left = released.min(twin.iter().map(|(_, sectors)| sectors).sum());
                entries.release(left);
                while left > 0 {
                    let (lba, sectors) = twin.pop_front().expect("no more is taken than there is");
                    let taken = sectors.min(left);
                    left -= taken;
                    if taken < sectors {
                        twin.push_front((if lba == DEAD { DEAD } else { lba + taken }, sectors - taken));
                    }
                }
                let held: VecDeque<_> = entries.iter().map(|(_, entry)| (entry.lba, entry.sectors)).collect();
                prop_assert_eq!(&held, &twin);
                prop_assert!(entries.iter().all(|(spot, entry)| entries.get(spot) == Some(entry)));
            }
            entries.clear();
            prop_assert!(entries.get(Entries::OLDEST).is_none());
        }
    }

    #[test]
    fn an_entry_takes_one_word_where_it_fits() {
        // 2²⁴ LBAs leave 8 bits: up to 255 sectors.
        for (lba, sectors, words) in [(77 + (1 << 24) - 1, 255, 1), (77, 256, 4), (DEAD, 1, 4)] {
            let mut entries = Entries::new(77, 1 << 24);
            entries.push(Entry { lba, sectors });
            assert_eq!(entries.words.len(), words, "{sectors} sectors at {lba}");
        }
    }
}
