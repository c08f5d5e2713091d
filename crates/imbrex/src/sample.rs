//! Made-up results for the tests of files and reports. They depend only on the number of drives, and are plainly not
//! measured.

use imbrex_layer::GroupKind;
use imbrex_sim::metrics::latency::LatencyHistogram;
use imbrex_sim::metrics::run::HeadSample;
use imbrex_sim::metrics::windows::Window;
use imbrex_sim::results::{
    CleaningSummary, CounterSummary, DriveResult, Integrity, LatencyByOperation, LatencyRatio, LatencyRatios,
    ServiceTime, WindowSummary,
};
use imbrex_sim::{DriveSeries, Summary, WorkloadSummary};

/// The made-up drives: (drive, layer, mean latency in ns, share of requests that stall, capacity gain).
const KINDS: [(&str, &str, f64, f64, f64); 10] = [
    ("conventional-4tb", "conventional", 9.0e6, 0.0, 1.0),
    ("interlaced-5tb+rmw", "rmw", 24.0e6, 0.02, 1.4),
    ("interlaced-5tb+track-flipping", "track-flipping", 16.0e6, 0.01, 1.4),
    ("interlaced-5tb+track-caching", "track-caching", 15.0e6, 0.008, 1.4),
    ("interlaced-5tb+dynamic:safety=paper", "dynamic", 11.0e6, 0.001, 1.39),
    ("shingled-5tb+media-cache", "media-cache", 6.0e6, 0.05, 1.25),
    ("shingled-5tb+s-blocks", "s-blocks", 13.0e6, 0.03, 1.2),
    ("shingled-5tb+set-associative", "set-associative", 20.0e6, 0.06, 1.22),
    ("shingled-5tb+regions:op=7%,band=30MiB", "regions", 18.0e6, 0.04, 1.24),
    ("shingled-5tb+strict-append", "strict-append", 8.0e6, 0.03, 1.25),
];

/// A small random number generator: numbers from 0 to 1.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Number of requests of every made-up run.
pub(crate) const REQUESTS: u64 = 200_000;

/// Returns the results and curves of the first `count` made-up drives (at most ten). The first drive is the baseline.
pub(crate) fn run(count: usize) -> (Summary, Vec<DriveSeries>) {
    let (drives, series): (Vec<_>, Vec<_>) = (0..count).map(drive).unzip();
    let workload = WorkloadSummary {
        name: "made-up <trace> & co.csv".into(),
        format: "msr".into(),
        requests: REQUESTS,
        reads: REQUESTS * 3 / 10,
        writes: REQUESTS * 7 / 10,
        read_bytes: 60_000 * 16_384,
        write_bytes: 140_000 * 8_192,
        span_ns: 3_000_000_000_000,
        lba_end: 7_812_500_000,
        sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".into(),
        ..WorkloadSummary::default()
    };
    let command = ["imbrex", "simulate", "made-up <trace> & co.csv", "--drive", "interlaced-5tb+rmw", "--out", "out"];
    (Summary::new("0.1.0", command.map(String::from).to_vec(), 7, workload, drives), series)
}

fn drive(number: usize) -> (DriveResult, DriveSeries) {
    let (_, _, mean_ns, stalls, _) = KINDS[number];
    let mut noise = Noise(number as u64 + 1);
    let mut reads = LatencyHistogram::new();
    let mut writes = LatencyHistogram::new();
    for index in 0..REQUESTS {
        let mut latency_ns = 60_000.0 - (1.0 - noise.next()).ln() * mean_ns;
        if noise.next() < stalls {
            latency_ns += noise.next() * 8.0e8;
        }
        let histogram = if index % 10 < 3 { &mut reads } else { &mut writes };
        histogram.record(latency_ns as u64);
    }
    let mut all = reads.clone();
    all.add(&writes);
    let series = DriveSeries {
        windows: windows(number, &mut noise),
        window_ns: 1_000_000_000,
        own_work: own_work(number),
        own_work_window_ns: 1_000_000_000,
        head: (0..4000).map(|i| head(number, i, &mut noise)).collect(),
        issues: issues(number),
        reads,
        writes,
        all,
    };
    (result(number, &series), series)
}

fn windows(number: usize, noise: &mut Noise) -> Vec<Window> {
    let count = 3_000 + number * 37;
    let window = |index: usize| {
        let is_stalled = number > 4 && index % 400 > 370;
        let rate = if is_stalled { 0.0 } else { 60.0 + 30.0 * (index as f64 / 200.0 + number as f64).sin() };
        let (reads, writes) = ((rate * 0.3 * (0.5 + noise.next())) as u64, (rate * 0.7 * (0.5 + noise.next())) as u64);
        Window { reads, writes, read_bytes: reads * 16_384, write_bytes: writes * 8_192 }
    };
    (0..count).map(window).collect()
}

/// Returns the time of cleaning in each second, in ns. The first five drives do not clean.
fn own_work(number: usize) -> Vec<u64> {
    (0..3_000u64).map(|second| if number > 4 && second % 400 > 370 { 950_000_000 } else { 0 }).collect()
}

fn head(number: usize, index: u64, noise: &mut Noise) -> HeadSample {
    let place = if noise.next() < 0.3 { noise.next() } else { 0.2 + 0.1 * (index as f64 / 300.0).sin() };
    let kind = if number > 4 && index % 400 > 370 { GroupKind::Cleaning } else { GroupKind::Host };
    let at_ns = index * (750_000_000 + number as u64 * 10_000_000);
    HeadSample { at_ns, radial_track: (place * 250_000.0) as u32, kind }
}

/// Returns (request number, issue time in ns) of every 64th request. Each drive falls behind at its own pace.
fn issues(number: usize) -> Vec<(u64, u64)> {
    let pace = |i: u64| i * 15_000_000 + number as u64 * (i / 1000) * 150_000_000;
    (0..REQUESTS / 64).map(|i| (i * 64, pace(i * 64))).collect()
}

fn result(number: usize, series: &DriveSeries) -> DriveResult {
    let (drive, layer, mean_ns, stalls, capacity_gain) = KINDS[number];
    let host = CounterSummary {
        reads: 60_000,
        writes: 140_000,
        read_blocks: 1_920_000,
        write_blocks: 2_240_000,
        adjusted_reads: 60_000,
        adjusted_writes: 140_000,
    };
    let extra = (number as u64 * 700_000).min(4_000_000);
    let causes = [("host", 2_240_000), ("cleaning", extra), ("backup", extra / 3), ("packet_padding", extra / 20)];
    let written: u64 = causes.iter().map(|(_, blocks)| blocks).sum();
    let duration_ns = 3_000_000_000_000 + number as u64 * 90_000_000_000;
    let integrity = match number {
        5 => Integrity::Violation {
            violation: "live sector 8192 destroyed by a write of 8 at 65536".into(),
            request: 17,
        },
        0 => Integrity::off(),
        _ => Integrity::ok(),
    };
    DriveResult {
        drive: drive.into(),
        baseline: number == 0,
        profile: drive.split('+').next().unwrap_or(drive).into(),
        layer: layer.into(),
        parameters: [("safety".to_string(), "power".to_string())].into_iter().filter(|_| number > 0).collect(),
        arrival: "fixed-queue".into(),
        queue_depth: 64,
        schedule: "fifo".into(),
        write_cache_bytes: 0,
        capacity_bytes: (4.0e12 * capacity_gain) as u64,
        over_provisioning: 0.01 * number as f64,
        capacity_gain,
        completed: REQUESTS,
        rejected: Default::default(),
        duration_ns,
        duration_ratio: Some(duration_ns as f64 / 3.0e12),
        slowdown: Some(duration_ns as f64 / 3.0e12),
        latency_ratio: Some(LatencyRatios {
            all: Some(LatencyRatio { mean: 1.0 + stalls, p99: 1.0 + 4.0 * stalls }),
            ..LatencyRatios::default()
        }),
        longest_stall_ns: (stalls * 3.0e10) as u64,
        queue_full_ns: 0,
        compared_with: Some(KINDS[0].0.to_string()),
        compared_requests: None,
        latency_ns: LatencyByOperation {
            all: (&series.all).into(),
            read: (&series.reads).into(),
            write: (&series.writes).into(),
            ..LatencyByOperation::default()
        },
        service_ns: ServiceTime {
            seek: 900_000_000_000,
            rotation: 700_000_000_000,
            transfer: 90_000_000_000,
            overhead: 20_000_000_000,
            cleaning: (mean_ns * 10_000.0) as u64,
        },
        host,
        medium: CounterSummary { write_blocks: written, ..host },
        medium_write_blocks: causes.iter().map(|(cause, blocks)| (cause.to_string(), *blocks)).collect(),
        medium_read_blocks: Default::default(),
        write_overloading: 1.0 + number as f64 / 4.0,
        write_amplification: written as f64 / 2_240_000.0,
        read_amplification: 1.0,
        windows: WindowSummary {
            width_ns: 1_000_000_000,
            count: series.windows.len() as u64,
            zero: number as u64 * 31,
            busy: series.windows.len() as u64,
            stalled: number as u64 * 31,
        },
        cleaning: CleaningSummary {
            events: number as u64 * 412,
            sectors: extra,
            mean_ns: 410_000_000,
            max_ns: 2_900_000_000,
            longest_stall_ns: (stalls * 3.0e10) as u64,
        },
        map_bytes: 4_096 * number as u64 * 1_000,
        map_bytes_formula: 4_000 * number as u64 * 1_000,
        integrity,
        paper_safety: drive.contains("safety=paper"),
        over_seeds: std::collections::BTreeMap::new(),
        wall_seconds: 1.0,
        requests_per_second: 200_000.0,
    }
}
