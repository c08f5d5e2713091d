//! Goal: `--seeds` gives the mean and the 95 % interval that the runs with each seed alone give. Method: the built
//! binary runs with several seeds at once, and with each alone; means and intervals are recomputed here.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const WORK: &str = "rw=randrw,bs=4k,size=256m,number_ios=1500";
/// Its write amplification depends on the share of writes to bottom tracks.
const DRIVE: &str = "imr-1t+imr-rmw:host.write_cache_bytes=0";
/// Quantile 0.975 of Student's t distribution for four degrees of freedom (five seeds).
const T_OF_FIVE: f64 = 2.776_445;

fn imbrex(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_imbrex")).args(words).output().expect("the program starts")
}

fn json(words: &[&str]) -> Value {
    let output = imbrex(words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("--json prints JSON")
}

/// Returns mean and half of the 95 % interval of five values.
fn interval(values: &[f64]) -> (f64, f64) {
    assert_eq!(values.len(), 5);
    let mean = values.iter().sum::<f64>() / 5.0;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / 4.0;
    (mean, T_OF_FIVE * variance.sqrt() / 5_f64.sqrt())
}

fn is_near(ours: f64, expected: f64) -> bool {
    (ours - expected).abs() <= 1e-3 * expected.abs()
}

#[test]
fn means_and_intervals_are_those_of_the_single_runs() {
    let all = json(&["simulate", WORK, "--seed", "7", "-d", DRIVE, "--seeds", "5", "--json", "-q"]);
    assert_eq!(all["seeds"], serde_json::json!([7, 8, 9, 10, 11]));
    let alone = |seed: u64| json(&["simulate", WORK, "--seed", &seed.to_string(), "-d", DRIVE, "--json", "-q"]);
    let alone: Vec<Value> = (7..12).map(alone).collect();
    for drive in 0..2 {
        let over = &all["drives"][drive]["over_seeds"];
        for path in [
            "duration_ns",
            "latency_ns.read.mean",
            "latency_ns.write.p99",
            "latency_ratio.all.mean",
            "write_amplification",
            "longest_stall_ns",
        ] {
            let at = format!("/drives/{drive}/{}", path.replace('.', "/"));
            let values: Vec<f64> =
                alone.iter().map(|one| one.pointer(&at).and_then(Value::as_f64).expect("it is there")).collect();
            let (mean, half) = interval(&values);
            let ours = |name: &str| over[path][name].as_f64().unwrap_or_else(|| panic!("{path}/{name} is missing"));
            assert!(is_near(ours("mean"), mean), "{path}: {} for {mean}", ours("mean"));
            assert!(is_near(ours("half_width_95"), half), "{path}: ±{} for ±{half}", ours("half_width_95"));
            let most = values.iter().copied().fold(f64::MIN, f64::max);
            assert!(is_near(ours("max"), most), "{path}: at most {most}");
            assert!(drive == 1 || half > 0.0, "{path} does not depend on the seed: {values:?}");
        }
        assert!(over.get("wall_seconds").is_none(), "it is no figure");
        assert_eq!(
            all["drives"][drive]["latency_ns"], alone[0]["drives"][drive]["latency_ns"],
            "those of the first seed"
        );
    }
}

#[test]
fn table_and_report_show_the_intervals() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out").to_string_lossy().into_owned();
    let output = imbrex(&["simulate", WORK, "-d", DRIVE, "--seeds", "3", "--out", &out, "-q"]);
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && table.contains('±'), "{table}");
    assert!(table.contains("95 % interval of the mean over 3 seeds, 1 to 3"), "{table}");
    let page = std::fs::read_to_string(Path::new(&out).join("report.html")).expect("it is written");
    assert!(page.contains("id=\"seeds\"") && page.contains("3 seeds, 1 to 3"), "the page has the figure and the seeds");
    assert!(page.contains("/over_seeds/latency_ns.read.mean/mean"), "the table names the places of its numbers");
    let summary = std::fs::read(Path::new(&out).join("summary.json")).expect("it is written");
    let summary: Value = serde_json::from_slice(&summary).expect("it is JSON");
    assert_eq!(summary["seeds"], serde_json::json!([1, 2, 3]));
}

#[test]
fn one_seed_is_as_none() {
    let plain = imbrex(&["simulate", WORK, "-d", DRIVE, "-q"]);
    let one = imbrex(&["simulate", WORK, "-d", DRIVE, "--seeds", "1", "-q"]);
    assert_eq!(plain.stdout, one.stdout);
    let (code, zero) = {
        let output = imbrex(&["simulate", WORK, "-d", DRIVE, "--seeds", "0"]);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert!(code == Some(2) && zero.contains("--seeds"), "{zero}");
}

/// A row of a sweep has the means of the simulation, and a trace runs once.
#[test]
fn a_sweep_has_the_means_and_their_intervals() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("t.csv");
    std::fs::write(&trace, "0,r,0,4096\n0.1,w,8192,4096\n0.2,r,4096,4096\n").expect("a file");
    let spec = folder.path().join("s.toml");
    let (trace, out) = (trace.to_string_lossy().into_owned(), folder.path().join("out").to_string_lossy().into_owned());
    let text =
        format!("workloads = [\"{trace}\"]\ndrives = [\"{DRIVE}\"]\n[options]\ncolumns = \"time,op,offset,size\"\n");
    std::fs::write(&spec, text).expect("a file");
    let spec = spec.to_string_lossy().into_owned();
    let traced = json(&["sweep", &spec, "--out", &out, "--seeds", "5", "--json", "-q"]);
    assert_eq!((traced["failed"].as_u64(), traced["run"].as_u64()), (Some(0), Some(1)), "a trace runs once");
    std::fs::write(&spec, format!("workloads = [\"{WORK}\"]\ndrives = [\"{DRIVE}\"]\n")).expect("a file");
    let swept = json(&["sweep", &spec, "--out", &out, "--seeds", "5", "--json", "-q"]);
    assert_eq!((swept["failed"].as_u64(), swept["run"].as_u64()), (Some(0), Some(1)));
    let bytes = std::fs::read(swept["table"].as_str().expect("a path")).expect("it is written");
    let (rows, _) = imbrex::sweep::row::read(bytes).expect("it is a table");
    let over = &json(&["simulate", WORK, "-d", DRIVE, "--seeds", "5", "--no-baseline", "--json", "-q"])["drives"][0]["over_seeds"];
    let of = |workload: &str| rows.iter().find(|row| row.text("workload") == Some(workload)).expect("it has a row");
    let (row, traced) = (of(WORK), of(&trace));
    assert_eq!((row.text("seeds"), traced.text("seeds")), (Some("5"), Some("1")));
    for (column, path) in [("write_amplification", "write_amplification"), ("mean_ns", "latency_ns.all.mean")] {
        let expected = |name: &str| over[path][name].as_f64().expect("a number");
        let mean = row.number(column).expect("a mean");
        assert!((mean - expected("mean")).abs() <= 0.5, "{column}: {mean}");
        let half = row.number(&format!("{column}_half_width_95")).expect("an interval");
        assert!(is_near(half, expected("half_width_95")) && half > 0.0, "{column}: ±{half}");
    }
}

#[test]
fn seeds_beyond_the_largest_are_refused() {
    let largest = u64::MAX.to_string();
    let output = imbrex(&["simulate", WORK, "-d", DRIVE, "--seed", &largest, "--seeds", "2"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there are no seeds after"));
}
