//! First in, first out.

/// The oldest.
pub fn choose() -> usize {
    0
}
