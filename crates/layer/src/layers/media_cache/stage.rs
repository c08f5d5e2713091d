//! Progress of the cleaning of a band: the states of [`super::cleaning`], and the cached runs of the band.

use crate::map::extent_map::MappedRun;
use crate::plan::reason::{Area, AreaKind, Due, Reason};
use crate::plan::{GroupKind, Plan};

/// The stage of the cleaning of a band, with the progress within the stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// The heads seek to the inner diameter and back; the value is the number of such seeks so far.
    Visiting(u64),
    /// The band is being read from its own place; the value is the sector of the band at which reading goes on.
    Reading(u64),
    /// The journal is being read to find the band's cached runs; the value is the number of sectors read so far.
    Scanning(u64),
    /// The band's cached runs are being read; the value is the number of runs read so far.
    Collecting(usize),
    /// The merged band is being written to the spare; the value is the sector of the band at which writing goes on.
    Persisting(u64),
    /// The merged band is being written to its own place; the value is the sector of the band at which writing goes on.
    Rewriting(u64),
    /// The map on the disk is being updated.
    Noting,
}

/// The state of cleaning: the band that is being cleaned, if any, and its cached runs.
#[derive(Debug, Default)]
pub(super) struct Cleaning {
    /// The band that is being cleaned and its stage; `None` if no band is being cleaned.
    pub(super) now: Option<(usize, Stage)>,
    /// First sector of the band that is rewritten; the sectors before it stay as they are.
    pub(super) from: u64,
    pub(super) is_open: bool,
    /// Whether background work has begun since the last host command.
    pub(super) has_begun: bool,
    /// The reason of the next phases of the cleaning.
    pub(super) reason: Option<Reason>,
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

    /// Returns whether the next phase of background work is a seek to the inner diameter, if `visits` of them precede
    /// the cleaning in idle time.
    pub(super) fn is_visiting(&self, visits: u64) -> bool {
        match self.now {
            Some((_, stage)) => matches!(stage, Stage::Visiting(_)),
            None => visits > 0 && !self.has_begun,
        }
    }

    /// Returns whether no band is being cleaned.
    pub(super) fn is_resting(&self) -> bool {
        self.now.is_none()
    }

    /// Sets the band whose data the spare holds from sector `from` of the band on, when records are replayed.
    pub(super) fn set_rewriting(&mut self, band: usize, from: u64) {
        self.from = from;
        self.now = Some((band, Stage::Rewriting(from)));
    }

    pub(super) fn phase(&mut self, plan: &mut Plan) {
        if self.is_open {
            plan.next_phase(GroupKind::Cleaning);
        } else {
            plan.open(GroupKind::Cleaning);
            self.is_open = true;
        }
        if let Some(reason) = self.reason {
            plan.because(reason);
        }
    }

    /// Sets the reason of the next phases of the cleaning of `band`: the event `due`, and what is relieved, which is
    /// the cache or the map.
    pub(super) fn because(&mut self, band: usize, due: Due, relieved: AreaKind) {
        let (target, store) = (Area::new(AreaKind::Region, band), Some(Area::new(relieved, 0)));
        self.reason = Some(Reason { target, due, store });
    }
}
