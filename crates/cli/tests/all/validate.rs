//! Goal: `imbrex validate` accepts measurements by fio and by this program, and reports clearly why it cannot accept
//! others. Method: the built binary on records made by it or written here.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const DRIVE: &str = "cmr-7200:host.write_cache_bytes=0";

fn imbrex(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_imbrex"));
    command.args(words).current_dir(folder).stdin(Stdio::null()).output().expect("the program starts")
}

fn json(folder: &Path, words: &[&str]) -> Value {
    let output = imbrex(folder, words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn a_drive_against_its_own_requests_has_no_difference() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let workload = "rw=randrw,bs=4k,number_ios=300,iodepth=1";
    let made = imbrex(folder.path(), &["simulate", workload, "-d", DRIVE, "--per-io", "--out", "own", "-q"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let own = "own/ios.parquet";
    let judged = json(folder.path(), &["validate", own, "-d", DRIVE, "--json"]);
    assert_eq!((&judged["rms_ns"], &judged["requests"]), (&0.into(), &300.into()));
    let output = imbrex(folder.path(), &["validate", own, "-d", DRIVE, "--workload", "rw=read"]);
    assert_eq!(output.status.code(), Some(2), "the requests are known");
}

#[test]
fn a_distribution_is_held_against_as_many_requests_of_its_kind() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = r#"{ "fio version": "fio-3.33", "jobs": [ { "job options": { "rw": "randread", "bs": "4k", "OPTION": "1g" },
        "read": { "clat_ns": { "bins": { "8000000": 40, "12000000": 60 } } }, "write": {} } ] }"#;
    let write = |name: &str, option: &str| {
        std::fs::write(folder.path().join(name), text.replace("OPTION", option)).expect("the folder is there");
    };
    write("fio.json", "size");
    let judged = json(folder.path(), &["validate", "fio.json", "-d", DRIVE, "--json"]);
    assert_eq!((&judged["requests"], &judged["mean_measured_ns"]), (&100.into(), &10_400_000.into()));
    let simulated = judged["mean_simulated_ns"].as_u64().expect("a number");
    // Half a rotation of 8.3 ms, the controller's 0.1, short seeks within a gibibyte of some ten cylinders.
    assert!((4_500_000..6_500_000).contains(&simulated), "{simulated}");
    // fio's output on several jobs at once does not show the requests of each job.
    write("several.json", "numjobs");
    let output = imbrex(folder.path(), &["validate", "several.json", "-d", DRIVE]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--workload"));
    let given = ["validate", "several.json", "-d", DRIVE, "--json", "--workload", "rw=randread,bs=4k,number_ios=50"];
    assert_eq!(json(folder.path(), &given)["requests"], 100);
}

#[test]
fn a_fit_that_serves_the_other_half_worse_brings_a_warning() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let workload = "rw=randrw,bs=16k,size=100g,number_ios=400";
    let caches = ["--write-cache", "off", "--read-ahead", "off"];
    let simulate = ["simulate", workload, "-d", "cmr-7200", "--per-io", "--out", "own", "-q"];
    let made = imbrex(folder.path(), &[&simulate[..], &caches].concat());
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    // The profile of another drive: its seek curve and its rotation differ.
    let profile = "base = \"cmr-5900\"\nname = \"other\"\nsummary = \"another drive\"\n[host]\nwrite_cache_bytes = 0\n\
                   read_ahead_bytes = 0\n";
    std::fs::write(folder.path().join("other.toml"), profile).expect("the folder is there");
    let fitted = json(folder.path(), &["fit", "own/ios.parquet", "--from", "other.toml", "--json"]);
    let rms = |when: &str| fitted["judged_half"][when]["rms_ns"].as_u64().expect("a number");
    let warns = fitted["warnings"].to_string().contains("differ more than before the fit");
    assert!(rms("after") > rms("before") && warns, "{fitted}");
    // From its own profile the drive is fitted without a warning.
    let own = profile.replace("cmr-5900", "cmr-7200");
    std::fs::write(folder.path().join("own.toml"), own).expect("the folder is there");
    let fitted = json(folder.path(), &["fit", "own/ios.parquet", "--from", "own.toml", "--json"]);
    assert!(!fitted["warnings"].to_string().contains("differ more"), "{fitted}");
}
