//! The runs of some workloads on some layers, as numbers and as tables.

use imbrex_sim::DriveResult;

use super::runs::Runs;
use super::under_test::CONVENTIONAL;

/// Results of every workload on every layer.
pub struct Table<'a> {
    /// The workloads, in order.
    pub names: &'a [&'a str],
    /// The layers, in order.
    pub layers: &'a [&'a str],
    /// The runs.
    pub runs: &'a Runs,
}

/// A measure of a result.
pub type Measure = fn(&DriveResult) -> f64;

/// Sectors written at the medium for each the host wrote.
pub fn amplification(result: &DriveResult) -> f64 {
    result.write_amplification
}

/// Operations that write at the medium, for each of the host's.
pub fn operations(result: &DriveResult) -> f64 {
    result.medium.writes as f64 / result.host.writes as f64
}

/// Mean latency of writes in milliseconds.
pub fn write_mean_ms(result: &DriveResult) -> f64 {
    result.latency_ns.write.mean as f64 / 1e6
}

/// The tail of writes: 99.9 %, in milliseconds.
pub fn write_tail_ms(result: &DriveResult) -> f64 {
    result.latency_ns.write.p999 as f64 / 1e6
}

/// Mean latency in milliseconds.
pub fn mean_ms(result: &DriveResult) -> f64 {
    result.latency_ns.all.mean as f64 / 1e6
}

/// The tail: 99.9 %, in milliseconds.
pub fn tail_ms(result: &DriveResult) -> f64 {
    result.latency_ns.all.p999 as f64 / 1e6
}

impl Table<'_> {
    /// The result of a workload on a layer.
    pub fn of(&self, name: &str, layer: &str) -> &DriveResult {
        &self.runs[&(name.to_string(), layer.to_string())].result
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
