//! Writes a table for spreadsheets and programs: a header `time,op,offset,size,device`, then one request a line. Times
//! are in seconds with nine decimals, offset and size in bytes. The operation is `read`, `write`, `write-fua`, `flush`
//! or `trim`. `--columns time,op,offset,size,device` reads the table back.

use std::io::{BufWriter, Write};

use imbrex_units::Operation;

use crate::request::{Request, TraceError};

use super::fields::{bytes_of, failed, time_ns};
use super::writer::{Output, Writer, WriterInfo, Written};

/// Entry of this format in the registry of writers.
pub(super) const WRITER: WriterInfo = WriterInfo {
    name: "csv",
    summary: "table with a header: time (s), op, offset (B), size (B), device",
    extension: "csv",
    open: |output, name| {
        let mut output = BufWriter::new(output);
        output.write_all(b"time,op,offset,size,device\n").map_err(|cause| failed(name, cause))?;
        Ok(Box::new(Csv { output, name: name.into(), written: Written::default() }))
    },
};

struct Csv {
    output: BufWriter<Output>,
    name: String,
    written: Written,
}

impl Writer for Csv {
    fn write(&mut self, request: &Request) -> Result<(), TraceError> {
        let word = match request.command.operation {
            Operation::Read => "read",
            Operation::Write if request.command.fua => "write-fua",
            Operation::Write => "write",
            Operation::Flush => "flush",
            Operation::Trim => "trim",
        };
        let time_ns = time_ns(request, &self.name)?;
        let (seconds, below) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
        let (device, (offset, bytes)) = (request.device, bytes_of(request, &self.name)?);
        writeln!(self.output, "{seconds}.{below:09},{word},{offset},{bytes},{device}")
            .map_err(|cause| failed(&self.name, cause))?;
        self.written.requests += 1;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Written, TraceError> {
        self.output.flush().map_err(|cause| failed(&self.name, cause))?;
        Ok(self.written)
    }
}
