//! The document of `imbrex simulate --json` and of `summary.json`: one workload, and its results on each drive.
//!
//! Invariants:
//! 1. Fields are in the order of the document, and maps are ordered: two runs differ in wall-clock fields only.
//! 2. Requests read = completed + rejected, on each drive.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::results::{DriveResult, SUMMARY_SCHEMA};

/// Results of one workload on several drives.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// Name and version of the format: [`SUMMARY_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub imbrex: String,
    /// The command line that produced the results, with the program's name first.
    pub command: Vec<String>,
    /// Seed of every random choice.
    pub seed: u64,
    /// The workload.
    pub workload: WorkloadSummary,
    /// Results of each drive, in the order given. The baseline is at its given position, or last if it was added.
    pub drives: Vec<DriveResult>,
    /// Notices that a person saw as messages: decisions of the trace reader, drives that grew.
    #[serde(default)]
    pub warnings: Vec<String>,
}

impl Summary {
    /// Creates a document of the present schema.
    pub fn new(
        version: &str,
        command: Vec<String>,
        seed: u64,
        workload: WorkloadSummary,
        drives: Vec<DriveResult>,
    ) -> Summary {
        let (schema, imbrex) = (SUMMARY_SCHEMA.to_string(), version.to_string());
        Summary { schema, imbrex, command, seed, workload, drives, warnings: Vec::new() }
    }

    /// Returns the index of the drive that drive number `index` is compared with; `None` if it is compared with none.
    /// Drives are counted from 0.
    ///
    /// # Panics
    ///
    /// If there is no drive number `index`.
    pub fn baseline_of(&self, index: usize) -> Option<usize> {
        let label = self.drives[index].compared_with.as_ref()?;
        // A drive that was added as a baseline has precedence over one that was requested under the same name.
        let is_it = |drive: &DriveResult| drive.drive == *label;
        let added = self.drives.iter().position(|drive| drive.baseline && is_it(drive));
        added.or_else(|| self.drives.iter().position(is_it))
    }

    /// Returns whether another drive is compared with drive number `index`, counted from 0. Returns false if there is
    /// no such drive.
    pub fn is_baseline(&self, index: usize) -> bool {
        (0..self.drives.len()).any(|other| self.baseline_of(other) == Some(index))
    }
}

/// The workload, counted while it was read.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct WorkloadSummary {
    /// File name, or the generator's specification.
    pub name: String,
    /// Name of the trace format, or `generator`.
    pub format: String,
    /// Requests read.
    pub requests: u64,
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
    /// Number of flushes.
    pub flushes: u64,
    /// Number of trims.
    pub trims: u64,
    /// Bytes to be read.
    pub read_bytes: u64,
    /// Bytes to be written.
    pub write_bytes: u64,
    /// Number of records rejected, by reason.
    pub rejected: BTreeMap<String, u64>,
    /// Time from the first arrival to the last.
    pub span_ns: u64,
    /// One past the last sector touched, in sectors of 512 bytes.
    pub lba_end: u64,
    /// Part of the drives that the workload addresses, if it follows from the drives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_span: Option<AddressSpan>,
    /// Digest of the input, in hexadecimal.
    pub sha256: String,
}

/// The part of the drives that a generator addresses if its words do not give it in bytes. It is equal for all drives.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AddressSpan {
    /// Number of bytes, from the first sector on.
    pub bytes: u64,
    /// Text of the drive that sets the number: the smallest.
    pub set_by: String,
}

impl AddressSpan {
    /// Returns the sentence for people. `bytes` is the number of bytes as the caller writes it.
    pub fn sentence(&self, bytes: &str) -> String {
        format!(
            "the workload addresses the first {bytes} of each drive: all of {} (size= sets another part)",
            self.set_by
        )
    }
}
