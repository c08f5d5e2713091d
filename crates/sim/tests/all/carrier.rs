//! Goal: a carrier receives every request once on entry and once on completion, and all moves in between; and its
//! errors reach the right place. Method: a carrier that keeps records and fails on demand, and a live engine in virtual
//! time.

use std::collections::BTreeMap;

use imbrex_disk::{Command, Operation, SimTime};
use imbrex_layer::{Layer, Plan};
use imbrex_sim::queue::{Ordered, Waiting};
use imbrex_sim::{Carrier, Drive, DriveSpec, Engine, Inbox, Options, StepError, Stepped, Unobserved};
use imbrex_trace::{Request, When};

/// Records of requests, moves and completions.
#[derive(Default)]
struct Books {
    entered: BTreeMap<u64, Command>,
    rejected: Vec<u64>,
    /// Number of each completed request, and the error with which it was answered.
    completed: Vec<(u64, Option<&'static str>)>,
    /// First sectors of writes, in the order in which the medium saw them.
    written: Vec<u64>,
    /// Operation that fails, and its error.
    fails: Option<(Operation, &'static str)>,
    destage_fails: bool,
}

impl Carrier for Books {
    type Error = &'static str;

    fn entered(&mut self, number: u64, command: &Command) {
        assert!(self.entered.insert(number, *command).is_none(), "request {number} enters twice");
    }

    fn rejected(&mut self, number: u64, _at: SimTime, reason: &'static str) {
        assert!(!self.entered.contains_key(&number) && reason.contains("beyond the end"), "{number}: {reason}");
        self.rejected.push(number);
    }

    fn absorb(&mut self, number: u64, command: &Command) -> Result<(), &'static str> {
        assert_eq!(self.entered[&number], *command);
        Ok(())
    }

    fn read_from_cache(&mut self, number: u64, command: &Command) {
        assert_eq!(self.entered[&number], *command);
    }

    fn discard(&mut self, _command: &Command) {}

    fn serve(&mut self, batch: &[Waiting], _plan: &Plan, _layer: &dyn Layer) -> Result<(), &'static str> {
        batch.iter().for_each(|waiting| assert_eq!(self.entered[&waiting.sequence], waiting.command));
        let writes = batch.iter().filter(|waiting| waiting.command.operation == Operation::Write);
        self.written.extend(writes.map(|waiting| waiting.command.lba.0));
        match self.fails {
            Some((operation, error)) if batch[0].command.operation == operation => Err(error),
            _ => Ok(()),
        }
    }

    fn destage(&mut self, commands: &[Command], _plan: &Plan, _layer: &dyn Layer) -> Result<(), &'static str> {
        self.written.extend(commands.iter().map(|command| command.lba.0));
        if self.destage_fails { Err("not written back") } else { Ok(()) }
    }

    fn background(&mut self, _plan: &Plan) -> Result<(), &'static str> {
        Ok(())
    }

    fn complete(&mut self, number: u64, entry: SimTime, end: SimTime, outcome: Result<(), &&'static str>) {
        assert!(self.entered.remove(&number).is_some() && entry <= end, "request {number} is completed twice");
        self.completed.push((number, outcome.err().copied()));
    }
}

fn engine(words: &str, write_cache_bytes: u64) -> Engine<Inbox, Unobserved, Books> {
    let spec = DriveSpec::parse(words).expect("the words are right");
    let profile = imbrex_disk::Profile::named("cmr-7200").expect("it comes with the project");
    let drive = Drive::build(&spec, &profile).expect("it can be built");
    let options = Options { write_cache_bytes, ..Options::live(&drive) };
    Engine::with_carrier(drive, options, Inbox::default(), Unobserved, Books::default())
}

fn submit(engine: &mut Engine<Inbox, Unobserved, Books>, at: u64, command: Command) -> u64 {
    engine.submit(Request { when: When::At(SimTime(at)), device: 0, command })
}

fn run(engine: &mut Engine<Inbox, Unobserved, Books>) {
    while engine.step(SimTime(u64::MAX)).expect("nothing fails") != Stepped::Idle {}
}

#[test]
fn every_request_goes_in_and_out_under_its_number() {
    for write_cache_bytes in [0, 64 << 10] {
        let mut engine = engine("cmr-7200:host.schedule=sptf", write_cache_bytes);
        let past_the_end = engine.drive().capacity_bytes() / 512;
        let mut numbers = Vec::new();
        for number in 0..200u64 {
            let lba = number * 7919 % 100_000 * 8;
            let command = match number % 5 {
                0 => Command::read(lba, 8),
                1 => Command::flush(),
                2 => Command::trim(lba, 8),
                3 if number % 4 == 0 => Command::write(past_the_end, 8),
                _ => Command::write(lba, 8),
            };
            numbers.push(submit(&mut engine, number * 50_000, command));
            if number % 3 == 0 {
                // Numbers are right whether the engine has taken the request or not.
                engine.step(SimTime(number * 50_000)).expect("nothing fails");
            }
        }
        run(&mut engine);
        assert_eq!(numbers, (0..200).collect::<Vec<_>>());
        let books = engine.carrier();
        assert_eq!(books.rejected, (0..200).filter(|n| n % 5 == 3 && n % 4 == 0).collect::<Vec<_>>());
        let mut completed: Vec<u64> = books.completed.iter().map(|&(number, _)| number).collect();
        completed.sort_unstable();
        assert_eq!(completed, (0..200).filter(|number| !books.rejected.contains(number)).collect::<Vec<_>>());
        assert!(books.entered.is_empty() && books.completed.iter().all(|(_, error)| error.is_none()));
    }
}

#[test]
fn the_error_of_a_plan_is_that_of_its_requests_alone() {
    let mut engine = engine("cmr-7200:host.schedule=fifo", 0);
    engine.carrier_mut().fails = Some((Operation::Read, "unreadable"));
    for (number, command) in [Command::write(0, 8), Command::read(0, 8), Command::write(8, 8)].into_iter().enumerate() {
        submit(&mut engine, number as u64, command);
    }
    run(&mut engine);
    assert_eq!(engine.carrier().completed, [(0, None), (1, Some("unreadable")), (2, None)]);
}

#[test]
fn what_cannot_be_written_back_is_what_the_step_comes_to() {
    let mut engine = engine("cmr-7200", 64 << 10);
    engine.carrier_mut().destage_fails = true;
    submit(&mut engine, 0, Command::write(0, 8));
    let error = loop {
        match engine.step(SimTime(u64::MAX)) {
            Ok(Stepped::Idle) => panic!("the failure was swallowed"),
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StepError::Carrier("not written back")), "{error:?}");
    assert_eq!(engine.carrier().completed, [(0, None)], "it was answered long before");
}

/// Goal: if writes stay in order, no scheduler, cache or way past the cache changes the order. Method: two runs of
/// sectors written in order, with a FUA write and one larger than the cache, and with reads in between that a scheduler
/// would serve first.
#[test]
fn ordered_writes_reach_the_medium_in_order() {
    for schedule in ["fifo", "elevator", "sptf"] {
        for write_cache_bytes in [0, 16 << 10, 1 << 20] {
            let mut engine = engine(&format!("cmr-7200:host.schedule={schedule}"), write_cache_bytes);
            let unit = engine.drive().disk.sector_bytes as u64 / 512;
            let run_sectors = 100_000;
            engine.keep_order(Ordered { from: imbrex_disk::Lba(run_sectors), run: imbrex_disk::Sectors(run_sectors) });
            let mut next = [run_sectors, 5 * run_sectors];
            for number in 0..300u64 {
                let zone = (number * 13 % 7 % 2) as usize;
                let sectors = if number % 50 == 7 { 40 } else { 1 + number % 5 };
                let write =
                    Command { fua: number % 11 == 3, ..Command::write(next[zone] * unit, (sectors * unit) as u32) };
                next[zone] += sectors;
                submit(&mut engine, number * 20_000, write);
                submit(&mut engine, number * 20_000, Command::read(next[1 - zone] * unit, unit as u32));
            }
            run(&mut engine);
            for first in [run_sectors, 5 * run_sectors] {
                let written = &engine.carrier().written;
                let of_run: Vec<u64> =
                    written.iter().copied().filter(|lba| lba / run_sectors == first / run_sectors).collect();
                let what = format!("{schedule}, cache of {write_cache_bytes}");
                assert!(of_run.is_sorted() && of_run.first() == Some(&first), "{what}: {of_run:?}");
            }
        }
    }
}
