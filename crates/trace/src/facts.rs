//! What a reader has to say about a trace beside its requests: which records it left out, and what it had to decide where the trace
//! does not say (the unit of its times, the device).

use std::collections::BTreeMap;

/// What a source has seen so far; final once it has yielded its last request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// Requests yielded.
    pub requests: u64,
    /// Requests whose time lies before that of the one they follow in the file; the order of the file is kept.
    pub out_of_order: u64,
    /// Requests whose offset or size is no multiple of a sector, and which were widened to whole sectors.
    pub unaligned: u64,
    /// Records the format has that are no reads, writes, flushes or trims.
    pub not_requests: u64,
    /// Requests of devices that were not asked for.
    pub other_devices: u64,
    /// Malformed records that were skipped.
    pub malformed: u64,
    /// The error the first of them would have been.
    pub first_malformed: Option<String>,
    /// What was decided on the way and a user should hear, such as the unit of the times.
    pub notes: Vec<String>,
    /// Nanoseconds from the trace's own epoch to its first request, which is at 0.
    pub origin_ns: Option<u64>,
    /// The devices by number, as far as the trace names them.
    pub device_names: BTreeMap<u32, String>,
}
