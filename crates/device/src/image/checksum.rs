//! Checksums of an image: CRC-32C, seeded with the image's UUID, the kind of data and its address. So a piece that was
//! copied from another image, or moved within this one, fails its check.
//!
//! Sectors of contents are checksummed four at a time if the processor has an instruction for CRC-32C. A single
//! checksum waits three cycles for each result; four in parallel keep the unit busy. The tests compare with the crate
//! `crc32c`.
//!
//! A CRC is linear: the checksum of contents at an address is the checksum of zeros at that address, xor a part that
//! depends on the contents alone ([`parts`]). That part is computed when the contents arrive, while the processor's
//! caches still hold them. The address is added when the contents are written to their place ([`Places`]). The result
//! equals a checksum computed there.
//!
//! Invariants:
//! 1. The checksum of a sector is never one of the [`codes`](super::sectors) that stand for "never written",
//!    "destroyed", "zeros" or "lost".
//! 2. For all contents and addresses, [`Places::sums`] of the part equals [`Salt::sum`] of the contents, except for
//!    checksums that invariant 1 changes.

use uuid::Uuid;

/// Values below this are codes in a sector table, not checksums.
pub(crate) const FIRST_SUM: u32 = 4;

/// Kind of data that a checksum is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum What {
    State = 1,
    Directory = 2,
    SlotHeader = 3,
    SectorTable = 4,
    Journal = 5,
    Disk = 6,
    Flash = 7,
    FileMark = 8,
    Digest = 9,
    Restore = 10,
}

/// Seed of the checksums for one kind of data in one image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Salt(u32);

impl Salt {
    /// Returns the seed for data of the kind `what` in the image `uuid`.
    pub(crate) fn new(uuid: Uuid, what: What) -> Salt {
        Salt(crc32c::crc32c_append(crc32c::crc32c(uuid.as_bytes()), &[what as u8]))
    }

    /// Returns the checksum of `bytes` at `address`.
    pub(crate) fn sum(self, address: u64, bytes: &[u8]) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c_append(self.0, &address.to_le_bytes()), bytes)
    }

    /// Calls `each` with the index and the checksum of every sector of `bytes`; the first sector has the address
    /// `first`.
    pub(crate) fn sectors(self, first: u64, bytes: &[u8], sector_bytes: usize, mut each: impl FnMut(usize, u32)) {
        let register = |index: usize| !crc32c::crc32c_append(self.0, &(first + index as u64).to_le_bytes());
        registers(bytes, sector_bytes, register, |index, register| each(index, no_code(!register)));
    }
}

/// Appends, for every sector of `bytes`, the part of its checksum that depends on the contents alone. The part of a
/// sector of zeros is 0.
pub(crate) fn parts(bytes: &[u8], sector_bytes: usize, parts: &mut Vec<u32>) {
    parts.reserve(bytes.len() / sector_bytes);
    registers(bytes, sector_bytes, |_| 0, |_, register| parts.push(register));
}

/// Calls `each` with the index and the final CRC register of every sector of `bytes`; `start` returns the initial
/// register.
fn registers(bytes: &[u8], sector_bytes: usize, start: impl Fn(usize) -> u32, mut each: impl FnMut(usize, u32)) {
    let mut index = 0;
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("sse4.2") && sector_bytes.is_multiple_of(LINE_BYTES) {
        for four in bytes.chunks_exact(4 * sector_bytes) {
            let starts = [start(index), start(index + 1), start(index + 2), start(index + 3)];
            // SAFETY: the processor has SSE 4.2, as checked above.
            #[allow(unsafe_code)]
            let ends = unsafe { four_at_once(starts, four, sector_bytes) };
            (0..4).for_each(|sector| each(index + sector, ends[sector]));
            index += 4;
        }
    }
    for sector in bytes[index * sector_bytes..].chunks_exact(sector_bytes) {
        each(index, !crc32c::crc32c_append(!start(index), sector));
        index += 1;
    }
}

/// Part of the checksum of sectors that depends on the address alone: the checksum of zeros at any address, from
/// tables.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// Checksum of zeros at address 0.
    at_zero: u32,
    /// Change of that checksum for each value of each byte of an address.
    by_byte: Box<[[u32; 256]; 8]>,
}

impl Places {
    /// Builds the tables for `salt` and sectors of `sector_bytes` bytes.
    pub(crate) fn new(salt: Salt, sector_bytes: usize) -> Places {
        let zeros = vec![0; sector_bytes];
        let at_zero = salt.sum(0, &zeros);
        let mut by_byte = Box::new([[0; 256]; 8]);
        for (byte, changes) in by_byte.iter_mut().enumerate() {
            let of_bit: [u32; 8] = std::array::from_fn(|bit| salt.sum(1 << (byte * 8 + bit), &zeros) ^ at_zero);
            for value in 1..256usize {
                let low = value.trailing_zeros() as usize;
                changes[value] = changes[value & (value - 1)] ^ of_bit[low];
            }
        }
        Places { at_zero, by_byte }
    }

    /// Calls `each` with the index and the checksum of every sector from address `first` on; `parts` are the parts of
    /// their contents.
    pub(crate) fn sums(&self, first: u64, parts: &[u32], mut each: impl FnMut(usize, u32)) {
        let mut of_high = self.of_high(first);
        for (index, &part) in parts.iter().enumerate() {
            let address = first + index as u64;
            if address.is_multiple_of(256) {
                of_high = self.of_high(address);
            }
            each(index, no_code(of_high ^ self.by_byte[0][(address % 256) as usize] ^ part));
        }
    }

    /// Returns the checksum of zeros at `address` with its lowest byte set to 0.
    fn of_high(&self, address: u64) -> u32 {
        let changes = |byte: usize| self.by_byte[byte][(address >> (8 * byte) & 0xff) as usize];
        (1..8).fold(self.at_zero, |sum, byte| sum ^ changes(byte))
    }
}

/// Changes a checksum that equals a code into one that does not.
fn no_code(sum: u32) -> u32 {
    if sum < FIRST_SUM { sum | 0x8000_0000 } else { sum }
}

/// Bytes of a cache line of the processor.
#[cfg(target_arch = "x86_64")]
const LINE_BYTES: usize = 64;
/// Distance of the prefetch, in bytes. Data that waited in a write cache comes from main memory, and the processor's
/// prefetcher does not recognize four parallel streams.
#[cfg(target_arch = "x86_64")]
const PREFETCH_BYTES: usize = 8 << 10;

/// Returns the CRC registers of four consecutive sectors, computed with the processor's instruction. Calling this
/// function is unsafe on processors without SSE 4.2. No safe crate computes several checksums in parallel.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
fn four_at_once(starts: [u32; 4], bytes: &[u8], sector_bytes: usize) -> [u32; 4] {
    use std::arch::x86_64::_mm_crc32_u64;
    let mut sums = [starts[0].into(), starts[1].into(), starts[2].into(), starts[3].into()];
    let lines: &[[u8; LINE_BYTES]] = bytes.as_chunks().0;
    let step = sector_bytes / LINE_BYTES;
    assert_eq!(lines.len(), 4 * step, "four sectors of whole lines");
    for line in 0..step {
        let [a, b, c, d] = [&lines[line], &lines[step + line], &lines[2 * step + line], &lines[3 * step + line]];
        prefetch_beyond(a);
        prefetch_beyond(b);
        prefetch_beyond(c);
        prefetch_beyond(d);
        for word in 0..LINE_BYTES / 8 {
            sums[0] = _mm_crc32_u64(sums[0], word_of(a, word));
            sums[1] = _mm_crc32_u64(sums[1], word_of(b, word));
            sums[2] = _mm_crc32_u64(sums[2], word_of(c, word));
            sums[3] = _mm_crc32_u64(sums[3], word_of(d, word));
        }
    }
    [sums[0] as u32, sums[1] as u32, sums[2] as u32, sums[3] as u32]
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn word_of(line: &[u8; LINE_BYTES], word: usize) -> u64 {
    let bytes = line[word * 8..].first_chunk().expect("a line is eight words");
    u64::from_le_bytes(*bytes)
}

/// Prefetches the memory [`PREFETCH_BYTES`] beyond `line`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn prefetch_beyond(line: &[u8; LINE_BYTES]) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: every x86-64 processor has the instruction, which neither faults nor reads unmapped memory.
    #[allow(unsafe_code)]
    unsafe {
        _mm_prefetch(line.as_ptr().wrapping_add(PREFETCH_BYTES).cast(), _MM_HINT_T0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares with one checksum at a time, computed by the crate `crc32c`.
        #[test]
        fn four_at_once_are_as_one_by_one(first in any::<u64>(), sectors in 1usize..12, seed in any::<u8>()) {
            let salt = Salt::new(Uuid::from_u128(7), What::Disk);
            let bytes: Vec<u8> = (0..sectors * 512).map(|at| (at as u8).wrapping_mul(seed | 1) ^ (at >> 8) as u8).collect();
            let first = first >> 8;
            let mut sums = Vec::new();
            salt.sectors(first, &bytes, 512, |index, sum| sums.push((index, sum)));
            let twin: Vec<(usize, u32)> =
                bytes.chunks(512).enumerate().map(|(index, sector)| (index, no_code(salt.sum(first + index as u64, sector)))).collect();
            prop_assert_eq!(&sums, &twin);
            // Checksummed before the address is known.
            let (mut parted, places) = (Vec::new(), Places::new(salt, 512));
            parts(&bytes, 512, &mut parted);
            let mut placed = Vec::new();
            places.sums(first, &parted, |index, sum| placed.push((index, sum)));
            prop_assert_eq!(placed, twin);
        }
    }

    #[test]
    fn zeros_alone_have_no_part() {
        let mut found = Vec::new();
        let mut bytes = [0; 5 * 512];
        bytes[3 * 512 - 1] = 1;
        parts(&bytes, 512, &mut found);
        assert_eq!(found.iter().map(|&part| part == 0).collect::<Vec<_>>(), [true, true, false, true, true]);
    }

    #[test]
    fn a_moved_piece_has_another_sum() {
        let salt = |uuid, what| Salt::new(Uuid::from_u128(uuid), what);
        let bytes = [5; 512];
        let sum = salt(1, What::Disk).sum(10, &bytes);
        assert_ne!(sum, salt(1, What::Disk).sum(11, &bytes), "another address");
        assert_ne!(sum, salt(1, What::Flash).sum(10, &bytes), "another region");
        assert_ne!(sum, salt(2, What::Disk).sum(10, &bytes), "another image");
    }

    #[test]
    fn no_sum_is_taken_for_a_code() {
        for code in 0..FIRST_SUM {
            assert!(no_code(code) >= FIRST_SUM);
        }
        assert_eq!(no_code(FIRST_SUM), FIRST_SUM);
    }
}
