//! Which sectors of a cache buffer are live, a bit for each: so a defrag sees what it has to copy without a search for every entry.
//!
//! A position is the bit of its low bits, as the runs of the S-blocks keep them ([`super::cached`]). The buffer is shorter than what
//! these bits count, so no two of its sectors share one.
//!
//! Invariants:
//! 1. A bit is set just where a run of an S-block lies; [`super::state`] changes both together.

use super::ring::Position;

const WORD_BITS: u64 = u64::BITS as u64;

/// The bits of one buffer.
#[derive(Clone, Debug)]
pub(super) struct LiveSectors {
    /// Made when the first is set.
    words: Box<[u64]>,
    /// How many bits there are, a power of two.
    bits: u64,
}

impl LiveSectors {
    /// None, in a buffer of whose positions the bits `kept` are kept.
    pub fn new(kept: u32) -> LiveSectors {
        LiveSectors { words: Box::default(), bits: u64::from(kept) + 1 }
    }

    /// Sets the bits of `sectors` from `position` on.
    #[inline]
    pub fn set(&mut self, position: Position, sectors: u64) {
        if self.words.is_empty() {
            self.words = vec![0; self.bits.div_ceil(WORD_BITS) as usize].into();
        }
        self.change(position.0, sectors, |word, mask| *word |= mask);
    }

    /// Clears the bits of `sectors` from the place on that a run keeps of its position.
    #[inline]
    pub fn clear(&mut self, place: u32, sectors: u32) {
        self.change(u64::from(place), u64::from(sectors), |word, mask| *word &= !mask);
    }

    /// Returns whether the sector at `position` is live, and how many from it on are alike, at most `most`.
    #[inline]
    pub fn run_at(&self, position: Position, most: u64) -> (bool, u64) {
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

    /// How many are live.
    pub fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Bytes that they take beside themselves.
    pub fn measured_bytes(&self) -> u64 {
        size_of_val(&*self.words) as u64
    }

    /// The word of a position, its bit in that, and how many bits the word has from there on.
    #[inline]
    fn spot(&self, position: u64) -> (usize, u64, u64) {
        let bit = position & (self.bits - 1);
        let left = (WORD_BITS - bit % WORD_BITS).min(self.bits - bit);
        ((bit / WORD_BITS) as usize, bit % WORD_BITS, left)
    }

    /// Changes the bits of `sectors` from `first` on, word by word.
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
    //! Goal: the bits equal an array of booleans, also where there are fewer than a word has or a run goes round. Method: random sets and
    //! clears on both, and every run compared.

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
