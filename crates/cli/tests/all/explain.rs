//! Goal: `imbrex explain` and the file of events work as a user types them, and harm no file. Method: the built binary on
//! small runs; its JSON is summed, and files of others are compared before and after.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

const WORKLOAD: &str = "rw=randwrite,bs=64k,size=64MiB,number_ios=1500";
const DRIVE: &str = "emulated-smr-1:region_size=4MiB,cache_size=16MiB";

fn imbrex(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_imbrex")).args(words).stdin(Stdio::null()).output().expect("the program starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn parts_sum_to_latencies_in_json_and_each_way_of_choosing_works() {
    let choices: [&[&str]; 4] = [&[], &["--worst", "3", "--replay"], &["--request", "700"], &["--percentile", "99.9%"]];
    for (choice, count) in choices.into_iter().zip([10, 3, 1, 1]) {
        let words = [&["explain", WORKLOAD, "--drive", DRIVE, "--json", "--check"], choice].concat();
        let output = imbrex(&words);
        assert_eq!(output.status.code(), Some(0), "{choice:?}: {}", said(&output));
        let document: Value = serde_json::from_slice(&output.stdout).expect("--json prints JSON");
        let requests = document["drives"][0]["requests"].as_array().expect("a list").clone();
        assert_eq!(requests.len(), count, "{choice:?}");
        for request in requests {
            let parts = request["parts"].as_array().expect("a list");
            let sum: u64 = parts.iter().map(|part| part["duration_ns"].as_u64().expect("a number")).sum();
            assert_eq!(Some(sum), request["latency_ns"].as_u64(), "{request}");
            assert!(request["baseline_latency_ns"].as_u64().is_some(), "{request}");
            assert_eq!(request["replay"].is_object(), choice.contains(&"--replay"));
        }
    }
}

#[test]
fn wrong_choices_are_refused_with_a_remedy() {
    for (choice, expected) in [
        (["--request", "99999"], "--request 99999"),
        (["--percentile", "101"], "expected a number above 0 and at most 100"),
        (["--worst", "0"], "0 is not in 1..=1000"),
    ] {
        let output = imbrex(&[&["explain", WORKLOAD, "--drive", DRIVE, "--no-baseline"], &choice[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{choice:?}: {}", said(&output));
        assert!(said(&output).contains(expected), "{choice:?}: {}", said(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn simulate_states_the_causes_in_the_report_and_in_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("UTF-8");
    let words = ["simulate", WORKLOAD, "--drive", DRIVE, "--no-baseline", "--explain", "2", "--out", out, "--json"];
    let output = imbrex(&words);
    assert!(output.status.success(), "{}", said(&output));
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("it was written");
    let file: Value = serde_json::from_str(&read("explain.json")).expect("JSON");
    let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(printed["explain"], file);
    let number = file["drives"][0]["requests"][0]["number"].as_u64().expect("a number");
    let report = read("report.html");
    assert!(
        report.contains("The slowest requests") && report.contains(&format!("<summary>request {number},")),
        "{number}"
    );
    // The tree keeps its lines.
    assert!(report.contains("\n  └─ "), "{report}");
    // A run that explains nothing leaves no such file behind.
    assert!(imbrex(&["simulate", WORKLOAD, "--drive", DRIVE, "--no-baseline", "--out", out]).status.success());
    assert!(!folder.path().join("explain.json").exists());
}

#[test]
fn a_file_of_events_replaces_no_file_of_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let simulate = |file: &str| {
        imbrex(&[
            "simulate",
            WORKLOAD,
            "--drive",
            DRIVE,
            "--drive",
            "cmr-7200",
            "--no-baseline",
            "--trace-events",
            file,
        ])
    };
    std::fs::write(path("mine.txt"), "my own notes").expect("written");
    let output = simulate(&path("mine.txt"));
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("mine.txt"), "{}", said(&output));
    assert_eq!(std::fs::read_to_string(path("mine.txt")).expect("it is there"), "my own notes");
    let written = |output: Output| {
        assert!(output.status.success(), "{}", said(&output));
        std::fs::read(path("run.events")).expect("it was written")
    };
    let first = written(simulate(&path("run.events")));
    for name in [DRIVE, "cmr-7200"] {
        let name = format!("imbrex {name}");
        assert!(first.windows(name.len()).any(|window| window == name.as_bytes()), "{name}");
    }
    assert_eq!(written(simulate(&path("run.events"))), first, "the same run gives the same events");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 2, "no temporary file is left");
    // A result file of the same name would replace the events.
    let events = path("out/../out/summary.json");
    let words = ["simulate", WORKLOAD, "--drive", DRIVE, "--out", &path("out"), "--trace-events", &events];
    let output = imbrex(&words);
    assert!(
        output.status.code() == Some(2) && said(&output).contains("the result file summary.json of --out"),
        "{}",
        said(&output)
    );
    assert!(!std::path::Path::new(&path("out")).exists(), "nothing is left");
}

#[test]
fn a_file_system_on_an_image_writes_its_events() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (image, events) = (path("disk.img"), path("fs.events"));
    for words in [&["drive", "create", &image, "--drive", "strict-append", "-q"][..], &["fs", "mkfs", &image, "-q"][..]]
    {
        let output = imbrex(words);
        assert!(output.status.success(), "{words:?}: {}", said(&output));
    }
    let bench =
        ["fs", "bench", "postmark", &image, "--files", "20", "--operations", "40", "-q", "--trace-events", &events];
    let output = imbrex(&bench);
    assert!(output.status.success(), "{}", said(&output));
    let bytes = std::fs::read(&events).expect("it was written");
    let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has("imbrex drive 0: ") && has("actuator") && has("requests"), "{} bytes", bytes.len());
    assert!(bytes.len() > 10_000, "{} bytes", bytes.len());
    // A file that is too small for them says so at its end, and so does the command.
    let bench = ["fs", "bench", "postmark", &image, "--files", "200", "--operations", "400", "--folder", "more"];
    let output = imbrex(&[&bench[..], &["-q", "--trace-events", &events, "--trace-events-size", "64KiB"]].concat());
    assert!(output.status.success() && said(&output).contains("requests are left out of"), "{}", said(&output));
    assert!(std::fs::metadata(&events).expect("it was written").len() <= 64 << 10);
    std::fs::create_dir(path("out")).expect("it is new");
    let events = path("out/summary.json");
    let output = imbrex(&[&bench[..], &["-q", "--out", &path("out"), "--trace-events", &events]].concat());
    assert!(
        output.status.code() == Some(2) && said(&output).contains("the result file summary.json of --out"),
        "{}",
        said(&output)
    );
}

#[test]
fn a_check_that_finds_damage_ends_with_3() {
    // On this disk, the host's own writes destroy sectors.
    let words = ["explain", "rw=randwrite,bs=4k,number_ios=2000", "--drive", "caveat-1g", "-q"];
    let output = imbrex(&words);
    assert!(output.status.success(), "{}", said(&output));
    let checked = imbrex(&[&words[..], &["--check"]].concat());
    assert_eq!(checked.status.code(), Some(3), "{}", said(&checked));
    assert!(said(&checked).contains("live data was lost"), "{}", said(&checked));
}
