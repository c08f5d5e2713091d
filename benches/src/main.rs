//! `make bench` measures drives as sold in steady state, requests a second through the whole simulator, generators,
//! trace reading, memory, images, file systems and served drives. It prints each figure with its target. Options and
//! other commands:
//! - `--record FOLDER` writes the figures into FOLDER, with a description of the machine;
//! - `--only WORD` measures only the rows whose names contain WORD;
//! - `fuse OURS THEIRS` compares two mounted directories ([`fuse`]);
//! - `growth FOLDER` measures processor time and memory by number of requests ([`growth`]).

mod cases;
mod checkpoints;
mod files;
mod fuse;
mod generating;
mod growth;
mod images;
mod machine;
mod memory;
mod reading;
mod serving;
mod simulating;
mod steady;

use std::path::{Path, PathBuf};

use serde::Serialize;

/// One measured figure.
#[derive(Serialize)]
struct Row {
    /// Name of the measurement.
    name: String,
    /// Measured value.
    value: f64,
    /// Unit of the value.
    unit: &'static str,
    /// Target: the smallest value to reach, or for memory and durations the largest.
    target: Option<f64>,
}

/// Figures of one run of the benchmarks.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    machine: machine::Machine,
    rows: Vec<Row>,
}

/// Function that measures the rows whose names contain a word, and reports each.
type Group = fn(&str, &mut dyn FnMut(Row));

fn main() {
    if let [_, word, ours, theirs] = &std::env::args().collect::<Vec<_>>()[..]
        && word == "fuse"
    {
        return beside(ours.as_ref(), theirs.as_ref());
    }
    if let [_, word, folder] = &std::env::args().collect::<Vec<_>>()[..]
        && word == "growth"
    {
        if let Err(error) = growth::measure(folder.as_ref()) {
            eprintln!("imbrex-bench growth {folder}: {error}");
            std::process::exit(1);
        }
        return;
    }
    let (mut record, mut only) = (None, String::new());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match (word.as_str(), words.next()) {
            ("--record", Some(folder)) => record = Some(PathBuf::from(folder)),
            ("--only", Some(part)) => only = part,
            _ => {
                eprintln!(
                    "usage: imbrex-bench [--record FOLDER] [--only WORD], imbrex-bench growth FOLDER, or imbrex-bench fuse \
                     OURS THEIRS"
                );
                std::process::exit(2);
            }
        }
    }
    let mut rows = Vec::new();
    let groups: [Group; 8] = [
        steady::measure,
        simulating::measure,
        generating::measure,
        reading::measure,
        memory::measure,
        images::measure,
        files::measure,
        serving::measure,
    ];
    println!("{:58} {:>12} {:>12}", "", "measured", "target");
    for group in groups {
        group(&only, &mut |row| {
            print(&row);
            rows.push(row);
        });
    }
    if let Some(folder) = record {
        let machine = machine::Machine::read();
        let file = folder.join(format!("{}.json", machine.slug()));
        let document = Document { schema: "imbrex.bench/1", machine, rows };
        let text = serde_json::to_string_pretty(&document).expect("plain numbers serialise");
        if let Err(error) = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&file, text + "\n")) {
            eprintln!("cannot record {}: {error}", file.display());
            std::process::exit(1);
        }
        println!("recorded in {}", file.display());
    }
}

fn print(row: &Row) {
    let target = row.target.map_or_else(String::new, |target| format!("{target:.1}"));
    println!("{:58} {:>12.2} {target:>12} {}", row.name, row.value, row.unit);
}

/// Compares two mounted directories and prints the rows.
fn beside(ours: &Path, theirs: &Path) {
    if let Err(error) = fuse::measure(ours, theirs, &mut |row| print(&row)) {
        eprintln!("imbrex-bench fuse: {error} (it takes root and two directories that may be written)");
        std::process::exit(1);
    }
}
