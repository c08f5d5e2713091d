//! Journal records: the mapping changes that a plan makes durable. A record is plain numbers; each layer gives its own
//! tags and fields a meaning, and the executor adds sequence number and checksum when it writes one.

use std::fmt;

/// One mapping change.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Note {
    /// Which change, in the layer's own numbering.
    pub tag: u8,
    /// Its operands, as the layer's documentation lists them.
    pub fields: [u64; 4],
}

impl Note {
    /// A record of `tag` with up to four operands, the rest zero.
    pub fn new(tag: u8, operands: &[u64]) -> Note {
        assert!(operands.len() <= 4, "a note has at most four operands, not {}", operands.len());
        let mut fields = [0; 4];
        fields[..operands.len()].copy_from_slice(operands);
        Note { tag, fields }
    }
}

impl fmt::Debug for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.fields;
        write!(f, "#{} {a} {b} {c} {d}", self.tag)
    }
}

/// A record that cannot be replayed: the journal is not this layer's, or is damaged.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("journal record {note:?} cannot be replayed: {reason}")]
pub struct ReplayError {
    /// The record.
    pub note: Note,
    /// What is wrong with it.
    pub reason: String,
}
