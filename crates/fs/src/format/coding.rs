//! Encoding of numbers and bytes on the media: little-endian, with a length before each run of bytes.

use thiserror::Error;

use crate::device::BLOCK_BYTES;

/// Error of a decoder: the bytes are no valid encoding. The text names the wrong value.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

/// Encoder, which appends values to a vector of bytes.
#[derive(Clone, Default, Debug)]
pub struct Encoder {
    /// Bytes encoded so far.
    pub bytes: Vec<u8>,
}

impl Encoder {
    /// Appends one byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Appends a number of four bytes.
    pub fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a number of eight bytes.
    pub fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a number of sixteen bytes.
    pub fn u128(&mut self, value: u128) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends the length of `value` as a `u32`, then the bytes of `value`.
    pub fn bytes(&mut self, value: &[u8]) {
        self.u32(value.len() as u32);
        self.bytes.extend_from_slice(value);
    }
}

/// Decoder, which reads values from the start of a slice on.
#[derive(Clone, Copy, Debug)]
pub struct Decoder<'a> {
    left: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// Returns a decoder of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { left: bytes }
    }

    /// Returns whether all bytes were read.
    pub fn is_done(&self) -> bool {
        self.left.is_empty()
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, left) = self.left.split_first_chunk::<N>().ok_or(Malformed("it ends within a number"))?;
        self.left = left;
        Ok(*taken)
    }

    /// Reads one byte.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.take::<1>().map(|[byte]| byte)
    }

    /// Reads a number of four bytes.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_le_bytes)
    }

    /// Reads a number of eight bytes.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.take().map(u64::from_le_bytes)
    }

    /// Reads a number of sixteen bytes.
    pub fn u128(&mut self) -> Result<u128, Malformed> {
        self.take().map(u128::from_le_bytes)
    }

    /// Reads a length as a `u32`, then as many bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let count = self.u32()? as usize;
        if count > self.left.len() {
            return Err(Malformed("it ends within a run of bytes"));
        }
        let (taken, left) = self.left.split_at(count);
        self.left = left;
        Ok(taken)
    }

    /// Reads the number of elements of a list as a `u32`. Each element takes at least `bytes_min` bytes, so a count
    /// that does not fit into the remaining bytes is an error.
    pub fn count(&mut self, bytes_min: usize) -> Result<usize, Malformed> {
        let count = self.u32()? as usize;
        if count.saturating_mul(bytes_min) > self.left.len() {
            return Err(Malformed("it ends within a list"));
        }
        Ok(count)
    }
}

/// Bytes of the checksum in a sealed block, behind the magic number and the version.
const SEAL: std::ops::Range<usize> = 12..16;

/// Returns a sealed block: a block with its own checksum.
///
/// Its parts are the magic number, the version, the checksum of the whole block, the output of `body`, and zeros up to
/// the end.
///
/// # Panics Panics if `body` writes more than fits into a block.
pub fn seal(magic: &[u8; 8], version: u32, body: impl FnOnce(&mut Encoder)) -> Vec<u8> {
    let mut to = Encoder::default();
    to.bytes.extend_from_slice(magic);
    to.u32(version);
    to.u32(0); // checksum, written at the end
    body(&mut to);
    assert!(to.bytes.len() <= BLOCK_BYTES, "{} bytes are more than a block", to.bytes.len());
    to.bytes.resize(BLOCK_BYTES, 0);
    put_seal(&mut to.bytes);
    to.bytes
}

/// Computes the checksum of a sealed block and writes it into the block, over any earlier checksum.
pub fn put_seal(block: &mut [u8]) {
    block[SEAL].fill(0);
    let sum = checksum(&[block]);
    block[SEAL].copy_from_slice(&sum.to_le_bytes());
}

/// Returns the version of a sealed block, and a decoder of the bytes behind its checksum. Returns `None` if the magic
/// number or the checksum is wrong.
pub fn unseal<'a>(magic: &[u8; 8], block: &'a [u8]) -> Option<(u32, Decoder<'a>)> {
    let block = block.get(..BLOCK_BYTES).filter(|block| block.starts_with(magic))?;
    let sum = checksum(&[&block[..SEAL.start], &[0; SEAL.end - SEAL.start], &block[SEAL.end..]]);
    let mut from = Decoder::new(&block[magic.len()..]);
    let (version, sealed) = (from.u32().ok()?, from.u32().ok()?);
    (sum == sealed).then_some((version, from))
}

/// Returns the CRC-32C of several slices, in order.
pub fn checksum(pieces: &[&[u8]]) -> u32 {
    pieces.iter().fold(0, |sum, piece| crc32c::crc32c_append(sum, piece))
}
