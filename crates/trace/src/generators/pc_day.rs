//! Twenty-four hours of an office PC, which reproduces the counts of such a trace in Cassuto 2010 table I:
//!
//! | | number | blocks |
//! |---|---|---|
//! | reads | 435,285 | 8,394,244 |
//! | adjusted reads (divided into pieces of at most 1000 blocks) | 435,565 | 8,394,244 |
//! | writes (none over 1000 blocks) | 75,615 | 2,889,969 |
//!
//! The numbers of requests are exact. The blocks result from size tables with the means of the trace. The paper is
//! silent about the following, which is made up:
//!
//! - The course of the day: quiet nights, a busy start at eight, lunch, a scan in the evening.
//! - Bursts of about sixty requests, milliseconds apart, with three kinds of activity.
//! - Positions. A burst accesses one neighbourhood, mostly in order. Neighbourhoods are drawn from a hot system zone, a
//!   documents zone and the rest, so the workload is localised in space and in time (§III.A).
//! - Most larger writes go to a circular journal of 512 MiB, and most small writes to random positions on the whole
//!   drive. With the shares chosen, a set-associative cache merges as many native regions as the counts of table I
//!   imply: 2,058.
//!
//! Invariants:
//! 1. The numbers of reads and writes are exactly those of the paper, for any seed.
//! 2. Arrival times never decrease and stay within the day.
//! 3. Every request lies within the drive.

use imbrex_units::{Command, SimDuration, SimTime};

use super::distribution::{Distribution, Sampler};
use super::error::{WordError, WordPlace, WorkloadError};
use super::quantity::Share;
use super::random::{Stream, mix};
use crate::request::{Request, Source, TraceError, When};

const READS: u64 = 435_285;
const WRITES: u64 = 75_615;
const REQUESTS: u64 = READS + WRITES;

const HOUR: SimDuration = SimDuration::from_secs(3600);

/// Share of each hour in the requests of the day, in thousandths.
const HOURS: [u64; 24] = [8, 6, 5, 5, 5, 6, 10, 25, 110, 95, 85, 80, 40, 75, 85, 85, 80, 60, 25, 15, 40, 25, 15, 15];

/// Blocks of a read, with shares in millionths; the mean is 19.28448. Each read of 2048 blocks counts as three adjusted
/// reads. There are as many as explain the 280 adjusted reads beyond the number of reads.
const READ_BLOCKS: [(u64, u32); 7] =
    [(550_945, 8), (160_000, 16), (120_000, 32), (80_000, 64), (68_733, 2), (20_000, 128), (322, 2048)];

/// Blocks of a write, with shares in millionths; the mean is 38.21952.
const WRITE_BLOCKS: [(u64, u32); 7] =
    [(326_360, 8), (170_000, 64), (140_000, 16), (140_000, 32), (130_000, 128), (88_640, 1), (5_000, 256)];

/// Mean number of requests in a burst. `GAP_NS` is the mean time between two requests of a burst, in nanoseconds.
const BURST_REQUESTS: u64 = 60;
const GAP_NS: f64 = 3e6;

/// Sectors of the paper's drive. On a larger drive the PC uses no more sectors.
const FOOTPRINT_SECTORS_MAX: u64 = 600_000_000;
const FOOTPRINT_SECTORS_MIN: u64 = 1 << 21;

/// Sectors of an extent of 1 MiB, the unit in which positions are drawn.
const EXTENT_SECTORS: u64 = 2048;
const NEIGHBOURHOOD_SECTORS: u64 = 16 * EXTENT_SECTORS;

/// The behaviour of a burst.
#[derive(Clone, Copy, Debug)]
struct Activity {
    /// Share of this activity among the bursts, in percent.
    bursts: u64,
    /// Share of writes among the requests of the burst.
    writes: f64,
    /// Share of the requests that begin where their predecessor ended.
    sequential: Share,
}

const fn percent(percent: u32) -> Share {
    Share::from_millionths(percent * 10_000)
}

/// Three activities: loading programs and files; work on documents and in the browser; saving, installing and
/// write-back. The weighted share of writes is the paper's 14.8 %, towards which the draw is steered.
const ACTIVITIES: [Activity; 3] = [
    Activity { bursts: 61, writes: 0.02, sequential: percent(65) },
    Activity { bursts: 30, writes: 0.25, sequential: percent(40) },
    Activity { bursts: 9, writes: 0.70, sequential: percent(60) },
];

/// Maximum size of a small write in sectors.
const SMALL_SECTORS: u32 = 8;
/// Share of the small writes that go to a random position on the drive.
const SCATTERED_WRITES: Share = percent(67);
/// Share of the larger writes that go to the journal. `JOURNAL_SECTORS` is the size of the journal.
const JOURNAL_WRITES: Share = percent(70);
const JOURNAL_SECTORS: u64 = 1 << 20;
/// Share of the footprint that the journal occupies on a small drive.
const JOURNAL_SHARE: Share = percent(5);

/// A zone of the drive, in extents.
#[derive(Debug)]
struct DrivePart {
    bursts: u64,
    first_extent: u64,
    extents: Sampler,
}

/// The source of the workload's requests.
#[derive(Debug)]
struct PcDay {
    stream: Stream,
    zones: [DrivePart; 3],
    footprint_sectors: u64,
    journal_first: u64,
    journal_sectors: u64,
    journal_cursor: u64,
    reads_left: u64,
    writes_left: u64,
    hour: usize,
    hour_left: u64,
    burst_left: u64,
    activity: Activity,
    place: u64,
    read_cursor: u64,
    write_cursor: u64,
    time: SimTime,
}

/// Returns the workload on a drive of `device_sectors` sectors.
pub(super) fn build(device_sectors: u64, seed: u64) -> Result<Box<dyn Source>, WorkloadError> {
    if device_sectors < FOOTPRINT_SECTORS_MIN {
        let complaint = WordError::new("pc-day needs a drive of 1 GiB or more", "use a larger drive");
        return Err(complaint.at(WordPlace::Workload));
    }
    Ok(Box::new(PcDay::new(device_sectors.min(FOOTPRINT_SECTORS_MAX), seed)))
}

impl PcDay {
    fn new(footprint_sectors: u64, seed: u64) -> PcDay {
        let extents = footprint_sectors / EXTENT_SECTORS;
        let zone = |bursts, from: u32, to: u32, distribution: Distribution| {
            let (first_extent, end) = (percent(from).of(extents), percent(to).of(extents));
            let sampler = Sampler::new(&distribution, end - first_extent, mix(seed ^ from as u64));
            DrivePart { bursts, first_extent, extents: sampler }
        };
        PcDay {
            stream: Stream::new(seed, 0),
            zones: [
                zone(60, 0, 15, Distribution::Zipf { theta: 1.0 }),
                zone(32, 15, 40, Distribution::Zipf { theta: 0.8 }),
                zone(8, 40, 100, Distribution::Uniform),
            ],
            footprint_sectors,
            journal_first: percent(15).of(extents) * EXTENT_SECTORS,
            journal_sectors: JOURNAL_SECTORS.min(JOURNAL_SHARE.of(footprint_sectors)),
            journal_cursor: 0,
            reads_left: READS,
            writes_left: WRITES,
            hour: 0,
            hour_left: requests_before_hour(1),
            burst_left: 0,
            activity: ACTIVITIES[0],
            place: 0,
            read_cursor: 0,
            write_cursor: 0,
            time: SimTime::ZERO,
        }
    }

    /// Advances the time to that of the next request. Begins a new hour or burst where due.
    fn advance(&mut self) {
        while self.hour_left == 0 {
            self.hour += 1;
            self.hour_left = requests_before_hour(self.hour + 1) - requests_before_hour(self.hour);
            self.time = self.time.max(SimTime::ZERO + HOUR * self.hour as u64);
            self.burst_left = 0;
        }
        let hour_end = SimTime::ZERO + HOUR * (self.hour as u64 + 1);
        let wait = if self.burst_left == 0 {
            self.begin_burst();
            // The wait is uniform below twice the even distance of the bursts left. On average they use up the hour,
            // and no wait exceeds its rest.
            let bursts_left = self.hour_left / BURST_REQUESTS;
            self.stream.below(2 * hour_end.since(self.time).0 / (bursts_left + 2))
        } else {
            self.stream.exponential_ns(GAP_NS)
        };
        self.time = (self.time + SimDuration(wait)).min(hour_end);
    }

    fn begin_burst(&mut self) {
        let length = 1 + self.stream.exponential_ns(BURST_REQUESTS as f64 - 1.0);
        self.burst_left = length.min(self.hour_left);
        self.activity = *weighted(&mut self.stream, &ACTIVITIES, |activity| activity.bursts);
        let zone = weighted(&mut self.stream, &self.zones, |zone| zone.bursts);
        let extent = zone.first_extent + zone.extents.sample(&mut self.stream);
        self.place = extent * EXTENT_SECTORS;
        (self.read_cursor, self.write_cursor) = (self.place, self.place);
    }

    /// Decides whether the next request is a write: by the activity, steered so that the counts of the day are exact.
    fn draws_write(&mut self) -> bool {
        let left = self.writes_left as f64 / (self.reads_left + self.writes_left) as f64;
        let planned = WRITES as f64 / REQUESTS as f64;
        let chance = self.activity.writes * left / planned;
        self.reads_left == 0 || (self.writes_left > 0 && self.stream.unit() < chance)
    }

    fn read(&mut self) -> Command {
        self.reads_left -= 1;
        let sectors = size(&mut self.stream, &READ_BLOCKS);
        let start = self.start(self.read_cursor, sectors);
        self.read_cursor = start + sectors as u64;
        Command::read(start, sectors)
    }

    fn write(&mut self) -> Command {
        self.writes_left -= 1;
        let sectors = size(&mut self.stream, &WRITE_BLOCKS);
        let is_small = sectors <= SMALL_SECTORS;
        if is_small && self.stream.chance(SCATTERED_WRITES) {
            return Command::write(
                self.stream.below((self.footprint_sectors - u64::from(SMALL_SECTORS)) / 8) * 8,
                sectors,
            );
        }
        if !is_small && self.stream.chance(JOURNAL_WRITES) {
            return self.write_journal(sectors);
        }
        let start = self.start(self.write_cursor, sectors);
        self.write_cursor = start + sectors as u64;
        Command::write(start, sectors)
    }

    fn write_journal(&mut self, sectors: u32) -> Command {
        if self.journal_cursor + sectors as u64 > self.journal_sectors {
            self.journal_cursor = 0;
        }
        let start = self.journal_first + self.journal_cursor;
        self.journal_cursor += sectors as u64;
        Command::write(start, sectors)
    }

    /// Returns the first sector of a request in the burst: `cursor`, or a random page near the burst's position.
    fn start(&mut self, cursor: u64, sectors: u32) -> u64 {
        let start = match self.stream.chance(self.activity.sequential) {
            true => cursor,
            false => self.place + self.stream.below(NEIGHBOURHOOD_SECTORS / 8) * 8,
        };
        start.min(self.footprint_sectors - sectors as u64)
    }
}

impl Source for PcDay {
    fn next(&mut self, _now: SimTime) -> Result<Option<Request>, TraceError> {
        if self.reads_left + self.writes_left == 0 {
            return Ok(None);
        }
        self.advance();
        self.hour_left -= 1;
        self.burst_left -= 1;
        let command = if self.draws_write() { self.write() } else { self.read() };
        Ok(Some(Request { when: When::At(self.time), device: 0, command }))
    }

    fn expected_requests(&self) -> Option<u64> {
        Some(REQUESTS)
    }
}

/// Returns the number of requests in the day before `hour` begins.
fn requests_before_hour(hour: usize) -> u64 {
    REQUESTS * HOURS[..hour].iter().sum::<u64>() / HOURS.iter().sum::<u64>()
}

fn size(stream: &mut Stream, table: &[(u64, u32)]) -> u32 {
    weighted(stream, table, |(share, _)| *share).1
}

/// Draws one of `items` with a probability proportional to its weight.
fn weighted<'a, T>(stream: &mut Stream, items: &'a [T], weight: impl Fn(&T) -> u64) -> &'a T {
    let mut draw = stream.below(items.iter().map(&weight).sum());
    for item in items {
        match draw.checked_sub(weight(item)) {
            Some(rest) => draw = rest,
            None => return item,
        }
    }
    unreachable!("the draw lies below the sum of the weights")
}

#[cfg(test)]
mod tests {
    //! Goal: table I's counts, and locality. Method: count the whole day; means within five standard errors of the
    //! figures in the paper.

    use super::*;
    use imbrex_units::Operation;

    fn day(device_sectors: u64, seed: u64) -> Vec<Request> {
        let mut source = build(device_sectors, seed).expect("fits");
        std::iter::from_fn(|| source.next(SimTime::ZERO).expect("does not fail")).collect()
    }

    fn blocks(day: &[Request], operation: Operation) -> Vec<f64> {
        day.iter().filter(|r| r.command.operation == operation).map(|r| r.command.sectors as f64).collect()
    }

    #[test]
    fn the_counts_are_those_of_table_one() {
        let day = day(600_000_000, 3);
        for (operation, count, total) in
            [(Operation::Read, 435_285, 8_394_244.0), (Operation::Write, 75_615, 2_889_969.0)]
        {
            let sizes = blocks(&day, operation);
            assert_eq!(sizes.len(), count);
            let sum: f64 = sizes.iter().sum();
            let mean = total / count as f64;
            let variance = sizes.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count as f64;
            let error = (variance * count as f64).sqrt();
            assert!((sum - total).abs() <= 5.0 * error, "{operation:?}: {sum} blocks, expected {total} ± {error:.0}");
        }
        let pieces: f64 = blocks(&day, Operation::Read).iter().map(|x| (x / 1000.0).ceil()).sum();
        // 280 pieces more than reads, two for each of 140 large ones: Poisson, five deviations are 2 · 5 · sqrt(140).
        assert!((pieces - 435_565.0).abs() <= 119.0, "{pieces} adjusted reads");
        assert!(blocks(&day, Operation::Write).iter().all(|&x| x <= 1000.0));
    }

    #[test]
    fn the_day_has_twenty_four_hours_and_bursts() {
        let day = day(600_000_000, 1);
        let times: Vec<u64> = day
            .iter()
            .map(|request| match request.when {
                When::At(time) => time.0,
                _ => panic!("untimed"),
            })
            .collect();
        assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
        let last = *times.last().expect("has requests");
        assert!(last <= HOUR.0 * 24 && last > HOUR.0 * 23);
        let mut hourly = [0u64; 25];
        times.iter().for_each(|time| hourly[(time / HOUR.0) as usize] += 1);
        assert!(hourly[9] > 5 * hourly[3], "mornings are busier than nights: {hourly:?}");
        let gap_median = {
            let mut gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
            gaps.sort_unstable();
            gaps[gaps.len() / 2]
        };
        // Within bursts gaps are exponential of mean 3 ms (median 2.1 ms); evenly spread they would be 169 ms.
        assert!(gap_median < 3_000_000, "median gap {gap_median} ns");
    }

    #[test]
    fn places_lie_within_the_drive_and_are_localised() {
        for device_sectors in [FOOTPRINT_SECTORS_MIN, 600_000_000, 40_000_000_000] {
            let day = day(device_sectors, 9);
            let end = device_sectors.min(FOOTPRINT_SECTORS_MAX);
            assert!(day.iter().all(|request| request.command.end().0 <= end && request.command.sectors > 0));
            let front = day.iter().filter(|request| request.command.lba.0 < end / 5 * 2).count();
            assert!(front * 10 > day.len() * 8, "{front} of {} in two fifths of the drive", day.len());
        }
        assert!(build(FOOTPRINT_SECTORS_MIN - 1, 1).is_err());
    }

    #[test]
    fn one_seed_one_day() {
        assert_eq!(day(600_000_000, 5), day(600_000_000, 5));
        assert_ne!(day(600_000_000, 5), day(600_000_000, 6));
    }
}
