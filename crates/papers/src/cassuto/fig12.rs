//! Figs 12–14: random 4 KiB writes on S-blocks, and two ways to choose what to destage.

use imbrex_disk::SimTime;
use imbrex_sim::metrics::latency::LatencyHistogram;
use imbrex_sim::IoRecord;

use super::super::lab::{mean, Bench, Counts};
use super::super::{ClaimKind, Experiment, Report};
use super::under_test::SET_ASSOCIATIVE;
use imbrex::chart::{Axis, Chart, Series, Shape, Style, Unit};
use imbrex::error::Failure;
use imbrex::progress::Progress;

/// Its line in the registry.
pub const EXPERIMENT: Experiment = Experiment {
    name: "cassuto/fig12-14",
    title: "S-blocks sustain random writes; the destage policy decides the longest of them",
    run,
};

/// Well past the cliff: 4,000 s of it and more.
const WRITES: u64 = 1_150_000;
/// What is looked at after the cliff.
const AFTER_SECONDS: u64 = 4_000;

/// What one run showed.
struct Run {
    counts: Counts,
    cliff: SimTime,
    end: SimTime,
    latency: LatencyHistogram,
}

fn run(progress: &Progress) -> Result<Report, Failure> {
    let closest = measure("cassuto-307g+s-blocks:policy=closest-to-tail", progress)?;
    let most = measure("cassuto-307g+s-blocks:policy=most-cached-blocks", progress)?;
    let set_associative = measure(SET_ASSOCIATIVE, progress)?;
    let mut report = Report {
        method: format!(
            "{WRITES} writes of 4 KiB, uniform over the drive, one after the other, on `cassuto-307g+s-blocks` (S-blocks of 2000 \
             blocks, 1 % for cache buffers and 1 % for extra S-blocks, 1500 sections), under two destage policies; and on the \
             set-associative drive. The cliff is the first write that had to clean."
        ),
        ..Report::default()
    };
    sustained(&mut report, &closest, &set_associative);
    longest(&mut report, &closest, &most);
    report.figures.push(("cassuto-fig12.svg".into(), throughput_chart(&closest)));
    report.figures.push(("cassuto-fig13.svg".into(), latency_chart("cassuto-fig13", "closest-to-tail", &closest)));
    report.figures.push(("cassuto-fig14.svg".into(), latency_chart("cassuto-fig14", "most-cached-blocks", &most)));
    Ok(report)
}

fn measure(drive: &str, progress: &Progress) -> Result<Run, Failure> {
    let mut run =
        Run { counts: Counts::every(1), cliff: SimTime::ZERO, end: SimTime::ZERO, latency: LatencyHistogram::new() };
    let mut each = |record: &IoRecord| {
        run.counts.see(record.end);
        run.latency.record(record.end.since(record.entry).0);
        run.end = record.end;
        if !record.time.cleaning.is_zero() && run.cliff == SimTime::ZERO {
            run.cliff = record.start;
        }
    };
    Bench::flat_out(drive).run(&format!("rw=randwrite,bs=4k,number_ios={WRITES}"), progress, &mut each)?;
    Ok(run)
}

fn after(run: &Run) -> &[u32] {
    let until = SimTime((run.cliff.0 + AFTER_SECONDS * 1_000_000_000).min(run.end.0));
    run.counts.between(run.cliff, until)
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
    let quarter = windows.len() / 4;
    let (early, late) = (mean(&windows[quarter..2 * quarter]), mean(&windows[3 * quarter..]));
    report.claim(
        ClaimKind::Shape,
        "IOPS after the cliff: at first, and later",
        "about 50, slowly rising to about 80",
        format!("{early:.0} in the second thousand seconds, {late:.0} in the fourth"),
        None,
    );
    let (ours, other) = (mean(windows), mean(after(set_associative)));
    report.claim(
        ClaimKind::Shape,
        "mean IOPS of the 4,000 s after the cliff, S-blocks and set-associative",
        "S-blocks above",
        format!("{ours:.1} and {other:.1}"),
        Some(ours > other),
    );
}

fn longest(report: &mut Report, closest: &Run, most: &Run) {
    let (short_ms, long_ms) = (closest.latency.max_ns() as f64 / 1e6, most.latency.max_ns() as f64 / 1e6);
    report.claim(
        ClaimKind::Shape,
        "longest 4 KiB write: closest-to-tail, most-cached-blocks",
        "under 50 ms; over 7 s",
        format!("{short_ms:.1} ms; {:.2} s", long_ms / 1e3),
        Some(long_ms >= 20.0 * short_ms),
    );
}

fn throughput_chart(closest: &Run) -> String {
    let chart = Chart::new(
        "cassuto-fig12",
        "Random writes on S-blocks, 1 s windows",
        Axis::linear("simulated time (s)", Unit::Count),
        Axis::linear("4 KiB writes a second", Unit::Count).ranged(0.0, 200.0),
    );
    let chart = chart.with(Series::new("closest-to-tail", Shape::Line, 0, closest.counts.points()));
    let chart = chart.mark_x(closest.cliff.0 as f64 / 1e9, "first cleaning").mark_y(80.0, "the paper's 80");
    chart.thin(1500).svg(Style::Standalone)
}

/// Bars of a histogram, each a factor of 1.25 wide: the paper's own axis changes its scale three times.
fn latency_chart(id: &str, policy: &str, run: &Run) -> String {
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
    .svg(Style::Standalone)
}
