//! Operations: the work of the drive from one decision to the next, and the time of each part of it. An observer that
//! explains latencies receives them.
//!
//! ```text
//!   begin                          host_end             end
//!     │ stretch │ stretch │ … │ stretch │ … │ stretch │
//!       overhead   phases of the plan: access, rewriting, cleaning, …
//! ```
//!
//! Invariants:
//! 1. Operations do not overlap, and come in order of time: the drive has one actuator.
//! 2. The stretches of an operation follow each other without a gap from its `begin` to its `end`.

use imbrex_disk::{Command, SimDuration, SimTime};
use imbrex_layer::Plan;

use crate::queue::Waiting;

/// The kind of work that a part of an operation does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Work {
    /// Reads or writes the sectors of the host's commands, or of a write-back of the volatile cache. The overhead of the
    /// controller and the bus counts here too.
    Access,
    /// Reads, copies or rewrites other sectors within the service of a command, because the command's own write destroys
    /// them.
    Rewriting,
    /// Writes records and the map of the layer within the service of a command.
    Bookkeeping,
    /// Cleaning by the layer: reclaims space in a cache or log.
    Cleaning,
    /// Migration by the layer: moves data to a place at which they are cheaper to write.
    Migration,
    /// Repair after a power cut.
    Recovery,
}

impl Work {
    /// Number of kinds.
    pub const COUNT: usize = 6;

    /// Returns the name of the kind in results, such as `access`.
    pub const fn name(self) -> &'static str {
        match self {
            Work::Access => "access",
            Work::Rewriting => "rewriting",
            Work::Bookkeeping => "bookkeeping",
            Work::Cleaning => "cleaning",
            Work::Migration => "migration",
            Work::Recovery => "recovery",
        }
    }

    /// Returns whether the work is the layer's own: cleaning, migration or recovery.
    pub const fn is_own_work(self) -> bool {
        matches!(self, Work::Cleaning | Work::Migration | Work::Recovery)
    }
}

/// Consecutive accesses of one phase that do the same kind of work, and the time that they take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Index of the phase in the plan's list of phases.
    pub phase: u32,
    /// The kind of work that the accesses do.
    pub work: Work,
    /// Simulated time that the accesses take.
    pub taken: SimDuration,
}

/// A stretch of time in which an operation does one kind of work. It begins where the stretch before it ends, or with the
/// operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// Simulated time at which the stretch ends.
    pub until: SimTime,
    /// Index of the phase in the plan's list of phases. Overhead counts to the phase before it, or to the first.
    pub phase: u32,
    /// The kind of work that the drive does.
    pub work: Work,
}

/// Replaces the contents of `stretches` by those of an operation from `begin` to `end`, whose plan was carried out from
/// `from` on in the given segments. Time in which no access was made counts as access of the phase before. Accesses that
/// began before the operation, as read look-ahead does, count from `begin` on.
pub(crate) fn lay_out(segments: &[Segment], begin: SimTime, from: SimTime, end: SimTime, stretches: &mut Vec<Stretch>) {
    stretches.clear();
    let mut add = |until: SimTime, phase: u32, work: Work| {
        let reached = stretches.last().map_or(begin, |last: &Stretch| last.until);
        if until > reached {
            match stretches.last_mut() {
                Some(last) if (last.phase, last.work) == (phase, work) => last.until = until,
                _ => stretches.push(Stretch { until, phase, work }),
            }
        }
    };
    add(from.min(end), 0, Work::Access);
    let (mut now, mut phase) = (from, 0);
    for segment in segments {
        now += segment.taken;
        phase = segment.phase;
        add(now.min(end), phase, segment.work);
    }
    add(end, phase, Work::Access);
}

/// The event for which the volatile cache is written back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum WriteBack {
    /// The cache has no room for a waiting write, or is nearly full.
    Room,
    /// A flush waits until older writes are on the medium.
    Flush,
    /// A command that bypasses the cache must not overtake the dirty sectors.
    Order,
    /// The drive is idle.
    Idle,
}

impl WriteBack {
    /// Returns the name of the event in results: `room`, `flush`, `order` or `idle`.
    pub const fn name(self) -> &'static str {
        match self {
            WriteBack::Room => "room",
            WriteBack::Flush => "flush",
            WriteBack::Order => "order",
            WriteBack::Idle => "idle",
        }
    }
}

/// The purpose of an operation.
#[derive(Clone, Copy, Debug)]
pub enum Purpose<'a> {
    /// Serves these requests of the host together: the one that the scheduler chose, then those that joined it.
    Serve(&'a [Waiting]),
    /// Writes ranges of the volatile cache back. The numbers are those of the oldest write in each range, in the order of
    /// the operation's commands.
    WriteBack(WriteBack, &'a [u64]),
    /// Does a phase of the layer's own work in idle time.
    Background,
}

/// One operation of the drive.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a> {
    /// The purpose of the operation: requests that it serves, a write-back, or work in idle time.
    pub purpose: Purpose<'a>,
    /// Simulated time at which the drive began the operation.
    pub begin: SimTime,
    /// Simulated time at which the requests of the operation were answered; that of `end` if there are none.
    pub host_end: SimTime,
    /// Simulated time from which on the drive was free for the next operation.
    pub end: SimTime,
    /// The commands that the plan serves: of the host, or writes of dirty ranges of the cache. Empty in idle time.
    pub commands: &'a [Command],
    /// The accesses of the operation, made by the layer.
    pub plan: &'a Plan,
    /// The stretches of the operation, from `begin` to `end`.
    pub stretches: &'a [Stretch],
}
