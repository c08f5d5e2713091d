//! Any text table of requests. The caller passes the contents of the columns (`time,op,offset,size`) and their units
//! (`us,,B,B`).
//!
//! The columns are `time`, `op`, `offset`, `size` and `device`; any other word stands for a column to ignore. Without a
//! `time` column, all requests are at time 0.
//!
//! Units of time are `s`, `ms`, `us`, `100ns`, `ns` (default `s`). Units of offset and size are `B`, `sectors`, `KiB`,
//! `MiB`, and `pages` of 4 KiB (default `B`).
//!
//! Operations are SCSI codes or words in any case that begin with R, W, F (flush), or T, D or U (trim, discard, unmap).
//!
//! The delimiter is the first of `,` `;` tab `|` and blank that splits the first line into enough columns. With a
//! delimiter other than the comma, numbers may have a decimal comma. A first line that is not a request is taken for a
//! header.
//! header.

use imbrex_units::Operation;

use crate::admission::{Devices, Malformed, Parsed, byte_record};
use crate::fields;
use crate::lines::{LineFormat, LineReader};
use crate::options::{TimeUnit, TraceOptions};
use crate::request::TraceError;

use super::format::{Confidence, Format, Head};
use super::vscsi::operation_of;
use super::wpa::{international, international_time_ns};

/// Entry of this format in the registry. The format is never recognised by contents: only the caller can know the
/// meaning of the columns.
pub(super) const FORMAT: Format = Format {
    name: "csv",
    summary: "any table in text, with --columns and --units",
    detect: |_| Confidence::No,
    open: |input, options| {
        let refuse = |reason| TraceError { place: input.name.clone(), reason, cause: None };
        let mut table = Table::described(options).map_err(refuse)?;
        table.delimiter = delimiter_of(&Head::of(&input), table.columns);
        LineReader::open(input, options, table, Vec::new())
    },
};

/// Positions of the columns, and their units.
struct Table {
    columns: usize,
    time: Option<usize>,
    operation: usize,
    offset: usize,
    size: usize,
    device: Option<usize>,
    time_unit: TimeUnit,
    offset_unit_bytes: u64,
    size_unit_bytes: u64,
    delimiter: u8,
    first: bool,
}

impl Table {
    /// Returns the table that the options describe.
    ///
    /// # Errors
    ///
    /// If the description is wrong; the text says why.
    fn described(options: &TraceOptions) -> Result<Table, String> {
        let columns = options.columns.as_deref().ok_or("csv needs --columns, such as --columns time,op,offset,size")?;
        let names: Vec<&str> = columns.split(',').map(str::trim).collect();
        let units: Vec<&str> =
            options.units.as_deref().map_or(vec![], |units| units.split(',').map(str::trim).collect());
        if units.len() > names.len() {
            return Err(format!("{} units for {} columns", units.len(), names.len()));
        }
        let place = |name: &str| names.iter().position(|column| *column == name);
        let needed = |name: &str| place(name).ok_or(format!("--columns {columns} names no column {name}"));
        let unit = |place: usize| units.get(place).copied().filter(|unit| !unit.is_empty());
        let (time, offset, size) = (place("time"), needed("offset")?, needed("size")?);
        let told = time.and_then(unit).map(str::parse).transpose()?;
        Ok(Table {
            columns: names.len(),
            time,
            operation: needed("op")?,
            offset,
            size,
            device: place("device"),
            time_unit: told.or(options.time_unit).unwrap_or(TimeUnit::Seconds),
            offset_unit_bytes: unit(offset).map_or(Ok(1), unit_bytes)?,
            size_unit_bytes: unit(size).map_or(Ok(1), unit_bytes)?,
            delimiter: b',',
            first: true,
        })
    }

    /// Parses a time. It may have a decimal comma if the delimiter is not the comma.
    fn time_ns(&self, word: &[u8]) -> Option<u64> {
        match self.delimiter {
            b',' => fields::time_ns(word, self.time_unit),
            _ => international_time_ns(word, self.time_unit),
        }
    }

    /// Parses a whole number. If the delimiter is not the comma, `4.096` and `4.096,00` are whole numbers too.
    fn number(&self, word: &[u8]) -> Option<u64> {
        if self.delimiter == b',' || !word.iter().any(|byte| matches!(byte, b'.' | b',')) {
            return fields::number(word);
        }
        let plain = international(word);
        let whole = plain.strip_suffix(b".00").or_else(|| plain.strip_suffix(b".0")).unwrap_or(&plain);
        fields::number(whole)
    }

    fn request(&self, line: &[u8], devices: &mut Devices) -> Option<Result<Parsed, Malformed>> {
        let field = |place: usize| column(line, self.delimiter, place);
        let time_ns = match self.time {
            Some(place) => self.time_ns(field(place)?)?,
            None => 0,
        };
        let operation = operation(field(self.operation)?)?;
        let offset_bytes = self.number(field(self.offset)?)?.checked_mul(self.offset_unit_bytes)?;
        let bytes = self.number(field(self.size)?)?.checked_mul(self.size_unit_bytes)?;
        let device = match self.device {
            Some(place) => {
                let name = field(place)?;
                let own = fields::number(name).and_then(|number| u32::try_from(number).ok());
                devices.number(name, own)
            }
            None => 0,
        };
        Some(byte_record(time_ns, device, operation, offset_bytes, bytes))
    }
}

impl LineFormat for Table {
    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Parsed, Malformed> {
        let blank = line.trim_ascii().is_empty() || line.starts_with(b"#");
        if blank {
            return Ok(Parsed::Nothing);
        }
        let first = std::mem::replace(&mut self.first, false);
        match self.request(line, devices) {
            Some(request) => request,
            None if first => Ok(Parsed::Nothing),
            None => Err(Malformed::new("a line of the columns named", line)),
        }
    }
}

/// Returns the column at `place`. With blanks as delimiter, consecutive blanks count as one.
fn column(line: &[u8], delimiter: u8, place: usize) -> Option<&[u8]> {
    if delimiter == b' ' {
        return line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).nth(place);
    }
    line.split(|&byte| byte == delimiter).nth(place).map(<[u8]>::trim_ascii)
}

fn delimiter_of(head: &Head<'_>, columns: usize) -> u8 {
    let line = head.full_lines().find(|line| !line.starts_with(b"#")).unwrap_or(&[]);
    let fits = |delimiter: &u8| column(line, *delimiter, columns - 1).is_some();
    b",;\t| ".iter().copied().find(fits).unwrap_or(b',')
}

fn operation(word: &[u8]) -> Option<Operation> {
    match word.first()? {
        b'R' | b'r' => Some(Operation::Read),
        b'W' | b'w' => Some(Operation::Write),
        b'T' | b't' | b'D' | b'd' | b'U' | b'u' => Some(Operation::Trim),
        b'F' | b'f' => Some(Operation::Flush),
        _ => operation_of(fields::hexadecimal(word)?),
    }
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
        assert_eq!(error, "t, line 3: expected a line of the columns named, found «R,x,512»");
    }
}
