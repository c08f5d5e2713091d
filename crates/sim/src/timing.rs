//! Timing: the time that a plan takes on the mechanics, and the accesses to the medium that it makes.
//!
//! Invariants:
//! 1. Steps that continue each other count as one access, within a phase.
//! 2. The parts (seek, rotation and transfer of host groups; the whole time of other groups as cleaning) add up to the
//!    whole.

use std::collections::BTreeMap;

use imbrex_disk::{Access, Actuator, Direction, Extent, Purpose, Sectors, SharedDisk, SimDuration, SimTime};
use imbrex_layer::{Cause, GroupKind, Kind, Medium, Phase, Plan, Step, StepOp};

use crate::metrics::cleaning::CleaningMetrics;
use crate::metrics::counters::MediumCounters;
use crate::operation::{Segment, Work};

/// The time that a plan takes on the mechanics, by part. Groups of steps that serve host requests are host groups;
/// other groups (cleaning, migration, recovery) count as cleaning.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PlanTime {
    /// Time from the start of the plan to the end of its last group of steps that serves a host request, for which the
    /// host waits. If the plan has no such group, equal to `whole`.
    pub host: SimDuration,
    /// Time from the start to the end of the plan.
    pub whole: SimDuration,
    /// Total time of arm movement, settling and head switches in the steps that serve host requests.
    pub seek: SimDuration,
    /// Total time of rotational wait in the steps that serve host requests.
    pub rotation: SimDuration,
    /// Total time in which sectors pass the head, and time of accesses to flash, in the steps that serve host requests.
    pub transfer: SimDuration,
    /// Total time of the groups of steps that serve no host request: cleaning, migration and recovery.
    pub cleaning: SimDuration,
    /// The part of `cleaning` before the end of the last group that serves a host request: time for which the host
    /// waits. If the plan has no such group, equal to `cleaning`.
    pub cleaning_before_host: SimDuration,
}

impl PlanTime {
    /// Returns the share of request `number`, counted from 0, if `of` requests share the plan: `seek`, `rotation`,
    /// `transfer` and `cleaning` are divided equally, to the nanosecond, so that all shares add up to the parts. The
    /// other fields are not divided.
    #[inline]
    pub fn share(&self, number: usize, of: usize) -> PlanTime {
        if of == 1 {
            return *self;
        }
        let divided = |time: SimDuration| {
            let (number, of) = (number as u64, of.max(1) as u64);
            SimDuration(time.0 / of + u64::from(number < time.0 % of))
        };
        PlanTime {
            seek: divided(self.seek),
            rotation: divided(self.rotation),
            transfer: divided(self.transfer),
            cleaning: divided(self.cleaning),
            ..*self
        }
    }
}

/// Times plans on the mechanics of a drive, and counts the blocks (sectors) that they read and write. A plan is a list
/// of reads and writes of the medium for requests or for background work.
#[derive(Debug)]
pub struct Timing {
    actuator: Actuator,
    flash: Option<FlashTimes>,
    moves_pseudo_tracks: bool,
    /// Parts of the last plan, if an observer explains latencies.
    segments: Vec<Segment>,
    keeps_segments: bool,
    /// Parts of plans that take less time, for a replay of a run.
    shortened: Option<Box<Shortened>>,
    /// Commands and sectors read and written on platters and flash, by cause, since the start of the run or the end of
    /// the warm-up.
    pub counters: MediumCounters,
    /// Number, durations and sectors of cleaning events, since the end of the warm-up, or since the start of the run if
    /// there is no warm-up or it has not ended.
    pub cleaning: CleaningMetrics,
}

/// Latencies and transfer time of flash.
#[derive(Clone, Copy, Debug)]
struct FlashTimes {
    read_ns: u64,
    write_ns: u64,
    picoseconds_per_sector: u64,
}

/// A part of a plan: the number of the plan, counted from 0 in the order in which plans are carried out, and the index of
/// a phase of the plan.
pub type PlanPart = (u64, u32);

/// The parts of plans that take less time in a replay, each with the time to be taken off, and the number of the next
/// plan.
#[derive(Debug)]
struct Shortened {
    parts: BTreeMap<PlanPart, SimDuration>,
    plan: u64,
}

impl Shortened {
    /// Returns the time to be taken off a phase that took the time `taken`, and takes it off the parts of `time`.
    fn cut(&self, phase: u32, taken: SimDuration, time: &mut PlanTime) -> SimDuration {
        let wanted = self.parts.get(&(self.plan, phase)).copied().unwrap_or(SimDuration::ZERO);
        let mut left = wanted.min(taken);
        for part in [&mut time.cleaning, &mut time.rotation, &mut time.seek, &mut time.transfer] {
            let cut = left.min(*part);
            *part = SimDuration(part.0 - cut.0);
            left = SimDuration(left.0 - cut.0);
        }
        wanted.min(taken)
    }
}

/// An access that is being assembled from steps that continue each other.
#[derive(Clone, Copy)]
struct Joined {
    first: Step,
    sectors: u64,
}

impl Timing {
    /// Creates the timing of `disk`, with the head at the outermost track and all counters 0. `moves_pseudo_tracks`
    /// says whether the layer migrates data in pseudo-tracks, which the `half` rotation model times differently.
    pub fn new(disk: SharedDisk, moves_pseudo_tracks: bool) -> Timing {
        let flash = disk.flash.map(|flash| FlashTimes {
            read_ns: flash.read_ns,
            write_ns: flash.write_ns,
            picoseconds_per_sector: disk.sector_bytes as u64 * 1_000_000_000_000 / flash.bytes_per_second.max(1),
        });
        Timing {
            actuator: Actuator::new(disk),
            flash,
            moves_pseudo_tracks,
            segments: Vec::new(),
            keeps_segments: false,
            shortened: None,
            counters: MediumCounters::default(),
            cleaning: CleaningMetrics::default(),
        }
    }

    /// Returns the actuator, which holds the position of the head.
    pub fn actuator(&self) -> &Actuator {
        &self.actuator
    }

    /// Returns a mutable reference to the actuator, for example to record the path of the head.
    pub fn actuator_mut(&mut self) -> &mut Actuator {
        &mut self.actuator
    }

    /// Keeps the parts of each plan from now on, for [`Timing::segments`].
    pub fn keep_segments(&mut self) {
        self.keeps_segments = true;
    }

    /// Returns the parts of the plan that was carried out last, with their times. Empty unless
    /// [`Timing::keep_segments`] was called.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Takes the given times off the given parts of plans, each at the end of its phase. Within a phase all accesses take
    /// the times that they would, and the head moves as it would. Plans are numbered from 0, from now on.
    pub fn shorten(&mut self, parts: BTreeMap<PlanPart, SimDuration>) {
        self.shortened = Some(Box::new(Shortened { parts, plan: 0 }));
    }

    /// Adds the reads and writes of `plan` to the counters without timing them, for plans that are timed elsewhere.
    /// Each read or write step counts as one command.
    pub fn count(&mut self, plan: &Plan) {
        for step in plan.steps.iter().filter(|step| step.is_access()) {
            let direction = direction_of(step);
            self.counters.count_command(direction, step.sectors as u64);
            self.counters.count_blocks(direction, step);
        }
        if let Some(shortened) = &mut self.shortened {
            shortened.plan += 1;
        }
    }

    /// Carries out `plan` from `start` on: moves the head, adds to the counters, and returns the time that the plan
    /// takes. Steps of a phase with one cause and direction that lie in sequence count as one command.
    ///
    /// # Panics
    ///
    /// Panics if a step precedes the plan's first phase, or if a step uses flash and the drive has none.
    pub fn run(&mut self, plan: &Plan, start: SimTime) -> PlanTime {
        let first_step = plan.phases.first().map_or(plan.steps.len(), |phase| phase.first_step as usize);
        assert_eq!(first_step, 0, "steps before the first phase would not be timed:\n{plan:?}");
        let mut time = PlanTime::default();
        let mut now = start;
        self.segments.clear();
        for (index, phase) in plan.phases.iter().enumerate() {
            if phase.opens_group {
                self.actuator.begin_operation();
            }
            let end = self.run_phase(plan.steps_of(index), (index as u32, phase.kind), now, &mut time);
            let end = match &self.shortened {
                None => end,
                Some(shortened) => SimTime(end.0 - shortened.cut(index as u32, end.since(now), &mut time).0),
            };
            self.close_phase(phase, plan.steps_of(index), end.since(now));
            now = end;
            if phase.kind == GroupKind::Host {
                time.host = now.since(start);
                time.cleaning_before_host = time.cleaning;
            }
        }
        time.whole = now.since(start);
        if let Some(shortened) = &mut self.shortened {
            shortened.plan += 1;
        }
        if !plan.phases.iter().any(|phase| phase.kind == GroupKind::Host) {
            time.host = time.whole;
            time.cleaning_before_host = time.cleaning;
        }
        time
    }

    fn run_phase(&mut self, steps: &[Step], phase: (u32, GroupKind), start: SimTime, time: &mut PlanTime) -> SimTime {
        let mut now = start;
        let mut joined: Option<Joined> = None;
        for step in steps.iter().filter(|step| step.is_access()) {
            self.counters.count_blocks(direction_of(step), step);
            match &mut joined {
                Some(open) if goes_on(open, step) => open.sectors += step.sectors as u64,
                _ => {
                    if let Some(done) = joined.replace(Joined { first: *step, sectors: step.sectors as u64 }) {
                        now = self.perform(&done, phase, now, time);
                    }
                }
            }
        }
        match joined {
            Some(done) => self.perform(&done, phase, now, time),
            None => now,
        }
    }

    fn perform(
        &mut self,
        joined: &Joined,
        (index, kind): (u32, GroupKind),
        now: SimTime,
        time: &mut PlanTime,
    ) -> SimTime {
        let step = &joined.first;
        let direction = direction_of(step);
        self.counters.count_command(direction, joined.sectors);
        let (seek, rotation, transfer) = match step.medium {
            Medium::Disk => {
                let extent = Extent::new(step.pba, Sectors(joined.sectors));
                let purpose = self.purpose(step.cause);
                let taken = self.actuator.access(now, &Access { direction, extent, purpose });
                (taken.seek, taken.rotation, taken.transfer)
            }
            Medium::Flash => (SimDuration::ZERO, SimDuration::ZERO, self.flash_time(direction, joined.sectors)),
        };
        if self.keeps_segments {
            let work = work_of(kind, step.cause);
            self.keep_segment(Segment { phase: index, work, taken: seek + rotation + transfer });
        }
        if kind == GroupKind::Host {
            time.seek += seek;
            time.rotation += rotation;
            time.transfer += transfer;
        } else {
            time.cleaning += seek + rotation + transfer;
        }
        now + seek + rotation + transfer
    }

    /// Adds `segment` to the parts of the current plan, and joins it with the part before it if both do the same work in
    /// one phase.
    fn keep_segment(&mut self, segment: Segment) {
        match self.segments.last_mut() {
            Some(last) if (last.phase, last.work) == (segment.phase, segment.work) => last.taken += segment.taken,
            _ => self.segments.push(segment),
        }
    }

    fn purpose(&self, cause: Cause) -> Purpose {
        match cause {
            Cause::Backup => Purpose::Backup,
            Cause::Migration if self.moves_pseudo_tracks => Purpose::PseudoTrack,
            _ => Purpose::InPlace,
        }
    }

    fn flash_time(&self, direction: Direction, sectors: u64) -> SimDuration {
        let flash = self.flash.expect("a layer plans for flash only on a drive that has it");
        let latency = if direction == Direction::Read { flash.read_ns } else { flash.write_ns };
        SimDuration(latency + sectors * flash.picoseconds_per_sector / 1000)
    }

    fn close_phase(&mut self, phase: &Phase, steps: &[Step], taken: SimDuration) {
        if phase.kind == GroupKind::Host {
            return;
        }
        let moved = steps.iter().filter(|step| step.op == StepOp::Write && step.kind == Kind::Data);
        self.cleaning.phase(phase.opens_group, taken, moved.map(|step| step.sectors as u64).sum());
    }
}

/// Returns the kind of work of a step with this cause, in a group of this kind.
fn work_of(kind: GroupKind, cause: Cause) -> Work {
    match kind {
        GroupKind::Host if cause == Cause::Host => Work::Access,
        GroupKind::Host if cause == Cause::Journal => Work::Bookkeeping,
        GroupKind::Host => Work::Rewriting,
        GroupKind::Cleaning => Work::Cleaning,
        GroupKind::Migration => Work::Migration,
        GroupKind::Recovery => Work::Recovery,
    }
}

fn direction_of(step: &Step) -> Direction {
    if step.op == StepOp::Read { Direction::Read } else { Direction::Write }
}

fn goes_on(open: &Joined, step: &Step) -> bool {
    let first = &open.first;
    step.op == first.op
        && step.medium == first.medium
        && step.cause == first.cause
        && step.pba.0 == first.pba.0 + open.sectors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_an_operation_are_the_whole() {
        let whole = PlanTime { seek: SimDuration(10), rotation: SimDuration(7), ..PlanTime::default() };
        let shares: Vec<PlanTime> = (0..3).map(|number| whole.share(number, 3)).collect();
        assert_eq!(shares.iter().map(|share| share.seek.0).collect::<Vec<_>>(), [4, 3, 3]);
        assert_eq!(shares.iter().map(|share| share.rotation.0).sum::<u64>(), 7);
    }
}
