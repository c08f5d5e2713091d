//! Tables of requests in text: one row a request, with fields between delimiters. Each format describes its columns in
//! a [`Layout`]; this module reads the rows.
//!
//! A row is a request if every field that its layout names has a value of the column's kind. Otherwise the error names
//! the column, the field, and the values accepted. Nothing is guessed from the beginning of a word or from the place of
//! a dot: if a number has two values, depending on the decimal mark, and no other number of the table's head decides,
//! it is refused.
//!
//! Invariants:
//! 1. A row is parsed in place. A row without quotation marks needs no allocation.
//! 2. One table has one decimal mark, and times of one kind: numbers, dates, or dates with a time zone.
//! 3. A first row without any number is a header. It is skipped, and a note says so.

mod dates;
mod numbers;
pub(crate) mod quoting;
pub(crate) mod words;

use imbrex_units::{Lba, Operation};

use crate::admission::{Devices, Malformed, Parsed, TraceRecord, sectors_of};
use crate::fields::{self, shown};
use crate::formats::{Head, scsi_operation};
use crate::input::Unpacked;
use crate::lines::LineFormat;
use crate::options::TimeUnit;
use crate::request::TraceError;

pub use self::numbers::Decimal;
use self::numbers::{Below, Fault};
use self::quoting::{FIELD_END, Unquoter};
use self::words::Meaning;

/// Meaning of a column.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Role {
    /// Time of the request.
    Time,
    /// Operation of the request.
    Operation,
    /// First byte or sector.
    Offset,
    /// Length.
    Size,
    /// Device, or the disk of a host.
    Device,
    /// Host that the disk belongs to.
    Host,
}

/// Number of [`Role`]s.
const ROLES: usize = 6;

impl Role {
    /// Returns the name of the role's column in `--columns` and in messages.
    const fn name(self) -> &'static str {
        match self {
            Role::Time => "time",
            Role::Operation => "op",
            Role::Offset => "offset",
            Role::Size => "size",
            Role::Device => "device",
            Role::Host => "host",
        }
    }

    /// Returns the role that the column called `name` usually has.
    fn of_name(name: &[u8]) -> Option<Role> {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        // A unit may follow the name: `time_us`, `Size (B)`.
        let name = name.split('(').next().unwrap_or("").trim_end();
        let units = ["_ns", "_us", "_ms", "_s", "_b", "_bytes", "_sectors"];
        let name = units.iter().find_map(|unit| name.strip_suffix(unit)).unwrap_or(name);
        let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        Some(match letters.as_str() {
            "time" | "timestamp" | "ts" | "date" | "datetime" | "starttime" | "issuetime" => Role::Time,
            "op" | "operation" | "opcode" | "type" | "iotype" | "rw" | "cmd" | "command" | "rwbs" => Role::Operation,
            "offset" | "byteoffset" | "lba" | "lbn" | "sector" | "address" => Role::Offset,
            "size" | "iosize" | "length" | "len" | "bytes" | "count" => Role::Size,
            "device" | "deviceid" | "dev" | "disk" | "disknumber" | "volume" | "volumeid" | "lun" | "asu" => {
                Role::Device
            }
            "host" | "hostname" => Role::Host,
            _ => return None,
        })
    }
}

/// Contents of the column of operations.
#[derive(Clone)]
pub(crate) enum Operations {
    /// Words and codes.
    Column {
        /// The codes of this format, in any case.
        codes: Vec<(Vec<u8>, Meaning)>,
        /// Whether the words of [`words`] are accepted beside the codes.
        has_words: bool,
        /// Returns whether the row of this word is not a request.
        is_no_request: fn(&[u8]) -> bool,
    },
    /// Hexadecimal SCSI operation codes. Rows with other codes than those of reads, writes and flushes are not
    /// requests.
    Scsi,
    /// None: all requests have this operation.
    All(Operation),
}

impl Operations {
    /// Returns a column of `codes` alone.
    pub(crate) fn codes(codes: &[(&str, Operation)]) -> Operations {
        let codes = codes.iter().map(|&(code, operation)| (code.as_bytes().to_vec(), Meaning::of(operation))).collect();
        Operations::Column { codes, has_words: false, is_no_request: |_| false }
    }
}

/// Number of columns of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Columns {
    /// At least so many: others may follow.
    AtLeast(usize),
    /// Exactly so many; empty ones may follow.
    Exactly(usize),
}

/// Names of devices in a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DeviceNames {
    /// The device's number.
    Numbers,
    /// Any text; a number that is free becomes the device's number.
    Any,
}

/// The columns of a table, and their units.
#[derive(Clone)]
pub(crate) struct Layout {
    /// Name of the trace format that the table is in.
    pub format: &'static str,
    /// Index (from 0) and meaning of each column that is read, sorted by index.
    pub roles: Vec<(usize, Role)>,
    /// Number of columns that every row has to have.
    pub columns: Columns,
    /// Origin of the operation of a request: a column of words or codes, or one operation for all requests.
    pub operations: Operations,
    /// Unit of the numbers in the column of times.
    pub time_unit: TimeUnit,
    /// Number of bytes that 1 stands for in the column of offsets, such as 1 for bytes or 512 for sectors.
    pub offset_unit: u64,
    /// Number of bytes that 1 stands for in the column of sizes, such as 1 for bytes or 512 for sectors.
    pub size_unit: u64,
    /// Whether all offsets are hexadecimal numbers, with or without a leading `0x`. Otherwise they are decimal numbers,
    /// except those with a leading `0x`, which are hexadecimal.
    pub has_hexadecimal_offsets: bool,
    /// Form of the entries in the column of devices: numbers only, or any text.
    pub devices: DeviceNames,
    /// Decimal mark of the numbers, if the format or the user gives it. With `None`, the reader infers it from the
    /// numbers.
    pub decimal: Option<Decimal>,
    /// Whether a row of size 0 is skipped as a record that is no request. Otherwise the row is a request of length 0.
    pub empty_is_no_request: bool,
    /// Treatment of a first row that has names in place of numbers: the format's own header; skipped if the names fit
    /// the columns, else an error; or always skipped.
    pub header: Header,
    /// Whether the decimal mark is inferred for each column separately. Otherwise all columns of the table have one
    /// mark.
    pub has_marks_by_column: bool,
}

/// Handling of a first row without numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Header {
    /// The format has a header, from which the layout was made.
    Expected,
    /// The row is skipped if its names are those of the layout's columns. Otherwise it is an error.
    Allowed,
    /// The row is skipped. Names of other columns are a note.
    Any,
}

impl Layout {
    /// Returns a layout of bytes and of times in `time_unit`, with `roles` in the order of the columns.
    pub(crate) fn of(
        format: &'static str,
        roles: &[Option<Role>],
        operations: Operations,
        time_unit: TimeUnit,
    ) -> Layout {
        let roles: Vec<_> = roles.iter().enumerate().filter_map(|(column, role)| Some((column, (*role)?))).collect();
        Layout {
            columns: Columns::AtLeast(roles.last().map_or(0, |(column, _)| column + 1)),
            format,
            roles,
            operations,
            time_unit,
            offset_unit: 1,
            size_unit: 1,
            has_hexadecimal_offsets: false,
            devices: DeviceNames::Numbers,
            decimal: None,
            empty_is_no_request: false,
            header: Header::Allowed,
            has_marks_by_column: false,
        }
    }

    fn column(&self, role: Role) -> Option<usize> {
        self.roles.iter().find(|(_, other)| *other == role).map(|(column, _)| *column)
    }
}

/// Kind of a table's times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Times {
    Numbers,
    Dates,
    DatesWithZone,
}

impl Times {
    const fn text(self) -> &'static str {
        match self {
            Times::Numbers => "a number",
            Times::Dates => "a date without a time zone",
            Times::DatesWithZone => "a date with a time zone",
        }
    }
}

/// The fields of a row by [`Role`].
type Fields<'a> = [&'a [u8]; ROLES];

/// The parser of a table.
pub(crate) struct Table {
    layout: Layout,
    delimiter: u8,
    /// Decimal mark of each role's column, where known.
    decimals: [Option<Decimal>; ROLES],
    times: Option<Times>,
    /// The header, if the table has one.
    header: Option<Vec<u8>>,
    /// Whether the next row is the header.
    is_header_next: bool,
    /// The write after a flush, if one row stands for both.
    second: Option<Parsed>,
}

impl Table {
    /// Returns the parser of a table with this head, and notes about its decisions.
    ///
    /// # Errors
    ///
    /// If the header contradicts the format; the text says how.
    pub(crate) fn open(layout: Layout, delimiter: u8, head: &Head<'_>) -> Result<(Table, Vec<String>), String> {
        Table::with_rows(layout, delimiter, &rows_of(head, delimiter, HEAD_ROWS))
    }

    /// Like [`Table::open`], for a table that begins with `rows`.
    fn with_rows(layout: Layout, delimiter: u8, rows: &[Vec<Vec<u8>>]) -> Result<(Table, Vec<String>), String> {
        let decimals = [layout.decimal; ROLES];
        let mut table =
            Table { layout, delimiter, decimals, times: None, header: None, is_header_next: false, second: None };
        let mut notes = Vec::new();
        if let Some(header) = rows.first().filter(|row| is_header(row)) {
            table.header = Some(header.join(&FIELD_END));
            table.is_header_next = true;
            table.compare(header, &mut notes)?;
        }
        table.decide(&rows[usize::from(table.is_header_next)..]);
        if table.decimals.contains(&Some(Decimal::Comma)) && table.layout.decimal.is_none() {
            notes.push("numbers have a decimal comma: --decimal point if they do not".into());
        }
        Ok((table, notes))
    }

    /// Like [`Table::open`], for the table in `input`.
    pub(crate) fn open_input(
        layout: Layout,
        delimiter: u8,
        input: &Unpacked,
    ) -> Result<(Table, Vec<String>), TraceError> {
        let refuse = |reason| TraceError::new(input.name.clone(), reason);
        Table::open(layout, delimiter, &Head::of(input)).map_err(refuse)
    }

    /// Compares the names in `header` with the layout.
    fn compare(&self, header: &[Vec<u8>], notes: &mut Vec<String>) -> Result<(), String> {
        if self.layout.header == Header::Expected {
            return Ok(());
        }
        notes.push(format!("the first row is a header and skipped: {}", shown(&header.join(&self.delimiter))));
        for (column, role) in &self.layout.roles {
            let name = header.get(*column).map_or(&[][..], Vec::as_slice);
            let called = Role::of_name(name);
            if called == Some(*role) {
                continue;
            }
            let (column, name) = (column + 1, shown(name));
            if self.layout.header == Header::Any {
                let told =
                    called.map(|_| format!("the header calls column {column} {name}, --columns {}", role.name()));
                notes.extend(told);
            } else {
                let format = self.layout.format;
                return Err(format!(
                    "the header calls column {column} {name}, where {format} has the {}: describe other columns with \
                     --columns",
                    role.name()
                ));
            }
        }
        Ok(())
    }

    /// Finds out the decimal marks from the numbers that allow only one. Does nothing if they disagree: then the first
    /// number of the other kind is an error.
    fn decide(&mut self, rows: &[Vec<Vec<u8>>]) {
        let mut found = [(0u64, 0u64); ROLES];
        for row in rows {
            for (column, role) in &self.layout.roles {
                let Some((unit, below)) = self.unit(*role) else { continue };
                let word = row.get(*column).map_or(&[][..], |word| word.trim_ascii());
                match self.readings(word, unit, below) {
                    (Some(_), None) => found[*role as usize].0 += 1,
                    (None, Some(_)) => found[*role as usize].1 += 1,
                    _ => {}
                }
            }
        }
        if !self.layout.has_marks_by_column {
            found = [found.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1)); ROLES];
        }
        for (decimal, found) in self.decimals.iter_mut().zip(found) {
            *decimal = decimal.or(match found {
                (1.., 0) => Some(Decimal::Point),
                (0, 1..) => Some(Decimal::Comma),
                _ => None,
            });
        }
    }

    /// Returns the values of `word` with each decimal mark: `(point, comma)`. Dots between thousands are written where
    /// the comma is the decimal mark. Tables of such places have semicolons or tabs between their fields, so elsewhere
    /// a number with a dot and no comma has a decimal point.
    fn readings(&self, word: &[u8], unit: u64, below: Below) -> (Option<u64>, Option<u64>) {
        let (point, comma) = numbers::readings(word, unit, below);
        let is_point = !matches!(self.delimiter, b';' | b'\t') && word.contains(&b'.') && !word.contains(&b',');
        if is_point && point.is_some() { (point, None) } else { (point, comma) }
    }

    /// Keeps `decimal` as the mark of the column of `role`.
    fn keep(&mut self, role: Role, decimal: Decimal) {
        if self.layout.has_marks_by_column {
            self.decimals[role as usize] = Some(decimal);
        } else {
            self.decimals = [Some(decimal); ROLES];
        }
    }

    /// Returns the unit of the numbers in the column of `role`, or `None` if the column has no decimal numbers.
    fn unit(&self, role: Role) -> Option<(u64, Below)> {
        match role {
            Role::Time => Some((self.layout.time_unit.nanoseconds(), Below::Cut)),
            Role::Offset if !self.layout.has_hexadecimal_offsets => Some((self.layout.offset_unit, Below::Refuse)),
            Role::Size => Some((self.layout.size_unit, Below::Refuse)),
            Role::Offset | Role::Operation | Role::Device | Role::Host => None,
        }
    }

    /// Parses `row`, whose fields have `delimiter` between them.
    pub(crate) fn row(&mut self, row: &[u8], delimiter: u8, devices: &mut Devices) -> Result<Parsed, Malformed> {
        let fields = self.split(row, delimiter)?;
        let meaning = match self.meaning(fields[Role::Operation as usize])? {
            Some(meaning) => meaning,
            None => return Ok(Parsed::NotRequest),
        };
        let time_ns = match self.layout.column(Role::Time) {
            Some(_) => self.time_ns(fields[Role::Time as usize])?,
            None => 0,
        };
        let device = self.device(&fields, devices)?;
        let parsed = |command, unaligned| Parsed::Request(TraceRecord { time_ns, device, command, unaligned });
        if matches!(meaning.operation, None | Some(Operation::Flush)) {
            return Ok(parsed(meaning.command(Lba(0), 0), false));
        }
        let offset = self.number(Role::Offset, fields[Role::Offset as usize])?;
        let bytes = self.number(Role::Size, fields[Role::Size as usize])?;
        if bytes == 0 && self.layout.empty_is_no_request {
            return Ok(Parsed::NotRequest);
        }
        let Some((lba, sectors, unaligned)) = sectors_of(offset, bytes) else {
            return Err(Malformed::of(format!("{bytes} bytes from {offset} are too many for one request")));
        };
        let request = parsed(meaning.command(lba, sectors), unaligned);
        if meaning.flush_first {
            self.second = Some(request);
            return Ok(parsed(imbrex_units::Command::flush(), false));
        }
        Ok(request)
    }

    /// Returns the fields that the layout uses.
    fn split<'a>(&self, row: &'a [u8], delimiter: u8) -> Result<Fields<'a>, Malformed> {
        let mut found = [&[][..]; ROLES];
        let mut roles = self.layout.roles.iter().peekable();
        let mut place = |column: usize, field: &'a [u8]| {
            if let Some((_, role)) = roles.next_if(|(wanted, _)| *wanted == column) {
                found[*role as usize] = field.trim_ascii();
            }
        };
        let (mut count, mut filled) = (0, 0);
        let mut each = |field: &'a [u8]| {
            place(count, field);
            count += 1;
            if !field.trim_ascii().is_empty() {
                filled = count;
            }
        };
        if delimiter == b' ' {
            row.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).for_each(&mut each);
        } else {
            let mut start = 0;
            for at in memchr::memchr_iter(delimiter, row) {
                each(&row[start..at]);
                start = at + 1;
            }
            each(&row[start..]);
        }
        let is_right = match self.layout.columns {
            Columns::AtLeast(least) => count >= least,
            Columns::Exactly(exact) => count >= exact && filled <= exact,
        };
        if is_right { Ok(found) } else { Err(self.wrong_count(count, row)) }
    }

    #[cold]
    fn wrong_count(&self, count: usize, row: &[u8]) -> Malformed {
        let (wanted, advice) = match self.layout.columns {
            Columns::AtLeast(least) => (format!("at least {least}"), ""),
            Columns::Exactly(exact) => (exact.to_string(), " (--columns: `_` stands for a column to ignore)"),
        };
        let row: Vec<u8> = row.iter().map(|&byte| if byte == FIELD_END { self.delimiter } else { byte }).collect();
        Malformed::of(format!("expected {wanted} columns{advice}, found {count} in {}", shown(&row)))
    }

    /// Returns the meaning of the operation in `word`, or `None` if the row is not a request.
    fn meaning(&self, word: &[u8]) -> Result<Option<Meaning>, Malformed> {
        match &self.layout.operations {
            Operations::All(operation) => Ok(Some(Meaning::of(*operation))),
            Operations::Scsi => match fields::hexadecimal(word) {
                Some(code) => Ok(scsi_operation(code).map(Meaning::of)),
                None => Err(self.wrong(Role::Operation, word, "a SCSI operation code in hexadecimal")),
            },
            Operations::Column { codes, has_words, is_no_request } => {
                let code = codes.iter().find(|(code, _)| code.eq_ignore_ascii_case(word)).map(|(_, meaning)| *meaning);
                match code.or_else(|| has_words.then(|| words::meaning_of(word)).flatten()) {
                    Some(meaning) => Ok(Some(meaning)),
                    None if is_no_request(word) => Ok(None),
                    None => Err(self.wrong_operation(codes, *has_words, word)),
                }
            }
        }
    }

    #[cold]
    fn wrong_operation(&self, codes: &[(Vec<u8>, Meaning)], has_words: bool, word: &[u8]) -> Malformed {
        let codes: Vec<_> = codes.iter().map(|(code, _)| String::from_utf8_lossy(code)).collect();
        let expected = match (codes.is_empty(), has_words) {
            (true, _) => words::ACCEPTED.to_string(),
            (false, true) => format!("{}, or {}", codes.join(", "), words::ACCEPTED),
            (false, false) => codes.join(" or "),
        };
        self.wrong(Role::Operation, word, &expected)
    }

    fn time_ns(&mut self, word: &[u8]) -> Result<u64, Malformed> {
        if !dates::looks_like_date(word) {
            self.settle(Times::Numbers, word)?;
            return self.number(Role::Time, word);
        }
        let date = dates::parse(word).map_err(|text| self.refused(Role::Time, word, text))?;
        self.settle(if date.has_zone { Times::DatesWithZone } else { Times::Dates }, word)?;
        Ok(date.since_1970_ns)
    }

    /// Makes `times` the kind of the table's times.
    #[inline]
    fn settle(&mut self, times: Times, word: &[u8]) -> Result<(), Malformed> {
        match self.times.replace(times) {
            Some(before) if before != times => {
                let text = format!("is {}, and the times before are each {}", times.text(), before.text());
                Err(self.refused(Role::Time, word, &text))
            }
            _ => Ok(()),
        }
    }

    /// Parses the number in the column of `role`, in nanoseconds or bytes.
    #[inline]
    fn number(&mut self, role: Role, word: &[u8]) -> Result<u64, Malformed> {
        let Some((unit, below)) = self.unit(role) else {
            return fields::hexadecimal(word)
                .and_then(|number| number.checked_mul(self.layout.offset_unit))
                .ok_or_else(|| self.wrong(role, word, "a hexadecimal number of 64 bits"));
        };
        let decimal = match self.decimals[role as usize] {
            Some(decimal) => decimal,
            None if numbers::has_mark(word) => self.decimal_of(role, word, unit, below)?,
            None => Decimal::Point,
        };
        numbers::value(word, decimal, unit, below).map_err(|fault| self.faulty(role, word, fault))
    }

    /// Finds out the decimal mark from `word`, the first number with a mark in a table whose mark is unknown.
    #[cold]
    fn decimal_of(&mut self, role: Role, word: &[u8], unit: u64, below: Below) -> Result<Decimal, Malformed> {
        match self.readings(word, unit, below) {
            (Some(point), Some(comma)) if point != comma => Err(self.refused(
                role,
                word,
                "may have a decimal point or a decimal comma, and has another value with each: say --decimal point or \
                 --decimal comma",
            )),
            (None, Some(_)) => {
                self.keep(role, Decimal::Comma);
                Ok(Decimal::Comma)
            }
            (Some(_), None) => {
                self.keep(role, Decimal::Point);
                Ok(Decimal::Point)
            }
            _ => Ok(Decimal::Point),
        }
    }

    fn device(&self, fields: &Fields<'_>, devices: &mut Devices) -> Result<u32, Malformed> {
        if self.layout.column(Role::Device).is_none() {
            return Ok(0);
        }
        let word = fields[Role::Device as usize];
        let own = numbers::value(word, Decimal::Point, 1, Below::Refuse)
            .and_then(|number| u32::try_from(number).map_err(|_| Fault::TooLarge));
        match (self.layout.devices, self.layout.column(Role::Host)) {
            (DeviceNames::Any, _) if word.is_empty() => Err(self.refused(Role::Device, word, Fault::Empty.text())),
            (DeviceNames::Any, _) => Ok(devices.number(word, own.ok())),
            (DeviceNames::Numbers, host) => {
                let own = own.map_err(|fault| {
                    self.refused(
                        Role::Device,
                        word,
                        match fault {
                            Fault::TooLarge => "is too large for 32 bits",
                            fault => fault.text(),
                        },
                    )
                })?;
                let Some(_) = host else { return Ok(own) };
                Ok(devices.number(&[fields[Role::Host as usize], b".", own.to_string().as_bytes()].concat(), Some(own)))
            }
        }
    }

    #[cold]
    fn wrong(&self, role: Role, word: &[u8], expected: &str) -> Malformed {
        let column = self.layout.column(role).map_or(0, |column| column + 1);
        Malformed::of(format!("column {column} ({}): found {}, expected {expected}", role.name(), shown(word)))
    }

    #[cold]
    fn refused(&self, role: Role, word: &[u8], text: &str) -> Malformed {
        let column = self.layout.column(role).map_or(0, |column| column + 1);
        Malformed::of(format!("column {column} ({}): {} {text}", role.name(), shown(word)))
    }

    #[cold]
    fn faulty(&self, role: Role, word: &[u8], fault: Fault) -> Malformed {
        let (mark, other) = match self.decimals[role as usize] {
            Some(Decimal::Comma) => ("comma", "point"),
            _ => ("point", "comma"),
        };
        match fault {
            Fault::NotNumber | Fault::NotWhole if numbers::has_mark(word) => {
                let text = format!("{} with a decimal {mark} (--decimal {other} chooses the other)", fault.text());
                self.refused(role, word, &text)
            }
            _ => self.refused(role, word, fault.text()),
        }
    }
}

impl LineFormat for Table {
    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Parsed, Malformed> {
        self.parse_row(line, self.delimiter, devices)
    }

    fn parse_unquoted(&mut self, row: &[u8], devices: &mut Devices) -> Result<Parsed, Malformed> {
        self.parse_row(row, FIELD_END, devices)
    }

    fn quoted_delimiter(&self) -> Option<u8> {
        (self.delimiter != b' ').then_some(self.delimiter)
    }

    #[inline]
    fn second(&mut self) -> Option<Parsed> {
        self.second.take()
    }
}

impl Table {
    #[inline]
    fn parse_row(&mut self, row: &[u8], delimiter: u8, devices: &mut Devices) -> Result<Parsed, Malformed> {
        if is_nothing(row) || std::mem::take(&mut self.is_header_next) {
            return Ok(Parsed::Nothing);
        }
        self.row(row, delimiter, devices).or_else(|malformed| match &self.header {
            // Tables that were put together have a header each.
            Some(header) if self.is_header(row, delimiter, header) => Ok(Parsed::Nothing),
            _ => Err(malformed),
        })
    }

    fn is_header(&self, row: &[u8], delimiter: u8, header: &[u8]) -> bool {
        let fields = |row: &[u8], delimiter: u8| -> Vec<Vec<u8>> {
            row.split(|&byte| byte == delimiter).map(|field| field.trim_ascii().to_vec()).collect()
        };
        fields(row, delimiter) == fields(header, FIELD_END)
    }
}

/// Returns the whole number that `word` writes in any form with a decimal point, or `None` if it is not one.
pub(crate) fn whole(word: &[u8]) -> Option<u64> {
    numbers::value(word, Decimal::Point, 1, Below::Refuse).ok()
}

/// Returns the time that `word` writes in any form with a decimal point, in nanoseconds, or `None` if it is not one.
pub(crate) fn time_ns(word: &[u8], unit: TimeUnit) -> Option<u64> {
    numbers::value(word, Decimal::Point, unit.nanoseconds(), Below::Cut).ok()
}

/// Returns whether `line` is blank or a comment.
fn is_nothing(line: &[u8]) -> bool {
    line.trim_ascii().is_empty() || line.starts_with(b"#")
}

/// Number of rows of a head that are read: enough to find out the decimal mark.
pub(crate) const HEAD_ROWS: usize = 1000;

/// Returns the first rows of `head` without blank lines, comments and quotation marks: at most `rows_max`.
pub(crate) fn rows_of(head: &Head<'_>, delimiter: u8, rows_max: usize) -> Vec<Vec<Vec<u8>>> {
    let mut unquoter = Unquoter::new(delimiter);
    let mut rows = Vec::new();
    for line in head.lines() {
        let is_quoted = delimiter != b' ' && (unquoter.is_within_row() || line.contains(&b'"'));
        if !is_quoted && is_nothing(line) {
            continue;
        }
        let owned = |field: &[u8]| field.trim_ascii().to_vec();
        if is_quoted {
            rows.extend(unquoter.line(line).map(|row| row.split(|&byte| byte == FIELD_END).map(owned).collect()));
        } else if delimiter == b' ' {
            rows.push(line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).map(owned).collect());
        } else {
            rows.push(line.split(|&byte| byte == delimiter).map(owned).collect());
        }
        if rows.len() == rows_max {
            break;
        }
    }
    rows
}

/// Returns whether `row` is a header: a row in which no field is a number, and some field is not empty.
pub(crate) fn is_header(row: &[Vec<u8>]) -> bool {
    let is_date = |field: &[u8]| dates::looks_like_date(field);
    row.iter().any(|field| !field.is_empty()) && !row.iter().any(|field| numbers::is_number(field) || is_date(field))
}

/// Returns the columns that the header of `head` names, in the form of `--columns`, or `None` if there is no header
/// with the names of an offset and a size.
pub(crate) fn columns_named(head: &Head<'_>, delimiter: u8) -> Option<String> {
    let rows = rows_of(head, delimiter, 1);
    let header = rows.first().filter(|row| is_header(row))?;
    let roles: Vec<Option<Role>> = header.iter().map(|name| Role::of_name(name)).collect();
    let is_named = |role: Role| roles.iter().filter(|other| **other == Some(role)).count() == 1;
    let name = |role: &Option<Role>| role.filter(|role| *role != Role::Host).map_or("_", Role::name);
    (is_named(Role::Offset) && is_named(Role::Size)).then(|| roles.iter().map(name).collect::<Vec<_>>().join(","))
}

/// Returns whether the first `rows` rows of `head` are requests of a table with `layout`, or a header with names of its
/// columns and then such rows.
pub(crate) fn fits(layout: Layout, delimiter: u8, head: &Head<'_>, rows: usize) -> bool {
    // Formats of one kind of number need no more rows than those that have to fit.
    let rows_max = if layout.header == Header::Any { HEAD_ROWS } else { rows + 1 };
    let found = rows_of(head, delimiter, rows_max);
    let Ok((mut table, _)) = Table::with_rows(layout, delimiter, &found) else { return false };
    let mut devices = Devices::all();
    let body = &found[usize::from(std::mem::take(&mut table.is_header_next))..];
    let mut is_row = |row: &Vec<Vec<u8>>| table.parse_unquoted(&row.join(&FIELD_END), &mut devices).is_ok();
    !body.is_empty() && body.iter().take(rows).all(&mut is_row)
}
