//! Typed journal records. A layer lists its kinds of record once, with [`journal_records!`](crate::journal_records).
//! The macro derives the enum that recovery uses, the words of each record in the journal ([`Note`]), and the names
//! that help, documentation and dumps show ([`RecordInfo`]).
//!
//! A note is a tag and four words. The tag is the kind of record. The words are the record's fields in order; words
//! after the last field are zero.
//!
//! Invariants:
//! 1. Decoding an encoded record gives an equal record.
//! 2. A note that decodes, encoded again, gives an equal note: no bit of a note is ignored.
//! 3. A note that does not decode gives an error that names the field or the tag, its value, and the expected values.

use imbrex_disk::{Lba, Pba, Sectors};

use super::note::{Note, ReplayError};

/// Description of a kind of journal record.
#[derive(Clone, Copy, Debug)]
pub struct RecordInfo {
    /// Number of this kind of record in the journal of its layer.
    pub tag: u8,
    /// The record's meaning in words, for help texts and dumps.
    pub what: &'static str,
    /// Names of the fields, in the order of the note's four words; words after the last field are zero.
    pub fields: &'static [&'static str],
}

impl RecordInfo {
    /// Returns the description with its tag increased by `by`, for notes whose tags are increased by
    /// [`Note::shifted`] with an equal `by`.
    pub const fn shifted(self, by: u8) -> RecordInfo {
        RecordInfo { tag: self.tag + by, what: self.what, fields: self.fields }
    }
}

/// A type that a field of a journal record may have: its values fit one word of 64 bits.
pub trait Word: Copy {
    /// Converts the value to a word of the journal.
    fn to_word(self) -> u64;

    /// Converts a word of the journal to a value.
    ///
    /// # Errors
    ///
    /// No value of the type has this word. The error is a text that says which words are expected.
    fn from_word(word: u64) -> Result<Self, &'static str>;
}

impl Word for u64 {
    #[inline]
    fn to_word(self) -> u64 {
        self
    }

    fn from_word(word: u64) -> Result<u64, &'static str> {
        Ok(word)
    }
}

impl Word for u32 {
    #[inline]
    fn to_word(self) -> u64 {
        u64::from(self)
    }

    fn from_word(word: u64) -> Result<u32, &'static str> {
        u32::try_from(word).map_err(|_| "expected less than 2³²")
    }
}

impl Word for bool {
    #[inline]
    fn to_word(self) -> u64 {
        u64::from(self)
    }

    fn from_word(word: u64) -> Result<bool, &'static str> {
        match word {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err("expected 0 or 1"),
        }
    }
}

/// A pair of 32-bit numbers in one word, the first in the upper half.
impl Word for (u32, u32) {
    #[inline]
    fn to_word(self) -> u64 {
        u64::from(self.0) << 32 | u64::from(self.1)
    }

    fn from_word(word: u64) -> Result<(u32, u32), &'static str> {
        Ok(((word >> 32) as u32, word as u32))
    }
}

/// A pair of 16-bit numbers in one word, the first in bits 16 to 31.
impl Word for (u16, u16) {
    #[inline]
    fn to_word(self) -> u64 {
        u64::from(self.0) << 16 | u64::from(self.1)
    }

    fn from_word(word: u64) -> Result<(u16, u16), &'static str> {
        let both = u32::try_from(word).map_err(|_| "expected two numbers of 16 bits")?;
        Ok(((both >> 16) as u16, both as u16))
    }
}

/// Newtypes of a `u64` are stored as their number.
macro_rules! number_words {
    ($($type:ident),*) => {$(
        impl Word for $type {
            #[inline]
            fn to_word(self) -> u64 {
                self.0
            }

            fn from_word(word: u64) -> Result<$type, &'static str> {
                Ok($type(word))
            }
        }
    )*};
}

number_words!(Lba, Pba, Sectors);

/// A decoder of a [`Note`]. It returns the four words of the note (numbers of 64 bits) one by one, each converted to
/// the type of a field.
pub struct Words<'a> {
    note: &'a Note,
    taken: usize,
}

impl<'a> Words<'a> {
    /// Returns a decoder of `note`. The first field that it decodes is the first word.
    pub fn of(note: &'a Note) -> Words<'a> {
        Words { note, taken: 0 }
    }

    /// Decodes the next word as a value of type `T`. `name` is the name of the field for the error message.
    ///
    /// # Errors
    ///
    /// The word is not a value of the type.
    ///
    /// # Panics
    ///
    /// If all four words were decoded before.
    pub fn field<T: Word>(&mut self, name: &str) -> Result<T, ReplayError> {
        let word = self.note.fields[self.taken];
        self.taken += 1;
        T::from_word(word).map_err(|expected| self.note.refuse(format!("its {name} is {word}: {expected}")))
    }

    /// Checks that the words after the last decoded one are zero.
    ///
    /// # Errors
    ///
    /// One of these words is not zero.
    pub fn end(self) -> Result<(), ReplayError> {
        match self.note.fields[self.taken..].iter().find(|&&word| word != 0) {
            Some(word) => Err(self.note.refuse(format!("{word} follows its last field, where 0 is expected"))),
            None => Ok(()),
        }
    }
}

/// Returns the error for a note with an unknown tag. `known` lists the kinds of record that the layer `owner` has; the
/// error names their tags.
pub fn unknown_tag(note: &Note, owner: &str, known: &[RecordInfo]) -> ReplayError {
    let tags: Vec<String> = known.iter().map(|info| format!("#{}", info.tag)).collect();
    note.refuse(format!("{owner} has no record #{}; it has {}", note.tag, tags.join(", ")))
}

/// Declares the journal records of a layer as an enum with `INFO`, `encode` and `decode`.
///
/// ```
/// use imbrex_disk::{Lba, Pba, Sectors};
/// use imbrex_layer::plan::note::Note;
///
/// imbrex_layer::journal_records! {
///     /// What `my-layer` keeps in its journal.
///     enum Record of "my-layer" {
///         1 => Cached { lba: Lba, sectors: Sectors, pba: Pba } "written to the cache",
///         2 => Trimmed { lba: Lba, sectors: Sectors } "trimmed",
///     }
/// }
///
/// let note = Record::Trimmed { lba: Lba(8), sectors: Sectors(2) }.encode();
/// assert_eq!(note, Note::new(2, &[8, 2]));
/// assert_eq!(Record::decode(&note)?, Record::Trimmed { lba: Lba(8), sectors: Sectors(2) });
/// assert!(Record::decode(&Note::new(3, &[])).is_err());
/// assert_eq!(Record::INFO[0].fields, ["lba", "sectors", "pba"]);
/// # let _ = Record::Cached { lba: Lba(8), sectors: Sectors(2), pba: Pba(0) };
/// # Ok::<(), imbrex_layer::plan::note::ReplayError>(())
/// ```
#[macro_export]
macro_rules! journal_records {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $Record:ident of $owner:literal {
            $($tag:expr => $Kind:ident { $($field:ident: $type:ty),* } $what:literal,)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[allow(missing_docs)] // The field names document themselves.
        $visibility enum $Record {
            $(#[doc = $what] $Kind { $($field: $type),* },)*
        }

        impl $Record {
            /// Every kind of record: its tag, its meaning, the names of its fields.
            $visibility const INFO: &'static [$crate::plan::record::RecordInfo] = &[$(
                $crate::plan::record::RecordInfo { tag: $tag, what: $what, fields: &[$(stringify!($field)),*] },
            )*];

            /// Encodes the record as a note of the journal.
            #[inline]
            $visibility fn encode(self) -> $crate::plan::note::Note {
                match self {
                    $($Record::$Kind { $($field),* } => $crate::plan::note::Note::new(
                        $tag,
                        &[$($crate::plan::record::Word::to_word($field)),*],
                    ),)*
                }
            }

            /// Decodes a note of the journal.
            ///
            /// # Errors
            ///
            /// The note's tag is none of these records, or a word of the note does not fit its field.
            $visibility fn decode(
                note: &$crate::plan::note::Note,
            ) -> Result<$Record, $crate::plan::note::ReplayError> {
                $(if note.tag == $tag {
                    #[allow(unused_mut)] // A record may have no fields.
                    let mut words = $crate::plan::record::Words::of(note);
                    let record = $Record::$Kind { $($field: words.field(stringify!($field))?),* };
                    words.end()?;
                    return Ok(record);
                })*
                Err($crate::plan::record::unknown_tag(note, $owner, Self::INFO))
            }
        }
    };
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Asserts the invariants of the file's header for the records of one layer. It tries notes with every possible tag
    /// and with small and large words. Notes that decode give an equal note again, the errors of others say what is
    /// wrong, and each listed kind has a note that decodes.
    pub(crate) fn assert_round_trips(known: &[RecordInfo], again: impl Fn(&Note) -> Result<Note, ReplayError>) {
        let words = [0, 1, 0x2_0003, 0x4_0000_0005, u64::MAX];
        for tag in 0..=u8::MAX {
            let info = known.iter().find(|info| info.tag == tag);
            let mut decoded = 0;
            for chosen in 0..words.len().pow(4) {
                let fields = [0, 1, 2, 3].map(|place| words[chosen / words.len().pow(place) % words.len()]);
                let note = Note { tag, fields };
                match (again(&note), info) {
                    (Ok(same), Some(_)) => {
                        assert_eq!(same, note);
                        decoded += 1;
                    }
                    (Ok(_), None) => panic!("{note:?} was taken"),
                    (Err(error), None) => assert!(error.reason.contains(&format!("no record #{tag};")), "{error}"),
                    (Err(error), Some(info)) => {
                        let names_one =
                            info.fields.iter().any(|field| error.reason.starts_with(&format!("its {field} is")));
                        let follows = error.reason.contains("follows its last field");
                        let too_long = fields[info.fields.len()..].iter().any(|&word| word != 0);
                        assert!(names_one || follows && too_long, "{error}");
                    }
                }
            }
            assert!(info.is_none() || decoded > 0, "no note of #{tag} decodes");
        }
    }
}

#[cfg(test)]
mod tests {
    //! Goal: errors for words that do not fit their field name the field, the word and the expected values. Method: one
    //! record with a field of each type.

    use super::*;

    crate::journal_records! {
        enum Record of "test" {
            7 => Both { number: u32, is_set: bool, pair: (u16, u16), halves: (u32, u32) } "one of each",
            8 => Bare {} "nothing",
        }
    }

    #[test]
    fn records_come_back_as_they_were() {
        testing::assert_round_trips(Record::INFO, |note| Record::decode(note).map(Record::encode));
        let record = Record::Both { number: 5, is_set: true, pair: (3, 4), halves: (1, 2) };
        assert_eq!(record.encode(), Note::new(7, &[5, 1, 3 << 16 | 4, 1 << 32 | 2]));
        assert_eq!(Record::Bare {}.encode(), Note::new(8, &[]));
    }

    #[test]
    fn an_error_names_field_value_and_what_was_expected() {
        let why = |note: Note| Record::decode(&note).unwrap_err().reason;
        assert_eq!(why(Note::new(7, &[1 << 32])), "its number is 4294967296: expected less than 2³²");
        assert_eq!(why(Note::new(7, &[1, 2])), "its is_set is 2: expected 0 or 1");
        assert_eq!(why(Note::new(8, &[0, 9])), "9 follows its last field, where 0 is expected");
        assert_eq!(why(Note::new(9, &[])), "test has no record #9; it has #7, #8");
    }
}
