//! Contents of sectors in tests: a sector's bytes identify the write that wrote it.
//!
//! A stamped sector begins with 32 bytes: a magic number mixed with the seed, the sector's number, the version of the
//! write, and a mix of the three. The rest of the sector is zeros, or repeats the stamp. Only a share of the 4 KiB
//! blocks of a write is stamped, and the others are zeros, so that images of large writes stay small. Seed, block
//! number and version determine whether a block is stamped.
//!
//! Invariants:
//! 1. Two stamped sectors with equal bytes have equal seeds, numbers and versions.
//! 2. A sector that is torn, or holds bytes of two writes, matches no value.

use std::fmt;

use crate::random::mix;

const STAMP_BYTES: usize = 32;
const BLOCK_BYTES: u64 = 4096;
const MAGIC: u64 = 0x696d_6272_6578_7465;

/// The contents of a sector, as the test that wrote it knows them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Value {
    /// The sector was never written, or was trimmed or zeroed.
    Zeros,
    /// The bytes of the write with this number, counted from 1. They are zeros if that write does not stamp the sector.
    Version(u64),
    /// The sector reads as an error, because the host wrote so close to it that the drive may have destroyed it.
    Unreadable,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Zeros => write!(f, "zeros"),
            Value::Version(version) => write!(f, "version {version}"),
            Value::Unreadable => write!(f, "an error"),
        }
    }
}

/// The rule by which the sectors of a write are filled: each stamped sector begins with a stamp of 32 bytes that
/// identifies the sector and the write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contents {
    /// Size of a sector in bytes.
    pub sector_bytes: u32,
    /// Seed of the stamps: a sector stamped with another seed does not match.
    pub seed: u64,
    /// On average, one 4 KiB block in this many is stamped, in each of its sectors; the others are zeros. 1 stamps
    /// every block.
    pub stamped_in: u64,
    /// Whether the stamp is repeated over the whole sector; otherwise zeros follow the stamp.
    pub is_full: bool,
}

impl Contents {
    /// Returns whether the write `version` stamps `sector`.
    fn is_stamped(&self, sector: u64, version: u64) -> bool {
        let block = sector * u64::from(self.sector_bytes) / BLOCK_BYTES;
        self.stamped_in == 1 || mix(mix(self.seed ^ block) ^ version).is_multiple_of(self.stamped_in)
    }

    fn stamp(&self, sector: u64, version: u64) -> [u8; STAMP_BYTES] {
        let words = [MAGIC ^ mix(self.seed), sector, version, mix(mix(self.seed ^ sector) ^ version)];
        let mut bytes = [0; STAMP_BYTES];
        for (into, word) in bytes.chunks_exact_mut(8).zip(words) {
            into.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Fills `into` with the contents `value` of the sectors from number `first` on. `into` must be whole sectors.
    /// [`Value::Unreadable`] gives zeros.
    pub fn fill(&self, into: &mut [u8], first: u64, value: Value) {
        for (sector, bytes) in (first..).zip(into.chunks_exact_mut(self.sector_bytes as usize)) {
            bytes.fill(0);
            let Value::Version(version) = value else { continue };
            if !self.is_stamped(sector, version) {
                continue;
            }
            let stamp = self.stamp(sector, version);
            let repeats = if self.is_full { bytes.len() / STAMP_BYTES } else { 1 };
            bytes.chunks_exact_mut(STAMP_BYTES).take(repeats).for_each(|chunk| chunk.copy_from_slice(&stamp));
        }
    }

    /// Returns whether `bytes`, read from the one sector number `sector`, are exactly the contents `value`. A write
    /// that does not stamp the sector gives zeros. Returns false for [`Value::Unreadable`].
    pub fn is(&self, bytes: &[u8], sector: u64, value: Value) -> bool {
        let version = match value {
            Value::Version(version) if self.is_stamped(sector, version) => version,
            Value::Version(_) | Value::Zeros => return is_zeros(bytes),
            Value::Unreadable => return false,
        };
        let stamp = self.stamp(sector, version);
        let (stamped, zeros) = bytes.split_at(if self.is_full { bytes.len() } else { STAMP_BYTES });
        stamped.chunks_exact(STAMP_BYTES).all(|chunk| chunk == stamp) && is_zeros(zeros)
    }

    /// Returns a description of `bytes`, the contents of one sector, for a report: "zeros", the version and the sector
    /// of its stamp, or bytes of no version.
    pub fn describe(&self, bytes: &[u8]) -> String {
        if is_zeros(bytes) {
            return "zeros".into();
        }
        let word = |index: usize| u64::from_le_bytes(bytes[index * 8..][..8].try_into().expect("eight bytes"));
        let (sector, version) = (word(1), word(2));
        if bytes[..STAMP_BYTES] != self.stamp(sector, version) {
            return format!("bytes of no version: {:016x} {:016x} …", word(0), word(1));
        }
        let whole = if self.is(bytes, sector, Value::Version(version)) { "" } else { ", torn" };
        format!("version {version} of sector {sector}{whole}")
    }
}

/// Returns whether all bytes are 0; true for an empty slice.
pub fn is_zeros(bytes: &[u8]) -> bool {
    let words = bytes.chunks_exact(16);
    let rest = words.remainder().iter().all(|&byte| byte == 0);
    rest && words.into_iter().all(|word| *word == [0; 16])
}

#[cfg(test)]
mod tests {
    //! Goal: a sector matches the write that wrote it and no other. Method: sectors are filled, altered in each byte,
    //! and read as another sector.

    use super::*;

    const SPARSE: Contents = Contents { sector_bytes: 512, seed: 3, stamped_in: 1, is_full: false };

    fn sector(contents: &Contents, number: u64, value: Value) -> Vec<u8> {
        let mut bytes = vec![0xee; contents.sector_bytes as usize];
        contents.fill(&mut bytes, number, value);
        bytes
    }

    #[test]
    fn every_altered_byte_is_seen() {
        for contents in [SPARSE, Contents { is_full: true, ..SPARSE }] {
            for value in [Value::Zeros, Value::Version(7)] {
                let bytes = sector(&contents, 40, value);
                assert!(contents.is(&bytes, 40, value));
                for index in 0..bytes.len() {
                    let mut altered = bytes.clone();
                    altered[index] ^= 0x10;
                    assert!(!contents.is(&altered, 40, value), "byte {index} of {value}");
                }
            }
        }
    }

    #[test]
    fn other_places_versions_and_seeds_are_strangers() {
        let bytes = sector(&SPARSE, 40, Value::Version(7));
        assert!(!SPARSE.is(&bytes, 41, Value::Version(7)));
        assert!(!SPARSE.is(&bytes, 40, Value::Version(8)));
        assert!(!SPARSE.is(&bytes, 40, Value::Zeros));
        assert!(!Contents { seed: 4, ..SPARSE }.is(&bytes, 40, Value::Version(7)));
    }

    #[test]
    fn one_block_in_so_many_is_stamped() {
        let contents = Contents { stamped_in: 16, ..SPARSE };
        let stamped =
            (0..128_000).step_by(8).filter(|&number| !is_zeros(&sector(&contents, number, Value::Version(1)))).count();
        assert!((900..1100).contains(&stamped), "{stamped} of 16,000");
    }
}
