//! Words for the operation of a request, in tables of requests.
//!
//! Invariant: a word has a meaning only if this file names it. No word is interpreted by its first letter.

use imbrex_units::{Command, Lba, Operation};

/// List of the accepted words, for error messages.
pub(crate) const ACCEPTED: &str = "read, write, write-fua, trim, flush, their short forms (r, rd, w, wr, t, d, \
                                   discard, u, unmap, f, sync, fsync, fdatasync) in any case, letters of blktrace \
                                   such as RA or WFS, or a SCSI operation code such as 0x2a";

/// Meaning of a word or of blktrace's letters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Meaning {
    /// Whether a flush precedes the operation, as with the letters `FW` of blktrace. The word then stands for two
    /// requests.
    pub flush_first: bool,
    /// The operation; `None` for blktrace letters of a flush alone, and for letters that name no operation.
    pub operation: Option<Operation>,
    /// Whether the operation is a write with forced unit access (FUA).
    pub fua: bool,
}

impl Meaning {
    /// Returns the meaning of a word for `operation` alone.
    pub(crate) const fn of(operation: Operation) -> Meaning {
        Meaning { flush_first: false, operation: Some(operation), fua: false }
    }

    /// Returns the command for the sectors from `lba` on. The operation must not be `None`.
    pub(crate) fn command(self, lba: Lba, sectors: u32) -> Command {
        match self.operation {
            None | Some(Operation::Flush) => Command::flush(),
            Some(operation) => Command { operation, fua: self.fua, sectors, lba },
        }
    }
}

/// Returns the meaning of `word`, or `None` if no table may contain it.
pub(crate) fn meaning_of(word: &[u8]) -> Option<Meaning> {
    const LENGTH_MAX: usize = 9;
    let mut lower = [0; LENGTH_MAX];
    let lower = lower.get_mut(..word.len())?;
    lower.copy_from_slice(word);
    lower.make_ascii_lowercase();
    let operation = match &*lower {
        b"r" | b"rd" | b"read" | b"reads" => Operation::Read,
        b"w" | b"wr" | b"write" | b"writes" => Operation::Write,
        b"write-fua" => return Some(Meaning { fua: true, ..Meaning::of(Operation::Write) }),
        b"t" | b"trim" | b"d" | b"discard" | b"u" | b"unmap" => Operation::Trim,
        b"f" | b"flush" | b"sync" | b"fsync" | b"fdatasync" | b"datasync" => Operation::Flush,
        _ => return letters_of_request(lower).or_else(|| scsi(lower)),
    };
    Some(Meaning::of(operation))
}

/// Returns the meaning of blktrace's letters (RWBS), or `None` if `word` is something else. An F may come first, for a
/// flush before the operation. The operation is R, W, D or F. Flags follow: F for forced unit access, A for read-ahead,
/// S for synchronous, M for metadata, E for a secure discard, U for an atomic write.
fn letters_of_request(lower: &[u8]) -> Option<Meaning> {
    let upper: Vec<u8> = lower.to_ascii_uppercase();
    let meaning = letters(&upper);
    let rest = &upper[usize::from(meaning.flush_first)..];
    let flags = if meaning.operation.is_some() { rest.get(1..)? } else { rest };
    let is_once = |flag: &u8| b"FASMEU".contains(flag) && flags.iter().filter(|other| *other == flag).count() == 1;
    let is_named = meaning.operation.is_some() || meaning.flush_first;
    (is_named && flags.iter().all(is_once)).then_some(meaning)
}

/// Returns the meaning of blktrace's letters in `word`. Other letters than those of operations, flushes and forced unit
/// access are ignored.
pub(crate) fn letters(word: &[u8]) -> Meaning {
    let flush_first = word.first() == Some(&b'F');
    let rest = &word[usize::from(flush_first)..];
    let operation = match rest.first() {
        Some(b'R') => Some(Operation::Read),
        Some(b'W') => Some(Operation::Write),
        Some(b'D') => Some(Operation::Trim),
        _ => None,
    };
    let fua = operation == Some(Operation::Write) && rest.contains(&b'F');
    Meaning { flush_first, operation, fua }
}

/// Returns the meaning of a SCSI operation code: two hexadecimal digits, with or without `0x`.
fn scsi(lower: &[u8]) -> Option<Meaning> {
    let digits = lower.strip_prefix(b"0x").unwrap_or(lower);
    if digits.len() != 2 {
        return None;
    }
    let code = crate::fields::hexadecimal(digits)?;
    const UNMAP: u64 = 0x42;
    let operation = if code == UNMAP { Some(Operation::Trim) } else { crate::formats::scsi_operation(code) };
    operation.map(Meaning::of)
}

#[cfg(test)]
mod tests {
    //! Goal: exactly the listed words have a meaning. Method: cases worked out by hand.

    use super::*;

    fn plain(word: &str) -> Option<Operation> {
        let meaning = meaning_of(word.as_bytes())?;
        assert!(!meaning.fua && !meaning.flush_first, "{word}");
        meaning.operation
    }

    #[test]
    fn words_in_any_case() {
        for (words, operation) in [
            ("r R rd RD Read READS RA RS RSM RAM 28 0x28 0X88", Operation::Read),
            ("w W wr Write WS WSM WA 2a 0x2A 8a", Operation::Write),
            ("t D Trim DISCARD unmap U DS DE 42", Operation::Trim),
            ("f Flush SYNC fsync FDATASYNC datasync 35 0x91", Operation::Flush),
        ] {
            words.split(' ').for_each(|word| assert_eq!(plain(word), Some(operation), "{word}"));
        }
    }

    #[test]
    fn flushes_and_forced_unit_access() {
        let of = |word: &str| meaning_of(word.as_bytes()).map(|it| (it.flush_first, it.operation, it.fua));
        for word in ["WF", "wfs", "WFSM", "write-fua"] {
            assert_eq!(of(word), Some((false, Some(Operation::Write), true)), "{word}");
        }
        assert_eq!(of("FW"), Some((true, Some(Operation::Write), false)));
        assert_eq!(of("FWFS"), Some((true, Some(Operation::Write), true)));
        for word in ["FF", "FS", "FSM"] {
            assert_eq!(of(word), Some((true, None, false)), "{word}");
        }
    }

    #[test]
    fn other_words_have_no_meaning() {
        for word in [
            "",
            "DiskRead",
            "DiskWrite",
            "False",
            "True",
            "rx",
            "WW",
            "RR",
            "N",
            "0",
            "1",
            "2",
            "8",
            "40",
            "028",
            "wait",
            "reading",
            "user",
            "RWS",
            "WSS",
            "d2",
        ] {
            assert_eq!(meaning_of(word.as_bytes()), None, "{word}");
        }
    }
}
