//! The workloads: the fifteen stand-ins, whole, with arrivals from each of four sources, or a user's traces of the same
//! machines; and those real traces whose files lie beside the repository.

use std::fs::File;
use std::path::{Path, PathBuf};

use imbrex_disk::SimTime;
use imbrex_trace::generators::{self, Arrivals, Choices};
use imbrex_trace::{Facts, Input, Request, Source, TraceError, TraceOptions};

use super::super::report::ClaimKind;
use super::super::{Replication, Traces};
use imbrex::error::Failure;

/// Machines of Hajkazemi 2019 table 1, in the table's order.
pub(super) const MACHINES: [&str; 15] =
    ["w08", "w09", "w17", "w24", "w28", "w31", "w35", "w39", "w43", "w46", "w56", "w61", "w84", "w87", "w106"];

/// Files of real traces: a machine of the paper's collection that the paper does not name, and two servers.
pub(super) const REAL: [&str; 3] =
    ["cloudPhysicsIO.vscsi", "blkreplay-linux-mysql.load.gz", "blkreplay-windows-mssql.load.gz"];
const SAMPLE_FOLDER: &str = "../shared/traces";

/// Seed of every stand-in in the first replication.
const SEED: u64 = 1;

/// A workload: the synthetic stand-in for the trace of a machine of the paper, or a real trace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Case {
    /// Name of the machine in the paper, such as `w46`, or the file name of a real trace.
    pub name: &'static str,
    /// Options of the synthetic stand-in, such as its source of arrival times; ignored for a real trace.
    pub choices: Choices,
    /// Seed of the synthetic stand-in; of no effect on a real trace.
    pub seed: u64,
    /// Whether the workload is the user's trace of the machine ([`Traces`]), not the stand-in.
    pub is_recorded: bool,
    /// Number of sectors of 512 bytes that is added to every LBA of the workload. The place of the workload's pages on
    /// the tracks depends on it.
    pub shift_sectors: u64,
}

impl Case {
    /// Returns the stand-in of a machine, or a real trace, with arrivals from `arrivals`.
    pub(super) fn of(name: &'static str, arrivals: Arrivals) -> Case {
        Case {
            name,
            choices: Choices { arrivals, ..Choices::default() },
            seed: SEED,
            is_recorded: false,
            shift_sectors: 0,
        }
    }

    /// Returns the workload that the replication runs: the user's trace of the machine if there is one, else the
    /// stand-in with the seed of the replication. A trace has neither a seed nor other arrivals. Variants of a stand-in,
    /// such as other days, stay stand-ins.
    pub(super) fn of_replication(self, replication: &Replication) -> Case {
        if self.is_real() {
            return self;
        }
        let is_variant = self.choices != Choices { arrivals: self.choices.arrivals, ..Choices::default() };
        if !is_variant && replication.traces.is_some_and(|traces| traces.has(self.name)) {
            return Case { is_recorded: true, choices: Choices::default(), ..self };
        }
        Case { seed: replication.seed(self.seed), ..self }
    }

    /// Returns the name of the workload in results.
    pub(super) fn key(&self) -> String {
        let mut key = self.name.to_string();
        if self.is_recorded {
            key += " trace";
        } else if !self.is_real() {
            key += &format!(" {}", self.choices.arrivals.name());
        }
        if self.choices.days != Choices::default().days {
            key += &format!(" {} days", self.choices.days);
        }
        if self.choices.is_dense {
            key += " dense";
        }
        if self.choices.is_steady {
            key += " steady";
        }
        if self.seed != SEED {
            key += &format!(" seed {}", self.seed);
        }
        if self.shift_sectors != 0 {
            key += &format!(" shift {}", self.shift_sectors);
        }
        key
    }

    fn is_real(&self) -> bool {
        REAL.contains(&self.name)
    }

    /// Returns the end of the highest sector that the workload touches, in sectors of 512 bytes, if it is known. The
    /// first call for a trace of the user reads the whole trace.
    pub(super) fn reach_sectors(&self, replication: &Replication) -> Result<Option<u64>, Failure> {
        let reach = match self.trace_of(replication) {
            Some(traces) => Some(traces.extent(self.name, replication.progress)?.end_sectors),
            None => generators::named(&stand_in(self.name)).and_then(|entry| entry.reach_sectors),
        };
        Ok(reach.map(|sectors| sectors + self.shift_sectors))
    }

    /// Returns the user's traces if this workload is one of them.
    fn trace_of<'a>(&self, replication: &Replication<'a>) -> Option<&'a Traces> {
        replication.traces.filter(|_| self.is_recorded)
    }

    /// Returns the name of the file of kept results of this workload: two workloads with one name are the same.
    pub(super) fn kept_key(&self, replication: &Replication) -> String {
        match self.trace_of(replication) {
            Some(traces) => format!("{} {}", self.key(), traces.identity_of(self.name)),
            None => self.key(),
        }
    }

    /// Returns about how many requests the workload has, so that the longest runs can start first; 0 for a real trace.
    pub(super) fn requests(&self) -> u64 {
        let source = generators::stand_in(&stand_in(self.name), self.choices, self.seed);
        source.and_then(|source| source.expected_requests()).unwrap_or(0)
    }

    /// Opens the workload and returns a source of all its requests.
    pub(super) fn open(&self, replication: &Replication) -> Result<Box<dyn Source>, Failure> {
        let source = self.unshifted(replication)?;
        if self.shift_sectors == 0 {
            return Ok(source);
        }
        Ok(Box::new(Shifted { source, by: self.shift_sectors }))
    }

    fn unshifted(&self, replication: &Replication) -> Result<Box<dyn Source>, Failure> {
        if let Some(traces) = self.trace_of(replication) {
            return traces.open(self.name);
        }
        if let Some(source) = generators::stand_in(&stand_in(self.name), self.choices, self.seed) {
            return Ok(source);
        }
        let path = real_path(self.name);
        let file = File::open(&path).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
        Ok(imbrex_trace::open(Input::file(self.name, file), &TraceOptions::default())?.source)
    }
}

/// Returns the kind of a claim on the workloads of machines. Stand-ins were made to the paper's figures, so such a claim
/// holds by construction. It is of the kind `of_traces` if all the machines run the user's traces.
pub(super) fn claim_kind(of_traces: ClaimKind, machines: &[&'static str], replication: &Replication) -> ClaimKind {
    let is_recorded = |name: &&'static str| Case::of(name, Arrivals::default()).of_replication(replication).is_recorded;
    if machines.iter().all(is_recorded) { of_traces } else { ClaimKind::ByConstruction }
}

/// A source with a number of sectors added to every LBA.
struct Shifted {
    source: Box<dyn Source>,
    by: u64,
}

impl Source for Shifted {
    fn next(&mut self, now: SimTime) -> Result<Option<Request>, TraceError> {
        let mut request = self.source.next(now)?;
        if let Some(request) = &mut request {
            request.command.lba.0 += self.by;
        }
        Ok(request)
    }

    fn heeds_time(&self) -> bool {
        self.source.heeds_time()
    }

    fn expected_requests(&self) -> Option<u64> {
        self.source.expected_requests()
    }

    fn facts(&self) -> Facts {
        self.source.facts()
    }
}

/// Returns the stand-ins of all machines, with arrivals from `arrivals`.
pub(super) fn machines(arrivals: Arrivals) -> Vec<Case> {
    MACHINES.iter().map(|name| Case::of(name, arrivals)).collect()
}

/// Returns the real traces whose files exist.
pub(super) fn real() -> Vec<Case> {
    let there = REAL.into_iter().filter(|name| real_path(name).exists());
    there.map(|name| Case::of(name, Arrivals::default())).collect()
}

fn real_path(name: &str) -> PathBuf {
    Path::new(SAMPLE_FOLDER).join(name)
}

fn stand_in(name: &str) -> String {
    format!("cloudphysics-{name}")
}

#[cfg(test)]
mod tests {
    //! Goal: kept runs of the first replication keep their names, and others have names of their own. Method: names
    //! written here.

    use imbrex::Progress;

    use super::*;

    #[test]
    fn only_seeds_of_later_replications_are_in_the_name() {
        let progress = Progress::silent();
        let key = |name, number| {
            let replication = Replication::new(&progress, number);
            let key = Case::of(name, Arrivals::default()).of_replication(&replication).key();
            (key, replication.is_seeded())
        };
        assert_eq!(key("w46", 0), ("w46 cloudphysics".into(), true));
        assert_eq!(key("w46", 2), ("w46 cloudphysics seed 3".into(), true));
        assert_eq!(key(REAL[0], 2), (REAL[0].into(), false), "a real trace has no seed");
    }
}
