//! The document of `imbrex simulate --json` and of `summary.json`: one workload, and its results on each drive.
//!
//! Invariants:
//! 1. Fields are in the order of the document, and maps are ordered: two runs differ in wall-clock fields only.
//! 2. Requests read = completed + rejected, on each drive.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::results::{DriveResult, SUMMARY_SCHEMA};

/// Results of one workload on one or more drives: the JSON document of `imbrex simulate`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// Name and version of the format of the document, such as `imbrex.simulate/2`.
    pub schema: String,
    /// Version of the Imbrex program that produced the results.
    pub imbrex: String,
    /// The command line that produced the results, with the program's name first.
    pub command: Vec<String>,
    /// Seed of the workload's random numbers; 0 for a trace and for requests in memory.
    pub seed: u64,
    /// Seeds of all runs, with `seed` first, if the workload ran with more than one (`--seeds`); otherwise empty. The
    /// figures of `drives` are those of the first seed; [`DriveResult::over_seeds`] has the means and intervals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<u64>,
    /// The workload, with the counts of its requests.
    pub workload: WorkloadSummary,
    /// Results of each drive, in the order given, then those of the baselines that the program added. It adds the
    /// baseline that the user named, or else, for each drive, the conventional drive that differs from it in recording
    /// and layer alone. It adds each such drive once, and none that is among the given drives.
    pub drives: Vec<DriveResult>,
    /// Notices that the program also printed as messages, such as decisions of the trace reader.
    #[serde(default)]
    pub warnings: Vec<String>,
}

impl Summary {
    /// Creates a document of the current format, `imbrex.simulate/2`, without warnings. `version` is that of the
    /// program, and `seed` that of the workload's random numbers.
    pub fn new(
        version: &str,
        command: Vec<String>,
        seed: u64,
        workload: WorkloadSummary,
        drives: Vec<DriveResult>,
    ) -> Summary {
        let (schema, imbrex) = (SUMMARY_SCHEMA.to_string(), version.to_string());
        Summary { schema, imbrex, command, seed, seeds: Vec::new(), workload, drives, warnings: Vec::new() }
    }

    /// Returns the index of the drive that drive number `index` is compared with, its baseline; `None` if it is
    /// compared with none. A baseline is compared with itself. Drives are counted from 0.
    ///
    /// # Panics
    ///
    /// Panics if there is no drive number `index`.
    pub fn baseline_of(&self, index: usize) -> Option<usize> {
        let label = self.drives[index].compared_with.as_ref()?;
        // A drive that was added as a baseline has precedence over one that was requested under the same name.
        let is_it = |drive: &DriveResult| drive.drive == *label;
        let added = self.drives.iter().position(|drive| drive.baseline && is_it(drive));
        added.or_else(|| self.drives.iter().position(is_it))
    }

    /// Returns whether any drive is compared with drive number `index`, counted from 0; the drive itself counts too, if
    /// it is its own baseline. Returns false if there is no drive of this number.
    pub fn is_baseline(&self, index: usize) -> bool {
        (0..self.drives.len()).any(|other| self.baseline_of(other) == Some(index))
    }
}

/// The workload and the counts of its requests. The requests of some generators depend on simulated time; then the
/// counts are those on the first drive.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct WorkloadSummary {
    /// Path of the trace or TOML file, description of a generator, name of a built-in workload, or `standard input`.
    pub name: String,
    /// Name of the trace format; `generator` for a generator, `table` for requests in memory.
    pub format: String,
    /// Number of requests read from the trace or generator, including those of the warm-up and those that a drive
    /// rejects. If drives read different numbers, that of the first drive.
    pub requests: u64,
    /// Number of reads among the requests that were read from the trace or generator.
    pub reads: u64,
    /// Number of writes among the requests that were read from the trace or generator.
    pub writes: u64,
    /// Number of flushes among the requests that were read from the trace or generator.
    pub flushes: u64,
    /// Number of trims among the requests that were read from the trace or generator.
    pub trims: u64,
    /// Number of bytes that the reads request.
    pub read_bytes: u64,
    /// Number of bytes that the writes request.
    pub write_bytes: u64,
    /// Number of malformed records that the trace reader skipped, under the key `malformed`; empty if there are none.
    pub rejected: BTreeMap<String, u64>,
    /// Latest arrival time of a request in nanoseconds of the workload's own time, in which the first request of a
    /// trace arrives at 0. 0 if no request has a time of its own.
    pub span_ns: u64,
    /// One past the highest sector of 512 bytes that a request addresses, before the request is fitted to a drive; 0 if
    /// none addresses a sector.
    pub lba_end: u64,
    /// Part of the drives that a generator addresses, if its size was derived from the drives; `None` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_span: Option<AddressSpan>,
    /// SHA-256 digest in hexadecimal: of the trace file's bytes as stored, of the rows in memory, or of the generator's
    /// description including its seed.
    pub sha256: String,
}

/// The part of the drives that a generator addresses if its specification does not give it in bytes. It is equal for
/// all drives.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AddressSpan {
    /// Size in bytes of the part of each drive that the generator addresses; the part begins at the drive's first
    /// sector.
    pub bytes: u64,
    /// Text that names the drive with the smallest capacity, which sets the size of the addressed part of all drives.
    pub set_by: String,
}

impl AddressSpan {
    /// Returns a sentence that tells the user which part is addressed. `bytes` is the size as text, such as `1 TiB`.
    pub fn sentence(&self, bytes: &str) -> String {
        format!(
            "the workload addresses the first {bytes} of each drive: all of {} (size= sets another part)",
            self.set_by
        )
    }
}
