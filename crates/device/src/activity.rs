//! Activity of the drive by place, for drawing. For each surface and each of [`BINS`] radial bins: the cause of the
//! latest write, and the times of the latest write and the latest read.
//!
//! Invariants:
//! 1. Only accesses to the medium change the record; an idle drive leaves it unchanged.

use imbrex_disk::{Geometry, SharedDisk, SimTime};
use imbrex_layer::{Cause, Medium, Plan, StepOp};

/// Number of radial bins into which the tracks of each surface are divided, from the outer to the inner diameter.
pub const BINS: usize = 240;

/// Latest write and latest read in one radial bin of one surface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bin {
    /// Cause of the latest write to this radial bin of one surface; `None` if there was no write.
    pub written: Option<Cause>,
    /// Simulated time at which the plan with the latest write to this radial bin of one surface was recorded; zero if
    /// there was no write.
    pub written_at: SimTime,
    /// Simulated time at which the plan with the latest read from this radial bin of one surface was recorded; zero if
    /// there was no read.
    pub read_at: SimTime,
}

/// Latest activity in every bin of a drive's platters, and counts of written sectors. Accesses to flash are not
/// recorded.
#[derive(Clone, Debug)]
pub struct Activity {
    disk: SharedDisk,
    surfaces: Vec<Vec<Bin>>,
    /// Number of physical sectors written to the platters since this record was created, by cause. The index is
    /// `Cause as usize`.
    pub written_sectors: [u64; Cause::ALL.len()],
}

impl Activity {
    /// Returns a record without any activity for the platters of `disk`.
    pub fn new(disk: SharedDisk) -> Activity {
        let surfaces = disk.geometry.surfaces() as usize;
        Activity { surfaces: vec![vec![Bin::default(); BINS]; surfaces], disk, written_sectors: Default::default() }
    }

    /// Returns, for each surface from number 0 on, its [`BINS`] bins, from the outer diameter inward.
    pub fn surfaces(&self) -> &[Vec<Bin>] {
        &self.surfaces
    }

    /// Returns the index of the radial bin, from 0 (outer diameter) to [`BINS`] − 1, in which radial track number
    /// `radial_track` lies. Does not check that the track exists; a larger number may give a larger index.
    pub fn bin(geometry: &Geometry, radial_track: u32) -> usize {
        (u64::from(radial_track) * BINS as u64 / u64::from(geometry.radial_tracks().max(1))) as usize
    }

    /// Records the reads and writes of `plan` on the platters, as if all of them took place at simulated time `now`.
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
