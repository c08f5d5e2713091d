//! Figs 6 and 7: HiSMRfs against SMRfs under filebench's `createfiles` and `varmail`, in disk time.
//!
//! HiSMRfs is store `log` with its metadata on flash. SMRfs is store `strict-append`: a file is read to memory as a
//! whole when it is opened, and all files are appended to one band. Its metadata are where the paper puts them: in
//! extended attributes of symbolic links in ext4. `parts` explains how the times of the two are added. `threads` runs
//! `varmail` with several numbers of threads.

mod claims;
mod parts;
mod symlinks;
pub(super) mod threads;

use imbrex::Failure;
use imbrex::chart::{Axis, BarArrangement, BarChart, Unit};

pub(super) use self::parts::in_guest;
use self::parts::{Measured, Part};
use super::choices::{DISKS, FLASH, LOADS, OPEN_BANDS, PAGE_CACHE_BYTES, SEED};
use crate::report::Table;
use crate::{Experiment, Replication, Report};

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment =
    Experiment { name: "jin/fig06-07", title: "HiSMRfs against SMRfs, in time of the disk", run };

/// System: its name, and the parts whose times are added, since they run one after the other.
struct System {
    name: &'static str,
    parts: &'static [Part],
}

/// Systems: the three that are compared, then the variants.
const SYSTEMS: [System; 7] = [
    System { name: "HiSMRfs: log, metadata on flash", parts: &[Part::LogOnFlash] },
    System { name: "SMRfs, ext4 on the disk", parts: &[Part::SmrfsAlone, Part::Ext4OnDisk] },
    System { name: "SMRfs, ext4 on flash", parts: &[Part::SmrfsAlone, Part::Ext4OnFlash] },
    System { name: "SMRfs, our metadata on the disk", parts: &[Part::SmrfsOnDisk] },
    System { name: "SMRfs, our metadata on flash", parts: &[Part::SmrfsOnFlash] },
    System { name: "log, metadata on the disk", parts: &[Part::LogOnDisk] },
    System { name: "SMRfs with a band for each file, our metadata on flash", parts: &[Part::BandsOnFlash] },
];

/// Indices of the systems in a row.
const HISMRFS: usize = 0;
const SMRFS_ON_DISK: usize = 1;
const SMRFS_ON_FLASH: usize = 2;
const OWN_ON_DISK: usize = 3;
const OWN_ON_FLASH: usize = 4;
const LOG_ON_DISK: usize = 5;
const IN_BANDS: usize = 6;

/// Result published before one band was chosen for SMRfs.
const EARLIER_RUN: &str = "An earlier run, with a band for each file of SMRfs, had been published before this choice: \
     HiSMRfs made 3.72 (ext4 on the disk) and 2.80 (ext4 on flash) times the operations of SMRfs under `varmail`.";

/// Measurements of one load by system, each a list of phases; `None` for a system that could not be run.
type Row = Vec<Option<Vec<Measured>>>;

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report { method: method(), ..Report::default() };
    let mut rows_of_disks = Vec::new();
    for disk in DISKS {
        let mut rows = Vec::new();
        for load in LOADS {
            let row = row(replication, disk, load, &mut report)?;
            report.tables.push(table(disk, load, &row));
            rows.push(row);
        }
        rows_of_disks.push(rows);
    }
    claims::judge(&mut report, &rows_of_disks[0]);
    claims::explain(&mut report, &rows_of_disks);
    report.figure(chart(&rows_of_disks[0]));
    Ok(report)
}

/// Measures a load on every system. If the lab cannot be used, a remark says so, and the other systems are
/// run.
fn row(replication: &Replication, disk: &str, load: &str, report: &mut Report) -> Result<Row, Failure> {
    let mut found = Vec::new();
    for part in Part::ALL {
        let bar = replication.progress.steps(&format!("{load}, {}", part.name()));
        let measured = part.run(disk, load, None, replication, &bar);
        bar.finish_and_clear();
        found.push(match measured {
            Err(failure) if part.is_linux() && !replication.progress.should_stop() => {
                report.remarks.push(format!("{load}: {} was not run: {failure}.", part.name()));
                None
            }
            measured => Some(measured?),
        });
    }
    let of =
        |part: &Part| found[Part::ALL.iter().position(|other| other == part).expect("ALL has every part")].as_ref();
    Ok(SYSTEMS.iter().map(|system| parts::added(system.parts.iter().map(of))).collect())
}

fn method() -> String {
    format!(
        "The experiment runs filebench's personalities with their own sizes (`imbrex fs bench`, seed {SEED}) on new \
         file systems. All have the same disk, `{}`, the same flash, `{FLASH}`, and a page cache of {} GiB. Times are \
         those of disk and flash: the processor takes no time, and a phase ends when all data are durable. HiSMRfs is \
         store `log` with its metadata on flash. SMRfs is store `strict-append`: a file is read to memory as a whole \
         when it is opened and moves as a whole when it is written (Singh 2014 §2.2.2, Jin 2014 §I.C). No paper gives \
         the number of bands written at a time; we chose one (`open_bands={OPEN_BANDS}`). The threads that wait for a \
         commit share a flush of the disk. SMRfs keeps its metadata in extended attributes of symbolic links in ext4. \
         To measure this part, the same operations run with as many threads on ext4 of Linux 6.12, in the lab: once in the first 32 GiB of the disk, where the unshingled partition lies, and once on flash. The time \
         of that drive is added to the time of SMRfs with metadata that cost nothing. Seeks between data and metadata \
         are not counted, which favours SMRfs; the two parts never overlap, which does not. Both stores are also run \
         with our own namespace. The paper measured HiSMRfs on one HDD and one SSD by the \
         wall clock, and compared with published results of SMRfs from another machine, which it does not describe. So \
         its shares, 20 and 30 %, cannot be reproduced; its order of the two systems is judged. The values that the \
         paper does not give were chosen before the first run (commit {}; one band for SMRfs: commit {}). {}",
        DISKS[0],
        PAGE_CACHE_BYTES >> 30,
        super::CHOSEN,
        super::CHOSEN_PARTS,
        EARLIER_RUN,
    )
}

fn table(disk: &str, load: &str, row: &Row) -> Table {
    let columns = ["system", "pre-allocate, s", "operations/s", "MB/s", "mean latency, ms"];
    let cells = |measured: &Option<Vec<Measured>>| match measured {
        None => ["–"; 4].map(String::from),
        Some(phases) => {
            let (before, run) = (&phases[0], &phases[1]);
            let latency = format!("{:.2}", run.latency_ns as f64 / 1e6);
            let seconds = format!("{:.3}", before.seconds());
            [seconds, format!("{:.0}", run.rate()), format!("{:.1}", run.mb_per_s()), latency]
        }
    };
    let line = |(system, measured): (&System, &Option<Vec<Measured>>)| {
        [system.name.to_string()].into_iter().chain(cells(measured)).collect()
    };
    Table::new(format!("{load} on {disk}"), &columns, SYSTEMS.iter().zip(row).map(line))
}

/// Returns a chart of each system's rate divided by that of SMRfs with ext4 on the disk.
fn chart(rows: &[Row]) -> BarChart {
    let axis = Axis::linear("operations/s over SMRfs, ext4 on the disk", Unit::Ratio);
    let groups = LOADS.map(String::from).to_vec();
    let title = "HiSMRfs and SMRfs";
    let mut chart = BarChart::new("jin-fig6-7", title, axis, groups, BarArrangement::Grouped);
    for (number, system) in SYSTEMS.iter().enumerate() {
        let ratios = rows.iter().map(|row| claims::over(row, 1, number, SMRFS_ON_DISK, Measured::rate));
        let known: Option<Vec<f64>> = ratios.collect();
        if let Some(values) = known {
            chart = chart.with(system.name, number, values);
        }
    }
    chart
}
