//! The times of the requests in a phase, and the end of the phase by `runtime`.
//!
//! A phase with a rate has its own time line ([`When::At`]), which continues the time line of the previous phase. It
//! ends by that time line, so that every drive gets the same requests. A phase without a rate makes a request whenever
//! a slot in the queue becomes free, and ends by the simulated time passed in the calls. A workload has only phases
//! with a rate, or only phases without.
//!
//! Invariants:
//! 1. Times of [`When::At`] never decrease, also across phases.
//! 2. The first request after an idle phase is [`When::Drained`]; the phase's time begins no earlier than the end of
//!    the idle phase.

use imbrex_units::{SimDuration, SimTime};

use super::random::Stream;
use super::spec::Job;
use crate::request::When;

/// Nanoseconds in a second times 1000. This number over the rate in thousandths is the distance of two requests in
/// nanoseconds.
const NS_THOUSANDTHS: u128 = 1_000_000_000_000;

#[derive(Clone, Debug)]
enum Process {
    /// Requests are made when slots in the queue become free, with a pause before every `every`-th one.
    Closed { thinktime: SimDuration, every: u64 },
    /// Requests are made at a rate, at equal distances.
    Linear { rate_thousandths: u64 },
    /// Requests are made at a rate, at exponentially distributed distances.
    Poisson { mean_ns: f64, next: SimTime, stream: Stream },
}

/// The pace of a phase: the times of its requests.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    process: Process,
    runtime: SimDuration,
    begin: SimTime,
    /// Length of the idle phase before the first request; `None` once that request was made.
    idle: Option<SimDuration>,
    /// Whether the actual end of the idle phase is unknown. The first call after the idle phase gives the end, and then
    /// `begin` is set.
    unsettled: bool,
    made: u64,
    /// End of the phase by `runtime`, once it was reached.
    end: Option<SimTime>,
}

impl Pace {
    /// Returns the pace of a phase of `job` that begins in a call at `now`, after `idle`. `line` is the end of the time
    /// line of the previous phases.
    pub(super) fn new(job: &Job, now: SimTime, line: SimTime, idle: Option<SimDuration>, stream: Stream) -> Pace {
        let timed = job.rate_thousandths > 0;
        let start = match idle {
            None if timed => line,
            _ => now.max(line),
        };
        let begin = after(start, idle.unwrap_or(SimDuration::ZERO));
        let process = match (timed, job.poisson) {
            (false, _) => Process::Closed { thinktime: job.thinktime, every: job.thinktime_blocks },
            (true, false) => Process::Linear { rate_thousandths: job.rate_thousandths },
            (true, true) => Process::Poisson { mean_ns: 1e12 / job.rate_thousandths as f64, next: begin, stream },
        };
        Pace { process, runtime: job.runtime, begin, idle, unsettled: idle.is_some(), made: 0, end: None }
    }

    /// Returns the time of the next request, or `None` once the `runtime` of the phase is over.
    pub(super) fn next(&mut self, now: SimTime) -> Option<When> {
        if let Some(idle) = self.idle.take() {
            self.made = 1;
            return Some(When::Drained(idle));
        }
        if self.unsettled {
            self.unsettled = false;
            self.begin = self.begin.max(now);
            if let Process::Poisson { next, .. } = &mut self.process {
                *next = self.begin;
            }
        }
        let at = self.advance();
        let elapsed = at.unwrap_or(now).since(self.begin);
        if !self.runtime.is_zero() && elapsed >= self.runtime {
            self.end = Some(after(self.begin, self.runtime));
            return None;
        }
        self.made += 1;
        Some(at.map_or_else(|| self.when_free(), When::At))
    }

    /// Returns the time of the next request if the phase has a rate.
    fn advance(&mut self) -> Option<SimTime> {
        match &mut self.process {
            Process::Closed { .. } => None,
            Process::Linear { rate_thousandths } => Some(after(self.begin, distance(self.made, *rate_thousandths))),
            Process::Poisson { mean_ns, next, stream } => {
                *next = after(*next, SimDuration(stream.exponential_ns(*mean_ns)));
                Some(*next)
            }
        }
    }

    /// Returns the time of request number `made` in a phase without a rate.
    fn when_free(&self) -> When {
        match &self.process {
            Process::Closed { thinktime, every } if self.made > 1 && (self.made - 1).is_multiple_of(*every) => {
                When::Free(*thinktime)
            }
            _ => When::Free(SimDuration::ZERO),
        }
    }

    /// Returns the time of a flush that immediately follows the last request.
    pub(super) fn with_last(&self) -> When {
        match self.process {
            Process::Linear { .. } | Process::Poisson { .. } if !self.unsettled => When::At(self.line()),
            _ => When::Free(SimDuration::ZERO),
        }
    }

    /// Returns the current end of the time line: the time of the last request, or the end of the phase by `runtime`.
    pub(super) fn line(&self) -> SimTime {
        let last = match &self.process {
            Process::Closed { .. } => SimTime::ZERO,
            Process::Linear { rate_thousandths } => {
                after(self.begin, distance(self.made.saturating_sub(1), *rate_thousandths))
            }
            Process::Poisson { next, .. } => *next,
        };
        self.end.unwrap_or(last)
    }
}

/// Returns `time + duration`, at most the end of simulated time. After six hundred years all requests have that time.
fn after(time: SimTime, duration: SimDuration) -> SimTime {
    SimTime(time.0.saturating_add(duration.0))
}

/// Returns the time that `count` requests take at a rate.
fn distance(count: u64, rate_thousandths: u64) -> SimDuration {
    let distance_ns = count as u128 * NS_THOUSANDTHS / rate_thousandths as u128;
    SimDuration(u64::try_from(distance_ns).unwrap_or(u64::MAX))
}
