//! Goal: `imbrex fs bench --seeds` gives the means and 95 % intervals of the runs with each seed alone, and leaves the
//! devices unchanged. Method: the built binary runs with several seeds, and with each seed alone on a copy of the
//! devices; means and intervals are recomputed here, and the files are compared byte by byte.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use imbrex_testkit::patience::until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::bench_page::{assert_page_tells, fresh, run_in};
use super::common::{failure, shell, text, word};

/// Quantile 0.975 of Student's t distribution for two degrees of freedom (three seeds).
const T_OF_THREE: f64 = 4.302_653;
const SMALL: [&str; 6] = ["--files", "60", "--operations", "40", "--threads", "4"];

/// File systems to run on: an array of five drives with a file for metadata; a caveat disk; a drive with another for
/// metadata. Each has the name of a device.
fn systems() -> Vec<(tempfile::TempDir, &'static str)> {
    let caveat = tempfile::tempdir().expect("a temporary folder");
    text(&["drive", "create", word(&caveat.path().join("disk")), "--drive", "caveat-1g"]);
    text(&["fs", "mkfs", word(&caveat.path().join("disk"))]);
    let two = tempfile::tempdir().expect("a temporary folder");
    let [disk, flash] = ["disk", "flash"].map(|name| two.path().join(name));
    text(&["drive", "create", word(&disk), "--drive", "strict-append"]);
    text(&["drive", "create", word(&flash), "--drive", "flash-2010"]);
    text(&["fs", "mkfs", "--store", "log", "--meta", word(&flash), word(&disk)]);
    vec![(fresh(Some("1")), "meta"), (caveat, "disk"), (two, "flash")]
}

fn copy_of(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a temporary folder");
    shell(folder, &format!("cp -r --sparse=always . {}", word(copy.path())));
    copy
}

fn run(folder: &Path, place: &str, words: &[&str]) -> Output {
    let output = run_in(folder, &[&["fs", "bench", "varmail", place, "--quiet"][..], &SMALL, words].concat());
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn document(folder: &Path, place: &str, words: &[&str]) -> Value {
    serde_json::from_slice(&run(folder, place, &[words, &["--json"]].concat()).stdout).expect("JSON")
}

/// Returns size, time of the last change and hash of each file in the folder.
fn state(folder: &Path) -> BTreeMap<String, (u64, i64, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).expect("it can be read").map(|entry| entry.expect("an entry"));
    let state = |entry: std::fs::DirEntry| {
        let (path, metadata) = (entry.path(), entry.metadata().expect("it is there"));
        let mut hash = Sha256::new();
        if metadata.is_file() {
            std::io::copy(&mut std::fs::File::open(&path).expect("it opens"), &mut hash).expect("it is read");
        }
        let nanoseconds = metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec();
        (entry.file_name().into_string().expect("text"), (metadata.len(), nanoseconds, hash.finalize().to_vec()))
    };
    entries.map(state).collect()
}

/// Adds the numbers of `value` to `found`, by path; an element of a list of objects has its index as its name.
fn numbers(path: &str, value: &Value, found: &mut BTreeMap<String, f64>) {
    let mut inner = |name: &str, value| numbers(&format!("{path}.{name}"), value, found);
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| inner(name, value)),
        Value::Number(number) => {
            found.insert(path.into(), number.as_f64().expect("a number"));
        }
        _ => {}
    }
}

/// Returns the figures of a run with one seed, with the rates and shares that the tables have.
fn figures(alone: &Value) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    numbers("elapsed_ns", &alone["elapsed_ns"], &mut found);
    numbers("file_system", &alone["file_system"], &mut found);
    for list in ["phases", "devices"] {
        for (index, value) in alone[list].as_array().expect("a list").iter().enumerate() {
            numbers(&format!("{list}.{index}"), value, &mut found);
        }
    }
    let seconds = |phase: &Value| phase["elapsed_ns"].as_f64().expect("a time") / 1e9;
    for (index, phase) in alone["phases"].as_array().expect("a list").iter().enumerate() {
        for (rate, of) in [("done_per_second", "done"), ("bytes_per_second", "bytes")] {
            found.insert(format!("phases.{index}.{rate}"), phase[of].as_f64().expect("a number") / seconds(phase));
        }
        for (kind, figures) in phase["kinds"].as_object().expect("kinds") {
            let count = figures["count"].as_f64().expect("a count");
            found.insert(format!("phases.{index}.kinds.{kind}.per_second"), count / seconds(phase));
        }
    }
    for (index, device) in alone["devices"].as_array().expect("a list").iter().enumerate() {
        let share = device["busy_ns"].as_f64().expect("a time") / alone["elapsed_ns"].as_f64().expect("a time");
        found.insert(format!("devices.{index}.busy_share"), share);
    }
    found
}

fn assert_near(ours: &Value, expected: f64, path: &str) {
    let ours = ours.as_f64().unwrap_or_else(|| panic!("{path} is missing"));
    assert!((ours - expected).abs() <= 1e-3 * expected.abs() + 1e-9, "{path}: {ours} for {expected}");
}

#[test]
fn figures_are_those_of_single_runs_on_copies_and_the_devices_stay_as_they_are() {
    for (folder, place) in systems() {
        let before = state(folder.path());
        let all = document(folder.path(), place, &["--seed", "7", "--seeds", "3"]);
        assert_eq!(state(folder.path()), before, "the devices were changed");
        let alone = ["7", "8", "9"].map(|seed| document(copy_of(folder.path()).path(), place, &["--seed", seed]));
        assert_eq!(all["seeds"], serde_json::json!([7, 8, 9]));
        let runs = alone.each_ref().map(figures);
        let expected = runs[0].keys().filter(|path| runs.iter().all(|run| run.contains_key(*path)));
        let expected: Vec<&String> = expected.collect();
        let over = all["over_seeds"].as_object().expect("figures");
        let mut paths: Vec<&String> = over.keys().collect();
        paths.sort();
        assert_eq!(paths, expected);
        assert!(paths.len() > 100, "{paths:?}");
        for path in paths {
            let values = runs.each_ref().map(|run| run[path]);
            let mean = values.iter().sum::<f64>() / 3.0;
            let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / 2.0;
            assert_near(&over[path]["mean"], mean, path);
            assert_near(&over[path]["half_width_95"], T_OF_THREE * variance.sqrt() / 3_f64.sqrt(), path);
            assert_near(&over[path]["min"], values.iter().copied().fold(f64::MAX, f64::min), path);
            assert_near(&over[path]["max"], values.iter().copied().fold(f64::MIN, f64::max), path);
        }
        for path in ["elapsed_ns", "phases.1.kinds.fsync.latency_ns.mean", "phases.1.bytes_per_second"] {
            assert!(over[path]["half_width_95"].as_f64() > Some(0.0), "{path} does not depend on the seed");
        }
        let (mut all, mut first) = (all, alone[0].clone());
        for document in [&mut all, &mut first] {
            let members = document.as_object_mut().expect("an object");
            members.retain(|name, _| !["command", "seeds", "over_seeds"].contains(&name.as_str()));
        }
        assert_eq!(all, first, "the other fields are those of the first seed");
    }
}

#[test]
fn table_and_page_show_the_intervals_and_two_runs_write_equal_files() {
    let folder = fresh(Some("1"));
    let files = || {
        let output = run(folder.path(), "meta", &["--seeds", "3", "--out", "out"]);
        let table = String::from_utf8(output.stdout).expect("text");
        let read = |file: &str| std::fs::read_to_string(folder.path().join("out").join(file)).expect("it is written");
        (table, read("summary.json"), read("report.html"))
    };
    let (table, summary, page) = files();
    assert!(table.contains(" ±") && table.contains("95 % interval of the mean over 3 seeds, 1 to 3"), "{table}");
    assert!(table.contains("the file system stayed as it was"), "{table}");
    let summary_read: Value = serde_json::from_str(&summary).expect("JSON");
    assert_page_tells(&summary_read, &page);
    assert!(page.contains("<figure class=\"chart\" id=\"seeds\">") && page.contains("Over the seeds"));
    assert!(page.contains("3 seeds, 1 to 3") && page.contains(" ± "), "the page names the seeds and the intervals");
    assert!(page.contains("data-at=\"/over_seeds/phases.1.kinds.fsync.latency_ns.p99/mean\""));
    assert!(page.contains("data-at=\"/over_seeds/devices.0.busy_ns/mean\""));
    assert!(files() == (table, summary, page), "a second run writes other files");
}

#[test]
fn one_seed_is_as_none() {
    let folder = fresh(None);
    let outputs = [&[][..], &["--seeds", "1"]].map(|words| {
        let copy = copy_of(folder.path());
        let table = String::from_utf8(run(copy.path(), "meta", words).stdout).expect("text");
        let changed = state(copy.path())["meta"] != state(folder.path())["meta"];
        assert!(changed, "one run works on the file system itself");
        let mut document = document(copy_of(folder.path()).path(), "meta", words);
        assert!(document["seeds"].is_null() && document["over_seeds"].is_null() && !table.contains('±'), "{table}");
        document["command"].take();
        (table, document.to_string())
    });
    assert!(outputs[0] == outputs[1], "{outputs:?}");
}

#[test]
fn seeds_that_cannot_be_run_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let place = word(folder.path());
    for (seeds, part) in [("0", "--seeds"), ("2000", "--seeds"), ("3", "with each --seed")] {
        let (code, said) = failure(&["fs", "bench", "varmail", place, "--seeds", seeds]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(part) && said.contains("--seeds"), "{said}");
    }
    assert!(state(folder.path()).is_empty(), "the directory was changed");
    let help = text(&["fs", "bench", "--help"]).split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = "With several seeds, each run starts from the state found, and the file system stays as it was";
    assert!(help.contains(sentence), "{help}");
}

/// Begins a run with several seeds that takes minutes, and returns when it works on the drive.
fn begin(folder: &Path) -> Child {
    let words = ["fs", "bench", "fileserver", "disk", "--seeds", "1000", "--files", "500", "--operations", "100000"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_imbrex"));
    let child = command.args(words).current_dir(folder).stderr(Stdio::piped()).spawn().expect("the program starts");
    let descriptors = format!("/proc/{}/fd", child.id());
    until("the image to be open", || {
        let entries = std::fs::read_dir(&descriptors).ok()?;
        let links = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        // The image itself, and the lock that lasts over all runs.
        (links.filter(|link| link.ends_with("disk")).count() >= 2).then_some(())
    });
    child
}

#[test]
fn a_run_that_is_stopped_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let disk = folder.path().join("disk");
    text(&["drive", "create", word(&disk), "--drive", "caveat-1g"]);
    text(&["fs", "mkfs", word(&disk)]);
    let before = state(folder.path());
    for (signal, code) in [(Signal::INT, Some(1)), (Signal::KILL, None)] {
        let child = begin(folder.path());
        let (refused, said) = failure(&["fs", "age", word(&disk), "--operations", "1"]);
        assert!(refused == Some(1) && said.contains("in use by another process"), "{said}");
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), code, "{said}");
        assert!(code.is_none() || said.contains("with seed 1: "), "{said}");
        assert_eq!(state(folder.path()), before, "something was changed or left behind");
    }
}

/// A run that fails names its seed, and leaves the devices unchanged.
#[test]
fn a_seed_that_fails_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let disk = folder.path().join("disk");
    text(&["drive", "create", word(&disk), "--drive", "caveat-1g:geometry.tracks=64"]);
    text(&["fs", "mkfs", word(&disk)]);
    let before = state(folder.path());
    let (code, said) = failure(&["fs", "bench", "lfs", word(&disk), "--seeds", "2", "--seed", "5"]);
    assert!(code == Some(1) && said.contains("with seed 5: ") && said.contains("a larger drive"), "{said}");
    assert_eq!(state(folder.path()), before);
}
