//! The reader of every binary format whose records all have one length.
//!
//! Invariants:
//! 1. A record is parsed in place in a large block.
//! 2. Bytes after the last whole record are malformed: they are reported with their offset, never silently dropped.

use std::io::Read;

use imbrex_units::SimTime;

use crate::admission::{Admission, Devices, Malformed, Parsed};
use crate::facts::Facts;
use crate::input::{Unpacked, unpacking_failed};
use crate::options::TraceOptions;
use crate::request::{Request, Source, TraceError};

/// Number of records read at once.
const BLOCK_RECORDS: usize = 4096;

/// The layout of a binary format.
pub(crate) trait RecordFormat: Send + 'static {
    /// Length of every record in bytes.
    const BYTES: usize;

    /// Parses `record`, which has [`Self::BYTES`] bytes.
    fn parse(&mut self, record: &[u8], devices: &mut Devices) -> Result<Parsed, Malformed>;
}

/// The source of requests for a trace in a binary format.
pub(crate) struct RecordReader<F> {
    reader: Box<dyn Read + Send>,
    name: String,
    format: F,
    admission: Admission,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the stream before the start of the buffer.
    offset: u64,
    at_end: bool,
    length_bytes: Option<u64>,
}

impl<F: RecordFormat> RecordReader<F> {
    /// Returns a source that reads `input` as `format`.
    pub(crate) fn open(input: Unpacked, options: &TraceOptions, format: F) -> Result<Box<dyn Source>, TraceError> {
        Ok(Box::new(RecordReader {
            length_bytes: input.length_bytes.filter(|_| options.device.is_none()),
            reader: input.contents.into_stream(),
            admission: Admission::new(input.name.clone(), options),
            name: input.name,
            format,
            buffer: vec![0; BLOCK_RECORDS * F::BYTES],
            start: 0,
            end: 0,
            offset: 0,
            at_end: false,
        }))
    }

    /// Refills the buffer once all its whole records are parsed. A partial record left by a short read moves to the
    /// front.
    #[cold]
    fn refill(&mut self) -> Result<(), TraceError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.offset += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        while self.end < self.buffer.len() {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.at_end = true;
                    break;
                }
                Ok(count) => self.end += count,
                Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(unpacking_failed(&self.name, self.offset + self.end as u64, cause)),
            }
        }
        Ok(())
    }

    /// Ends the trace. A partial record at the end of the file is malformed.
    fn finish(&mut self) -> Result<Option<Request>, TraceError> {
        let left = self.end - self.start;
        if left > 0 {
            let place = format!("byte {}", self.offset + self.start as u64);
            let reason = format!("the file ends {left} bytes into a record of {}: it is cut short", F::BYTES);
            self.start = self.end;
            self.admission.malformed(&place, Malformed::of(reason))?;
        }
        self.admission.finish()
    }
}

impl<F: RecordFormat> Source for RecordReader<F> {
    fn next(&mut self, _now: SimTime) -> Result<Option<Request>, TraceError> {
        loop {
            if self.end - self.start < F::BYTES {
                if !self.at_end {
                    self.refill()?;
                }
                if self.end - self.start < F::BYTES {
                    return self.finish();
                }
            }
            let record = &self.buffer[self.start..self.start + F::BYTES];
            let parsed = self.format.parse(record, &mut self.admission.devices);
            self.start += F::BYTES;
            match parsed {
                Ok(parsed) => {
                    if let Some(request) = self.admission.admit(parsed) {
                        return Ok(Some(request));
                    }
                }
                Err(malformed) => {
                    let place = format!("byte {}", self.offset + (self.start - F::BYTES) as u64);
                    self.admission.malformed(&place, malformed)?;
                }
            }
        }
    }

    fn expected_requests(&self) -> Option<u64> {
        self.length_bytes.map(|bytes| bytes / F::BYTES as u64)
    }

    fn facts(&self) -> Facts {
        self.admission.facts()
    }
}
