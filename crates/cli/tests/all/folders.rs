//! Goal: a folder of results holds the results of one run, whatever was there before. Method: the built program writes
//! twice into one folder, is killed while it writes, and is started twice at the same time.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn imbrex(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_imbrex"));
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn done(words: &[&str]) -> Output {
    let output = imbrex(words).output().expect("the program starts");
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("there").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

const RUN: [&str; 5] = ["simulate", "rw=randwrite,bs=4k,size=1g,number_ios=300", "--no-baseline", "-q", "--out"];

#[test]
fn a_folder_holds_the_results_of_one_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().to_str().expect("text");
    done(&[&RUN[..], &[out, "-d", "cassuto-307g+s-blocks", "--per-io", "--plans"]].concat());
    let all = ["ios.parquet", "latency.parquet", "plan.jsonl", "report.html", "summary.json", "timeline.parquet"];
    assert_eq!(names(folder.path()), all);
    std::fs::write(folder.path().join("notes.txt"), "mine").expect("written");
    done(&[&RUN[..], &[out, "-d", "cmr-7200"]].concat());
    let without = ["latency.parquet", "notes.txt", "report.html", "summary.json", "timeline.parquet"];
    assert_eq!(names(folder.path()), without);
}

#[test]
fn the_files_of_a_killed_run_are_removed_and_told() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().to_str().expect("text");
    // A killed process leaves such files. In a container each process may have the number 1.
    for name in [".ios.parquet.1-0.unfinished", ".probe.1-0.unfinished", ".summary.json.1-1.unfinished"] {
        std::fs::write(folder.path().join(name), "half").expect("written");
    }
    let output = done(&[&RUN[..], &[out, "-d", "cmr-7200"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("3 unfinished files of an earlier run removed"), "{said}");
    assert_eq!(names(folder.path()), ["latency.parquet", "report.html", "summary.json", "timeline.parquet"]);
}

#[test]
fn two_runs_do_not_write_into_one_folder_at_the_same_time() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().to_str().expect("text");
    let held = std::fs::File::open(folder.path()).expect("a folder");
    held.lock().expect("as another run does");
    let output = imbrex(&[&RUN[..], &[out, "-d", "cmr-7200"]].concat()).output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("another run is writing results there"), "{said}");
    assert!(names(folder.path()).is_empty());
    drop(held);
    done(&[&RUN[..], &[out, "-d", "cmr-7200"]].concat());
}

#[test]
fn sweeps_may_share_a_folder() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let spec = folder.path().join("spec.toml");
    let text = "workloads = [\"rw=randwrite,bs=4k,size=1g,number_ios=300\"]\ndrives = [\"imr-1t+track-map\"]\n\
                [parameters]\ninterval = [100, 200, 300, 400, 500, 600, 700, 800]\n";
    std::fs::write(&spec, text).expect("written");
    let out = folder.path().join("out");
    let words = ["sweep", spec.to_str().expect("text"), "--out", out.to_str().expect("text"), "-q"];
    for _ in 0..3 {
        let children: Vec<_> = (0..3).map(|_| imbrex(&words).spawn().expect("the program starts")).collect();
        for child in children {
            let output = child.wait_with_output().expect("our child");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        assert_eq!(names(&out.join("points")).len(), 8);
        assert_eq!(names(&out), ["points", "sweep.html", "sweep.parquet"]);
        std::fs::remove_dir_all(&out).expect("there");
    }
}
