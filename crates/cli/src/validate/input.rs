//! What was measured, read from a file: packed or not, an ios.parquet of our own among the formats.

use std::io::Read;
use std::path::Path;

use imbrex_calibrate::measured::{Measured, MeasuredRequest};
use imbrex_calibrate::readers::{self, ReadOptions, Record};
use imbrex_disk::{Command, Lba, Operation, SimDuration, SimTime};
use imbrex_trace::Input;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Row, RowAccessor};

use crate::args::MeasuredArgs;
use crate::error::Failure;

/// Reads it.
pub fn read(args: &MeasuredArgs) -> Result<Record, Failure> {
    let path = &args.measured;
    let name = path.display().to_string();
    let file = crate::workload::open_trace(&name)?;
    let mut unpacked = Input::file(&name, file).unpack()?;
    if unpacked.head.starts_with(b"PAR1") {
        return own(path, args.device.as_deref()).map(Record::Requests);
    }
    let mut bytes = Vec::new();
    let contents =
        std::mem::replace(&mut unpacked.contents, imbrex_trace::input::Contents::Stream(Box::new(std::io::empty())));
    contents
        .into_stream()
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::failed(format!("cannot read {name}: {error}")))?;
    let (columns, units) = (args.columns.clone(), args.units.clone());
    let options = ReadOptions { columns, units, device: args.device.clone() };
    Ok(readers::read(&name, &bytes, &options)?)
}

/// Reads requests; a distribution alone is refused.
pub fn requests(args: &MeasuredArgs) -> Result<Measured, Failure> {
    match read(args)? {
        Record::Requests(measured) if measured.requests.is_empty() => {
            Err(Failure::failed(format!("{}: no request in it", args.measured.display())))
        }
        Record::Requests(measured) => Ok(measured),
        Record::Distribution(_) => {
            let reason = format!(
                "{}: a distribution names no requests, so they cannot be issued again",
                args.measured.display()
            );
            Err(Failure::failed(reason).or_try("fio with --write_lat_log=NAME --log_offset=1"))
        }
    }
}

/// Our own table of requests: those of one drive.
fn own(path: &Path, drive: Option<&str>) -> Result<Measured, Failure> {
    let failed = |error: String| Failure::failed(format!("{}: {error}", path.display()));
    let file = std::fs::File::open(path).map_err(|error| failed(error.to_string()))?;
    let reader = SerializedFileReader::new(file).map_err(|error| failed(error.to_string()))?;
    let fields =
        reader.metadata().file_metadata().schema_descr().columns().iter().map(|column| column.name().to_string());
    let fields: Vec<String> = fields.collect();
    let place = |name: &str| {
        let found = fields.iter().position(|field| field == name);
        found.ok_or_else(|| failed(format!("has no column {name}: expected ios.parquet of `imbrex simulate --per-io`")))
    };
    let columns = Columns {
        drive: place("drive")?,
        issue: place("issue_ns")?,
        complete: place("complete_ns")?,
        op: place("op")?,
        lba: place("lba")?,
        sectors: place("sectors")?,
    };
    let mut measured = Measured { format: "ios.parquet".into(), ..Measured::default() };
    let mut chosen = drive.map(str::to_string);
    for row in reader.get_row_iter(None).map_err(|error| failed(error.to_string()))? {
        let row = row.map_err(|error| failed(error.to_string()))?;
        let of = row.get_string(columns.drive).map_err(|error| failed(error.to_string()))?;
        if chosen.get_or_insert_with(|| of.clone()) != of {
            continue;
        }
        measured.requests.extend(columns.request(&row).map_err(|error| failed(error.to_string()))?);
    }
    if let Some(drive) = chosen {
        measured.notes.push(format!("the requests of {drive}"));
    }
    measured.requests.sort_by_key(|request| request.issued);
    Ok(measured)
}

struct Columns {
    drive: usize,
    issue: usize,
    complete: usize,
    op: usize,
    lba: usize,
    sectors: usize,
}

impl Columns {
    fn request(&self, row: &Row) -> parquet::errors::Result<Option<MeasuredRequest>> {
        let long = |at: usize| row.get_long(at).map(|value| value as u64);
        let operation = match row.get_string(self.op)?.as_str() {
            "read" => Operation::Read,
            "write" => Operation::Write,
            "trim" => Operation::Trim,
            _ => return Ok(None),
        };
        let (issued, completed) = (long(self.issue)?, long(self.complete)?);
        let command = Command { operation, fua: false, sectors: long(self.sectors)? as u32, lba: Lba(long(self.lba)?) };
        let taken = SimDuration(completed.saturating_sub(issued));
        Ok(Some(MeasuredRequest { command, issued: SimTime(issued), taken, hit: None }))
    }
}
