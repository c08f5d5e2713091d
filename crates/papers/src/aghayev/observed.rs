//! A trial: requests listed one by one, run on a fresh drive. The trial records every request and where it was served,
//! every phase of background work, and the head's path.
//!
//! Invariants:
//! 1. The head's path is that of the run: a second model of the arm, with a log, times each plan of the run again,
//!    from the time at which the plan started.

use imbrex::drives::fresh;
use imbrex::{Failure, Run};
use imbrex_disk::{Actuator, Command, HeadLog, HeadSample, SimDuration, SimTime};
use imbrex_layer::{Plan, Step};
use imbrex_sim::timing::Timing;
use imbrex_sim::{Arrival, Drive, IoRecord, Observer, Options};
use imbrex_trace::{Recorded, Request, When};

use super::super::Replication;
use super::under_test::BLOCK_SECTORS;

/// Number of samples kept of the head's path.
const HEAD_SAMPLES: usize = 1 << 16;

/// List of requests that a test is building.
#[derive(Default)]
pub(crate) struct Script {
    requests: Vec<Request>,
    /// Pause before the next request, after all earlier requests have completed.
    pause: Option<SimDuration>,
}

impl Script {
    /// Adds `command`, issued as soon as the queue has a free place.
    pub(crate) fn push(&mut self, command: Command) {
        let when = self.pause.take().map_or(When::Free(SimDuration::ZERO), When::Drained);
        self.requests.push(Request { when, device: 0, command });
    }

    /// Lets the next request that is pushed wait until `pause` after all earlier requests have completed.
    pub(crate) fn pause(&mut self, pause: SimDuration) {
        self.pause = Some(pause);
    }

    /// Adds `command`, issued `pause` after all earlier requests have completed.
    pub(crate) fn after(&mut self, pause: SimDuration, command: Command) {
        self.requests.push(Request { when: When::Drained(pause), device: 0, command });
    }

    /// Adds a write of one block at each of `lbas`.
    pub(crate) fn write_blocks(&mut self, lbas: impl IntoIterator<Item = u64>) {
        lbas.into_iter().for_each(|lba| self.push(Command::write(lba, BLOCK_SECTORS as u32)));
    }

    /// Adds reads of one block at each of `lbas`, each issued when the one before has completed. The first is issued
    /// after `pause`.
    pub(crate) fn read_blocks(&mut self, pause: SimDuration, lbas: impl IntoIterator<Item = u64>) {
        for (index, lba) in lbas.into_iter().enumerate() {
            let pause = if index == 0 { pause } else { SimDuration::ZERO };
            self.after(pause, Command::read(lba, BLOCK_SECTORS as u32));
        }
    }
}

/// Random number generator of a script: SplitMix64. The field is its state, and at first the seed.
pub(crate) struct Dice(pub u64);

impl Dice {
    /// Returns a number below `bound`. Its bias is far below the resolution of a few thousand draws.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((mixed ^ (mixed >> 31)) as u128 * bound as u128) >> 64) as u64
    }

    /// Puts `things` into random order.
    pub(crate) fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// Returns `count` different blocks out of `blocks` in random order, as LBAs; `first` is the LBA of block 0.
    pub(crate) fn blocks(&mut self, first: u64, blocks: u64, count: usize) -> Vec<u64> {
        let mut seen = std::collections::BTreeSet::new();
        let mut chosen = Vec::with_capacity(count);
        while chosen.len() < count {
            let block = self.below(blocks);
            if seen.insert(block) {
                chosen.push(first + block * BLOCK_SECTORS);
            }
        }
        chosen
    }
}

/// Request that has been served.
#[derive(Clone, Copy)]
pub(crate) struct Served {
    /// Record of the request: its command, and its times of entry and completion.
    pub io: IoRecord,
    /// First read or write, on the platters or in flash, of the plan with which the layer served the request; `None` if
    /// the plan has none.
    pub step: Option<Step>,
}

impl Served {
    /// Returns the time from entry to completion, in ms.
    pub(crate) fn latency_ms(&self) -> f64 {
        self.io.end.since(self.io.entry).as_millis_f64()
    }
}

/// A phase of background work of the drive, done while no request was served.
#[derive(Clone, Copy)]
pub(crate) struct Background {
    /// Simulated time at which the phase began.
    pub start: SimTime,
    /// First read or write of the phase, on the platters or in flash.
    pub step: Step,
}

/// Records of a trial.
pub(crate) struct Observed {
    /// The requests that were served, in the order of completion.
    pub served: Vec<Served>,
    /// The phases of background work that read or write a medium, in the order of time.
    pub background: Vec<Background>,
    /// Positions of the head at the beginning of transfers, in the order of time, thinned out.
    pub head: Vec<HeadSample>,
}

impl Observed {
    /// Executes `script` on a fresh `drive` with a queue depth of `depth`.
    pub(crate) fn run(drive: &str, depth: u32, script: Script, replication: &Replication) -> Result<Observed, Failure> {
        let drive = fresh(drive)?;
        let mut shadow = Timing::new(drive.disk.clone(), false);
        *shadow.actuator_mut() = Actuator::with_log(drive.disk.clone(), HeadLog::new(HEAD_SAMPLES));
        let mut watch = Watch { shadow, served: Vec::new(), background: Vec::new(), step: None };
        let (label, mut source) = (drive.label.clone(), Recorded::new(script.requests));
        let run = Run::new(drive, Options::bare(Arrival::Closed(depth))).shown(&label, replication.progress);
        run.on(&mut source, &mut watch)?.whole()?;
        let head = watch.shadow.actuator().head_log().expect("it was given one").samples().to_vec();
        Ok(Observed { served: watch.served, background: watch.background, head })
    }

    /// Returns the reads in the order of completion.
    pub(crate) fn reads(&self) -> Vec<&Served> {
        self.served.iter().filter(|served| served.io.command.operation == imbrex_disk::Operation::Read).collect()
    }

    /// Returns the head's path from `from` to `to`: (seconds since `from`, tracks from the outer diameter).
    pub(crate) fn path(&self, from: SimTime, to: SimTime) -> Vec<(f64, f64)> {
        let within = self.head.iter().filter(|sample| sample.time >= from && sample.time <= to);
        within.map(|sample| (sample.time.since(from).as_secs_f64(), sample.radial_track as f64)).collect()
    }
}

/// Returns the number of tracks from the outer to the inner diameter of the drive with the profile `words`.
pub(crate) fn radial_tracks(words: &str) -> f64 {
    let profile = imbrex_disk::Profile::named(words).expect("experiments name built-in profiles");
    profile.disk().geometry.radial_tracks() as f64
}

/// Returns the capacity of the drive in sectors of 512 bytes.
pub(crate) fn capacity_sectors(drive: &Drive) -> u64 {
    drive.capacity_bytes() / 512
}

/// Observer of a trial. It takes the latest plan for the plan of each completed request, since these experiments serve
/// requests in order of arrival, without a volatile cache (Aghayev 2015 §4.2).
struct Watch {
    shadow: Timing,
    served: Vec<Served>,
    background: Vec<Background>,
    step: Option<Step>,
}

impl Observer for Watch {
    fn wants_ios(&self) -> bool {
        true
    }

    fn io(&mut self, record: &IoRecord) {
        self.served.push(Served { io: *record, step: self.step });
    }

    fn wants_plans(&self) -> bool {
        true
    }

    fn plan(&mut self, now: SimTime, commands: &[Command], plan: &Plan) {
        self.shadow.run(plan, now);
        self.step = plan.steps.iter().find(|step| step.is_access()).copied();
        if let (true, Some(step)) = (commands.is_empty(), self.step) {
            self.background.push(Background { start: now, step });
        }
    }
}

/// Returns the number of writes of the workload `words` that a fresh `drive` serves before one has to wait for
/// cleaning, or `None` if none has to wait.
pub(crate) fn writes_until_cleaning(
    drive: &str,
    depth: u32,
    words: &str,
    replication: &Replication,
) -> Result<Option<u64>, Failure> {
    let drive = fresh(drive)?;
    let mut source = replication.generator(words, capacity_sectors(&drive));
    let (label, mut wait) = (drive.label.clone(), Wait { first: None });
    let run = Run::new(drive, Options::bare(Arrival::Closed(depth))).shown(&label, replication.progress);
    run.on(&mut source, &mut wait)?.whole()?;
    Ok(wait.first)
}

struct Wait {
    first: Option<u64>,
}

impl Observer for Wait {
    fn progress(&mut self, _requests: u64, _now: SimTime) -> bool {
        self.first.is_none()
    }

    fn wants_ios(&self) -> bool {
        true
    }

    fn io(&mut self, record: &IoRecord) {
        if self.first.is_none() && !record.time.cleaning.is_zero() {
            self.first = Some(record.sequence);
        }
    }
}

/// Returns the median of `values`: of an even number the upper of the two in the middle, of none 0.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Returns the mean of `values`, or 0 if there are none.
pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = values.into_iter().fold((0.0, 0u64), |(sum, count), value| (sum + value, count + 1));
    sum / count.max(1) as f64
}

/// Returns the share of `values` that are near `centre`: within `tolerance`, a share of `centre`.
pub(crate) fn share_near(values: &[f64], centre: f64, tolerance: f64) -> f64 {
    let near = values.iter().filter(|&&value| is_near(value, centre, tolerance)).count();
    near as f64 / values.len().max(1) as f64
}

/// Returns whether `value` is within `tolerance`, a share of `centre`, of `centre`.
pub(crate) fn is_near(value: f64, centre: f64, tolerance: f64) -> bool {
    (value / centre - 1.0).abs() <= tolerance
}
