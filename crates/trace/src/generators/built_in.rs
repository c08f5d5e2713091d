//! The description of a built-in workload: its name, its recipe, and the published figures that it reproduces.

use super::error::WorkloadError;
use super::generator::Generator;
use super::parse;
use super::spec::Arrival;
use crate::request::Source;

/// A workload that is part of the program and has a name, such as `pc-day`.
pub struct BuiltIn {
    /// Name of the workload, as the user writes it.
    pub name: &'static str,
    /// One line that describes the workload, for lists.
    pub summary: &'static str,
    /// Whether the workload is a stand-in: it replaces a trace that is not available, and reproduces the trace's
    /// published figures.
    pub is_stand_in: bool,
    /// Note for the user that is printed at every use of the workload, or `None`. Stand-ins have one.
    pub note: Option<&'static str>,
    /// One past the last sector of 512 bytes that the workload may access, on a drive of any size. `None` if the
    /// workload adapts its addresses to the size of the drive. A workload with a value does not adapt, so the drive
    /// must be large enough, as for a trace.
    pub reach_sectors: Option<u64>,
    /// Returns the published figures that the workload was made to reproduce; `None` if it was made to reproduce none.
    pub targets: Option<fn() -> Vec<TargetFigure>>,
    /// Description of the way in which the requests are generated.
    pub recipe: Recipe,
}

/// A published figure that a built-in workload was made to reproduce.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TargetFigure {
    /// Name of the figure: the path of a field of [`TraceInfo`](crate::statistics::TraceInfo), with dots between the
    /// levels, such as `hot_tracks.share_10`.
    pub name: &'static str,
    /// Published value of the figure, in the unit of that field. The workload's own value may differ a little.
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

/// The way in which the requests of a built-in workload are generated.
#[derive(Clone, Copy)]
pub enum Recipe {
    /// From this description in fio's words, which [`WorkloadSpec::parse`](super::WorkloadSpec::parse) reads.
    Words(&'static str),
    /// By Rust code written for this workload.
    Program {
        /// Function that takes the size of the drive in sectors of 512 bytes and a seed, and returns the source of the
        /// requests.
        build: Build,
        /// Way in which the requests arrive at the drive, unless the user chooses another.
        arrival: Arrival,
    },
}

/// A built-in workload that is ready to run: the source of its requests, and their arrival.
pub struct Opened {
    /// Source of the workload's requests, from the first on.
    pub source: Box<dyn Source>,
    /// Way in which the requests arrive at the drive, unless the user chooses another.
    pub arrival: Arrival,
}

/// Seed of a program if none is given; equal to the default of the word `seed`.
const SEED_DEFAULT: u64 = 1;

impl BuiltIn {
    /// Returns the source of the workload's requests on a drive of `device_sectors` sectors of 512 bytes. `seed`
    /// replaces the seed of the workload, which is 1 unless its words set another. A workload with `reach_sectors`
    /// ignores the size of the drive.
    ///
    /// # Errors
    ///
    /// If the workload adapts to the drive and does not fit on it.
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
