//! Trace formats: one file each, and the registry of all.
//!
//! Invariants:
//! 1. A format is recognised by the contents alone: the name of a file decides nothing.
//! 2. The surest recognition wins; among equals the first of [`all`]. What none recognises is an error that says what
//!    it looks like and what to do.

mod blkparse;
mod blkreplay;
pub mod blktrace;
mod cloud;
mod cloudphysics_csv;
mod csv;
mod disksim;
mod fio_iolog;
pub(crate) mod imbrex;
mod msr;
mod refused;
mod spc;
mod systor17;
#[cfg(test)]
pub(crate) mod testing;
mod vscsi;

use crate::input::{Input, Unpacked};
use crate::options::Options;
use crate::request::{Source, TraceError};

/// A format of the registry.
#[derive(Debug)]
pub struct Format {
    /// The word for `--format`.
    pub name: &'static str,
    /// One line: what it is and who writes it.
    pub summary: &'static str,
    /// How sure one can be that a trace that begins so is in this format.
    pub detect: fn(&Head<'_>) -> Confidence,
    /// The source of a trace in this format.
    pub open: fn(Unpacked, &Options) -> OpenResult,
}

/// The source a format makes of a trace, or why it cannot.
pub type OpenResult = Result<Box<dyn Source>, TraceError>;

/// How sure a recognition is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Confidence {
    /// It is something else.
    No,
    /// It parses as this format, as it might as another.
    Maybe,
    /// It bears the format's mark.
    Yes,
}

/// The beginning of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// Its bytes, unpacked.
    pub bytes: &'a [u8],
    /// Whether that is all of it.
    pub whole: bool,
}

impl<'a> Head<'a> {
    /// The head of `input`.
    pub fn of(input: &'a Unpacked) -> Head<'a> {
        Head { bytes: &input.head, whole: input.whole }
    }

    /// Its lines without their ends, byte order mark and last partial line left off.
    pub fn lines(&self) -> impl Iterator<Item = &'a [u8]> {
        let text = self.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(self.bytes);
        let last = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let text = if self.whole { text } else { &text[..last] };
        text.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// Its lines that are not blank.
    pub fn full_lines(&self) -> impl Iterator<Item = &'a [u8]> {
        self.lines().filter(|line| !line.trim_ascii().is_empty())
    }

    /// Its first line that is not blank; empty where there is none.
    pub fn first_line(&self) -> &'a [u8] {
        self.full_lines().next().unwrap_or(&[])
    }
}

/// Every format.
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
        &systor17::FORMAT,
        &cloud::ALIBABA,
        &fio_iolog::FORMAT,
        &blkparse::FORMAT,
        &cloud::TENCENT,
        &disksim::FORMAT,
        &csv::FORMAT,
    ]
}

/// The format called `name`.
pub fn by_name(name: &str) -> Option<&'static Format> {
    all().iter().copied().find(|format| format.name == name)
}

/// A trace that was opened.
pub struct Opened {
    /// The format it is in.
    pub format: &'static Format,
    /// Its requests.
    pub source: Box<dyn Source>,
}

/// Opens `input` in the format the options name, `csv` where they name columns, else the one its contents show.
pub fn open(input: Input, options: &Options) -> Result<Opened, TraceError> {
    let unpacked = input.unpack()?;
    let format = choose(&unpacked, options)?;
    let source = (format.open)(unpacked, options)?;
    Ok(Opened { format, source })
}

fn choose(unpacked: &Unpacked, options: &Options) -> Result<&'static Format, TraceError> {
    let refuse = |reason: String| TraceError { place: unpacked.name.clone(), reason, cause: None };
    if let Some(name) = &options.format {
        let names = || all().iter().map(|format| format.name).collect::<Vec<_>>().join(", ");
        return by_name(name).ok_or_else(|| refuse(format!("there is no format «{name}»; there are {}", names())));
    }
    if options.columns.is_some() {
        return Ok(&csv::FORMAT);
    }
    let head = Head::of(unpacked);
    recognise(&head).ok_or_else(|| refuse(refused::reason(&head)))
}

/// The format a trace that begins so is in.
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
