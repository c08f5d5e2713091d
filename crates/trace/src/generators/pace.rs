//! When the requests of a phase are made, and when its time is over.
//!
//! A phase with a rate has a time line of its own ([`When::At`]), which continues that of the phase before; it ends by that line, so that every drive is asked the same. A phase without one asks as places in the queue
//! become free, and ends by the simulated time it is called with. The two are not mixed in one workload.
//!
//! Invariants:
//! 1. Times of [`When::At`] never decrease, over phases too.
//! 2. The first request after an idle phase is [`When::Drained`]; the phase's time begins no earlier than the idleness
//!    ends.

use imbrex_units::{SimDuration, SimTime};

use super::random::Stream;
use super::spec::Job;
use crate::request::When;

/// Billionths of a second times thousandths of a rate: a request's distance in nanoseconds is this over the rate.
const NS_THOUSANDTHS: u128 = 1_000_000_000_000;

#[derive(Clone, Debug)]
enum Process {
    /// As places become free, with a pause before every so many requests.
    Closed { thinktime: SimDuration, every: u64 },
    /// At a rate, evenly.
    Linear { rate_thousandths: u64 },
    /// At a rate, with exponential distances.
    Poisson { mean_ns: f64, next: SimTime, stream: Stream },
}

/// The time of a phase.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    process: Process,
    runtime: SimDuration,
    begin: SimTime,
    /// The idleness before the first request, until that was made.
    idle: Option<SimDuration>,
    /// Whether `begin` waits for the first call after an idleness to tell when that really ended.
    unsettled: bool,
    made: u64,
    /// When the phase's time was over, once it is.
    end: Option<SimTime>,
}

impl Pace {
    /// The time of a phase of `job` that begins at the call at `now`, after `idle`; `line` is where the time
    /// line of the phases before left off.
    pub fn new(job: &Job, now: SimTime, line: SimTime, idle: Option<SimDuration>, stream: Stream) -> Pace {
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

    /// When the next request is made; none once the phase's time is over.
    pub fn next(&mut self, now: SimTime) -> Option<When> {
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

    /// The time of the next request, where the phase has a rate.
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

    /// The word for a phase without a rate; `made` counts the request asked about.
    fn when_free(&self) -> When {
        match &self.process {
            Process::Closed { thinktime, every } if self.made > 1 && (self.made - 1).is_multiple_of(*every) => {
                When::Free(*thinktime)
            }
            _ => When::Free(SimDuration::ZERO),
        }
    }

    /// When a flush is made that follows the last request at once.
    pub fn with_last(&self) -> When {
        match self.process {
            Process::Linear { .. } | Process::Poisson { .. } if !self.unsettled => When::At(self.line()),
            _ => When::Free(SimDuration::ZERO),
        }
    }

    /// Where its time line stands: at the request last asked about or at the end of its time.
    pub fn line(&self) -> SimTime {
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

/// `time` and so much more, up to the end of simulated time: after six hundred years requests come all at once.
fn after(time: SimTime, duration: SimDuration) -> SimTime {
    SimTime(time.0.saturating_add(duration.0))
}

/// The distance of `count` requests at a rate.
fn distance(count: u64, rate_thousandths: u64) -> SimDuration {
    let distance_ns = count as u128 * NS_THOUSANDTHS / rate_thousandths as u128;
    SimDuration(u64::try_from(distance_ns).unwrap_or(u64::MAX))
}
