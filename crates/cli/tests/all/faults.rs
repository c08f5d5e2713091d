//! Goal: `imbrex drive fault` and `imbrex serve --faults` behave as docs/drive.md says, and report clearly why a fault
//! is impossible; the message on a full disk of the host names a remedy. Method: the page's own examples, run
//! unchanged; the built binary with wrong arguments; a file system of a few megabytes.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use imbrex_device::media::file::{FileMedium, Mode};
use imbrex_testkit::tmpfs::Tmpfs;
use serde_json::Value;
use tempfile::TempDir;

const PAGE: &str = include_str!("../../../../docs/drive.md");

fn imbrex(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_imbrex"));
    command.current_dir(folder).args(words).stdin(Stdio::null()).output().expect("the program starts")
}

/// Returns standard output and standard error.
fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Returns a folder with an image `disk.imbrex` of `drive`.
fn image(drive: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = imbrex(folder.path(), &["drive", "create", "disk.imbrex", "--drive", drive]);
    assert!(output.status.success(), "{}", said(&output));
    folder
}

fn file(folder: &TempDir, name: &str, text: &str) {
    std::fs::write(folder.path().join(name), text).expect("there is room");
}

/// Returns the code blocks in `language` of the page's section on faults.
fn blocks(language: &str) -> Vec<&'static str> {
    let section = PAGE.split("\n## ").find(|section| section.starts_with("Faults")).expect("the page has it");
    let fence = format!("```{language}\n");
    section.split(&fence).skip(1).map(|rest| rest.split("```").next().expect("a block ends")).collect()
}

#[test]
fn the_examples_of_the_page_run_as_they_stand() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    file(&folder, "faults.toml", blocks("toml")[0]);
    let mut examples = 0;
    for block in blocks("console") {
        for example in block.split("$ imbrex ").skip(1) {
            let (words, expected) = example.split_once('\n').expect("a line ends");
            let words: Vec<_> = words.split_whitespace().collect();
            let output = imbrex(folder.path(), &words);
            assert!(output.status.success(), "{words:?}: {}", said(&output));
            // The output of `create` is not the subject of this section.
            assert!(words[1] == "create" || said(&output) == expected, "{words:?}: {}", said(&output));
            examples += 1;
        }
    }
    assert!(examples >= 9, "{examples} examples");
    let json = imbrex(folder.path(), &["drive", "fault", "zoned.imbrex", "list", "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(json["schema"], "imbrex.drive-fault/1");
    assert_eq!(json["unreadable"], serde_json::json!([{ "lba": 4096, "sectors": 8 }]));
    assert_eq!(json["slow"], serde_json::json!([{ "lba": 0, "sectors": 64, "by_ns": 200_000_000 }]));
    assert_eq!(json["zones"], serde_json::json!([{ "zone": 5, "condition": "read-only" }]));
    let zones = imbrex(folder.path(), &["drive", "dump", "zoned.imbrex", "--bands", "--json"]);
    let zones: Value = serde_json::from_slice(&zones.stdout).expect("JSON");
    assert_eq!(zones["bands"][6]["pointer_sectors"], 3);
    let journal = said(&imbrex(folder.path(), &["drive", "dump", "zoned.imbrex", "--journal"]));
    assert!(journal.contains("what slow  lba 0  sectors 64  by_ns 200000000"), "{journal}");
}

#[test]
fn wrong_words_are_refused_with_what_to_do() {
    let folder = image("strict-append");
    file(&folder, "key.toml", "[[fault]]\nkind = \"slow\"\nlba = 0\nsector = 4\n");
    file(&folder, "far.toml", "\n[[fault]]\nkind = \"zone-offline\"\nzone = 99\n");
    file(&folder, "late.toml", "[[fault]]\nkind = \"zone-offline\"\nzone = 9\nat = \"1s\"\n");
    file(
        &folder,
        "twice.toml",
        "[[fault]]\nkind = \"zone-offline\"\nzone = 9\n[[fault]]\nkind = \"pointer\"\nzone = 9\nto = 1\n",
    );
    file(&folder, "letter", "a letter to a friend");
    let dumped = || said(&imbrex(folder.path(), &["drive", "dump", "disk.imbrex"]));
    let before = dumped();
    for (words, code, says) in [
        ("disk.imbrex", 2, "no fault is given"),
        ("", 2, "<FILE>"),
        ("disk.imbrex broken", 2, "no fault is called 'broken'"),
        ("disk.imbrex unreadable", 2, "--lba"),
        ("disk.imbrex unreadable --lba 5", 2, "--sectors"),
        ("disk.imbrex unreadable --lba five --sectors 1", 2, "invalid value 'five'"),
        ("disk.imbrex unreadable --lba 262144 --sectors 1", 2, "which has 262144 sectors of 4096 bytes"),
        ("disk.imbrex unreadable --lba 0 --sectors 0", 2, "give at least one"),
        ("disk.imbrex slow --lba 0 --sectors 1 --by soon", 2, "expected a time such as 200ms"),
        ("disk.imbrex slow --lba 0 --sectors 1 --by 0s", 2, "a time above zero"),
        ("disk.imbrex zone --zone 64 --state offline", 2, "zones 0 to 63"),
        ("disk.imbrex zone --zone 5 --state sad", 2, "read-only, offline"),
        ("disk.imbrex pointer --zone 0 --to 1", 2, "zones from 4 on have one"),
        ("disk.imbrex pointer --zone 5 --to 4097", 2, "give 0 to 4096"),
        ("disk.imbrex --schedule missing.toml", 1, "cannot read the schedule missing.toml"),
        ("disk.imbrex --schedule key.toml", 1, "key.toml:4: unknown field `sector`"),
        ("disk.imbrex --schedule far.toml", 1, "far.toml:2: there is no zone 99"),
        ("disk.imbrex --schedule late.toml", 1, "late.toml:1: this fault waits for its time"),
        ("disk.imbrex --schedule twice.toml", 1, "twice.toml:4: zone 9 is offline"),
        ("disk.imbrex --schedule late.toml list", 2, "exclude each other"),
        ("missing.imbrex list", 1, "is not there; `imbrex drive create` makes an image"),
        ("letter list", 1, "is not an Imbrex image"),
    ] {
        let words: Vec<_> = ["drive", "fault"].into_iter().chain(words.split_whitespace()).collect();
        let output = imbrex(folder.path(), &words);
        assert!(output.status.code() == Some(code) && said(&output).contains(says), "{words:?}: {}", said(&output));
    }
    let list = said(&imbrex(folder.path(), &["drive", "fault", "disk.imbrex", "list"]));
    assert_eq!(list, "no faults\n");
    assert!(dumped() == before, "what is refused changes nothing");
    let fault = |words: &[&str]| imbrex(folder.path(), &[&["drive", "fault", "disk.imbrex"], words].concat());
    assert!(fault(&["zone", "--zone", "9", "--state", "offline"]).status.success());
    let output = fault(&["pointer", "--zone", "9", "--to", "1"]);
    assert!(
        output.status.code() == Some(2) && said(&output).contains("disk.imbrex: zone 9 is offline"),
        "{}",
        said(&output)
    );
    let held = FileMedium::open(&folder.path().join("disk.imbrex"), Mode::Write, false).expect("it is there");
    let output = imbrex(folder.path(), &["drive", "fault", "disk.imbrex", "clear"]);
    assert!(
        output.status.code() == Some(1) && said(&output).contains("in use by another process"),
        "{}",
        said(&output)
    );
    drop(held);
}

#[test]
fn a_served_drive_says_when_a_fault_has_come() {
    let folder = image("strict-append");
    file(&folder, "faults.toml", "[[fault]]\nkind = \"slow\"\nlba = 3\nsectors = 2\nby = \"5ms\"\n");
    let mut server = Command::new(env!("CARGO_BIN_EXE_imbrex"))
        .current_dir(folder.path())
        .args(["serve", "disk.imbrex", "--nbd", "unix:socket", "--time", "none", "--faults", "faults.toml"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let lines = BufReader::new(server.stderr.take().expect("it is piped")).lines();
    let came = lines.map_while(Result::ok).find(|line| line.starts_with("fault"));
    assert_eq!(came.as_deref(), Some("fault: 2 sectors from LBA 3 take 5.00 ms longer"));
    server.kill().expect("it runs");
    server.wait().expect("it ends");
    let list = said(&imbrex(folder.path(), &["drive", "fault", "disk.imbrex", "list"]));
    assert_eq!(list, "2 sectors from LBA 3 take 5.00 ms longer\n", "it stays in the image");
    for (text, says) in [
        ("[[fault]]\nkind = \"zone-offline\"\nzone = 64\n", "faults.toml:1: there is no zone 64"),
        ("[[fault]]\nkind = \"slow\"\n", "faults.toml:1: kind \"slow\" needs `lba`"),
    ] {
        file(&folder, "faults.toml", text);
        let output = imbrex(folder.path(), &["serve", "disk.imbrex", "--nbd", "unix:other", "--faults", "faults.toml"]);
        assert!(output.status.code() == Some(1) && said(&output).contains(says), "{}", said(&output));
    }
}

#[test]
fn whoever_cannot_be_served_is_told_what_to_do() {
    let folder = image("strict-append");
    file(&folder, "letter", "a letter to a friend");
    for (words, code, says) in [
        ("--nbd unix:letter", 1, "end the program that listens there (or remove the file of that name)"),
        ("--nbd unix:no/socket", 1, "make the socket's folder first"),
        ("--nbd unix:s --window 80", 2, "--window with an address such as 127.0.0.1:8080"),
        ("--nbd unix:s --newcomer-rate 0", 2, "at least 1"),
        ("--nbd unix:s --window 127.0.0.1:0 --page-header 1", 2, "at least 8 KiB"),
        ("--nbd unix:s --stats no/socket", 1, "make the socket's folder first"),
        ("--nbd unix:s --time -1x", 2, "expected real, none, or a factor"),
        ("--nbd tcp:0 --tls-cert none --tls-key none", 1, "files in PEM"),
        ("--nbd unix:s --faults none", 1, "docs/drive.md has an example"),
    ] {
        let words: Vec<_> = ["serve", "disk.imbrex"].into_iter().chain(words.split_whitespace()).collect();
        let output = imbrex(folder.path(), &words);
        assert!(output.status.code() == Some(code) && said(&output).contains(says), "{words:?}: {}", said(&output));
    }
    for (drive, says) in [("none.toml", "a name of `imbrex list profiles`"), ("cmr-7200:zone=1", "takes: none")] {
        let output = imbrex(folder.path(), &["drive", "create", "x", "--drive", drive]);
        assert!(!output.status.success() && said(&output).contains(says), "{drive}: {}", said(&output));
    }
}

/// Goal: the limit on the size of files is an error to every command, and kills none. Method: commands that write
/// larger files, each started by a shell that has set the limit; the exit code of a process killed by a signal is above
/// 128.
#[test]
fn a_limit_of_the_length_of_files_is_an_error() {
    let folder = image("cmr-7200");
    // The unit is 512 or 1024 bytes, depending on the shell.
    let limited = |words: &str| {
        let line = format!("ulimit -f 8; exec '{}' {words}", env!("CARGO_BIN_EXE_imbrex"));
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(folder.path()).stdin(Stdio::null()).output().expect("there is a shell")
    };
    const WORKLOAD: &str = "rw=randwrite,bs=4k,size=1GiB,number_ios=20000";
    let convert = format!("trace convert {WORKLOAD} trace.csv");
    let simulate = format!("simulate {WORKLOAD} --drive cmr-7200 --out results");
    for (words, code) in [
        ("drive create other.imbrex --drive cmr-7200", 1),
        ("drive fault disk.imbrex unreadable --lba 0 --sectors 8", 1),
        ("drive check disk.imbrex --repair", 1),
        ("serve disk.imbrex --nbd unix:socket", 1),
        (&convert, 1),
        (&simulate, 1),
        // The command is done, and its output is not whole.
        ("list --json > words", 4),
    ] {
        let output = limited(words);
        assert_eq!(output.status.code(), Some(code), "{words}: {}: {}", output.status, said(&output));
        assert!(said(&output).contains("imbrex: "), "{words}: {}", said(&output));
    }
    // The image is unchanged, and can be used without the limit.
    let check = imbrex(folder.path(), &["drive", "check", "disk.imbrex"]);
    assert!(check.status.success(), "{}", said(&check));
}

#[test]
fn a_full_disk_of_the_host_is_named_with_what_to_do() {
    const REMEDY: &str = "writes go on once there is some";
    let Some(tiny) = Tmpfs::mounted(4096, "a full disk of the host") else { return };
    let folder = tiny.path();
    let words = ["drive", "create", "disk.imbrex", "--drive", "caveat-1g:geometry.tracks=64"];
    assert!(imbrex(folder, &words).status.success());
    // Fills the remaining space, so that neither opening for writing nor a new image finds space.
    let path = folder.join("disk.imbrex");
    let mut drive = imbrex_device::EmulatedDrive::open_file(&path, false).expect("there is room yet");
    let (mut sector, piece) = (0, vec![7; 64 << 10]);
    let error = loop {
        match drive.write(sector * 4096, &piece, false) {
            Ok(()) => sector += 64,
            Err(error) => break error.to_string(),
        }
        assert!(sector * 4096 < 64 << 20, "a disk of 4 MiB never filled");
    };
    let place = path.to_str().expect("a path");
    assert!(error.contains("no space left on the disk of") && error.contains(place), "{error}");
    assert!(error.contains(REMEDY), "{error}");
    drop(drive);
    let mut rest = std::fs::File::create(folder.join("rest")).expect("an empty file takes no room");
    while std::io::Write::write_all(&mut rest, &[1; 4096]).is_ok() {}
    drop(rest);
    let output = imbrex(folder, &["drive", "create", "other.imbrex", "--drive", "caveat-1g"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("no space left on the disk of other.imbrex: free some and make it"),
        "{}",
        said(&output)
    );
    assert!(!folder.join("other.imbrex").exists(), "nothing is left behind");
    // With free space the image opens, and has all acknowledged writes.
    std::fs::remove_file(folder.join("rest")).expect("it is there");
    let mut drive = imbrex_device::EmulatedDrive::open_file(&path, false).expect("there is room again");
    let mut bytes = vec![0; 64 << 10];
    drive.read(0, &mut bytes).expect("it was acknowledged");
    assert_eq!(bytes, piece);
}
