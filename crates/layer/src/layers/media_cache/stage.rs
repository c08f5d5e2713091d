//! Progress of the cleaning of a band: the states of [`super::cleaning`], and the cached runs of the band.

use crate::map::extent_map::MappedRun;
use crate::plan::{GroupKind, Plan};

/// The stage of the cleaning of a band, with the progress within the stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// The band is being read from its own place; the value is the number of sectors read so far.
    Reading(u64),
    /// The journal is being read to find the band's cached runs; the value is the number of sectors read so far.
    Scanning(u64),
    /// The band's cached runs are being read; the value is the number of runs read so far.
    Collecting(usize),
    /// The merged band is being written to the spare; the value is the number of sectors written so far.
    Persisting(u64),
    /// The merged band is being written to its own place; the value is the number of sectors written so far.
    Rewriting(u64),
    /// The map on the disk is being updated.
    Noting,
}

/// The state of cleaning: the band that is being cleaned, if any, and its cached runs.
#[derive(Debug, Default)]
pub(super) struct Cleaning {
    /// The band that is being cleaned and its stage; `None` if no band is being cleaned.
    pub(super) now: Option<(usize, Stage)>,
    pub(super) is_open: bool,
    pub(super) runs: Vec<MappedRun>,
}

impl Cleaning {
    /// Returns the band whose data lie in the spare because the band is being rewritten, or `None`.
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

    /// Sets the band whose data the spare holds, when records are replayed; `None` means that the spare holds none.
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
