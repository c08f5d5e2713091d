//! Primitives of text parsing: read numbers, times and fields from bytes, without validation of UTF-8 and without
//! allocation.
//!
//! Invariants:
//! 1. A number is exactly the value of its digits, or `None`: parsing neither wraps nor saturates.
//! 2. Decimal fractions of a unit become integer nanoseconds exactly; digits below a nanosecond are cut off.

use crate::options::TimeUnit;

/// Number of decimal digits that always fit in 64 bits.
const DIGITS_MAX: usize = 19;

/// A position in a line, which moves towards the line's end.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Returns a cursor at the start of `line`.
    pub(crate) fn new(line: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: line }
    }

    /// Reads the number up to `delimiter` and moves past the delimiter. Returns `None` if there are no digits, too many
    /// of them, or other bytes before the delimiter.
    #[inline]
    pub(crate) fn number(&mut self, delimiter: u8) -> Option<u64> {
        let mut value = 0u64;
        for (at, &byte) in self.rest.iter().enumerate() {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                let sound = byte == delimiter && at > 0 && at <= DIGITS_MAX;
                self.rest = &self.rest[at + 1..];
                return sound.then_some(value);
            }
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        }
        None
    }

    /// Reads the bytes up to `delimiter` and moves past the delimiter. Returns `None` if the line has no further
    /// delimiter.
    #[inline]
    pub(crate) fn field(&mut self, delimiter: u8) -> Option<&'a [u8]> {
        let at = self.rest.iter().position(|&byte| byte == delimiter)?;
        let field = &self.rest[..at];
        self.rest = &self.rest[at + 1..];
        Some(field)
    }

    /// Moves past the next `count` bytes.
    ///
    /// # Panics
    ///
    /// If fewer bytes are left.
    #[inline]
    pub(crate) fn skip(&mut self, count: usize) {
        self.rest = &self.rest[count..];
    }

    /// Returns the rest of the line.
    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

/// Returns the first `N` fields between `delimiter`s, without the blanks around them. Returns `None` if there are
/// fewer.
pub(crate) fn split<const N: usize>(line: &[u8], delimiter: u8) -> Option<[&[u8]; N]> {
    fill(line.split(|&byte| byte == delimiter).map(<[u8]>::trim_ascii))
}

/// Returns the first `N` words between blanks. Returns `None` if there are fewer.
pub(crate) fn words<const N: usize>(line: &[u8]) -> Option<[&[u8]; N]> {
    fill(line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()))
}

/// Returns the part of `line` after its first `count` words.
pub(crate) fn past_words(line: &[u8], count: usize) -> &[u8] {
    (0..count).fold(line, |rest, _| {
        let word = rest.trim_ascii_start();
        let end = word.iter().position(u8::is_ascii_whitespace).unwrap_or(word.len());
        &word[end..]
    })
}

fn fill<'a, const N: usize>(mut parts: impl Iterator<Item = &'a [u8]>) -> Option<[&'a [u8]; N]> {
    let mut fields = [&[][..]; N];
    for field in &mut fields {
        *field = parts.next()?;
    }
    Some(fields)
}

/// Returns the value of the decimal number `text`. Returns `None` if `text` has other bytes than digits or the value
/// exceeds 64 bits.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit <= 9).then_some(())?;
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Returns the value of the hexadecimal number `text`, with or without `0x`.
pub(crate) fn hexadecimal(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"0x").or(text.strip_prefix(b"0X")).unwrap_or(text);
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, &byte| {
        let digit = char::from(byte).to_digit(16)?;
        value.checked_mul(16)?.checked_add(u64::from(digit))
    })
}

/// Returns the time `text`, in units of `unit` with or without a decimal fraction, in nanoseconds.
pub(crate) fn time_ns(text: &[u8], unit: TimeUnit) -> Option<u64> {
    let point = text.iter().position(|&byte| byte == b'.').unwrap_or(text.len());
    let (whole, fraction) = (&text[..point], text.get(point + 1..).unwrap_or(&[]));
    let unit_ns = unit.nanoseconds();
    let whole_ns = if whole.is_empty() { 0 } else { number(whole)?.checked_mul(unit_ns)? };
    if fraction.is_empty() {
        return (!whole.is_empty()).then_some(whole_ns);
    }
    if !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let kept = &fraction[..fraction.len().min(18)];
    let scale = 10u128.pow(kept.len() as u32);
    let part_ns = u128::from(number(kept)?) * u128::from(unit_ns) / scale;
    whole_ns.checked_add(part_ns as u64)
}

/// Returns `text` in the form for error messages: at most 80 bytes, with `·` for each control character.
pub(crate) fn shown(text: &[u8]) -> String {
    const SHOWN_BYTES_MAX: usize = 80;
    let cut = &text[..text.len().min(SHOWN_BYTES_MAX)];
    let visible: String = String::from_utf8_lossy(cut).chars().map(|c| if c.is_control() { '·' } else { c }).collect();
    if text.is_empty() {
        "nothing".into()
    } else if cut.len() < text.len() {
        format!("«{visible}…»")
    } else {
        format!("«{visible}»")
    }
}

#[cfg(test)]
mod tests {
    //! Goal: numbers at their limits and times at their last digit. Method: cases worked out by hand.

    use super::*;

    #[test]
    fn numbers_end_where_64_bits_do() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(number(b"18446744073709551616"), None);
        assert_eq!(number(b""), None);
        assert_eq!(number(b"-1"), None);
        assert_eq!(hexadecimal(b"0x2A"), Some(42));
        assert_eq!(hexadecimal(b"0x"), None);
    }

    #[test]
    fn a_cursor_wants_digits_and_the_delimiter() {
        let mut cursor = Cursor::new(b"12,,x,7");
        assert_eq!(cursor.number(b','), Some(12));
        assert_eq!(cursor.number(b','), None);
        assert_eq!(Cursor::new(b"12").number(b','), None);
        assert_eq!(Cursor::new(b"12345678901234567890,").number(b','), None);
        assert_eq!(Cursor::new(b"a,b").field(b','), Some(&b"a"[..]));
    }

    #[test]
    fn times_keep_every_nanosecond() {
        assert_eq!(time_ns(b"1456095145.133076001", TimeUnit::Seconds), Some(1_456_095_145_133_076_001));
        assert_eq!(time_ns(b"0.5", TimeUnit::Microseconds), Some(500));
        assert_eq!(time_ns(b"7", TimeUnit::Ticks), Some(700));
        assert_eq!(time_ns(b".25", TimeUnit::Milliseconds), Some(250_000));
        assert_eq!(time_ns(b"1.", TimeUnit::Nanoseconds), Some(1));
        assert_eq!(time_ns(b".", TimeUnit::Seconds), None);
        assert_eq!(time_ns(b"-1.0", TimeUnit::Seconds), None);
        assert_eq!(time_ns(b"1.0e3", TimeUnit::Seconds), None);
        assert_eq!(time_ns(b"99999999999999", TimeUnit::Seconds), None);
    }
}
