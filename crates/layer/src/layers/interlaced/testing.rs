//! Helpers for the tests of the interlaced layers: small disks, layers built from parameter strings, plans as text, and
//! the cost of plans in seeks and rotations, measured with the disk's mechanics.

use std::sync::Arc;

use imbrex_disk::geometry::{Geometry, GeometryConfig, InterlacedConfig, LayoutName};
use imbrex_disk::mechanics::{Mechanics, MechanicsConfig, Rotation, SeekConfig};
use imbrex_disk::recording::interlaced::Interlaced;
use imbrex_disk::{Access, Actuator, Command, Direction, Disk, Extent, Purpose, Sectors, SharedDisk, SimTime};

use crate::layer::Layer;
use crate::plan::{Cause, Plan, StepOp};
use crate::registry;

const ROTATION_NS: u32 = 10_000_000;
/// Duration of every seek of the toy disks; all are equal, so that seeks can be counted.
const SEEK_NS: u64 = 1_000_000_000;

/// Returns a toy disk of one surface with `tracks` tracks, in groups of six bottom and six top tracks. Bottom tracks
/// have `track_sectors` sectors of 4,096 bytes, top tracks `top_ratio` of that. Every seek takes one second, and a
/// rotation 10 ms. A wait for the rotation counts as half a rotation, as in the paper.
pub fn disk(tracks: u32, track_sectors: u32, top_ratio: f64) -> SharedDisk {
    let config = GeometryConfig {
        interlaced: Some(InterlacedConfig { group_tracks: 6, top_ratio, ..Default::default() }),
        ..GeometryConfig::listed(1, LayoutName::BottomThenTop, ROTATION_NS, &[(tracks, track_sectors)])
    };
    let geometry = Geometry::new(&config).expect("a toy");
    let seek = SeekConfig::Linear { min_ns: SEEK_NS, max_ns: SEEK_NS };
    let mechanics = Mechanics::new(&MechanicsConfig::plain(seek, Rotation::Half), &geometry).expect("a toy");
    let recording = Box::new(Interlaced::default());
    Arc::new(Disk { geometry, mechanics, recording, flash: None, sector_bytes: 4096 })
}

/// Returns the layer called `name`, built over `disk` with `parameters` of the form `key=value,key=value`. Parameters
/// that are not given have their defaults.
///
/// # Panics
///
/// If the layer cannot be built.
pub fn layer(name: &str, disk: &SharedDisk, parameters: &str) -> Box<dyn Layer> {
    let pairs = parameters.split(',').filter(|pair| !pair.is_empty());
    let given: Vec<_> = pairs.map(|pair| pair.split_once('=').expect("key=value")).collect();
    let given: Vec<_> = given.into_iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    registry::build(name, disk, &given).expect("the toy suits")
}

/// Makes `layer` serve `commands` as one operation, and returns the plan.
pub fn plan(layer: &mut dyn Layer, commands: &[Command]) -> Plan {
    let mut plan = Plan::new();
    layer.plan(commands, &mut plan);
    plan
}

/// Makes `layer` serve a write of one sector at each of `lbas`, one after the other. The plans are dropped.
pub fn write_each(layer: &mut dyn Layer, lbas: &[u64]) {
    for &lba in lbas {
        plan(layer, &[Command::write(lba, 1)]);
    }
}

/// Makes `layer` do all background work that it has to do, and returns one plan for each phase.
///
/// # Panics
///
/// If a plan has not exactly one phase.
pub fn idle_phases(layer: &mut dyn Layer) -> Vec<Plan> {
    let mut phases = Vec::new();
    loop {
        let mut phase = Plan::new();
        if !layer.idle(&mut phase) {
            return phases;
        }
        assert_eq!(phase.phases.len(), 1, "background work is offered a phase at a time");
        phases.push(phase);
    }
}

/// Checks that the text form of `plan` equals `golden`, line by line. Indentation and empty lines are ignored.
///
/// # Panics
///
/// If a line differs.
pub fn assert_plan(plan: &Plan, golden: &str) {
    let lines = |text: &str| text.lines().map(|line| line.trim().to_string()).filter(|line| !line.is_empty()).collect();
    let (ours, golden): (Vec<String>, Vec<String>) = (lines(&format!("{plan:?}")), lines(golden));
    assert_eq!(ours, golden, "{plan:?}");
}

/// The time that plans take on a toy disk, as a number of seeks and of rotations.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    /// Number of seeks (movements of the arm to another track) that the plans took.
    pub seeks: u64,
    /// Time of rotational waits and transfers that the plans took, without seeks, as a number of rotations.
    pub rotations: f64,
}

/// Times plans on a toy disk: knows the position of the head and the present time.
pub struct Clock {
    actuator: Actuator,
    now: SimTime,
    pseudo_tracks: bool,
}

impl Clock {
    /// Returns a clock whose head has just read the physical sector `pba`.
    pub fn at(disk: &SharedDisk, pba: u64) -> Clock {
        let mut clock = Clock { actuator: Actuator::new(disk.clone()), now: SimTime(0), pseudo_tracks: false };
        clock.access(Direction::Read, Extent::new(imbrex_disk::Pba(pba), Sectors(1)), Purpose::InPlace);
        clock
    }

    /// Returns this clock, which from now on times accesses of background moves as those of pseudo-tracks. As in the
    /// paper, each is timed as if the pseudo-track began in the middle of a track.
    pub fn of_pseudo_tracks(self) -> Clock {
        Clock { pseudo_tracks: true, ..self }
    }

    fn access(&mut self, direction: Direction, extent: Extent, purpose: Purpose) -> (u64, u64) {
        let time = self.actuator.access(self.now, &Access { direction, extent, purpose });
        self.now += time.total();
        (time.seek.0, (time.rotation + time.transfer).0)
    }

    /// Times `plan` from the present position of the head, and returns its cost. Consecutive steps that continue each
    /// other on the disk for one cause count as one access. Steps without access take no time.
    ///
    /// # Panics
    ///
    /// If the seek time is no multiple of one second, the duration of each seek of the toy disk.
    pub fn cost(&mut self, plan: &Plan) -> Cost {
        let (mut seek_ns, mut rest_ns) = (0, 0);
        for (index, phase) in plan.phases.iter().enumerate() {
            if phase.opens_group {
                self.actuator.begin_operation();
            }
            let steps: Vec<_> = plan.steps_of(index).iter().filter(|step| step.is_access()).collect();
            for joined in steps.chunk_by(|a, b| b.continues(a) && a.cause == b.cause) {
                let extent = Extent::new(joined[0].pba, Sectors(joined.iter().map(|step| step.sectors as u64).sum()));
                let direction = if joined[0].op == StepOp::Read { Direction::Read } else { Direction::Write };
                let purpose = match joined[0].cause {
                    Cause::Backup => Purpose::Backup,
                    Cause::Migration if self.pseudo_tracks => Purpose::PseudoTrack,
                    _ => Purpose::InPlace,
                };
                let (seek, rest) = self.access(direction, extent, purpose);
                seek_ns += seek;
                rest_ns += rest;
            }
        }
        assert_eq!(seek_ns % SEEK_NS, 0, "seeks are whole");
        Cost { seeks: seek_ns / SEEK_NS, rotations: rest_ns as f64 / ROTATION_NS as f64 }
    }

    /// Times `plans` one after the other from the present position of the head, and returns their total cost.
    pub fn cost_of_all(&mut self, plans: &[Plan]) -> Cost {
        plans.iter().map(|plan| self.cost(plan)).fold(Cost { seeks: 0, rotations: 0.0 }, |sum, cost| Cost {
            seeks: sum.seeks + cost.seeks,
            rotations: sum.rotations + cost.rotations,
        })
    }
}

/// Checks that `cost` has exactly `seeks` seeks, and from `rotations` to `rotations` + `transfer` rotations. The paper
/// neglects the transfer of a few sectors, which may take up to `transfer` rotations.
///
/// # Panics
///
/// If the cost differs.
pub fn assert_cost(cost: Cost, seeks: u64, rotations: f64, transfer: f64) {
    assert_eq!(cost.seeks, seeks, "{cost:?}");
    assert!((rotations..=rotations + transfer).contains(&cost.rotations), "{cost:?}, expected {rotations} rotations");
}
