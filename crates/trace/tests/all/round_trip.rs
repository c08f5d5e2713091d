//! Goal: for every writer, reading a written trace yields the requests written. Method: random requests that the format
//! can represent are written to memory and read back by recognition; losses must be counted.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use imbrex_trace::writers::{self, Written};
use imbrex_trace::{Input, Recorded, Request, TraceOptions, When, open};
use imbrex_units::{Command, Lba, Operation, SimTime};
use proptest::prelude::*;

/// A file in memory that outlives its writer.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn written(format: &str, requests: &[Request]) -> (Vec<u8>, Written) {
    let memory = Memory::default();
    let writer = writers::by_name(format).expect("a writer of that name");
    let writer = (writer.open)(Box::new(memory.clone()), "memory").expect("memory can be written");
    let written = writers::copy(&mut Recorded::new(requests), writer).expect("memory can be written");
    let bytes = memory.0.lock().expect("no writer panicked").clone();
    (bytes, written)
}

fn read(format: &str, bytes: Vec<u8>) -> Vec<Request> {
    let mut opened = open(Input::bytes("memory", bytes), &TraceOptions::default()).expect("a format we write");
    assert_eq!(opened.format.name, format);
    Recorded::read(&mut *opened.source).expect("a sound trace").requests().to_vec()
}

/// Random requests of `operations`. Each time is a multiple of `tick_ns`, the first is 0.
fn requests(operations: &'static [Operation], tick_ns: u64) -> impl Strategy<Value = Vec<Request>> {
    let one = (0..1u64 << 40, 0..4u32, 0..operations.len(), any::<bool>(), 0..1u64 << 50, 1..100_000u32);
    prop::collection::vec(one, 1..300).prop_map(move |rows| {
        let request = |(index, (ticks, device, operation, fua, lba, sectors)): (usize, _)| {
            let operation = operations[operation];
            let (lba, sectors) = if operation == Operation::Flush { (0, 0) } else { (lba, sectors) };
            let time_ns: u64 = if index == 0 { 0 } else { ticks };
            let when = When::At(SimTime(time_ns * tick_ns));
            let fua = fua && operation == Operation::Write && operations.len() == 4 && tick_ns == 1;
            Request { when, device, command: Command { operation, fua, sectors, lba: Lba(lba) } }
        };
        rows.into_iter().enumerate().map(request).collect()
    })
}

const READ_WRITE: &[Operation] = &[Operation::Read, Operation::Write];
const ALL: &[Operation] = &[Operation::Read, Operation::Write, Operation::Flush, Operation::Trim];

proptest! {
    #[test]
    fn imbrex_keeps_everything(requests in requests(ALL, 1)) {
        let (bytes, written) = written("imbrex", &requests);
        prop_assert_eq!(written.requests, requests.len() as u64);
        prop_assert!(written.lost.is_empty());
        prop_assert_eq!(read("imbrex", bytes), requests);
    }

    #[test]
    fn fio_iolog_keeps_microseconds(requests in requests(ALL, 1000)) {
        let (bytes, written) = written("fio-iolog", &requests);
        prop_assert!(written.lost.is_empty());
        prop_assert_eq!(read("fio-iolog", bytes), requests);
    }

    #[test]
    fn disksim_keeps_reads_and_writes(requests in requests(READ_WRITE, 1)) {
        let (bytes, written) = written("disksim", &requests);
        prop_assert!(written.lost.is_empty());
        prop_assert_eq!(read("disksim", bytes), requests);
    }

    #[test]
    fn csv_keeps_everything(requests in requests(ALL, 1)) {
        let (bytes, written) = written("csv", &requests);
        prop_assert!(written.lost.is_empty());
        let columns = Some("time,op,offset,size,device".into());
        let options = TraceOptions { columns, ..TraceOptions::default() };
        let mut opened = open(Input::bytes("memory", bytes), &options).expect("a format we write");
        let read = Recorded::read(&mut *opened.source).expect("a sound trace");
        prop_assert_eq!(read.requests(), &requests);
    }

    #[test]
    fn msr_keeps_ticks(requests in requests(READ_WRITE, 100)) {
        let (bytes, written) = written("msr", &requests);
        prop_assert!(written.lost.is_empty());
        prop_assert_eq!(read("msr", bytes), requests);
    }
}

/// More rows than a row group and than a block, so that boundaries of both occur.
#[test]
fn parquet_of_several_row_groups() {
    let request = |index: u64| Request {
        when: When::At(SimTime(index * 977)),
        device: (index % 3) as u32,
        command: Command::write(index * 31, 8),
    };
    let requests: Vec<Request> = (0..300_000).map(request).collect();
    let (bytes, _) = written("imbrex", &requests);
    assert!(read("imbrex", bytes.clone()) == requests, "{} rows differ", requests.len());
    let mut cut = bytes;
    cut.truncate(cut.len() - 100);
    let error = open(Input::bytes("cut", cut), &TraceOptions::default()).map(|_| ()).expect_err("its end is missing");
    assert!(error.to_string().starts_with("cut: the Parquet cannot be read"), "{error}");
}

#[test]
fn what_a_format_cannot_say_is_counted() {
    let at = |time_ns, command| Request { when: When::At(SimTime(time_ns)), device: 0, command };
    let forced = Command { fua: true, ..Command::write(0, 1) };
    let requests = [at(0, Command::flush()), at(150, Command::trim(0, 8)), at(250, forced)];
    let lost = |format| written(format, &requests).1.lost.into_iter().collect::<Vec<_>>();
    let kept = [("FUA not written", 1), ("flushes left out", 1), ("times cut to 100 ns", 1), ("trims left out", 1)];
    assert_eq!(lost("msr"), kept);
    assert_eq!(lost("disksim"), [("FUA not written", 1), ("flushes left out", 1), ("trims left out", 1)]);
    assert_eq!(lost("fio-iolog"), [("FUA not written", 1), ("times cut to 1 µs", 2)]);
    assert_eq!(lost("imbrex"), []);
}

#[test]
fn a_workload_without_times_is_no_trace() {
    let request = Request { when: When::Free(imbrex_units::SimDuration(0)), device: 0, command: Command::flush() };
    for writer in writers::all() {
        let mut writer = (writer.open)(Box::<Memory>::default(), "memory").expect("memory can be written");
        let write = Request { command: Command::write(0, 1), ..request };
        assert!(writer.write(&write).is_err());
    }
}

#[test]
fn a_foreign_parquet_and_a_piped_one_are_told() {
    let request = Request { when: When::At(SimTime(0)), device: 0, command: Command::write(0, 1) };
    let (bytes, _) = written("imbrex", &[request]);
    let piped = open(Input::stream("pipe", io::Cursor::new(bytes)), &TraceOptions::default());
    let error = piped.map(|_| ()).expect_err("Parquet cannot be streamed");
    assert!(error.to_string().contains("pipe"), "{error}");
}
