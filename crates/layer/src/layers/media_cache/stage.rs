//! Progress of the cleaning of a band: the states of [`super::cleaning`], and the cached runs of the band.

use crate::map::extent_map::MappedRun;
use crate::plan::{GroupKind, Plan};

/// Stage of the cleaning of a band.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// The band is being read; number of sectors done.
    Reading(u64),
    /// The journal is being read to find the band's cached runs; number of sectors done.
    Scanning(u64),
    /// The cached runs are being read; number of runs done.
    Collecting(usize),
    /// The merged band is being written to the spare; number of sectors done.
    Persisting(u64),
    /// The merged band is being written to its own place; number of sectors done.
    Rewriting(u64),
    /// The map is being written.
    Noting,
}

/// The current cleaning.
#[derive(Debug, Default)]
pub(super) struct Cleaning {
    /// Band and stage of the current cleaning, if there is one.
    pub(super) now: Option<(usize, Stage)>,
    pub(super) is_open: bool,
    pub(super) runs: Vec<MappedRun>,
}

impl Cleaning {
    /// Returns the band whose data lies in the spare, if there is one.
    pub(super) fn rewriting(&self) -> Option<usize> {
        match self.now {
            Some((band, Stage::Rewriting(_))) => Some(band),
            _ => None,
        }
    }

    /// Returns whether no band is being cleaned.
    pub(super) fn is_resting(&self) -> bool {
        self.now.is_none()
    }

    /// Sets the band that the spare holds according to the records; `None` if it holds none.
    pub(super) fn set_rewriting(&mut self, band: Option<usize>) {
        self.now = band.map(|band| (band, Stage::Rewriting(0)));
    }

    pub(super) fn phase(&mut self, plan: &mut Plan) {
        if self.is_open {
            plan.next_phase(GroupKind::Cleaning);
        } else {
            plan.open(GroupKind::Cleaning);
            self.is_open = true;
        }
    }
}
