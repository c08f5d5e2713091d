//! Sizes, times, rates and counts as text for people.

/// Formats a size in bytes in the largest binary unit of which it has at least one: `4 KiB`, `18.6 GiB`, `256 MiB`. Has
/// one decimal below 100 units, unless the decimal is 0 and exact.
pub fn bytes(bytes: u64) -> String {
    imbrex_units::quantity::rough_bytes(bytes)
}

/// Formats a whole number with commas between groups of three digits: `113,872`.
pub fn count(count: u64) -> String {
    imbrex_units::quantity::grouped(count)
}

/// Formats a number with three digits, in thousands, millions or billions above 999: `113`, `113 k`, `1.24 M`, `0.512`.
pub fn short_count(number: f64) -> String {
    let (divisor, unit) = match number {
        number if number < 999.5 => (1.0, ""),
        number if number < 999.5e3 => (1e3, " k"),
        number if number < 999.5e6 => (1e6, " M"),
        _ => (1e9, " G"),
    };
    let (value, is_whole) = (number / divisor, divisor == 1.0 && number.fract() == 0.0);
    match value {
        value if is_whole || value >= 99.95 => format!("{value:.0}{unit}"),
        value if value >= 9.995 => format!("{value:.1}{unit}"),
        value if value >= 0.9995 => format!("{value:.2}{unit}"),
        value => format!("{value:.3}{unit}"),
    }
}

/// Formats a share as a percentage with three digits: `0.00 %`, `7.25 %`, `43.2 %`, `100 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        percent if percent >= 99.95 => format!("{percent:.0} %"),
        percent if percent >= 9.995 => format!("{percent:.1} %"),
        percent => format!("{percent:.2} %"),
    }
}

/// Formats a duration of `ns` nanoseconds in a unit that suits its length: `850 ns`, `12.50 ms`, `3.20 s`, `2.5 h`.
pub fn duration_ns(ns: u64) -> String {
    imbrex_disk::SimDuration(ns).to_string()
}

/// Formats a duration of `ns` nanoseconds as a number of milliseconds with three decimals, without the unit.
pub fn ms(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e6)
}

/// Formats a ratio: with two decimals below 10, one below 100, none below 1000, and in groups of three digits above:
/// `1.00`, `38.1`, `12,345`.
pub fn ratio(value: f64) -> String {
    match value {
        value if value >= 1000.0 => count(value.round() as u64),
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// Formats a ratio of new to old as a signed percentage of change with one decimal: 1.238 gives `+23.8 %`. A change of
/// less than 0.05 % gives `±0 %`.
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
        let counts = [7.0, 999.0, 999.5, 1_236.0, 113_872.0, 1_240_000.0, 2.5e9, 0.5123, 12.34].map(short_count);
        assert_eq!(counts, ["7", "999", "1.00 k", "1.24 k", "114 k", "1.24 M", "2.50 G", "0.512", "12.3"]);
        let shares = [0.0, 0.0725, 0.4321, 0.9994, 0.9996, 1.0].map(percent);
        assert_eq!(shares, ["0.00 %", "7.25 %", "43.2 %", "99.9 %", "100 %", "100 %"]);
    }
}
