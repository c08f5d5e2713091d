//! A simulated drive in virtual time: it stores no data, and its volatile write cache and look-ahead are off.

use imbrex_disk::{Command, SimDuration, SimTime};
use imbrex_sim::{Drive, Engine, Inbox, IoRecord, Observer, Options, Stepped};
use imbrex_trace::{Request, When};

use super::virtual_time::{Finished, HEAD_SAMPLES, Machine, VirtualTime, path};
use crate::target::{About, Direction, Done, HeadPath, Next, Operation, Target, TargetError};

/// The completed operations that were not collected yet.
#[derive(Default)]
struct Completions(Vec<Finished>);

impl Observer for Completions {
    fn wants_ios(&self) -> bool {
        true
    }

    fn io(&mut self, record: &IoRecord) {
        self.0.push(Finished { number: record.sequence, begin_ns: record.entry.0, end_ns: record.end.0 });
    }
}

impl Machine for Engine<Inbox, Completions> {
    fn submit(&mut self, at: SimTime, operation: &Operation) -> Result<u64, TargetError> {
        let (lba, sectors) = (operation.offset / 512, (operation.bytes / 512) as u32);
        let command = match operation.direction {
            Direction::Read => Command::read(lba, sectors),
            Direction::Write => Command::write(lba, sectors),
        };
        Ok(Engine::submit(self, Request { when: When::At(at), device: 0, command }))
    }

    fn step(&mut self, until: SimTime) -> Stepped {
        Engine::step(self, until).expect("an inbox does not fail")
    }

    fn finished(&mut self, finished: &mut Vec<Finished>) -> Result<(), TargetError> {
        finished.append(&mut self.observer_mut().0);
        Ok(())
    }

    fn now(&self) -> SimTime {
        Engine::now(self)
    }

    fn take_head_path(&mut self) -> Option<HeadPath> {
        let path = path(&self.drive().disk, self.timing().actuator().head_log());
        self.timing_mut().actuator_mut().restart_log(HEAD_SAMPLES);
        path
    }
}

/// A simulated drive as a target in virtual time. It stores no data, and its volatile write cache and look-ahead are
/// off.
pub struct Simulated {
    drive: VirtualTime<Engine<Inbox, Completions>>,
    about: About,
}

impl Simulated {
    /// Returns a target that simulates `drive`, from its initial state and time 0.
    pub fn new(drive: Drive) -> Simulated {
        let options = Options {
            write_cache_bytes: 0,
            read_ahead_bytes: 0,
            window: SimDuration::from_secs(3600),
            ..Options::live(&drive)
        };
        let about = About {
            name: format!("sim:{}", drive.label),
            size_bytes: drive.capacity_bytes(),
            sector_bytes: drive.disk.sector_bytes,
            is_virtual: true,
        };
        Simulated {
            about,
            drive: VirtualTime::new(Engine::new(drive, options, Inbox::default(), Completions::default())),
        }
    }
}

impl Target for Simulated {
    fn about(&self) -> &About {
        &self.about
    }

    fn now_ns(&self) -> u64 {
        self.drive.now_ns()
    }

    fn perform(&mut self, depth: usize, next: &mut Next<'_>, done: &mut Done<'_>) -> Result<(), TargetError> {
        self.drive.perform(depth, next, done)
    }

    fn sleep(&mut self, ns: u64) -> Result<(), TargetError> {
        self.drive.sleep(ns);
        Ok(())
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        vec![("volatile cache", "off".into()), ("look-ahead", "off".into())]
    }

    fn head_path(&mut self) -> Option<HeadPath> {
        self.drive.machine.take_head_path()
    }
}
