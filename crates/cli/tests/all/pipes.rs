//! Goal: exit codes do not depend on readers of the output. Method: commands whose exit codes are known run with standard
//! output on a pipe that nobody reads and on `/dev/full`, and with standard error on such a pipe.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn imbrex(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_imbrex"));
    command.args(words).stdin(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Returns a pipe that has no reader.
fn unread() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").expect("it is always full").into()
}

fn code_and_words(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.output().expect("the program starts");
    (status.code(), String::from_utf8(stderr).expect("text"))
}

/// Creates a trace of writes on a caveat disk, the last of which destroys live data.
fn destroying(folder: &Path) -> String {
    let path = folder.join("destroying.csv");
    // DNOR 6 and DID 16: a write of sector 90 damages 97 to 106 (Singh 2014 §3.2), where 100 is live.
    let writes = [100_u64, 200, 90].map(|sector| format!("128166372000000000,hm,1,Write,{},4096,100\n", sector * 4096));
    std::fs::write(&path, writes.concat()).expect("a file");
    path.to_str().expect("text").to_string()
}

#[test]
fn a_pipe_without_a_reader_answers_the_first_interrupt() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pipe = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).expect("made");
    let pipe = pipe.to_str().expect("text");
    let workload = "rw=write,bs=4k,number_ios=5,rate_iops=10";
    let mut child = imbrex(&["trace", "convert", workload, pipe, "--to", "csv"]).spawn().expect("the program starts");
    // It waits, until a signal comes.
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(child.try_wait().expect("our child").is_none(), "it waits for a reader");
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).expect("our child");
    let status = imbrex_testkit::patience::until("the program ends", || child.try_wait().expect("our child"));
    assert_eq!(status.code(), Some(1));
    // With a reader it goes on.
    let mut child = imbrex(&["trace", "convert", workload, pipe, "--to", "csv"]).spawn().expect("the program starts");
    let written = std::fs::read_to_string(pipe).expect("the pipe's other end");
    assert!(child.wait().expect("our child").success());
    assert_eq!(written.lines().count(), 6, "{written}");
}

#[test]
fn an_output_that_fails_hides_no_exit_code() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = destroying(folder.path());
    let damaged = ["simulate", &trace, "--drive", "caveat-1g", "--check", "--quiet"];
    let spec = folder.path().join("failing.toml");
    std::fs::write(
        &spec,
        "workloads = [\"rw=randwrite,bs=4k,number_ios=100\"]\ndrives = [\"cassuto-307g+s-blocks\"]\n\
         [parameters]\ncache_share = [\"5%\", \"150%\"]\n",
    )
    .expect("a file");
    let results = folder.path().join("results");
    let (spec, results) = (spec.to_str().expect("text"), results.to_str().expect("text"));
    let failing = ["sweep", spec, "--out", results, "--jobs", "1", "--quiet"];
    let known: [(&[&str], i32); 8] = [
        (&["--help"], 4),
        (&["--version"], 4),
        (&["simulate", "--help"], 4),
        (&damaged, 3),
        (&failing, 1),
        (&["list", "layers"], 4),
        (&["simulate", "rw=randread,bs=4k,number_ios=10", "--drive", "cmr-7200", "--json"], 4),
        (&["simulate", "no-such-trace", "--drive", "cmr-7200"], 2),
    ];
    for (words, code) in known {
        let expected = if code == 4 { 0 } else { code };
        let (found, said) = code_and_words(&mut imbrex(words));
        assert_eq!(found, Some(expected), "with a reader: {words:?}: {said}");
        let (found, said) = code_and_words(imbrex(words).stdout(unread()));
        assert_eq!(found, Some(code), "{words:?}: {said}");
        assert!(!said.contains("standard output"), "a reader that has left is nobody's error: {said}");
        let (found, said) = code_and_words(imbrex(words).stdout(full()));
        assert_eq!(found, Some(code), "{words:?}: {said}");
        let names = "cannot write to standard output: No space left on device";
        assert_eq!(said.contains(names), code != 2, "only a command that prints something: {words:?}: {said}");
    }
}

#[test]
fn messages_that_nobody_reads_change_no_exit_code() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = destroying(folder.path());
    let known: [(&[&str], i32); 4] = [
        (&["simulate", &trace, "--drive", "caveat-1g", "--check"], 3),
        (&["simulate", "no-such-trace", "--drive", "cmr-7200"], 2),
        (&["simulate", "rw=randread,bs=4k,number_ios=10", "--drive", "cmr-7200", "--qd", "x"], 2),
        (&["simulate", "rw=randread,bs=4k,number_ios=10", "--drive", "cmr-7200"], 0),
    ];
    for (words, code) in known {
        let (found, _) = code_and_words(imbrex(words).stdout(Stdio::null()).stderr(unread()));
        assert_eq!(found, Some(code), "{words:?}");
        let (found, _) = code_and_words(imbrex(words).stdout(Stdio::null()).stderr(full()));
        assert_eq!(found, Some(code), "{words:?}");
    }
}

/// Checks that a command that would print for hours ends. It need not have read more than a few lines.
#[test]
fn a_long_print_ends_when_its_reader_leaves() {
    let endless = ["trace", "head", "rw=randread,bs=4k,number_ios=1000000000000", "-n", "1000000000000"];
    let (code, said) = code_and_words(imbrex(&endless).stdout(unread()));
    assert_eq!((code, said.as_str()), (Some(4), ""));
}
