//! The source of a workload's requests, phase after phase.
//!
//! ```text
//!            ┌──────────── idle phase: remember it ───────────┐
//!            ▼                                                │
//!   between phases ── phase of requests: build walk and pace ─┴─► within a phase ── over ──► between phases
//!            │                                                                        (the last, in the last loop: end)
//! ```
//!
//! Invariants:
//! 1. Equal specs, drive sizes and times of calls give equal requests.
//! 2. Memory is constant; allocations happen only when a phase begins.
//! 3. Every phase makes at least one request.

use imbrex_units::{SimDuration, SimTime};

use super::error::{WordPlace, WorkloadError};
use super::pace::Pace;
use super::random::{Stream, mix};
use super::spec::{Job, Phase, WorkloadSpec};
use super::walk::Walk;
use crate::request::{Request, Source, TraceError};

/// A source that generates the requests described by a [`WorkloadSpec`], a checked description in fio's words.
#[derive(Clone, Debug)]
pub struct Generator {
    spec: WorkloadSpec,
    device_sectors: u64,
    expected_requests: Option<u64>,
    /// Number of phases with requests begun so far, over all loops. It selects the stream of random numbers of a phase.
    ordinal: u64,
    next_phase: usize,
    loops_left: u64,
    idle: Option<SimDuration>,
    /// End of the time line of the phases with a rate. The next such phase continues from it.
    line: SimTime,
    running: Option<Running>,
}

/// A phase in progress.
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
    /// Returns a source of the requests of `spec` on a drive of `device_sectors` sectors of 512 bytes. Equal specs and
    /// sizes give equal requests if the requests are taken at equal simulated times.
    ///
    /// # Errors
    ///
    /// If the region of a phase does not fit on the drive, or if a region is smaller than the largest block of its
    /// phase. The error names the phase.
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

    /// Returns the description from which the requests are generated.
    pub fn spec(&self) -> &WorkloadSpec {
        &self.spec
    }

    /// Begins the next phase with requests, and adds up the idle phases before it. Returns false at the end of the
    /// workload.
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

    /// Returns whether requests depend on the times of the calls. The `runtime` of a phase without a rate is measured
    /// by these times. So is the beginning of a phase with a rate after an idle phase.
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
