//! Our own choices in a stand-in, where the paper and the statistics leave a property open. All machines use equal
//! choices.

use super::pace::Arrivals;

/// Parameters of a stand-in for a CloudPhysics trace that the published statistics leave open. The built-in workloads
/// use the defaults; other values serve to measure the influence of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Choices {
    /// Source of the lengths of bursts, in requests, and of the pauses between bursts. By default, they are those
    /// measured in one trace of the CloudPhysics collection.
    pub arrivals: Arrivals,
    /// Number of days of simulated time over which all requests are spread; 7 by default, as long as the traces last.
    pub days: u32,
    /// Whether the pages used are contiguous, so that as few 2 MiB tracks as possible are written. By default, they are
    /// spread over the disk with the density that the machine's address range and number of pages imply.
    pub is_dense: bool,
    /// Whether the most written tracks are the same throughout. By default, they change from day to day, as in
    /// Hajkazemi 2019 fig. 5.
    pub is_steady: bool,
}

impl Default for Choices {
    fn default() -> Choices {
        Choices { arrivals: Arrivals::default(), days: 7, is_dense: false, is_steady: false }
    }
}
