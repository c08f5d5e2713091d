//! Rewrites of a run of sectors in place, on a disk where an interrupted write destroys the sectors that follow
//! (Cassuto 2010 §II.B). With a spare, the new contents are durable there first:
//!
//! ```text
//!   barrier   the end of the rewrite before, for its spare is overwritten now
//!   write     the new content to the spare
//!   barrier
//!   note      begin: spare holds it
//!   barrier
//!   write     the new content in its place
//!   barrier
//!   note      end (the layer's own, with its mapping change)
//! ```
//!
//! A cut before the begin record is durable leaves the old contents whole. After a later cut, repair copies the spare
//! to the run's place. Without a spare only the second write and the end record remain: a cut during that write loses
//! the sectors that were still to be rewritten.
//!
//! Invariants:
//! 1. No rewrite is open between plans, except between replay and repair.
//! 2. The spare is overwritten only when the end record of the previous rewrite is durable.

use imbrex_disk::{Extent, Lba, Pba, Sectors};

use crate::parameters::{ParameterInfo, ParameterKind};
use crate::plan::note::Note;
use crate::plan::{Cause, GroupKind, Plan};

/// The parameter `safety`, which selects whether sectors that a rewrite could lose are backed up first: `power` (yes,
/// the default) or `paper` (no, so that a power cut can lose data).
pub const SAFETY: ParameterInfo = ParameterInfo {
    key: "safety",
    kind: ParameterKind::Choice(&["power", "paper"]),
    default: "power",
    help: "power: back up sectors that a rewrite could lose; paper: the paper's steps, in which a power cut can lose \
           data",
};

/// A run of sectors to rewrite in place: its logical sectors, and the physical sectors in which they lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rewrite {
    /// First logical sector of the run that is rewritten.
    pub lba: Lba,
    /// Number of sectors of the run that is rewritten.
    pub sectors: Sectors,
    /// Physical sector of `lba`, before and after the rewrite; the places of the next logical sectors follow it.
    pub home: Pba,
}

/// Plans rewrites of runs in place. If there is a spare (a run of sectors reserved for backups), the new contents are
/// durable in the spare before the run is overwritten. At most one rewrite is open at a time.
#[derive(Clone, Debug)]
pub struct Rewriter {
    spare: Option<Extent>,
    /// Makes the layer's begin record, which says that the spare holds the run.
    begin: fn(Rewrite) -> Note,
    open: Option<Rewrite>,
}

impl Rewriter {
    /// Returns a rewriter that backs up new contents in the physical sectors `spare`, or makes no backup if `spare` is
    /// `None`. `begin` makes the journal record which says that the new contents of a rewrite are durable in the spare.
    pub fn new(spare: Option<Extent>, begin: fn(Rewrite) -> Note) -> Rewriter {
        Rewriter { spare, begin, open: None }
    }

    /// Returns whether the rewriter has a spare, to which it writes new contents first, so that a power cut loses no
    /// data.
    pub fn has_spare(&self) -> bool {
        self.spare.is_some()
    }

    /// Appends to `plan` the writes of `target` with the contents that the group has in memory, a barrier, and the
    /// journal record `end`, which says that the rewrite is complete. With a spare, a backup of the new contents in the
    /// spare and the begin record come first. The `host_sectors` from `host_lba` on, which lie within `target`, are
    /// written with [`Cause::Host`], the other sectors with [`Cause::Cleaning`].
    ///
    /// # Panics
    ///
    /// If a rewrite is open (replayed after a power cut and not repaired), or `target` is larger than the spare.
    pub fn rewrite(&self, plan: &mut Plan, target: Rewrite, host_lba: Lba, host_sectors: Sectors, end: Note) {
        assert!(self.open.is_none(), "invariant 1: a rewrite is open: {:?}", self.open);
        if let Some(spare) = self.spare {
            assert!(target.sectors <= spare.sectors, "{target:?} does not fit into the spare {spare:?}");
            plan.barrier();
            plan.write(Cause::Backup, spare.start, target.lba, target.sectors);
            plan.barrier();
            plan.note((self.begin)(target));
            plan.barrier();
        }
        let host_end = host_lba + host_sectors;
        let parts = [
            (Cause::Cleaning, target.lba, host_lba),
            (Cause::Host, host_lba, host_end),
            (Cause::Cleaning, host_end, target.lba + target.sectors),
        ];
        for (cause, from, to) in parts {
            if from < to {
                plan.write(cause, target.home + (from - target.lba), from, to - from);
            }
        }
        plan.barrier();
        plan.note(end);
    }

    /// Replays the begin record of `target` on a layer of `capacity` logical sectors: the rewrite is open until
    /// [`Rewriter::ended`] or [`Rewriter::repair`].
    ///
    /// # Errors
    ///
    /// There is no spare, or `target` is empty, larger than the spare, or reaches past the capacity. The error is a
    /// text with the reason.
    pub fn replay_begin(&mut self, target: Rewrite, capacity: Sectors) -> Result<(), String> {
        let Rewrite { lba, sectors, .. } = target;
        let Some(spare) = self.spare else { return Err("this layer has no spare to rewrite by".into()) };
        if sectors.is_zero() || sectors > spare.sectors {
            return Err(format!("{} sectors do not fit the spare of {}", sectors.0, spare.sectors.0));
        }
        if lba.0.checked_add(sectors.0).is_none_or(|end| end > capacity.0) {
            return Err(format!("{} sectors from {lba} lie past the capacity of {}", sectors.0, capacity.0));
        }
        self.open = Some(target);
        Ok(())
    }

    /// Closes the open rewrite (begun, but not known to be complete), because its end record was replayed. Has no
    /// effect if none is open.
    pub fn ended(&mut self) {
        self.open = None;
    }

    /// Returns the open rewrite: its begin record was replayed, but not its end record, because a power cut interrupted
    /// it. Returns `None` if there is none.
    pub fn open(&self) -> Option<Rewrite> {
        self.open
    }

    /// Returns the begin record of the open rewrite, for a checkpoint; `None` if no rewrite is open.
    pub fn open_note(&self) -> Option<Note> {
        self.open.map(self.begin)
    }

    /// Appends to `plan` the repair of the open rewrite, and closes it: copies the new contents from the spare to the
    /// place of the run, then writes the record that `end` makes. Does nothing if no rewrite is open.
    pub fn repair(&mut self, plan: &mut Plan, end: impl FnOnce(Rewrite) -> Note) {
        let (Some(target), Some(spare)) = (self.open.take(), self.spare) else { return };
        plan.open(GroupKind::Recovery);
        plan.read(Cause::Recovery, spare.start, target.lba, target.sectors);
        plan.write(Cause::Recovery, target.home, target.lba, target.sectors);
        plan.barrier();
        plan.note(end(target));
    }
}
