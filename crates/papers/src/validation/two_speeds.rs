//! Random writes on a drive-managed drive at two speeds, into an empty and into a full cache, compared with a public
//! measurement (2026, unrefereed).

use imbrex_disk::SimTime;
use imbrex_sim::{Arrival, Engine, IoRecord, Observer, Options};

use super::super::aghayev::observed::is_near;
use super::super::{ClaimKind, Experiment, Replication, Report};
use imbrex::drives::fresh;
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "validation/two-speeds",
    title: "random writes on a drained ST8000AS0022, and again on a full one",
    run,
};

const DRIVE: &str = "seagate-st8000as0022";
const WRITES: u64 = 35_840;
const WORKLOAD: &str = "rw=randwrite,bs=1m,iodepth=64,number_ios=35840,size=7168GB;idle=2h;\
                        rw=randwrite,bs=1m,number_ios=35840,size=7168GB";

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report {
        method: format!(
            "The experiment runs `{WORKLOAD}` on `{DRIVE}`. It measures the seconds from the first write to the last \
             for each of the two parts with writes. The result may differ from the measurement by 20 %."
        ),
        ..Report::default()
    };
    let drive = fresh(DRIVE)?;
    let options = Options { arrival: Arrival::Closed(64), ..Options::live(&drive) };
    let capacity = drive.capacity_bytes();
    let source = replication.generator(WORKLOAD, capacity / 512);
    let bar = replication.progress.requests(DRIVE, Some(2 * WRITES));
    let mut ends = Ends { parts: [(SimTime::ZERO, SimTime::ZERO); 2] };
    Engine::new(drive, options, source, &mut ends).run()?;
    bar.finish_and_clear();
    let [fresh, full] = ends.parts.map(|(from, to)| to.since(from).as_secs_f64());
    for (what, theirs, ours) in [("on a drained drive", 1434.0, fresh), ("again after 2 h of idle", 5150.0, full)] {
        report.claim(
            ClaimKind::Predicted,
            &format!("{WRITES} writes of 1 MiB {what}, in seconds"),
            &format!("{theirs:.0} (2026, unrefereed)"),
            format!("{ours:.0}"),
            Some(is_near(ours, theirs, 0.2)),
        );
    }
    report.remarks.push(
        "The model of `seagate-st8000as0022` explains both speeds by bands of two tracks, which take 0.12 s each to \
         merge. While a write waits, the drive merges one band for each block of the cache that the write needs. In \
         idle time it merges bands too, with a rest after each. The seek curve was fitted as well: a seek over a \
         random distance takes 8.4 ms, where such a drive has 16 ms. The short seeks stand for properties that the \
         model lacks, such as merging from the first changed track on. The model predicts that an idle drive empties \
         its cache in a time that depends on the number of bands with cached data. So short writes drain no faster \
         than long ones, and writes close together drain in a fraction of the time. It also predicts that two hours \
         of idle time change nothing, because the drive waits for three. Single random reads are faster in the model \
         than on the real drive."
            .into(),
    );
    Ok(report)
}

/// For each part of the workload, the time at which its first write entered and its last completed.
struct Ends {
    parts: [(SimTime, SimTime); 2],
}

impl Observer for Ends {
    fn wants_ios(&self) -> bool {
        true
    }

    fn io(&mut self, record: &IoRecord) {
        let part = &mut self.parts[usize::from(record.sequence >= WRITES)];
        if part.1 == SimTime::ZERO {
            part.0 = record.entry;
        }
        part.0 = part.0.min(record.entry);
        part.1 = part.1.max(record.end);
    }
}
