//! The plan: the reads, writes, journal records and barriers of a piece of work on the medium, as a list of small
//! values. Every layer produces plans.
//!
//! ```text
//!   Plan ─ groups ─ phases ─ steps
//!          │        │        └ Read · Write · Drop · Note · Barrier
//!          │        └ no host command enters a phase
//!          └ staging lives as long as a group; a background group's phases may be interrupted by host commands
//! ```
//!
//! Staging is keyed by LBA. A data step that reads stages the sectors under their LBAs, and a later read overlays an
//! earlier one. In a [`GroupKind::Host`] group the host's own data overlay both. `Drop` stages absence, so that a merge
//! does not restore trimmed data. A data step that writes takes the sectors that are staged under its LBAs; sectors
//! that are not staged are absent and read as zeros. So the merge of a band with its cached blocks is: read the band,
//! read the cached pieces, write the band.
//!
//! Invariants:
//! 1. Only [`Kind::Data`] steps hold logical sectors. The steps of other kinds are timed, and their bytes are made from
//!    the notes.
//! 2. A `Barrier` makes all steps before it durable before any step after it. A `Note` is durable at the first barrier
//!    after it, or sooner. A layer that needs "data before its note" puts a barrier between them.
//! 3. Steps that continue each other on the medium in one direction count as one access, whatever their LBAs.
//! 4. A plan reuses its buffers: [`Plan::clear`] keeps the capacity.

pub mod note;
pub mod reason;
pub mod record;

use std::fmt;

use imbrex_disk::{Extent, Lba, Pba, Sectors};

use self::note::Note;
use self::reason::Reason;

/// The operation of a step of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum StepOp {
    /// Reads the step's `sectors` from `pba` on. Data are staged (kept in memory for later writes of the group) under
    /// the LBAs from `lba` on.
    Read,
    /// Writes the step's `sectors` from `pba` on. Data are those that are staged under the LBAs from `lba` on; sectors
    /// without staged data become absent, and read as zeros.
    Write,
    /// Stages the step's `sectors` from `lba` on as absent (trimmed), in memory only. No medium is accessed.
    Drop,
    /// Appends a record to the journal: the record at the index in [`Plan::notes`] that the field `pba` of the step
    /// holds.
    Note,
    /// Makes all earlier steps durable before any later step is executed.
    Barrier,
}

/// The medium that a step is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Medium {
    /// The platters.
    Disk,
    /// The flash memory of a hybrid drive, which has it beside its platters. It has sector numbers of its own.
    Flash,
}

/// The contents of a step's sectors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Logical sectors of the host.
    Data,
    /// Mapping records that a layer writes next to the data of a journal packet, in sectors of their own.
    OutOfBand,
    /// Filler without data: sectors over which the head has to pass, or that have to be overwritten.
    Padding,
    /// A piece of the mapping table.
    Map,
    /// A checkpoint of the mapping table.
    Checkpoint,
}

/// The reason for a step. Results split the sectors read and written by cause.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Cause {
    /// A command of the host reads, writes or trims these sectors.
    Host,
    /// Reclaims space in a cache or log, or moves data back to their home place.
    Cleaning,
    /// Copies data to a safe place before a rewrite that endangers them.
    Backup,
    /// Moves data to a place at which they are cheaper to write.
    Migration,
    /// Writes journal packets or updates of the mapping table.
    Journal,
    /// Repairs the data after a power cut.
    Recovery,
}

impl Cause {
    /// All causes, in declaration order.
    pub const ALL: [Cause; 6] =
        [Cause::Host, Cause::Cleaning, Cause::Backup, Cause::Migration, Cause::Journal, Cause::Recovery];

    /// Returns the name of the cause in results: `host`, `cleaning`, `backup`, `migration`, `journal` or `recovery`.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Host => "host",
            Cause::Cleaning => "cleaning",
            Cause::Backup => "backup",
            Cause::Migration => "migration",
            Cause::Journal => "journal",
            Cause::Recovery => "recovery",
        }
    }
}

/// One step of a plan: an access to a medium, a drop, a journal record or a barrier. A step takes only 24 bytes,
/// because plans have millions of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step {
    /// The operation of the step: a read, a write, a drop (trimming), a journal record or a barrier.
    pub op: StepOp,
    /// The medium that the step reads or writes. Without meaning for other steps, which have [`Medium::Disk`].
    pub medium: Medium,
    /// The contents of the sectors that the step reads or writes: the host's data, or a kind of a layer's own data. A
    /// drop has [`Kind::Data`]; without meaning for a note and a barrier.
    pub kind: Kind,
    /// The reason for the step, by which results count the sectors. A note and a barrier always have
    /// [`Cause::Journal`].
    pub cause: Cause,
    /// Number of sectors that the step reads, writes or drops; 0 for a note and a barrier.
    pub sectors: u32,
    /// First physical sector of a read or write. For a note: the index of the record in [`Plan::notes`]. For a drop and
    /// a barrier: 0.
    pub pba: Pba,
    /// First logical sector, if `kind` is [`Kind::Data`]; otherwise unused.
    pub lba: Lba,
}

impl Step {
    /// Returns the physical sectors that the step reads or writes. The result has no meaning for other steps.
    pub fn extent(&self) -> Extent {
        Extent::new(self.pba, Sectors(self.sectors as u64))
    }

    /// Returns whether the step is a read or a write, which moves the head or uses the flash.
    pub fn is_access(&self) -> bool {
        matches!(self.op, StepOp::Read | StepOp::Write)
    }

    /// Returns whether the step begins at the physical sector after the last one of `earlier`, with the same operation
    /// on the same medium. Kind, cause and LBA may differ. The result has a meaning only for reads and writes.
    pub fn continues(&self, earlier: &Step) -> bool {
        self.op == earlier.op && self.medium == earlier.medium && self.pba.0 == earlier.pba.0 + earlier.sectors as u64
    }
}

/// The purpose of a group of phases.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum GroupKind {
    /// Serves the commands that were given to [`crate::Layer::plan`]. In this group the host's data of these commands
    /// take the place of staged data of the same LBAs.
    Host,
    /// Reclaims space in a cache or log. Each group of this kind is one cleaning event. Holds no data of host commands.
    Cleaning,
    /// Moves data to a place at which they are cheaper to write. Holds no data of host commands.
    Migration,
    /// Repairs the data after a power cut. Holds no data of host commands.
    Recovery,
}

/// A sequence of steps of one group between which no command of the host is served. Between two phases of a background
/// group, commands may be served.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Phase {
    /// The purpose of the phase's group: serving the host, cleaning, migration or recovery.
    pub kind: GroupKind,
    /// Whether the phase opens a new group, which begins with no staged data. If `false`, the phase continues the group
    /// that was opened last and keeps its staged data; an earlier plan may have opened that group.
    pub opens_group: bool,
    /// Index of the phase's first step in [`Plan::steps`].
    pub first_step: u32,
    /// The reason of a phase of the layer's own work. `None` if the phase serves the host, or completes a repair.
    pub reason: Option<Reason>,
}

/// A list of steps to execute on the media, with the phases into which they are divided and the journal records that
/// they append.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The phases, in order; each ends where the next begins, and the last ends with the last step.
    pub phases: Vec<Phase>,
    /// The journal records, to which steps with [`StepOp::Note`] refer by index.
    pub notes: Vec<Note>,
}

impl Plan {
    /// Returns an empty plan.
    pub fn new() -> Plan {
        Plan::default()
    }

    /// Removes all steps, phases and records, and keeps the allocated memory for the next plan.
    pub fn clear(&mut self) {
        self.steps.clear();
        self.phases.clear();
        self.notes.clear();
    }

    /// Returns whether the plan has no steps. It may have phases.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Begins a new group of phases of this kind, and its first phase. No data are staged (kept in memory for later
    /// writes of the group) yet. Later steps belong to that phase.
    #[inline]
    pub fn open(&mut self, kind: GroupKind) {
        self.push_phase(kind, true);
    }

    /// Begins the next phase of the group of phases that was opened last, perhaps by an earlier plan. Data that the
    /// group has in memory stay there. `kind` must be the kind of that group; this is not checked.
    #[inline]
    pub fn next_phase(&mut self, kind: GroupKind) {
        self.push_phase(kind, false);
    }

    #[inline]
    fn push_phase(&mut self, kind: GroupKind, opens_group: bool) {
        self.phases.push(Phase { kind, opens_group, first_step: self.steps.len() as u32, reason: None });
    }

    /// Sets the reason of the phase that was begun last: the part of the drive that is cleaned, and the event that made
    /// that necessary.
    ///
    /// # Panics
    ///
    /// If no phase was begun.
    #[inline]
    pub fn because(&mut self, reason: Reason) {
        self.phases.last_mut().expect("a reason needs a phase").reason = Some(reason);
    }

    /// Appends a read of data from the platters: the `sectors` from `pba` on are read and kept in memory, as the
    /// contents of the LBAs from `lba` on, for later writes of the group.
    ///
    /// # Panics
    ///
    /// If no phase was begun, or `sectors` is 0 or more than `u32::MAX`.
    #[inline]
    pub fn read(&mut self, cause: Cause, pba: Pba, lba: Lba, sectors: Sectors) {
        self.access(StepOp::Read, Medium::Disk, Kind::Data, cause, pba, lba, sectors);
    }

    /// Appends a write of data to the platters: the contents of the LBAs from `lba` on, which the group's reads, drops
    /// and host commands put into memory, are written to the `sectors` from `pba` on. Sectors without contents in
    /// memory become absent, and read as zeros.
    ///
    /// # Panics
    ///
    /// If no phase was begun, or `sectors` is 0 or more than `u32::MAX`.
    #[inline]
    pub fn write(&mut self, cause: Cause, pba: Pba, lba: Lba, sectors: Sectors) {
        self.access(StepOp::Write, Medium::Disk, Kind::Data, cause, pba, lba, sectors);
    }

    /// Appends a read, write or drop with every field of the step given.
    ///
    /// # Panics
    ///
    /// If no phase was begun, or `sectors` is 0 or more than `u32::MAX`.
    #[inline]
    #[allow(clippy::too_many_arguments)] // a step has seven fields; the shorter forms above serve most callers
    pub fn access(
        &mut self,
        op: StepOp,
        medium: Medium,
        kind: Kind,
        cause: Cause,
        pba: Pba,
        lba: Lba,
        sectors: Sectors,
    ) {
        assert!(!self.phases.is_empty(), "a step needs a phase: open a group first");
        assert!(sectors.0 > 0 && sectors.0 <= u32::MAX as u64, "an access of {} sectors at {pba}, {lba}", sectors.0);
        self.steps.push(Step { op, medium, kind, cause, sectors: sectors.0 as u32, pba, lba });
    }

    /// Appends a drop: in memory the contents of the `sectors` from `lba` on become absent (trimmed), so that later
    /// writes of the group write them as absent. No medium is accessed.
    ///
    /// # Panics
    ///
    /// If no phase was begun, or `sectors` is 0 or more than `u32::MAX`.
    pub fn drop_sectors(&mut self, cause: Cause, lba: Lba, sectors: Sectors) {
        self.access(StepOp::Drop, Medium::Disk, Kind::Data, cause, Pba(0), lba, sectors);
    }

    /// Appends a step that writes the record `note` to the layer's journal. The record is durable after the next
    /// barrier, or sooner.
    #[inline]
    pub fn note(&mut self, note: Note) {
        let index = self.notes.len() as u64;
        self.notes.push(note);
        self.marker(StepOp::Note, Pba(index));
    }

    /// Appends a barrier: all steps before it, also those of earlier plans, become durable before any step after it is
    /// executed. Does nothing if the last step of this plan is a barrier.
    #[inline]
    pub fn barrier(&mut self) {
        if self.steps.last().is_none_or(|step| step.op != StepOp::Barrier) {
            self.marker(StepOp::Barrier, Pba(0));
        }
    }

    #[inline]
    fn marker(&mut self, op: StepOp, pba: Pba) {
        let step =
            Step { op, medium: Medium::Disk, kind: Kind::Map, cause: Cause::Journal, sectors: 0, pba, lba: Lba(0) };
        self.steps.push(step);
    }

    /// Returns the journal record that a step of this plan appends.
    ///
    /// # Panics
    ///
    /// If the operation of the step is not [`StepOp::Note`].
    pub fn note_of(&self, step: &Step) -> &Note {
        assert_eq!(step.op, StepOp::Note, "only note steps name a record");
        &self.notes[step.pba.0 as usize]
    }

    /// Returns the steps of the phase at `index` in [`Plan::phases`], counted from 0.
    ///
    /// # Panics
    ///
    /// If there is no such phase.
    #[inline]
    pub fn steps_of(&self, index: usize) -> &[Step] {
        let first = self.phases[index].first_step as usize;
        let end = self.phases.get(index + 1).map_or(self.steps.len(), |next| next.first_step as usize);
        &self.steps[first..end]
    }
}

impl fmt::Debug for Step {
    /// Writes one line that a person can compare: `write cleaning data pba 0+50 lba 100`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cause = self.cause.name();
        let flash = if self.medium == Medium::Flash { " flash" } else { "" };
        match (self.op, self.kind) {
            (StepOp::Barrier, _) => write!(f, "barrier"),
            (StepOp::Note, _) => write!(f, "note {}", self.pba.0),
            (StepOp::Drop, _) => write!(f, "drop {cause} lba {}+{}", self.lba.0, self.sectors),
            (op, Kind::Data) => {
                let verb = if op == StepOp::Read { "read" } else { "write" };
                write!(f, "{verb} {cause}{flash} pba {}+{} lba {}", self.pba.0, self.sectors, self.lba.0)
            }
            (op, kind) => {
                let verb = if op == StepOp::Read { "read" } else { "write" };
                write!(f, "{verb} {cause}{flash} {kind:?} pba {}+{}", self.pba.0, self.sectors)
            }
        }
    }
}

impl fmt::Debug for Plan {
    /// Writes the form that tests compare: a line for each phase and each step, with the journal records of notes
    /// written out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, phase) in self.phases.iter().enumerate() {
            let opens = if phase.opens_group { "group" } else { "phase" };
            writeln!(f, "{opens} {:?}", phase.kind)?;
            for step in self.steps_of(index) {
                match step.op {
                    StepOp::Note => writeln!(f, "  note {:?}", self.note_of(step))?,
                    _ => writeln!(f, "  {step:?}")?,
                }
            }
        }
        Ok(())
    }
}
