//! Faults that the checker finds: a broken promise of a layer, with the plan and step that broke it.

use std::fmt;

use imbrex_disk::integrity::Contents;
use imbrex_disk::{Lba, Pba};

use crate::plan::{Medium, Step};
use crate::violation::Violation;

/// The number of a write in the checker: the number of its plan and of its step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WriteNumber(pub u64);

const STEP_BITS: u32 = 24;

impl WriteNumber {
    /// Returns the number for step `step` (counted from 0) of plan `plan` (counted from 1).
    pub fn new(plan: u64, step: usize) -> WriteNumber {
        WriteNumber(plan << STEP_BITS | step as u64 & ((1 << STEP_BITS) - 1))
    }
}

impl fmt::Display for WriteNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {} of plan {}", self.0 & ((1 << STEP_BITS) - 1), self.0 >> STEP_BITS)
    }
}

/// A broken promise of a layer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A step reaches past the medium or names logical sectors past the capacity.
    OutOfBounds,
    /// A step uses flash on a drive without any.
    NoFlash,
    /// A data read finds a sector that a write destroyed.
    ReadDestroyed {
        /// The sector.
        pba: Pba,
        /// The write that destroyed the sector.
        by: WriteNumber,
    },
    /// A data read, staged under `lba`, finds a sector with other contents.
    ReadWrong {
        /// The LBA under which the sector was staged.
        lba: Lba,
        /// The sector that was read.
        pba: Pba,
        /// Contents of the sector.
        found: Contents,
    },
    /// A host read did not return the newest version (version 0 is zeros).
    StaleRead {
        /// The sector.
        lba: Lba,
        /// The newest version.
        expected: u64,
        /// The staged version.
        found: u64,
    },
    /// After the plan, the place to which the layer's map points does not hold the newest version.
    Lost {
        /// The sector.
        lba: Lba,
        /// The newest version.
        expected: u64,
        /// The place to which the layer's map points.
        at: Option<(Medium, Pba)>,
        /// Contents of that place.
        found: Contents,
    },
    /// At a barrier, neither the old copy of a sector nor a new one is intact.
    Endangered {
        /// The sector.
        lba: Lba,
        /// The place where the sector's copy was overwritten or destroyed.
        at: (Medium, Pba),
    },
    /// `lookup` does not return exactly the requested sectors, in order and once each.
    BadLookup {
        /// First sector for which `lookup` is wrong.
        lba: Lba,
    },
    /// One of the layer's own invariants does not hold.
    Broken(Violation),
}

/// A fault, with the number of the plan and the step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckError {
    /// Number of the plan, counted from 1.
    pub plan: u64,
    /// The step that caused the fault, with its index in the plan, counted from 0; `None` if no single step did.
    pub step: Option<(usize, Step)>,
    /// The fault.
    pub fault: Fault,
}

impl std::error::Error for CheckError {}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "plan {}", self.plan)?;
        if let Some((index, step)) = &self.step {
            write!(f, ", step {index} ({step:?})")?;
        }
        write!(f, ": {}", self.fault)
    }
}

/// Returns the name of a place for messages.
fn place(at: Option<(Medium, Pba)>) -> String {
    match at {
        Some((Medium::Disk, pba)) => pba.to_string(),
        Some((Medium::Flash, pba)) => format!("flash {pba}"),
        None => "nowhere".into(),
    }
}

/// Returns a description of a place's contents for messages.
fn contents(contents: &Contents) -> String {
    match contents {
        Contents::Never => "never written".into(),
        Contents::Holds { lba, version } => format!("holds version {version} of {lba}"),
        Contents::Other => "holds no host data".into(),
        Contents::Destroyed { by } => format!("destroyed by {}", WriteNumber(*by)),
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::OutOfBounds => write!(f, "reaches past the medium or the capacity"),
            Fault::NoFlash => write!(f, "uses flash, which this drive does not have"),
            Fault::ReadDestroyed { pba, by } => write!(f, "reads {pba}, which {by} destroyed"),
            Fault::ReadWrong { lba, pba, found } => write!(f, "reads {lba} from {pba}, which {}", contents(found)),
            Fault::StaleRead { lba, expected, found } => {
                write!(f, "a host read of {lba} gives version {found}, not {expected}")
            }
            Fault::Lost { lba, expected, at, found } => {
                let (at, found) = (place(*at), contents(found));
                write!(f, "version {expected} of {lba} is lost: the layer points to {at}, which {found}")
            }
            Fault::Endangered { lba, at } => {
                let at = place(Some(*at));
                write!(f, "a barrier is reached while {lba}, overwritten or destroyed at {at}, is intact nowhere")
            }
            Fault::BadLookup { lba } => write!(f, "lookup leaves out, repeats or overruns {lba}"),
            Fault::Broken(violation) => violation.fmt(f),
        }
    }
}
