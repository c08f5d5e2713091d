//! Goal: a sweep with the option `check` shows which points lost live data, as `imbrex simulate --check` does. Method:
//! the built program sweeps drives that lose data and drives that do not; its exit code, messages, JSON and rows.

use std::path::Path;
use std::process::{Command, Output};

use imbrex::sweep::row::{self, Cell, Row};
use serde_json::Value;

/// Random writes, of which a caveat disk loses some.
const WRITES: &str = "rw=randwrite,bs=4k,size=64m,number_ios=400";
/// Columns with the result of the check.
const COLUMNS: [&str; 6] = [
    "integrity",
    "integrity_violation",
    "integrity_rule_breaks",
    "integrity_live_sectors_destroyed",
    "integrity_first",
    "integrity_request",
];

fn imbrex(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_imbrex")).args(words).output().expect("the program starts")
}

/// Result of a sweep: exit code, JSON, messages and rows.
struct Swept {
    code: Option<i32>,
    json: Value,
    said: String,
    rows: Vec<Row>,
}

/// Runs a sweep of `workload` on `drives` with the lines `options`, with its dataset in `folder`.
fn swept(folder: &Path, workload: &str, drives: &[&str], options: &str) -> Swept {
    let spec = folder.join("spec.toml");
    let text = format!("workloads = [\"{workload}\"]\ndrives = {drives:?}\n[options]\n{options}\n");
    std::fs::write(&spec, text).expect("a temporary file");
    let output = imbrex(&["sweep", &spec.to_string_lossy(), "--json"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    let bytes = std::fs::read(json["table"].as_str().expect("a path")).expect("it is written");
    Swept { code: output.status.code(), json, said, rows: row::read(bytes).expect("it is a table").0 }
}

/// Returns the field `integrity` of the drive on which `imbrex simulate` runs `workload` with `words`, and the exit code.
fn alone(workload: &str, drive: &str, words: &[&str]) -> (Value, Option<i32>) {
    let run = ["simulate", workload, "-d", drive, "--no-baseline", "--check", "--json", "-q"];
    let output = imbrex(&[&run[..], words].concat());
    let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    (summary["drives"][0]["integrity"].clone(), output.status.code())
}

#[test]
fn points_that_lost_live_data_have_it_in_their_rows_and_give_exit_code_3() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let drives = ["imr-1t+track-map", "caveat-1g"];
    let done = swept(folder.path(), WRITES, &drives, "check = true");
    let (integrity, code) = alone(WRITES, "caveat-1g", &[]);
    assert_eq!((done.code, code), (Some(3), Some(3)), "{}", done.said);
    assert_eq!((&done.json["damaged"], &done.json["failed"]), (&1.into(), &0.into()));
    assert!(done.said.contains("live data was lost") && done.said.contains("caveat-1g"), "{}", done.said);
    assert!(!done.said.contains("track-map"), "it lost none: {}", done.said);
    let [sound, lost] = &done.rows[..] else { panic!("{} rows", done.rows.len()) };
    assert_eq!(sound.text("integrity"), Some("ok"));
    assert!(COLUMNS[1..].iter().all(|column| sound.get(column) == Some(&Cell::Nothing)), "{sound:?}");
    assert_eq!((lost.text("integrity"), lost.text("error")), (Some("live_sectors_destroyed"), None));
    for name in ["rule_breaks", "live_sectors_destroyed", "request"] {
        assert_eq!(lost.number(&format!("integrity_{name}")), integrity[name].as_f64(), "{name}");
    }
    assert_eq!(lost.text("integrity_first"), integrity["first"].as_str());
    // The rows that exist still have the result.
    let again = swept(folder.path(), WRITES, &drives, "check = true");
    assert_eq!((again.json["run"].as_u64(), again.json["damaged"].as_u64()), (Some(0), Some(1)));
    assert_eq!(again.code, Some(3), "{}", again.said);
}

#[test]
fn without_the_check_the_columns_are_null() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let done = swept(folder.path(), WRITES, &["imr-1t+track-map", "caveat-1g"], "");
    assert_eq!((done.code, done.json["damaged"].as_u64()), (Some(0), Some(0)), "{}", done.said);
    for row in &done.rows {
        assert!(COLUMNS.iter().all(|column| row.get(column) == Some(&Cell::Nothing)), "{row:?}");
    }
}

/// As in `imbrex simulate`, damage decides over points that failed for another reason.
#[test]
fn damage_decides_over_failed_points() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let done = swept(folder.path(), WRITES, &["imr-1t+track-map:interval=never", "caveat-1g"], "check = true");
    assert_eq!((done.json["damaged"].as_u64(), done.json["failed"].as_u64()), (Some(1), Some(1)), "{}", done.said);
    assert_eq!(done.code, Some(3), "{}", done.said);
}

/// With several seeds, lost data of any seed counts: the first seed of the second sweep loses none.
#[test]
fn lost_data_of_any_seed_counts() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let workload = "rw=randwrite,bs=4k,size=64m,number_ios=40";
    for (seed, word, code) in [(1, "ok", 0), (3, "live_sectors_destroyed", 3)] {
        let options = format!("check = true\nseed = {seed}\nseeds = 2");
        let done = swept(folder.path(), workload, &["caveat-1g"], &options);
        let row = &done.rows[0];
        assert_eq!((row.text("seed"), row.text("integrity")), (Some(seed.to_string().as_str()), Some(word)));
        assert_eq!(done.code, Some(code), "{}", done.said);
    }
    assert_eq!(alone(workload, "caveat-1g", &["--seed", "3"]), ("ok".into(), Some(0)));
}

/// Paths are relative to the sweep's file: a trace beside it is found from any directory, and one in the current directory
/// alone is refused. The points are printed as a table.
#[test]
fn paths_are_relative_to_the_file_and_the_points_are_printed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (inside, elsewhere) = (folder.path().join("inside"), folder.path().join("elsewhere"));
    std::fs::create_dir(&inside).expect("a folder");
    std::fs::create_dir(&elsewhere).expect("a folder");
    let trace = "128166372000000000,hm,1,Write,4096,4096,100\n128166372000010000,hm,1,Write,8192,4096,100\n";
    let spec = "workloads = [\"trace.csv\"]\ndrives = [\"cmr-7200\"]\n[options]\nformat = \"msr\"\nqueue = [1, 4]\n";
    std::fs::write(inside.join("spec.toml"), spec).expect("written");
    std::fs::write(elsewhere.join("trace.csv"), trace).expect("written");
    let run = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_imbrex"))
            .args([&["sweep", "../inside/spec.toml", "-q"], words].concat())
            .current_dir(&elsewhere)
            .output()
            .expect("the program starts");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, _, said) = run(&[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("relative to its file") && said.contains("inside/trace.csv"), "{said}");
    std::fs::rename(elsewhere.join("trace.csv"), inside.join("trace.csv")).expect("moved");
    let (code, printed, said) = run(&[]);
    assert_eq!(code, Some(0), "{said}");
    let points = printed.lines().filter(|line| line.contains("cmr-7200")).count();
    assert_eq!(points, 2, "{printed}");
    let (code, csv, _) = run(&["--table", "csv"]);
    assert_eq!((code, csv.lines().count()), (Some(0), 3), "{csv}");
    assert!(csv.starts_with("workload,drive,format,queue,write_mean_ns,"), "{csv}");
}
