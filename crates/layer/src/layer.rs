//! The trait of every translation layer.
//!
//! A layer updates its map while it plans: it assumes that the plan will be executed. A power cut destroys the layer in
//! memory. A new layer is then built with the same parameters and is given the durable records in order
//! ([`Layer::replay`]). Finally the new layer is asked for a plan that completes or undoes the work that the cut
//! interrupted ([`Layer::repair`]).
//!
//! Invariants that hold for every layer, each with a test that runs over the whole registry:
//! 1. At every barrier each live sector is intact where recovery would find it. Layers with `safety=paper` are
//!    excepted, and say so. For a host-managed layer, sectors that a command of the host destroyed are excepted.
//! 2. Acknowledged writes survive. A sector with a write in flight reads as the old or the new value, never as a third.
//! 3. [`Layer::lookup`] covers exactly the requested sectors, in order, without overlap.
//! 4. A layer that keeps trims reads trimmed sectors as absent; a layer that does not keeps their old contents.

use std::ops::Range;

use imbrex_disk::{Command, Lba, Pba, Sectors, SimDuration};

use crate::plan::note::{Note, ReplayError};
use crate::plan::{Medium, Plan};
use crate::violation::Violation;
use crate::zones::Zones;

/// A run of logical sectors that lie next to each other on a medium, or are trimmed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Piece {
    /// First logical sector.
    pub lba: Lba,
    /// Number of sectors of the run.
    pub sectors: Sectors,
    /// The medium and the first physical sector; `None` if the sectors are trimmed.
    pub at: Option<(Medium, Pba)>,
}

/// The size of a layer's map, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MapMemory {
    /// Bytes that a controller would need, by the formula of the paper that describes the layer.
    pub formula_bytes: u64,
    /// Bytes that the structures of this program take now.
    pub measured_bytes: u64,
}

/// A place where a layer keeps data temporarily, before it writes them to their final place: a cache region, a journal,
/// a buffer. The live page and `imbrex drive info` show all caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cache {
    /// The medium that the cache is on.
    pub medium: Medium,
    /// First sector of the cache.
    pub start: Pba,
    /// One past the last sector of the cache.
    pub end: Pba,
    /// Sectors that were written and not freed yet, whether their data are live or not.
    pub used: Sectors,
    /// Maximum number of sectors in use at a time: less than the length of the cache where guards or headers take a
    /// part.
    pub size: Sectors,
}

/// How soon the command of a hint ([`Layer::prefetch`]) will arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrefetchHint {
    /// The command is the next one.
    Next,
    /// Other commands come first. Reading a pointer that is not in the processor's cache yet would cost a wait now. So
    /// a layer should only prefetch that pointer; the memory to which the pointer leads can be prefetched when the
    /// command is the next one.
    Later,
}

/// When a layer may do background work, in the host's idle time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Background {
    /// Time without host commands before background work starts.
    pub idle_after: SimDuration,
    /// Time between two phases of background work, once it has started.
    pub rest: SimDuration,
}

/// A translation layer: it maps logical sectors to physical ones, and plans the reads and writes on the medium for
/// every command.
///
/// A layer keeps a map and makes [`Plan`]s; it knows neither time nor bytes. The engine times the plans, the store of
/// an image executes them, and the checker proves that they lose nothing.
pub trait Layer: Send {
    /// Returns the layer's name in the registry.
    fn name(&self) -> &'static str;

    /// Returns the layer's capacity in logical sectors.
    fn capacity(&self) -> Sectors;

    /// Appends the steps that serve `commands` to `plan`: one command, or several that [`Layer::joins`] accepted, in
    /// order of arrival. All commands lie within the capacity. The plan may also contain overdue background work, in
    /// groups of its own.
    fn plan(&mut self, commands: &[Command], plan: &mut Plan);

    /// Takes the hint that a command which begins at `lba` will come; `lba` may lie past the capacity. A layer may make
    /// the processor prefetch the part of the map that the command will need ([`crate::map::prefetch`]). The hint has
    /// no other effect.
    fn prefetch(&self, _lba: Lba, _coming: PrefetchHint) {}

    /// Returns whether the waiting command `candidate` may be served in one operation with the commands `chosen`.
    fn joins(&self, _chosen: &[Command], _candidate: &Command) -> bool {
        false
    }

    /// Returns the range of LBAs in which commands must begin to join an operation that serves `first`; empty if none
    /// can join. This hint spares the engine asking [`Layer::joins`] about every waiting command.
    fn joinable(&self, _first: &Command) -> Range<Lba> {
        Lba(0)..Lba(0)
    }

    /// Returns the LBA at which the volatile cache should stop writing back sequential writes that it gathered from
    /// `first` to `end`. The rest is cheaper to write later, together with sectors that may follow it, up to the end of
    /// a band, for example. `None` means that all of it should be written.
    fn stream_cut(&self, _first: Lba, _end: Lba) -> Option<Lba> {
        None
    }

    /// Returns whether the layer migrates data in pseudo-tracks, which need not begin at the start of a track. The
    /// `half` rotation model then adds half a rotation to each pseudo-track (Hajkazemi 2019 §2.4).
    fn moves_pseudo_tracks(&self) -> bool {
        false
    }

    /// Returns when the engine should call [`Layer::idle`]; `None` if the layer does nothing in the background.
    fn background(&self) -> Option<Background> {
        None
    }

    /// Appends the next phase of background work to the plan. Returns `false`, and appends nothing, when there is none
    /// to do.
    fn idle(&mut self, _plan: &mut Plan) -> bool {
        false
    }

    /// Appends to `pieces` the places where a read would find the `sectors` from `lba`, in order.
    fn lookup(&self, lba: Lba, sectors: Sectors, pieces: &mut Vec<Piece>);

    /// Returns whether the host has to avoid writes that destroy data it still needs. The host-managed drive reports
    /// the rule to the host. The layer destroys nothing of its own accord, and a sector that a command of the host
    /// destroyed reads as an error.
    fn is_host_managed(&self) -> bool {
        false
    }

    /// Returns whether no power cut can lose live sectors. It is false for some layers with `safety=paper`, whose steps
    /// are those of their paper alone.
    fn is_power_safe(&self) -> bool {
        true
    }

    /// Returns the layer's zones with their write pointers, or `None` if the layer has no zones.
    fn zones(&self) -> Option<&Zones> {
        None
    }

    /// Returns the layer's zones for changes: the host opens, closes, finishes and resets them.
    fn zones_mut(&mut self) -> Option<&mut Zones> {
        None
    }

    /// Returns whether the layer remembers which sectors are trimmed, so that they read as absent. If not, trimmed
    /// sectors keep their contents.
    fn keeps_trims(&self) -> bool;

    /// Checks the numbered invariants in the header of the layer's file. An error names the broken invariant.
    fn self_check(&self) -> Result<(), Violation>;

    /// Returns the size of the layer's map.
    fn memory(&self) -> MapMemory;

    /// Calls `each` with every cache of the layer, so that its fill level can be shown.
    fn caches(&self, _each: &mut dyn FnMut(Cache)) {}

    /// Appends records that rebuild the present map when they are replayed into a new layer.
    fn checkpoint(&self, notes: &mut Vec<Note>);

    /// Applies one record of the journal after a restart. The caller passes every durable record once, in the order in
    /// which the records were written. An error means that the record cannot follow the records before it.
    fn replay(&mut self, note: &Note) -> Result<(), ReplayError>;

    /// Appends to the plan the steps that complete or undo the work that a power cut interrupted. Called after the last
    /// record was replayed.
    fn repair(&mut self, _plan: &mut Plan) {}
}
