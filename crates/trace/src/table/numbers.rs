//! Numbers as tables write them: `4096`, `4096.0`, `0x1000`, `1e-05`, `1,234.5`, `1.234,5`.
//!
//! A comma and a dot are the decimal mark or separate groups of three digits. [`Decimal`] says which of them is the
//! decimal mark in a table; [`readings`] finds out from a number that allows only one of them.
//!
//! Invariants:
//! 1. A number is exactly its value in the unit of the result, or a [`Fault`]. Only fractions of a nanosecond are cut
//!    off, and only in times.
//! 2. Digits between two groups are three, and the first group has no leading zero.

/// The decimal mark of the numbers in a table. The other of the two characters may separate groups of three digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decimal {
    /// A point, as in `1,234.5`.
    Point,
    /// A comma, as in `1.234,5`.
    Comma,
}

impl std::str::FromStr for Decimal {
    type Err = String;

    fn from_str(text: &str) -> Result<Decimal, String> {
        match text {
            "point" => Ok(Decimal::Point),
            "comma" => Ok(Decimal::Comma),
            _ => Err(format!("«{text}» is no decimal mark: point or comma")),
        }
    }
}

/// Reason why a field is not the number that its column needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// The field is empty.
    Empty,
    /// The field is not a number.
    NotNumber,
    /// The field is NaN or another word for a missing value.
    Missing,
    /// The field is infinite.
    Infinite,
    /// The number is below 0.
    Negative,
    /// The number is not a whole number in the unit of the result.
    NotWhole,
    /// The number needs more than 64 bits in the unit of the result.
    TooLarge,
}

impl Fault {
    /// Returns the fault as the end of a sentence about the field.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Fault::Empty => "is empty",
            Fault::NotNumber => "is not a number",
            Fault::Missing => "is a missing value, not a number",
            Fault::Infinite => "is infinite",
            Fault::Negative => "is negative",
            Fault::NotWhole => "is not a whole number of sectors or bytes",
            Fault::TooLarge => "is too large for 64 bits",
        }
    }
}

/// Handling of decimals below the unit of the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Below {
    /// The decimals are cut off.
    Cut,
    /// A number with such decimals is a [`Fault::NotWhole`].
    Refuse,
}

/// Returns the value of `word`, in units of `unit`, as a number of ones.
#[inline]
pub(crate) fn value(word: &[u8], decimal: Decimal, unit: u64, below: Below) -> Result<u64, Fault> {
    match crate::fields::number(word) {
        Some(number) => number.checked_mul(unit).ok_or(Fault::TooLarge),
        None => value_of_any(word, decimal, unit, below),
    }
}

fn value_of_any(word: &[u8], decimal: Decimal, unit: u64, below: Below) -> Result<u64, Fault> {
    let (digits, is_negative) = signed(word);
    if digits.is_empty() {
        return Err(if word.is_empty() { Fault::Empty } else { Fault::NotNumber });
    }
    if let Some(fault) = named(digits) {
        return Err(fault);
    }
    let magnitude = match digits {
        [b'0', b'x' | b'X', digits @ ..] => hexadecimal(digits, unit),
        _ => scientific(digits, decimal, unit, below),
    };
    match magnitude {
        Ok(_) | Err(Fault::NotWhole | Fault::TooLarge) if is_negative => Err(Fault::Negative),
        magnitude => magnitude,
    }
}

fn signed(word: &[u8]) -> (&[u8], bool) {
    match word {
        [b'-', digits @ ..] => (digits, true),
        [b'+', digits @ ..] => (digits, false),
        // The minus sign of Unicode, which spreadsheets write.
        [0xe2, 0x88, 0x92, digits @ ..] => (digits, true),
        _ => (word, false),
    }
}

/// Returns the fault of the words that programs write where a number is missing or infinite.
fn named(word: &[u8]) -> Option<Fault> {
    let is = |name: &&str| word.eq_ignore_ascii_case(name.as_bytes());
    if ["nan", "na", "n/a", "<na>", "nat", "null", "none"].iter().any(is) {
        Some(Fault::Missing)
    } else if ["inf", "infinity", "∞"].iter().any(is) {
        Some(Fault::Infinite)
    } else {
        None
    }
}

fn hexadecimal(digits: &[u8], unit: u64) -> Result<u64, Fault> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(Fault::NotNumber);
    }
    crate::fields::hexadecimal(digits).and_then(|number| number.checked_mul(unit)).ok_or(Fault::TooLarge)
}

/// Returns the value of `[digits and groups][decimal mark][decimals][e exponent]`.
fn scientific(word: &[u8], decimal: Decimal, unit: u64, below: Below) -> Result<u64, Fault> {
    let mark = word.iter().position(|byte| matches!(byte, b'e' | b'E'));
    let exponent = match mark {
        Some(at) => exponent(&word[at + 1..])?,
        None => 0,
    };
    let mantissa = &word[..mark.unwrap_or(word.len())];
    let (point, group) = match decimal {
        Decimal::Point => (b'.', b','),
        Decimal::Comma => (b',', b'.'),
    };
    let at = mantissa.iter().position(|&byte| byte == point).unwrap_or(mantissa.len());
    let (whole, decimals) = (&mantissa[..at], mantissa.get(at + 1..).unwrap_or(&[]));
    if (whole.is_empty() && decimals.is_empty())
        || !decimals.iter().all(u8::is_ascii_digit)
        || !is_grouped(whole, group)
    {
        return Err(Fault::NotNumber);
    }
    let digits = whole.iter().copied().filter(|&byte| byte != group).chain(decimals.iter().copied());
    scaled(digits, decimals.len() as i64, exponent, unit, below)
}

/// Returns the exponent that `digits` write, with its sign. An exponent beyond all numbers of 64 bits is cut to one
/// that is still beyond them.
fn exponent(digits: &[u8]) -> Result<i64, Fault> {
    const FAR: u64 = 100_000;
    let (digits, is_negative) = signed(digits);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Fault::NotNumber);
    }
    let magnitude = crate::fields::number(digits).map_or(FAR, |number| number.min(FAR)) as i64;
    Ok(if is_negative { -magnitude } else { magnitude })
}

/// Returns whether `whole` consists of digits, in one group or in groups of three.
fn is_grouped(whole: &[u8], group: u8) -> bool {
    if whole.iter().all(u8::is_ascii_digit) {
        return true;
    }
    let mut groups = whole.split(|&byte| byte == group);
    let first = groups.next().unwrap_or(&[]);
    (1..=3).contains(&first.len())
        && first[0] != b'0'
        && first.iter().all(u8::is_ascii_digit)
        && groups.all(|digits| digits.len() == 3 && digits.iter().all(u8::is_ascii_digit))
}

/// Returns `digits · 10^(exponent − decimals) · unit`.
fn scaled(
    digits: impl Iterator<Item = u8>,
    decimals: i64,
    exponent: i64,
    unit: u64,
    below: Below,
) -> Result<u64, Fault> {
    // So many digits times a unit fit in 128 bits. Digits beyond them lie below the unit, or the number is too large.
    const DIGITS_MAX: u32 = 28;
    let (mut mantissa, mut kept, mut shift, mut is_cut) = (0u128, 0, exponent - decimals, false);
    for digit in digits.map(|byte| u128::from(byte - b'0')) {
        if kept < DIGITS_MAX {
            mantissa = mantissa * 10 + digit;
            kept += u32::from(mantissa > 0);
        } else {
            shift += 1;
            is_cut |= digit > 0;
        }
    }
    let ones = mantissa * u128::from(unit);
    let power = u32::try_from(shift.unsigned_abs()).ok().and_then(|shift| 10u128.checked_pow(shift));
    let (number, rest) = match power {
        _ if ones == 0 => (0, 0),
        Some(power) if shift < 0 => (ones / power, ones % power),
        None if shift < 0 => (0, ones),
        Some(power) => (ones.checked_mul(power).ok_or(Fault::TooLarge)?, 0),
        None => return Err(Fault::TooLarge),
    };
    if (rest > 0 || is_cut) && below == Below::Refuse {
        return Err(Fault::NotWhole);
    }
    u64::try_from(number).map_err(|_| Fault::TooLarge)
}

/// Returns the values of `word` with each decimal mark: `(point, comma)`; `None` where it is not a number.
pub(crate) fn readings(word: &[u8], unit: u64, below: Below) -> (Option<u64>, Option<u64>) {
    let of = |decimal| value(word, decimal, unit, below).ok();
    (of(Decimal::Point), of(Decimal::Comma))
}

/// Returns whether `word` has a dot or a comma, so that its value may depend on the decimal mark.
#[inline]
pub(crate) fn has_mark(word: &[u8]) -> bool {
    word.iter().any(|byte| matches!(byte, b'.' | b','))
}

/// Returns whether `word` is a number of any form: with either decimal mark, with a sign, infinite.
pub(crate) fn is_number(word: &[u8]) -> bool {
    let is = |decimal| match value(word, decimal, 1, Below::Cut) {
        Ok(_) | Err(Fault::Infinite | Fault::Negative | Fault::NotWhole | Fault::TooLarge) => true,
        Err(Fault::Empty | Fault::NotNumber | Fault::Missing) => false,
    };
    is(Decimal::Point) || is(Decimal::Comma)
}

#[cfg(test)]
mod tests {
    //! Goal: every form of a number has its exact value, and everything else is refused by name. Method: cases worked
    //! out by hand, and numbers printed by the standard library.

    use super::Decimal::{Comma, Point};
    use super::*;
    use proptest::prelude::*;

    fn whole(word: &str, decimal: Decimal) -> Result<u64, Fault> {
        value(word.as_bytes(), decimal, 1, Below::Refuse)
    }

    #[test]
    fn forms_of_whole_numbers() {
        for word in
            ["4096", "4096.0", "4096.", "4,096", "4,096.000", "0x1000", "0X1000", "4.096e3", "40960E-1", "+4096"]
        {
            assert_eq!(whole(word, Point), Ok(4096), "{word}");
        }
        for word in ["4096", "4096,0", "4.096", "4.096,000", "4,096e+03"] {
            assert_eq!(whole(word, Comma), Ok(4096), "{word}");
        }
        assert_eq!(whole("18446744073709551615.0", Point), Ok(u64::MAX));
        assert_eq!(whole("0e99999999999999999999", Point), Ok(0));
        assert_eq!(whole("1,234,567", Point), Ok(1_234_567));
    }

    #[test]
    fn what_is_no_whole_number_is_refused_by_name() {
        for (word, fault) in [
            ("", Fault::Empty),
            ("NaN", Fault::Missing),
            ("<NA>", Fault::Missing),
            ("inf", Fault::Infinite),
            ("-Infinity", Fault::Infinite),
            ("-5", Fault::Negative),
            ("−5", Fault::Negative),
            ("-0.5", Fault::Negative),
            ("4.5", Fault::NotWhole),
            ("1e-5", Fault::NotWhole),
            ("18446744073709551616", Fault::TooLarge),
            ("1e20", Fault::TooLarge),
            ("1e999999999999", Fault::TooLarge),
            ("0x10000000000000000", Fault::TooLarge),
            ("4,09", Fault::NotNumber),
            ("04,096", Fault::NotNumber),
            ("0,096", Fault::NotNumber),
            ("4,0960", Fault::NotNumber),
            ("4096,", Fault::NotNumber),
            ("4.096.000", Fault::NotNumber),
            ("1_000", Fault::NotNumber),
            ("ff", Fault::NotNumber),
            ("0x", Fault::NotNumber),
            ("e5", Fault::NotNumber),
            ("5e", Fault::NotNumber),
            (".", Fault::NotNumber),
            ("+", Fault::NotNumber),
            ("--5", Fault::NotNumber),
        ] {
            assert_eq!(whole(word, Point), Err(fault), "{word}");
        }
    }

    #[test]
    fn units_and_decimals() {
        let ns = |word: &str| value(word.as_bytes(), Point, 1_000_000_000, Below::Cut);
        assert_eq!(ns("1e-05"), Ok(10_000));
        assert_eq!(ns("1456095145.133076001"), Ok(1_456_095_145_133_076_001));
        assert_eq!(ns("0.00000000099"), Ok(0));
        assert_eq!(ns("0.1234567899999999999999999999999999999999999999999"), Ok(123_456_789));
        assert_eq!(ns(".25"), Ok(250_000_000));
        assert_eq!(ns("99999999999999"), Err(Fault::TooLarge));
        assert_eq!(value(b"1.5", Point, 1024, Below::Refuse), Ok(1536));
        assert_eq!(value(b"0.001", Point, 1024, Below::Refuse), Err(Fault::NotWhole));
    }

    #[test]
    fn a_number_may_allow_one_decimal_mark_alone() {
        let of = |word: &str| readings(word.as_bytes(), 1, Below::Refuse);
        assert_eq!(of("8.000"), (Some(8), Some(8000)));
        assert_eq!(of("4.096"), (None, Some(4096)));
        assert_eq!(of("4096.0"), (Some(4096), None));
        assert_eq!(of("1.234.567"), (None, Some(1_234_567)));
        assert_eq!(of("0,500"), (None, None));
    }

    proptest! {
        /// The standard library prints a whole number in every form.
        #[test]
        fn printed_numbers_come_back(number in 0u64..1 << 50, decimals in 0usize..6) {
            prop_assert_eq!(whole(&format!("{:.decimals$}", number as f64), Point), Ok(number));
            prop_assert_eq!(whole(&format!("{:e}", number as f64), Point), Ok(number));
            prop_assert_eq!(whole(&format!("{number:#x}"), Point), Ok(number));
        }

        /// Decimals of seconds, against the digits themselves.
        #[test]
        fn decimals_are_nanoseconds(seconds in 0u64..1 << 33, ns in 0u64..1_000_000_000, more in 0u64..1_000_000) {
            let word = format!("{seconds}.{ns:09}{more:06}");
            let expected = seconds * 1_000_000_000 + ns;
            prop_assert_eq!(value(word.as_bytes(), Point, 1_000_000_000, Below::Cut), Ok(expected));
        }
    }
}
