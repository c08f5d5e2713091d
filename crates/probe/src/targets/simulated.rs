//! A target in virtual time: a simulated drive, its volatile caches off as the tests demand, its look-ahead off.
//!
//! Invariants:
//! 1. The engine is never stepped past a time at which an operation could still be submitted.

use std::collections::VecDeque;

use imbrex_disk::{Command, SimDuration, SimTime};
use imbrex_sim::{Drive, Engine, Inbox, IoRecord, Observer, Options, Stepped};
use imbrex_trace::{Request, When};

use crate::target::{Direction, Operation, Target, TargetError, Timed};

/// Completions: number, entry, end.
#[derive(Debug, Default)]
struct Completions(Vec<(u64, u64, u64)>);

impl Observer for Completions {
    fn wants_ios(&self) -> bool {
        true
    }

    fn io(&mut self, record: &IoRecord) {
        self.0.push((record.sequence, record.entry.0, record.end.0));
    }
}

/// A simulated drive.
pub struct Simulated {
    engine: Engine<Inbox, Completions>,
    name: String,
    size_bytes: u64,
    sector_bytes: u32,
    now_ns: u64,
    /// The first request of the batch in hand, as the engine numbers it, and what is under way by number from there.
    under_way: VecDeque<(u64, Operation)>,
    submitted: u64,
}

impl Simulated {
    /// `drive`, as new.
    pub fn new(drive: Drive) -> Simulated {
        let options = Options {
            write_cache_bytes: 0,
            read_ahead_bytes: 0,
            window: SimDuration::from_secs(3600),
            ..Options::live(&drive)
        };
        Simulated {
            name: format!("sim:{}", drive.label),
            size_bytes: drive.capacity_bytes(),
            sector_bytes: drive.disk.sector_bytes,
            engine: Engine::new(drive, options, Inbox::default(), Completions::default()),
            now_ns: 0,
            under_way: VecDeque::new(),
            submitted: 0,
        }
    }

    fn submit(&mut self, operation: Operation) {
        let (lba, sectors) = (operation.offset / 512, (operation.bytes / 512) as u32);
        let command = match operation.direction {
            Direction::Read => Command::read(lba, sectors),
            Direction::Write => Command::write(lba, sectors),
        };
        self.engine.source_mut().push(Request { when: When::At(SimTime(self.now_ns)), device: 0, command });
        self.under_way.push_back((self.submitted, operation));
        self.submitted += 1;
    }

    /// Tells `done` what has completed; says whether to go on.
    fn collect(&mut self, done: &mut dyn FnMut(&Timed) -> bool) -> bool {
        let mut goes_on = true;
        let mut completed = std::mem::take(&mut self.engine.observer_mut().0);
        for &(sequence, begin_ns, end_ns) in &completed {
            let found = self.under_way.iter().position(|(number, _)| *number == sequence);
            let (_, operation) =
                found.and_then(|index| self.under_way.remove(index)).expect("the engine completes what was submitted");
            self.now_ns = self.now_ns.max(end_ns);
            goes_on &= done(&Timed { operation, begin_ns, end_ns });
        }
        completed.clear();
        self.engine.observer_mut().0 = completed;
        goes_on
    }
}

impl Target for Simulated {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    fn is_virtual(&self) -> bool {
        true
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn perform(
        &mut self,
        depth: usize,
        next: &mut dyn FnMut() -> Option<Operation>,
        done: &mut dyn FnMut(&Timed) -> bool,
    ) -> Result<(), TargetError> {
        let mut goes_on = true;
        loop {
            while goes_on && self.under_way.len() < depth.max(1) {
                match next() {
                    Some(operation) => self.submit(operation),
                    None => goes_on = false,
                }
            }
            if self.under_way.is_empty() {
                return Ok(());
            }
            let stepped = self.engine.step(SimTime(u64::MAX)).expect("an inbox does not fail");
            assert_ne!(stepped, Stepped::Idle, "the engine is idle with {} under way", self.under_way.len());
            goes_on &= self.collect(done);
        }
    }

    fn sleep(&mut self, ns: u64) -> Result<(), TargetError> {
        self.now_ns += ns;
        while self.engine.step(SimTime(self.now_ns)).expect("an inbox does not fail") == Stepped::Worked {}
        self.now_ns = self.now_ns.max(self.engine.now().0);
        Ok(())
    }
}
