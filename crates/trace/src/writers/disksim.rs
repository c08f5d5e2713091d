//! Writes the ASCII traces of DiskSim: `time_ms device block count flags`. The lowest bit of the flags is 1 for a read.
//! Times have six decimals, so every nanosecond is kept. The format has only reads and writes.

use std::io::{BufWriter, Write};

use imbrex_units::Direction;

use crate::options::TimeUnit;
use crate::request::{Request, TraceError};

use super::fields::{failed, time_ns};
use super::writer::{Output, Writer, WriterInfo, Written};

/// Entry of this format in the registry of writers.
pub(super) const WRITER: WriterInfo = WriterInfo {
    name: "disksim",
    summary: "ASCII traces of DiskSim",
    extension: "trace",
    open: |output, name| {
        Ok(Box::new(DiskSim { output: BufWriter::new(output), name: name.into(), written: Written::default() }))
    },
};

struct DiskSim {
    output: BufWriter<Output>,
    name: String,
    written: Written,
}

impl Writer for DiskSim {
    fn write(&mut self, request: &Request) -> Result<(), TraceError> {
        let command = request.command;
        let flags = match self.written.direction(&command) {
            Some(Direction::Read) => 1,
            Some(Direction::Write) => 0,
            None => return Ok(()),
        };
        let time_ns = time_ns(request, &self.name)?;
        let unit_ns = TimeUnit::Milliseconds.nanoseconds();
        let (millis, nanos) = (time_ns / unit_ns, time_ns % unit_ns);
        let (device, lba, sectors) = (request.device, command.lba.0, command.sectors);
        writeln!(self.output, "{millis}.{nanos:06} {device} {lba} {sectors} {flags:x}")
            .map_err(|cause| failed(&self.name, cause))?;
        self.written.requests += 1;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Written, TraceError> {
        self.output.flush().map_err(|cause| failed(&self.name, cause))?;
        Ok(self.written)
    }
}
