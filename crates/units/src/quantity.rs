//! Parsing of sizes and durations as people write them, and printing of sizes. All crates use these functions.
//!
//! Invariants:
//! 1. Arithmetic is exact: decimals are fixed-point integers. A fraction of a byte or nanosecond is rounded to the
//!    nearest whole one. The `exact_…` functions refuse it, because their callers print the value again.
//! 2. Bare `k`, `m`, `g`, `t` are powers of 1024, as in fio; `kB`, `MB` … are powers of 1000.

/// Number of decimals that are kept. The units below need no more for whole bytes and nanoseconds.
const PLACES: u32 = 12;

/// Nanoseconds in a second. Most callers of [`duration_ns`] pass this value as `bare_ns`.
pub const SECOND_NS: u64 = 1_000_000_000;

/// Parses a size such as `4k`, `25MiB`, `25MB`, `1.5TiB`, `512` (bytes). Returns bytes, rounded to the nearest whole
/// one, halves upwards. Units are read without regard to case: `k` and `KiB` are 1024 bytes, `kB` is 1000.
///
/// Returns `None` if the text is no number with a known unit, is negative, or exceeds `u64::MAX` bytes.
pub fn bytes(text: &str) -> Option<u64> {
    let (number, factor) = size(text)?;
    rounded(number, factor)
}

/// Parses a size such as `4k`, `25MiB`, `25MB`, `1.5TiB` or `512` (bytes), and returns it in bytes. Units are read
/// without regard to case: `k` and `KiB` are 1024 bytes, `kB` is 1000. Decimals after the twelfth are ignored.
///
/// Returns `None` if the text is no number with a known unit, is negative, exceeds `u64::MAX` bytes, or is not a whole
/// number of bytes.
pub fn exact_bytes(text: &str) -> Option<u64> {
    let (number, factor) = size(text)?;
    exact(number, factor)
}

/// Parses a duration such as `100ns`, `5us`, `2ms`, `1.2s`, `30m` (minutes), `3h`, `2d`. Returns nanoseconds, rounded
/// to the nearest whole one, halves upwards. A number without a unit counts in units of `bare_ns` nanoseconds.
///
/// Returns `None` if the text is no number with a known unit, is negative, or exceeds `u64::MAX` ns. Units in capital
/// letters are unknown.
pub fn duration_ns(text: &str, bare_ns: u64) -> Option<u64> {
    let (number, factor) = span(text, bare_ns)?;
    rounded(number, factor)
}

/// Parses a duration such as `100ns`, `5us`, `2ms`, `1.2s`, `30m` (minutes), `3h`, `2d`, and returns it in nanoseconds.
/// A number without a unit counts in units of `bare_ns` nanoseconds. Decimals after the twelfth are ignored.
///
/// Returns `None` if the text is no number with a known unit, is negative, exceeds `u64::MAX` ns, or is not a whole
/// number of nanoseconds. Units in capital letters are unknown.
pub fn exact_duration_ns(text: &str, bare_ns: u64) -> Option<u64> {
    let (number, factor) = span(text, bare_ns)?;
    exact(number, factor)
}

/// Parses a whole decimal number such as `1000` or `1_000`; every `_` is ignored. Returns `None` if the text has no
/// digit, has any other character (a space or a sign too), or exceeds `u64::MAX`.
pub fn count(text: &str) -> Option<u64> {
    fixed(text, 0).filter(|_| !text.contains('.'))
}

/// Parses a decimal number and returns it times 10 to the power `places`: `fixed("1.5", 3)` is 1500. A `_` before the
/// point is ignored, and so are zeros at the end of the decimals.
///
/// Returns `None` if the text has more than `places` decimals, is no such number, or the result exceeds `u64::MAX`.
/// `places` must be at most 19.
pub fn fixed(text: &str, places: u32) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.chars().all(|c| c.is_ascii_digit() || c == '_');
    let fraction = fraction.trim_end_matches('0');
    if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > places as usize {
        return None;
    }
    let whole: u64 = whole.replace('_', "").parse().ok()?;
    let padded = format!("{fraction:0<width$}", width = places as usize);
    let fraction: u64 = if padded.is_empty() { 0 } else { padded.parse().ok()? };
    whole.checked_mul(10u64.pow(places))?.checked_add(fraction)
}

fn size(text: &str) -> Option<(&str, u64)> {
    let (number, unit) = split_unit(text);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1u64,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return None,
    };
    Some((number, factor))
}

fn span(text: &str, bare_ns: u64) -> Option<(&str, u64)> {
    let (number, unit) = split_unit(text);
    let factor = match unit {
        "" => bare_ns,
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return None,
    };
    Some((number, factor))
}

/// Splits `1.5TiB` into the number and the unit.
fn split_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim())
}

/// Returns `number` times `factor`, in units of 10^-[`PLACES`]; decimals of `number` beyond those are dropped.
fn product(number: &str, factor: u64) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |part: &str| part.chars().all(|c| c.is_ascii_digit() || c == '_');
    if whole.replace('_', "").is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole: u64 = whole.replace('_', "").parse().ok()?;
    let kept: String =
        fraction.chars().filter(|&c| c != '_').chain(std::iter::repeat('0')).take(PLACES as usize).collect();
    let value = u128::from(whole) * 10u128.pow(PLACES) + kept.parse::<u128>().ok()?;
    value.checked_mul(u128::from(factor))
}

fn rounded(number: &str, factor: u64) -> Option<u64> {
    let unit = 10u128.pow(PLACES);
    u64::try_from((product(number, factor)? + unit / 2) / unit).ok()
}

fn exact(number: &str, factor: u64) -> Option<u64> {
    let (value, unit) = (product(number, factor)?, 10u128.pow(PLACES));
    u64::try_from(value / unit).ok().filter(|_| value.is_multiple_of(unit))
}

/// The direction in which [`said_bytes`] rounds a size that has more than four digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    /// To the nearest printable value; a tie goes to the even last digit.
    Nearest,
    /// Up, for a minimum: the printed size is never below the size.
    Up,
    /// Down, for a maximum: the printed size is never above the size.
    Down,
}

/// Returns a size as text with at most four digits, rounded as `rounding` says. The unit (B, KiB, … EiB) is the largest
/// of which the rounded size has at least one: `1 GiB`, `1.5 KiB`, `256.0 MiB`. Zeros at the end of the decimals are
/// kept only if the size was rounded.
pub fn said_bytes(bytes: u64, rounding: Rounding) -> String {
    in_units(bytes, rounding, |whole| 3 - whole.ilog10())
}

/// Returns a size as text for a table, in the largest unit (B, KiB, … EiB) of which it has at least one, rounded to the
/// nearest value. It has one decimal below 100 units and none from 100 on: `18.6 GiB`, `256 MiB`. The decimal is left
/// out if it is 0 and exact.
pub fn rough_bytes(bytes: u64) -> String {
    in_units(bytes, Rounding::Nearest, |whole| u32::from(whole < 100))
}

/// Returns a size in the largest unit of which it has at least one. `decimals` maps the number of whole units to the
/// number of decimals.
fn in_units(bytes: u64, rounding: Rounding, decimals: impl Fn(u64) -> u32) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let number = bytes.max(1).ilog2() as usize / 10;
    let digits = |number: usize, whole: u64| {
        let (unit, places) = (1u128 << (10 * number), decimals(whole.max(1)));
        let one = 10u128.pow(places);
        let (down, rest) = (u128::from(bytes) * one / unit, u128::from(bytes) * one % unit);
        let is_up = match rounding {
            Rounding::Nearest => 2 * rest > unit || (2 * rest == unit && down % 2 == 1),
            Rounding::Up => rest > 0,
            Rounding::Down => false,
        };
        let rounded = down + u128::from(is_up);
        (rounded / one, format!("{:0width$}", rounded % one, width = places as usize), places > 0, rest == 0)
    };
    // Rounding may raise the number of whole units: 1023.7 MiB becomes a GiB, and 99.97 MiB becomes a number with one
    // decimal less.
    let (whole, ..) = digits(number, bytes >> (10 * number));
    let (number, whole) = if whole == 1024 { (number + 1, 1) } else { (number, whole as u64) };
    let (whole, fraction, has_fraction, is_exact) = digits(number, whole);
    let fraction = if is_exact { fraction.trim_end_matches('0') } else { &fraction };
    match has_fraction && !fraction.is_empty() {
        true => format!("{whole}.{fraction} {}", UNITS[number]),
        false => format!("{whole} {}", UNITS[number]),
    }
}

/// Returns a number in decimal, with a comma between groups of three digits: `145,799`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    //! Goal: values read as people write them, exactly. Method: pairs worked out by hand.

    use super::*;

    #[test]
    fn sizes_read_as_people_write_them() {
        let pairs =
            [("4k", 4096), ("25MB", 25_000_000), ("1.5TiB", 3 << 39), ("0", 0), (" 8 KiB ", 8192), ("1_000", 1000)];
        for (text, expected) in pairs {
            assert_eq!((bytes(text), exact_bytes(text)), (Some(expected), Some(expected)), "{text}");
        }
        for wrong in ["", "k", "4q", "-4k", "99999999999T", "1.2.3k", "."] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
        // 0.3 GiB is 322,122,547.2 bytes.
        assert_eq!((bytes("0.3GiB"), exact_bytes("0.3GiB")), (Some(322_122_547), None));
        assert_eq!(bytes("18446744073709551615"), Some(u64::MAX));
    }

    #[test]
    fn durations_read_as_people_write_them() {
        for (text, expected) in [("2h", 7_200_000_000_000), ("1.2s", 1_200_000_000), ("90", 90_000), ("0.5us", 500)] {
            assert_eq!(exact_duration_ns(text, 1_000), Some(expected), "{text}");
            assert_eq!(duration_ns(text, 1_000), Some(expected), "{text}");
        }
        assert_eq!(
            (duration_ns("2 weeks", 1), duration_ns("1.6ns", 1), exact_duration_ns("1.6ns", 1)),
            (None, Some(2), None)
        );
    }

    /// Checks printed sizes: exact sizes have no trailing zeros; rounded ones have four digits, or one decimal below a
    /// hundred.
    #[test]
    fn sizes_are_said_in_the_largest_unit_that_suits() {
        use Rounding::{Down, Nearest, Up};
        const KIB: u64 = 1 << 10;
        const MIB: u64 = 1 << 20;
        for (size, said, rough) in [
            (0, "0 B", "0 B"),
            (1023, "1023 B", "1023 B"),
            (1024 * MIB, "1 GiB", "1 GiB"),
            (1536 * MIB, "1.5 GiB", "1.5 GiB"),
            (1000 * KIB, "1000 KiB", "1000 KiB"),
            (120 * MIB, "120 MiB", "120 MiB"),
            (3 << 60, "3 EiB", "3 EiB"),
            // 256 MiB without 48 KiB: 255.953125.
            (262_096 * KIB, "256.0 MiB", "256 MiB"),
            // 39.0625 has six digits.
            (10_000 * 4096, "39.06 MiB", "39.1 MiB"),
            // A tie goes to the even digit: 1.0625 has four decimals, 1.25 two.
            (1088 * KIB, "1.062 MiB", "1.1 MiB"),
            (1280 * KIB, "1.25 MiB", "1.2 MiB"),
            // Rounding may reach the next unit, or one digit more.
            (1024 * MIB - 1, "1.000 GiB", "1.0 GiB"),
            (100 * MIB - 1, "100.0 MiB", "100 MiB"),
        ] {
            assert_eq!((said_bytes(size, Nearest).as_str(), rough_bytes(size).as_str()), (said, rough), "{size}");
        }
        let both = |size| [Down, Up].map(|rounding| said_bytes(size, rounding));
        assert_eq!(both(262_096 * KIB), ["255.9 MiB", "256.0 MiB"]);
        assert_eq!(both(10_000 * 4096), ["39.06 MiB", "39.07 MiB"]);
        assert_eq!(both(1024 * MIB - 1), ["1023 MiB", "1.000 GiB"]);
        assert_eq!(both(1536 * MIB), ["1.5 GiB", "1.5 GiB"]);
        assert_eq!(both(u64::MAX), ["15.99 EiB", "16.00 EiB"]);
        // Sizes printed as a minimum or a maximum are still one when they are parsed.
        for size in (0..50).map(|shift| (1u64 << shift) + (1 << (shift / 2)) + 1) {
            let [down, up] = both(size).map(|said| bytes(&said).expect("it is a size"));
            assert!(down <= size && size <= up && up - down <= size / 500, "{size}: {down} to {up}");
        }
    }

    #[test]
    fn digits_stand_in_groups_of_three() {
        assert_eq!([0, 999, 1000, 145_799, 1_000_000].map(grouped), ["0", "999", "1,000", "145,799", "1,000,000"]);
    }
}
