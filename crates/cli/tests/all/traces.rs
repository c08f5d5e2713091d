//! Goal: nothing that a user says about a trace is ignored, and nothing about a trace is guessed in silence. Method: the
//! built program on small tables, with options that do not apply, malformed records, and generators without an end.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn imbrex(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_imbrex")).args(words).stdin(Stdio::null()).output().expect("the program starts")
}

fn refused(words: &[&str]) -> (Option<i32>, String) {
    let output = imbrex(words);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn json(words: &[&str]) -> Value {
    let output = imbrex(words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("--json prints JSON")
}

fn file(folder: &Path, name: &str, contents: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, contents).expect("the file can be written");
    path.to_string_lossy().into_owned()
}

const IOLOG: &str = "fio version 3 iolog\n0 f add\n1 f open\n5 f write 0 4096\n9 f close\n";
const TABLE: &str = "0,R,4096,512\n1,W,8192,1024\n";

#[test]
fn options_that_do_not_apply_are_usage_errors() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (log, table) = (file(folder.path(), "log", IOLOG), file(folder.path(), "table", TABLE));
    let generator = "rw=write,bs=4k,number_ios=5";
    let columns = ["--columns", "time,op,offset,size"];
    for (words, said) in [
        (vec![log.as_str(), "--time-unit", "us"], "--time-unit does not apply to the format fio-iolog: it is for"),
        (vec![&log, "--read-flag", "0"], "--read-flag does not apply to the format fio-iolog: it is for disksim"),
        (vec![&log, "--action", "Q"], "--action does not apply to the format fio-iolog: it is for blktrace, blkparse"),
        (vec![&log, "--all", "reads"], "--all does not apply to the format fio-iolog: it is for csv"),
        (vec![&log, "--format", "msr", "--columns", "op,offset,size"], "--columns does not apply to the format msr"),
        (vec![&log, "--seed", "7"], "--seed 7 does not apply"),
        (vec![&log, "--format", "disksimm"], "there is no format «disksimm» (did you mean 'disksim'?)"),
        (
            vec![generator, "--columns", "op,offset,size"],
            "--columns does not apply: 'rw=write,bs=4k,number_ios=5' is a",
        ),
        (vec![generator, "--device", "1"], "--device does not apply"),
        (vec![generator, "--skip-malformed"], "--skip-malformed does not apply"),
        (vec!["demo", "--time-unit", "s"], "--time-unit does not apply: 'demo' is a generator"),
        (vec![&table, columns[0], columns[1], "--all", "reads"], "--all is for tables without a column op"),
        (vec![&table, "--columns", "time,op,ofset,size"], "«ofset» is no column (did you mean 'offset'?)"),
        (
            vec![&table, columns[0], columns[1], "--units", "us", "--time-unit", "ms"],
            "--units says us and --time-unit ms",
        ),
    ] {
        let (code, stderr) = refused(&[&["trace", "info"][..], &words].concat());
        assert_eq!(code, Some(2), "{words:?}: {stderr}");
        assert!(stderr.contains(said), "{words:?}: {stderr}");
    }
}

#[test]
fn a_generator_that_needs_a_drive_to_end_is_refused_without_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out").to_string_lossy().into_owned();
    let endless = "rw=randread,bs=4k,size=1g,runtime=10";
    for words in [vec!["trace", "info", endless], vec!["trace", "convert", endless, &out, "--to", "imbrex"]] {
        let (code, stderr) = refused(&words);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(
            stderr.contains("end after a time that only a drive can tell") && stderr.contains("--limit"),
            "{stderr}"
        );
    }
    assert!(!Path::new(&out).exists());
    assert_eq!(json(&["trace", "info", endless, "--limit", "50", "--json"])["requests"], 50);
    let timed = "rw=randread,bs=4k,size=1g,runtime=10,rate_iops=5";
    assert_eq!(json(&["trace", "info", timed, "--json"])["requests"], 50);
}

#[test]
fn skipped_records_are_told_and_most_of_a_file_is_not_skipped() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let rows = |count: usize| (0..count).map(|time| format!("{time},R,0,512\n")).collect::<String>();
    let mixed = |sound: usize, malformed: usize| rows(sound) + &"2,Q,0,512\n".repeat(malformed);
    let table = |sound, malformed| file(folder.path(), &format!("{sound}-{malformed}"), &mixed(sound, malformed));
    let described = ["--columns", "time,op,offset,size", "--json"];
    let info = |path: &str, skip| json(&[&["trace", "info", path, skip][..], &described].concat());
    let few = info(&table(1000, 5), "--skip-malformed");
    assert_eq!((&few["reading"]["malformed"], &few["warnings"]), (&5.into(), &Value::Array(Vec::new())));
    let more = info(&table(100, 10), "--skip-malformed");
    let warning = more["warnings"][0].as_str().expect("a warning");
    assert!(warning.contains("10 of 110 records are malformed and skipped; the first: ") && warning.contains("«Q»"));
    let most = table(4, 6);
    let (code, stderr) = refused(&[&["trace", "info", &most, "--skip-malformed"][..], &described].concat());
    assert_eq!(code, Some(1));
    assert!(stderr.contains("6 of 10 records are malformed, more than half") && stderr.contains("line 5"), "{stderr}");
    assert_eq!(info(&most, "--skip-malformed=all")["requests"], 4);
    let run = ["simulate", &most, "--skip-malformed=all", "-d", "cmr-7200"];
    let summary = json(&[&run[..], &described].concat());
    assert!(summary["warnings"][0].as_str().expect("a warning").contains("6 of 10 records"), "{summary}");
}

#[test]
fn a_drive_that_grows_is_a_warning_in_the_summary() {
    let summary = json(&["simulate", "rw=randwrite,bs=4k,size=300GiB,number_ios=20", "-d", "cassuto-307g", "--json"]);
    let warnings = summary["warnings"].as_array().expect("a list");
    assert!(
        warnings.iter().any(|warning| warning.as_str().is_some_and(|text| text.contains("cassuto-307g"))),
        "{summary}"
    );
}

#[test]
fn a_table_that_was_written_is_read_back() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [first, second, third] =
        ["a.csv", "b", "c"].map(|name| folder.path().join(name).to_string_lossy().into_owned());
    let workload = "rw=randrw,bs=4k,size=1g,number_ios=500,rate_iops=1000,rate_process=poisson,fsync=7,fua";
    assert!(imbrex(&["trace", "convert", workload, &first, "--to", "csv"]).status.success());
    let (code, stderr) = refused(&["trace", "info", &first]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("--columns time,op,offset,size,device"), "{stderr}");
    let columns = ["--columns", "time,op,offset,size,device"];
    let back = [&["trace", "convert", &first, &second, "--to", "imbrex"][..], &columns].concat();
    assert!(imbrex(&back).status.success());
    assert!(imbrex(&["trace", "convert", workload, &third, "--to", "imbrex"]).status.success());
    let requests = |path: &str| json(&["trace", "info", path, "--json"])["requests"].clone();
    assert_eq!(requests(&second), requests(&third));
    let head = |path: &str| imbrex(&["trace", "head", "-n", "1000", path]).stdout;
    assert!(head(&second) == head(&third), "the table has other requests");
}

/// The file of standard output belongs to the shell: it may hold the output of other programs.
#[test]
fn a_trace_for_standard_output_continues_its_file_and_stands_alone_in_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let table = file(folder.path(), "t.csv", "0,read,0,4096\n1,write,4096,4096\n");
    for output in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let all = file(folder.path(), "all.csv", "old\n");
        let into = std::fs::File::options().append(true).open(&all).expect("it is there");
        let words = ["trace", "convert", &table, output, "--to", "csv", "--columns", "time,op,offset,size"];
        let mut program = Command::new(env!("CARGO_BIN_EXE_imbrex"));
        let run = program.args(words).stdin(Stdio::null()).stdout(into).output().expect("it runs");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let text = std::fs::read_to_string(&all).expect("it is there");
        let rest = text.strip_prefix("old\n").unwrap_or_else(|| panic!("{output}: {text}"));
        assert_eq!(rest.lines().count(), 3, "{output}: a head and two rows: {rest}");
        assert!(String::from_utf8_lossy(&run.stderr).contains("2 requests as csv"), "{output}");
    }
    assert_eq!(refused(&["trace", "convert", &table, "-", "--to", "csv", "--json"]).0, Some(2));
}

#[test]
fn means_and_extremes_of_a_trace_are_exact() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let table = file(folder.path(), "t.csv", "0,write,0,1049088\n0.5,write,2097152,1049088\n");
    let info = json(&["trace", "info", &table, "--columns", "time,op,offset,size", "--json"]);
    for (name, exact) in [("inter_arrival_ns", 500_000_000), ("write_size_bytes", 1_049_088)] {
        for figure in ["mean", "min", "p5", "p50", "p999", "max"] {
            assert_eq!(info[name][figure].as_f64(), Some(f64::from(exact)), "{name}, {figure}: {info}");
        }
    }
}

#[test]
fn a_trace_without_requests_is_told_with_the_option_that_left_them_out() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = file(folder.path(), "t.txt", "  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [k]\n");
    let (code, stderr) = refused(&["trace", "info", &trace, "--action", "C"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("no requests of action C") && stderr.contains("--action with another"), "{stderr}");
    let empty = file(folder.path(), "empty.csv", "time,op,offset,size\n");
    let (code, stderr) = refused(&["trace", "info", &empty, "--columns", "time,op,offset,size"]);
    assert!(code == Some(1) && stderr.contains("no requests") && !stderr.contains("--device"), "{stderr}");
}
