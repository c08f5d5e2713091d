//! Goal: the parts of every request's latency are those of the drive's past, and giving the blamed work no time shortens
//! the latency by exactly the time blamed. Method: short runs of every layer on toy disks. The parts are compared with a
//! list of everything that the drive did; a second run repeats the first one without the blamed work's time.

use std::collections::{BTreeMap, BTreeSet};

use imbrex_disk::{Command, SimDuration, SimTime};
use imbrex_layer::verify::toy;
use imbrex_layer::{Due, LayerInfo, registry};
use imbrex_sim::explain::{Cause, Chosen, ExplainOptions, Explainer, Explanation, Of};
use imbrex_sim::operation::{Operation, Purpose, Work};
use imbrex_sim::results::Integrity;
use imbrex_sim::schedule::Schedule;
use imbrex_sim::timing::PlanPart;
use imbrex_sim::{Arrival, Drive, Engine, IoRecord, Observer, Options};
use imbrex_trace::{Recorded, Request, When};

/// A stretch of the drive's time.
struct Stretch {
    from: u64,
    until: u64,
    operation: usize,
    phase: u32,
    work: Work,
    is_write_back: bool,
}

/// Keeps everything that an engine reports, and passes it to an explainer.
struct Notebook {
    explainer: Explainer,
    stretches: Vec<Stretch>,
    /// The requests that each operation serves.
    batches: Vec<Vec<u64>>,
    records: Vec<IoRecord>,
    /// Operation that served each record; `None` if the cache answered it.
    served: Vec<Option<usize>>,
}

impl Observer for Notebook {
    fn wants_ios(&self) -> bool {
        true
    }

    fn wants_operations(&self) -> bool {
        true
    }

    fn entered(&mut self, sequence: u64, device: u32, command: &Command) {
        self.explainer.entered(sequence, device, command);
    }

    fn operation(&mut self, operation: &Operation<'_>) {
        self.explainer.operation(operation);
        let mut from = operation.begin.0;
        let end = self.stretches.last().map_or(0, |last| last.until);
        assert!(from >= end, "an operation from {from} on, after one until {end}");
        let is_write_back = matches!(operation.purpose, Purpose::WriteBack(..));
        for stretch in operation.stretches {
            assert!(stretch.until.0 > from, "an empty stretch at {from}");
            let (until, phase, work) = (stretch.until.0, stretch.phase, stretch.work);
            self.stretches.push(Stretch { from, until, operation: self.batches.len(), phase, work, is_write_back });
            from = until;
        }
        assert_eq!(from, operation.end.0, "the stretches end with the operation");
        self.batches.push(match operation.purpose {
            Purpose::Serve(batch) => batch.iter().map(|waiting| waiting.sequence).collect(),
            Purpose::WriteBack(..) | Purpose::Background => Vec::new(),
        });
    }

    fn io(&mut self, record: &IoRecord) {
        self.explainer.io(record);
        self.served.push((!record.from_cache).then(|| self.batches.len() - 1));
        self.records.push(*record);
    }
}

fn cause_of(stretch: &Stretch) -> Cause {
    match (stretch.work, stretch.is_write_back) {
        (Work::Access, false) => Cause::Requests,
        (Work::Rewriting, false) => Cause::Rewriting,
        (Work::Bookkeeping, false) => Cause::Bookkeeping,
        (Work::Access, true) => Cause::WriteBack,
        (Work::Rewriting, true) => Cause::WriteBackRewriting,
        (Work::Bookkeeping, true) => Cause::WriteBackBookkeeping,
        (Work::Cleaning, _) => Cause::Cleaning,
        (Work::Migration, _) => Cause::Migration,
        (Work::Recovery, _) => Cause::Recovery,
    }
}

impl Notebook {
    /// Returns the time of each cause in the latency of record number `index`, by a look at all stretches.
    fn causes(&self, index: usize) -> BTreeMap<Cause, u64> {
        let (record, served) = (&self.records[index], self.served[index]);
        let arrival = record.due.0;
        let mut causes = BTreeMap::new();
        let mut add = |cause: Cause, time: u64| {
            if time > 0 {
                *causes.entry(cause).or_insert(0) += time;
            }
        };
        let within =
            |stretch: &Stretch, from: u64, until: u64| stretch.until.min(until).saturating_sub(stretch.from.max(from));
        let mut idle = record.start.0 - arrival;
        for stretch in &self.stretches {
            let time = within(stretch, arrival, record.start.0);
            add(cause_of(stretch), time);
            idle -= time;
        }
        add(Cause::Idle, idle);
        let own = record.end.0 - record.start.0;
        let Some(operation) = served else {
            add(Cause::OwnCache, own);
            return causes;
        };
        let batch = &self.batches[operation];
        let is_first = batch[0] == record.sequence;
        let mut works: BTreeMap<Work, u64> = BTreeMap::new();
        for stretch in self.stretches.iter().filter(|stretch| stretch.operation == operation) {
            *works.entry(stretch.work).or_insert(0) += within(stretch, record.start.0, record.end.0);
        }
        *works.entry(Work::Access).or_insert(0) += own - works.values().sum::<u64>();
        for (work, time) in works {
            let (mine, others) = match work {
                Work::Access => (Cause::OwnAccess, Cause::Requests),
                Work::Rewriting => (Cause::OwnRewriting, Cause::Rewriting),
                Work::Bookkeeping => (Cause::OwnBookkeeping, Cause::Bookkeeping),
                Work::Cleaning => (Cause::Cleaning, Cause::Cleaning),
                Work::Migration => (Cause::Migration, Cause::Migration),
                Work::Recovery => (Cause::Recovery, Cause::Recovery),
            };
            let count = batch.len() as u64;
            let share = time / count + if is_first { time % count } else { 0 };
            let share = if mine == others { time } else { share };
            add(mine, share);
            add(others, time - share);
        }
        causes
    }
}

/// Returns the toy drives of a layer, with a rotation model. With `none`, the time of an access does not depend on the
/// time at which it begins.
fn drives(info: &'static LayerInfo, rotation: &'static str) -> impl Iterator<Item = (String, Box<dyn Fn() -> Drive>)> {
    let toys: Vec<_> = info.recordings.iter().flat_map(|&recording| toy::disks(recording)).collect();
    let pairs = info.toys.iter().flat_map(move |&words| toys.clone().into_iter().map(move |toy| (words, toy)));
    pairs.filter_map(move |(words, toy)| {
        let parameters: Vec<(String, String)> = words
            .split(',')
            .filter_map(|pair| pair.split_once('='))
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        let profile = toy.profile.with(&[("mechanics.rotation".into(), rotation.into())]).expect("a rotation model");
        let build = move || Drive::assemble(toy.name, profile.clone(), info.name, &parameters);
        let name = format!("{}:{words} on {}", info.name, toy.name);
        build()
            .ok()
            .map(|_| (name, Box::new(move || build().expect("it was built a moment ago")) as Box<dyn Fn() -> Drive>))
    })
}

fn options(drive: &Drive, schedule: &str, arrival: Arrival, cache_sectors: u64) -> Options {
    Options {
        schedule: Schedule::named(schedule, SimDuration::ZERO).expect("it is known"),
        write_cache_bytes: cache_sectors * u64::from(drive.disk.sector_bytes),
        read_ahead_bytes: 30 * u64::from(drive.disk.sector_bytes),
        check: true,
        ..Options::bare(arrival)
    }
}

/// Returns random requests in bursts: those of one burst arrive at the same time.
fn requests(drive: &Drive, seed: u64, count: usize, burst: usize, gap_ns: u64) -> Vec<Request> {
    let unit = u64::from(drive.disk.sector_bytes) / 512;
    let mut commands = toy::Commands::new(seed, drive.layer.capacity(), 24);
    (0..count)
        .map(|number| {
            let command = commands.draw();
            let (lba, sectors) = (command.lba.0 * unit, command.sectors * unit as u32);
            let command = Command { lba: imbrex_disk::Lba(lba), sectors, ..command };
            let when = When::At(SimTime((number / burst) as u64 * gap_ns));
            Request { when, device: (number % 3) as u32, command }
        })
        .collect()
}

fn notebook(drive: &Drive, chosen: Chosen) -> Notebook {
    let options = ExplainOptions { chosen, addressed: None, check: true, warmup_requests: 0 };
    Notebook {
        explainer: Explainer::new(drive.layer.as_ref(), options),
        stretches: Vec::new(),
        batches: Vec::new(),
        records: Vec::new(),
        served: Vec::new(),
    }
}

fn run(drive: Drive, options: Options, requests: Vec<Request>, shortened: BTreeMap<PlanPart, SimDuration>) -> Notebook {
    let mut notebook = notebook(&drive, Chosen::Numbers((0..requests.len() as u64).collect()));
    let mut engine = Engine::new(drive, options, Recorded::new(requests), &mut notebook);
    engine.timing_mut().shorten(shortened);
    let outcome = engine.run().expect("a list cannot fail");
    assert!(!matches!(outcome.integrity, Integrity::Violation { .. }), "{:?}", outcome.integrity);
    notebook
}

fn explanation(notebook: Notebook) -> (Vec<IoRecord>, Explanation) {
    (notebook.records, notebook.explainer.finish())
}

#[test]
fn parts_sum_to_latencies_and_are_those_of_the_drives_past() {
    for info in registry::built_in() {
        let mut causes_seen = BTreeSet::new();
        for (name, build) in drives(info, "exact") {
            for (seed, (schedule, cache_sectors)) in
                [("fifo", 0), ("elevator", 40), ("fifo", 40)].into_iter().enumerate()
            {
                let drive = build();
                let options = options(&drive, schedule, Arrival::FixedQueue(6), cache_sectors);
                let requests = requests(&drive, seed as u64, 240, 9, 30_000);
                let notebook = run(drive, options, requests, BTreeMap::new());
                let expected: BTreeMap<u64, _> = (0..notebook.records.len())
                    .map(|index| (notebook.records[index].sequence, notebook.causes(index)))
                    .collect();
                let (records, explanation) = explanation(notebook);
                assert_eq!(explanation.requests.len(), records.len(), "{name}");
                for request in &explanation.requests {
                    let mut found = BTreeMap::new();
                    for part in &request.parts {
                        assert!(part.duration > SimDuration::ZERO, "{name}: {part:?}");
                        *found.entry(part.cause).or_insert(0) += part.duration.0;
                    }
                    assert_eq!(found, expected[&request.number], "{name}, {schedule}, request {}", request.number);
                    assert_eq!(found.values().sum::<u64>(), request.latency().0, "{name}");
                    causes_seen.extend(found.into_keys());
                }
                let all = &explanation.summary.shares[0];
                let total: u64 = explanation.requests.iter().map(|request| request.latency().0).sum();
                assert_eq!((all.name, all.requests), ("all", records.len() as u64));
                assert_eq!(all.times.iter().sum::<u64>(), total, "{name}: the summary has all of the time");
            }
        }
        assert!(causes_seen.contains(&Cause::OwnAccess) && causes_seen.contains(&Cause::Requests), "{}", info.name);
    }
}

/// Returns the parts of plans that do work of a cause within the wait of a request, from the record of a run.
fn blamed(notebook: &Notebook, record: &IoRecord) -> (BTreeMap<PlanPart, SimDuration>, u64) {
    let arrival = record.due.0;
    let (mut parts, mut time) = (BTreeMap::new(), 0);
    for stretch in notebook.stretches.iter().filter(|stretch| stretch.work != Work::Access) {
        let within = stretch.until.min(record.end.0).saturating_sub(stretch.from.max(arrival));
        if within > 0 {
            let part = (stretch.operation as u64, stretch.phase);
            *parts.entry(part).or_insert(SimDuration::ZERO) += SimDuration(within);
            time += within;
        }
    }
    (parts, time)
}

/// All requests arrive at once, so the drive is busy from the arrival to the answer of each.
#[test]
fn without_the_blamed_works_time_a_latency_falls_by_exactly_that_time() {
    let mut blamed_layers = BTreeSet::new();
    for info in registry::built_in() {
        for (name, build) in drives(info, "none") {
            let drive = build();
            let given = options(&drive, "fifo", Arrival::Open, 0);
            let given = Options { read_ahead_bytes: 0, ..given };
            // One burst, since work in idle time begins at a time that a replay changes.
            let requests = requests(&drive, 5, 150, 150, 0);
            let notebook = run(drive, given.clone(), requests.clone(), BTreeMap::new());
            let worst = notebook.records.iter().max_by_key(|record| record.end).expect("there are requests");
            for record in [worst, &notebook.records[notebook.records.len() / 2]] {
                let (parts, time) = blamed(&notebook, record);
                if time == 0 {
                    continue;
                }
                blamed_layers.insert(info.name);
                let replayed = run(build(), given.clone(), requests.clone(), parts);
                let again =
                    replayed.records.iter().find(|other| other.sequence == record.sequence).expect("it is served");
                assert_eq!(again.end.0, record.end.0 - time, "{name}, request {}", record.sequence);
            }
        }
    }
    let without: Vec<_> =
        registry::built_in().iter().map(|info| info.name).filter(|name| !blamed_layers.contains(name)).collect();
    // These write in place and move nothing, so no request waits for work of theirs.
    assert_eq!(without, ["caveat", "conventional", "zoned"]);
}

/// Compares the blamed time of a replay with the parts that the explainer states.
#[test]
fn the_parts_of_an_explanation_name_the_blamed_work() {
    let info = registry::named("set-associative").expect("it is built in");
    let (name, build) = drives(info, "none").next().expect("there is one");
    let drive = build();
    let options = options(&drive, "fifo", Arrival::Open, 0);
    let requests = requests(&drive, 5, 150, 150, 0);
    let notebook = run(drive, options, requests, BTreeMap::new());
    let last = *notebook.records.iter().max_by_key(|record| record.end).expect("there are requests");
    let (parts, time) = blamed(&notebook, &last);
    let (_, explanation) = explanation(notebook);
    let request = explanation.requests.iter().find(|request| request.number == last.sequence).expect("it is chosen");
    let work = request.parts.iter().filter(|part| part.cause.is_conventional() == Some(false));
    assert_eq!(work.map(|part| part.duration.0).sum::<u64>(), time, "{name}");
    assert_eq!((request.unconventional().0, &request.blamed), (time, &parts), "{name}");
    let mut cleanings = 0;
    for part in request.parts.iter().filter(|part| part.cause == Cause::Cleaning) {
        let Of::OwnWork { event: Some(_), reason: Some(reason), fill: Some(fill) } = &part.of else {
            panic!("{part:?} has no reason or fill")
        };
        assert_eq!(reason.due, Due::Full, "{part:?}");
        assert!(fill.sectors.0 > 0 && *fill.requests.end() <= last.sequence, "{part:?}");
        assert_eq!(fill.devices.shares().iter().map(|(_, sectors)| sectors).sum::<u64>(), fill.sectors.0);
        cleanings += 1;
    }
    assert!(cleanings > 3, "{name}: {cleanings}");
}
