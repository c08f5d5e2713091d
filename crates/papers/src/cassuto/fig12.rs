//! Figs 12–14: random 4 KiB writes on S-blocks, and two ways to choose what to destage.

use imbrex_disk::SimTime;
use imbrex_sim::IoRecord;
use imbrex_sim::metrics::latency::LatencyHistogram;
use imbrex_trace::{Input, TraceOptions};

use super::super::lab::{Bench, Counts, mean};
use super::super::report::Table;
use super::super::{ClaimKind, Experiment, Report};
use super::under_test::SET_ASSOCIATIVE;
use imbrex::chart::{Axis, Chart, Series, Shape, Style, Unit};
use imbrex::error::Failure;
use imbrex::progress::Progress;
use imbrex::run::many;

/// Its line in the registry.
pub const EXPERIMENT: Experiment = Experiment {
    name: "cassuto/fig12-14",
    title: "S-blocks sustain random writes; the destage policy decides the longest of them",
    run,
};

/// The drive of §V.D with each of the two policies.
const CLOSEST: &str = "cassuto-307g+s-blocks:policy=closest-to-tail";
const MOST: &str = "cassuto-307g+s-blocks:policy=most-cached-blocks";

/// Well past the cliff: 4,000 s of it and more.
const WRITES: u64 = 1_150_000;
/// What is looked at after the cliff.
const AFTER_SECONDS: u64 = 4_000;

/// The same drive with one thing changed each: what the rise after the cliff hangs on.
const VARIANTS: [(&str, &str); 6] = [
    ("500 sections of three times the size", "sections=500"),
    ("150 sections of ten times the size", "sections=150"),
    ("twice the spare S-blocks", "sblock_share=2%"),
    ("twice the cache", "cache_share=2%"),
    ("one S-block more destaged before each cache defrag", "extra_destages=1"),
    ("four S-blocks more destaged before each cache defrag", "extra_destages=4"),
];

/// "Around 50" and "around 80" IOPS: within a fifth.
const NEAR: f64 = 0.2;

/// "Under 50 ms", "over 7 s": the longest writes of figs 13 and 14, and how far apart they are.
const SHORT_MS: f64 = 50.0;
const LONG_MS: f64 = 7_000.0;
const RATIO: f64 = 140.0;

/// What one run showed.
struct Run {
    counts: Counts,
    cliff: SimTime,
    end: SimTime,
    latency: LatencyHistogram,
}

fn run(progress: &Progress) -> Result<Report, Failure> {
    let closest = measure(CLOSEST, progress)?;
    let most = measure(MOST, progress)?;
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
    report.tables.push(variants(progress)?);
    if let Some(table) = real_trace(progress)? {
        report.tables.push(table);
        report.remarks.push(
            "A destaged S-block leaves its old copy dead in the middle of its section's ring, and dead copies are freed only as the \
             tail passes them: for a few hot S-blocks the ring of 200 has to be turned past hundreds of live ones, each moved. \
             Uniform writes leave cached blocks in every S-block, so the one nearest the tail is always worth destaging; on a real \
             trace it is not. Spare S-blocks make the ring turn less often, and with them amplification falls; a larger cache does \
             little, and larger sections make it worse."
                .into(),
        );
    }
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
    let means = quarters(windows);
    report.claim(
        ClaimKind::Shape,
        "IOPS after the cliff: from the drop on, and at the end",
        "around 50, slowly rising to around 80",
        told(&means),
        Some(rises_as_theirs(&means)),
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

/// Mean IOPS in each quarter.
fn quarters(windows: &[u32]) -> [f64; 4] {
    let quarter = windows.len() / 4;
    std::array::from_fn(|index| mean(&windows[index * quarter..(index + 1) * quarter]))
}

fn told(means: &[f64; 4]) -> String {
    let means: Vec<_> = means.iter().map(|mean| format!("{mean:.0}")).collect();
    format!("{} in the four thousand seconds", means.join(", "))
}

/// Whether it serves around 50 at first and around 80 in the end, and no less from quarter to quarter.
fn rises_as_theirs(means: &[f64; 4]) -> bool {
    let is_near = |mean: f64, theirs: f64| (mean / theirs - 1.0).abs() <= NEAR;
    is_near(means[0], 50.0) && is_near(means[3], 80.0) && means.windows(2).all(|pair| pair[0] <= pair[1])
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

/// The same under each of [`VARIANTS`].
fn variants(progress: &Progress) -> Result<Table, Failure> {
    let columns =
        ["", "IOPS by thousand seconds after the cliff", "1 s windows at zero", "longest write", "most-cached-blocks"];
    let mut table = Table { heading: "One thing changed each".into(), ..Table::default() };
    table.columns = columns.map(String::from).to_vec();
    let rows = many::of_each(&VARIANTS, None, |_, (name, words)| {
        let run = measure(&format!("{CLOSEST},{words}"), progress)?;
        let most = measure(&format!("{MOST},{words}"), progress)?;
        let means = quarters(after(&run)).map(|mean| format!("{mean:.0}")).join(", ");
        let zero = after(&run).iter().filter(|&&count| count == 0).count();
        let ms = |run: &Run| format!("{:.1} ms", run.latency.max_ns() as f64 / 1e6);
        Ok(vec![format!("{name} (`{words}`)"), means, zero.to_string(), ms(&run), ms(&most)])
    })?;
    table.rows = rows;
    Ok(table)
}

/// The real trace, and where it is looked for.
const REAL: &str = "../shared/traces/cloudPhysicsIO.vscsi";

/// What changes how much S-blocks write on a real trace.
const ON_REAL: [(&str, &str); 9] = [
    ("set-associative, the paper's steps", SET_ASSOCIATIVE),
    ("set-associative, power-safe", "cassuto-307g+set-associative"),
    ("S-blocks", CLOSEST),
    ("five times the cache", "cassuto-307g+s-blocks:policy=closest-to-tail,cache_share=5%"),
    ("a tenth of the sections, ten times the size", "cassuto-307g+s-blocks:policy=closest-to-tail,sections=150"),
    ("five times the spare S-blocks", "cassuto-307g+s-blocks:policy=closest-to-tail,sblock_share=5%"),
    ("ten times the spare S-blocks", "cassuto-307g+s-blocks:policy=closest-to-tail,sblock_share=10%"),
    ("twenty times the spare S-blocks", "cassuto-307g+s-blocks:policy=closest-to-tail,sblock_share=20%"),
    ("the other policy", MOST),
];

/// Why S-blocks write more than set-associative on a real trace: one thing changed each. None where the trace is not there.
fn real_trace(progress: &Progress) -> Result<Option<Table>, Failure> {
    if !std::path::Path::new(REAL).exists() {
        return Ok(None);
    }
    let rows = many::of_each(&ON_REAL, None, |_, (name, drive)| {
        let bench = Bench::flat_out(drive);
        let file = std::fs::File::open(REAL).map_err(|error| Failure::failed(format!("{REAL}: {error}")))?;
        let mut opened = imbrex_trace::open(Input::file(REAL, file), &TraceOptions::default())?;
        let result = bench.run_source(bench.drive()?, opened.source.as_mut(), progress, &mut |_| {})?;
        let seconds = result.duration_ns as f64 / 1e9;
        Ok(vec![name.to_string(), format!("{:.1}", result.write_amplification), format!("{seconds:.0} s")])
    })?;
    let columns = ["`cloudPhysicsIO.vscsi`", "sectors written for each of the host's", "time, flat out"];
    let heading = "Why S-blocks write more than set-associative on a real trace".to_string();
    Ok(Some(Table { heading, columns: columns.map(String::from).to_vec(), rows }))
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

#[cfg(test)]
mod tests {
    //! Goal: the predicates are the sentences they print. Method: curves by hand for which each fails.

    use super::*;

    #[test]
    fn a_rise_is_from_around_50_to_around_80() {
        assert!(rises_as_theirs(&[48.0, 60.0, 70.0, 78.0]));
        assert!(!rises_as_theirs(&[55.0, 55.0, 54.0, 53.0]), "no rise");
        assert!(!rises_as_theirs(&[110.0, 60.0, 70.0, 80.0]), "not around 50 at first");
        assert!(!rises_as_theirs(&[50.0, 80.0, 60.0, 80.0]), "not slowly");
        assert!(!rises_as_theirs(&[50.0, 60.0, 70.0, 120.0]), "not around 80");
    }

    #[test]
    fn quarters_are_means_of_a_quarter() {
        assert_eq!(quarters(&[1, 3, 5, 5, 2, 2, 9, 7]), [2.0, 5.0, 2.0, 8.0]);
    }
}
