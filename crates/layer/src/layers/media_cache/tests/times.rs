//! Goal: the times of Aghayev 2015 figs. 4, 7 and 11 on the mechanics of its drive. Method: plans executed on the
//! actuator, each command a turnaround after the end of the one before. Steps that continue each other are one access.

use imbrex_disk::{Access, Actuator, Command, Direction, Extent, Lba, Purpose, Sectors, SimTime};

use super::*;

/// The host's turnaround, as in the profile.
const TURNAROUND_NS: u64 = 100_000;

/// A drive with a clock.
struct Clocked {
    layer: MediaCache,
    actuator: Actuator,
    now_ns: u64,
}

impl Clocked {
    fn new() -> Clocked {
        let profile = seagate();
        Clocked { layer: on(&profile, ""), actuator: Actuator::new(profile.disk()), now_ns: 0 }
    }

    /// Serves `commands` in one operation; returns the duration in ms, turnaround included.
    fn serve_ms(&mut self, commands: &[Command]) -> f64 {
        let mut plan = Plan::new();
        self.layer.plan(commands, &mut plan);
        let begin = self.now_ns;
        self.now_ns += TURNAROUND_NS;
        self.perform(&plan);
        (self.now_ns - begin) as f64 / 1e6
    }

    /// Cleans in idle time until nothing is left; returns the duration in ms.
    fn idle_ms(&mut self, longest_phase_ms: &mut f64) -> f64 {
        let begin = self.now_ns;
        let mut plan = Plan::new();
        while self.layer.idle(&mut plan) {
            let phase_begin = self.now_ns;
            self.perform(&plan);
            *longest_phase_ms = longest_phase_ms.max((self.now_ns - phase_begin) as f64 / 1e6);
            plan.clear();
        }
        (self.now_ns - begin) as f64 / 1e6
    }

    fn perform(&mut self, plan: &Plan) {
        let mut joined: Option<Access> = None;
        for step in plan.steps.iter().filter(|step| step.is_access()) {
            let direction = if step.op == StepOp::Read { Direction::Read } else { Direction::Write };
            let next = Access { direction, extent: step.extent(), purpose: Purpose::InPlace };
            joined = Some(match joined {
                Some(open) if open.direction == direction && open.extent.end() == step.pba => {
                    Access { extent: Extent::between(open.extent.start, step.extent().end()), ..open }
                }
                Some(open) => {
                    self.access(&open);
                    next
                }
                None => next,
            });
        }
        if let Some(last) = joined {
            self.access(&last);
        }
    }

    fn access(&mut self, access: &Access) {
        self.now_ns += self.actuator.access(SimTime(self.now_ns), access).total().0;
    }
}

fn assert_within_5_percent(what: &str, ms: f64, paper_ms: f64) {
    println!("{what}: {ms:.1} ms, {paper_ms} ms in the paper");
    assert!((ms / paper_ms - 1.0).abs() <= 0.05, "{what}: {ms:.1} ms, {paper_ms} ms in the paper");
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the LBA of a block far from all others: no two lie in one band.
fn scattered(number: u64) -> Lba {
    Lba(number * 2_654_435 % 9_000_000 * 1000)
}

#[test]
fn synchronous_writes_take_two_and_a_half_rotations_and_every_240th_merges_the_map() {
    let mut drive = Clocked::new();
    let times: Vec<f64> = (0..480).map(|number| drive.serve_ms(&[Command::write(scattered(number).0, 8)])).collect();
    // The first write, and each one after a merge, wait for their place to pass under the head.
    let steady: Vec<f64> = times.iter().copied().skip(1).filter(|&ms| ms < 100.0).collect();
    assert_eq!(steady.len(), 477);
    assert_within_5_percent("4 KiB at depth 1", mean(&steady), 25.0);
    for number in [239, 479] {
        assert_within_5_percent("the 240th", times[number], 325.0);
    }
}

#[test]
fn packets_grow_by_half_tracks() {
    let mut drive = Clocked::new();
    let sizes_kib = [(4, 25.0), (26, 25.0), (28, 30.0), (54, 30.0), (56, 35.0), (82, 35.0), (84, 40.0)];
    for (kib, paper_ms) in sizes_kib {
        let mut times = Vec::new();
        for round in 0..8 {
            let batch: Vec<_> =
                (0..31).map(|number| Command::write(scattered(31 * round + number).0, kib * 2)).collect();
            times.push(drive.serve_ms(&batch));
        }
        // The first batch of a size may have to wait, because the gap before it belongs to another size.
        assert_within_5_percent(&format!("{kib} KiB at depth 31"), mean(&times[1..]), paper_ms);
    }
}

#[test]
fn re_reads_in_the_written_order_are_half_a_rotation_apart_or_a_whole_one() {
    for (depth, paper_ms) in [(1, 5.0), (31, 10.0)] {
        let mut drive = Clocked::new();
        let writes: Vec<_> = (0..93).map(|number| Command::write(scattered(number).0, 8)).collect();
        writes.chunks(depth).for_each(|batch| {
            drive.serve_ms(batch);
        });
        let mut times: Vec<f64> = writes.iter().map(|write| drive.serve_ms(&[Command::read(write.lba.0, 8)])).collect();
        times.remove(0);
        if depth > 1 {
            times.retain(|&ms| ms > 8.0); // The first block of a packet lies at another distance from the block before.
            assert!(times.len() >= 90);
        }
        assert_within_5_percent(&format!("re-read after depth {depth}"), mean(&times), paper_ms);
    }
}

#[test]
fn cleaning_takes_as_long_as_measured() {
    let mut drive = Clocked::new();
    let middle = drive.layer.capacity().0 / 2;
    let band = drive.layer.shape.bands.locate(Lba(middle)).region;
    let first = drive.layer.shape.bands.first_lba(band).0;
    let mut longest_phase_ms = 0.0;
    drive.serve_ms(&[Command::write(first + 800, 8)]);
    let one = drive.idle_ms(&mut longest_phase_ms);
    // Every other block, as in the paper's Test 3.
    let blocks: Vec<_> = (0..512).map(|number| Command::write(first + number * 16, 8)).collect();
    blocks.chunks(31).for_each(|batch| {
        drive.serve_ms(batch);
    });
    let many = drive.idle_ms(&mut longest_phase_ms);
    println!("one block: {one:.0} ms; 512 blocks: {many:.0} ms; longest phase {longest_phase_ms:.1} ms");
    // Aghayev 2015 §4.5.1: 3000 bands in 30 minutes by the text (600 ms), 800 in the first 10 by fig. 12 (750 ms). Ours
    // lies between the two. The experiment's report shows that it is not within 5 % of the first.
    assert!((600.0..=750.0).contains(&one), "one dirty block: {one:.0} ms");
    assert_within_5_percent("512 dirty blocks", many, 1600.0);
    let whole = Sectors(drive.layer.shape.bands.sectors(band).0 * 512);
    assert!((29 << 20..31 << 20).contains(&whole.0), "a band of {} bytes at 2.5 TB", whole.0);
}
