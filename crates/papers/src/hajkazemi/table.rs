//! The runs of some workloads on some layers, as numbers and as tables.

use imbrex_trace::generators::Arrivals;

use super::runs::{Numbers, Runs};
use super::under_test::CONVENTIONAL;
use super::workloads::Case;

/// Results of every workload on every layer.
pub struct Table<'a> {
    /// The workloads, in order.
    pub names: &'a [&'static str],
    /// The layers, in order.
    pub layers: &'a [&'a str],
    /// The runs.
    pub runs: &'a Runs,
}

/// A measure of a result.
pub type Measure = fn(&Numbers) -> f64;

/// Sectors written at the medium for each the host wrote.
pub fn amplification(numbers: &Numbers) -> f64 {
    numbers.amplification
}

/// Operations that write at the medium, for each of the host's.
pub fn operations(numbers: &Numbers) -> f64 {
    numbers.operations
}

/// Mean latency of writes in milliseconds.
pub fn write_mean_ms(numbers: &Numbers) -> f64 {
    numbers.write_mean_ms
}

/// The tail of writes: 99.9 %, in milliseconds.
pub fn write_tail_ms(numbers: &Numbers) -> f64 {
    numbers.write_p999_ms
}

/// Mean latency in milliseconds.
pub fn mean_ms(numbers: &Numbers) -> f64 {
    numbers.mean_ms
}

/// The tail: 99.9 %, in milliseconds.
pub fn tail_ms(numbers: &Numbers) -> f64 {
    numbers.p999_ms
}

impl Table<'_> {
    /// The result of a workload on a layer.
    pub fn of(&self, name: &str, layer: &str) -> &Numbers {
        let name = self.names.iter().find(|known| **known == name).expect("only workloads of the table are asked for");
        &self.runs[&(Case::of(name, Arrivals::default()), layer.to_string())].numbers
    }

    /// The measure of `layer` over that of `base`.
    pub fn ratio(&self, name: &str, layer: &str, base: &str, measure: Measure) -> f64 {
        measure(self.of(name, layer)) / measure(self.of(name, base))
    }

    /// The workloads for which `holds`.
    pub fn where_<'n>(&'n self, holds: impl Fn(&str) -> bool + 'n) -> Vec<&'n str> {
        self.names.iter().copied().filter(|name| holds(name)).collect()
    }

    /// One line a workload, one column a layer.
    pub fn markdown(&self, title: &str, measure: Measure) -> String {
        let mut text =
            format!("{title}:\n\n| | {} |\n|---|{}\n", self.layers.join(" | "), "---|".repeat(self.layers.len()));
        for name in self.names {
            let cells: Vec<_> = self.layers.iter().map(|layer| figure(measure(self.of(name, layer)))).collect();
            text += &format!("| {name} | {} |\n", cells.join(" | "));
        }
        text.trim_end().to_string()
    }

    /// One value a workload, for a chart.
    pub fn column(&self, layer: &str, measure: Measure) -> Vec<f64> {
        self.names.iter().map(|name| measure(self.of(name, layer))).collect()
    }

    /// Whether mean and tail on `layer` are at most `factor` times those of the conventional drive.
    pub fn is_near_conventional(&self, name: &str, layer: &str, factor: f64) -> bool {
        [mean_ms as Measure, tail_ms].iter().all(|measure| self.ratio(name, layer, CONVENTIONAL, *measure) <= factor)
    }
}

/// Three digits.
pub fn figure(value: f64) -> String {
    let digits = match value.abs() {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        value if value >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// `a, b and c`, or `none`.
pub fn listed(names: &[&str]) -> String {
    match names {
        [] => "none".into(),
        [one] => (*one).to_string(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}
