//! Dates with times of day, in the forms of ISO 8601 and RFC 3339 that programs write:
//! `2026-11-27T09:35:48.123456Z`, `2026-11-27 09:35:48,123`, `2026-11-27 09:35:48+01:00`.

use chrono::{DateTime, NaiveDateTime};

/// Returns whether `word` has the beginning of a date, `YYYY-` or `YYYY/`.
#[inline]
pub(crate) fn looks_like_date(word: &[u8]) -> bool {
    matches!(word.get(4), Some(b'-' | b'/')) && word[..4].iter().all(u8::is_ascii_digit)
}

/// A date as nanoseconds since 1 January 1970, and whether it names its time zone. Without a zone, the date is taken as
/// UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Date {
    /// Nanoseconds since 1 January 1970 in UTC. A date without a time zone is taken as UTC.
    pub since_1970_ns: u64,
    /// Whether the text of the date names its time zone.
    pub has_zone: bool,
}

/// Parses `word`.
///
/// # Errors
///
/// If `word` is no date, or one before 1970 or after 2553; the text is the end of a sentence about the field.
pub(crate) fn parse(word: &[u8]) -> Result<Date, &'static str> {
    const NOT_ONE: &str = "is not a date of ISO 8601, such as 2026-11-27T09:35:48.123Z";
    let text = std::str::from_utf8(word).map_err(|_| NOT_ONE)?.replace(',', ".");
    let zoned =
        DateTime::parse_from_rfc3339(&text).or_else(|_| DateTime::parse_from_str(&text, "%Y-%m-%d %H:%M:%S%.f%#z"));
    let of = |seconds: i64, ns: u32, has_zone| {
        let seconds = u64::try_from(seconds).map_err(|_| "is before 1970")?;
        let since_1970_ns = seconds.checked_mul(1_000_000_000).and_then(|whole| whole.checked_add(ns.into()));
        Ok(Date { since_1970_ns: since_1970_ns.ok_or("is too late for 64 bits of nanoseconds")?, has_zone })
    };
    if let Ok(date) = zoned {
        return of(date.timestamp(), date.timestamp_subsec_nanos(), true);
    }
    let local = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f"].iter();
    let date = local.filter_map(|form| NaiveDateTime::parse_from_str(&text, form).ok()).next().ok_or(NOT_ONE)?;
    of(date.and_utc().timestamp(), date.and_utc().timestamp_subsec_nanos(), false)
}

#[cfg(test)]
mod tests {
    //! Goal: the forms that programs write. Method: cases worked out by hand.

    use super::*;

    #[test]
    fn dates_of_every_form() {
        // 2026-11-27 is day 20,784 since 1970.
        let seconds = 20_784 * 86_400 + 9 * 3600 + 35 * 60 + 48;
        for (word, ns, has_zone) in [
            ("2026-11-27T09:35:48Z", 0, true),
            ("2026-11-27T10:35:48.5+01:00", 500_000_000, true),
            ("2026-11-27 09:35:48.123456+00:00", 123_456_000, true),
            ("2026-11-27 09:35:48+0000", 0, true),
            ("2026-11-27T09:35:48.123456789", 123_456_789, false),
            ("2026-11-27 09:35:48,25", 250_000_000, false),
        ] {
            assert!(looks_like_date(word.as_bytes()));
            let expected = Date { since_1970_ns: seconds * 1_000_000_000 + ns, has_zone };
            assert_eq!(parse(word.as_bytes()), Ok(expected), "{word}");
        }
    }

    #[test]
    fn others_are_refused() {
        assert_eq!(parse(b"1969-12-31T23:59:59Z"), Err("is before 1970"));
        assert_eq!(parse(b"2600-01-01T00:00:00Z"), Err("is too late for 64 bits of nanoseconds"));
        for word in
            ["2026-11-27", "2026-13-01T00:00:00", "2026/11/27 09:35:48", "27.11.2026 09:35", "2026-11-27T25:00:00"]
        {
            assert!(parse(word.as_bytes()).is_err(), "{word}");
        }
        assert!(!looks_like_date(b"12345.6"));
    }
}
