//! What a layer of an interlaced disk adds to the common parts: where data lies, which tracks to move, and its records.

use imbrex_disk::{Lba, Pba};

use super::heat::HeatLog;
use super::home::Home;
use super::moves::Transfers;
use super::run::{Track, TrackRun};
use crate::layer::Cache;
use crate::plan::Plan;
use crate::plan::note::{Note, ReplayError};
use crate::violation::Violation;

/// What one kind of interlaced layer knows: where it puts data, and which data it moves.
pub trait Translation: Send + 'static {
    /// A background move.
    type Move: Copy + PartialEq + std::fmt::Debug + Send;

    /// The layer's name in the registry.
    fn name(&self) -> &'static str;

    /// The longest run on one track that holds `lba`.
    fn run_of(&self, home: &Home, lba: Lba) -> TrackRun;

    /// The longest run that lies on a track around its sector `sector`, or the first after it if no data lies there; none
    /// if none lies from there to the end of the track.
    fn run_at(&self, home: &Home, track: &Track, sector: u32) -> Option<TrackRun>;

    /// Under which key a write of `run` is counted.
    #[inline]
    fn heat(&self, run: &TrackRun) -> u32 {
        run.heat
    }

    /// Whether there are moves at all: if not, nothing is counted.
    fn moves(&self) -> bool {
        true
    }

    /// Chooses moves from the sorted counts of an interval, in the order in which they are to be made.
    fn select(&mut self, _home: &Home, _heat: &HeatLog, _moves: &mut Vec<Self::Move>) {}

    /// Says what is to be copied for a move; `false` if it makes no sense (any more).
    fn prepare(&self, _home: &Home, _chosen: Self::Move, _transfers: &mut Transfers) -> bool {
        false
    }

    /// Phase 2 of `chosen` is planned: everything is copied but the data that is written late, which lies in the backup region from
    /// `backup` on. Changes the map and notes it.
    fn displace(&mut self, _home: &Home, _chosen: Self::Move, _backup: Pba, _plan: &mut Plan) {
        unreachable!("only moves with late transfers displace data")
    }

    /// Everything of `chosen` is copied: changes the map and notes it. The note ends the backup record of the move.
    fn commit(&mut self, _home: &Home, _chosen: Self::Move, _plan: &mut Plan) {
        unreachable!("a layer that moves nothing has nothing to commit")
    }

    /// Takes a note of [`Translation::displace`] or [`Translation::commit`]; says whether it ends the record of the move.
    fn replay(&mut self, _home: &Home, note: &Note) -> Result<bool, ReplayError> {
        Err(ReplayError { note: *note, reason: "this layer has no such record".into() })
    }

    /// Completes what a cut left displaced, in a recovery group of its own; says whether anything was.
    fn finish_displaced(&mut self, _home: &Home, _plan: &mut Plan) -> bool {
        false
    }

    /// Appends records that rebuild the map; those of displaced data come last.
    fn checkpoint(&self, _notes: &mut Vec<Note>) {}

    /// Calls `each` with its caches, if it has any.
    fn caches(&self, _home: &Home, _each: &mut dyn FnMut(Cache)) {}

    /// Checks the numbered invariants that stand in the header of its file; an error names the one that is broken.
    fn self_check(&self, _home: &Home) -> Result<(), Violation> {
        Ok(())
    }

    /// Whether it moves pseudo-tracks, which need not begin where a track does.
    fn moves_pseudo_tracks(&self) -> bool {
        false
    }

    /// Bytes of its map by the paper's formula, for a disk of so many tracks.
    fn formula_bytes(&self, _tracks: u64) -> u64 {
        0
    }

    /// Bytes of its map as it is.
    fn measured_bytes(&self) -> u64 {
        0
    }
}
