//! Faults that the checker finds: a broken promise of a layer, with the plan and step that broke it.

use std::fmt;

use imbrex_disk::integrity::Contents;
use imbrex_disk::{Lba, Pba};

use crate::plan::{Medium, Step};
use crate::violation::Violation;

/// The number by which the checker identifies a write: the number of its plan (counted from 1) in the upper 40 bits,
/// and the index of its step in the plan (counted from 0) in the lower 24 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WriteNumber(pub u64);

const STEP_BITS: u32 = 24;

impl WriteNumber {
    /// Returns the number of the write that is step `step` (counted from 0) of plan `plan` (counted from 1). Only the
    /// lower 24 bits of `step` are kept.
    pub fn new(plan: u64, step: usize) -> WriteNumber {
        WriteNumber(plan << STEP_BITS | step as u64 & ((1 << STEP_BITS) - 1))
    }
}

impl fmt::Display for WriteNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {} of plan {}", self.0 & ((1 << STEP_BITS) - 1), self.0 >> STEP_BITS)
    }
}

/// A fault in a plan of a layer, found by the checker. Versions are the numbers of the host's write commands, counted
/// from 1; version 0 is zeros.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A step accesses sectors past the end of the disk, or its logical sectors lie past the layer's capacity.
    OutOfBounds,
    /// A step accesses flash, but the drive has no flash.
    NoFlash,
    /// A step that reads data finds a physical sector that a write next to it destroyed.
    ReadDestroyed {
        /// The first destroyed physical sector that the step reads.
        pba: Pba,
        /// Number of the write (its plan and step) that destroyed this sector.
        by: WriteNumber,
    },
    /// A step that reads data for the logical sector `lba` finds the contents of another logical sector, or no host
    /// data.
    ReadWrong {
        /// The logical sector that the layer expects there.
        lba: Lba,
        /// The physical sector that was read.
        pba: Pba,
        /// The contents of that physical sector.
        found: Contents,
    },
    /// A read command of the host did not return the newest version of a sector.
    StaleRead {
        /// The logical sector that the host read.
        lba: Lba,
        /// The newest version of the sector: the number of the host's write command that wrote it, counted from 1; 0
        /// for zeros.
        expected: u64,
        /// The version that the host read: the number of a write command, counted from 1; 0 for zeros, or if the plan
        /// read nothing for this sector.
        found: u64,
    },
    /// After the plan, the place to which the layer's map points does not hold the newest version of a logical sector.
    Lost {
        /// The logical sector whose newest version is lost.
        lba: Lba,
        /// The newest version of the sector: the number of the host's write command that wrote it, counted from 1; 0
        /// for zeros.
        expected: u64,
        /// The place to which the layer's map points; `None` if the map says that the sector is trimmed.
        at: Option<(Medium, Pba)>,
        /// The contents of that place; [`Contents::Never`] if there is none.
        found: Contents,
    },
    /// At a barrier, no copy of the newest version of a logical sector is intact where recovery could find it, so a
    /// power cut would lose the sector.
    Endangered {
        /// The logical sector that a power cut would lose.
        lba: Lba,
        /// The place of the copy that was overwritten or destroyed since the last barrier.
        at: (Medium, Pba),
    },
    /// [`crate::Layer::lookup`] did not return exactly the requested sectors, in order and once each.
    BadLookup {
        /// The first logical sector that it leaves out or returns in the wrong place of the order.
        lba: Lba,
    },
    /// The layer's self-check found that one of the layer's invariants does not hold.
    Broken(Violation),
}

/// The error of the checker: a fault, with the plan and the step at which it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckError {
    /// Number of the plan among those that the checker was given, counted from 1.
    pub plan: u64,
    /// The step at which the checker found the fault, with its index (counted from 0) in the layer's plan. The cause
    /// may be an earlier step: a destroyed sector is found when it is read, and a lost newest copy at the next barrier
    /// if the checker was made with `power_safe`. `None` if the fault was found after the last step of the plan, as are
    /// losses that neither a read nor a barrier showed.
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
