//! The interface between a layer of an interlaced disk and the common parts: the placement of data, the choice of
//! moves, and the layer's records.

use imbrex_disk::{Lba, Pba};

use super::heat::HeatLog;
use super::home::Home;
use super::moves::Transfers;
use super::run::{Track, TrackRun};
use crate::layer::Cache;
use crate::plan::Plan;
use crate::plan::note::{Note, ReplayError};
use crate::violation::Violation;

/// One kind of interlaced layer: it places data and chooses the data to move.
pub trait Translation: Send + 'static {
    /// A background move.
    type Move: Copy + PartialEq + std::fmt::Debug + Send;

    /// Returns the layer's name in the registry.
    fn name(&self) -> &'static str;

    /// Returns whether no power cut during a move can lose live sectors: see
    /// [`Layer::is_power_safe`](crate::Layer::is_power_safe).
    fn is_power_safe(&self) -> bool {
        true
    }

    /// Returns the longest run on one track that contains `lba`.
    fn run_of(&self, home: &Home, lba: Lba) -> TrackRun;

    /// Returns the longest run of data around `sector` on a track. If no data lies there, returns the first run after
    /// it; `None` if there is none up to the end of the track.
    fn run_at(&self, home: &Home, track: &Track, sector: u32) -> Option<TrackRun>;

    /// Returns the heat key under which a write of `run` is counted.
    #[inline]
    fn heat(&self, run: &TrackRun) -> u32 {
        run.heat
    }

    /// Returns whether the layer moves data at all. If not, no writes are counted.
    fn moves(&self) -> bool {
        true
    }

    /// Chooses moves from the sorted counts of an interval, in the order in which they are to be made.
    fn select(&mut self, _home: &Home, _heat: &HeatLog, _moves: &mut Vec<Self::Move>) {}

    /// Adds the runs to be copied for a move to `transfers`. Returns `false` if the move is not, or no longer, sensible.
    fn prepare(&self, _home: &Home, _chosen: Self::Move, _transfers: &mut Transfers) -> bool {
        false
    }

    /// Records phase 2 of `chosen`: changes the map and plans a note. All runs are copied except late ones, which lie
    /// in the backup region from `backup` on.
    fn displace(&mut self, _home: &Home, _chosen: Self::Move, _backup: Pba, _plan: &mut Plan) {
        unreachable!("only moves with late transfers displace data")
    }

    /// Records the end of `chosen`, whose runs are all copied: changes the map and plans a note. The note also ends the
    /// backup record of the move.
    fn commit(&mut self, _home: &Home, _chosen: Self::Move, _plan: &mut Plan) {
        unreachable!("a layer that moves nothing has nothing to commit")
    }

    /// Replays a note of [`Translation::displace`] or [`Translation::commit`]. Returns whether the note ends the backup
    /// record of the move.
    fn replay(&mut self, _home: &Home, note: &Note) -> Result<bool, ReplayError> {
        Err(ReplayError { note: *note, reason: "this layer has no such record".into() })
    }

    /// Plans phase 3 of a move that a cut left displaced, in a recovery group of its own. Returns whether there was one.
    fn finish_displaced(&mut self, _home: &Home, _plan: &mut Plan) -> bool {
        false
    }

    /// Appends records that rebuild the map; those of displaced data come last.
    fn checkpoint(&self, _notes: &mut Vec<Note>) {}

    /// Calls `each` with each cache of the layer.
    fn caches(&self, _home: &Home, _each: &mut dyn FnMut(Cache)) {}

    /// Checks the numbered invariants in the header of the layer's file. An error names the one that is broken.
    fn self_check(&self, _home: &Home) -> Result<(), Violation> {
        Ok(())
    }

    /// Returns whether the layer moves pseudo-tracks, which need not begin where a track does.
    fn moves_pseudo_tracks(&self) -> bool {
        false
    }

    /// Returns the bytes of the map by the paper's formula, for a disk of `tracks` tracks.
    fn formula_bytes(&self, _tracks: u64) -> u64 {
        0
    }

    /// Returns the bytes of memory that the map takes now.
    fn measured_bytes(&self) -> u64 {
        0
    }
}
