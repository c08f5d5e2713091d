//! Encoding of numbers and bytes on the media: little-endian, with a length before each run of bytes.

use thiserror::Error;

use crate::device::BLOCK_BYTES;

/// Error of a decoder: the bytes are not a valid encoding. The text names the wrong value.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

/// Encoder, which appends values to a vector of bytes.
#[derive(Clone, Default, Debug)]
pub struct Encoder {
    /// Bytes of all values encoded so far.
    pub bytes: Vec<u8>,
}

impl Encoder {
    /// Appends one byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Appends a number as four bytes, little-endian.
    pub fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a number as eight bytes, little-endian.
    pub fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a number as sixteen bytes, little-endian.
    pub fn u128(&mut self, value: u128) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends the length of `value` as a `u32`, then the bytes of `value`.
    pub fn bytes(&mut self, value: &[u8]) {
        self.u32(value.len() as u32);
        self.bytes.extend_from_slice(value);
    }
}

/// Decoder, which reads values from a slice, one after the other from its start.
#[derive(Clone, Copy, Debug)]
pub struct Decoder<'a> {
    left: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// Returns a decoder that reads `bytes` from their start on.
    pub fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { left: bytes }
    }

    /// Returns whether all bytes of the slice were read.
    pub fn is_done(&self) -> bool {
        self.left.is_empty()
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, left) = self.left.split_first_chunk::<N>().ok_or(Malformed("it ends within a number"))?;
        self.left = left;
        Ok(*taken)
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// No byte is left.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.take::<1>().map(|[byte]| byte)
    }

    /// Reads a number of four bytes, little-endian.
    ///
    /// # Errors
    /// Fewer than four bytes are left.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_le_bytes)
    }

    /// Reads a number of eight bytes, little-endian.
    ///
    /// # Errors
    /// Fewer than eight bytes are left.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.take().map(u64::from_le_bytes)
    }

    /// Reads a number of sixteen bytes, little-endian.
    ///
    /// # Errors
    /// Fewer than sixteen bytes are left.
    pub fn u128(&mut self) -> Result<u128, Malformed> {
        self.take().map(u128::from_le_bytes)
    }

    /// Reads a length as a `u32`, then as many bytes, and returns the bytes.
    ///
    /// # Errors
    /// Fewer bytes are left than the length requires.
    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let count = self.u32()? as usize;
        if count > self.left.len() {
            return Err(Malformed("it ends within a run of bytes"));
        }
        let (taken, left) = self.left.split_at(count);
        self.left = left;
        Ok(taken)
    }

    /// Reads the number of elements of a list as a `u32`.
    ///
    /// # Errors
    /// Fewer bytes are left than so many elements of at least `bytes_min` bytes each. So a wrong count never causes a
    /// large allocation.
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

/// Returns a sealed block: a block of 4096 bytes with its own checksum (CRC-32C).
///
/// Its parts are the magic number, the version, the checksum of the whole block, the bytes that `body` appends, and
/// zeros up to the end.
///
/// # Panics
/// `body` appends more bytes than fit into the block.
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

/// Computes the checksum of a sealed block and writes it into the block, over any earlier checksum. For a block that
/// was changed after [`seal`].
///
/// # Panics
/// The block has fewer than 16 bytes.
pub fn put_seal(block: &mut [u8]) {
    block[SEAL].fill(0);
    let sum = checksum(&[block]);
    block[SEAL].copy_from_slice(&sum.to_le_bytes());
}

/// Checks a sealed block. Returns its version, and a decoder of the bytes after its checksum. Returns `None` if the
/// block is shorter than 4096 bytes, or if its magic number or its checksum is wrong.
pub fn unseal<'a>(magic: &[u8; 8], block: &'a [u8]) -> Option<(u32, Decoder<'a>)> {
    let block = block.get(..BLOCK_BYTES).filter(|block| block.starts_with(magic))?;
    let sum = checksum(&[&block[..SEAL.start], &[0; SEAL.end - SEAL.start], &block[SEAL.end..]]);
    let mut from = Decoder::new(&block[magic.len()..]);
    let (version, sealed) = (from.u32().ok()?, from.u32().ok()?);
    (sum == sealed).then_some((version, from))
}

/// Returns the CRC-32C of the concatenation of several slices.
pub fn checksum(pieces: &[&[u8]]) -> u32 {
    pieces.iter().fold(0, |sum, piece| crc32c::crc32c_append(sum, piece))
}
