//! The whole document of `imbrex simulate --json` and of `summary.json`: one workload, and what it came to on each drive.
//!
//! Invariants:
//! 1. Fields stand in the order of the document; maps are ordered: two runs differ in wall-clock fields alone.
//! 2. Requests read = completed + rejected, on each drive.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::results::{DriveResult, SUMMARY_SCHEMA};

/// Results of one workload on several drives.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// [`SUMMARY_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub imbrex: String,
    /// The command line that made it, the program's name first.
    pub command: Vec<String>,
    /// Seed of every random choice.
    pub seed: u64,
    /// What was asked of the drives.
    pub workload: WorkloadSummary,
    /// What each made of it, in the order given; the baseline stands where it was given, or last.
    pub drives: Vec<DriveResult>,
}

impl Summary {
    /// A document of the present schema.
    pub fn new(
        version: &str,
        command: Vec<String>,
        seed: u64,
        workload: WorkloadSummary,
        drives: Vec<DriveResult>,
    ) -> Summary {
        Summary { schema: SUMMARY_SCHEMA.to_string(), imbrex: version.to_string(), command, seed, workload, drives }
    }

    /// The drive that drive number `index` is compared with.
    pub fn baseline_of(&self, index: usize) -> Option<usize> {
        let label = self.drives[index].compared_with.as_ref()?;
        // One that was added as a baseline, where a drive of the same name was asked for as well.
        let is_it = |drive: &DriveResult| drive.drive == *label;
        let added = self.drives.iter().position(|drive| drive.baseline && is_it(drive));
        added.or_else(|| self.drives.iter().position(is_it))
    }

    /// Whether others are compared with drive number `index`.
    pub fn is_baseline(&self, index: usize) -> bool {
        (0..self.drives.len()).any(|other| self.baseline_of(other) == Some(index))
    }
}

/// The workload, counted while it was read.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct WorkloadSummary {
    /// File name, or the generator's words.
    pub name: String,
    /// Name of the trace format, or `generator`.
    pub format: String,
    /// Requests read.
    pub requests: u64,
    /// Reads among them.
    pub reads: u64,
    /// Writes among them.
    pub writes: u64,
    /// Flushes among them.
    pub flushes: u64,
    /// Trims among them.
    pub trims: u64,
    /// Bytes to be read.
    pub read_bytes: u64,
    /// Bytes to be written.
    pub write_bytes: u64,
    /// Records not taken, by reason.
    pub rejected: BTreeMap<String, u64>,
    /// From the first arrival to the last.
    pub span_ns: u64,
    /// One past the last sector touched, in sectors of 512 bytes.
    pub lba_end: u64,
    /// Digest of the input, in hexadecimal.
    pub sha256: String,
}
