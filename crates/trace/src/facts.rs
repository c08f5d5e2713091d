//! Facts about a trace beside its requests: the records a reader left out, and its decisions where the trace is silent
//! (the unit of its times, the device).

use std::collections::BTreeMap;

/// Facts that a source has gathered so far. They are final once the source has yielded its last request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// Requests yielded.
    pub requests: u64,
    /// Requests with an earlier time than the request before them in the file; the order of the file is kept.
    pub out_of_order: u64,
    /// Requests whose offset or size is not a multiple of a sector, so that they were widened to whole sectors.
    pub unaligned: u64,
    /// Records that are not reads, writes, flushes or trims.
    pub not_requests: u64,
    /// Requests of devices other than the one chosen.
    pub other_devices: u64,
    /// Malformed records that were skipped.
    pub malformed: u64,
    /// Error message of the first malformed record that was skipped.
    pub first_malformed: Option<String>,
    /// Decisions of the reader that the user should know, such as the unit of the times.
    pub notes: Vec<String>,
    /// Nanoseconds from the trace's own epoch to its first request. That request is yielded at time 0.
    pub origin_ns: Option<u64>,
    /// Names of the devices by number, as far as the trace names them.
    pub device_names: BTreeMap<u32, String>,
}

impl Facts {
    /// Returns the number of records read: requests yielded and of other devices, records of other kinds, malformed
    /// records.
    pub fn records(&self) -> u64 {
        self.requests + self.other_devices + self.not_requests + self.malformed
    }

    /// Returns the reason why the trace may have another format than the reader took: more than half of its records are
    /// malformed.
    pub fn mostly_malformed(&self) -> Option<String> {
        (2 * self.malformed > self.records()).then(|| {
            let first = self.first_malformed.as_deref().unwrap_or("none was kept");
            format!(
                "{} of {} records are malformed, more than half: the format or its options are wrong, or say \
                 --skip-malformed=all (the first: {first})",
                self.malformed,
                self.records()
            )
        })
    }

    /// Returns the warning about skipped malformed records if they are more than a hundredth of all records.
    pub fn malformed_warning(&self) -> Option<String> {
        (100 * self.malformed > self.records()).then(|| {
            let first = self.first_malformed.as_deref().unwrap_or("none was kept");
            format!("{} of {} records are malformed and skipped; the first: {first}", self.malformed, self.records())
        })
    }
}
