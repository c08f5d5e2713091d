//! Bitmap of the live sectors of a cache buffer. A defrag finds the sectors to copy here, without searching the runs
//! for every entry.
//!
//! The low bits of a position are the index of its bit; they are the bits that the runs of the S-blocks store
//! ([`super::cached`]). The buffer is shorter than the range of these bits, so no two of its sectors share a bit.
//!
//! Invariants:
//! 1. A bit is set exactly where a run of an S-block lies; [`super::state`] changes both together.

use super::ring::Position;

const WORD_BITS: u64 = u64::BITS as u64;

/// A bitmap of the live sectors of one cache buffer, by the low bits of their positions.
#[derive(Clone, Debug)]
pub(super) struct LiveSectors {
    /// Words of the bitmap; empty until the first bit is set.
    words: Box<[u64]>,
    /// Number of bits, a power of two.
    bits: u64,
}

impl LiveSectors {
    /// Returns a bitmap without live sectors. `kept` is a mask of low bits: two positions with equal bits under the
    /// mask have one bit in the bitmap.
    pub(super) fn new(kept: u32) -> LiveSectors {
        LiveSectors { words: Box::default(), bits: u64::from(kept) + 1 }
    }

    /// Marks `sectors` sectors from `position` on as live.
    #[inline]
    pub(super) fn set(&mut self, position: Position, sectors: u64) {
        if self.words.is_empty() {
            self.words = vec![0; self.bits.div_ceil(WORD_BITS) as usize].into();
        }
        self.change(position.0, sectors, |word, mask| *word |= mask);
    }

    /// Marks `sectors` sectors as dead. `place` holds the low bits of the position of the first one.
    #[inline]
    pub(super) fn clear(&mut self, place: u32, sectors: u32) {
        self.change(u64::from(place), u64::from(sectors), |word, mask| *word &= !mask);
    }

    /// Returns whether the sector at `position` is live, and the number of consecutive sectors from there on, itself
    /// included, that are all live or all dead; at most `most`.
    #[inline]
    pub(super) fn run_at(&self, position: Position, most: u64) -> (bool, u64) {
        if self.words.is_empty() {
            return (false, most);
        }
        let (index, bit, _) = self.spot(position.0);
        let is_live = self.words[index] >> bit & 1 == 1;
        let mut alike = 0;
        while alike < most {
            let (index, bit, left) = self.spot(position.0 + alike);
            let word = self.words[index] >> bit;
            let run = u64::from(if is_live { word.trailing_ones() } else { word.trailing_zeros() });
            alike += run.min(left);
            if run < left {
                break;
            }
        }
        (is_live, alike.min(most))
    }

    /// Returns the number of live sectors in the whole buffer.
    pub(super) fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Returns the bytes of heap memory that the bitmap takes now.
    pub(super) fn measured_bytes(&self) -> u64 {
        size_of_val(&*self.words) as u64
    }

    /// Returns the index of the word of a position, the number of its bit in that word, and the number of bits from
    /// that bit to the end of the word.
    #[inline]
    fn spot(&self, position: u64) -> (usize, u64, u64) {
        let bit = position & (self.bits - 1);
        let left = (WORD_BITS - bit % WORD_BITS).min(self.bits - bit);
        ((bit / WORD_BITS) as usize, bit % WORD_BITS, left)
    }

    /// Calls `change` with each word that holds bits of `sectors` sectors from `first` on, and the mask of those bits.
    #[inline]
    fn change(&mut self, first: u64, sectors: u64, change: impl Fn(&mut u64, u64)) {
        let (mut next, end) = (first, first + sectors);
        while next < end {
            let (index, bit, left) = self.spot(next);
            let count = left.min(end - next);
            change(&mut self.words[index], (u64::MAX >> (WORD_BITS - count)) << bit);
            next += count;
        }
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the bitmap equals an array of booleans, even if it has fewer bits than a word or if a run wraps. Method:
    //! random sets and clears on both, with a comparison of runs after each.

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn equal_an_array(
            bits in prop::sample::select(vec![16u64, 64, 128, 1024]),
            base in prop::sample::select(vec![0u64, 1 << 32, 7 << 40]),
            steps in prop::collection::vec((0u64..1024, 1u64..200, any::<bool>()), 1..30),
        ) {
            let mut live = LiveSectors::new(bits as u32 - 1);
            let mut naive = vec![false; bits as usize];
            for (at, sectors, sets) in steps {
                let (at, sectors) = (at % bits, sectors.min(bits));
                (at..at + sectors).for_each(|sector| naive[(sector % bits) as usize] = sets);
                match sets {
                    true => live.set(Position(base + at), sectors),
                    false if live.words.is_empty() => continue,
                    false => live.clear(at as u32, sectors as u32),
                }
                let from = (at + 3) % bits;
                let alike = (0..50).take_while(|i| naive[((from + i) % bits) as usize] == naive[from as usize]).count();
                prop_assert_eq!(live.run_at(Position(base + from), 50), (naive[from as usize], alike as u64));
            }
            prop_assert_eq!(live.count(), naive.iter().filter(|&&is_live| is_live).count() as u64);
        }
    }
}
