//! Our own choices in a stand-in, where the paper and the statistics leave a property open. All machines use equal
//! choices.

use super::pace::Arrivals;

/// The choices. Their defaults make the built-in workloads; other values serve to measure the influence of a choice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Choices {
    /// Source of the lengths of bursts and pauses.
    pub arrivals: Arrivals,
    /// Number of days over which all requests are spread. The traces last seven.
    pub days: u32,
    /// Whether the used pages are contiguous, so that as few tracks as possible are written. Otherwise the used pages
    /// are spread over the disk as the machine's range and number of pages imply.
    pub is_dense: bool,
    /// Whether hot tracks stay hot to the end. Otherwise they change from day to day, as in Hajkazemi 2019 fig. 5.
    pub is_steady: bool,
}

impl Default for Choices {
    fn default() -> Choices {
        Choices { arrivals: Arrivals::default(), days: 7, is_dense: false, is_steady: false }
    }
}
