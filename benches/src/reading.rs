//! Trace reading in MB/s: MSR CSV and our Parquet, from memory.

use imbrex_disk::SimTime;
use imbrex_trace::{Input, TraceOptions};

use crate::Row;
use crate::machine::ProcessorTime;

/// Lines of the CSV: some 50 MB.
const LINES: u64 = 1_000_000;

/// Measures reading.
pub fn measure(only: &str, report: &mut dyn FnMut(Row)) {
    const NAME: &str = "reading MSR CSV";
    if !NAME.contains(only) {
        return;
    }
    let text = csv();
    let megabytes = text.len() as f64 / 1e6;
    let bytes: Vec<u8> = text.into_bytes();
    let best = (0..3).map(|_| megabytes / seconds(bytes.clone())).fold(0.0, f64::max);
    report(Row { name: NAME.into(), value: best, unit: "MB/s", target: Some(500.0) });
}

fn seconds(bytes: Vec<u8>) -> f64 {
    let begun = ProcessorTime::now();
    let mut source =
        imbrex_trace::open(Input::bytes("bench", bytes), &TraceOptions::default()).expect("it is well formed").source;
    let mut requests = 0;
    while source.next(SimTime::ZERO).expect("it is well formed").is_some() {
        requests += 1;
    }
    assert_eq!(requests, LINES, "every line is a request");
    begun.elapsed_seconds()
}

/// A trace like the published ones, from a small generator of our own.
fn csv() -> String {
    use std::fmt::Write;
    let (mut text, mut state, mut ticks) = (String::new(), 1u64, 128_166_372_003_061_629u64);
    for _ in 0..LINES {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ticks += state >> 50;
        let operation = if state >> 63 == 0 { "Read" } else { "Write" };
        let offset = (state >> 20) % (1 << 34) * 512;
        let size = ((state >> 13) % 16 + 1) * 4096;
        writeln!(text, "{ticks},usr,0,{operation},{offset},{size},{}", state >> 47).expect("a string takes it");
    }
    text
}
