//! What a built-in workload is: its name, its recipe, and the figures it was made to.

use super::error::WorkloadError;
use super::generator::Generator;
use super::parse;
use super::spec::Arrival;
use crate::request::Source;

/// A built-in workload.
pub struct BuiltIn {
    /// Its name.
    pub name: &'static str,
    /// One line of what it does.
    pub summary: &'static str,
    /// Whether it stands in for a trace that is not at hand, made to that trace's published figures.
    pub is_stand_in: bool,
    /// What has to be said whenever it is used.
    pub note: Option<&'static str>,
    /// One past the last sector it may name whatever the drive, for one that does not fit itself to the drive: drives
    /// are fitted to it, as they are to a trace.
    pub reach_sectors: Option<u64>,
    /// The figures it was made to, for one made to figures.
    pub targets: Option<fn() -> Vec<TargetFigure>>,
    /// How its requests are made.
    pub recipe: Recipe,
}

/// A figure that a workload was made to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TargetFigure {
    /// The figure's name in [`TraceInfo`](crate::statistics::TraceInfo), levels separated by dots.
    pub name: &'static str,
    /// What it should be.
    pub value: f64,
}

impl TargetFigure {
    pub(super) const fn new(name: &'static str, value: f64) -> TargetFigure {
        TargetFigure { name, value }
    }
}

/// Makes the requests of a program for a drive of so many sectors of 512 bytes, from a seed.
pub type Build = fn(device_sectors: u64, seed: u64) -> Result<Box<dyn Source>, WorkloadError>;

/// How the requests of a built-in workload are made.
#[derive(Clone, Copy)]
pub enum Recipe {
    /// In the words anyone can write.
    Words(&'static str),
    /// By a program of its own.
    Program {
        /// Makes the requests for a drive of so many sectors of 512 bytes, from a seed.
        build: Build,
        /// How they arrive.
        arrival: Arrival,
    },
}

/// A workload ready to run.
pub struct Opened {
    /// Its requests.
    pub source: Box<dyn Source>,
    /// How they arrive unless the user says otherwise.
    pub arrival: Arrival,
}

/// The seed of a program where none is given: the same as in the words.
const SEED_DEFAULT: u64 = 1;

impl BuiltIn {
    /// The workload on a drive of `device_sectors` sectors of 512 bytes; `seed` replaces the entry's own.
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
