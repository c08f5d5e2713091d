//! The times of the requests, which come in bursts with pauses between them.
//!
//! Neither the paper nor the statistics of the traces give the times. Gaps within bursts follow Hajkazemi 2019 fig. 6.
//! Burst lengths and pause lengths are drawn from one of four sources, which all machines share. Only the pauses are
//! scaled, so that all requests take the week that the traces last according to their publishers.
//!
//! Invariants:
//! 1. Times never decrease.
//! 2. The only property of the machine used here is its number of requests.

use imbrex_units::{SimDuration, SimTime};

use super::super::random::Stream;
use super::bursts::{self, GROUPS, Table};

const DAY_NS: f64 = 86_400e9;

/// Mean gaps within a burst in nanoseconds; each applies to half of the gaps. Half of all gaps are in the range of 100
/// µs, and four fifths are below 500 µs, as Hajkazemi 2019 §3 says of two of its machines (fig. 6).
const GAP_NS: [f64; 2] = [100e3, 450e3];

/// Minimum gap in nanoseconds before a request that begins a burst.
pub(super) const PAUSE_NS_MIN: f64 = 10e6;

/// Source of the lengths of bursts, in requests, and of the pauses between bursts of a generated workload. Pauses are
/// scaled so that all requests take a given number of days, 7 by default ([`Choices::days`](super::Choices::days)).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Arrivals {
    /// Bursts and pauses as measured in a trace of one virtual machine of the CloudPhysics collection,
    /// `cloudPhysicsIO.vscsi`. This is the default.
    #[default]
    CloudPhysics,
    /// Bursts and pauses as measured in blkreplay's trace of a MySQL server.
    Mysql,
    /// Bursts and pauses as measured in blkreplay's trace of a Microsoft SQL Server.
    Mssql,
    /// No trace: a Poisson process with the machine's mean rate of requests.
    Poisson,
}

impl Arrivals {
    /// All variants, in the order of their declaration.
    pub const ALL: [Arrivals; 4] = [Arrivals::CloudPhysics, Arrivals::Mysql, Arrivals::Mssql, Arrivals::Poisson];

    /// Returns the name of the variant in results and documents, such as `mysql`.
    pub fn name(self) -> &'static str {
        match self {
            Arrivals::CloudPhysics => "cloudphysics",
            Arrivals::Mysql => "mysql",
            Arrivals::Mssql => "mssql",
            Arrivals::Poisson => "poisson",
        }
    }
}

/// Lengths of bursts and pauses, before scaling.
#[derive(Clone, Copy, Debug)]
enum Bursts {
    /// Lengths drawn from a table.
    Traced(&'static Table),
    /// A Poisson process with this mean gap, cut into bursts like the traces: bursts have geometric lengths, and pauses
    /// are exponential.
    Random { mean_gap_ns: f64 },
}

impl Bursts {
    fn of(arrivals: Arrivals, requests: u64, span_ns: f64) -> Bursts {
        match arrivals {
            Arrivals::CloudPhysics => Bursts::Traced(&bursts::CLOUDPHYSICS),
            Arrivals::Mysql => Bursts::Traced(&bursts::MYSQL),
            Arrivals::Mssql => Bursts::Traced(&bursts::MSSQL),
            Arrivals::Poisson => Bursts::Random { mean_gap_ns: span_ns / requests as f64 },
        }
    }

    fn mean_requests(&self) -> f64 {
        match self {
            Bursts::Traced(table) => mean(&table.burst_requests),
            Bursts::Random { mean_gap_ns } => (PAUSE_NS_MIN / mean_gap_ns).exp(),
        }
    }

    fn mean_pause_ns(&self) -> f64 {
        match self {
            Bursts::Traced(table) => mean(&table.pause_us) * 1e3,
            Bursts::Random { mean_gap_ns } => PAUSE_NS_MIN + mean_gap_ns,
        }
    }

    /// Draws the number of requests in the next burst.
    fn requests(&self, stream: &mut Stream) -> u64 {
        match self {
            Bursts::Traced(table) => {
                let requests = table.burst_requests[group(stream)];
                requests as u64 + u64::from(stream.unit() < requests.fract())
            }
            Bursts::Random { .. } => {
                // The number of consecutive gaps shorter than a pause is geometric; it is drawn by inversion.
                let share_shorter = 1.0 - 1.0 / self.mean_requests();
                1 + ((1.0 - stream.unit()).ln() / share_shorter.ln()) as u64
            }
        }
    }

    fn pause_ns(&self, stream: &mut Stream) -> f64 {
        match self {
            Bursts::Traced(table) => table.pause_us[group(stream)] * 1e3,
            Bursts::Random { mean_gap_ns } => PAUSE_NS_MIN + stream.exponential_ns(*mean_gap_ns) as f64,
        }
    }
}

fn mean(values: &[f64; GROUPS]) -> f64 {
    values.iter().enumerate().map(|(group, value)| bursts::weight(group) * value).sum()
}

/// Draws a group of a table with a probability equal to its weight.
fn group(stream: &mut Stream) -> usize {
    let share = stream.unit();
    let group = match share {
        share if share < 0.9 => share / 0.025,
        share if share < 0.99 => 36.0 + (share - 0.9) / 0.01,
        share => 45.0 + (share - 0.99) / 0.001,
    };
    (group as usize).min(GROUPS - 1)
}

/// Assigns times to requests.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    bursts: Bursts,
    /// Factor by which pauses are multiplied.
    scale: f64,
    burst_left: u64,
    time: SimTime,
}

impl Pace {
    /// Returns the pace of `requests` requests over `days` days.
    pub(super) fn new(arrivals: Arrivals, requests: u64, days: u32) -> Pace {
        let span_ns = days as f64 * DAY_NS;
        let bursts = Bursts::of(arrivals, requests, span_ns);
        let count = requests as f64 / bursts.mean_requests();
        let gaps_ns = (requests as f64 - count) * (GAP_NS[0] + GAP_NS[1]) / 2.0;
        let scale = (span_ns - gaps_ns) / (count * bursts.mean_pause_ns());
        assert!(scale > 0.0, "{requests} requests take longer than {days} days without any pause");
        Pace { bursts, scale, burst_left: 0, time: SimTime::ZERO }
    }

    /// Returns the time of the next request.
    #[inline]
    pub(super) fn next(&mut self, stream: &mut Stream) -> SimTime {
        let wait_ns = if self.burst_left == 0 {
            self.burst_left = self.bursts.requests(stream);
            (self.bursts.pause_ns(stream) * self.scale) as u64
        } else {
            let mean_ns = GAP_NS[stream.below(2) as usize];
            stream.exponential_ns(mean_ns)
        };
        self.burst_left -= 1;
        self.time += SimDuration(wait_ns);
        self.time
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the rule of arrivals. Method: the tables compared with the traces behind them; the times of many requests
    //! compared with a week, and with the means of the source.

    use super::*;

    fn times(arrivals: Arrivals, requests: u64) -> Vec<u64> {
        let (mut pace, mut stream) = (Pace::new(arrivals, requests, 7), Stream::new(3, 0));
        (0..requests).map(|_| pace.next(&mut stream).0).collect()
    }

    #[test]
    fn requests_take_a_week_from_every_source() {
        for arrivals in Arrivals::ALL {
            for requests in [1_000_000, 4_000_000] {
                let times = times(arrivals, requests);
                let share = times[times.len() - 1] as f64 / (7.0 * DAY_NS);
                assert!((0.97..1.03).contains(&share), "{arrivals:?}: {share} of a week");
                assert!(times.is_sorted());
            }
        }
    }

    #[test]
    fn gaps_within_bursts_are_those_of_figure_6() {
        let mut gaps: Vec<u64> = times(Arrivals::Mssql, 1_000_000).windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.retain(|&gap_ns| (gap_ns as f64) < PAUSE_NS_MIN);
        gaps.sort_unstable();
        let (median, high) = (gaps[gaps.len() / 2], gaps[gaps.len() * 4 / 5]);
        assert!((50_000..200_000).contains(&median) && high < 500_000, "{median} and {high} ns");
    }

    #[test]
    fn bursts_are_as_long_as_in_the_source() {
        for arrivals in Arrivals::ALL {
            let requests = 1_000_000;
            let bursts = Bursts::of(arrivals, requests, 7.0 * DAY_NS);
            let mut stream = Stream::new(5, 0);
            let sum: u64 = (0..requests).map(|_| bursts.requests(&mut stream)).sum();
            let (mean, made) = (bursts.mean_requests(), sum as f64 / requests as f64);
            assert!((made / mean - 1.0).abs() < 0.02, "{arrivals:?}: {made} requests a burst, {mean} in the source");
        }
    }
}
