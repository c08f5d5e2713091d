//! The description of a built-in workload: its name, its recipe, and the published figures that it reproduces.

use super::error::WorkloadError;
use super::generator::Generator;
use super::parse;
use super::spec::Arrival;
use crate::request::Source;

/// A built-in workload.
pub struct BuiltIn {
    /// Name of the workload.
    pub name: &'static str,
    /// One line that describes the workload.
    pub summary: &'static str,
    /// Whether the workload is a stand-in: it replaces a trace that is not available, and reproduces the trace's
    /// published figures.
    pub is_stand_in: bool,
    /// Note that is printed at every use of the workload.
    pub note: Option<&'static str>,
    /// One past the last sector that the workload may access on any drive. `None` if the workload adapts to the drive.
    /// Otherwise a drive must be adapted to the workload, as to a trace.
    pub reach_sectors: Option<u64>,
    /// Returns the figures that the workload reproduces, if it was made to reproduce any.
    pub targets: Option<fn() -> Vec<TargetFigure>>,
    /// Description of how the requests are generated.
    pub recipe: Recipe,
}

/// A figure that a workload reproduces.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TargetFigure {
    /// Name of the figure in [`TraceInfo`](crate::statistics::TraceInfo); dots separate the levels.
    pub name: &'static str,
    /// Value of the figure that the workload reproduces, in the unit of the figure.
    pub value: f64,
}

impl TargetFigure {
    pub(super) const fn new(name: &'static str, value: f64) -> TargetFigure {
        TargetFigure { name, value }
    }
}

/// A function that generates the requests of a program. It takes the size of the drive in sectors of 512 bytes, and a
/// seed.
pub(super) type Build = fn(device_sectors: u64, seed: u64) -> Result<Box<dyn Source>, WorkloadError>;

/// How the requests of a built-in workload are generated.
#[derive(Clone, Copy)]
pub enum Recipe {
    /// By a description in fio's words, as users write them.
    Words(&'static str),
    /// By a Rust program written for this workload.
    Program {
        /// Function that generates the requests.
        build: Build,
        /// How the requests arrive at the drive.
        arrival: Arrival,
    },
}

/// A workload that is ready to run.
pub struct Opened {
    /// Source of the requests.
    pub source: Box<dyn Source>,
    /// How the requests arrive unless the user chooses otherwise.
    pub arrival: Arrival,
}

/// Seed of a program if none is given; equal to the default of the word `seed`.
const SEED_DEFAULT: u64 = 1;

impl BuiltIn {
    /// Opens the workload on a drive of `device_sectors` sectors of 512 bytes. `seed` replaces the workload's own seed.
    ///
    /// # Errors
    ///
    /// If the workload does not fit on the drive.
    pub fn open(&self, device_sectors: u64, seed: Option<u64>) -> Result<Opened, WorkloadError> {
        match self.recipe {
            Recipe::Words(text) => {
                let spec = parse::from_words(text)?;
                let spec = match seed {
                    Some(seed) => spec.with_seed(seed),
                    None => spec,
                };
                let arrival = spec.arrival();
                Ok(Opened { source: Box::new(Generator::new(spec, device_sectors)?), arrival })
            }
            Recipe::Program { build, arrival } => {
                Ok(Opened { source: build(device_sectors, seed.unwrap_or(SEED_DEFAULT))?, arrival })
            }
        }
    }
}
