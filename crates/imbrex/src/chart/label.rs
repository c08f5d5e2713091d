//! Formats numbers for people: three digits and a unit.
//!
//! Invariants:
//! 1. Sizes are binary (KiB, MiB, TiB), as in the tables on the terminal. Rates are decimal (MB/s). Times run from ns
//!    to days.
//! 2. A no-break space joins a number and its unit.

use serde::{Deserialize, Serialize};

/// Unit of the values of an axis or of a number to be formatted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A number of items, without a unit.
    Count,
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// A fraction of 1, shown in percent.
    Share,
    /// A ratio, shown with × before the number.
    Ratio,
}

const NO_BREAK: char = '\u{a0}';

impl Unit {
    /// Returns the name of the unit in the attributes that scripts read, such as `bytes_per_second`.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Count => "count",
            Unit::Nanoseconds => "ns",
            Unit::Bytes => "bytes",
            Unit::BytesPerSecond => "bytes_per_second",
            Unit::Share => "share",
            Unit::Ratio => "ratio",
        }
    }

    /// Formats `value`, which is in the unit `self`, with about three digits in a multiple of the unit that suits its
    /// size: 12,500,000 ns gives `12.5 ms`, and a share of 0.5 gives `50.0 %`. A whole count keeps all its
    /// digits: `12 345`.
    pub fn label(self, value: f64) -> String {
        match self {
            Unit::Count => count(value),
            Unit::Nanoseconds => duration(value),
            Unit::Bytes => bytes(value),
            Unit::BytesPerSecond => scaled(value, &RATES),
            Unit::Share => share(value),
            Unit::Ratio => ratio(value),
        }
    }

    /// Returns the multiple of this unit for the tick labels of an axis whose largest absolute value is `largest`,
    /// which is in the unit `self`. The result is the number of units in the multiple, and its name: (1e6, `ms`) for
    /// [`Unit::Nanoseconds`] and 5,000,000.
    pub fn division(self, largest: f64) -> (f64, &'static str) {
        let table: &[(f64, f64, &str)] = match self {
            Unit::Nanoseconds => &TIMES,
            Unit::Bytes => &SIZES,
            Unit::BytesPerSecond => &RATES,
            Unit::Count => &[(1e6, 1e6, "M"), (1e4, 1e3, "k"), (0.0, 1.0, "")],
            Unit::Share => &[(0.0, 0.01, "%")],
            Unit::Ratio => &[(0.0, 1.0, "×")],
        };
        let found = table.iter().find(|row| largest >= row.0).unwrap_or(&table[table.len() - 1]);
        (found.1, found.2)
    }

    /// Formats `value`, which is in the unit `self`, in the multiple (number of units, name) that [`Unit::division`]
    /// returned. Has at most six decimals and no trailing zeros.
    pub fn divided(self, value: f64, (divisor, name): (f64, &str)) -> String {
        let number = trimmed(value / divisor);
        match (self, name) {
            (Unit::Ratio, _) => format!("×{number}"),
            (Unit::Count, _) if number == "0" => number,
            (_, "") => number,
            _ => format!("{number}{NO_BREAK}{name}"),
        }
    }
}

/// Units of time: (smallest value in ns, divisor, name). Seconds and minutes are used beyond 60, and hours beyond 24,
/// as people do.
const TIMES: [(f64, f64, &str); 7] = [
    (172_800e9, 86_400e9, "d"),
    (10_800e9, 3_600e9, "h"),
    (300e9, 60e9, "min"),
    (1e9, 1e9, "s"),
    (1e6, 1e6, "ms"),
    (1e3, 1e3, "µs"),
    (0.0, 1.0, "ns"),
];

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;
const GIB: f64 = 1024.0 * MIB;
const TIB: f64 = 1024.0 * GIB;
const PIB: f64 = 1024.0 * TIB;

const SIZES: [(f64, f64, &str); 6] =
    [(PIB, PIB, "PiB"), (TIB, TIB, "TiB"), (GIB, GIB, "GiB"), (MIB, MIB, "MiB"), (KIB, KIB, "KiB"), (0.0, 1.0, "B")];

const RATES: [(f64, f64, &str); 4] = [(1e9, 1e9, "GB/s"), (1e6, 1e6, "MB/s"), (1e3, 1e3, "kB/s"), (0.0, 1.0, "B/s")];

/// Formats `value` with up to six decimals and without trailing zeros.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" || text.is_empty() { "0".to_string() } else { text.replace('-', "−") }
}

/// Formats `value` with three significant digits, or as a whole number from 100 on; with at most six decimals. The
/// minus sign is U+2212.
pub fn three_digits(value: f64) -> String {
    let size = value.abs();
    let decimals = if size == 0.0 || size >= 99.95 {
        0
    } else if size >= 9.995 {
        1
    } else if size >= 0.9995 {
        2
    } else {
        (2 - size.log10().floor() as i32).clamp(0, 6) as usize
    };
    format!("{value:.decimals$}").replace('-', "−")
}

fn scaled(value: f64, table: &[(f64, f64, &str)]) -> String {
    // 999.9 µs is shown as 1.00 ms, not as 1000 µs.
    let shown = value.abs() * 1.0005;
    let row = table.iter().find(|row| shown >= row.0).unwrap_or(&table[table.len() - 1]);
    if row.1 == 1.0 && value.fract() == 0.0 {
        return format!("{}{NO_BREAK}{}", grouped(value as i64), row.2);
    }
    format!("{}{NO_BREAK}{}", three_digits(value / row.1), row.2)
}

/// Formats a duration of `ns` nanoseconds with three digits in a unit from ns to d: `12.3 ms`; 0 gives `0`.
pub fn duration(ns: f64) -> String {
    if ns == 0.0 {
        return "0".to_string();
    }
    scaled(ns, &TIMES)
}

/// Formats a size in bytes with three digits in a binary unit from B to PiB: `1.50 TiB`. A whole number of bytes below
/// 1 KiB has no decimals.
pub fn bytes(bytes: f64) -> String {
    scaled(bytes, &SIZES)
}

/// Formats a fraction of 1 in percent with three digits: 0.123 gives `12.3 %`. Between 99 % and 100 %, more decimals
/// show the distance from 100 %: `99.99 %`.
pub fn share(share: f64) -> String {
    let percent = share * 100.0;
    let number = if percent > 99.0 && percent < 100.0 {
        let nines = (-(1.0 - share).log10()).ceil().clamp(3.0, 7.0) as usize;
        let decimals = nines - 2;
        let text = format!("{percent:.decimals$}");
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    } else {
        three_digits(percent)
    };
    format!("{number}{NO_BREAK}%")
}

/// Formats a ratio with three digits: `×1.25`.
pub fn ratio(ratio: f64) -> String {
    format!("×{}", three_digits(ratio))
}

/// Formats a number of items. A whole number keeps all digits, in groups of three from five digits on: `12 345`. A
/// fractional number below 10,000 gets three significant digits; a larger one is rounded to a whole number.
pub fn count(value: f64) -> String {
    if value.fract() != 0.0 && value.abs() < 1e4 {
        return three_digits(value);
    }
    grouped(value.round() as i64)
}

/// Formats a whole number. From five digits on, narrow no-break spaces separate groups of three digits: `12 345`, but
/// `1234`.
pub fn grouped(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let sign = if value < 0 { "−" } else { "" };
    if digits.len() < 5 {
        return format!("{sign}{digits}");
    }
    let mut text = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: String) -> String {
        text.replace(['\u{a0}', '\u{202f}'], " ")
    }

    #[test]
    fn durations_carry_three_digits_and_the_fitting_unit() {
        for (ns, text) in [
            (0.0, "0"),
            (850.0, "850 ns"),
            (12_340.0, "12.3 µs"),
            (999_900.0, "1.00 ms"),
            (8_333_333.0, "8.33 ms"),
            (1.25e9, "1.25 s"),
            (200e9, "200 s"),
            (1_500e9, "25.0 min"),
            (36_000e9, "10.0 h"),
        ] {
            assert_eq!(plain(duration(ns)), text);
        }
    }

    #[test]
    fn sizes_are_binary_as_the_terminal_has_them_and_counts_grouped() {
        for (size, text) in [(512u64, "512 B"), (339_000, "331 KiB"), (20_000_000_000_000, "18.2 TiB")] {
            assert_eq!(plain(bytes(size as f64)), text);
            assert_eq!(crate::human::bytes(size), text);
        }
        assert_eq!(plain(bytes(4096.0)), "4.00 KiB");
        assert_eq!(plain(Unit::BytesPerSecond.label(185_390_000.0)), "185 MB/s");
        assert_eq!(plain(count(9999.0)), "9999");
        assert_eq!(plain(count(1_234_567.0)), "1 234 567");
    }

    #[test]
    fn shares_near_one_show_their_nines() {
        assert_eq!(plain(share(0.5)), "50.0 %");
        assert_eq!(plain(share(0.999)), "99.9 %");
        assert_eq!(plain(share(0.9999)), "99.99 %");
        assert_eq!(plain(share(1.0)), "100 %");
    }

    #[test]
    fn labels_of_one_axis_share_a_division() {
        let division = Unit::Nanoseconds.division(30e6);
        assert_eq!(plain(Unit::Nanoseconds.divided(5e6, division)), "5 ms");
        assert_eq!(plain(Unit::Nanoseconds.divided(500e3, division)), "0.5 ms");
        assert_eq!(Unit::Ratio.divided(2.5, Unit::Ratio.division(9.0)), "×2.5");
    }
}
