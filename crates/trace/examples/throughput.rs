//! How fast traces are read: `cargo run --release -p imbrex-trace --example throughput [MILLIONS]`.
//!
//! Prints megabytes and requests a second of reading an MSR CSV from memory, and of the same requests in Parquet.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use imbrex_trace::throughput::{drain, msr_lines};
use imbrex_trace::{Input, TraceError, TraceOptions, open, writers};

/// A file in memory that outlives its writer.
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

fn main() -> Result<(), TraceError> {
    let millions: f64 = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(2.0);
    let csv = msr_lines((millions * 1e6) as usize, 7);
    let parquet = Memory::default();
    let writer = (writers::imbrex().open)(Box::new(parquet.clone()), "memory")?;
    writers::copy(&mut *open(Input::bytes("csv", csv.clone()), &TraceOptions::default())?.source, writer)?;
    let parquet = parquet.0.lock().expect("one thread writes").clone();
    for (name, bytes) in [("msr", csv), ("imbrex", parquet)] {
        measure(name, &bytes)?;
    }
    Ok(())
}

/// The best of five readings of `bytes`.
fn measure(name: &str, bytes: &[u8]) -> Result<(), TraceError> {
    let shared = bytes::Bytes::copy_from_slice(bytes);
    let mut best = (f64::INFINITY, 0);
    for _ in 0..5 {
        let begun = Instant::now();
        let drained = drain(&mut *open(Input::bytes(name, shared.clone()), &TraceOptions::default())?.source)?;
        best = (best.0.min(begun.elapsed().as_secs_f64()), drained.requests);
    }
    let (seconds, requests) = best;
    let megabytes = bytes.len() as f64 / 1e6;
    let rate = requests as f64 / 1e6 / seconds;
    println!("{name}: {megabytes:.1} MB, {:.0} MB/s, {rate:.2} million requests/s", megabytes / seconds);
    Ok(())
}
