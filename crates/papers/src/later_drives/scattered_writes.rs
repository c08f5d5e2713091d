//! Writes of 1 MiB to different random places, and the drive's cleaning meanwhile and afterwards.

use imbrex::{Failure, Run};
use imbrex_disk::{Command, Extent, SimDuration, SimTime};
use imbrex_layer::{Cause, Kind, Plan, StepOp};
use imbrex_sim::{Arrival, IoRecord, Observer, Options};
use imbrex_trace::{Recorded, Request, When};

use super::super::Replication;
use super::super::aghayev::observed::{Dice, capacity_sectors};
use imbrex::drives::fresh;

/// Number of sectors in a mebibyte.
pub(super) const MIB_SECTORS: u64 = 2048;
/// Number of commands outstanding: the depth of the drive's queue.
const DEPTH: u32 = 31;
/// Seed of the order of the places.
const SEED: u64 = 2026;

/// Measurements of a run of scattered writes.
#[derive(Default)]
pub(super) struct Seen {
    /// Simulated time at which the last write completed.
    pub written: SimTime,
    /// For each host request in the order of service, the final read included, the number of cache sectors that
    /// cleaning read, and so freed, before the request could be served.
    pub freed_sectors: Vec<u64>,
    /// Simulated start times of the first and of the last phase of background work; `None` if there was none.
    pub background: Option<(SimTime, SimTime)>,
}

/// Writes `count` blocks of 1 MiB to different places of a fresh `drive`, then sends no request for `pause`.
pub(super) fn write_blocks(
    drive: &str,
    count: u64,
    pause: SimDuration,
    replication: &Replication,
) -> Result<Seen, Failure> {
    let drive = fresh(drive)?;
    let places = capacity_sectors(&drive) / MIB_SECTORS;
    let mut requests: Vec<Request> =
        different(places, count, replication.seed(SEED)).map(|place| request(place, None)).collect();
    requests.push(request(0, Some(pause)));
    let (label, mut watch) = (drive.label.clone(), Watch { seen: Seen::default(), cache: None });
    let run = Run::new(drive, Options::bare(Arrival::Closed(DEPTH))).shown(&label, replication.progress);
    run.on(&mut Recorded::new(requests), &mut watch)?.whole()?;
    Ok(watch.seen)
}

/// Returns a write of block `place`, or with a pause, a read of the block after that pause.
fn request(place: u64, pause: Option<SimDuration>) -> Request {
    let (lba, sectors) = (place * MIB_SECTORS, MIB_SECTORS as u32);
    match pause {
        None => Request { when: When::Free(SimDuration::ZERO), device: 0, command: Command::write(lba, sectors) },
        Some(pause) => Request { when: When::Drained(pause), device: 0, command: Command::read(lba, sectors) },
    }
}

/// Returns `count` different numbers below `bound`, in random order.
fn different(bound: u64, count: u64, seed: u64) -> impl Iterator<Item = u64> {
    let (mut dice, mut seen) = (Dice(seed), std::collections::BTreeSet::new());
    let draws = std::iter::repeat_with(move || dice.below(bound)).filter(move |&number| seen.insert(number));
    draws.take(count as usize)
}

struct Watch {
    seen: Seen,
    /// Range of sectors to which the host's writes went. No two writes belong to one sequential stream, so all go to
    /// the cache.
    cache: Option<Extent>,
}

impl Observer for Watch {
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
            let freed = self.freed_sectors(plan);
            self.seen.freed_sectors.push(freed);
        }
    }
}

impl Watch {
    /// Returns the number of cache sectors that cleaning reads, and so frees, in `plan`.
    fn freed_sectors(&mut self, plan: &Plan) -> u64 {
        let data = plan.steps.iter().filter(|step| step.kind == Kind::Data);
        for step in data.clone().filter(|step| step.op == StepOp::Write && step.cause == Cause::Host) {
            let cache = self.cache.get_or_insert(step.extent());
            *cache = Extent::between(cache.start.min(step.extent().start), cache.end().max(step.extent().end()));
        }
        let Some(cache) = self.cache else { return 0 };
        let freed = data.filter(|step| step.op == StepOp::Read && step.cause == Cause::Cleaning);
        freed.filter(|step| cache.contains(step.pba)).map(|step| step.sectors as u64).sum()
    }
}
