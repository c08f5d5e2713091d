//! Writes the CSV of the MSR Cambridge traces. Times are truncated to ticks of 100 ns, counted from a fixed date. The
//! host is `imbrex`, the disk number is the number of the device, and the response time is 0. The format has only reads
//! and writes.

use std::io::{BufWriter, Write};

use imbrex_units::Direction;

use crate::options::TimeUnit;
use crate::request::{Request, TraceError};

use super::fields::{bytes_of, failed, time_ns};
use super::writer::{Output, Writer, WriterInfo, Written};

/// Entry of this format in the registry of writers.
pub(super) const WRITER: WriterInfo = WriterInfo {
    name: "msr",
    summary: "CSV of the MSR Cambridge traces",
    extension: "csv",
    open: |output, name| {
        Ok(Box::new(Msr { output: BufWriter::new(output), name: name.into(), written: Written::default() }))
    },
};

/// 1 January 2007 in ticks of 100 ns since 1601. The MSR traces were recorded in that year.
const EPOCH_TICKS: u64 = 128_120_832_000_000_000;

struct Msr {
    output: BufWriter<Output>,
    name: String,
    written: Written,
}

impl Writer for Msr {
    fn write(&mut self, request: &Request) -> Result<(), TraceError> {
        let command = request.command;
        let word = match self.written.direction(&command) {
            Some(Direction::Read) => "Read",
            Some(Direction::Write) => "Write",
            None => return Ok(()),
        };
        let time_ns = time_ns(request, &self.name)?;
        if !time_ns.is_multiple_of(TimeUnit::Ticks.nanoseconds()) {
            self.written.lose("times cut to 100 ns");
        }
        let ticks = EPOCH_TICKS + time_ns / TimeUnit::Ticks.nanoseconds();
        let (device, (offset, bytes)) = (request.device, bytes_of(request, &self.name)?);
        writeln!(self.output, "{ticks},imbrex,{device},{word},{offset},{bytes},0")
            .map_err(|cause| failed(&self.name, cause))?;
        self.written.requests += 1;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Written, TraceError> {
        self.output.flush().map_err(|cause| failed(&self.name, cause))?;
        Ok(self.written)
    }
}
