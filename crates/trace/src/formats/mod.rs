//! Readers of trace formats: one file each, and the registry of them all.
//!
//! Invariants:
//! 1. A format is recognised only by the contents: the name of a file is ignored.
//! 2. The recognition with the highest confidence wins; among equals, the first of [`all`]. A trace that no format
//!    recognises is an error, which says what the trace looks like and what to do.

mod blkparse;
mod blkreplay;
pub mod blktrace;
mod cloud;
mod cloudphysics_csv;
mod csv;
mod disksim;
mod fio_iolog;
mod fio_log;
mod format;
mod headed;
pub(crate) mod imbrex;
mod msps_etw;
mod msr;
mod netapp;
mod refused;
mod spc;
mod systor17;
#[cfg(test)]
pub(crate) mod testing;
mod vscsi;
mod wpa;

pub use format::{Confidence, Format, Head, OpenResult};
pub(crate) use vscsi::operation_of as scsi_operation;

use crate::input::{Input, Unpacked};
use crate::options::TraceOptions;
use crate::request::{Source, TraceError};
use imbrex_units::names::suggestion;

/// Returns all formats that can be read. Among formats that recognise a trace with equal confidence, the first of this
/// list is chosen.
pub fn all() -> &'static [&'static Format] {
    &[
        &imbrex::FORMAT,
        &blktrace::FORMAT,
        &vscsi::VSCSI2,
        &vscsi::VSCSI1,
        &cloudphysics_csv::FORMAT,
        &blkreplay::FORMAT,
        &msr::FORMAT,
        &spc::FORMAT,
        &netapp::FORMAT,
        &msps_etw::FORMAT,
        &wpa::FORMAT,
        &systor17::FORMAT,
        &cloud::ALIBABA,
        &fio_iolog::FORMAT,
        &fio_log::FORMAT,
        &blkparse::FORMAT,
        &cloud::TENCENT,
        &disksim::FORMAT,
        &csv::FORMAT,
    ]
}

/// Returns the format with exactly this name, such as `msr`, or `None` if there is none.
pub fn by_name(name: &str) -> Option<&'static Format> {
    all().iter().copied().find(|format| format.name == name)
}

/// An opened trace: its format, and the source of its requests.
pub struct Opened {
    /// Format in which the trace is read.
    pub format: &'static Format,
    /// Source of the trace's requests, which reads and decompresses the trace as it goes.
    pub source: Box<dyn Source>,
}

/// Opens `input` in the format that `options` name. If they name none, the format is `csv` if they name columns, else
/// the format that recognises the beginning of the trace.
///
/// # Errors
///
/// If the input cannot be read or decompressed, if no format has the name given, if no format recognises the trace, if
/// an option does not apply to the format, or if the format cannot open the trace. An error of an option has `is_usage`
/// set.
pub fn open(input: Input, options: &TraceOptions) -> Result<Opened, TraceError> {
    let unpacked = input.unpack()?;
    let format = choose(&unpacked, options)?;
    applies(format, options).map_err(|reason| TraceError::usage(unpacked.name.clone(), reason))?;
    let source = (format.open)(unpacked, options)?;
    Ok(Opened { format, source })
}

fn choose(unpacked: &Unpacked, options: &TraceOptions) -> Result<&'static Format, TraceError> {
    let refuse = |reason: String| TraceError::new(unpacked.name.clone(), reason);
    if let Some(name) = &options.format {
        return by_name(name).ok_or_else(|| {
            let meant = suggestion(name, all().iter().map(|format| format.name));
            TraceError::usage(&unpacked.name, format!("there is no format «{name}»{meant}; there are {}", names()))
        });
    }
    if options.columns.is_some() {
        return Ok(&csv::FORMAT);
    }
    let head = Head::of(unpacked);
    recognise(&head).ok_or_else(|| refuse(refused::reason(&head, &names())))
}

/// Checks that the format honours every option that the user gave.
fn applies(format: &Format, options: &TraceOptions) -> Result<(), String> {
    match options.given().find(|option| !format.options.contains(option)) {
        None => Ok(()),
        Some(option) => {
            let takers = all().iter().filter(|format| format.options.contains(&option)).map(|format| format.name);
            let takers = takers.collect::<Vec<_>>().join(", ");
            Err(format!("--{option} does not apply to the format {}: it is for {takers}", format.name))
        }
    }
}

fn names() -> String {
    all().iter().map(|format| format.name).collect::<Vec<_>>().join(", ")
}

/// Returns the format that recognises a trace with this head (its first bytes) with the highest confidence; among
/// equals, the first of [`all`]. Returns `None` if no format recognises the trace.
pub fn recognise(head: &Head<'_>) -> Option<&'static Format> {
    let mut best = (Confidence::No, None);
    for &format in all() {
        let confidence = (format.detect)(head);
        if confidence > best.0 {
            best = (confidence, Some(format));
        }
    }
    best.1
}
