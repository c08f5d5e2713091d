//! Journal records in the form in which a journal stores them: a tag and four numbers. Each layer defines their
//! meaning: see [`super::record`]. The code that writes a record to a medium adds a sequence number and a checksum.

use std::fmt;

/// One record of a layer's journal: usually a change of the layer's map, encoded as a tag and four numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Note {
    /// Number of the kind of record. Each layer numbers its own kinds.
    pub tag: u8,
    /// Operands of the record, in the order of the fields in [`super::record::RecordInfo`]; unused operands are zero.
    pub fields: [u64; 4],
}

impl Note {
    /// Returns a record with this tag and up to four operands; missing operands are zero.
    ///
    /// # Panics
    ///
    /// If there are more than four operands.
    #[inline]
    pub fn new(tag: u8, operands: &[u64]) -> Note {
        assert!(operands.len() <= 4, "a note has at most four operands, not {}", operands.len());
        let mut fields = [0; 4];
        fields[..operands.len()].copy_from_slice(operands);
        Note { tag, fields }
    }

    /// Returns an error value which says that this record cannot be replayed, for `reason`.
    pub fn refuse(&self, reason: impl Into<String>) -> ReplayError {
        ReplayError { note: *self, reason: reason.into() }
    }

    /// Returns the record with its tag increased by `by`. A layer that consists of two parts with overlapping tags uses
    /// this to tell their records apart. The new tag must not exceed 255: debug builds panic then, and release builds
    /// wrap around.
    pub fn shifted(self, by: u8) -> Note {
        Note { tag: self.tag + by, ..self }
    }

    /// Returns the record with its tag decreased by `by`, which undoes [`Note::shifted`].
    ///
    /// # Errors
    ///
    /// The tag is lower than `by`.
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

/// The error that a journal record cannot be replayed, because the journal belongs to another layer or is damaged.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("journal record {note:?} cannot be replayed: {reason}")]
pub struct ReplayError {
    /// The record that was refused.
    pub note: Note,
    /// The reason why the record was refused.
    pub reason: String,
}
