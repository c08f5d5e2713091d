//! Fig. 5: write overloading and slowdown against the size of the disk cache.

use super::super::lab::Bench;
use super::super::{ClaimKind, Experiment, Replication, Report};
use super::under_test::CONVENTIONAL;
use imbrex::chart::{Axis, Chart, Series, Shape, Unit};
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "cassuto/fig05",
    title: "write overloading and slowdown fall, convex, as the cache grows from 1 to 10 %",
    run,
};

/// Stand-in for the paper's write-intensive PC trace. Half of the requests write, nine tenths of the requests go to a
/// tenth of the drive, and sizes have the means of table I.
const WORKLOAD: &str = "rw=randrw,rwmixread=50,bssplit=4k/40:16k/40:64k/20,random_distribution=zoned:90/10:10/90,\
percentage_random=70,number_ios=6000000,seed=5";

fn run(replication: &Replication) -> Result<Report, Failure> {
    let conventional = Bench::flat_out(CONVENTIONAL).run(WORKLOAD, replication, &mut |_| {})?;
    let (mut overloading, mut slowdown) = (Vec::new(), Vec::new());
    for percent in 1..=10 {
        let drive = format!("cassuto-307g+set-associative:safety=paper,cache_share={percent}%");
        let result = Bench::flat_out(&drive).run(WORKLOAD, replication, &mut |_| {})?;
        overloading.push((percent as f64, result.write_overloading));
        slowdown.push((percent as f64, result.duration_ns as f64 / conventional.duration_ns as f64));
    }
    let mut report = Report {
        method: format!(
            "The experiment runs a workload on ten set-associative drives, with a cache of 1 to 10 % of the drive, \
             and on the conventional drive of equal mechanics. Each request is issued when the one before completes. \
             The *slowdown* of a drive is its run time divided by that of the conventional drive. The trace of \
             Cassuto 2010 is not public; the workload is `{WORKLOAD}`."
        ),
        ..Report::default()
    };
    for (name, curve) in [("write overloading", &overloading), ("slowdown", &slowdown)] {
        report.claim(
            ClaimKind::Shape,
            &format!("{name} from 1 to 10 % cache"),
            "falls monotonically, convex",
            curve.iter().map(|point| format!("{:.2}", point.1)).collect::<Vec<_>>().join(", "),
            Some(falls(curve) && is_convex(curve)),
        );
    }
    let chart = Chart::new(
        "cassuto-fig05",
        "Write overloading and slowdown against cache size",
        Axis::linear("disk cache (% of the drive)", Unit::Count),
        Axis::linear("times the conventional drive", Unit::Ratio),
    )
    .with(Series::new("write overloading", Shape::Line, 0, overloading))
    .with(Series::new("slowdown", Shape::Line, 1, slowdown));
    report.figure(chart);
    Ok(report)
}

fn falls(curve: &[(f64, f64)]) -> bool {
    curve.windows(2).all(|pair| pair[1].1 <= pair[0].1)
}

/// Returns whether the curve is convex: its first half falls more steeply than its second, and no point lies above the
/// chord of its neighbours. A point may lie above by 5 % of the whole fall, since a run counts only whole collections.
fn is_convex(curve: &[(f64, f64)]) -> bool {
    let first = curve[0].1 - curve[4].1;
    let second = curve[5].1 - curve[9].1;
    let grain = 0.05 * (curve[0].1 - curve[9].1);
    let under = |i: usize| (curve[i - 1].1 + curve[i + 1].1) / 2.0 + grain >= curve[i].1;
    first > second && (1..curve.len() - 1).all(under)
}
