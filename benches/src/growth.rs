//! `imbrex-bench growth FOLDER` measures processor time and memory by number of requests: up to a hundred million
//! random writes of 4 KiB on drives as sold. It prints a table and writes charts into FOLDER.

use std::io;
use std::path::Path;

use imbrex::chart::{Axis, Chart, Series, Shape, Style, Unit};
use imbrex_sim::{Engine, Unobserved};

use crate::cases::open;
use crate::checkpoints::{Checkpoint, CheckpointedSource};
use crate::steady::set_up;

/// Drives: (name, number of requests in millions). Each run takes minutes.
const DRIVES: [(&str, u64); 6] = [
    ("cmr-7200", 100),
    ("seagate-st5000as0011-as-sold", 30),
    ("seagate-st8000as0022", 30),
    ("imr-1t+track-map", 100),
    ("cassuto-307g+log-structured", 100),
    ("cassuto-307g+s-blocks", 10),
];

/// Numbers of requests of the columns, in millions.
const MARKS: [u64; 5] = [1, 3, 10, 30, 100];

/// Point of a curve: (million requests, processor seconds, megabytes).
type Point = (u64, f64, f64);

/// Measures all drives, prints the table and writes the charts.
pub(crate) fn measure(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    println!("| drive | {} |", MARKS.map(|mark| format!("{mark} million")).join(" | "));
    println!("|---|{}", "---|".repeat(MARKS.len()));
    let (mut seconds, mut memory) = (Vec::new(), Vec::new());
    for (drive, most) in DRIVES {
        let growth = growth(drive, most);
        let cells: Vec<String> = MARKS
            .iter()
            .map(|mark| growth.iter().find(|(requests, ..)| requests == mark))
            .map(|cell| cell.map_or("–".into(), |(_, seconds, bytes)| format!("{seconds:.1} s, {bytes:.0} MB")))
            .collect();
        println!("| `{drive}` | {} |", cells.join(" | "));
        let points = |figure: fn(&Point) -> f64| {
            growth.iter().map(|one| (one.0 as f64 * 1e6, figure(one))).collect::<Vec<(f64, f64)>>()
        };
        let look = seconds.len();
        seconds.push(Series::new(drive, Shape::Line, look, points(|one| one.1 * 1e9)));
        memory.push(Series::new(drive, Shape::Line, look, points(|one| one.2 * 1e6)));
    }
    let requests = || Axis::log10("requests", Unit::Count);
    let charts = [
        ("growth-seconds", "Processor time by requests", Axis::log10("processor time", Unit::Nanoseconds), seconds),
        ("growth-memory", "Memory by requests", Axis::log10("memory", Unit::Bytes), memory),
    ];
    for (name, title, y, series) in charts {
        let chart = series.into_iter().fold(Chart::new(name, title, requests(), y), Chart::with);
        let chart = chart.described("Random writes of 4 KiB on drives as sold, 16 outstanding.");
        std::fs::write(folder.join(format!("{name}.svg")), chart.svg(Style::Standalone))?;
    }
    Ok(())
}

/// Returns the points of one drive.
fn growth(drive: &str, most: u64) -> Vec<Point> {
    let (drive, options) = set_up(drive, true, 0);
    let marks: Vec<u64> = [0].into_iter().chain(MARKS.into_iter().filter(|&mark| mark <= most)).collect();
    // The source records a checkpoint when it is asked for the next request, so the last checkpoint needs one request
    // more.
    let words = format!("rw=randwrite,bs=4k,number_ios={},seed=1", most * 1_000_000 + 1);
    let source = open(&words, drive.capacity_bytes() / 512);
    let mut source = CheckpointedSource::new(source, &marks.iter().map(|mark| mark * 1_000_000).collect::<Vec<_>>());
    Engine::new(drive, options, &mut source, &mut Unobserved).run().expect("generators do not fail");
    let [begun, checkpoints @ ..] = &source.checkpoints[..] else { panic!("the first request was asked for") };
    let point = |checkpoint: &Checkpoint| {
        let bytes = checkpoint.resident_bytes.saturating_sub(begun.resident_bytes) as f64 / 1e6;
        (checkpoint.requests / 1_000_000, checkpoint.at.seconds_since(&begun.at), bytes)
    };
    checkpoints.iter().map(point).collect()
}
