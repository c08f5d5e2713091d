//! A layer on the drive of the paper, without the drive's host side: serves single operations and counts their cost in
//! seeks and rotations.
//!
//! Invariants:
//! 1. Seeks are counted on the head's recorded path, and timed by eq. 1 of the paper, not by the mechanics of the
//!    simulation.

use imbrex_disk::{Actuator, HeadLog, HeadSample};
use imbrex_disk::{Command, Pba, Sectors, SharedDisk, SimTime};
use imbrex_layer::{Layer, Plan, registry};
use imbrex_sim::timing::Timing;

use super::under_test::{CONVENTIONAL, PROFILE, RMW};
use imbrex::error::Failure;

/// Number of samples of the head's path that a trial can keep.
const HEAD_SAMPLES: usize = 1 << 20;
/// Largest distance of a seek that counts as a switch: from one neighbour of a bottom track to the other.
const SWITCH_TRACKS: u32 = 2;

/// Cost of one operation of a layer, or a sum of such costs.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Cost {
    /// Simulated duration of the operation, in nanoseconds: seeks, rotational waits and transfers together.
    pub whole_ns: u64,
    /// Number of seeks: moves of the head over more than two radial tracks.
    pub seeks: u64,
    /// Time of all seeks (moves of the head over more than two radial tracks) by eq. 1 of Hajkazemi 2019, in
    /// nanoseconds.
    pub seek_ns: u64,
    /// Number of switches: moves of the head over one or two radial tracks.
    pub switches: u64,
    /// Time of all switches (moves of the head over one or two radial tracks) by eq. 1 of Hajkazemi 2019, in
    /// nanoseconds.
    pub switch_ns: u64,
}

impl std::ops::Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost {
            whole_ns: self.whole_ns + other.whole_ns,
            seeks: self.seeks + other.seeks,
            seek_ns: self.seek_ns + other.seek_ns,
            switches: self.switches + other.switches,
            switch_ns: self.switch_ns + other.switch_ns,
        }
    }
}

/// A layer, and the timing of the mechanics below it.
pub(super) struct TimedLayer {
    /// The disk below the layer: its geometry and mechanics.
    pub disk: SharedDisk,
    layer: Box<dyn Layer>,
    /// Layer on the same disk that moves no track: its map gives the home of every LBA.
    home: Box<dyn Layer>,
    timing: Timing,
    now: SimTime,
    plan: Plan,
    samples_seen: usize,
}

impl TimedLayer {
    /// Builds `layer`, with its parameters as `:key=value,…`, on the drive of the paper.
    pub(super) fn new(layer: &str) -> Result<TimedLayer, Failure> {
        let drive = imbrex::drives::fresh(&format!("{PROFILE}+{layer}"))?;
        let unmoved = if drive.layer.name() == CONVENTIONAL { CONVENTIONAL } else { RMW };
        let home = registry::build(unmoved, &drive.disk, &[]).expect("each works on the disk it is for");
        let mut timing = Timing::new(drive.disk.clone(), drive.layer.moves_pseudo_tracks());
        *timing.actuator_mut() = Actuator::with_log(drive.disk.clone(), HeadLog::new(HEAD_SAMPLES));
        let (layer, disk) = (drive.layer, drive.disk);
        Ok(TimedLayer { disk, layer, home, timing, now: SimTime::ZERO, plan: Plan::new(), samples_seen: 0 })
    }

    /// Serves `command` and returns its cost.
    pub(super) fn serve(&mut self, command: Command) -> Cost {
        self.plan.clear();
        self.layer.plan(&[command], &mut self.plan);
        self.run()
    }

    /// Serves one phase of background work and returns its cost, or `None` if there is no work.
    pub(super) fn idle(&mut self) -> Option<Cost> {
        self.plan.clear();
        self.layer.idle(&mut self.plan).then(|| self.run())
    }

    fn run(&mut self) -> Cost {
        let from = self.timing.actuator().radial_track();
        self.samples_seen = self.head().len();
        let time = self.timing.run(&self.plan, self.now);
        self.now += time.whole;
        let mut cost = Cost { whole_ns: time.whole.0, ..Cost::default() };
        let mut at = from;
        for sample in self.path() {
            let distance = at.abs_diff(sample.radial_track);
            at = sample.radial_track;
            let ns = self.seek_ns(distance);
            let (count, sum) = match distance {
                0 => continue,
                1..=SWITCH_TRACKS => (&mut cost.switches, &mut cost.switch_ns),
                _ => (&mut cost.seeks, &mut cost.seek_ns),
            };
            *count += 1;
            *sum += ns;
        }
        cost
    }

    fn head(&self) -> &[HeadSample] {
        self.timing.actuator().head_log().expect("it was given one").samples()
    }

    /// Returns the head's path during the last operation.
    pub(super) fn path(&self) -> &[HeadSample] {
        &self.head()[self.samples_seen..]
    }

    /// Returns the time of a seek over `distance` tracks by eq. 1, in ns: 2 ms, and up to 18 ms more in proportion to
    /// the distance.
    pub(super) fn seek_ns(&self, distance: u32) -> u64 {
        let span = self.disk.geometry.radial_tracks() as u64 - 1;
        if distance == 0 {
            return 0;
        }
        2_000_000 + 18_000_000 * distance as u64 / span
    }

    /// Returns the capacity of the layer, in sectors.
    pub(super) fn capacity(&self) -> u64 {
        self.layer.capacity().0
    }

    /// Returns the size of the mapping state, in bytes, by formula and as measured.
    pub(super) fn memory(&self) -> imbrex_layer::MapMemory {
        self.layer.memory()
    }

    /// Returns the LBA whose home is the first sector of a track, or `None` for a track that is reserved.
    pub(super) fn lba_of_track(&self, radial_track: u32) -> Option<u64> {
        let wanted = self.disk.geometry.pba(radial_track, 0, 0);
        let (mut low, mut high) = (0, self.home.capacity().0);
        while low < high {
            let middle = low + (high - low) / 2;
            if place(self.home.as_ref(), middle) < wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low < self.capacity().min(self.home.capacity().0) && place(self.home.as_ref(), low) == wanted).then_some(low)
    }

    /// Returns whether the sector now lies on a bottom track.
    pub(super) fn is_bottom(&self, lba: u64) -> bool {
        let pba = place(self.layer.as_ref(), lba);
        self.disk.geometry.is_bottom(self.disk.geometry.locate(pba).radial_track)
    }

    /// Returns the present place of the sector: its track, and its number within the track.
    pub(super) fn track_of(&self, lba: u64) -> (u32, u64) {
        let pba = place(self.layer.as_ref(), lba);
        let found = self.disk.geometry.locate(pba);
        (found.radial_track, pba.0 - found.track_start.0)
    }
}

fn place(layer: &dyn Layer, lba: u64) -> Pba {
    let mut pieces = Vec::new();
    layer.lookup(imbrex_disk::Lba(lba), Sectors(1), &mut pieces);
    pieces.first().and_then(|piece| piece.at).expect("every sector lies somewhere").1
}
