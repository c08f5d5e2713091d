//! What is ours in a stand-in: the choices that the paper and the statistics leave open, the same for every machine.

use super::pace::Arrivals;

/// The choices. Those that are the default make the built-in workloads; the others are for finding out what hangs on them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Choices {
    /// Where bursts and pauses come from.
    pub arrivals: Arrivals,
    /// Days that all requests take: the traces last seven.
    pub days: u32,
    /// Whether pages in use lie side by side, so that as few tracks as can be are written; else as loosely as the reach
    /// and the number of pages say.
    pub is_dense: bool,
    /// Whether what is hot stays so to the end; else it changes day by day, as in Hajkazemi 2019 fig. 5.
    pub is_steady: bool,
}

impl Default for Choices {
    fn default() -> Choices {
        Choices { arrivals: Arrivals::default(), days: 7, is_dense: false, is_steady: false }
    }
}
