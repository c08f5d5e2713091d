//! The error of a layer's self-check: one of the numbered invariants in the header of its file does not hold.

/// A broken invariant of a layer, found by the layer's self-check. It is a bug of the program, not an error of the user
/// or the disk.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{layer}: invariant {invariant} broken: {detail}")]
pub struct Violation {
    /// The name of the layer in the registry.
    pub layer: &'static str,
    /// The number of the invariant in the list of invariants in the header comment of the layer's file.
    pub invariant: u32,
    /// A text with the values that break the invariant, for the error message.
    pub detail: String,
}
