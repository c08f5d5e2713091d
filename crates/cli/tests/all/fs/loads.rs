//! Goal: the output of ageing and of the search for capacity is true. Method: small loads, on devices and in
//! directories; the output is compared with the file system, and with the output of a second run.

use std::fs;

use serde_json::Value;

use super::common::{Bench, failure, json, text, word};

/// Returns a number of a document.
fn number(document: &Value, key: &str) -> u64 {
    document[key].as_u64().unwrap_or_else(|| panic!("{key} of {document}"))
}

const SMALL: [&str; 6] = ["--fill", "8MiB", "--operations", "400", "--seed", "5"];

#[test]
fn devices_are_aged_at_the_speed_of_the_drive() {
    let mut documents = Vec::new();
    for drive in ["caveat-1g", "caveat-1g", "strict-append"] {
        let bench = Bench::blank(drive);
        let image = word(&bench.image);
        text(&["fs", "mkfs", image]);
        let aged = json(&[&["fs", "age", image, "--json"][..], &SMALL[..]].concat());
        assert_eq!((number(&aged, "operations"), aged["full_at"].is_null()), (400, true), "{aged}");
        assert_eq!(number(&aged, "creates") + number(&aged, "deletes"), 400);
        let live = number(&aged, "bytes_created") - number(&aged, "bytes_deleted");
        assert_eq!(number(&aged["file_system"], "live_blocks") * 4096, live, "{aged}");
        assert!(number(&aged, "elapsed_ns") > 100_000_000, "400 operations take a drive some time: {aged}");
        let checked = json(&["fs", "check", image, "--json"]);
        assert_eq!((number(&checked, "bytes"), checked["is_whole"].as_bool()), (live, Some(true)), "{checked}");
        documents.push((number(&aged, "elapsed_ns"), aged["file_system"]["since_mounted"].clone()));
    }
    assert_eq!(documents[0], documents[1], "the same seed does the same, in the same time");
    assert_ne!(documents[0], documents[2]);
}

#[test]
fn a_directory_is_aged_by_the_wall_clock_and_nothing_else_is_touched() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("mine"), b"mine").expect("written");
    let aged = json(&[&["fs", "age", word(folder.path()), "--json"][..], &SMALL[..]].concat());
    assert_eq!((aged["clock"].as_str(), number(&aged, "operations")), (Some("wall"), 400));
    let mut live = 0;
    for directory in fs::read_dir(folder.path().join("aged")).expect("it is made").flatten() {
        let files = fs::read_dir(directory.path()).expect("it can be read").flatten();
        live += files.map(|file| file.metadata().expect("a file").len()).sum::<u64>();
    }
    assert_eq!(live, number(&aged, "bytes_created") - number(&aged, "bytes_deleted"));
    assert_eq!(fs::read(folder.path().join("mine")).expect("it is there"), b"mine");
    let (code, said) = failure(&["fs", "age", word(folder.path()), "--operations", "1"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("aged") && said.contains("--folder"), "{said}");
}

#[test]
fn the_order_of_deletes_decides_which_files_stay() {
    let mut left = Vec::new();
    for order in ["weighted", "oldest"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let words = ["fs", "age", word(folder.path()), "--deletes", order, "--json"];
        let aged = json(&[&words[..], &SMALL[..]].concat());
        assert_eq!(aged["order_of_deletes"], order);
        let files = fs::read_dir(folder.path().join("aged/0000")).expect("one directory").flatten();
        let numbers = files.map(|file| file.file_name().to_string_lossy().parse::<u64>().expect("a number"));
        let mut numbers: Vec<u64> = numbers.collect();
        numbers.sort_unstable();
        assert_eq!(numbers.len() as u64, number(&aged, "creates") - number(&aged, "deletes"), "{aged}");
        left.push((numbers, number(&aged, "creates")));
    }
    let (oldest, creates) = left.remove(1);
    assert!(oldest[0] > 0 && oldest.iter().copied().eq(oldest[0]..creates), "the newest files stay: {oldest:?}");
    let (weighted, creates) = left.remove(0);
    assert!(!weighted.iter().copied().eq(weighted[0]..creates), "files between others are deleted: {weighted:?}");
}

#[test]
fn a_benchmark_does_the_same_on_devices_and_in_a_directory() {
    let bench = Bench::blank("caveat-1g");
    let image = word(&bench.image);
    text(&["fs", "mkfs", image]);
    let small = ["--files", "60", "--operations", "40", "--threads", "4", "--seed", "3", "--json"];
    let on = |place: &str| json(&[&["fs", "bench", "varmail", place][..], &small[..]].concat());
    let (virtual_time, wall) = (on(image), on(word(bench.folder())));
    assert_eq!((virtual_time["clock"].as_str(), wall["clock"].as_str()), (Some("virtual"), Some("wall")));
    for (phase, other) in
        virtual_time["phases"].as_array().expect("phases").iter().zip(wall["phases"].as_array().expect("phases"))
    {
        assert_eq!(
            (&phase["name"], &phase["operations"], &phase["bytes"]),
            (&other["name"], &other["operations"], &other["bytes"])
        );
        assert!(number(phase, "elapsed_ns") > 100_000, "a drive takes some time: {phase}");
    }
    assert_eq!(virtual_time["phases"][1]["kinds"]["fsync"]["count"], 80);
    let (code, said) = failure(&["fs", "bench", "varmail", image]);
    assert!(code == Some(1) && said.contains("--folder"), "{said}");
    assert_eq!(json(&["fs", "check", image, "--json"])["is_whole"], true);
    let listed = text(&["fs", "bench"]);
    assert_eq!(listed.lines().filter(|line| !line.starts_with(' ')).count(), 7, "{listed}");
}

#[test]
fn the_default_size_leaves_a_caveat_disk_the_room_that_ageing_needs() {
    // Enough operations to fill the size and to delete half as many files again.
    for (drive, share) in [("caveat-1g:geometry.tracks=64", 0.4), ("strict-append", 0.75)] {
        let bench = Bench::blank(drive);
        let image = word(&bench.image);
        text(&["fs", "mkfs", image]);
        let free = number(&json(&["fs", "stat", image, "--json"]), "free_blocks") * 4096;
        let operations = if drive == "strict-append" { "100" } else { "8000" };
        let aged = json(&["fs", "age", image, "--operations", operations, "--json"]);
        let found = number(&aged, "fill_bytes") as f64 / free as f64;
        assert!((found - share).abs() < 0.01, "{drive}: {found} of the free space");
        assert!(aged["full_at"].is_null() && (share > 0.5 || aged["filled_after"].is_u64()), "{aged}");
    }
}

#[test]
fn a_drive_that_is_full_is_told() {
    let bench = Bench::blank("caveat-1g:geometry.tracks=64");
    let image = word(&bench.image);
    text(&["fs", "mkfs", image]);
    let words = ["fs", "age", image, "--fill", "100MiB", "--operations", "100000"];
    let (code, said) = failure(&words);
    assert_eq!(code, Some(1));
    assert!(said.contains("no room for operation") && said.contains("--fill"), "{said}");
    assert_eq!(json(&["fs", "check", image, "--json"])["is_whole"], true);
}

#[test]
fn the_over_allocation_that_is_told_is_enough_and_a_step_less_is_not() {
    let small = ["fs", "capacity", "--size", "12MiB", "--operations", "1500", "--did", "16", "--fit", "best", "--json"];
    let document = json(&[&small[..], &["--step", "2.5"]].concat());
    let found = &document["searches"][0];
    let percent = found["over_allocation_percent"].as_f64().expect("a percentage");
    assert!(found["is_found"] == true && percent > 0.0 && percent % 2.5 == 0.0, "{document}");
    assert_eq!(number(found, "blocks"), 3072 + (3072.0 * percent / 100.0) as u64);
    let less = (percent - 2.5).to_string();
    let document = json(&[&small[..], &["--step", "2.5", "--most", &less]].concat());
    assert_eq!(document["searches"][0]["is_found"], false, "{document}");
    assert!(document["searches"][0]["full_at"].is_u64(), "{document}");
    let printed = text(&["fs", "capacity", "--size", "4MiB", "--operations", "300", "--fit", "next,worst"]);
    assert_eq!(printed.lines().count(), 5, "a head, two algorithms at two distances: {printed}");
}

#[test]
fn mistakes_are_told() {
    for (words, part) in [
        (&["fs", "capacity", "--fit", "nearest"][..], "best, worst, first, next, last-accessed"),
        (&["fs", "capacity", "--step", "0"], "--step"),
        (&["fs", "capacity", "--step", "much"], "percentage"),
        (&["fs", "capacity", "--step", "50", "--most", "10"], "more than --most 10"),
        (&["fs", "bench", "lfs", "/tmp", "--file-size", "4096"], "units of 8192 bytes"),
        (&["fs", "capacity", "--deletes", "newest"], "weighted, random, oldest, directory, or runs=FILES"),
        (&["fs", "age", "/tmp", "--deletes", "runs=0"], "at least one file"),
        (&["fs", "age", "/tmp", "--fill", "1"], "--fill"),
        (&["fs", "bench", "lsf", "/tmp"], "lfs, smallfiles, postmark"),
        (&["fs", "bench", "lfs"], "no place"),
        (&["fs", "bench", "lfs", "/tmp", "--threads", "2"], "--file-size"),
        (&["fs", "bench", "varmail", "/tmp", "--threads", "0"], "--threads"),
        (&["fs", "bench", "varmail", "disk.img", "--served", "127.0.0.1:1"], "--served"),
    ] {
        let (code, said) = failure(words);
        assert_eq!(code, Some(2), "{words:?}: {said}");
        assert!(said.contains(part), "{words:?}: {said}");
    }
}

#[test]
fn the_page_names_every_option() {
    let page = include_str!("../../../../../docs/fs/bench.md");
    for command in ["age", "capacity", "bench"] {
        let help = text(&["fs", command, "--help"]);
        let options = help.split_whitespace().filter(|word| word.starts_with("--"));
        for option in options.map(|word| word.trim_end_matches([',', '.', ')', ';', ':', ']', '`'])) {
            let is_common = ["--help", "--quiet"].contains(&option);
            assert!(is_common || page.contains(option), "docs/fs/bench.md does not name {option} of {command}");
        }
    }
}
