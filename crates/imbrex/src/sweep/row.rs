//! One row of a sweep: the options of a point and its results.
//!
//! Columns:
//! - `key`
//! - `imbrex`: the version
//! - `workload`, `workload_format`, `workload_sha256`
//! - `drive`: text with all parameters
//! - `drive_head`: text without the parameters of the sweep
//! - for each parameter and option of the sweep, its text under its own name
//! - and under NAME`_number` its value as a number: bytes of a size, nanoseconds of a time, the share of a percentage;
//!   null if it is not a number
//! - `error`: null if the point succeeded
//! - `warnings`: notices of the point's simulation, such as a drive that grew, one a line; null if there are none
//! - the columns of [`METRICS`]: null if the point failed; the mean over the seeds if the option `seeds` is above 1
//! - if it is, under NAME`_half_width_95` half of the 95 % interval of each mean, in its unit
//! - `integrity`: result of the check of the point's drive in one word, and the columns of [`INTEGRITY`]: null if the
//!   point failed, or if the check was off and the drive's rules were kept. With several seeds, the result is that of
//!   the first seed that lost live data, or of the first seed if none did
//!
//! Invariants:
//! 1. A column of one name has the same type in every row.
//! 2. A table contains a checksum of all its other bytes. A table with another checksum is damaged and not read.
//! 3. Parameters and options have other names than the other columns.

use std::sync::Arc;

use imbrex_sim::DriveResult;
use imbrex_sim::results::Integrity;
use imbrex_units::quantity;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};
use sha2::{Digest, Sha256};

use super::grid::Task;
use crate::chart::Unit;
use crate::error::Failure;
use crate::files::batches::{Batch, Batches, Values};
use crate::files::table::{Column, append, writer_with};
use crate::workload::hex;

/// End of the name of a column with half of the 95 % interval of a mean over seeds.
pub const HALF_WIDTH: &str = "_half_width_95";

/// Type of a column of the results of a sweep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Text in UTF-8.
    Text,
    /// Signed 64-bit integer.
    Long,
    /// 64-bit floating-point number.
    Real,
}

/// A value of a row, or null.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// Null: the row has no value in this column.
    Nothing,
    /// Text.
    Text(String),
    /// Signed 64-bit integer.
    Long(i64),
    /// 64-bit floating-point number.
    Real(f64),
}

impl Cell {
    /// Returns `value` as a cell of a column of type `kind`; null if there is no value or it has another type.
    fn of(value: Option<&serde_json::Value>, kind: Kind) -> Cell {
        let cell = match kind {
            Kind::Long => value.and_then(serde_json::Value::as_i64).map(Cell::Long),
            Kind::Real => value.and_then(serde_json::Value::as_f64).map(Cell::Real),
            Kind::Text => value.and_then(|value| Some(Cell::Text(value.as_str()?.to_string()))),
        };
        cell.unwrap_or(Cell::Nothing)
    }
}

/// The results of one point of a sweep as a row of a table, with the names and types of its columns.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Row {
    /// Name, type and value of each column, in the order of the columns.
    pub cells: Vec<(String, Kind, Cell)>,
}

/// The measurements in a row: name of the column, JSON pointer (RFC 6901) to the value within one drive's results in
/// `summary.json`, and type of the column. A point of a sweep that failed has null in these columns. Names that end in
/// `_ns` are in nanoseconds.
pub const METRICS: [(&str, &str, Kind); 49] = [
    ("completed", "/completed", Kind::Long),
    ("duration_ns", "/duration_ns", Kind::Long),
    ("duration_ratio", "/duration_ratio", Kind::Real),
    ("slowdown", "/slowdown", Kind::Real),
    ("mean_ratio", "/latency_ratio/all/mean", Kind::Real),
    ("p99_ratio", "/latency_ratio/all/p99", Kind::Real),
    ("read_mean_ratio", "/latency_ratio/read/mean", Kind::Real),
    ("read_p99_ratio", "/latency_ratio/read/p99", Kind::Real),
    ("write_mean_ratio", "/latency_ratio/write/mean", Kind::Real),
    ("write_p99_ratio", "/latency_ratio/write/p99", Kind::Real),
    ("stall_ns", "/longest_stall_ns", Kind::Long),
    ("queue_full_ns", "/queue_full_ns", Kind::Long),
    ("before_queue_p99_ns", "/latency_ns/before_queue/p99", Kind::Long),
    ("mean_ns", "/latency_ns/all/mean", Kind::Long),
    ("p50_ns", "/latency_ns/all/p50", Kind::Long),
    ("p99_ns", "/latency_ns/all/p99", Kind::Long),
    ("p999_ns", "/latency_ns/all/p999", Kind::Long),
    ("p9999_ns", "/latency_ns/all/p9999", Kind::Long),
    ("max_ns", "/latency_ns/all/max", Kind::Long),
    ("read_mean_ns", "/latency_ns/read/mean", Kind::Long),
    ("read_p50_ns", "/latency_ns/read/p50", Kind::Long),
    ("read_p99_ns", "/latency_ns/read/p99", Kind::Long),
    ("write_mean_ns", "/latency_ns/write/mean", Kind::Long),
    ("write_p50_ns", "/latency_ns/write/p50", Kind::Long),
    ("write_p99_ns", "/latency_ns/write/p99", Kind::Long),
    ("queue_mean_ns", "/latency_ns/queue/mean", Kind::Long),
    ("service_mean_ns", "/latency_ns/service/mean", Kind::Long),
    ("seek_ns", "/service_ns/seek", Kind::Long),
    ("rotation_ns", "/service_ns/rotation", Kind::Long),
    ("transfer_ns", "/service_ns/transfer", Kind::Long),
    ("overhead_ns", "/service_ns/overhead", Kind::Long),
    ("cleaning_ns", "/service_ns/cleaning", Kind::Long),
    ("host_reads", "/host/reads", Kind::Long),
    ("host_writes", "/host/writes", Kind::Long),
    ("host_read_blocks", "/host/read_blocks", Kind::Long),
    ("host_write_blocks", "/host/write_blocks", Kind::Long),
    ("medium_read_blocks", "/medium/read_blocks", Kind::Long),
    ("medium_write_blocks", "/medium/write_blocks", Kind::Long),
    ("write_overloading", "/write_overloading", Kind::Real),
    ("write_amplification", "/write_amplification", Kind::Real),
    ("read_amplification", "/read_amplification", Kind::Real),
    ("windows_zero", "/windows/zero", Kind::Long),
    ("windows_busy", "/windows/busy", Kind::Long),
    ("windows_stalled", "/windows/stalled", Kind::Long),
    ("cleaning_events", "/cleaning/events", Kind::Long),
    ("longest_stall_ns", "/cleaning/longest_stall_ns", Kind::Long),
    ("map_bytes", "/map_bytes", Kind::Long),
    ("capacity_bytes", "/capacity_bytes", Kind::Long),
    ("wall_seconds", "/wall_seconds", Kind::Real),
];

/// Details of the column `integrity`: name of the column, JSON pointer (RFC 6901) to the value within the field
/// `integrity` of a drive in `summary.json`, and type of the column. A column is null if the field lacks the value.
pub const INTEGRITY: [(&str, &str, Kind); 5] = [
    ("integrity_violation", "/violation", Kind::Text),
    ("integrity_rule_breaks", "/rule_breaks", Kind::Long),
    ("integrity_live_sectors_destroyed", "/live_sectors_destroyed", Kind::Long),
    ("integrity_first", "/first", Kind::Text),
    ("integrity_request", "/request", Kind::Long),
];

/// Parses a value of a parameter or option as a number with its unit. A percentage becomes a fraction. A duration that
/// ends with `s`, `h` or `d`, such as `5s` or `2ms`, becomes nanoseconds. A size such as `64k` becomes bytes; `30m` is
/// a size too, and not 30 minutes. A bare number is a count. Returns `None` if `text` is none of these.
pub fn number(text: &str) -> Option<(f64, Unit)> {
    if let Some(percent) = text.strip_suffix('%') {
        return Some((percent.parse::<f64>().ok()? / 100.0, Unit::Share));
    }
    if let Ok(number) = text.parse::<f64>() {
        return Some((number, Unit::Count)).filter(|found| found.0.is_finite());
    }
    let is_time = text.ends_with('s') || text.ends_with('h') || text.ends_with('d');
    if is_time {
        return quantity::duration_ns(text, quantity::SECOND_NS).map(|ns| (ns as f64, Unit::Nanoseconds));
    }
    quantity::bytes(text).map(|bytes| (bytes as f64, Unit::Bytes))
}

impl Row {
    /// Returns the row of the point `task`. `outcome` is the drive's results and the warnings of the simulation, or the
    /// failure, which leaves the measurements null.
    pub fn of(task: &Task, outcome: &Result<(DriveResult, Vec<String>), Failure>) -> Row {
        let result = outcome.as_ref().map(|(result, _)| result);
        let warnings = outcome.as_ref().map_or(&[][..], |(_, warnings)| warnings).join("\n");
        let mut row = Row::default();
        let text = |value: &str| Cell::Text(value.to_string());
        row.put("key", Kind::Text, text(&task.key));
        row.put("imbrex", Kind::Text, text(env!("CARGO_PKG_VERSION")));
        row.put("workload", Kind::Text, text(&task.workload));
        row.put("workload_format", Kind::Text, text(&task.workload_format));
        row.put("workload_sha256", Kind::Text, text(&task.workload_sha256));
        row.put("drive", Kind::Text, text(&task.drive));
        row.put("drive_head", Kind::Text, text(&task.drive_head));
        for (name, value) in &task.swept {
            row.put(name, Kind::Text, text(value));
            let real = number(value).map_or(Cell::Nothing, |(number, _)| Cell::Real(number));
            row.put(&format!("{name}_number"), Kind::Real, real);
        }
        let error = result.err().map_or(Cell::Nothing, |failure| {
            let remedy = failure.remedy.as_ref().map_or_else(String::new, |remedy| format!("; try: {remedy}"));
            Cell::Text(format!("{}{remedy}", failure.message))
        });
        row.put("error", Kind::Text, error);
        row.put("warnings", Kind::Text, if warnings.is_empty() { Cell::Nothing } else { Cell::Text(warnings) });
        let measured = result.ok().map(|drive| serde_json::to_value(drive).expect("results are plain values"));
        let has_seeds = task.options.iter().any(|(name, word)| name == "seeds" && word != "1");
        for (name, at, kind) in METRICS {
            let over = result.ok().and_then(|drive| drive.over_seeds.get(&at[1..].replace('/', ".")));
            let half = over.map_or(Cell::Nothing, |over| Cell::Real(over.half_width_95));
            if has_seeds && kind != Kind::Text && name != "wall_seconds" {
                row.put(&format!("{name}{HALF_WIDTH}"), Kind::Real, half);
            }
            if let Some(over) = over {
                let mean =
                    if kind == Kind::Long { Cell::Long(over.mean.round() as i64) } else { Cell::Real(over.mean) };
                row.put(name, kind, mean);
                continue;
            }
            row.put(name, kind, Cell::of(measured.as_ref().and_then(|measured| measured.pointer(at)), kind));
        }
        let integrity = result.ok().map(|drive| &drive.integrity).filter(|&integrity| *integrity != Integrity::off());
        row.put("integrity", Kind::Text, integrity.map_or(Cell::Nothing, |integrity| text(integrity.word())));
        let details = integrity.map(|integrity| serde_json::to_value(integrity).expect("results are plain values"));
        for (name, at, kind) in INTEGRITY {
            row.put(name, kind, Cell::of(details.as_ref().and_then(|details| details.pointer(at)), kind));
        }
        row
    }

    /// Returns whether the check found that live data was lost at this point, by a fault of the layer or by the host's
    /// own writes. False also if the check was off.
    pub fn has_lost_data(&self) -> bool {
        let destroyed = self.number("integrity_live_sectors_destroyed");
        self.text("integrity_violation").is_some() || destroyed.is_some_and(|sectors| sectors > 0.0)
    }

    fn put(&mut self, name: &str, kind: Kind, cell: Cell) {
        self.cells.push((name.to_string(), kind, cell));
    }

    /// Returns the value in the column `name`, which may be [`Cell::Nothing`], or `None` if the row has no such column.
    pub fn get(&self, name: &str) -> Option<&Cell> {
        self.cells.iter().find(|(own, ..)| own == name).map(|(.., cell)| cell)
    }

    /// Returns the number in the column `name`; `None` for null, for text, and if there is no such column.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.get(name)? {
            Cell::Long(value) => Some(*value as f64),
            Cell::Real(value) => Some(*value),
            Cell::Text(_) | Cell::Nothing => None,
        }
    }

    /// Returns the text in the column `name`; `None` for null, for a number, and if there is no such column.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Cell::Text(text) => Some(text),
            Cell::Long(_) | Cell::Real(_) | Cell::Nothing => None,
        }
    }

    /// Reads the only row of the Parquet file whose contents are `bytes`. The file contains a checksum of itself, as
    /// those of [`write()`] do.
    ///
    /// # Errors
    ///
    /// If the file is damaged, which its checksum shows, or does not have exactly one row.
    pub fn parse(bytes: Vec<u8>) -> parquet::errors::Result<Row> {
        let mut rows = read(bytes)?.0;
        match (rows.pop(), rows.is_empty()) {
            (Some(row), true) => Ok(row),
            _ => Err(ParquetError::General("expected one row".into())),
        }
    }

    /// Returns row number `index` of `batch`.
    fn of_batch(batch: &Batch, index: usize) -> Row {
        let cells = batch.columns.iter().map(|column| {
            let is_there = column.is_there.as_ref().is_none_or(|there| there[index]);
            let (kind, cell) = match &column.values {
                Values::Text(values) => (Kind::Text, Cell::Text(values[index].clone())),
                Values::Long(values) => (Kind::Long, Cell::Long(values[index])),
                Values::Int(values) => (Kind::Long, Cell::Long(values[index].into())),
                Values::Real(values) => (Kind::Real, Cell::Real(values[index])),
                Values::Truth(values) => (Kind::Long, Cell::Long(values[index].into())),
            };
            (column.name.clone(), kind, if is_there { cell } else { Cell::Nothing })
        });
        Row { cells: cells.collect() }
    }
}

/// Key of the checksum in a table's metadata.
const CHECKSUM: &str = "imbrex.checksum";

/// Returns the names of the columns that every row has, whatever parameters and options were swept.
pub fn own_columns() -> impl Iterator<Item = &'static str> {
    let of_task = ["key", "imbrex", "workload", "workload_format", "workload_sha256", "drive", "drive_head"];
    let measured = METRICS.iter().map(|(name, ..)| *name);
    let of_check = std::iter::once("integrity").chain(INTEGRITY.iter().map(|(name, ..)| *name));
    of_task.into_iter().chain(["error", "warnings"]).chain(measured).chain(of_check)
}

/// Reads all rows of the Parquet table whose contents are `bytes`. The table contains a checksum of itself, as those of
/// [`write()`] do. Also returns the table itself, for its metadata.
///
/// # Errors
///
/// If the table cannot be read, or if its checksum is wrong or missing.
pub fn read(bytes: Vec<u8>) -> parquet::errors::Result<(Vec<Row>, Batches)> {
    check(&bytes)?;
    let table = Batches::of_bytes(bytes)?;
    let mut rows = Vec::new();
    for index in 0..table.groups() {
        let batch = table.group(index)?;
        rows.extend((0..batch.rows).map(|index| Row::of_batch(&batch, index)));
    }
    Ok((rows, table))
}

/// Returns the name and the type of each column that a row has, in the order in which they occur.
fn columns_of(rows: &[Row]) -> Vec<(&str, Kind)> {
    let mut columns: Vec<(&str, Kind)> = Vec::new();
    let mut known = std::collections::BTreeSet::new();
    for (name, kind, _) in rows.iter().flat_map(|row| &row.cells) {
        if known.insert(name.as_str()) {
            columns.push((name, *kind));
        }
    }
    columns
}

/// Digits of the checksum before it is known, and where it is left out.
const NO_DIGITS: [u8; 64] = [b'0'; 64];

/// Returns the place of the checksum's digits in `bytes`, the contents of a table.
fn digits_in(bytes: &[u8]) -> Option<std::ops::Range<usize>> {
    let key = memchr::memmem::rfind(bytes, CHECKSUM.as_bytes())? + CHECKSUM.len();
    // The format puts the type and the length of the value between key and value, in a few bytes.
    const BETWEEN_MAX: usize = 4;
    let is_digits = |at: &usize| {
        let digits = bytes.get(*at..at + NO_DIGITS.len());
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let start = (key + 1..=key + BETWEEN_MAX).rfind(is_digits)?;
    Some(start..start + NO_DIGITS.len())
}

/// Returns the checksum of `bytes` without the digits at `digits`.
fn checksum(bytes: &[u8], digits: &std::ops::Range<usize>) -> String {
    let mut digest = Sha256::new();
    digest.update(&bytes[..digits.start]);
    digest.update(NO_DIGITS);
    digest.update(&bytes[digits.end..]);
    hex(&digest.finalize())
}

/// Checks the checksum of `bytes`, the contents of a table. It comes before any other reading: the Parquet library does
/// not expect damaged metadata.
fn check(bytes: &[u8]) -> parquet::errors::Result<()> {
    match digits_in(bytes) {
        Some(digits) if checksum(bytes, &digits).as_bytes() == &bytes[digits.clone()] => Ok(()),
        _ => Err(ParquetError::General("the checksum is wrong or missing".into())),
    }
}

/// Returns the contents of a Parquet file with `rows`. It has every column that a row has, in the order of first
/// occurrence; a row without a column has null there. The metadata contain a checksum of the file.
///
/// # Errors
///
/// If the Parquet library fails.
pub fn write(rows: &[Row]) -> parquet::errors::Result<Vec<u8>> {
    write_with(rows, Vec::new())
}

/// Returns the contents of a Parquet file with `rows`, and with the pairs `metadata` of a key and a value in the file's
/// metadata. The file has every column that a row has, in the order of first occurrence; a row without a column has
/// null there. The metadata also contain a checksum of the file.
///
/// # Errors
///
/// If the Parquet library fails.
pub fn write_with(rows: &[Row], mut metadata: Vec<(&str, String)>) -> parquet::errors::Result<Vec<u8>> {
    let columns = columns_of(rows);
    metadata.push((CHECKSUM, String::from_utf8_lossy(&NO_DIGITS).into_owned()));
    let mut table = writer_with(Vec::new(), schema(&columns)?, metadata)?;
    if !rows.is_empty() {
        let held: Vec<Held> = columns.iter().map(|(name, kind)| Held::of(rows, name, *kind)).collect();
        append(&mut table, &held.iter().map(Held::column).collect::<Vec<_>>())?;
    }
    let mut bytes = table.into_inner()?;
    let digits = digits_in(&bytes).expect("the metadata contain the checksum");
    let sum = checksum(&bytes, &digits);
    bytes[digits].copy_from_slice(sum.as_bytes());
    Ok(bytes)
}

/// Values of one column in the form that the Parquet writer accepts: the values that are not null, and for each row 1
/// (value) or 0 (null).
enum Held {
    Text(Vec<ByteArray>, Vec<i16>),
    Long(Vec<i64>, Vec<i16>),
    Real(Vec<f64>, Vec<i16>),
}

impl Held {
    fn of(rows: &[Row], name: &str, kind: Kind) -> Held {
        let cells = || rows.iter().map(|row| row.get(name).unwrap_or(&Cell::Nothing));
        let there = cells().map(|cell| i16::from(*cell != Cell::Nothing)).collect();
        match kind {
            Kind::Text => {
                let text = |cell: &Cell| match cell {
                    Cell::Text(text) => Some(ByteArray::from(text.as_str())),
                    _ => None,
                };
                Held::Text(cells().filter_map(text).collect(), there)
            }
            Kind::Long => {
                let long = |cell: &Cell| match cell {
                    Cell::Long(value) => Some(*value),
                    _ => None,
                };
                Held::Long(cells().filter_map(long).collect(), there)
            }
            Kind::Real => {
                let real = |cell: &Cell| match cell {
                    Cell::Real(value) => Some(*value),
                    _ => None,
                };
                Held::Real(cells().filter_map(real).collect(), there)
            }
        }
    }

    fn column(&self) -> Column<'_> {
        match self {
            Held::Text(values, there) => Column::OptionalText(values, there),
            Held::Long(values, there) => Column::OptionalLong(values, there),
            Held::Real(values, there) => Column::OptionalReal(values, there),
        }
    }
}

fn schema(columns: &[(&str, Kind)]) -> parquet::errors::Result<TypePtr> {
    let field = |(name, kind): &(&str, Kind)| {
        let (physical, logical) = match kind {
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Long => (Physical::INT64, None),
            Kind::Real => (Physical::DOUBLE, None),
        };
        let field = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
        field.with_logical_type(logical).build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<parquet::errors::Result<Vec<_>>>()?;
    Type::group_type_builder("sweep").with_fields(fields).build().map(Arc::new)
}
