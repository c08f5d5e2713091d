//! `make bench`: drives as sold, in steady state; requests a second through the whole simulator, drive by drive; generators; trace
//! reading in MB/s; with the targets beside. `--record FOLDER` keeps the figures there with the machine they came from. `--only WORD`
//! runs the rows whose name holds the word. `fuse OURS THEIRS` measures two mounted directories beside each other ([`fuse`]), `growth FOLDER`
//! seconds and memory by requests ([`growth`]).

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
    /// What was measured.
    name: String,
    /// The figure.
    value: f64,
    /// Its unit.
    unit: &'static str,
    /// What it should be at least (at most, for memory).
    target: Option<f64>,
}

/// Everything of one run.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    machine: machine::Machine,
    rows: Vec<Row>,
}

/// Measures the rows whose name holds a word, and reports each.
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

/// Two mounted directories beside each other.
fn beside(ours: &Path, theirs: &Path) {
    if let Err(error) = fuse::measure(ours, theirs, &mut |row| print(&row)) {
        eprintln!("imbrex-bench fuse: {error} (it takes root and two directories that may be written)");
        std::process::exit(1);
    }
}
