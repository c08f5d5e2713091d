//! Sums over all requests: which cause makes up which share of the long latencies, and which devices and LBA ranges wait
//! for which others.

use std::ops::RangeInclusive;

use imbrex_disk::{Lba, Sectors, SimDuration};

use super::fills::{Devices, Fill, RANGES};
use super::part::Cause;
use crate::metrics::latency::LatencyHistogram;

/// Number of classes of latency for each power of two.
const CLASSES_PER_POWER: u64 = 32;

/// Largest number of LBA ranges that a summary lists.
const LISTED_MAX: usize = 8;

/// The sums of time by cause over the requests at or above a quantile of latency.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CauseShares {
    /// Name of the group of requests: `all`; `p99` and `p999`, from these quantiles of latency on; or `longest`, a
    /// single request.
    pub name: &'static str,
    /// Smallest latency of the group. It may lie up to 3 % below the quantile.
    pub from: SimDuration,
    /// Number of requests of the group.
    pub requests: u64,
    /// Time of each cause, summed over the requests; in the order of [`Cause::ALL`].
    pub times: [u64; Cause::COUNT],
}

/// The waiting times of requests in one way of division.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ranges {
    /// Parts of the addressed sectors, each a 64th, with the waiting time in nanoseconds: the eight with the greatest
    /// times.
    pub lbas: Vec<(RangeInclusive<Lba>, u64)>,
    /// Waiting times in nanoseconds, by device of the trace.
    pub devices: Devices,
}

/// The requests that wait, or those that make others wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Involved {
    /// The time that requests waited for others, by the address and device of the request that waited.
    pub waiting: Ranges,
    /// The time that requests waited for others, by the address and device of the requests that were served meanwhile, or
    /// whose writes made the cleaning necessary.
    pub causing: Ranges,
    /// The time in nanoseconds that requests waited for work of the layer that no known request made necessary.
    pub unattributed_ns: u64,
}

/// The causes of all requests together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Summary {
    /// Sums by cause, for all requests, those from p99 and p99.9 on, and the longest.
    pub shares: Vec<CauseShares>,
    /// Which addresses and devices wait, and which make others wait.
    pub involved: Involved,
}

/// Requests of similar latencies.
#[derive(Clone, Debug)]
struct Class {
    requests: u64,
    shortest: u64,
    times: [u64; Cause::COUNT],
}

/// Where a request belongs: the part of the address space of its first sector, if it has one, and its device.
pub(super) struct Place {
    pub range: Option<usize>,
    pub device: u32,
}

/// Amounts by LBA range and by device.
#[derive(Debug)]
struct Amounts {
    ranges: [u64; RANGES],
    devices: Devices,
}

impl Default for Amounts {
    fn default() -> Amounts {
        Amounts { ranges: [0; RANGES], devices: Devices::default() }
    }
}

/// The sums so far.
#[derive(Debug, Default)]
pub(super) struct Shares {
    range_sectors: u64,
    classes: Vec<Option<Box<Class>>>,
    latencies: LatencyHistogram,
    /// Latency and causes of the first of the requests with the longest latency.
    longest: (u64, [u64; Cause::COUNT]),
    waiting: Amounts,
    causing: Amounts,
    unattributed: u64,
}

/// Returns the class of a latency.
fn class_of(latency: u64) -> usize {
    let above = (latency | CLASSES_PER_POWER).ilog2() - CLASSES_PER_POWER.ilog2();
    (u64::from(above) * CLASSES_PER_POWER + (latency >> above)) as usize
}

impl Shares {
    pub(super) fn new(range_sectors: Sectors) -> Shares {
        Shares { range_sectors: range_sectors.0, ..Shares::default() }
    }

    /// Counts a request, which waited for others for the time `waited`. Time that it shared an operation with others does
    /// not count as waiting.
    pub(super) fn add(&mut self, latency: u64, causes: &[u64; Cause::COUNT], place: Place, waited: u64) {
        self.latencies.record(latency);
        if latency > self.longest.0 {
            self.longest = (latency, *causes);
        }
        let index = class_of(latency);
        if index >= self.classes.len() {
            self.classes.resize(index + 1, None);
        }
        let class = self.classes[index]
            .get_or_insert_with(|| Box::new(Class { requests: 0, shortest: latency, times: [0; Cause::COUNT] }));
        class.requests += 1;
        class.shortest = class.shortest.min(latency);
        class.times.iter_mut().zip(causes).for_each(|(sum, time)| *sum += time);
        if let Some(range) = place.range {
            self.waiting.ranges[range] += waited;
        }
        self.waiting.devices.add(place.device, waited);
    }

    /// Counts time that requests waited for an access to a part of the address space.
    pub(super) fn blame(&mut self, range: usize, device: u32, waited: u64) {
        self.causing.ranges[range] += waited;
        self.causing.devices.add(device, waited);
    }

    /// Counts time that requests waited for work that the writes of `fill` made necessary, in proportion to the sectors
    /// written.
    pub(super) fn blame_fill(&mut self, fill: Option<&Fill>, waited: u64) {
        let Some(fill) = fill.filter(|fill| !fill.sectors.is_zero()) else {
            self.unattributed += waited;
            return;
        };
        let share = |sectors: u64| (u128::from(waited) * u128::from(sectors) / u128::from(fill.sectors.0)) as u64;
        for (sum, &sectors) in self.causing.ranges.iter_mut().zip(fill.ranges()) {
            *sum += share(sectors);
        }
        for (device, sectors) in fill.devices.shares() {
            self.causing.devices.add(device, share(sectors));
        }
    }

    pub(super) fn latencies_at(&self, quantile: f64) -> RangeInclusive<u64> {
        let longest = self.latencies.quantile_ns(quantile);
        // A bucket of the histogram is at most a thousandth of its values wide.
        longest - longest / 1000..=longest
    }

    pub(super) fn summary(&self) -> Summary {
        let quantile = |quantile| self.latencies.quantile_ns(quantile);
        let groups = [("all", 0), ("p99", quantile(0.99)), ("p999", quantile(0.999))];
        let mut shares: Vec<_> = groups.into_iter().map(|(name, from)| self.group(name, from)).collect();
        let (longest, times) = self.longest;
        let requests = u64::from(self.latencies.count() > 0);
        shares.push(CauseShares { name: "longest", from: SimDuration(longest), requests, times });
        let part = self.range_sectors;
        let ranges = |amounts: &Amounts| {
            let parts = amounts.ranges.iter().zip(0..).filter(|(time, _)| **time > 0);
            let mut lbas: Vec<_> =
                parts.map(|(&time, index)| (Lba(index * part)..=Lba((index + 1) * part - 1), time)).collect();
            lbas.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
            lbas.truncate(LISTED_MAX);
            Ranges { lbas, devices: amounts.devices.clone() }
        };
        Summary {
            shares,
            involved: Involved {
                waiting: ranges(&self.waiting),
                causing: ranges(&self.causing),
                unattributed_ns: self.unattributed,
            },
        }
    }

    /// Returns the sums over the requests of the class of latency `from` and of all classes above.
    fn group(&self, name: &'static str, from: u64) -> CauseShares {
        let mut group =
            CauseShares { name, from: SimDuration(self.latencies.max_ns()), requests: 0, times: [0; Cause::COUNT] };
        for class in self.classes.iter().skip(class_of(from)).flatten() {
            group.requests += class.requests;
            group.from = group.from.min(SimDuration(class.shortest));
            group.times.iter_mut().zip(class.times).for_each(|(sum, time)| *sum += time);
        }
        group
    }
}
