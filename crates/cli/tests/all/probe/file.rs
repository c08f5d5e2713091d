//! Goal: a probe by a file writes nothing else, is gone at each end, and is refused where it would tell nothing. Method: the
//! built program, on the file system of this machine where that lies on a drive, and on folders where it does not.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::said;

fn program(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_imbrex"));
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn imbrex(words: &[&str]) -> Output {
    program(words).output().expect("the program starts")
}

/// Returns the names, sizes and times of change of the files in `folder`.
fn files(folder: &Path) -> BTreeMap<String, (u64, i64)> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let facts = entries.map(|entry| (entry.file_name(), entry.metadata().expect("facts")));
    facts.map(|(name, facts)| (name.to_string_lossy().into_owned(), (facts.len(), facts.mtime_nsec()))).collect()
}

/// Returns a folder on a file system that lies on a drive; `None`, with a message, if this machine has none.
fn on_a_drive() -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let path = folder.path().to_string_lossy().into_owned();
    // No test fits this budget: only the file is made.
    let output = imbrex(&["probe", "--file", &path, "--size", "64MiB", "--budget", "1ns", "--json"]);
    if output.status.success() {
        return Some(folder);
    }
    eprintln!("skipped: a file system on a drive ({})", said(&output).lines().last().unwrap_or_default());
    None
}

#[test]
fn the_file_is_gone_at_each_end_and_nothing_else_changes() {
    let Some(folder) = on_a_drive() else { return };
    let path = folder.path().to_string_lossy().into_owned();
    std::fs::write(folder.path().join("mine"), vec![7; 300_000]).expect("a file");
    let before = files(folder.path());
    let words = ["probe", "--file", &path, "--size", "64MiB", "--budget", "20s", "--json"];
    // While the file is written or the drive drains, and while the tests run.
    for (signal, seconds) in [("-INT", 1), ("-TERM", 1), ("-KILL", 1), ("-TERM", 9)] {
        let mut child = program(&words).spawn().expect("the program starts");
        std::thread::sleep(Duration::from_secs(seconds));
        let killed = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
        let status = child.wait().expect("it ends");
        if signal != "-KILL" && killed.success() {
            assert!(status.code().is_some(), "{signal} after {seconds} s: it ends by itself");
        }
        assert_eq!(files(folder.path()), before, "{signal} after {seconds} s");
    }
    let output = imbrex(&words);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(document["size_bytes"], 64 << 20);
    let facts = document["facts"].to_string();
    assert!(facts.contains("places of the file") && facts.contains("/dev/"), "{facts}");
    assert_eq!(files(folder.path()), before);
    assert_eq!(std::fs::read(folder.path().join("mine")).expect("it is there"), vec![7; 300_000]);
}

#[test]
fn places_that_tell_nothing_are_refused_with_the_reason() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("mine");
    std::fs::write(&file, "mine").expect("a file");
    let file = file.to_string_lossy().into_owned();
    let mut cases = vec![
        (file.as_str(), "exists; name a file that does not, or a folder"),
        ("/nowhere/at/all", "its folder: No such file"),
        ("/proc", "none of ext4, XFS and NTFS3"),
    ];
    if Path::new("/dev/shm").is_dir() {
        cases.push(("/dev/shm", "it is in memory (tmpfs)"));
    }
    for (path, says) in cases {
        let output = imbrex(&["probe", "--file", path, "--size", "64MiB"]);
        assert_eq!(output.status.code(), Some(1), "{path}: {}", said(&output));
        assert!(said(&output).contains(says), "{path}: {}", said(&output));
    }
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "mine");
    for (words, says) in [
        (&["probe"][..], "--file FOLDER"),
        (&["probe", "--file", "/tmp", "sim:cmr-7200"], "cannot be used with"),
        (&["probe", "--file", "/tmp", "--destroy-data"], "cannot be used with"),
        (&["probe", "--size", "1GiB", "sim:cmr-7200"], "cannot be used with"),
        (&["probe", "--file", "/tmp", "--size", "1MiB"], "need 64 MiB at least"),
    ] {
        let output = imbrex(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", said(&output));
        assert!(said(&output).contains(says), "{words:?}: {}", said(&output));
    }
}

#[test]
fn measurements_are_shared_and_compared() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (one, two, other) = (at("one.json"), at("two.json"), at("other.json"));
    let shared = imbrex(&["probe", "sim:cmr-7200", "--share", &one, "--model", "ST1000DM010-2EP102", "-q"]);
    assert!(shared.status.success(), "{}", said(&shared));
    let printed = String::from_utf8_lossy(&shared.stdout).into_owned();
    assert!(printed.contains("ST1000DM010: stated: conventional, says a public list"), "{printed}");
    assert!(printed.contains("measured: conventional, which agrees."), "{printed}");
    let shared = imbrex(&["probe", "sim:seagate-st8000as0022", "--test", "type", "--share", &two, "-q"]);
    assert!(shared.status.success(), "{}", said(&shared));
    let compared = imbrex(&["probe", "--compare", &one, &two]);
    let table = String::from_utf8_lossy(&compared.stdout).into_owned();
    let row =
        |name: &str| table.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default().to_string();
    assert!(row("property").contains("one") && row("property").contains("two"), "{table}");
    assert!(row("type").contains("conventional") && row("type").contains("shingled"), "{table}");
    std::fs::write(&other, "{\"schema\": \"imbrex.fit/1\"}").expect("a file");
    for (files, says) in
        [(&[one.as_str(), &other][..], "is no measurement of the probe"), (&["/nowhere.json"], "/nowhere.json: ")]
    {
        let refused = imbrex(&[&["probe", "--compare"], files].concat());
        assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
        assert!(said(&refused).contains(says), "{}", said(&refused));
    }
}

#[test]
fn statements_name_their_source_and_unknown_models_are_unknown() {
    let known = imbrex(&["probe", "--model", "WDC WD40EFAX-68JH4N0"]);
    let text = String::from_utf8_lossy(&known.stdout).into_owned();
    assert!(text.starts_with("WD40EFAX: shingled, drive-managed, says the maker (2020-04)\n  source: "), "{text}");
    let unknown = imbrex(&["probe", "--model", "WDC WD41EFAX-68JH4N0"]);
    let text = String::from_utf8_lossy(&unknown.stdout).into_owned();
    assert!(unknown.status.success() && text.starts_with("WDC WD41EFAX-68JH4N0: unknown."), "{text}");
}
