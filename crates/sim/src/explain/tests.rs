//! Goal: an explainer that forgets most of the past still accounts for all of the time, and finds the same causes where
//! it remembers. Method: one run seen by two explainers, one of which keeps 128 spans.

use imbrex_disk::{Command, Profile, SimDuration};
use imbrex_layer::verify::toy;
use imbrex_trace::{Recorded, Request, When};

use super::*;
use crate::schedule::Schedule;
use crate::{Arrival, Drive, Engine, Observer, Options};

struct Both {
    all: Explainer,
    few: Explainer,
}

impl Observer for Both {
    fn wants_ios(&self) -> bool {
        true
    }

    fn wants_operations(&self) -> bool {
        true
    }

    fn entered(&mut self, sequence: u64, device: u32, command: &Command) {
        self.all.entered(sequence, device, command);
        self.few.entered(sequence, device, command);
    }

    fn operation(&mut self, operation: &Operation<'_>) {
        self.all.operation(operation);
        self.few.operation(operation);
    }

    fn io(&mut self, record: &IoRecord) {
        self.all.io(record);
        self.few.io(record);
    }
}

fn drive() -> Drive {
    let toy = toy::disks("shingled").next().expect("there is one");
    let profile: Profile = toy.profile;
    let parameters = [("region_size".to_string(), "8k".to_string()), ("cache_share".to_string(), "20%".to_string())];
    Drive::assemble("toy", profile, "set-associative", &parameters).expect("it is right")
}

#[test]
fn what_is_forgotten_counts_as_earlier() {
    let drive = drive();
    let count = 900;
    let chosen = || Chosen::Numbers((0..count).collect());
    let options = |chosen| ExplainOptions { chosen, addressed: None, check: true, warmup_requests: 0 };
    let mut both = Both {
        all: Explainer::new(drive.layer.as_ref(), options(chosen())),
        few: Explainer::with_spans(drive.layer.as_ref(), options(chosen()), 128),
    };
    let mut commands = toy::Commands::new(7, drive.layer.capacity(), 24);
    // The queue grows all the time, so that late requests wait for far more than 128 spans.
    let requests = (0..count).map(|number| {
        let command = Command { lba: commands.draw().lba, sectors: 1, ..Command::write(0, 1) };
        Request { when: When::At(SimTime(number * 20)), device: (number % 5) as u32, command }
    });
    let run = Options { schedule: Schedule::Fifo, ..Options::bare(Arrival::Open) };
    Engine::new(drive, run, Recorded::new(requests.collect::<Vec<_>>()), &mut both).run().expect("a list cannot fail");
    let (all, few) = (both.all.finish(), both.few.finish());
    let mut forgotten = 0;
    for (all, few) in all.requests.iter().zip(&few.requests) {
        assert_eq!(few.parts.iter().map(|part| part.duration).sum::<SimDuration>(), all.latency());
        let earlier = few.parts.iter().find(|part| part.cause == Cause::Earlier);
        match earlier {
            None => assert_eq!(all.parts, few.parts, "request {}", all.number),
            Some(_) => forgotten += 1,
        }
    }
    assert!(forgotten > 100 && forgotten < 850, "{forgotten} of {count} have forgotten parts");
    assert_eq!(all.summary.shares[0].times.iter().sum::<u64>(), few.summary.shares[0].times.iter().sum::<u64>());
    // Each wait has a cause: requests, or the writes that filled a cache region.
    let involved = &all.summary.involved;
    let total = |ranges: &Ranges| ranges.devices.shares().iter().map(|(_, time)| time).sum::<u64>();
    let (waiting, causing) = (total(&involved.waiting), total(&involved.causing) + involved.unattributed_ns);
    // A share is rounded down, by less than a nanosecond for each device and span.
    assert!(causing <= waiting && waiting - causing < 100_000, "{waiting} waited, {causing} caused");
}

/// A trim of this layer takes no time if the controller takes none, so it has no stretch of the drive's past.
#[test]
fn operations_that_take_no_time_are_forgotten_too() {
    let mut drive = drive();
    drive.host.overhead_ns = 0;
    let options = ExplainOptions { chosen: Chosen::Worst(3), addressed: None, check: true, warmup_requests: 0 };
    let mut explainer = Explainer::with_spans(drive.layer.as_ref(), options, 128);
    let requests: Vec<_> = (0..1000)
        .map(|number| Request { when: When::At(SimTime(number)), device: 0, command: Command::trim(number % 50, 1) })
        .collect();
    Engine::new(drive, Options::bare(Arrival::Open), Recorded::new(requests), &mut explainer)
        .run()
        .expect("a list cannot fail");
    assert!(explainer.operations.len() <= 128, "{} operations are kept", explainer.operations.len());
    assert!(explainer.served.len() <= 128, "{} requests are kept", explainer.served.len());
    assert_eq!(explainer.finish().summary.shares[0].requests, 1000);
}
