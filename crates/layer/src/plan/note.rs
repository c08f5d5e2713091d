//! Journal records as a journal keeps them: a tag and four numbers. What they mean is the layer's: [`super::record`]. Whoever writes
//! one to a medium adds a sequence number and a checksum.

use std::fmt;

/// One record of the journal: a mapping change.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Note {
    /// The kind of change, in the numbering of the layer.
    pub tag: u8,
    /// Its operands: see the fields of [`super::record::RecordInfo`].
    pub fields: [u64; 4],
}

impl Note {
    /// A record of `tag` with up to four operands, the rest zero.
    #[inline]
    pub fn new(tag: u8, operands: &[u64]) -> Note {
        assert!(operands.len() <= 4, "a note has at most four operands, not {}", operands.len());
        let mut fields = [0; 4];
        fields[..operands.len()].copy_from_slice(operands);
        Note { tag, fields }
    }

    /// The error that this record cannot be replayed, and why.
    pub fn refuse(&self, reason: impl Into<String>) -> ReplayError {
        ReplayError { note: *self, reason: reason.into() }
    }

    /// The same record with its tag `by` higher: where a layer keeps the records of two parts that count from the same tag.
    pub fn shifted(self, by: u8) -> Note {
        Note { tag: self.tag + by, ..self }
    }

    /// Undoes [`Note::shifted`]; an error where the tag is lower than any shifted one.
    pub fn unshifted(&self, by: u8) -> Result<Note, ReplayError> {
        match self.tag.checked_sub(by) {
            Some(tag) => Ok(Note { tag, ..*self }),
            None => Err(self.refuse(format!("its tag is lower than {by}"))),
        }
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
    /// The record that was refused.
    pub note: Note,
    /// What is wrong with it.
    pub reason: String,
}
