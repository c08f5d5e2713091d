//! Goal: the probe supports every kind of target, and its verdict is true. Method: emulated drives as simulation, as
//! image and served in real time, whose true properties are in their profile; files and loop devices of this machine,
//! which are not shingled.

use std::fs;

use serde_json::Value;

use imbrex_testkit::loop_device::LoopDevice;

use super::{said, value, verdict};

use crate::nbd::common::*;

const CHEAP: [&str; 4] = ["--test", "rotation", "--test", "type"];

/// Aghayev 2015 table 1: a set-associative drive with its cache on the platters; one surface of the drive.
const SHINGLED: &str = "emulated-smr-1:geometry.surfaces=1";

fn create(folder: &std::path::Path, drive: &str) -> String {
    let image = folder.join("image").to_str().unwrap().to_string();
    let made = imbrex(&["drive", "create", &image, "--drive", drive]);
    assert!(made.status.success(), "{}", said(&made));
    image
}

#[test]
fn an_image_in_virtual_time_is_the_drive_that_it_is() {
    let folder = tempfile::tempdir().unwrap();
    for (drive, kind) in [(SHINGLED, "shingled"), ("cmr-5900", "conventional")] {
        let image = create(folder.path(), drive);
        let output = imbrex(&[&["probe", &image, "--destroy-data", "--json"], &CHEAP[..]].concat());
        assert!(output.status.success(), "{}", said(&output));
        let found = verdict(&output);
        assert_eq!(value(&found, "type"), Some(&Value::from(kind)), "{drive}: {found:#}");
        assert_eq!(found["is_virtual"], true);
        let checked = imbrex(&["drive", "check", &image]);
        assert!(checked.status.success(), "{}", said(&checked));
        fs::remove_file(&image).unwrap();
    }
}

#[test]
fn an_image_that_is_only_read_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let image = create(folder.path(), SHINGLED);
    let before = fs::read(&image).unwrap();
    let output = imbrex(&["probe", &image, "--json"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(fs::read(&image).unwrap() == before, "the image was changed");
    let found = verdict(&output);
    assert_eq!(value(&found, "type"), None, "{found:#}");
    let left_out = found["left_out"].to_string();
    assert!(left_out.contains("type: it writes, and writing was not allowed"), "{left_out}");
    let text = imbrex(&["probe", &image]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("Only tests that read were run. They cannot tell whether the drive is shingled"), "{text}");
}

#[test]
fn a_simulated_drive_gives_the_same_verdict_and_page_twice() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let words = [&["probe", "sim:emulated-smr-1", "--json", "--report", page.to_str().unwrap()], &CHEAP[..]].concat();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let output = imbrex(&words);
        assert!(output.status.success(), "{}", said(&output));
        seen.push((output.stdout, fs::read(&page).unwrap()));
    }
    assert!(seen[0] == seen[1], "two runs differ");
    let page = String::from_utf8(seen.remove(0).1).unwrap();
    assert!(page.contains("This drive is shingled (SMR).") && page.contains("id=\"head-"), "with the head's path");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left behind");
}

/// Returns the lateness of the server's answers at the 99th percentile, in milliseconds, from its last messages.
fn lateness_ms(said: &str) -> f64 {
    let line = said.lines().find(|line| line.starts_with("answers were late")).expect("it says so");
    let mut words = line.split("p99 ").nth(1).expect("a percentile").split_whitespace();
    let number: f64 = words.next().and_then(|word| word.parse().ok()).expect("a number");
    match words.next().expect("a unit") {
        "ns" => number / 1e6,
        "µs" => number / 1e3,
        "ms" => number,
        "s" => number * 1e3,
        unit => panic!("unit {unit}"),
    }
}

/// Lateness above which the machine counts as busy.
const LATE_MS: f64 = 0.3;

#[test]
fn a_served_drive_in_real_time_is_known_for_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--drive", SHINGLED, "--time", "real"]);
    let output =
        imbrex(&[&["probe", &server.uri(), "--destroy-data", "--json", "--budget", "2m"], &CHEAP[..]].concat());
    let late_ms = lateness_ms(&server.stop());
    assert!(output.status.success(), "{}", said(&output));
    let found = verdict(&output);
    assert_eq!(found["is_virtual"], false);
    let kind = value(&found, "type").unwrap_or_else(|| panic!("{found:#}"));
    assert!(kind != "conventional", "{late_ms} ms late: {found:#}");
    if kind != "shingled" {
        // On a host that cannot keep the drive's time the drive looks different; an open verdict is right then, and
        // only then. The client may be as late as the server, which does not notice that.
        assert!(late_ms > LATE_MS, "{late_ms} ms late: {found:#}");
        eprintln!("skipped: the verdict on a served drive in real time (answers were {late_ms} ms late)");
    }
}

/// A server cannot report that a drive is host-managed; the drive takes writes in any order, and they destroy sectors
/// behind them.
#[test]
fn a_served_host_managed_drive_is_not_called_conventional() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--drive", "strict-append", "--time", "real"]);
    let output =
        imbrex(&[&["probe", &server.uri(), "--destroy-data", "--json", "--budget", "2m"], &CHEAP[..]].concat());
    let late_ms = lateness_ms(&server.stop());
    assert!(output.status.success(), "{}", said(&output));
    let found = verdict(&output);
    let kind = value(&found, "type").unwrap_or_else(|| panic!("{found:#}"));
    assert_eq!(kind, &Value::Null, "{late_ms} ms late: {found:#}");
}

#[test]
fn a_read_only_export_is_probed_by_reading() {
    let folder = tempfile::tempdir().unwrap();
    let image = create(folder.path(), SHINGLED);
    let server = Server::start(folder.path(), &[&image, "--read-only", "--time", "none"]);
    let output = imbrex(&["probe", &server.uri(), "--destroy-data"]);
    assert!(!output.status.success() && said(&output).contains("the server refuses writes"), "{}", said(&output));
    let output = imbrex(&["probe", &server.uri(), "--test", "rotation", "--json"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(verdict(&output)["ended"], Value::Null);
}

/// Returns whether io_uring and direct access are available for `path`; if not, prints which test is skipped.
fn direct(path: &str) -> bool {
    let output = imbrex(&["probe", path, "--test", "rotation"]);
    if output.status.success() {
        return true;
    }
    let said = said(&output);
    assert!(said.contains("io_uring") || said.contains("O_DIRECT"), "{said}");
    eprintln!("skipped: a file by direct access ({})", said.trim());
    false
}

/// Asserts that `target` is not called shingled. No machine for these tests has a drive that hides overlapping tracks;
/// on one that has, the test has found something.
fn assert_not_shingled(target: &str) {
    let words = ["probe", target, "--destroy-data", "--json", "--budget", "1m", "--test", "rotation", "--test", "type"];
    let output = imbrex(&words);
    assert!(output.status.success(), "{}", said(&output));
    let found = verdict(&output);
    assert!(value(&found, "type") != Some(&Value::from("shingled")), "{found:#}");
}

#[test]
fn a_file_of_this_machine_is_never_called_shingled() {
    // Beside the program, since folders for temporary files may lie in memory.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("disk").to_str().unwrap().to_string();
    fs::File::create(&path).unwrap().set_len(1 << 30).unwrap();
    if direct(&path) {
        assert_not_shingled(&path);
    }
}

#[test]
fn a_loop_device_is_never_called_shingled_and_keeps_its_settings() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("disk").to_str().unwrap().to_string();
    fs::File::create(&path).unwrap().set_len(1 << 30).unwrap();
    let Some(device) = LoopDevice::over(&path) else { return };
    let name = device.0.trim_start_matches("/dev/");
    let read_ahead = || fs::read_to_string(format!("/sys/block/{name}/queue/read_ahead_kb")).unwrap();
    let before = read_ahead();
    if !direct(&device.0) {
        return;
    }
    assert_not_shingled(&device.0);
    assert_eq!(read_ahead(), before, "the read-ahead of the kernel is put back");
}
