//! Axes: from values to positions along a line, and the positions of the ticks.
//!
//! Invariants:
//! 1. Positions of values lie between 0 and 1. A value that the scale cannot show (zero on a logarithmic scale) has no
//!    position, except on an axis with given ends: there it is at the lower end.
//! 2. Ticks are at 1, 2 or 5 times a power of ten of the unit in their labels; on a logarithmic axis of bytes, at
//!    powers of two.

use serde::{Deserialize, Serialize};

use super::exact;
use super::label::Unit;

/// Mapping from the values of an axis to positions along it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Linear: equal differences have equal lengths.
    Linear,
    /// Logarithmic: equal ratios have equal lengths. Values of 0 or less cannot be shown.
    Log10,
    /// For fractions from 0 to 1, by the logarithm of their distance from 1: 90 %, 99 %, 99.9 % and so on are at equal
    /// distances. The axis ends at this number of nines: 3 means 99.9 %.
    Percentile(u8),
}

/// Ratio of the greatest mean rate to the least from which on an axis of rates is logarithmic.
const RATES_APART: f64 = 10.0;

/// An axis of a chart: its label, its scale, the unit of its values, and its ends.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Axis {
    /// Name of the quantity, shown beside the axis; may be empty.
    pub label: String,
    /// Mapping from values to positions along the axis.
    pub scale: Scale,
    /// Unit of the values, which also selects the form of the tick labels.
    pub unit: Unit,
    /// Values at the two ends, lowest first; `None` to choose the ends from the values drawn. Ignored by the scale
    /// `Scale::Percentile`.
    #[serde(with = "exact")]
    pub range: Option<(f64, f64)>,
    /// Whether a linear axis whose ends are chosen from the values includes 0.
    pub from_zero: bool,
}

impl Axis {
    /// Creates a linear axis whose ends are chosen from the values drawn, and include 0.
    pub fn linear(label: impl Into<String>, unit: Unit) -> Axis {
        Axis { label: label.into(), scale: Scale::Linear, unit, range: None, from_zero: true }
    }

    /// Creates a logarithmic axis whose ends are chosen from the values drawn.
    pub fn log10(label: impl Into<String>, unit: Unit) -> Axis {
        Axis { label: label.into(), scale: Scale::Log10, unit, range: None, from_zero: true }
    }

    /// Creates an axis of rates: logarithmic if the greatest of `means` is [`RATES_APART`] times the least above 0, else linear.
    /// `means` are the mean rates of drives, or of phases of a run; `highest` is the highest rate drawn. On the logarithmic axis,
    /// a rate of 0 is drawn at the lower end.
    pub fn of_rates(label: impl Into<String>, unit: Unit, means: impl Iterator<Item = f64>, highest: f64) -> Axis {
        let (least, most) = means
            .filter(|&mean| mean > 0.0)
            .fold((f64::INFINITY, 0.0f64), |(least, most), mean| (mean.min(least), mean.max(most)));
        if most < least * RATES_APART {
            return Axis::linear(label, unit);
        }
        let end = |exponent: f64| 10f64.powf(exponent);
        Axis::log10(label, unit).ranged(end((least / 10.0).log10().floor()), end(highest.log10().ceil()))
    }

    /// Creates an axis of fractions from 0 to the number with `nines` nines, such as 99.9 % for 3, with the scale
    /// `Scale::Percentile`.
    pub fn percentile(label: impl Into<String>, nines: u8) -> Axis {
        Axis { label: label.into(), scale: Scale::Percentile(nines), unit: Unit::Share, range: None, from_zero: true }
    }

    /// Sets the values at the ends of the axis to `low` and `high`, whatever values are drawn. Values beyond are drawn
    /// at the nearer end. Has no effect on `Scale::Percentile`. On a logarithmic axis, both must be above 0.
    pub fn ranged(mut self, low: f64, high: f64) -> Axis {
        self.range = Some((low, high));
        self
    }

    /// Lets a linear axis end near the values drawn, without 0 if they are far from it. Has no effect on other scales.
    pub fn near(mut self) -> Axis {
        self.from_zero = false;
        self
    }

    /// Chooses the ends and ticks of the axis for `values`.
    pub(super) fn fit(&self, values: impl Iterator<Item = f64>) -> Fitted {
        let shown = values.filter(|&value| value.is_finite() && (self.scale != Scale::Log10 || value > 0.0));
        let (low, high) =
            shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low > high { (1.0, 10.0) } else { (low, high) };
        let mut fitted = match self.scale {
            Scale::Linear => self.fit_linear(low, high),
            Scale::Log10 => self.fit_log(low, high),
            Scale::Percentile(nines) => self.fit_percentile(nines),
        };
        fitted.ticks.retain(|tick| tick.place > -1e-9 && tick.place < 1.0 + 1e-9);
        fitted
    }

    fn fit_linear(&self, low: f64, high: f64) -> Fitted {
        let of_values = if self.from_zero { (low.min(0.0), high.max(0.0)) } else { (low, high) };
        let (mut low, mut high) = self.range.unwrap_or(of_values);
        if high <= low {
            high = low + 1.0;
        }
        let division = self.unit.division(low.abs().max(high.abs()));
        let step = nice_step((high - low) / division.0, 6.0) * division.0;
        if self.range.is_none() {
            low = (low / step + 1e-9).floor() * step;
            high = (high / step - 1e-9).ceil() * step;
        }
        let first = (low / step - 1e-9).ceil() as i64;
        let last = (high / step + 1e-9).floor() as i64;
        let mut fitted = Fitted { scale: self.scale, has_ends: self.range.is_some(), low, high, ticks: Vec::new() };
        for number in first..=last {
            let value = number as f64 * step;
            fitted.tick(value, self.unit.divided(value, division), true);
        }
        fitted
    }

    fn fit_log(&self, low: f64, high: f64) -> Fitted {
        let (low, high) = self.range.unwrap_or((low, high));
        if self.unit == Unit::Bytes {
            return self.fit_log_of_bytes(low, high);
        }
        let (mut first, mut last) = (low.log10(), high.log10());
        // Below two powers of ten, labels at 1, 2 and 5 read better; above, labels at powers of ten only.
        let is_narrow = last - first < 2.0;
        if self.range.is_none() {
            first = outward(first, false);
            last = outward(last, true);
            // A single value stands in the middle.
            if last - first < 0.35 {
                (first, last) = (outward(first - 0.3, false), outward(last + 0.3, true));
            }
        }
        let (low, high, has_ends) = (10f64.powf(first), 10f64.powf(last), self.range.is_some());
        let mut fitted = Fitted { scale: self.scale, has_ends, low, high, ticks: Vec::new() };
        let skip = (((last - first) / 8.0).ceil() as i32).max(1);
        for power in first.floor() as i32..=last.ceil() as i32 {
            for digit in 1..10 {
                let value = digit as f64 * 10f64.powi(power);
                let is_named = if is_narrow { matches!(digit, 1 | 2 | 5) } else { digit == 1 && power % skip == 0 };
                if is_named || skip == 1 || digit == 1 {
                    let name =
                        if is_named { self.unit.divided(value, self.log_division(value)) } else { String::new() };
                    fitted.tick(value, name, is_named);
                }
            }
        }
        fitted
    }

    /// Fits a logarithmic axis of bytes. Sizes are mostly powers of two, so ticks are at powers of two, at most eight
    /// of them.
    fn fit_log_of_bytes(&self, low: f64, high: f64) -> Fitted {
        let (first, last) = ((low.log2() + 1e-9).floor() as i32, (high.log2() - 1e-9).ceil() as i32);
        let last = last.max(first + 1);
        let (low, high) = self.range.unwrap_or((2f64.powi(first), 2f64.powi(last)));
        let mut fitted = Fitted { scale: self.scale, has_ends: self.range.is_some(), low, high, ticks: Vec::new() };
        let skip = ((last - first) / 8 + 1) as usize;
        for power in (first..=last).step_by(skip) {
            let value = 2f64.powi(power);
            fitted.tick(value, self.unit.divided(value, self.unit.division(value)), true);
        }
        fitted
    }

    /// Returns the unit for the label of a power of ten: the largest unit that fits, but for times never above seconds.
    fn log_division(&self, value: f64) -> (f64, &'static str) {
        match self.unit {
            Unit::Nanoseconds => self.unit.division((value * 1.000_001).min(299e9)),
            unit => unit.division(value * 1.000_001),
        }
    }

    fn fit_percentile(&self, nines: u8) -> Fitted {
        let top = 1.0 - 10f64.powi(-(nines as i32));
        let mut fitted = Fitted { scale: self.scale, has_ends: true, low: 0.0, high: top, ticks: Vec::new() };
        fitted.tick(0.0, "0".to_string(), true);
        fitted.tick(0.5, Unit::Share.divided(0.5, (0.01, "%")), true);
        for power in 1..=nines as i32 {
            let value = 1.0 - 10f64.powi(-power);
            fitted.tick(value, Unit::Share.divided(value, (0.01, "%")), true);
        }
        fitted
    }
}

/// Returns the exponent (base 10) of the next stop from `exponent` outwards: upwards if `up`, else downwards. Stops are
/// at 1, 2 and 5 times a power of ten.
fn outward(exponent: f64, up: bool) -> f64 {
    let whole = (exponent + 1e-9).floor();
    let places = [1.0, 2.0, 5.0, 10.0].iter().map(|stop: &f64| whole + stop.log10());
    if up {
        let fallback = whole + 1.0;
        places.into_iter().find(|&place| place >= exponent - 1e-9).unwrap_or(fallback)
    } else {
        places.into_iter().filter(|&place| place <= exponent + 1e-9).fold(whole, f64::max)
    }
}

/// Returns a step of 1, 2 or 5 times a power of ten, such that about `count` steps fill `span`.
fn nice_step(span: f64, count: f64) -> f64 {
    let raw = span / count;
    let power = 10f64.powf(raw.log10().floor());
    let digit = [1.0, 2.0, 5.0, 10.0].into_iter().find(|digit| digit * power >= raw * 0.999).unwrap_or(10.0);
    digit * power
}

/// A tick of an axis.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Tick {
    /// Position along the axis: 0 at the end with the lowest value, 1 at the end with the highest.
    pub place: f64,
    /// Text beside the tick; empty for a tick without a label.
    pub label: String,
    /// Whether a grid line crosses the chart at the tick.
    pub is_line: bool,
}

/// An axis with its ends and ticks.
#[derive(Clone, Debug)]
pub(super) struct Fitted {
    /// Mapping from values to positions along the axis.
    pub scale: Scale,
    /// Whether the caller gave the ends.
    pub has_ends: bool,
    /// Value at the low end of the axis, position 0.
    pub low: f64,
    /// Value at the high end of the axis, position 1.
    pub high: f64,
    /// Ticks of the axis, in ascending order of their values.
    pub ticks: Vec<Tick>,
}

impl Fitted {
    fn tick(&mut self, value: f64, label: String, is_line: bool) {
        let place = self.free_position(value);
        self.ticks.push(Tick { place, label, is_line });
    }

    fn free_position(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log10 => (value / self.low).log10() / (self.high / self.low).log10(),
            Scale::Percentile(nines) => -(1.0 - value).max(1e-15).log10() / nines as f64,
        }
    }

    /// Returns the position of `value`, moved to the nearer end if it lies beyond the axis. Returns `None` if the scale
    /// cannot show the value.
    pub(super) fn position(&self, value: f64) -> Option<f64> {
        if self.scale == Scale::Log10 && value <= 0.0 {
            return self.has_ends.then_some(0.0);
        }
        value.is_finite().then(|| self.free_position(value).clamp(0.0, 1.0))
    }

    /// Returns the name, the ends and the unit of the scale, for scripts.
    pub(super) fn attribute(&self, unit: Unit) -> String {
        let (name, low, high) = match self.scale {
            Scale::Linear => ("linear", self.low, self.high),
            // The script, too, draws zeros at the lower end of an axis with given ends.
            Scale::Log10 if self.has_ends => ("log10-ends", self.low, self.high),
            Scale::Log10 => ("log10", self.low, self.high),
            Scale::Percentile(nines) => ("percentile", 0.0, nines as f64),
        };
        format!("{name} {low} {high} {}", unit.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(fitted: &Fitted) -> Vec<String> {
        let named = fitted.ticks.iter().filter(|tick| !tick.label.is_empty());
        named.map(|tick| tick.label.replace('\u{a0}', " ")).collect()
    }

    #[test]
    fn linear_ticks_stand_at_ones_twos_and_fives_of_their_unit() {
        let seconds = Axis::linear("time", Unit::Nanoseconds).fit([0.0, 9.3e9].into_iter());
        assert_eq!(names(&seconds), ["0 s", "2 s", "4 s", "6 s", "8 s", "10 s"]);
        let minutes = Axis::linear("time", Unit::Nanoseconds).fit([0.0, 1_700e9].into_iter());
        assert_eq!(names(&minutes), ["0 min", "5 min", "10 min", "15 min", "20 min", "25 min", "30 min"]);
        let signed = Axis::linear("gap", Unit::Count).fit([-3.0, 4.0].into_iter());
        assert_eq!(names(&signed), ["−4", "−2", "0", "2", "4"]);
    }

    #[test]
    fn logarithmic_ticks_stand_at_powers_of_ten_or_between_where_there_are_few() {
        let wide = Axis::log10("latency", Unit::Nanoseconds).fit([3e4, 2e9, 0.0].into_iter());
        assert_eq!(names(&wide), ["100 µs", "1 ms", "10 ms", "100 ms", "1 s"]);
        assert_eq!((wide.low.round(), wide.high.round()), (2e4, 2e9));
        let narrow = Axis::log10("latency", Unit::Nanoseconds).fit([3e6, 4e7].into_iter());
        assert_eq!(names(&narrow), ["2 ms", "5 ms", "10 ms", "20 ms", "50 ms"]);
    }

    #[test]
    fn an_axis_near_its_values_has_round_ends_beside_them() {
        let near = Axis::linear("offset", Unit::Count).near().fit([2270.0, 2361.0].into_iter());
        assert_eq!((near.low, near.high), (2260.0, 2380.0));
        let from_zero = Axis::linear("offset", Unit::Count).fit([2270.0, 2361.0].into_iter());
        assert_eq!((from_zero.low, from_zero.high), (0.0, 2500.0));
        let one = Axis::log10("latency", Unit::Nanoseconds).fit([1e5].into_iter());
        assert_eq!((one.low.round(), one.high.round()), (5e4, 2e5));
    }

    #[test]
    fn sizes_stand_at_powers_of_two() {
        let mib = 1_048_576.0;
        let narrow = Axis::log10("region_size", Unit::Bytes).fit([4.0 * mib, 64.0 * mib].into_iter());
        assert_eq!(names(&narrow), ["4 MiB", "8 MiB", "16 MiB", "32 MiB", "64 MiB"]);
        assert!((narrow.position(16.0 * mib).expect("inside") - 0.5).abs() < 1e-9);
        let wide = Axis::log10("bs", Unit::Bytes).fit([4096.0, 1024.0 * mib].into_iter());
        assert_eq!(names(&wide), ["4 KiB", "32 KiB", "256 KiB", "2 MiB", "16 MiB", "128 MiB", "1 GiB"]);
        let one = Axis::log10("bs", Unit::Bytes).fit([5000.0].into_iter());
        assert_eq!(names(&one), ["4 KiB", "8 KiB"]);
    }

    #[test]
    fn nines_stand_at_equal_distances() {
        let fitted = Axis::percentile("share", 4).fit(std::iter::empty());
        assert_eq!(names(&fitted), ["0", "50 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
        for (share, place) in [(0.0, 0.0), (0.9, 0.25), (0.99, 0.5), (0.9999, 1.0), (1.0, 1.0)] {
            assert!((fitted.position(share).expect("a share") - place).abs() < 1e-9);
        }
    }

    #[test]
    fn a_logarithm_has_no_place_for_zero() {
        let fitted = Axis::log10("latency", Unit::Nanoseconds).fit([1e3, 1e6].into_iter());
        assert_eq!(fitted.position(0.0), None);
        assert_eq!(fitted.position(f64::NAN), None);
        assert!((fitted.position(10f64.powf(4.5)).expect("inside") - 0.5).abs() < 1e-9);
    }

    #[test]
    fn one_value_or_none_still_makes_an_axis() {
        for values in [vec![], vec![5.0], vec![0.0]] {
            let fitted = Axis::linear("x", Unit::Count).fit(values.iter().copied());
            assert!(fitted.high > fitted.low && fitted.ticks.len() >= 2);
            let fitted = Axis::log10("x", Unit::Count).fit(values.into_iter());
            assert!(fitted.high > fitted.low && fitted.ticks.len() >= 2);
        }
    }
}
