//! Superblocks of earlier formats.

/// Changes a superblock to `format`.
pub(crate) fn make_older(block: &mut [u8], format: u32) {
    block[8..12].copy_from_slice(&format.to_le_bytes());
    block[12..16].fill(0);
    let sum = crc32c::crc32c(block);
    block[12..16].copy_from_slice(&sum.to_le_bytes());
}
