//! The figures of `imbrex trace info` about a workload, computed in one pass.
//!
//! Definitions: a request is *sequential* if it begins at the end of the previous read or write on its device. A *page*
//! is 4 KiB. A *track* is 2 MiB of the address space, as in Hajkazemi 2019 §2. A write counts once for each track that
//! it touches. The share of the hottest k tracks is a share of the sum of these counts. The gap between two requests is
//! 0 where the second has an earlier time than the first.
//!
//! Invariants:
//! 1. Memory grows with the number of pages and tracks touched, never with the length of the trace.
//! 2. Every request is in exactly one of `reads`, `writes`, `flushes`, `trims`.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use imbrex_units::{Command, Direction, Operation, SimTime};
use roaring::RoaringTreemap;
use serde::Serialize;

use crate::admission::SECTOR_BYTES;
use crate::request::{Request, Source, TraceError, When};
use crate::survey::{DeviceSummary, named};

/// Name and version of the JSON form of the statistics that `imbrex trace info` prints ([`TraceInfo`]).
pub const SCHEMA: &str = "imbrex.trace-info/1";

const PAGE_SECTORS: u64 = 8;
const TRACK_SECTORS: u64 = 4096;

/// Statistics of a workload: the figures that `imbrex trace info` prints. All counts are over all devices unless the
/// field says otherwise.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TraceInfo {
    /// Name and version of the JSON form of these statistics: `imbrex.trace-info/1` ([`SCHEMA`]).
    pub schema: &'static str,
    /// Number of all requests read from the workload: reads, writes, flushes and trims, on all devices.
    pub requests: u64,
    /// Number of reads in the workload, on all devices.
    pub reads: u64,
    /// Number of writes in the workload, on all devices, with or without forced unit access (FUA).
    pub writes: u64,
    /// Number of flushes in the workload, on all devices.
    pub flushes: u64,
    /// Number of trims in the workload, on all devices.
    pub trims: u64,
    /// Number of writes with forced unit access (FUA), on all devices. They count in `writes` too.
    pub fua_writes: u64,
    /// Number of reads, writes and trims with a length of 0 sectors, on all devices. They count in the other numbers
    /// too.
    pub empty: u64,
    /// Sum of the lengths of all reads on all devices, in bytes.
    pub read_bytes: u64,
    /// Sum of the lengths of all writes on all devices, in bytes.
    pub write_bytes: u64,
    /// Sum of the lengths of all trims on all devices, in bytes.
    pub trim_bytes: u64,
    /// Latest time of a request in nanoseconds, counted from time 0, at which a trace's first request is. 0 if no
    /// request has a time of its own.
    pub span_ns: u64,
    /// One past the highest sector of 512 bytes that a read, write or trim on any device addresses; 0 if there is none.
    /// A request of length 0 counts with its address.
    pub lba_end: u64,
    /// Bytes of the distinct 4 KiB pages that reads and writes touch, even in part, summed over the devices. Trims do
    /// not count.
    pub working_set: WorkingSet,
    /// Numbers and shares of the reads and writes that begin at the sector where the previous read or write on their
    /// device ended.
    pub sequential: Sequential,
    /// Distribution of the time from each request to the next in nanoseconds, over all devices together. The gap is 0
    /// if the next request has an earlier time. `None` if fewer than two requests have times of their own.
    pub inter_arrival_ns: Option<Distribution>,
    /// Distribution of the sizes of reads on all devices, in bytes; `None` if there are no reads.
    pub read_size_bytes: Option<Distribution>,
    /// Distribution of the sizes of writes on all devices, in bytes; `None` if there are no writes.
    pub write_size_bytes: Option<Distribution>,
    /// Shares of the writes that go to the 1, 10 and 100 most written tracks. A track is 2 MiB of the address space of
    /// a device.
    pub hot_tracks: HotTracks,
    /// Counts of requests and bytes of each device that has a request, sorted by device number.
    pub devices: Vec<DeviceSummary>,
    /// Counts of records left out, of requests out of order and of requests widened to whole sectors, and decisions of
    /// the reader. All counts are 0 for a generator.
    pub reading: Reading,
}

/// Sizes of the sets of distinct 4 KiB pages that requests touch, even in part. Pages of different devices are
/// distinct; trims do not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct WorkingSet {
    /// Number of distinct 4 KiB pages read at least once, even in part, times 4096 bytes; summed over the devices.
    pub read_bytes: u64,
    /// Number of distinct 4 KiB pages written at least once, even in part, times 4096 bytes; summed over the devices.
    pub write_bytes: u64,
    /// Number of distinct 4 KiB pages read or written at least once, even in part, times 4096 bytes; summed over the
    /// devices.
    pub either_bytes: u64,
    /// Number of distinct 4 KiB pages both read and written at least once, even in part, times 4096 bytes; summed over
    /// the devices.
    pub both_bytes: u64,
}

/// Numbers and shares of sequential requests: reads and writes that begin at the sector where the previous read or
/// write, of either kind, on their device ended.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Sequential {
    /// Number of sequential reads: they begin at the sector where the previous read or write on their device ended.
    pub reads: u64,
    /// Number of sequential writes: they begin at the sector where the previous read or write on their device ended.
    pub writes: u64,
    /// Number of sequential reads divided by the number of all reads: 0 to 1; 0 if there are no reads. A sequential
    /// read begins where the previous read or write on its device ended.
    pub read_share: f64,
    /// Number of sequential writes divided by the number of all writes: 0 to 1; 0 if there are no writes. A sequential
    /// write begins where the previous read or write on its device ended.
    pub write_share: f64,
}

/// Distribution of a set of values, such as request sizes in bytes. The percentiles come from a histogram with a
/// precision of three significant digits.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Distribution {
    /// Arithmetic mean of the values, exact.
    pub mean: f64,
    /// Smallest value of the distribution, exact.
    pub min: u64,
    /// 5th percentile: the smallest value such that at least 5 % of the values are no larger. It is exact to
    /// three significant digits.
    pub p5: u64,
    /// Median: the smallest value such that at least half of the values are no larger. It is exact to
    /// three significant digits.
    pub p50: u64,
    /// 90th percentile: the smallest value such that at least 90 % of the values are no larger. It is exact to
    /// three significant digits.
    pub p90: u64,
    /// 95th percentile: the smallest value such that at least 95 % of the values are no larger. It is exact to
    /// three significant digits.
    pub p95: u64,
    /// 99th percentile: the smallest value such that at least 99 % of the values are no larger. It is exact to
    /// three significant digits.
    pub p99: u64,
    /// 99.9th percentile: the smallest value such that at least 99.9 % of the values are no larger. It is exact to
    /// three significant digits.
    pub p999: u64,
    /// Largest value of the distribution, exact.
    pub max: u64,
}

/// Shares of the writes that go to the most written tracks. A write counts once for each track that it touches; the
/// shares are of the sum of these counts over all tracks and devices.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct HotTracks {
    /// Size of a track in bytes: always 2 MiB. A track here is an aligned range of addresses, not a track of the disk.
    pub track_bytes: u64,
    /// Number of tracks of 2 MiB of the address space that are written at least once, over all devices.
    pub written: u64,
    /// Share of writes to the most written track of 2 MiB, 0 to 1; 0 if there are no writes. A write counts once for
    /// each track that it touches.
    pub share_1: f64,
    /// Share of writes to the ten most written tracks of 2 MiB, 0 to 1; 0 if there are no writes. A write counts once
    /// for each track that it touches.
    pub share_10: f64,
    /// Share of writes to the hundred most written tracks of 2 MiB, 0 to 1; 0 if there are no writes. A write counts
    /// once for each track that it touches.
    pub share_100: f64,
}

/// Facts about reading the trace: counts of records left out, and decisions of the reader. All counts are 0 for a
/// generator.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Reading {
    /// Number of requests yielded with an earlier time than the request yielded before them.
    pub out_of_order: u64,
    /// Number of requests whose offset or size was not a multiple of 512 bytes, so that they were widened to whole
    /// sectors.
    pub unaligned: u64,
    /// Number of well-formed records that are not reads, writes, flushes or trims; they were skipped.
    pub not_requests: u64,
    /// Number of requests left out because they are for other devices than the one that the user chose.
    pub other_devices: u64,
    /// Number of malformed records of the trace that were skipped: records without the form of the trace's format.
    pub malformed: u64,
    /// Error message of the first malformed record that was skipped; `None` if none was skipped.
    pub first_malformed: Option<String>,
    /// Decisions of the reader that the user should know, such as the unit of the times.
    pub notes: Vec<String>,
}

impl TraceInfo {
    /// Reads `source` to its end, or until `limit` requests are read, and returns their statistics. A generator may
    /// never end, so `None` as the limit may never return.
    ///
    /// # Errors
    ///
    /// The first error of `source`.
    pub fn of(source: &mut dyn Source, limit: Option<u64>) -> Result<TraceInfo, TraceError> {
        let mut pass = Pass::new();
        while limit.is_none_or(|limit| pass.requests < limit) {
            let Some(request) = source.next(SimTime::ZERO)? else {
                break;
            };
            pass.count(&request);
        }
        Ok(pass.finish(source))
    }
}

/// Counters of one device.
struct DevicePass {
    summary: DeviceSummary,
    read_pages: RoaringTreemap,
    written_pages: RoaringTreemap,
    /// Number of writes by track.
    track_writes: BTreeMap<u64, u64>,
    /// End of the previous read or write; `None` before the first.
    previous_end: Option<u64>,
}

/// Counters of the whole pass.
struct Pass {
    requests: u64,
    flushes: u64,
    trims: u64,
    fua_writes: u64,
    empty: u64,
    trim_bytes: u64,
    sequential: Sequential,
    span_ns: u64,
    previous_ns: Option<u64>,
    gaps_ns: Values,
    /// Read sizes in sectors: three digits are exact up to a mebibyte.
    read_sectors: Values,
    write_sectors: Values,
    devices: BTreeMap<u32, DevicePass>,
}

/// Histogram of values, for the percentiles, and their exact sum, minimum and maximum.
struct Values {
    histogram: Histogram<u64>,
    sum: u128,
    min: u64,
    max: u64,
}

impl Values {
    fn new() -> Values {
        Values { histogram: Histogram::new(3).expect("three digits are allowed"), sum: 0, min: u64::MAX, max: 0 }
    }

    fn record(&mut self, value: u64) {
        self.histogram.record(value).expect("the histogram grows to any value");
        self.sum += u128::from(value);
        (self.min, self.max) = (self.min.min(value), self.max.max(value));
    }
}

impl Pass {
    fn new() -> Pass {
        Pass {
            requests: 0,
            flushes: 0,
            trims: 0,
            fua_writes: 0,
            empty: 0,
            trim_bytes: 0,
            sequential: Sequential::default(),
            span_ns: 0,
            previous_ns: None,
            gaps_ns: Values::new(),
            read_sectors: Values::new(),
            write_sectors: Values::new(),
            devices: BTreeMap::new(),
        }
    }

    fn count(&mut self, request: &Request) {
        let command = request.command;
        self.requests += 1;
        self.empty += u64::from(command.sectors == 0 && command.operation != Operation::Flush);
        self.count_time(request.when);
        let device = self.devices.entry(request.device).or_insert_with(|| DevicePass::new(request.device));
        device.summary.count(request);
        match command.operation {
            Operation::Read => {
                self.read_sectors.record(u64::from(command.sectors));
                self.sequential.reads += u64::from(device.touch(&command, Direction::Read));
            }
            Operation::Write => {
                self.fua_writes += u64::from(command.fua);
                self.write_sectors.record(u64::from(command.sectors));
                self.sequential.writes += u64::from(device.touch(&command, Direction::Write));
            }
            Operation::Flush => self.flushes += 1,
            Operation::Trim => {
                self.trims += 1;
                self.trim_bytes += u64::from(command.sectors) * SECTOR_BYTES;
            }
        }
    }

    fn count_time(&mut self, when: When) {
        let When::At(time) = when else {
            return;
        };
        if let Some(previous_ns) = self.previous_ns {
            self.gaps_ns.record(time.0.saturating_sub(previous_ns));
        }
        self.previous_ns = Some(time.0);
        self.span_ns = self.span_ns.max(time.0);
    }

    fn finish(self, source: &dyn Source) -> TraceInfo {
        let facts = source.facts();
        let working_set = self.devices.values().fold(WorkingSet::default(), |sum, device| sum.plus(device));
        let hot_tracks = hot_tracks(self.devices.values());
        let devices = self.devices.into_iter().map(|(number, device)| (number, device.summary)).collect();
        let devices = named(devices, &facts);
        let sum = |part: fn(&DeviceSummary) -> u64| devices.iter().map(part).sum::<u64>();
        let (reads, writes) = (sum(|device| device.reads), sum(|device| device.writes));
        TraceInfo {
            schema: SCHEMA,
            requests: self.requests,
            reads,
            writes,
            flushes: self.flushes,
            trims: self.trims,
            fua_writes: self.fua_writes,
            empty: self.empty,
            read_bytes: sum(|device| device.read_bytes),
            write_bytes: sum(|device| device.write_bytes),
            trim_bytes: self.trim_bytes,
            span_ns: self.span_ns,
            lba_end: devices.iter().map(|device| device.lba_end).max().unwrap_or(0),
            working_set,
            sequential: Sequential {
                read_share: share(self.sequential.reads, reads),
                write_share: share(self.sequential.writes, writes),
                ..self.sequential
            },
            inter_arrival_ns: Distribution::of(&self.gaps_ns, 1),
            read_size_bytes: Distribution::of(&self.read_sectors, SECTOR_BYTES),
            write_size_bytes: Distribution::of(&self.write_sectors, SECTOR_BYTES),
            hot_tracks,
            devices,
            reading: Reading {
                out_of_order: facts.out_of_order,
                unaligned: facts.unaligned,
                not_requests: facts.not_requests,
                other_devices: facts.other_devices,
                malformed: facts.malformed,
                first_malformed: facts.first_malformed,
                notes: facts.notes,
            },
        }
    }
}

impl DevicePass {
    fn new(device: u32) -> DevicePass {
        DevicePass {
            summary: DeviceSummary::new(device),
            read_pages: RoaringTreemap::new(),
            written_pages: RoaringTreemap::new(),
            track_writes: BTreeMap::new(),
            previous_end: None,
        }
    }

    /// Records the pages and tracks that a read or write touches. Returns whether it is sequential.
    fn touch(&mut self, command: &Command, direction: Direction) -> bool {
        let (start, end) = (command.lba.0, command.end().0);
        let sequential = self.previous_end.replace(end) == Some(start);
        if command.sectors == 0 {
            return sequential;
        }
        let pages = start / PAGE_SECTORS..=(end - 1) / PAGE_SECTORS;
        match direction {
            Direction::Read => {
                self.read_pages.insert_range(pages);
            }
            Direction::Write => {
                self.written_pages.insert_range(pages);
                for track in start / TRACK_SECTORS..=(end - 1) / TRACK_SECTORS {
                    *self.track_writes.entry(track).or_insert(0) += 1;
                }
            }
        }
        sequential
    }
}

impl WorkingSet {
    fn plus(self, device: &DevicePass) -> WorkingSet {
        let page_bytes = PAGE_SECTORS * SECTOR_BYTES;
        let (read, written) = (&device.read_pages, &device.written_pages);
        WorkingSet {
            read_bytes: self.read_bytes + read.len() * page_bytes,
            write_bytes: self.write_bytes + written.len() * page_bytes,
            either_bytes: self.either_bytes + read.union_len(written) * page_bytes,
            both_bytes: self.both_bytes + read.intersection_len(written) * page_bytes,
        }
    }
}

fn hot_tracks<'a>(devices: impl Iterator<Item = &'a DevicePass>) -> HotTracks {
    let mut writes: Vec<u64> = devices.flat_map(|device| device.track_writes.values().copied()).collect();
    writes.sort_unstable_by(|a, b| b.cmp(a));
    let all: u64 = writes.iter().sum();
    let hottest = |count: usize| share(writes.iter().take(count).sum(), all);
    HotTracks {
        track_bytes: TRACK_SECTORS * SECTOR_BYTES,
        written: writes.len() as u64,
        share_1: hottest(1),
        share_10: hottest(10),
        share_100: hottest(100),
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Distribution {
    /// Returns the distribution of values that were recorded in units of `unit`. Returns `None` if there are no values.
    fn of(values: &Values, unit: u64) -> Option<Distribution> {
        let Values { histogram, sum, min, max } = values;
        // A value of the histogram is the upper end of its class, which may lie above the largest value.
        let at = |quantile: f64| histogram.value_at_quantile(quantile).clamp(*min, *max).saturating_mul(unit);
        (!histogram.is_empty()).then(|| Distribution {
            mean: *sum as f64 / histogram.len() as f64 * unit as f64,
            min: min.saturating_mul(unit),
            p5: at(0.05),
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: max.saturating_mul(unit),
        })
    }
}

#[cfg(test)]
mod tests {
    //! Goal: every figure matches its definition. Method: a trace small enough to count by hand, and random traces
    //! compared with plain sets.

    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use crate::formats::testing::timed;
    use crate::recorded::Recorded;

    use super::*;

    fn info_of(requests: Vec<Request>) -> TraceInfo {
        TraceInfo::of(&mut Recorded::new(requests), None).unwrap()
    }

    #[test]
    fn counted_by_hand() {
        let info = info_of(vec![
            timed(0, 0, Command::write(0, 8)),
            timed(1000, 0, Command::write(8, 16)),
            timed(3000, 1, Command::write(24, 1)),
            timed(2000, 0, Command::read(16, 9)),
            timed(9000, 0, Command::flush()),
            timed(9000, 0, Command::read(25, 7)),
            timed(9000, 0, Command::trim(100, 2)),
            timed(9000, 0, Command { fua: true, ..Command::write(4095, 2) }),
        ]);
        assert_eq!((info.requests, info.reads, info.writes, info.flushes, info.trims), (8, 2, 4, 1, 1));
        assert_eq!((info.read_bytes, info.write_bytes, info.trim_bytes), (16 * 512, 27 * 512, 1024));
        assert_eq!((info.span_ns, info.lba_end, info.fua_writes), (9000, 4097, 1));
        let pages = |count: u64| count * 4096;
        let expected = WorkingSet {
            read_bytes: pages(2),
            write_bytes: pages(3 + 1 + 2),
            either_bytes: pages(4 + 1 + 2),
            both_bytes: pages(1),
        };
        assert_eq!(info.working_set, expected);
        assert_eq!((info.sequential.reads, info.sequential.writes), (1, 1));
        assert_eq!((info.sequential.read_share, info.sequential.write_share), (0.5, 0.25));
        let gaps = info.inter_arrival_ns.unwrap();
        assert_eq!((gaps.min, gaps.p50), (0, 0));
        assert!((gaps.mean - (1000.0 + 2000.0 + 7000.0) / 7.0).abs() < 10.0, "{gaps:?}");
        let sizes = info.write_size_bytes.unwrap();
        assert_eq!((sizes.min, sizes.p50, sizes.max), (512, 1024, 8192));
        assert_eq!(info.hot_tracks.written, 3);
        assert_eq!((info.hot_tracks.share_1, info.hot_tracks.share_10), (3.0 / 5.0, 1.0));
        assert_eq!(info.devices.len(), 2);
    }

    #[test]
    fn json_has_schema_and_units() {
        let json = serde_json::to_value(info_of(vec![timed(0, 0, Command::write(0, 8))])).unwrap();
        assert_eq!(json["schema"], "imbrex.trace-info/1");
        assert_eq!(json["working_set"]["write_bytes"], 4096);
        assert_eq!(json["hot_tracks"]["track_bytes"], 2 << 20);
        assert_eq!(json["inter_arrival_ns"], serde_json::Value::Null);
    }

    #[test]
    fn a_limit_ends_the_pass() {
        let mut source = Recorded::new(vec![timed(0, 0, Command::write(0, 8)); 9]);
        assert_eq!(TraceInfo::of(&mut source, Some(4)).unwrap().requests, 4);
    }

    proptest! {
        #[test]
        fn working_sets_are_sets(rows in prop::collection::vec((any::<bool>(), 0..5000u64, 1..200u32), 1..100)) {
            let mut pages = [BTreeSet::new(), BTreeSet::new()];
            for &(read, lba, sectors) in &rows {
                pages[usize::from(read)].extend((lba..lba + u64::from(sectors)).map(|sector| sector / 8));
            }
            let command = |&(read, lba, sectors): &(bool, u64, u32)| {
                timed(0, 0, if read { Command::read(lba, sectors) } else { Command::write(lba, sectors) })
            };
            let working_set = info_of(rows.iter().map(command).collect()).working_set;
            let [written, read] = &pages;
            prop_assert_eq!(working_set.read_bytes, 4096 * read.len() as u64);
            prop_assert_eq!(working_set.write_bytes, 4096 * written.len() as u64);
            prop_assert_eq!(working_set.both_bytes, 4096 * read.intersection(written).count() as u64);
            prop_assert_eq!(working_set.either_bytes, 4096 * read.union(written).count() as u64);
        }
    }
}
