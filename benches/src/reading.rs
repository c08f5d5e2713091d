//! Trace reading from memory: MSR CSV in MB/s, and our Parquet of the same requests, which is a quarter as long,
//! relative to the CSV.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use imbrex_trace::throughput::{drain, msr_lines};
use imbrex_trace::{Input, TraceOptions, writers};

use crate::Row;
use crate::machine::ProcessorTime;

/// Number of lines of the CSV: some 50 MB.
const LINES: usize = 1_000_000;

/// Number of readings of each format, in turn. The best rate and the median of the ratios are kept.
const ROUNDS: usize = 3;

/// Measures the rows whose names contain `only`: both, if either name does.
pub(crate) fn measure(only: &str, report: &mut dyn FnMut(Row)) {
    const CSV: &str = "reading MSR CSV";
    const PARQUET: &str = "reading Parquet, over MSR CSV";
    if !CSV.contains(only) && !PARQUET.contains(only) {
        return;
    }
    let csv = msr_lines(LINES, 7);
    let parquet = parquet(&csv);
    let (mut best, mut ratios) = (f64::INFINITY, Vec::new());
    for _ in 0..ROUNDS {
        let csv_seconds = seconds(csv.clone());
        best = best.min(csv_seconds);
        ratios.push(csv_seconds / seconds(parquet.clone()));
    }
    ratios.sort_by(f64::total_cmp);
    report(Row { name: CSV.into(), value: csv.len() as f64 / 1e6 / best, unit: "MB/s", target: Some(500.0) });
    report(Row { name: PARQUET.into(), value: ratios[ROUNDS / 2], unit: "times", target: Some(1.0) });
}

/// File in memory whose bytes outlive its writer.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("one thread writes").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Converts the requests of `csv` and returns them as our Parquet.
fn parquet(csv: &[u8]) -> Vec<u8> {
    let memory = Memory::default();
    let writer = (writers::imbrex().open)(Box::new(memory.clone()), "bench").expect("memory takes it");
    let input = Input::bytes("bench", csv.to_vec());
    let mut source = imbrex_trace::open(input, &TraceOptions::default()).expect("it is well formed").source;
    writers::copy(&mut *source, writer).expect("memory takes it");
    memory.0.lock().expect("one thread writes").clone()
}

fn seconds(bytes: Vec<u8>) -> f64 {
    let begun = ProcessorTime::now();
    let opened = imbrex_trace::open(Input::bytes("bench", bytes), &TraceOptions::default()).expect("it is well formed");
    let drained = drain(&mut *{ opened.source }).expect("it is well formed");
    assert_eq!(drained.requests, LINES as u64, "every line is a request");
    begun.elapsed_seconds()
}
