//! The error of a layer's self-check: one of the numbered invariants in the header of its file does not hold.

/// A broken invariant of a layer: a bug in this program.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{layer}: invariant {invariant} broken: {detail}")]
pub struct Violation {
    /// The name of the layer.
    pub layer: &'static str,
    /// The number of the invariant in its file's header.
    pub invariant: u32,
    /// The values that break the invariant.
    pub detail: String,
}
