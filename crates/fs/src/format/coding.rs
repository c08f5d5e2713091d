//! Numbers and bytes as they lie on the media: little-endian, lengths before what they count.

use thiserror::Error;

use crate::device::BLOCK_BYTES;

/// What was read is not what was written.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

/// Writes.
#[derive(Clone, Default, Debug)]
pub struct Encoder {
    /// What was written so far.
    pub bytes: Vec<u8>,
}

impl Encoder {
    /// One byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Four bytes.
    pub fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Eight bytes.
    pub fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Sixteen bytes.
    pub fn u128(&mut self, value: u128) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// So many bytes, after how many they are.
    pub fn bytes(&mut self, value: &[u8]) {
        self.u32(value.len() as u32);
        self.bytes.extend_from_slice(value);
    }
}

/// Reads.
#[derive(Clone, Copy, Debug)]
pub struct Decoder<'a> {
    left: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// Of these bytes.
    pub fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { left: bytes }
    }

    /// Whether nothing is left.
    pub fn is_done(&self) -> bool {
        self.left.is_empty()
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, left) = self.left.split_first_chunk::<N>().ok_or(Malformed("it ends in the midst of a number"))?;
        self.left = left;
        Ok(*taken)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.take::<1>().map(|[byte]| byte)
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_le_bytes)
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.take().map(u64::from_le_bytes)
    }

    /// Sixteen bytes.
    pub fn u128(&mut self) -> Result<u128, Malformed> {
        self.take().map(u128::from_le_bytes)
    }

    /// Bytes with their count before them.
    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let count = self.u32()? as usize;
        if count > self.left.len() {
            return Err(Malformed("it ends in the midst of a run of bytes"));
        }
        let (taken, left) = self.left.split_at(count);
        self.left = left;
        Ok(taken)
    }

    /// A count of things that each take at least `bytes_min`.
    pub fn count(&mut self, bytes_min: usize) -> Result<usize, Malformed> {
        let count = self.u32()? as usize;
        if count.saturating_mul(bytes_min) > self.left.len() {
            return Err(Malformed("it ends in the midst of a list"));
        }
        Ok(count)
    }
}

/// Where the checksum of a sealed block lies in it, behind magic number and version.
const SEAL: std::ops::Range<usize> = 12..16;

/// A block by itself on a device: its magic number, a version, the checksum of the whole block, what `body` writes, and zeros.
pub fn seal(magic: &[u8; 8], version: u32, body: impl FnOnce(&mut Encoder)) -> Vec<u8> {
    let mut to = Encoder::default();
    to.bytes.extend_from_slice(magic);
    to.u32(version);
    to.u32(0); // the checksum
    body(&mut to);
    assert!(to.bytes.len() <= BLOCK_BYTES, "{} bytes are more than a block", to.bytes.len());
    to.bytes.resize(BLOCK_BYTES, 0);
    put_seal(&mut to.bytes);
    to.bytes
}

/// Writes the checksum of a block, whatever is there, into it.
pub fn put_seal(block: &mut [u8]) {
    block[SEAL].fill(0);
    let sum = checksum(&[block]);
    block[SEAL].copy_from_slice(&sum.to_le_bytes());
}

/// The version of a sealed block with this magic number, if it is whole, and what is behind the checksum.
pub fn unseal<'a>(magic: &[u8; 8], block: &'a [u8]) -> Option<(u32, Decoder<'a>)> {
    let block = block.get(..BLOCK_BYTES).filter(|block| block.starts_with(magic))?;
    let sum = checksum(&[&block[..SEAL.start], &[0; SEAL.end - SEAL.start], &block[SEAL.end..]]);
    let mut from = Decoder::new(&block[magic.len()..]);
    let (version, sealed) = (from.u32().ok()?, from.u32().ok()?);
    (sum == sealed).then_some((version, from))
}

/// A checksum over several pieces, in order.
pub fn checksum(pieces: &[&[u8]]) -> u32 {
    pieces.iter().fold(0, |sum, piece| crc32c::crc32c_append(sum, piece))
}
