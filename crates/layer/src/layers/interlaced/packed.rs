//! An array of three-bit values: five states of a track in 3 bits (Hajkazemi 2019 §2.2).
//!
//! Invariants:
//! 1. Value i takes bits 3i to 3i+2 of the bytes, low bits first. One spare byte at the end lets each value be read as
//!    a pair of bytes.

/// Number of bits in a value.
const BITS: usize = 3;

/// An array of numbers from 0 to 7, three bits each, in consecutive bits of memory.
#[derive(Clone, Debug)]
pub struct PackedStates {
    bytes: Vec<u8>,
    values: usize,
}

impl PackedStates {
    /// Returns an array of `values` numbers, all zero.
    pub fn new(values: usize) -> PackedStates {
        PackedStates { bytes: vec![0; packed_bytes(values as u64) as usize + 1], values }
    }

    /// Returns the number at `index`, counted from 0. `index` must be less than the length of the array; with a larger
    /// one the method panics or returns an arbitrary number.
    #[inline]
    pub fn get(&self, index: usize) -> u8 {
        let (byte, shift) = (index * BITS / 8, index * BITS % 8);
        let pair = u16::from_le_bytes([self.bytes[byte], self.bytes[byte + 1]]);
        (pair >> shift) as u8 & 0b111
    }

    /// Sets the number at `index`, counted from 0.
    ///
    /// # Panics
    ///
    /// If `value` is more than 7, or `index` is not less than the length of the array.
    pub fn set(&mut self, index: usize, value: u8) {
        assert!(value < 8 && index < self.values, "value {value} at {index} of {}", self.values);
        let (byte, shift) = (index * BITS / 8, index * BITS % 8);
        let pair = u16::from_le_bytes([self.bytes[byte], self.bytes[byte + 1]]);
        let pair = pair & !(0b111 << shift) | (value as u16) << shift;
        self.bytes[byte..byte + 2].copy_from_slice(&pair.to_le_bytes());
    }

    /// Returns all numbers that are not zero, each with its index, as (index, number), in order of index. Indices are
    /// counted from 0.
    pub fn set_values(&self) -> impl Iterator<Item = (u32, u8)> + '_ {
        // Eight values take three bytes, so zeros, most of a disk, are skipped three bytes at a time.
        let eights = (0..self.values.div_ceil(8)).filter(|eight| {
            let end = (BITS * eight + BITS).min(self.bytes.len());
            self.bytes[BITS * eight..end].iter().any(|&byte| byte != 0)
        });
        let each = eights.flat_map(|eight| 8 * eight..(8 * eight + 8).min(self.values));
        each.map(|index| (index as u32, self.get(index))).filter(|&(_, value)| value != 0)
    }

    /// Returns the bytes of memory that the array takes now.
    pub fn measured_bytes(&self) -> u64 {
        self.bytes.capacity() as u64
    }
}

/// Returns the number of bytes that `values` numbers of three bits each take, rounded up to a whole byte.
pub fn packed_bytes(values: u64) -> u64 {
    (values * BITS as u64).div_ceil(8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Checks that the packed array equals a plain one.
        #[test]
        fn equals_an_array(changes in prop::collection::vec((0usize..37, 0u8..8), 0..80)) {
            let mut packed = PackedStates::new(37);
            let mut twin = [0; 37];
            for (index, value) in changes {
                packed.set(index, value);
                twin[index] = value;
            }
            for (index, &value) in twin.iter().enumerate() {
                prop_assert_eq!(packed.get(index), value);
            }
            let set: Vec<_> = (0..37).map(|index| (index as u32, twin[index])).filter(|&(_, value)| value != 0).collect();
            prop_assert_eq!(packed.set_values().collect::<Vec<_>>(), set);
        }
    }
}
