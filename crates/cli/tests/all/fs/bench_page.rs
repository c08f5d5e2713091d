//! Goal: the files of `imbrex fs bench --out` hold the measurements, for every benchmark on drives and arrays, and
//! equal runs give equal files. Method: small loads; sums over rows, causes and kinds are compared with each other and
//! with the counters of the file system; every number of the page is compared with summary.json; two runs are compared
//! byte by byte.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use super::common::{failure, text, word};

/// Each benchmark with sizes for a test.
const LOADS: [(&str, &[&str]); 7] = [
    ("lfs", &["--file-size", "4MiB"]),
    ("smallfiles", &["--files", "60", "--file-size", "20000"]),
    ("postmark", &["--files", "60", "--operations", "80"]),
    ("compile", &["--files", "80", "--operations", "10"]),
    ("createfiles", &["--files", "120", "--threads", "4"]),
    ("varmail", &["--files", "60", "--operations", "40", "--threads", "4"]),
    ("fileserver", &["--files", "60", "--operations", "60", "--threads", "4"]),
];

/// The file system's drives: one, or several with this parity.
const SYSTEMS: [Option<&str>; 3] = [None, Some("1"), Some("2")];

pub(super) fn run_in(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_imbrex")).args(words).current_dir(folder).output().unwrap()
}

/// Makes a file system of store log in a new folder: on one drive, or on five with the given parity.
pub(super) fn fresh(parity: Option<&str>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let names: &[&str] = if parity.is_some() { &["a", "b", "c", "d", "e"] } else { &["a"] };
    for name in names {
        text(&["drive", "create", word(&folder.path().join(name)), "--drive", "strict-append"]);
    }
    let uuid = "67e55044-10b1-426f-9247-bb680e5fe0c8";
    let mut words = vec!["fs", "mkfs", "--store", "log", "--uuid", uuid, "--meta", "meta", "--meta-size", "64MiB"];
    parity.into_iter().for_each(|parity| words.extend(["--parity", parity]));
    words.extend(names);
    let made = run_in(folder.path(), &words);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    folder
}

/// Runs a benchmark with `--out` and returns summary.json and report.html.
fn bench(folder: &Path, name: &str, sizes: &[&str], into: &str) -> (Value, String) {
    let words = [&["fs", "bench", name, "meta", "--folder", name, "--out", into, "--quiet"][..], sizes].concat();
    // The drives lie in the same folder as the metadata.
    let output = run_in(folder, &words);
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    let read = |file: &str| std::fs::read_to_string(folder.join(into).join(file)).unwrap();
    (serde_json::from_str(&read("summary.json")).unwrap(), read("report.html"))
}

fn number(value: &Value, at: &str) -> u64 {
    value.pointer(at).and_then(Value::as_u64).unwrap_or_else(|| panic!("{at} of {value}"))
}

/// Returns the sum of a column of the timeline.
fn column(summary: &Value, name: &str) -> u64 {
    let columns = summary["timeline"]["columns"].as_array().unwrap();
    let index = columns.iter().position(|column| column == name).unwrap_or_else(|| panic!("{name} in {columns:?}"));
    summary["timeline"]["rows"].as_array().unwrap().iter().map(|row| row[index].as_u64().unwrap()).sum()
}

/// Returns the sum of a figure over all devices for one cause.
fn spent(summary: &Value, cause: &str, figure: &str) -> u64 {
    let at = format!("/by_cause/{cause}/{figure}");
    summary["devices"].as_array().unwrap().iter().map(|device| number(device, &at)).sum()
}

fn assert_adds_up(summary: &Value, parity: Option<&str>) {
    let phases = summary["phases"].as_array().unwrap();
    for (kind, _) in phases.iter().flat_map(|phase| phase["kinds"].as_object().unwrap()) {
        let count = |phase: &Value| phase["kinds"][kind]["count"].as_u64().unwrap_or(0);
        if kind != "syncfs" {
            assert_eq!(column(summary, &format!("{kind}_count")), phases.iter().map(count).sum::<u64>(), "{kind}");
        }
    }
    let elapsed_ns = number(summary, "/elapsed_ns");
    for device in summary["devices"].as_array().unwrap() {
        let causes = device["by_cause"].as_object().unwrap().values();
        let busy_ns: u64 = causes.map(|cause| number(cause, "/busy_ns")).sum();
        assert_eq!(busy_ns, number(device, "/busy_ns"));
        assert!(busy_ns <= elapsed_ns, "{device} is busy for longer than {elapsed_ns}");
    }
    for cause in ["data", "parity", "metadata", "hot", "cleaning", "repair"] {
        for (figure, name) in [("busy_ns", "busy_ns"), ("written_bytes", "device_written_bytes")] {
            let rows = column(summary, &format!("{cause}_{name}"));
            assert_eq!(rows, spent(summary, cause, figure), "{cause} {figure}");
        }
    }
    assert!(spent(summary, "data", "written_bytes") > 0 && spent(summary, "metadata", "written_bytes") > 0);
    let parity_bytes = spent(summary, "parity", "written_bytes");
    let blocks = number(summary, "/file_system/array/parity_blocks");
    assert_eq!((parity_bytes, parity_bytes > 0), (blocks * 4096, parity.is_some()), "parity");
    assert_eq!(summary["parity"].to_string(), parity.unwrap_or("0"));
}

pub(super) fn assert_page_tells(summary: &Value, page: &str) {
    let cells: Vec<&str> = page.split("data-at=\"").skip(1).collect();
    assert!(cells.len() > 20, "{} cells", cells.len());
    for cell in cells {
        let (at, rest) = cell.split_once('"').unwrap();
        let value = rest.split("data-value=\"").nth(1).and_then(|rest| rest.split('"').next());
        let stored = summary.pointer(at).unwrap_or_else(|| panic!("{at} is missing"));
        if stored.is_f64() {
            // Means over seeds. The parser of JSON may round the last digit.
            let (stored, value) = (stored.as_f64().unwrap(), value.and_then(|value| value.parse::<f64>().ok()));
            assert!(value.is_some_and(|value| (value - stored).abs() <= 1e-12 * stored.abs()), "{at}: {value:?}");
            continue;
        }
        assert_eq!(Some(stored.to_string().as_str()), value, "{at}");
    }
    for id in ["rate", "latency", "busy", "totals", "traffic", "fill"] {
        assert!(page.contains(&format!("<figure class=\"chart\" id=\"{id}\">")), "{id} is drawn");
    }
    let without_names = page.replace("http://www.w3.org/2000/svg", "");
    for word in ["http://", "https://", "src=", "@import", "<link", "<img"] {
        assert!(!without_names.contains(word), "{word}");
    }
}

#[test]
fn every_benchmark_is_told_on_a_drive_and_on_arrays() {
    for parity in SYSTEMS {
        for (name, sizes) in LOADS {
            let folder = fresh(parity);
            let (summary, page) = bench(folder.path(), name, sizes, "out");
            assert_eq!(summary["schema"], "imbrex.fs-bench/1");
            assert_adds_up(&summary, parity);
            assert_page_tells(&summary, &page);
        }
    }
}

#[test]
fn two_runs_give_the_same_bytes_and_another_seed_does_not() {
    let of = |seed: &str| {
        let folder = fresh(Some("1"));
        let sizes = [LOADS[5].1, &["--seed", seed][..]].concat();
        bench(folder.path(), "varmail", &sizes, "out");
        ["summary.json", "report.html"].map(|file| std::fs::read(folder.path().join("out").join(file)).unwrap())
    };
    let first = of("7");
    assert!(first == of("7"), "summary.json or report.html differ");
    assert!(first[0] != of("8")[0]);
}

#[test]
fn files_are_replaced_and_what_stands_in_the_way_is_told_before_the_run() {
    let folder = fresh(None);
    let (one, _) = bench(folder.path(), "lfs", LOADS[0].1, "out");
    let (other, page) = bench(folder.path(), "createfiles", LOADS[4].1, "out");
    assert_eq!((one["benchmark"].as_str(), other["benchmark"].as_str()), (Some("lfs"), Some("createfiles")));
    assert!(page.contains("<h1>createfiles</h1>"));
    let names: Vec<_> = std::fs::read_dir(folder.path().join("out")).unwrap().map(|entry| entry.unwrap()).collect();
    assert_eq!(names.len(), 2, "nothing unfinished is left: {names:?}");
    let (taken, meta) = (folder.path().join("taken"), folder.path().join("meta"));
    std::fs::write(&taken, "x").unwrap();
    let (code, said) = failure(&["fs", "bench", "lfs", word(&meta), "--folder", "new", "--out", word(&taken)]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("taken") && said.contains("give --out another name"), "{said}");
    let (_, _) = bench(folder.path(), "varmail", LOADS[5].1, "out2");
}

#[test]
fn a_directory_is_told_by_the_wall_clock_without_devices() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("meta")).unwrap();
    let (summary, page) = bench(folder.path(), "varmail", LOADS[5].1, "out");
    assert_eq!((summary["clock"].as_str(), summary["devices"].is_null()), (Some("wall"), true));
    assert_eq!(column(&summary, "fsync_count"), number(&summary, "/phases/1/kinds/fsync/count"));
    assert!(page.contains("by the wall clock") && page.contains("id=\"rate\"") && !page.contains("id=\"busy\""));
}
