//! Writes fio's iolog, version 3: `time_us file action [offset length]`. Times are truncated to microseconds. A device
//! becomes a file called `deviceN`, which is added and opened at its first use, and closed at the end.

use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};

use imbrex_units::Operation;

use crate::options::TimeUnit;
use crate::request::{Request, TraceError};

use super::fields::{bytes_of, failed, time_ns};
use super::writer::{Output, Writer, WriterInfo, Written};

/// Entry of this format in the registry of writers.
pub(super) const WRITER: WriterInfo = WriterInfo {
    name: "fio-iolog",
    summary: "iolog of fio, version 3, for --read_iolog",
    extension: "iolog",
    open: |output, name| {
        let mut output = BufWriter::new(output);
        output.write_all(b"fio version 3 iolog\n").map_err(|cause| failed(name, cause))?;
        let (devices, time_us, written) = (BTreeSet::new(), 0, Written::default());
        Ok(Box::new(IoLog { output, name: name.into(), devices, time_us, written }))
    },
};

struct IoLog {
    output: BufWriter<Output>,
    name: String,
    devices: BTreeSet<u32>,
    /// Latest time written so far, in microseconds.
    time_us: u64,
    written: Written,
}

impl IoLog {
    fn line(&mut self, time_us: u64, device: u32, action: &str, (offset, bytes): (u64, u64)) -> io::Result<()> {
        if self.devices.insert(device) {
            writeln!(self.output, "{time_us} device{device} add\n{time_us} device{device} open")?;
        }
        writeln!(self.output, "{time_us} device{device} {action} {offset} {bytes}")
    }

    fn close(&mut self) -> io::Result<()> {
        for device in &self.devices {
            writeln!(self.output, "{} device{device} close", self.time_us)?;
        }
        self.output.flush()
    }
}

impl Writer for IoLog {
    fn write(&mut self, request: &Request) -> Result<(), TraceError> {
        let action = match request.command.operation {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Flush => "sync",
            Operation::Trim => "trim",
        };
        if request.command.fua {
            self.written.lose("FUA not written");
        }
        let time_ns = time_ns(request, &self.name)?;
        if !time_ns.is_multiple_of(TimeUnit::Microseconds.nanoseconds()) {
            self.written.lose("times cut to 1 µs");
        }
        let time_us = time_ns / TimeUnit::Microseconds.nanoseconds();
        self.time_us = self.time_us.max(time_us);
        let span = bytes_of(request, &self.name)?;
        self.line(time_us, request.device, action, span).map_err(|cause| failed(&self.name, cause))?;
        self.written.requests += 1;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Written, TraceError> {
        self.close().map_err(|cause| failed(&self.name, cause))?;
        Ok(self.written)
    }
}
