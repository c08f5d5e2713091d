//! What the checker finds: a broken promise of a layer, with the plan and step that broke it.

use std::fmt;

use imbrex_disk::integrity::Contents;
use imbrex_disk::{Lba, Pba};

use crate::plan::{Medium, Step};
use crate::violation::Violation;

/// The number of a write as the checker gives it: which plan, and which of its steps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WriteNumber(pub u64);

const STEP_BITS: u32 = 24;

impl WriteNumber {
    /// Step `step` of plan `plan` (both counted from 1 and 0).
    pub fn new(plan: u64, step: usize) -> WriteNumber {
        WriteNumber(plan << STEP_BITS | step as u64 & ((1 << STEP_BITS) - 1))
    }
}

impl fmt::Display for WriteNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {} of plan {}", self.0 & ((1 << STEP_BITS) - 1), self.0 >> STEP_BITS)
    }
}

/// A broken promise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A step reaches past the medium or names logical sectors past the capacity.
    OutOfBounds,
    /// A step uses flash on a drive without any.
    NoFlash,
    /// A data read of a sector that a write destroyed.
    ReadDestroyed {
        /// Which sector.
        pba: Pba,
        /// By which write.
        by: WriteNumber,
    },
    /// A data read, staged under `lba`, of a sector that holds something else.
    ReadWrong {
        /// What it was read as.
        lba: Lba,
        /// Where.
        pba: Pba,
        /// What is there.
        found: Contents,
    },
    /// A host read did not bring the newest version (0 is zeros).
    StaleRead {
        /// Which sector.
        lba: Lba,
        /// The newest version.
        expected: u64,
        /// What was staged.
        found: u64,
    },
    /// After the plan, the place that the layer names does not hold the newest version.
    Lost {
        /// Which sector.
        lba: Lba,
        /// The newest version.
        expected: u64,
        /// Where the layer would read it.
        at: Option<(Medium, Pba)>,
        /// What is there.
        found: Contents,
    },
    /// At a barrier, neither the old copy nor a new one is intact.
    Endangered {
        /// Which sector.
        lba: Lba,
        /// Where its copy was overwritten or destroyed.
        at: (Medium, Pba),
    },
    /// `lookup` does not cover what it was asked for, in order and once.
    BadLookup {
        /// Where it goes wrong.
        lba: Lba,
    },
    /// The layer's own invariants.
    Broken(Violation),
}

/// A fault, and where in which plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckError {
    /// Number of the plan, counted from 1.
    pub plan: u64,
    /// The step, if one is to blame.
    pub step: Option<(usize, Step)>,
    /// What is broken.
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

/// A place as messages name it.
fn place(at: Option<(Medium, Pba)>) -> String {
    match at {
        Some((Medium::Disk, pba)) => pba.to_string(),
        Some((Medium::Flash, pba)) => format!("flash {pba}"),
        None => "nowhere".into(),
    }
}

/// What a place holds, as messages name it.
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
