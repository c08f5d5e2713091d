//! A workload's requests, phase after phase.
//!
//! ```text
//!            ┌──────────── idle phase: remember it ───────────┐
//!            ▼                                                │
//!   between phases ── phase of requests: build walk and pace ─┴─► within a phase ── over ──► between phases
//!            │                                                                        (the last, in the last loop: end)
//! ```
//!
//! Invariants:
//! 1. The same spec, drive size and times of call give the same requests.
//! 2. Memory is constant; nothing is allocated but when a phase begins.
//! 3. Every phase makes at least one request.

use imbrex_units::{SimDuration, SimTime};

use super::error::{WordPlace, WorkloadError};
use super::pace::Pace;
use super::random::{Stream, mix};
use super::spec::{Job, Phase, WorkloadSpec};
use super::walk::Walk;
use crate::request::{Request, Source, TraceError};

/// The requests of a [`WorkloadSpec`].
#[derive(Clone, Debug)]
pub struct Generator {
    spec: WorkloadSpec,
    device_sectors: u64,
    expected_requests: Option<u64>,
    /// Phases gone through so far, over all loops: what tells their random numbers apart.
    ordinal: u64,
    next_phase: usize,
    loops_left: u64,
    idle: Option<SimDuration>,
    /// Where the time line of the phases with a rate stands.
    line: SimTime,
    running: Option<Running>,
}

/// A phase under way.
#[derive(Clone, Debug)]
struct Running {
    walk: Walk,
    pace: Pace,
}

impl Running {
    #[inline]
    fn next(&mut self, now: SimTime) -> Option<Request> {
        let when = match self.walk.flush_is_due() {
            true => self.pace.with_last(),
            false => self.pace.next(now)?,
        };
        let command = self.walk.next()?;
        Some(Request { when, device: 0, command })
    }
}

impl Generator {
    /// The requests of `spec` on a drive of `device_sectors` sectors of 512 bytes; refused where a phase does not fit.
    pub fn new(spec: WorkloadSpec, device_sectors: u64) -> Result<Generator, WorkloadError> {
        let mut expected = Some(0u64);
        for (index, phase) in spec.phases.iter().enumerate() {
            let Phase::Run(job) = phase else { continue };
            let walk = Walk::new(job, device_sectors, spec.seed(), 0)
                .map_err(|complaint| complaint.at(WordPlace::Phase(index + 1)))?;
            let requests = walk.expected_requests().filter(|_| job.runtime.is_zero());
            expected = expected.zip(requests).and_then(|(sum, requests)| sum.checked_add(requests));
        }
        let loops = spec.whole.loops;
        Ok(Generator {
            device_sectors,
            expected_requests: expected.and_then(|requests| requests.checked_mul(loops)),
            ordinal: 0,
            next_phase: 0,
            loops_left: loops,
            idle: None,
            line: SimTime::ZERO,
            running: None,
            spec,
        })
    }

    /// What it was made from.
    pub fn spec(&self) -> &WorkloadSpec {
        &self.spec
    }

    /// Goes on to the next phase of requests, past idle ones; false at the end.
    fn begin_phase(&mut self, now: SimTime) -> bool {
        loop {
            if self.next_phase == self.spec.phases.len() {
                self.loops_left -= 1;
                self.next_phase = 0;
            }
            if self.loops_left == 0 {
                return false;
            }
            let phase = &self.spec.phases[self.next_phase];
            self.next_phase += 1;
            match phase {
                Phase::Idle(duration) => {
                    let sum = self.idle.map_or(duration.0, |idle| idle.0.saturating_add(duration.0));
                    self.idle = Some(SimDuration(sum));
                }
                Phase::Run(job) => {
                    let running = self.start(job, now);
                    self.ordinal += 1;
                    self.idle = None;
                    self.running = Some(running);
                    return true;
                }
            }
        }
    }

    fn start(&self, job: &Job, now: SimTime) -> Running {
        let seed = self.spec.seed();
        let walk = Walk::new(job, self.device_sectors, seed, self.ordinal).expect("every phase was built once in new");
        let arrivals = Stream::new(mix(!seed), self.ordinal);
        Running { walk, pace: Pace::new(job, now, self.line, self.idle, arrivals) }
    }
}

impl Source for Generator {
    fn next(&mut self, now: SimTime) -> Result<Option<Request>, TraceError> {
        loop {
            if let Some(running) = &mut self.running {
                if let Some(request) = running.next(now) {
                    return Ok(Some(request));
                }
                self.line = running.pace.line();
                self.running = None;
            }
            if self.loops_left == 0 || !self.begin_phase(now) {
                return Ok(None);
            }
        }
    }

    /// A phase without a rate ends by the time of its calls, and so begins the time of any phase after an idleness.
    fn heeds_time(&self) -> bool {
        let phases = &self.spec.phases;
        let idles = phases.iter().any(|phase| matches!(phase, Phase::Idle(_)));
        phases.iter().any(|phase| match phase {
            Phase::Idle(_) => false,
            Phase::Run(job) if job.rate_thousandths > 0 => idles,
            Phase::Run(job) => !job.runtime.is_zero(),
        })
    }

    fn expected_requests(&self) -> Option<u64> {
        self.expected_requests
    }
}
