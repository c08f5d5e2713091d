//! Parsing of sizes, durations, shares and rates in the forms that users write, and printing in one canonical form.
//!
//! Invariants:
//! 1. Arithmetic is exact: decimals are fixed-point integers, so a printed value reads back as an equal value.
//! 2. `k`, `m`, `g`, `t` without `B` are powers of 1024, as in fio; `kB`, `MB` … are powers of 1000.

use std::fmt;

use imbrex_units::{SimDuration, quantity};

use super::error::WordError;

/// A share of a whole, in millionths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Share(u32);

impl Share {
    /// The empty share, 0 %.
    pub(super) const NONE: Share = Share(0);
    /// The whole, 100 %.
    pub(super) const ALL: Share = Share(Share::MILLIONTHS);
    /// Number of millionths in the whole.
    pub(super) const MILLIONTHS: u32 = 1_000_000;

    /// Returns a share of `millionths`.
    ///
    /// # Panics
    ///
    /// If the share exceeds the whole.
    pub(super) const fn from_millionths(millionths: u32) -> Share {
        assert!(millionths <= Share::MILLIONTHS);
        Share(millionths)
    }

    /// Returns the share in millionths.
    pub(super) const fn millionths(self) -> u32 {
        self.0
    }

    /// Returns the rest of the whole.
    pub(super) const fn rest(self) -> Share {
        Share(Share::MILLIONTHS - self.0)
    }

    /// Returns this share of `whole`, rounded down.
    pub(super) fn of(self, whole: u64) -> u64 {
        (whole as u128 * self.0 as u128 / Share::MILLIONTHS as u128) as u64
    }

    /// Returns the share as a number between 0 and 1.
    pub(super) fn as_f64(self) -> f64 {
        self.0 as f64 / Share::MILLIONTHS as f64
    }
}

impl fmt::Display for Share {
    /// Prints the share in percent, without the sign: `60`, `12.5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&decimal(self.0 as u64, 4))
    }
}

/// A size or position on the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Span {
    /// A number of bytes.
    Bytes(u64),
    /// A share of the drive.
    Share(Share),
}

impl Span {
    /// Returns the size in sectors of 512 bytes, rounded down, on a drive of `device_sectors` sectors.
    pub(super) fn sectors(self, device_sectors: u64) -> u64 {
        match self {
            Span::Bytes(bytes) => bytes / 512,
            Span::Share(share) => share.of(device_sectors),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Span::Bytes(bytes) => f.write_str(&print_bytes(*bytes)),
            Span::Share(share) => write!(f, "{share}%"),
        }
    }
}

/// Prints `value` with its last `places` digits after the point, without trailing zeros.
fn decimal(value: u64, places: u32) -> String {
    let unit = 10u64.pow(places);
    let fraction = format!("{:0width$}", value % unit, width = places as usize);
    match fraction.trim_end_matches('0') {
        "" => (value / unit).to_string(),
        digits => format!("{}.{digits}", value / unit),
    }
}

/// Parses a size in bytes.
pub(super) fn bytes(text: &str) -> Result<u64, WordError> {
    let is_zones = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if text.strip_suffix(['z', 'Z']).is_some_and(is_zones) {
        return Err(WordError::new(
            format!("'{text}' counts zones, and a workload is the same on drives with other zones"),
            "write bytes, such as 256MiB for a zone of a usual drive",
        ));
    }
    quantity::exact_bytes(text)
        .ok_or_else(|| WordError::new(format!("'{text}' is not a size"), "write one such as 4k, 64KiB, 1.5GiB or 25MB"))
}

/// Prints a size in the largest unit of which it is a whole multiple.
pub(super) fn print_bytes(bytes: u64) -> String {
    for (shift, unit) in [(40, "T"), (30, "G"), (20, "M"), (10, "k")] {
        if bytes > 0 && bytes.is_multiple_of(1u64 << shift) {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

/// Parses a size in bytes or a share of the drive: `10GiB`, `25%`.
pub(super) fn span(text: &str) -> Result<Span, WordError> {
    match text.strip_suffix('%') {
        Some(_) => share(text).map(Span::Share),
        None => bytes(text).map(Span::Bytes).map_err(|complaint| {
            WordError::new(complaint.problem, format!("{}, or a share of the drive such as 25%", complaint.remedy))
        }),
    }
}

/// Parses a share in percent, with or without the sign.
pub(super) fn share(text: &str) -> Result<Share, WordError> {
    quantity::fixed(text.strip_suffix('%').unwrap_or(text).trim(), 4)
        .filter(|&millionths| millionths <= Share::MILLIONTHS as u64)
        .map(|millionths| Share(millionths as u32))
        .ok_or_else(|| {
            WordError::new(
                format!("'{text}' is not a percentage"),
                "write a number from 0 to 100, with at most four decimals",
            )
        })
}

/// Parses a duration. A number without a unit counts units of `bare_ns` nanoseconds.
pub(super) fn duration(text: &str, bare_ns: u64) -> Result<SimDuration, WordError> {
    quantity::exact_duration_ns(text, bare_ns).map(SimDuration).ok_or_else(|| {
        WordError::new(format!("'{text}' is not a duration"), "write one such as 500us, 2ms, 10s, 30m or 2h")
    })
}

/// Prints a duration in the largest unit of which it is a whole multiple.
pub(super) fn print_duration(duration: SimDuration) -> String {
    let units =
        [(3_600_000_000_000, "h"), (60_000_000_000, "m"), (1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    for (unit_ns, unit) in units {
        if duration.0 > 0 && duration.0.is_multiple_of(unit_ns) {
            return format!("{}{unit}", duration.0 / unit_ns);
        }
    }
    if duration.is_zero() {
        return "0s".into();
    }
    format!("{}ns", duration.0)
}

/// Parses a whole number.
pub(super) fn count(text: &str) -> Result<u64, WordError> {
    quantity::count(text)
        .ok_or_else(|| WordError::new(format!("'{text}' is not a whole number"), "write one such as 7 or 1_000_000"))
}

/// Parses a rate per second. Returns thousandths.
pub(super) fn rate(text: &str) -> Result<u64, WordError> {
    quantity::fixed(text, 3).ok_or_else(|| {
        WordError::new(format!("'{text}' is not a rate"), "write requests per second, such as 200 or 5.9")
    })
}

/// Prints a rate per second, given in thousandths.
pub(super) fn print_rate(thousandths: u64) -> String {
    decimal(thousandths, 3)
}

/// Parses a switch: on or off.
pub(super) fn switch(text: &str) -> Result<bool, WordError> {
    match text {
        "1" | "on" | "true" => Ok(true),
        "0" | "off" | "false" => Ok(false),
        _ => Err(WordError::new(format!("'{text}' is neither on nor off"), "write on or off")),
    }
}

/// Parses a finite real number.
pub(super) fn real(text: &str) -> Result<f64, WordError> {
    text.parse::<f64>()
        .ok()
        .filter(|value| value.is_finite())
        .ok_or_else(|| WordError::new(format!("'{text}' is not a number"), "write one such as 1.1"))
}

#[cfg(test)]
mod tests {
    //! Goal: values are parsed exactly, in the forms that users write. Method: pairs worked out by hand.

    use super::*;

    #[test]
    fn sizes_read_and_print() {
        let pairs = [("4k", 4096, "4k"), ("25MB", 25_000_000, "25000000"), ("1.5TiB", 3 << 39, "1536G"), ("0", 0, "0")];
        for (text, expected, printed) in pairs {
            assert_eq!(bytes(text), Ok(expected), "{text}");
            assert_eq!(print_bytes(expected), printed);
        }
        for wrong in ["", "k", "4q", "-4k", "0.0001k", "99999999999T"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_read_and_print() {
        let pairs = [("2h", 7_200_000_000_000, "2h"), ("1.5s", 1_500_000_000, "1500ms"), ("90", 90_000, "90us")];
        for (text, expected, printed) in pairs {
            assert_eq!(duration(text, 1_000), Ok(SimDuration(expected)), "{text}");
            assert_eq!(print_duration(SimDuration(expected)), printed);
        }
        assert!(duration("2 weeks", 1).is_err());
    }

    #[test]
    fn shares_are_exact_to_four_decimals() {
        assert_eq!(share("12.5%"), Ok(Share(125_000)));
        assert_eq!(share("0.0001"), Ok(Share(1)));
        assert_eq!(Share(125_000).to_string(), "12.5");
        assert_eq!(Share(125_000).of(1 << 60), 1 << 57);
        for wrong in ["100.0001", "0.00001", "-1", "ten", ""] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
