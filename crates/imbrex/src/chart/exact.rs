//! Numbers of a chart as text, for [`serde`].
//!
//! JSON has neither NaN nor infinities, and `serde_json` may read a number with an error in its last digit. Numbers as
//! text have neither fault.
//!
//! Invariants:
//! 1. A value that was written and read again has the same bits; only the bits of a NaN may differ.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

/// A value that consists of numbers, as text.
pub(super) trait Exact: Sized {
    /// Returns the value as text, from which [`Exact::read`] makes the value again.
    fn text(&self) -> String;

    /// Returns the value that the text has, or `None` if the text has none.
    fn read(text: &str) -> Option<Self>;
}

/// The shortest digits that give the number again: `1.0`, `NaN`, `-inf`.
impl Exact for f64 {
    fn text(&self) -> String {
        format!("{self:?}")
    }

    fn read(text: &str) -> Option<f64> {
        text.parse().ok()
    }
}

/// A pair, as in the list of points of SVG: `1.0,2.0`.
impl Exact for (f64, f64) {
    fn text(&self) -> String {
        format!("{:?},{:?}", self.0, self.1)
    }

    fn read(text: &str) -> Option<(f64, f64)> {
        let (first, second) = text.split_once(',')?;
        Some((f64::read(first)?, f64::read(second)?))
    }
}

/// The members of a list, separated by blanks.
impl<T: Exact> Exact for Vec<T> {
    fn text(&self) -> String {
        self.iter().map(T::text).collect::<Vec<_>>().join(" ")
    }

    fn read(text: &str) -> Option<Vec<T>> {
        text.split_whitespace().map(T::read).collect()
    }
}

/// No text if there is no value.
impl<T: Exact> Exact for Option<T> {
    fn text(&self) -> String {
        self.as_ref().map_or_else(String::new, T::text)
    }

    fn read(text: &str) -> Option<Option<T>> {
        if text.is_empty() { Some(None) } else { T::read(text).map(Some) }
    }
}

/// Writes a value as text.
pub(super) fn serialize<T: Exact, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&value.text())
}

/// Reads a value from text.
pub(super) fn deserialize<'a, T: Exact, D: Deserializer<'a>>(deserializer: D) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    T::read(&text).ok_or_else(|| D::Error::custom(format!("not numbers of a chart: {text:?}")))
}

#[cfg(test)]
mod tests {
    //! Goal: invariant 1. Method: numbers that JSON or a rounding reader would change.

    use super::*;

    #[test]
    fn numbers_come_back_with_their_bits() {
        for number in [0.1 + 0.2, 1.0 / 3.0, -0.0, 5e-324, f64::MAX, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(f64::read(&number.text()).map(f64::to_bits), Some(number.to_bits()), "{number}");
        }
        assert!(f64::read(&f64::NAN.text()).is_some_and(f64::is_nan));
    }

    #[test]
    fn lists_and_missing_values_come_back() {
        let points = vec![(1.0, 2.5), (-3.0, 1e300)];
        assert_eq!(points.text(), "1.0,2.5 -3.0,1e300");
        assert_eq!(Vec::read(&points.text()), Some(points));
        assert_eq!(Vec::<f64>::read(&Vec::<f64>::new().text()), Some(Vec::new()));
        for range in [None, Some((0.0, 8.0))] {
            assert_eq!(Option::read(&range.text()), Some(range));
        }
        assert_eq!(Vec::<(f64, f64)>::read("1.0,2.0 3.0"), None);
    }
}
