//! Activity: what was last done where on the surfaces, coarse enough to draw: for each surface and each of a few hundred
//! radial bins the cause of the latest write, and when the head was there.
//!
//! Invariants:
//! 1. Only what moves is counted: a drive at rest keeps its picture.

use imbrex_disk::{Geometry, SharedDisk, SimTime};
use imbrex_layer::{Cause, Medium, Plan, StepOp};

/// Radial bins of a surface.
pub const BINS: usize = 240;

/// What is known of a bin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bin {
    /// Cause of the latest write, if there was one.
    pub written: Option<Cause>,
    /// When it was last written.
    pub written_at: SimTime,
    /// When it was last read.
    pub read_at: SimTime,
}

/// The picture.
#[derive(Clone, Debug)]
pub struct Activity {
    disk: SharedDisk,
    surfaces: Vec<Vec<Bin>>,
    /// Sectors written so far, by cause.
    pub written_sectors: [u64; Cause::ALL.len()],
}

impl Activity {
    /// A blank picture of `disk`.
    pub fn new(disk: SharedDisk) -> Activity {
        let surfaces = disk.geometry.surfaces() as usize;
        Activity { surfaces: vec![vec![Bin::default(); BINS]; surfaces], disk, written_sectors: Default::default() }
    }

    /// The bins of every surface, from the outer diameter inward.
    pub fn surfaces(&self) -> &[Vec<Bin>] {
        &self.surfaces
    }

    /// The bin of a radial track.
    pub fn bin(geometry: &Geometry, radial_track: u32) -> usize {
        (u64::from(radial_track) * BINS as u64 / u64::from(geometry.radial_tracks().max(1))) as usize
    }

    /// Takes in what `plan` does at `now`.
    pub fn see(&mut self, plan: &Plan, now: SimTime) {
        let geometry = &self.disk.geometry;
        for step in plan.steps.iter().filter(|step| step.is_access() && step.medium == Medium::Disk) {
            let is_write = step.op == StepOp::Write;
            if is_write {
                self.written_sectors[step.cause as usize] += u64::from(step.sectors);
            }
            for piece in geometry.tracks(step.extent()) {
                let place = piece.place;
                let bin = &mut self.surfaces[place.surface as usize][Activity::bin(geometry, place.radial_track)];
                if is_write {
                    (bin.written, bin.written_at) = (Some(step.cause), now);
                } else {
                    bin.read_at = now;
                }
            }
        }
    }
}
