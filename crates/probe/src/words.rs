//! Formats numbers for people, for the texts of a verdict.

use imbrex_units::quantity;

/// Formats a whole number in groups of three digits: `145,799`.
pub(crate) fn count(number: f64) -> String {
    quantity::grouped(number.round_ties_even() as u64)
}

/// Formats a size in bytes, as a verdict's table shows it: `13.3 GiB`, `1.8 MiB`, `26 KiB`.
pub(crate) fn size(bytes: f64) -> String {
    quantity::rough_bytes(bytes.round_ties_even() as u64)
}

/// Formats a number of rotations: `2.49 rotations`.
pub(crate) fn rotations(rotations: f64) -> String {
    format!("{rotations:.2} rotations")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_said_as_people_say_them() {
        assert_eq!([count(7.0), count(145_799.4), count(1e6)], ["7", "145,799", "1,000,000"]);
        assert_eq!(
            [size(26_624.0), size(1_887_239.0), size(5e7), size(1.43e10)],
            ["26 KiB", "1.8 MiB", "47.7 MiB", "13.3 GiB"]
        );
        assert_eq!(rotations(2.487), "2.49 rotations");
    }
}
