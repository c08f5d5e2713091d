//! Sizes and durations as people write them: the one place that reads them.
//!
//! Invariants:
//! 1. Arithmetic is exact: decimals are fixed-point integers. What is no whole number of bytes or nanoseconds is rounded to
//!    the nearest one, or refused by those who print it again (`exact_…`).
//! 2. Bare `k`, `m`, `g`, `t` are powers of 1024, as fio has them; `kB`, `MB` … are powers of 1000.

/// Decimals that count; none of the units below needs more for whole bytes and nanoseconds.
const PLACES: u32 = 12;

/// Nanoseconds in a second: what a bare number counts in, for most.
pub const SECOND_NS: u64 = 1_000_000_000;

/// `4k`, `25MiB`, `25MB`, `1.5TiB`, `512`: bytes, to the nearest whole one.
pub fn bytes(text: &str) -> Option<u64> {
    let (number, factor) = size(text)?;
    rounded(number, factor)
}

/// The same, if it is a whole number of bytes.
pub fn exact_bytes(text: &str) -> Option<u64> {
    let (number, factor) = size(text)?;
    exact(number, factor)
}

/// `100ns`, `5us`, `2ms`, `1.2s`, `30m`, `3h`, `2d`: nanoseconds, to the nearest whole one. A bare number counts in
/// `bare_ns`.
pub fn duration_ns(text: &str, bare_ns: u64) -> Option<u64> {
    let (number, factor) = span(text, bare_ns)?;
    rounded(number, factor)
}

/// The same, if it is a whole number of nanoseconds.
pub fn exact_duration_ns(text: &str, bare_ns: u64) -> Option<u64> {
    let (number, factor) = span(text, bare_ns)?;
    exact(number, factor)
}

/// A whole number, with `_` allowed between digits.
pub fn count(text: &str) -> Option<u64> {
    fixed(text, 0).filter(|_| !text.contains('.'))
}

/// `text` as a fixed-point number with `places` decimals: `fixed("1.5", 3)` is 1500. More decimals are refused.
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

/// `number` times `factor`, in units of 10^-[`PLACES`]; decimals beyond those are dropped.
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

/// A whole number in groups of three digits: `145,799`.
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

    #[test]
    fn digits_stand_in_groups_of_three() {
        assert_eq!([0, 999, 1000, 145_799, 1_000_000].map(grouped), ["0", "999", "1,000", "145,799", "1,000,000"]);
    }
}
