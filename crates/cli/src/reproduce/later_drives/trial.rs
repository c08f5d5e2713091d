//! Writes of a mebibyte to places of their own, and what the drive does about them.

use imbrex_disk::{Command, SimDuration, SimTime};
use imbrex_layer::{GroupKind, Plan};
use imbrex_sim::schedule::Schedule;
use imbrex_sim::{Arrival, Engine, Fit, IoRecord, Observer, Options};
use imbrex_trace::{Recorded, Request, When};

use super::super::aghayev::trial::{capacity_sectors, fresh, Dice};
use crate::error::Failure;
use crate::interrupt;
use crate::progress::Bars;

/// Sectors of a mebibyte.
const MIB_SECTORS: u64 = 2048;
/// Commands outstanding: what the drive takes.
const DEPTH: u32 = 31;

/// What was seen.
#[derive(Default)]
pub struct Seen {
    /// When the last write completed.
    pub written: SimTime,
    /// Bands cleaned for each write, in order of service.
    pub cleans: Vec<u32>,
    /// When cleaning in idle time began, and when its last phase did.
    pub background: Option<(SimTime, SimTime)>,
}

/// Writes `count` blocks of a mebibyte to a fresh `drive`, no two alike, then leaves it alone for `pause`.
pub fn write_blocks(drive: &str, count: u64, pause: SimDuration, bars: &Bars) -> Result<Seen, Failure> {
    let drive = fresh(drive)?;
    let places = capacity_sectors(&drive) / MIB_SECTORS;
    let mut requests: Vec<Request> = different(places, count).map(|place| request(place, None)).collect();
    requests.push(request(0, Some(pause)));
    let bar = bars.requests(&drive.label, Some(requests.len() as u64));
    let mut watch = Watch { seen: Seen::default(), bar: &bar };
    let outcome = Engine::new(drive, options(), &mut Recorded::new(requests), &mut watch).run()?;
    let seen = watch.seen;
    bar.finish_and_clear();
    if outcome.interrupted {
        return Err(Failure::failed("interrupted; nothing was written"));
    }
    Ok(seen)
}

/// A write of block `place`, or a read of it after a pause.
fn request(place: u64, pause: Option<SimDuration>) -> Request {
    let (lba, sectors) = (place * MIB_SECTORS, MIB_SECTORS as u32);
    match pause {
        None => Request { when: When::Free(SimDuration::ZERO), device: 0, command: Command::write(lba, sectors) },
        Some(pause) => Request { when: When::Drained(pause), device: 0, command: Command::read(lba, sectors) },
    }
}

/// `count` different numbers below `bound`, in random order.
fn different(bound: u64, count: u64) -> impl Iterator<Item = u64> {
    let (mut dice, mut seen) = (Dice(2026), std::collections::BTreeSet::new());
    let draws = std::iter::repeat_with(move || dice.below(bound)).filter(move |&number| seen.insert(number));
    draws.take(count as usize)
}

fn options() -> Options {
    Options {
        arrival: Arrival::Closed(DEPTH),
        schedule: Schedule::Fifo,
        write_cache_bytes: 0,
        read_ahead_bytes: 0,
        fit: Fit::Reject,
        warmup_requests: 0,
        window: SimDuration::from_secs(1),
        check: false,
    }
}

struct Watch<'a> {
    seen: Seen,
    bar: &'a indicatif::ProgressBar,
}

impl Observer for Watch<'_> {
    fn progress(&mut self, requests: u64, _now: SimTime) -> bool {
        self.bar.set_position(requests);
        !interrupt::requested()
    }

    fn wants_ios(&self) -> bool {
        true
    }

    fn io(&mut self, record: &IoRecord) {
        if record.command.operation == imbrex_disk::Operation::Write {
            self.seen.written = self.seen.written.max(record.end);
        }
    }

    fn wants_plans(&self) -> bool {
        true
    }

    fn plan(&mut self, now: SimTime, commands: &[Command], plan: &Plan) {
        if commands.is_empty() {
            let first = self.seen.background.map_or(now, |(first, _)| first);
            self.seen.background = Some((first, now));
        } else {
            let cleans = plan.phases.iter().filter(|phase| phase.kind == GroupKind::Cleaning && phase.opens_group);
            self.seen.cleans.push(cleans.count() as u32);
        }
    }
}
