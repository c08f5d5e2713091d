//! Simple contents of test data: two 64-bit words, repeated. The tests of the program are built without optimisation,
//! this crate with it, so that megabytes are filled and compared here.

/// Returns `bytes` bytes of 64-bit words in little-endian order. Each word has `number` in its upper half, and its own
/// index in the lower.
///
/// # Panics
///
/// Panics if `bytes` is not a multiple of 8.
pub fn numbered_words(number: u64, bytes: usize) -> Vec<u8> {
    assert!(bytes.is_multiple_of(8), "{bytes} bytes are not whole words");
    let mut filled = vec![0; bytes];
    for (word, into) in filled.chunks_exact_mut(8).enumerate() {
        into.copy_from_slice(&(number << 32 | word as u64).to_le_bytes());
    }
    filled
}

/// Fills a sector or block with a stamp and its own number, as little-endian words, repeated.
pub fn fill_with(into: &mut [u8], stamp: u64, number: u64) {
    for pair in into.chunks_exact_mut(16) {
        pair[..8].copy_from_slice(&stamp.to_le_bytes());
        pair[8..].copy_from_slice(&number.to_le_bytes());
    }
}

/// Returns whether [`fill_with`] fills a sector or block with these bytes.
pub fn is_filled_with(bytes: &[u8], stamp: u64, number: u64) -> bool {
    let expected = (u128::from(number) << 64 | u128::from(stamp)).to_le_bytes();
    bytes.chunks_exact(16).all(|pair| *pair == expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_pairs_are_where_they_are_said_to_be() {
        let words = numbered_words(7, 24);
        assert_eq!(words, [0, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0]);
        let mut block = [9; 32];
        fill_with(&mut block, 3, 0x0102);
        assert_eq!(block[..16], [3, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0]);
        assert!(is_filled_with(&block, 3, 0x0102) && !is_filled_with(&block, 3, 0x0103));
        block[31] ^= 1;
        assert!(!is_filled_with(&block, 3, 0x0102), "one bit differs");
    }
}
