//! A source of requests from a table that the caller holds in memory.
//!
//! A row has the columns of Imbrex's own Parquet files ([`crate::formats::imbrex`]): time, operation, first sector,
//! length, device. The owner of the table passes rows in blocks, so that no row is copied twice and the table's columns
//! may have any type.
//!
//! Invariants:
//! 1. A table yields the same requests as an Imbrex Parquet file with the same rows.
//! 2. Every row is yielded, counted, or reported as an error with its number; numbers start at 0.

use std::sync::Arc;

use imbrex_units::{Command, Lba, Operation, SimTime};

use crate::admission::{Admission, Malformed, Parsed, TraceRecord, out_of_reach, reached};
use crate::facts::Facts;
use crate::formats::imbrex::{FUA, operation_of};
use crate::options::TraceOptions;
use crate::request::{Request, Source, TraceError};

/// Maximum number of rows read at once.
const BLOCK_ROWS: usize = 8 * 1024;

/// One row of the table: one request.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Row {
    /// Time of the request in nanoseconds since any zero point. The source subtracts the time of the first request that
    /// it yields.
    pub time_ns: u64,
    /// Operation: 0 read, 1 write, 2 flush, 3 trim; plus 128 if the request has forced unit access (FUA).
    pub op: u8,
    /// Number of the first sector of 512 bytes.
    pub lba: u64,
    /// Length in sectors of 512 bytes. A value of 2^32 or more makes the row malformed.
    pub sectors: u64,
    /// Number of the device; 0 if there is only one.
    pub device: u32,
}

/// Returns the code of the operation of `command`: 0 read, 1 write, 2 flush, 3 trim; plus 128 if the command has forced
/// unit access (FUA).
pub fn op_of(command: &Command) -> u8 {
    let code = match command.operation {
        Operation::Read => 0,
        Operation::Write => 1,
        Operation::Flush => 2,
        Operation::Trim => 3,
    };
    code | if command.fua { FUA as u8 } else { 0 }
}

/// A table of requests that the caller holds in memory.
pub trait Rows: Send + Sync {
    /// Returns the number of rows.
    fn rows(&self) -> u64;

    /// Converts the rows from index `first` on (counted from 0) and appends them to `block`: at least one row, at most
    /// `rows_max`, and none past the end. Stops before a row that cannot be converted. `first` is less than the number
    /// of rows.
    ///
    /// # Errors
    ///
    /// A message that names the value expected, if row `first` itself cannot be converted.
    fn read(&self, first: u64, rows_max: usize, block: &mut Vec<Row>) -> Result<(), String>;
}

/// Returns a source that yields the rows of `rows` as requests, in their order. `name` is the table's name in error
/// messages. Of `options`, only `device` and `skip_malformed` have an effect.
pub fn open(name: &str, rows: Arc<dyn Rows>, options: &TraceOptions) -> Box<dyn Source> {
    let admission = Admission::new(name.to_string(), options);
    Box::new(Table { rows, admission, block: Vec::new(), next_in_block: 0, next_row: 0 })
}

struct Table {
    rows: Arc<dyn Rows>,
    admission: Admission,
    block: Vec<Row>,
    next_in_block: usize,
    /// Number of the row after the block's last row.
    next_row: u64,
}

impl Table {
    /// Returns the next row with its number, or `None` at the end.
    fn row(&mut self) -> Option<(u64, Result<Row, Malformed>)> {
        if self.next_in_block == self.block.len() {
            let first = self.next_row;
            if first == self.rows.rows() {
                return None;
            }
            self.block.clear();
            self.next_in_block = 0;
            if let Err(reason) = self.rows.read(first, BLOCK_ROWS, &mut self.block) {
                self.block.clear();
                self.next_row = first + 1;
                return Some((first, Err(Malformed::of(reason))));
            }
            assert!(!self.block.is_empty(), "row {first} is there, or an error: the contract of Rows");
            self.next_row = first + self.block.len() as u64;
        }
        let row = self.block[self.next_in_block];
        let number = self.next_row - (self.block.len() - self.next_in_block) as u64;
        self.next_in_block += 1;
        Some((number, Ok(row)))
    }
}

fn parsed(row: Row) -> Result<Parsed, Malformed> {
    let operation = operation_of(i32::from(row.op))?;
    let Some(sectors) = reached(row.lba, row.sectors) else { return Err(out_of_reach(row.lba, row.sectors)) };
    let command = Command { operation, fua: i32::from(row.op) & FUA != 0, sectors, lba: Lba(row.lba) };
    Ok(Parsed::Request(TraceRecord { time_ns: row.time_ns, device: row.device, command, unaligned: false }))
}

impl Source for Table {
    fn next(&mut self, _now: SimTime) -> Result<Option<Request>, TraceError> {
        loop {
            let Some((number, row)) = self.row() else { return self.admission.finish() };
            match row.and_then(parsed) {
                Ok(parsed) => {
                    if let Some(request) = self.admission.admit(parsed) {
                        return Ok(Some(request));
                    }
                }
                Err(malformed) => self.admission.malformed(&format!("row {number}"), malformed)?,
            }
        }
    }

    fn expected_requests(&self) -> Option<u64> {
        Some(self.rows.rows())
    }

    fn facts(&self) -> Facts {
        self.admission.facts()
    }
}

#[cfg(test)]
mod tests {
    //! Goal: invariants 1 and 2. Method: compares a table with rows of every operation, and a file of these rows that
    //! Imbrex wrote.

    use super::*;
    use crate::request::When;

    struct Held(Vec<Result<Row, String>>);

    impl Rows for Held {
        fn rows(&self) -> u64 {
            self.0.len() as u64
        }

        fn read(&self, first: u64, rows_max: usize, block: &mut Vec<Row>) -> Result<(), String> {
            for row in self.0[first as usize..].iter().take(rows_max.min(3)) {
                match row {
                    Ok(row) => block.push(*row),
                    Err(_) if !block.is_empty() => return Ok(()),
                    Err(reason) => return Err(reason.clone()),
                }
            }
            Ok(())
        }
    }

    fn row(number: u64) -> Row {
        let op = [0, 1, 2, 3, 129][number as usize % 5];
        let sectors = if op == 2 { 0 } else { 8 * (1 + number % 4) };
        let lba = if op == 2 { 0 } else { number * 64 };
        Row { time_ns: 5_000 + number * 100, op, lba, sectors, device: 0 }
    }

    fn requests(source: &mut dyn Source) -> Vec<Request> {
        std::iter::from_fn(|| source.next(SimTime::ZERO).expect("all rows are right")).collect()
    }

    #[test]
    fn a_table_yields_what_our_own_file_of_the_same_rows_yields() {
        let held = Arc::new(Held((0..10).map(|number| Ok(row(number))).collect()));
        let of_table = requests(open("table", held, &TraceOptions::default()).as_mut());
        let file = tempfile();
        let mut writer =
            (crate::writers::by_name("imbrex").expect("it is ours").open)(Box::new(file.reopen()), "f").expect("open");
        of_table.iter().for_each(|request| writer.write(request).expect("written"));
        writer.finish().expect("finished");
        let input = crate::Input::file("f", file.reopen());
        let mut opened = crate::open(input, &TraceOptions::default()).expect("it is ours");
        assert_eq!(requests(opened.source.as_mut()), of_table);
        let held = (0..10).map(|number| row(number).op);
        assert!(held.eq(of_table.iter().map(|request| op_of(&request.command))));
        assert_eq!((of_table.len(), of_table[0].when), (10, When::At(SimTime::ZERO)));
        assert!(of_table[4].command.fua && of_table[3].when == When::At(SimTime(300)));
    }

    /// A file that is deleted at the end of the test.
    struct Temporary(std::path::PathBuf);

    fn tempfile() -> Temporary {
        let path = std::env::temp_dir().join(format!("imbrex-rows-{}", std::process::id()));
        std::fs::write(&path, b"").expect("a temporary file");
        Temporary(path)
    }

    impl Temporary {
        fn reopen(&self) -> std::fs::File {
            std::fs::File::options().read(true).write(true).open(&self.0).expect("it is there")
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_bad_row_is_an_error_with_its_number_or_counted() {
        let rows = || {
            let mut rows: Vec<Result<Row, String>> = (0..9).map(|number| Ok(row(number))).collect();
            rows[4] = Ok(Row { op: 7, ..row(4) });
            rows[7] = Err("expected a number, found null".into());
            Arc::new(Held(rows))
        };
        let mut strict = open("table", rows(), &TraceOptions::default());
        for _ in 0..4 {
            strict.next(SimTime::ZERO).expect("sound rows");
        }
        let error = strict.next(SimTime::ZERO).expect_err("row 4 is not").to_string();
        assert!(error.contains("table, row 4") && error.contains("found 7"), "{error}");
        let options = TraceOptions { skip_malformed: crate::options::SkipMalformed::Some, ..TraceOptions::default() };
        let mut lenient = open("table", rows(), &options);
        assert_eq!(requests(lenient.as_mut()).len(), 7);
        assert_eq!(lenient.facts().malformed, 2);
        assert!(lenient.facts().first_malformed.expect("it is kept").contains("row 4"));
    }
}
