//! Figs 12–14: random 4 KiB writes on S-blocks, with two policies that choose the S-block to destage.

use imbrex_disk::SimTime;
use imbrex_sim::IoRecord;
use imbrex_sim::metrics::latency::LatencyHistogram;
use imbrex_trace::{Input, TraceOptions};

use super::super::lab::{Bench, Counts, mean};
use super::super::report::Table;
use super::super::{ClaimKind, Experiment, Replication, Report};
use super::under_test::{DYNAMIC, SET_ASSOCIATIVE};
use imbrex::chart::{Axis, Chart, Series, Shape, Unit};
use imbrex::error::Failure;
use imbrex::run::many;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "cassuto/fig12-14",
    title: "S-blocks sustain random writes; the destage policy decides the longest of them",
    run,
};

/// Drive of §V.D with each of the two policies.
const CLOSEST: &str = "cassuto-307g+s-blocks:policy=closest-to-tail";
const MOST: &str = "cassuto-307g+s-blocks:policy=most-cached-blocks";

/// Number of writes in a run: enough for more than 4,000 s after the cliff.
const WRITES: u64 = 1_150_000;
/// Length of the interval after the cliff that is judged, in seconds.
const AFTER_SECONDS: u64 = 4_000;

/// Number of writes until the rate is steady. The caches fill in 750,000 writes; then each of the 300,000 S-blocks is
/// destaged twice. In a full cache an S-block has 2.5 writes on average, and 5 when its turn to be destaged comes.
const WRITES_TO_STEADY: u64 = 750_000 + 2 * 300_000 * 5;

/// Changes to the drive, made one at a time, to find the parameters that determine the rate after the cliff.
const VARIANTS: [(&str, &str); 7] = [
    ("500 sections of three times the size", "sections=500"),
    ("150 sections of ten times the size", "sections=150"),
    ("twice the spare S-blocks", "sblock_share=2%"),
    ("twice the cache", "cache_share=2%"),
    ("one S-block more destaged before each cache defrag", "extra_destages=1"),
    ("four S-blocks more destaged before each cache defrag", "extra_destages=4"),
    ("transfers at 70 MB/s, the rate of table I", "mechanics.media_bytes_per_second=70000000"),
];

/// Share by which a rate may differ from "around 50" and "around 80" IOPS.
const NEAR: f64 = 0.2;

/// Bounds of the longest writes in figs 13 and 14 ("under 50 ms", "over 7 s"), and the ratio of these bounds.
const SHORT_MS: f64 = 50.0;
const LONG_MS: f64 = 7_000.0;
const RATIO: f64 = 140.0;

/// Measurements of one run.
struct Run {
    counts: Counts,
    /// Start of the first request that waits for cleaning; `None` if none does.
    cliff: Option<SimTime>,
    end: SimTime,
    latency: LatencyHistogram,
}

fn run(replication: &Replication) -> Result<Report, Failure> {
    let closest = measure(CLOSEST, WRITES, replication)?;
    let steady = measure(CLOSEST, WRITES_TO_STEADY, replication)?;
    let extra = measure(&format!("{CLOSEST},extra_destages=1"), WRITES_TO_STEADY, replication)?;
    let most = measure(MOST, WRITES, replication)?;
    let set_associative = measure(SET_ASSOCIATIVE, WRITES, replication)?;
    let mut report = Report {
        method: format!(
            "The experiment makes {WRITES} random writes of 4 KiB all over the drive, one after the other. It runs \
             on `cassuto-307g+s-blocks` (S-blocks of 2000 blocks, 1 % for cache buffers and 1 % for extra S-blocks, \
             1500 sections) under two destage policies, and on the set-associative drive. The *cliff* is the first \
             write that had to wait for cleaning. A run of {WRITES_TO_STEADY} writes shows the later course of the \
             rate, until the S-block buffers have turned twice."
        ),
        ..Report::default()
    };
    sustained(&mut report, &closest, &set_associative);
    rise(&mut report, &Rise::of(&steady));
    within_a_thousand_seconds(&mut report, &closest);
    convergence(&mut report, &Rise::of(&steady), &Rise::of(&extra));
    longest(&mut report, &closest, &most);
    report.tables.push(sizes(replication)?);
    report.tables.push(variants(replication)?);
    if let Some(table) = real_trace(replication)? {
        report.tables.push(table);
        report.remarks.push(
            "On a real trace, the layer `s-blocks` writes many sectors for each sector of the host. When an S-block \
             is destaged, its old copy stays as dead data in the ring of its section, and is freed only when the \
             tail of the ring passes it. If a few S-blocks are hot, the tail of the ring of 200 S-blocks must pass \
             hundreds of live ones, and each of these is copied. Uniform writes leave cached blocks in every \
             S-block, so it always pays to destage the S-block nearest to the tail; on a real trace it does not. \
             With more spare S-blocks the ring turns less often and fewer sectors are written. A larger cache helps \
             little, and larger sections make it worse."
                .into(),
        );
    }
    report.figure(throughput_chart(&steady));
    report.figure(latency_chart("cassuto-fig13", "closest-to-tail", &closest));
    report.figure(latency_chart("cassuto-fig14", "most-cached-blocks", &most));
    Ok(report)
}

fn measure(drive: &str, writes: u64, replication: &Replication) -> Result<Run, Failure> {
    let mut run = Run { counts: Counts::every(1), cliff: None, end: SimTime::ZERO, latency: LatencyHistogram::new() };
    let mut each = |record: &IoRecord| {
        run.counts.see(record.end);
        run.latency.record(record.end.since(record.entry).0);
        run.end = record.end;
        if !record.time.cleaning.is_zero() {
            run.cliff.get_or_insert(record.start);
        }
    };
    Bench::flat_out(drive).run(&format!("rw=randwrite,bs=4k,number_ios={writes}"), replication, &mut each)?;
    Ok(run)
}

/// Returns the counts of the 4,000 s after the cliff, or from the start if there is no cliff.
fn after(run: &Run) -> &[u32] {
    let cliff = run.cliff.unwrap_or(SimTime::ZERO);
    let until = SimTime((cliff.0 + AFTER_SECONDS * 1_000_000_000).min(run.end.0));
    run.counts.between(cliff, until)
}

fn sustained(report: &mut Report, closest: &Run, set_associative: &Run) {
    let windows = after(closest);
    let zero = windows.iter().filter(|&&count| count == 0).count();
    report.claim(
        ClaimKind::Shape,
        "windows of 1 s without a write, in the 4,000 s after the cliff",
        "none",
        format!("{zero} of {}", windows.len()),
        Some(zero == 0),
    );
    let (ours, other) = (mean(windows), mean(after(set_associative)));
    report.claim(
        ClaimKind::Shape,
        "mean IOPS of the 4,000 s after the cliff, S-blocks and set-associative",
        "S-blocks above (the 4,000 s are ours)",
        format!("{ours:.1} and {other:.1}"),
        Some(ours > other),
    );
}

/// Course of the rate in the paper's 1,000 s, in mean IOPS.
#[derive(Clone, Copy, PartialEq, Debug)]
struct FirstThousandSeconds {
    /// Mean before the cliff.
    first: f64,
    /// Lowest mean of 10 s after the cliff.
    drop: f64,
    /// Mean of the last 100 s.
    end: f64,
}

/// Length of the paper's run in seconds (§V.D).
const RUN_SECONDS: usize = 1_000;

impl FirstThousandSeconds {
    /// Takes the number of writes in each second from the start (`windows`) and the second of the first cleaning
    /// (`cliff`). Returns `None` if fewer than 100 s follow the cliff.
    fn of(windows: &[u32], cliff: usize) -> Option<FirstThousandSeconds> {
        let windows = &windows[..windows.len().min(RUN_SECONDS)];
        let (before, after) = windows.split_at_checked(cliff)?;
        let tail = after.len().checked_sub(100)?;
        let drop = after.chunks_exact(10).map(mean).fold(f64::INFINITY, f64::min);
        Some(FirstThousandSeconds { first: mean(before), drop, end: mean(&after[tail..]) })
    }

    fn of_run(run: &Run) -> Option<FirstThousandSeconds> {
        let cliff = (run.cliff?.0 / 1_000_000_000) as usize;
        FirstThousandSeconds::of(run.counts.between(SimTime::ZERO, run.end), cliff)
    }

    /// Returns whether the rate drops to around 50 IOPS and is around 80 at the end of the 1,000 s.
    fn is_as_theirs(&self) -> bool {
        is_near(self.drop, 50.0) && is_near(self.end, 80.0)
    }
}

fn is_near(mean: f64, theirs: f64) -> bool {
    (mean / theirs - 1.0).abs() <= NEAR
}

fn within_a_thousand_seconds(report: &mut Report, closest: &Run) {
    let found = FirstThousandSeconds::of_run(closest);
    report.claim(
        ClaimKind::Shape,
        "the drop and the rise within the 1,000 s of the paper's run",
        "to around 50, and to a steady average of around 80",
        found.map_or("the cliff is later".into(), |found| format!("to {:.0}, and to {:.0}", found.drop, found.end)),
        Some(found.is_some_and(|found| found.is_as_theirs())),
    );
}

/// Divisors of the drive's size, of its sections and of its tracks. Shares, S-blocks, and S-blocks in a section stay.
const PARTS: [u64; 5] = [1, 2, 5, 10, 20];

/// Returns a table of the paper's 1,000 s on smaller drives. The size for which the paper ran is not given.
fn sizes(replication: &Replication) -> Result<Table, Failure> {
    let rows = many::of_each(&PARTS, None, |_, part| {
        let (size, sections, tracks) = (307_200_000_000 / part, 1_500 / part, 214_000 / part);
        let words = format!("size={size},sections={sections},geometry.tracks={tracks}");
        // The rate before the cliff is about 180 writes a second.
        let run = measure(&format!("{CLOSEST},{words}"), 200 * RUN_SECONDS as u64, replication)?;
        let found = FirstThousandSeconds::of_run(&run);
        let cells = |of: fn(&FirstThousandSeconds) -> f64| {
            found.as_ref().map_or("–".into(), |found| format!("{:.0}", of(found)))
        };
        Ok(vec![
            format!("{:.1} GB", size as f64 / 1e9),
            match run.cliff {
                Some(cliff) => format!("{:.0} s", cliff.0 as f64 / 1e9),
                None => format!("over {:.0} s", run.end.0 as f64 / 1e9),
            },
            cells(|found| found.first),
            cells(|found| found.drop),
            cells(|found| found.end),
        ])
    })?;
    let columns =
        ["size", "first cleaning after", "IOPS before it", "lowest of 10 s after it", "last 100 s of 1,000 s"];
    let heading = "The first 1,000 s by size of the drive".to_string();
    Ok(Table { heading, columns: columns.map(String::from).to_vec(), rows })
}

/// Judges §V.D: destaging more S-blocks than necessary makes the rate converge sooner to the steady value, after a
/// deeper drop. A rate that stays low has not converged to that value.
fn convergence(report: &mut Report, needed: &Rise, extra: &Rise) {
    let of = |rise: &Rise| format!("{:.0} IOPS, then {},000 s to {:.0}", rise.drop, rise.thousands, rise.end);
    let converges = extra.end >= (1.0 - NEAR) * needed.end;
    report.claim(
        ClaimKind::Shape,
        "one S-block more destaged than necessary: the drop, and the time to the rate of the end",
        "a deeper temporary drop, and a quicker convergence (§V.D)",
        format!("{}; without it {}", of(extra), of(needed)),
        Some(extra.drop < needed.drop && extra.thousands < needed.thousands && converges),
    );
}

/// Course of the rate after the cliff, in mean IOPS of consecutive intervals of 1,000 s.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Rise {
    /// Lowest mean.
    drop: f64,
    /// Number of intervals from the lowest mean until a mean reaches `end`.
    thousands: usize,
    /// Highest mean from the lowest on.
    peak: f64,
    /// Mean of the last quarter of the intervals.
    end: f64,
}

impl Rise {
    fn of(run: &Run) -> Rise {
        Rise::in_means(&by_thousand(run.counts.between(run.cliff.unwrap_or(run.end), run.end)))
    }

    fn in_means(means: &[f64]) -> Rise {
        let lowest = (0..means.len()).min_by(|&a, &b| means[a].total_cmp(&means[b])).unwrap_or_default();
        let (rising, last) = (&means[lowest..], &means[means.len() - means.len() / 4..]);
        let end = last.iter().sum::<f64>() / last.len() as f64;
        Rise {
            drop: means[lowest],
            thousands: rising.iter().position(|&mean| mean >= end).unwrap_or(rising.len()),
            peak: rising.iter().copied().fold(0.0, f64::max),
            end,
        }
    }

    /// Returns whether the rise is the paper's: around 50 IOPS at the drop, around 80 at the end, in more than one
    /// interval.
    fn is_as_theirs(&self) -> bool {
        is_near(self.drop, 50.0) && is_near(self.end, 80.0) && self.thousands > 1
    }
}

/// Returns the mean IOPS of every whole 1,000 s. A window is 1 s.
fn by_thousand(windows: &[u32]) -> Vec<f64> {
    windows.chunks_exact(1000).map(mean).collect()
}

fn rise(report: &mut Report, rise: &Rise) {
    let Rise { drop, thousands, peak, end } = rise;
    report.claim(
        ClaimKind::Shape,
        "IOPS after the cliff: from the drop on, and at the end, over the whole run",
        "around 50, slowly rising to around 80",
        format!("{drop:.0}, after {thousands},000 s the {end:.0} of the end; in between {peak:.0}"),
        Some(rise.is_as_theirs()),
    );
    report.remarks.push(
        "After the cliff, the rate of the layer `s-blocks` rises during one turn of the S-block buffers, in which \
         every S-block is destaged once. When the caches are full for the first time, they hold 2.5 writes of each \
         S-block on average. After the turn, the S-block to be destaged has gathered writes during a whole turn: 5. \
         So each rewrite of an S-block frees twice as much space. A model of the counts of one section, which is a \
         test of this experiment, shows this rise and its peak: the S-blocks that are destaged last in the first \
         turn have gathered writes for the longest time. Cassuto 2010 gives 1,000 s as the length of its run, in \
         which 1,500 sections cannot make a turn. So its fig. 12 begins at another time, or its drive has fewer \
         S-blocks."
            .into(),
    );
}

fn longest(report: &mut Report, closest: &Run, most: &Run) {
    let (short_ms, long_ms) = (closest.latency.max_ns() as f64 / 1e6, most.latency.max_ns() as f64 / 1e6);
    let mut claim = |claim: &str, theirs: &str, ours: String, holds: bool| {
        report.claim(ClaimKind::Shape, claim, theirs, ours, Some(holds));
    };
    claim("closest-to-tail: longest 4 KiB write", "under 50 ms", format!("{short_ms:.1} ms"), short_ms < SHORT_MS);
    claim("most-cached-blocks: longest 4 KiB write", "over 7 s", format!("{:.2} s", long_ms / 1e3), long_ms > LONG_MS);
    let ratio = long_ms / short_ms;
    let theirs = "at least 140 (7 s over 50 ms)";
    claim("the longest writes of the two, one over the other", theirs, format!("{ratio:.0}"), ratio >= RATIO);
}

/// Returns a table of the measurements for each of [`VARIANTS`].
fn variants(replication: &Replication) -> Result<Table, Failure> {
    let columns =
        ["", "IOPS by thousand seconds after the cliff", "1 s windows at zero", "longest write", "most-cached-blocks"];
    let mut table = Table { heading: "Variants with one parameter changed".into(), ..Table::default() };
    table.columns = columns.map(String::from).to_vec();
    let rows = many::of_each(&VARIANTS, None, |_, (name, words)| {
        let run = measure(&format!("{CLOSEST},{words}"), WRITES, replication)?;
        let most = measure(&format!("{MOST},{words}"), WRITES, replication)?;
        let means = Vec::from_iter(by_thousand(after(&run)).iter().map(|mean| format!("{mean:.0}"))).join(", ");
        let zero = after(&run).iter().filter(|&&count| count == 0).count();
        let ms = |run: &Run| format!("{:.1} ms", run.latency.max_ns() as f64 / 1e6);
        Ok(vec![format!("{name} (`{words}`)"), means, zero.to_string(), ms(&run), ms(&most)])
    })?;
    table.rows = rows;
    Ok(table)
}

/// Path of the real trace.
const REAL: &str = "../shared/traces/cloudPhysicsIO.vscsi";

/// Drives run on the real trace, to find the parameters that determine how much S-blocks write there.
const ON_REAL: [(&str, &str); 11] = [
    ("set-associative, the paper's steps", SET_ASSOCIATIVE),
    ("set-associative, power-safe", "cassuto-307g+set-associative"),
    ("S-blocks", CLOSEST),
    ("five times the cache", "cassuto-307g+s-blocks:policy=closest-to-tail,cache_share=5%"),
    ("a tenth of the sections, ten times the size", "cassuto-307g+s-blocks:policy=closest-to-tail,sections=150"),
    ("five times the spare S-blocks", "cassuto-307g+s-blocks:policy=closest-to-tail,sblock_share=5%"),
    ("ten times the spare S-blocks", "cassuto-307g+s-blocks:policy=closest-to-tail,sblock_share=10%"),
    ("twenty times the spare S-blocks", "cassuto-307g+s-blocks:policy=closest-to-tail,sblock_share=20%"),
    ("the other policy", MOST),
    (
        "most cached of the quarter nearest to the tail (ours; §V.C proposes combinations)",
        "cassuto-307g+s-blocks:policy=most-cached-near-tail",
    ),
    ("set-associative, dynamic association (ours; §IV.D proposes one)", DYNAMIC),
];

/// Returns a table that compares S-blocks with set-associative on a real trace, one change at a time. Returns `None`
/// if the trace's file is missing.
fn real_trace(replication: &Replication) -> Result<Option<Table>, Failure> {
    if !std::path::Path::new(REAL).exists() {
        return Ok(None);
    }
    let rows = many::of_each(&ON_REAL, None, |_, (name, drive)| {
        let bench = Bench::flat_out(drive);
        let file = std::fs::File::open(REAL).map_err(|error| Failure::failed(format!("{REAL}: {error}")))?;
        let mut opened = imbrex_trace::open(Input::file(REAL, file), &TraceOptions::default())?;
        let result = bench.run_source(bench.drive()?, opened.source.as_mut(), replication, &mut |_| {})?;
        let seconds = result.duration_ns as f64 / 1e9;
        Ok(vec![name.to_string(), format!("{:.1}", result.write_amplification), format!("{seconds:.0} s")])
    })?;
    let columns = ["`cloudPhysicsIO.vscsi`", "sectors written for each of the host's", "time, flat out"];
    let heading = "Why S-blocks write more than set-associative on a real trace".to_string();
    Ok(Some(Table { heading, columns: columns.map(String::from).to_vec(), rows }))
}

fn throughput_chart(closest: &Run) -> Chart {
    const WINDOW_SECONDS: usize = 100;
    let means = closest.counts.between(SimTime::ZERO, closest.end).chunks_exact(WINDOW_SECONDS).map(mean);
    let points = means.enumerate().map(|(index, mean)| ((index * WINDOW_SECONDS) as f64, mean)).collect();
    let chart = Chart::new(
        "cassuto-fig12",
        "Random writes on S-blocks, windows of 100 s",
        Axis::linear("simulated time (s)", Unit::Count),
        Axis::linear("4 KiB writes a second", Unit::Count).ranged(0.0, 200.0),
    );
    let chart = chart.with(Series::new("closest-to-tail", Shape::Line, 0, points));
    let chart = match closest.cliff {
        Some(cliff) => chart.mark_x(cliff.0 as f64 / 1e9, "first cleaning"),
        None => chart,
    };
    let chart = chart.mark_y(80.0, "the paper's 80");
    chart.thin(1500)
}

/// Returns a histogram whose bars are each a factor of 1.25 wide. The scale of the paper's own axis changes three
/// times.
fn latency_chart(id: &str, policy: &str, run: &Run) -> Chart {
    let bar_of = |ns: u64| ((ns.max(1) as f64).ln() / 1.25f64.ln()).floor() as i32;
    let mut bars = std::collections::BTreeMap::new();
    for (edge_ns, count) in run.latency.buckets() {
        *bars.entry(bar_of(edge_ns)).or_insert(0.0) += count as f64;
    }
    let (first, last) = (bars.keys().next().copied().unwrap_or(0), bars.keys().last().copied().unwrap_or(0));
    let points = (first..=last + 1).map(|bar| (1.25f64.powi(bar), bars.get(&bar).copied().unwrap_or(0.0)));
    Chart::new(
        id,
        format!("Completion times of 4 KiB writes, {policy}"),
        Axis::log10("completion time", Unit::Nanoseconds),
        Axis::log10("writes", Unit::Count),
    )
    .with(Series::new(policy, Shape::Bars, 0, points.collect()))
}

#[cfg(test)]
mod tests {
    //! Goal: the predicates agree with the sentences they are printed with. Method: curves written here that fail one
    //! predicate each.

    use rand_core::{RngCore, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::super::super::report::Verdict;
    use super::*;

    #[test]
    fn a_rise_is_from_around_50_to_around_80() {
        let rise = |means: &[f64]| Rise::in_means(means).is_as_theirs();
        assert!(rise(&[110.0, 48.0, 60.0, 70.0, 78.0, 78.0, 78.0, 78.0]));
        assert!(!rise(&[114.0, 55.0, 55.0, 54.0, 53.0, 53.0, 52.0, 52.0]), "no rise");
        assert!(!rise(&[110.0, 64.0, 70.0, 75.0, 80.0, 80.0, 80.0, 80.0]), "not around 50 at the drop");
        assert!(!rise(&[110.0, 50.0, 80.0, 80.0, 80.0, 80.0, 80.0, 80.0]), "not slowly");
        assert!(!rise(&[50.0, 60.0, 70.0, 80.0, 90.0, 100.0, 110.0, 120.0]), "not around 80");
        assert!(!rise(&[50.0, 60.0, 70.0, 80.0, 80.0, 70.0, 60.0, 60.0]), "around 80, and not in the end");
    }

    #[test]
    fn only_the_first_thousand_seconds_count() {
        // 200 s at 180, then a drop to 50 that rises to 80 by a line of 700 s, and 500 after 1,000 s.
        let rate = |second: u32| match second {
            0..200 => 180,
            200..900 => 50 + (second - 200) * 30 / 700,
            900..1000 => 80,
            _ => 500,
        };
        let windows: Vec<u32> = (0..1_500).map(rate).collect();
        let found = FirstThousandSeconds::of(&windows, 200).expect("100 s are there");
        assert_eq!((found.first, found.drop, found.end), (180.0, 50.0, 80.0));
        assert!(found.is_as_theirs());
        assert!(
            !FirstThousandSeconds { drop: 61.0, ..found }.is_as_theirs()
                && !FirstThousandSeconds { end: 63.0, ..found }.is_as_theirs()
        );
        assert_eq!(FirstThousandSeconds::of(&windows, 901), None, "fewer than 100 s after the cliff");
        assert_eq!(FirstThousandSeconds::of(&windows[..150], 200), None, "no cliff in the run");
    }

    #[test]
    fn a_quicker_convergence_needs_fewer_seconds_after_a_deeper_drop() {
        let judged = |needed: (f64, usize), extra: (f64, usize)| judged_with_end(needed, extra, 80.0);
        fn judged_with_end(needed: (f64, usize), extra: (f64, usize), end: f64) -> Verdict {
            let rise = |(drop, thousands), end| Rise { drop, thousands, peak: 90.0, end };
            let mut report = Report::default();
            convergence(&mut report, &rise(needed, 80.0), &rise(extra, end));
            report.claims[0].verdict
        }
        assert_eq!(judged((50.0, 12), (40.0, 8)), Verdict::Yes);
        assert_eq!(judged((50.0, 12), (50.0, 8)), Verdict::No, "no deeper");
        assert_eq!(judged((50.0, 12), (40.0, 12)), Verdict::No, "no quicker");
        assert_eq!(judged_with_end((50.0, 12), (40.0, 8), 63.0), Verdict::No, "not to the steady value");
    }

    #[test]
    fn a_rise_is_told_by_its_drop_its_time_its_peak_and_its_end() {
        let rise = Rise::in_means(&[100.0, 50.0, 60.0, 70.0, 90.0, 80.0, 70.0, 74.0]);
        assert_eq!(rise, Rise { drop: 50.0, thousands: 3, peak: 90.0, end: 72.0 });
    }

    /// Returns the mean number of writes that a destage frees, for each quarter of a turn. The model is a section of
    /// 200 S-blocks with room for 500 writes, which come at random. When the room is used up, S-blocks are destaged in
    /// turn.
    fn freed_by_turns(random: &mut Xoshiro256PlusPlus) -> Vec<f64> {
        const SBLOCKS: usize = 200;
        const ROOM: usize = 500;
        let (mut cached, mut held, mut destaged) = ([0; SBLOCKS], 0, vec![]);
        while destaged.len() < 3 * SBLOCKS {
            if held == ROOM {
                let turn = destaged.len() % SBLOCKS;
                held -= cached[turn];
                destaged.push(cached[turn] as f64);
                cached[turn] = 0;
            } else {
                cached[random.next_u32() as usize % SBLOCKS] += 1;
                held += 1;
            }
        }
        destaged.chunks(SBLOCKS / 4).map(|freed| freed.iter().sum::<f64>() / freed.len() as f64).collect()
    }

    #[test]
    fn a_destage_frees_twice_as_much_once_all_have_had_their_turn() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut sum = [0.0; 12];
        for _ in 0..100 {
            freed_by_turns(&mut random).iter().zip(&mut sum).for_each(|(freed, sum)| *sum += freed / 100.0);
        }
        let is_about = |mean: f64, expected: f64| (mean / expected - 1.0).abs() < 0.05;
        assert!(sum[0] < 3.0 && sum[..4].is_sorted(), "2.5 and rising in the first turn: {sum:?}");
        assert!(sum[3] > 5.5, "more than in the end: {sum:?}");
        assert!(sum[8..].iter().all(|&freed| is_about(freed, 5.0)), "5 in the end: {sum:?}");
    }

    #[test]
    fn means_are_of_whole_thousands() {
        let windows: Vec<u32> = (0..2500).map(|second| second / 1000).collect();
        assert_eq!(by_thousand(&windows), [0.0, 1.0]);
    }
}
