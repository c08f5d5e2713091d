//! Sizes, times, rates and counts as text for people.

/// Formats a size in binary units, with one decimal below a hundred: `4 KiB`, `18.6 GiB`.
pub fn bytes(bytes: u64) -> String {
    imbrex_units::quantity::rough_bytes(bytes)
}

/// Formats a whole number in groups of three digits: `113,872`.
pub fn count(count: u64) -> String {
    imbrex_units::quantity::grouped(count)
}

/// Formats a duration, given in nanoseconds, in a suitable unit.
pub fn duration_ns(ns: u64) -> String {
    imbrex_disk::SimDuration(ns).to_string()
}

/// Formats nanoseconds as milliseconds with three decimals, without the unit.
pub fn ms(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e6)
}

/// Formats a ratio: `1.00`, `38.1`, `12,345`.
pub fn ratio(value: f64) -> String {
    match value {
        value if value >= 1000.0 => count(value.round() as u64),
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// Formats a ratio as a signed percentage of change: 1.238 gives `+23.8 %`.
pub fn gain(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    if percent.abs() < 0.05 {
        return "±0 %".into();
    }
    format!("{percent:+.1} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(bytes(4096), "4 KiB");
        assert_eq!(bytes(20_000_000_000), "18.6 GiB");
        assert_eq!(count(113_872), "113,872");
        assert_eq!(count(7), "7");
        assert_eq!(ratio(38.12), "38.1");
        assert_eq!(gain(1.238), "+23.8 %");
    }
}
