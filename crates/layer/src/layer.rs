//! The trait of every translation layer.
//!
//! A layer updates its map when it plans: it takes for granted that the plan is carried out. After a power cut the
//! layer in memory is gone; a new one is built with the same parameters, given the durable records in order
//! ([`Layer::replay`]), and asked for a plan that completes or undoes what the cut interrupted ([`Layer::repair`]).
//!
//! Invariants that hold for every layer, each with a test that runs over the whole registry:
//! 1. At every barrier each live sector is intact where recovery would find it (`safety=paper` excepted, and said so; of
//!    a host-managed layer those sectors excepted that a command of the host destroyed).
//! 2. What a plan acknowledged survives; what was in flight reads as the old or the new value, never as a third.
//! 3. [`Layer::lookup`] covers exactly the sectors asked for, in order, without overlap.
//! 4. A layer that trims reads trimmed sectors as absent; one that does not keeps their old contents.

use std::ops::Range;

use imbrex_disk::{Command, Lba, Pba, Sectors, SimDuration};

use crate::plan::note::{Note, ReplayError};
use crate::plan::{Medium, Plan};
use crate::violation::Violation;
use crate::zones::Zones;

/// Where a run of logical sectors lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Piece {
    /// First logical sector.
    pub lba: Lba,
    /// How many sectors.
    pub sectors: Sectors,
    /// The medium and the first physical sector; `None` if they are trimmed.
    pub at: Option<(Medium, Pba)>,
}

/// The size of a layer's map, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MapMemory {
    /// What a controller would need, by the formula of the paper that describes the layer.
    pub formula_bytes: u64,
    /// What the structures of this program take now.
    pub measured_bytes: u64,
}

/// A place where a layer keeps data for a time, until it writes them to where they belong: a cache region, a journal, a buffer.
/// Shown by the live page and by `imbrex drive info`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cache {
    /// The medium that it is on.
    pub medium: Medium,
    /// Its first sector.
    pub start: Pba,
    /// One past its last sector.
    pub end: Pba,
    /// Sectors that were written and not freed yet, whether their data are live or not.
    pub used: Sectors,
    /// The most sectors that can be in use at a time: less than its length where guards or headers take a part.
    pub size: Sectors,
}

/// How soon a command comes that a layer is told of in advance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coming {
    /// As the next.
    Next,
    /// After others. What is not in a cache yet is better not looked at now: what lies behind it can be fetched when the command
    /// is the next.
    Later,
}

/// When a layer may work without being asked: in idle time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Background {
    /// Time without host commands before it starts.
    pub idle_after: SimDuration,
    /// How long it rests before its next phase, once it has started.
    pub rest: SimDuration,
}

/// A translation layer: it maps logical sectors to physical ones, and plans what every command does on the medium.
///
/// A layer keeps a map and makes [`Plan`]s; it never sees time or bytes. The engine times its plans, the store of an image carries
/// them out, and the checker proves that they lose nothing.
pub trait Layer: Send {
    /// Its name in the registry.
    fn name(&self) -> &'static str;

    /// Logical sectors it offers.
    fn capacity(&self) -> Sectors;

    /// Appends to `plan` what serves `commands`: one, or several that [`Layer::joins`] accepted, in order of arrival.
    /// All lie within the capacity. Overdue background work may be part of it, in groups of its own.
    fn plan(&mut self, commands: &[Command], plan: &mut Plan);

    /// A hint: a command that begins at `lba`, within the capacity or past it, will come. A layer may have the processor fetch what
    /// of its map that will need ([`crate::map::prefetch`]); nothing else follows.
    fn foresee(&self, _lba: Lba, _coming: Coming) {}

    /// Whether `candidate`, waiting in the queue, may be served in one operation with `chosen`.
    fn joins(&self, _chosen: &[Command], _candidate: &Command) -> bool {
        false
    }

    /// A hint that spares the engine asking [`Layer::joins`] about every waiting command: only commands that begin within these
    /// sectors can join an operation that serves `first`. Empty if none can.
    fn joinable(&self, _first: &Command) -> Range<Lba> {
        Lba(0)..Lba(0)
    }

    /// Where the volatile cache, which has gathered sequential writes from `first` to `end`, should stop writing back: the rest is
    /// cheaper to write later, together with what may follow it (up to the end of a band, say). `None`: write all of it.
    fn stream_cut(&self, _first: Lba, _end: Lba) -> Option<Lba> {
        None
    }

    /// Whether the data that it migrates are pseudo-tracks, which need not begin where a track does: the `half` rotation model then
    /// adds half a rotation to each (Hajkazemi 2019 §2.4).
    fn moves_pseudo_tracks(&self) -> bool {
        false
    }

    /// When it wants [`Layer::idle`] to be called; `None` if it does nothing in the background.
    fn background(&self) -> Option<Background> {
        None
    }

    /// Appends the next phase of background work to the plan; returns `false`, and appends nothing, when there is none to do.
    fn idle(&mut self, _plan: &mut Plan) -> bool {
        false
    }

    /// Appends to `pieces` where `sectors` from `lba` lie now, in order: where a read would go.
    fn lookup(&self, lba: Lba, sectors: Sectors, pieces: &mut Vec<Piece>);

    /// Whether what writes destroy is the host's business: such a drive tells its host the rule, and the host alone knows
    /// what it still wants. Its layer destroys nothing of its own accord, and a sector that a command of the host destroyed
    /// reads as an error.
    fn is_host_managed(&self) -> bool {
        false
    }

    /// Its zones with their write pointers, if it has any.
    fn zones(&self) -> Option<&Zones> {
        None
    }

    /// Its zones, to be opened, closed, finished and reset on behalf of a host.
    fn zones_mut(&mut self) -> Option<&mut Zones> {
        None
    }

    /// Whether it remembers which sectors are trimmed, so that they read as absent. If not, trimmed sectors keep their contents.
    fn keeps_trims(&self) -> bool;

    /// Checks the numbered invariants that stand in the header of its file; an error names the one that is broken.
    fn self_check(&self) -> Result<(), Violation>;

    /// How large its map is.
    fn memory(&self) -> MapMemory;

    /// Calls `each` with every cache it has, so that they can be shown with how full they are.
    fn caches(&self, _each: &mut dyn FnMut(Cache)) {}

    /// Appends records that rebuild the present map when replayed into a fresh layer.
    fn checkpoint(&self, notes: &mut Vec<Note>);

    /// Takes back one record of the journal after a restart; called once for each durable record, in the order in which they were
    /// written. An error means that the record cannot follow those before it.
    fn replay(&mut self, note: &Note) -> Result<(), ReplayError>;

    /// Called after the last record was replayed: appends to the plan what completes or undoes the work that a power cut
    /// interrupted.
    fn repair(&mut self, _plan: &mut Plan) {}
}
