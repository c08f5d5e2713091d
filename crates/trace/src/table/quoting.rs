//! Quoted fields of a table (RFC 4180), with the parser of the crate `csv`.
//!
//! A row with quotation marks is turned into a row without: [`FIELD_END`] ends each of its fields instead of the
//! delimiter, so that fields may contain the delimiter. Rows without quotation marks do not come here.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};

/// End of each field of an unquoted row: the unit separator of ASCII. No field may contain it.
pub(crate) const FIELD_END: u8 = 0x1f;

/// Turns quoted rows into unquoted ones.
pub(crate) struct Unquoter {
    reader: Reader,
    fields: Vec<u8>,
    ends: Vec<usize>,
    written: usize,
    ended: usize,
    row: Vec<u8>,
}

impl Unquoter {
    /// Returns an unquoter for rows with this `delimiter`.
    pub(crate) fn new(delimiter: u8) -> Unquoter {
        let reader = ReaderBuilder::new().delimiter(delimiter).terminator(Terminator::Any(b'\n')).build();
        Unquoter { reader, fields: vec![0; 256], ends: vec![0; 16], written: 0, ended: 0, row: Vec::new() }
    }

    /// Reads a line, without its line ending. Returns the row that ends with this line. Returns `None` if the line ends
    /// within a quoted field: the row goes on in the next line.
    pub(crate) fn line(&mut self, line: &[u8]) -> Option<&[u8]> {
        self.feed(line);
        if !self.feed(b"\n") {
            return None;
        }
        self.row.clear();
        let mut start = 0;
        for &end in &self.ends[..self.ended] {
            self.row.extend_from_slice(&self.fields[start..end]);
            self.row.push(FIELD_END);
            start = end;
        }
        self.row.pop();
        (self.written, self.ended) = (0, 0);
        Some(&self.row)
    }

    /// Returns whether a row has begun and not ended.
    pub(crate) fn is_within_row(&self) -> bool {
        self.written > 0 || self.ended > 0
    }

    /// Passes `input` to the parser. Returns whether a row ended.
    fn feed(&mut self, mut input: &[u8]) -> bool {
        while !input.is_empty() {
            let (result, read, written, ended) =
                self.reader.read_record(input, &mut self.fields[self.written..], &mut self.ends[self.ended..]);
            input = &input[read..];
            self.written += written;
            self.ended += ended;
            match result {
                ReadRecordResult::Record => return true,
                ReadRecordResult::OutputFull => self.fields.resize(2 * self.fields.len(), 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(2 * self.ends.len(), 0),
                ReadRecordResult::InputEmpty | ReadRecordResult::End => {}
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    //! Goal: quoted rows become unquoted ones. Method: rows worked out by hand.

    use super::*;

    fn rows(text: &str) -> Vec<String> {
        let mut unquoter = Unquoter::new(b',');
        let rows = text.split('\n').filter_map(|line| Some(unquoter.line(line.as_bytes())?.to_vec()));
        rows.map(|row| String::from_utf8(row).expect("text").replace('\x1f', "|")).collect()
    }

    #[test]
    fn rows_lose_their_quotation_marks() {
        assert_eq!(rows(r#""0","R","4,096",512"#), ["0|R|4,096|512"]);
        assert_eq!(rows("1,\"a \"\"b\"\" c\",\"\""), ["1|a \"b\" c|"]);
        assert_eq!(rows("1,\"two\nlines\",2\n3,x,4"), ["1|two\nlines|2", "3|x|4"]);
        assert_eq!(rows("1,5\" disk,2"), ["1|5\" disk|2"], "a mark within a field is text");
        assert_eq!(rows(&format!("\"{}\",2", "x".repeat(2000))), [format!("{}|2", "x".repeat(2000))]);
        assert_eq!(rows(&"7,".repeat(100)), ["7|".repeat(100)]);
        assert_eq!(rows("1,\"a\rb\",c\rd"), ["1|a\rb|c\rd"]);
    }

    #[test]
    fn a_row_that_does_not_end_is_noticed() {
        let mut unquoter = Unquoter::new(b',');
        assert!(unquoter.line(b"1,\"open").is_none() && unquoter.is_within_row());
        assert!(unquoter.line(b"closed\",2").is_some() && !unquoter.is_within_row());
    }
}
