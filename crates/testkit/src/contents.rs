//! What a test writes into a sector, such that the sector says by itself which write put it there.
//!
//! A stamped sector begins with 32 bytes: a magic number mixed with the seed, its own number, the version of the write,
//! and a mix of the three. What follows is zeros, or the stamp again and again. Of the blocks of 4 KiB of one write only a
//! share is stamped, the others are zeros, so that images of large writes stay small; which ones follows from number and
//! version.
//!
//! Invariants:
//! 1. Two stamped sectors of the same bytes have the same seed, number and version.
//! 2. A sector that is torn, or holds bytes of two writes, matches no value.

use std::fmt;

use crate::random::mix;

const STAMP_BYTES: usize = 32;
const BLOCK_BYTES: u64 = 4096;
const MAGIC: u64 = 0x696d_6272_6578_7465;

/// What a sector holds, as the one who wrote it knows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Value {
    /// Nothing was ever written, or it was trimmed or zeroed.
    Zeros,
    /// The bytes of the write of this number; numbers begin with 1.
    Version(u64),
    /// It reads as an error, for its host wrote so close to it that the drive may have destroyed it.
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

/// How sectors are filled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contents {
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// Sectors stamped with another seed are strangers.
    pub seed: u64,
    /// One block of 4 KiB in so many is stamped, each of its sectors; with 1 every one.
    pub stamped_in: u64,
    /// Whether the stamp fills the sector; otherwise zeros follow it.
    pub is_full: bool,
}

impl Contents {
    /// Whether the write `version` stamps `sector`.
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

    /// Fills the bytes of the sectors from `first` on.
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

    /// Whether `bytes`, read from `sector`, are what `value` put there.
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

    /// What `bytes` seem to be, for a report.
    pub fn describe(&self, bytes: &[u8]) -> String {
        if is_zeros(bytes) {
            return "zeros".into();
        }
        let word = |index: usize| u64::from_le_bytes(bytes[index * 8..][..8].try_into().expect("eight bytes"));
        let (sector, version) = (word(1), word(2));
        if bytes[..STAMP_BYTES] != self.stamp(sector, version) {
            return format!("bytes that nobody wrote: {:016x} {:016x} …", word(0), word(1));
        }
        let whole = if self.is(bytes, sector, Value::Version(version)) { "" } else { ", torn" };
        format!("version {version} of sector {sector}{whole}")
    }
}

/// Whether all bytes are 0.
pub fn is_zeros(bytes: &[u8]) -> bool {
    let words = bytes.chunks_exact(16);
    let rest = words.remainder().iter().all(|&byte| byte == 0);
    rest && words.into_iter().all(|word| *word == [0; 16])
}

#[cfg(test)]
mod tests {
    //! Goal: a sector matches the write that made it and no other. Method: sectors filled, altered in each byte, moved.

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
