//! Any text table of requests. The caller passes the contents of the columns (`time,op,offset,size`) and their units
//! (`us,,B,B`).
//!
//! The columns are `time`, `op`, `offset`, `size` and `device`, each at most once; `_` stands for a column to ignore.
//! Without a `time` column, all requests are at time 0. Without an `op` column, `all` of the options gives the operation
//! of all requests.
//!
//! Units of time are `s`, `ms`, `us`, `100ns`, `ns` (default `s`). Units of offset and size are `B`, `sectors`, `KiB`,
//! `MiB`, and `pages` of 4 KiB (default `B`). In the place of the unit of `op` stand codes with their meaning, as in
//! `0=read 1=write`.
//!
//! The delimiter is the first of `,` `;` tab `|` and blank with which the first rows are requests.

use crate::lines::LineReader;
use crate::options::{TimeUnit, TraceOptions};
use crate::request::TraceError;
use crate::table::{self, Columns, DeviceNames, Header, Layout, Operations, Role, words};
use imbrex_units::names::suggestion;

use super::format::{Confidence, Format, Head};

/// Entry of this format in the registry. The format is never recognised by contents: only the caller can know the
/// meaning of the columns.
pub(super) const FORMAT: Format = Format {
    name: "csv",
    summary: "any table in text, with --columns and --units",
    options: &["columns", "units", "time-unit", "decimal", "all"],
    detect: |_| Confidence::No,
    open: |input, options| {
        let head = Head::of(&input);
        let layout = described(options)
            .map_err(|reason| TraceError::usage(input.name.clone(), with_names(reason, options, &head)))?;
        let fits = |delimiter: &u8| table::fits(layout.clone(), *delimiter, &head, ROWS_ENOUGH);
        // If the rows fit with no delimiter, the error is that of the delimiter which gives their number of columns.
        let is_counted = |delimiter: &u8| {
            table::rows_of(&head, *delimiter, 1)
                .first()
                .is_some_and(|row| layout.columns == Columns::Exactly(row.len()))
        };
        let found = DELIMITERS.into_iter().find(fits).or_else(|| DELIMITERS.into_iter().find(is_counted));
        LineReader::open_table(input, options, layout, found.unwrap_or(b','))
    },
};

/// Delimiters in the order in which they are tried.
const DELIMITERS: [u8; 5] = *b",;\t| ";
/// Number of rows that show the delimiter.
const ROWS_ENOUGH: usize = 4;

/// Returns the layout that the options describe.
///
/// # Errors
///
/// If the description is wrong; the text says why.
fn described(options: &TraceOptions) -> Result<Layout, String> {
    let columns = options.columns.as_deref().ok_or("csv needs --columns, such as --columns time,op,offset,size")?;
    let names: Vec<&str> = columns.split(',').map(str::trim).collect();
    let units: Vec<&str> = options.units.as_deref().map_or(vec![], |units| units.split(',').map(str::trim).collect());
    if units.len() > names.len() {
        return Err(format!("{} units for {} columns", units.len(), names.len()));
    }
    let roles = names.iter().map(|name| role_of(name)).collect::<Result<Vec<_>, _>>()?;
    let place = |role: Role| roles.iter().position(|other| *other == Some(role));
    let needed = |role: Role, name: &str| place(role).ok_or(format!("--columns {columns} names no column {name}"));
    if let Some(twice) = (0..names.len()).find(|&at| roles[at].is_some() && roles[..at].contains(&roles[at])) {
        return Err(format!("--columns {columns} names {} twice", names[twice]));
    }
    let unit = |place: Option<usize>| place.and_then(|place| units.get(place).copied()).filter(|unit| !unit.is_empty());
    let (offset, size) = (needed(Role::Offset, "offset")?, needed(Role::Size, "size")?);
    for (column, unit) in units.iter().enumerate().filter(|(_, unit)| !unit.is_empty()) {
        if matches!(roles[column], None | Some(Role::Device)) {
            return Err(format!(
                "--units gives column {} ({}) the unit {unit}, and it has none",
                column + 1,
                names[column]
            ));
        }
    }
    let operations = match (place(Role::Operation), options.all) {
        (Some(_), Some(_)) => return Err("--all is for tables without a column op".into()),
        (None, Some(operation)) => Operations::All(operation),
        (None, None) => {
            return Err(format!("--columns {columns} names no column op: name it, or say --all reads or --all writes"));
        }
        (Some(place), None) => Operations::Column {
            codes: unit(Some(place)).map_or(Ok(Vec::new()), codes)?,
            has_words: true,
            is_no_request: |_| false,
        },
    };
    let told = unit(place(Role::Time)).map(str::parse).transpose()?;
    if let (Some(told), Some(other)) = (told, options.time_unit)
        && told != other
    {
        return Err(format!("--units says {told} and --time-unit {other}: give one"));
    }
    if options.time_unit.is_some() && place(Role::Time).is_none() {
        return Err("--time-unit is for tables with a column time".into());
    }
    let time_unit = told.or(options.time_unit).unwrap_or(TimeUnit::Seconds);
    Ok(Layout {
        columns: Columns::Exactly(names.len()),
        offset_unit: unit(Some(offset)).map_or(Ok(1), unit_bytes)?,
        size_unit: unit(Some(size)).map_or(Ok(1), unit_bytes)?,
        devices: DeviceNames::Any,
        decimal: options.decimal,
        header: Header::Any,
        ..Layout::of("csv", &roles, operations, time_unit)
    })
}

/// Returns the role of the column called `name` in `--columns`.
fn role_of(name: &str) -> Result<Option<Role>, String> {
    match name {
        "time" => Ok(Some(Role::Time)),
        "op" => Ok(Some(Role::Operation)),
        "offset" => Ok(Some(Role::Offset)),
        "size" => Ok(Some(Role::Size)),
        "device" => Ok(Some(Role::Device)),
        "_" | "" => Ok(None),
        _ => {
            let meant = suggestion(name, ["time", "op", "offset", "size", "device"]);
            Err(format!("«{name}» is no column{meant}: time, op, offset, size, device, or `_` for a column to ignore"))
        }
    }
}

/// Adds to `reason` the columns that the header of `head` names, if the user named none.
fn with_names(reason: String, options: &TraceOptions, head: &Head<'_>) -> String {
    match table::columns_named(head, b',') {
        Some(columns) if options.columns.is_none() => format!("{reason}; its header names --columns {columns}"),
        _ => reason,
    }
}

/// Parses codes with their meaning, such as `0=read 1=write`.
fn codes(text: &str) -> Result<Vec<(Vec<u8>, words::Meaning)>, String> {
    let wrong = |what: &str| format!("--units, op: «{what}» is not a code with its meaning, such as 0=read 1=write");
    let code = |pair: &str| {
        let (code, word) = pair.split_once('=').ok_or_else(|| wrong(pair))?;
        let meaning = words::meaning_of(word.as_bytes()).filter(|_| !code.is_empty()).ok_or_else(|| wrong(pair))?;
        Ok((code.as_bytes().to_vec(), meaning))
    };
    text.split_whitespace().map(code).collect()
}

fn unit_bytes(unit: &str) -> Result<u64, String> {
    match unit {
        "B" | "b" | "bytes" => Ok(1),
        "sectors" | "s" => Ok(512),
        "KiB" | "k" => Ok(1 << 10),
        "pages" => Ok(4 << 10),
        "MiB" | "m" => Ok(1 << 20),
        _ => Err(format!("«{unit}» is no unit of size: B, sectors, KiB, MiB or pages")),
    }
}

#[cfg(test)]
mod tests {
    //! Goal: columns in any order, unit and delimiter. Method: two requests in several tables.

    use imbrex_units::Command;

    use crate::formats::testing::{error_of, requests_of, timed};
    use crate::options::TraceOptions;

    fn described(columns: &str, units: &str) -> TraceOptions {
        let (columns, units) = (Some(columns.into()), Some(units.into()));
        TraceOptions { format: Some("csv".into()), columns, units, ..TraceOptions::default() }
    }

    #[test]
    fn tables_of_every_form() {
        for (trace, columns, units) in [
            ("0,R,4096,512\n2000,W,8192,1024\n", "time,op,offset,size", "us,,B,B"),
            ("size;when;op;at\n1;5;read;8\n2;5,002;WRITE;16\n", "size,_,op,offset", "sectors,,,sectors"),
            ("op;time;offset;size\nR;0,000;4.096;512\nW;0,002;8.192;1.024\n", "op,time,offset,size", ",s,B,B"),
            ("# made by hand\n8\t1  28\t512\n16  1.002  2a  1024\n", "offset,time,op,size", "sectors"),
        ] {
            let mut requests = requests_of(trace, &described(columns, units));
            if !columns.contains("time") {
                requests[1].when = timed(2_000_000, 0, Command::flush()).when;
            }
            assert_eq!(
                requests,
                [timed(0, 0, Command::read(8, 1)), timed(2_000_000, 0, Command::write(16, 2))],
                "{columns}"
            );
        }
    }

    #[test]
    fn devices_have_numbers_or_names() {
        let requests =
            requests_of("sda,W,0,512\nsdb,W,0,512\nsda,T,512,512\n", &described("device,op,offset,size", ""));
        assert_eq!(requests.iter().map(|request| request.device).collect::<Vec<_>>(), [0, 1, 0]);
        let requests = requests_of("7,W,0,512\n", &described("device,op,offset,size", ""));
        assert_eq!(requests[0].device, 7);
    }

    #[test]
    fn a_wrong_description_is_told() {
        assert!(error_of("x", &described("time,op", "")).ends_with("--columns time,op names no column offset"));
        assert!(error_of("x", &described("time,op,offset,size", "h")).contains("«h» is no unit of time"));
        assert!(error_of("x", &described("op,offset,size", ",GB")).contains("«GB» is no unit of size"));
        let options = TraceOptions { format: Some("csv".into()), ..TraceOptions::default() };
        assert!(error_of("x", &options).contains("needs --columns"));
    }

    #[test]
    fn only_the_first_line_may_be_a_header() {
        let error = error_of("op,offset,size\nR,0,512\nR,x,512\n", &described("op,offset,size", ""));
        assert_eq!(error, "t, line 3: column 2 (offset): «x» is not a number");
    }
}
