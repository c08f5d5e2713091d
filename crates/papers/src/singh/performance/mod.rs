//! Figs 5.1 to 5.7: the benchmarks of §5.2 on Caveat SMRfs, Strict-Append SMRfs, ext4 and NILFS2, in disk time. The file
//! systems of Linux run in the lab.

mod claims;
mod systems;

use imbrex::chart::{Axis, BarArrangement, BarChart, Unit};
use imbrex::error::Failure;
use imbrex_fs::load::bench::{self, Benchmark, Sizes};

use super::super::report::Table;
use super::super::{Experiment, Replication, Report};
use systems::{ALL as SYSTEMS, COMPARED};

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "singh/fig5-1",
    title: "files read and written beside ext4 and NILFS2, in time of the disk",
    run,
};

/// Benchmark of the paper, with the numbers of its figures.
struct Load {
    figures: &'static str,
    name: &'static str,
    /// Size of the file in bytes, if it differs from the benchmark's default.
    file_bytes: Option<u64>,
}

const LOADS: [Load; 5] = [
    Load { figures: "figs 5.1, 5.2: LFS, 100 MB", name: "lfs", file_bytes: Some(100_000_000) },
    Load { figures: "figs 5.3, 5.4: LFS, 500 MB", name: "lfs", file_bytes: Some(500_000_000) },
    Load { figures: "fig. 5.5: 10,000 small files", name: "smallfiles", file_bytes: None },
    Load { figures: "fig. 5.6: PostMark", name: "postmark", file_bytes: None },
    Load { figures: "fig. 5.7: compiling", name: "compile", file_bytes: None },
];

impl Load {
    fn benchmark(&self) -> &'static Benchmark {
        bench::named(self.name).expect("each is a line of the registry of benchmarks")
    }

    fn sizes(&self) -> Sizes {
        let own = self.benchmark().defaults;
        Sizes { file_bytes: self.file_bytes.or(own.file_bytes), ..own }
    }
}

/// Measurements of a phase on one system.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Measured {
    name: String,
    /// Number of the units that the benchmark counts in this phase.
    done: u64,
    /// Number of bytes read and written.
    bytes: u64,
    /// Disk time of the phase, in ns.
    disk_ns: u64,
}

impl Measured {
    fn rate(&self) -> f64 {
        self.done as f64 * 1e9 / self.disk_ns.max(1) as f64
    }

    fn mb_per_s(&self) -> f64 {
        self.bytes as f64 * 1e3 / self.disk_ns.max(1) as f64
    }
}

/// Measurements of one load by system, each a list of phases; `None` for a system that could not be run.
type Row = Vec<Option<Vec<Measured>>>;

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report { method: method(), ..Report::default() };
    let mut rows: Vec<Row> = Vec::new();
    for load in &LOADS {
        let mut row = Row::new();
        for system in SYSTEMS {
            let bar = replication.progress.steps(&format!("{}, {}", load.figures, system.name));
            let measured = system.run(load.benchmark(), load.sizes(), &bar, replication);
            bar.finish_and_clear();
            row.push(match (measured, system.is_linux()) {
                (Err(failure), true) if !replication.progress.should_stop() => {
                    report.remarks.push(format!("{} was not run for {}: {failure}.", system.name, load.figures));
                    None
                }
                (measured, _) => Some(measured?),
            });
        }
        report.tables.push(table(load, &row));
        rows.push(row);
    }
    claims::judge(&mut report, &rows);
    charts(&mut report, &rows);
    Ok(report)
}

fn method() -> String {
    "The experiment runs each benchmark (`imbrex fs bench`, seed 1) on a new file system on equal disks: Caveat \
     SMRfs on profile `caveat-2t` with best fit, Strict-Append SMRfs on `strict-append-2t` with the greedy cleaner, \
     and ext4 and NILFS2 of Linux 6.12 in the lab on `caveat-2t+conventional`. All run with the write cache of the \
     paper's drive, and once more without a write cache. Times are those of the disk: the processor takes no time, \
     and a phase ends when all data are on the disk. Each file system has a page cache that holds all its files (the \
     guest has 8 GiB of memory, as the paper's machine); `lfs` and the reading of small files begin with a page cache \
     without these files. Two runs give equal figures. The figures of Singh 2014 are drawings without numbers, \
     measured by the wall clock."
        .into()
}

fn table(load: &Load, row: &Row) -> Table {
    let columns = ["phase", "done", "MB"].into_iter().chain(SYSTEMS.iter().map(|system| system.name));
    let seconds = |measured: Option<&Measured>| match measured {
        None => "–".to_string(),
        Some(found) => format!("{:.2}", found.disk_ns as f64 / 1e9),
    };
    let first = row[0].as_ref().map_or(&[][..], Vec::as_slice);
    let line = |(phase, found): (usize, &Measured)| {
        let megabytes = format!("{:.1}", found.bytes as f64 / 1e6);
        let systems = row.iter().map(|system| seconds(system.as_ref().map(|phases| &phases[phase])));
        [found.name.clone(), found.done.to_string(), megabytes].into_iter().chain(systems).collect()
    };
    Table {
        heading: format!("{}, seconds of disk time", load.figures),
        columns: columns.map(String::from).collect(),
        rows: first.iter().enumerate().map(line).collect(),
    }
}

/// Figure: (number, title, index of the row, phases, label of the axis, function that returns the value of a phase).
type Figure = (&'static str, &'static str, usize, &'static [usize], &'static str, fn(&Measured) -> f64);

/// Figures whose phases differ so much that bars of one length unit show only the longest.
const LOGARITHMIC: [&str; 2] = ["5.6", "5.7"];

const FIGURES: &[Figure] = &[
    ("5.1", "Reading a file of 100 MB", 0, &[1, 3], "MB/s of disk time", Measured::mb_per_s),
    ("5.2", "Writing a file of 100 MB", 0, &[0, 2], "MB/s of disk time", Measured::mb_per_s),
    ("5.3", "Reading a file of 500 MB", 1, &[1, 3], "MB/s of disk time", Measured::mb_per_s),
    ("5.4", "Writing a file of 500 MB", 1, &[0, 2], "MB/s of disk time", Measured::mb_per_s),
    ("5.5", "Small files", 2, &[0, 1], "files a second of disk time", Measured::rate),
    ("5.6", "PostMark", 3, &[0, 1], "files and transactions a second of disk time", Measured::rate),
    ("5.7", "Compiling", 4, &[0, 1, 2], "seconds of disk time", |found| found.disk_ns as f64 / 1e9),
];

fn charts(report: &mut Report, rows: &[Row]) {
    for (id, title, row, phases, axis, value) in FIGURES {
        let first = rows[*row][0].as_ref().map_or(&[][..], Vec::as_slice);
        let groups = phases.iter().map(|phase| first[*phase].name.clone()).collect();
        let is_logarithmic = LOGARITHMIC.contains(id);
        let id = format!("singh-fig{id}");
        let axis = if is_logarithmic { Axis::log10(*axis, Unit::Count) } else { Axis::linear(*axis, Unit::Count) };
        let mut chart = BarChart::new(id, (*title).to_string(), axis, groups, BarArrangement::Grouped);
        if is_logarithmic {
            chart = chart.marks();
        }
        for (number, (system, measured)) in SYSTEMS.iter().zip(&rows[*row]).enumerate().take(COMPARED) {
            if let Some(measured) = measured {
                let values = phases.iter().map(|phase| value(&measured[*phase])).collect();
                chart = chart.with(system.name, number, values);
            }
        }
        report.figure(chart);
    }
}
