//! Read look-ahead: after a read the drive goes on reading the sectors that follow into its buffer, until it has
//! something else to do or the buffer is full.
//!
//! The buffer is not modelled sector by sector. A read that follows the last one, with no command between them, is
//! timed as if it had begun when the last one ended. So the sectors that the drive has read by now take no further
//! time, and the rest is being read.
//!
//! Invariants:
//! 1. A read gains by look-ahead only if it reads the platters and continues the last read, possibly after sectors that
//!    it skips in the same run.
//! 2. Any other movement of the head ends the look-ahead.

use imbrex_disk::{Command, Lba, Operation, Pba, Sectors, SimTime};
use imbrex_layer::{Medium, Plan, Step, StepOp};

/// The read look-ahead of a drive: after a read, the drive reads the following sectors into its buffer until the buffer
/// is full or another command moves the head.
#[derive(Clone, Debug)]
pub struct ReadAhead {
    sectors_max: u64,
    going_on: Option<GoingOn>,
}

/// The read that the drive continues: the first sector after it, and the time of its end.
#[derive(Clone, Copy, Debug)]
struct GoingOn {
    lba: Lba,
    pba: Pba,
    since: SimTime,
}

impl ReadAhead {
    /// Creates the look-ahead with a buffer of `sectors_max` sectors; zero turns it off.
    pub fn new(sectors_max: Sectors) -> ReadAhead {
        ReadAhead { sectors_max: sectors_max.0, going_on: None }
    }

    /// Returns the time from which on the drive has been reading ahead, if the read `commands` benefits: the end of the
    /// last read. `plan` is the plan for the read.
    ///
    /// Returns `None` unless the read is a single command that continues the last read, possibly after skipped sectors
    /// of the same run, and ends within the buffer's size after it. The plan must only read the platters.
    pub fn begun(&self, commands: &[Command], plan: &Plan) -> Option<SimTime> {
        let going_on = self.going_on?;
        let [command] = commands else { return None };
        let ahead = command.end().0.checked_sub(going_on.lba.0)?;
        let skipped = command.lba.0.checked_sub(going_on.lba.0)?;
        // Sectors that follow directly are read wherever they lie. Skipped sectors are passed over only within one run.
        let on_the_way = match skipped {
            0 => reads_on_platters(command, plan),
            _ => one_run(command, plan).is_some_and(|first| first.pba.0 == going_on.pba.0 + skipped),
        };
        (on_the_way && ahead <= self.sectors_max).then_some(going_on.since)
    }

    /// Records that `plan` for `commands` was carried out and ended at `end`. If it was a single read from the
    /// platters, look-ahead begins there; anything else ends it.
    pub fn carried_out(&mut self, commands: &[Command], plan: &Plan, end: SimTime) {
        self.going_on = None;
        if self.sectors_max == 0 {
            return;
        }
        let [command] = commands else { return };
        let Some(last) = plan.steps.last().filter(|_| reads_on_platters(command, plan)) else { return };
        let pba = Pba(last.pba.0 + last.sectors as u64);
        self.going_on = Some(GoingOn { lba: command.end(), pba, since: end });
    }
}

/// Returns whether `plan` only reads the whole of `command` from the platters, in the order of its sectors.
fn reads_on_platters(command: &Command, plan: &Plan) -> bool {
    let mut next = command.lba;
    for step in &plan.steps {
        if step.op != StepOp::Read || step.medium != Medium::Disk || step.lba != next {
            return false;
        }
        next = Lba(next.0 + step.sectors as u64);
    }
    command.operation == Operation::Read && next == command.end() && next > command.lba
}

/// Returns the first step of a plan that reads the whole of `command` in one run on the platters, or `None` for another
/// plan.
fn one_run<'a>(command: &Command, plan: &'a Plan) -> Option<&'a Step> {
    if command.operation != Operation::Read {
        return None;
    }
    let (first, rest) = plan.steps.split_first()?;
    let mut last = first;
    for step in rest {
        if !step.continues(last) {
            return None;
        }
        last = step;
    }
    let whole = (last.pba.0 + last.sectors as u64) - first.pba.0 == command.sectors as u64;
    (first.op == StepOp::Read && first.medium == Medium::Disk && whole).then_some(first)
}
