//! A trial: requests written out one by one, run on a fresh drive, with all that was seen of it: every request and
//! where it was served, every phase of background work, the head's path.
//!
//! Invariants:
//! 1. The head's path is that of the run: its plans are timed again, from the same starts, on an arm that keeps a
//!    log.

use imbrex::drives::fresh;
use imbrex::{Failure, Progress, Run};
use imbrex_disk::{Actuator, Command, HeadLog, HeadSample, SimDuration, SimTime};
use imbrex_layer::{Plan, Step};
use imbrex_sim::timing::Timing;
use imbrex_sim::{Arrival, Drive, IoRecord, Observer, Options};
use imbrex_trace::generators::{Generator, WorkloadSpec};
use imbrex_trace::{Recorded, Request, When};

use super::under_test::BLOCK_SECTORS;

/// Samples kept of the head's path.
const HEAD_SAMPLES: usize = 1 << 16;

/// Requests in the making.
#[derive(Default)]
pub struct Script {
    requests: Vec<Request>,
}

impl Script {
    /// `command` as soon as the queue takes it.
    pub fn push(&mut self, command: Command) {
        self.requests.push(Request { when: When::Free(SimDuration::ZERO), device: 0, command });
    }

    /// `command` after a `pause` in which nothing is asked; with none, when everything before it has completed.
    pub fn after(&mut self, pause: SimDuration, command: Command) {
        self.requests.push(Request { when: When::Drained(pause), device: 0, command });
    }

    /// Writes of a block at each of `lbas`.
    pub fn write_blocks(&mut self, lbas: impl IntoIterator<Item = u64>) {
        lbas.into_iter().for_each(|lba| self.push(Command::write(lba, BLOCK_SECTORS as u32)));
    }

    /// Reads of a block at each of `lbas`, one after the other, the first after a pause.
    pub fn read_blocks(&mut self, pause: SimDuration, lbas: impl IntoIterator<Item = u64>) {
        for (index, lba) in lbas.into_iter().enumerate() {
            let pause = if index == 0 { pause } else { SimDuration::ZERO };
            self.after(pause, Command::read(lba, BLOCK_SECTORS as u32));
        }
    }
}

/// Random numbers of a script: SplitMix64.
pub struct Dice(pub u64);

impl Dice {
    /// A number below `bound`; its bias is far below what a few thousand draws can show.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((mixed ^ (mixed >> 31)) as u128 * bound as u128) >> 64) as u64
    }

    /// `things` in random order.
    pub fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// `count` different blocks out of `blocks`, as LBAs from `first` on, in random order.
    pub fn blocks(&mut self, first: u64, blocks: u64, count: usize) -> Vec<u64> {
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

/// A request served.
#[derive(Clone, Copy)]
pub struct Served {
    /// When and how long.
    pub io: IoRecord,
    /// The first step of its plan that touched a medium.
    pub step: Option<Step>,
}

impl Served {
    /// From entry to completion.
    pub fn latency_ms(&self) -> f64 {
        self.io.end.since(self.io.entry).as_millis_f64()
    }
}

/// A phase of background work.
#[derive(Clone, Copy)]
pub struct Background {
    /// From when.
    pub start: SimTime,
    /// What it begins with.
    pub step: Step,
}

/// What was seen.
pub struct Observed {
    /// Requests, in the order of their completion.
    pub served: Vec<Served>,
    /// Background work, in order.
    pub background: Vec<Background>,
    /// Where the head was when transfers began.
    pub head: Vec<HeadSample>,
}

impl Observed {
    /// Runs `script` on a fresh `drive`, `depth` requests outstanding.
    pub fn run(drive: &str, depth: u32, script: Script, progress: &Progress) -> Result<Observed, Failure> {
        let drive = fresh(drive)?;
        let mut shadow = Timing::new(drive.disk.clone(), false);
        *shadow.actuator_mut() = Actuator::with_log(drive.disk.clone(), HeadLog::new(HEAD_SAMPLES));
        let mut watch = Watch { shadow, served: Vec::new(), background: Vec::new(), step: None };
        let (label, mut source) = (drive.label.clone(), Recorded::new(script.requests));
        let run = Run::new(drive, Options::bare(Arrival::Closed(depth))).shown(&label, progress);
        run.on(&mut source, &mut watch)?.whole()?;
        let head = watch.shadow.actuator().head_log().expect("it was given one").samples().to_vec();
        Ok(Observed { served: watch.served, background: watch.background, head })
    }

    /// The reads, in order.
    pub fn reads(&self) -> Vec<&Served> {
        self.served.iter().filter(|served| served.io.command.operation == imbrex_disk::Operation::Read).collect()
    }

    /// The head's path: (seconds since `from`, tracks from the outer diameter).
    pub fn path(&self, from: SimTime, to: SimTime) -> Vec<(f64, f64)> {
        let within = self.head.iter().filter(|sample| sample.time >= from && sample.time <= to);
        within.map(|sample| (sample.time.since(from).as_secs_f64(), sample.radial_track as f64)).collect()
    }
}

/// Tracks of the drive called `words`, from the outer to the inner diameter.
pub fn radial_tracks(words: &str) -> f64 {
    let profile = imbrex_disk::Profile::named(words).expect("experiments name built-in profiles");
    profile.disk().geometry.radial_tracks() as f64
}

/// The drive's sectors of 512 bytes.
pub fn capacity_sectors(drive: &Drive) -> u64 {
    drive.capacity_bytes() / 512
}

/// Experiments of this paper run in the order of arrival, the volatile cache off (Aghayev 2015 §4.2).
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

/// Writes that `words` make on a fresh `drive` before one of them has to wait for cleaning; `None` if none has to.
pub fn writes_until_cleaning(
    drive: &str,
    depth: u32,
    words: &str,
    progress: &Progress,
) -> Result<Option<u64>, Failure> {
    let drive = fresh(drive)?;
    let spec = WorkloadSpec::parse(words).expect("experiments' words are right");
    let mut source = Generator::new(spec, capacity_sectors(&drive)).expect("experiments' words are right");
    let (label, mut wait) = (drive.label.clone(), Wait { first: None });
    let run = Run::new(drive, Options::bare(Arrival::Closed(depth))).shown(&label, progress);
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

/// The middle of `values`.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// The mean of `values`.
pub fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = values.into_iter().fold((0.0, 0u64), |(sum, count), value| (sum + value, count + 1));
    sum / count.max(1) as f64
}

/// The share of `values` within `tolerance` (a share) of `centre`.
pub fn share_near(values: &[f64], centre: f64, tolerance: f64) -> f64 {
    let near = values.iter().filter(|&&value| is_near(value, centre, tolerance)).count();
    near as f64 / values.len().max(1) as f64
}

/// Whether `value` is within `tolerance` (a share) of `centre`.
pub fn is_near(value: f64, centre: f64, tolerance: f64) -> bool {
    (value / centre - 1.0).abs() <= tolerance
}
