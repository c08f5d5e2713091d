//! Facts about a trace beside its requests: the records a reader left out, and its decisions where the trace is silent
//! (the unit of its times, the device).

use std::collections::BTreeMap;

/// Facts that a source has gathered so far. They are final once [`Source::next`](crate::Source::next) has returned
/// `None`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// Number of requests that the reader of a trace has yielded so far; 0 for other sources, such as a generator.
    pub requests: u64,
    /// Number of requests yielded with an earlier time than the request yielded before them. The source does not sort:
    /// it keeps the order of the file.
    pub out_of_order: u64,
    /// Longest time by which a request is earlier than the latest one before it, in nanoseconds.
    pub longest_step_back_ns: u64,
    /// Number of requests yielded whose offset or size in bytes is not a multiple of 512. They were widened to whole
    /// sectors of 512 bytes.
    pub unaligned: u64,
    /// Number of well-formed records that are not reads, writes, flushes or trims; they were skipped.
    pub not_requests: u64,
    /// Number of requests left out because they are for other devices than the one that the user chose.
    pub other_devices: u64,
    /// Number of malformed records of the trace that were skipped: records without the form of the trace's format.
    pub malformed: u64,
    /// Error message of the first malformed record that was skipped; `None` if none was skipped.
    pub first_malformed: Option<String>,
    /// Decisions of the reader that the user should know, such as the unit of the times.
    pub notes: Vec<String>,
    /// Time of the first request yielded, in nanoseconds since the zero point of the trace's clock. The source
    /// subtracts it from all times, so that the first request is at time 0. `None` before the first request.
    pub origin_ns: Option<u64>,
    /// Names of the devices met so far, by number, if the trace names its devices. Includes devices whose requests were
    /// left out.
    pub device_names: BTreeMap<u32, String>,
}

impl Facts {
    /// Returns the number of records read so far: the sum of `requests`, `other_devices`, `not_requests` and
    /// `malformed`. Headers, comments and blank lines do not count.
    pub fn records(&self) -> u64 {
        self.requests + self.other_devices + self.not_requests + self.malformed
    }

    /// Returns an error message if more than half of the records are malformed, which suggests a wrong format.
    /// Otherwise returns `None`.
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

    /// Returns a warning if requests are so far out of order that a simulation sends them at other times than the trace says:
    /// by more than a second, or more than one in ten. Otherwise returns `None`.
    pub fn order_warning(&self) -> Option<String> {
        const STEP_NS: u64 = 1_000_000_000;
        (self.longest_step_back_ns > STEP_NS || 10 * self.out_of_order > self.requests).then(|| {
            format!(
                "{} of {} requests step back in time, by up to {:.3} s: a request with an earlier time than one before it is \
                 sent without a pause, in the order of the trace; sort the trace by time",
                self.out_of_order,
                self.requests,
                self.longest_step_back_ns as f64 / 1e9
            )
        })
    }

    /// Returns a warning if more than 1 % of the requests were widened to whole sectors. Otherwise returns `None`.
    pub fn unaligned_warning(&self) -> Option<String> {
        (100 * self.unaligned > self.requests).then(|| {
            format!(
                "{} of {} requests begin or end within a sector of 512 bytes: they were widened to whole sectors",
                self.unaligned, self.requests
            )
        })
    }

    /// Returns a warning if more than 1 % of the records are malformed and were skipped. Otherwise returns `None`.
    pub fn malformed_warning(&self) -> Option<String> {
        (100 * self.malformed > self.records()).then(|| {
            let first = self.first_malformed.as_deref().unwrap_or("none was kept");
            format!("{} of {} records are malformed and skipped; the first: {first}", self.malformed, self.records())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widened_requests_bring_a_warning_if_they_are_many() {
        let warning = |requests, unaligned| Facts { requests, unaligned, ..Facts::default() }.unaligned_warning();
        assert_eq!((warning(0, 0), warning(100, 1)), (None, None));
        assert!(warning(100, 2).is_some_and(|text| text.contains("2 of 100 requests")));
    }

    #[test]
    fn only_requests_far_out_of_order_bring_a_warning() {
        let warning = |requests, out_of_order, longest_step_back_ns| {
            Facts { requests, out_of_order, longest_step_back_ns, ..Facts::default() }.order_warning()
        };
        assert_eq!(warning(0, 0, 0), None);
        assert_eq!(warning(1000, 100, 1_000_000_000), None);
        assert!(warning(1000, 101, 1).is_some());
        assert!(
            warning(1000, 1, 1_000_000_001).is_some_and(|text| text.contains("1 of 1000") && text.contains("1.000 s"))
        );
    }
}
