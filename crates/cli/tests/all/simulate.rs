//! Goal: the program keeps the promises of its help, and reports clearly why it cannot. Method: the built binary, on
//! small traces written here and on real samples if they are present; its output, its files, and its exit code are
//! compared.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

fn imbrex(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_imbrex")).args(words).stdin(Stdio::null()).output().expect("the program starts")
}

fn json(words: &[&str]) -> Value {
    let output = imbrex(words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("--json prints JSON")
}

/// Returns the exit code and standard error.
fn refused(words: &[&str]) -> (i32, String) {
    let output = imbrex(words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.stdout.is_empty(), "nothing but errors is expected: {}", String::from_utf8_lossy(&output.stdout));
    (output.status.code().expect("it ended by itself"), said)
}

/// Returns the path of a sample of the shared traces. Prints a message if it is missing.
fn sample(name: &str) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces").join(name);
    if path.exists() {
        return Some(path.to_string_lossy().into_owned());
    }
    eprintln!("skipped: the sample {name} is not here");
    None
}

fn msr_lines(count: u64) -> String {
    let line = |i: u64| {
        let operation = if i.is_multiple_of(3) { "Read" } else { "Write" };
        format!("{},hm,1,{operation},{},4096,100\n", 128_166_372_000_000_000 + i * 50_000, i * 7919 % 100_000 * 4096)
    };
    (0..count).map(line).collect()
}

fn file(folder: &Path, name: &str, contents: impl AsRef<[u8]>) -> String {
    let path = folder.join(name);
    std::fs::write(&path, contents).expect("a temporary file");
    path.to_string_lossy().into_owned()
}

const THREE_DRIVES: [&str; 6] = [
    "--drive",
    "cassuto-307g+set-associative",
    "--drive",
    "cassuto-307g+s-blocks",
    "--drive",
    "cassuto-307g+region-rmw",
];

#[test]
fn every_request_of_the_real_samples_completes_with_nothing_lost() {
    for (name, reads, writes) in [
        ("cloudPhysicsIO.vscsi", 46_974, 66_898),
        ("blkreplay-linux-mysql.load.gz", 7_187, 73_607),
        ("blkreplay-windows-mssql.load.gz", 2_528, 40_448),
    ] {
        let Some(path) = sample(name) else { continue };
        let words = ["simulate", &path, "--drive", "cassuto-307g+set-associative", "--check", "--json"];
        let summary = json(&[&words[..], &["--drive", "cassuto-307g+s-blocks"]].concat());
        assert_eq!(summary["workload"]["requests"], reads + writes, "{name}");
        assert_eq!((&summary["workload"]["reads"], &summary["workload"]["writes"]), (&reads.into(), &writes.into()));
        for drive in summary["drives"].as_array().expect("drives") {
            assert_eq!(drive["completed"], reads + writes, "{name} on {}", drive["drive"]);
            assert_eq!(drive["integrity"], "ok", "{name} on {}", drive["drive"]);
        }
    }
}

#[test]
fn quiet_commands_print_only_results_and_warnings() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let words = "rw=randwrite,bs=4k,number_ios=10";
    for (command, told) in [
        (vec!["simulate", words, "-d", "cmr-7200", "--no-baseline", "--out", &path("simulated")], "results are in"),
        (vec!["man", &path("man")], "man pages are in"),
        (vec!["reproduce", "aghayev/fig14", "--out", &path("reproduced")], "aghayev/fig14: "),
    ] {
        let said = |words: &[&str]| {
            let output = imbrex(words);
            assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stderr).into_owned()
        };
        assert!(said(&command).contains(told), "{command:?}");
        assert_eq!(said(&[&command[..], &["--quiet"]].concat()), "", "{command:?}");
    }
}

#[test]
fn two_runs_differ_in_wall_clock_fields_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = file(folder.path(), "trace.csv", msr_lines(3000));
    let mut summaries = Vec::new();
    for (jobs, out) in [("1", "a"), ("2", "b")] {
        let out = folder.path().join(out);
        let words = ["simulate", &trace, "--jobs", jobs, "--out", out.to_str().expect("a path"), "--per-io"];
        let output = imbrex(&[&words[..], &THREE_DRIVES].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = std::fs::read_to_string(out.join("summary.json")).expect("it was written");
        let mut summary: Value = serde_json::from_str(&text).expect("JSON");
        summary["command"] = Value::Null;
        for drive in summary["drives"].as_array_mut().expect("drives") {
            drive["wall_seconds"] = Value::Null;
            drive["requests_per_second"] = Value::Null;
        }
        let tables = ["latency.parquet", "timeline.parquet", "ios.parquet"];
        let tables = tables.map(|name| std::fs::read(out.join(name)).expect("it was written"));
        summaries.push((summary.to_string(), tables));
        assert!(out.join("report.html").exists());
    }
    assert!(summaries[0] == summaries[1], "two runs of the same differ");
}

#[test]
fn the_document_has_the_promised_fields() {
    let summary = json(&["simulate", "rw=randwrite,bs=4k,number_ios=500,seed=3", "--drive", "cassuto-307g", "--json"]);
    assert_eq!(summary["schema"], "imbrex.simulate/2");
    assert_eq!(summary["seed"], 3);
    let drive = &summary["drives"][0];
    assert_eq!(drive["drive"], "cassuto-307g");
    let wanted = "profile layer parameters capacity_bytes capacity_gain completed duration_ns duration_ratio slowdown \
                  latency_ratio longest_stall_ns queue_full_ns latency_ns \
                  service_ns host medium write_overloading write_amplification read_amplification windows cleaning \
                  map_bytes map_bytes_formula integrity wall_seconds requests_per_second";
    for field in wanted.split_whitespace() {
        assert!(!drive[field].is_null(), "{field} is missing");
    }
    assert_eq!(drive["host"]["write_blocks"], 4000);
    assert_eq!(summary["drives"][1]["baseline"], true);
    let baseline = &summary["drives"][1];
    assert_eq!((&baseline["slowdown"], &baseline["duration_ratio"]), (&1.0.into(), &1.0.into()));
    assert_eq!(baseline["latency_ratio"]["write"], serde_json::json!({"mean": 1.0, "p99": 1.0}));
    assert!(baseline["latency_ratio"]["read"].is_null(), "no read was simulated");
    let mean = |index: usize| summary["drives"][index]["latency_ns"]["write"]["mean"].as_f64().expect("a number");
    let ratio = drive["latency_ratio"]["write"]["mean"].as_f64().expect("a number");
    assert!((ratio - mean(0) / mean(1)).abs() < 1e-9, "{ratio}");
}

#[test]
fn bad_traces_are_refused_with_place_and_remedy() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut broken = msr_lines(70_100);
    let at = broken.lines().take(69_999).map(|line| line.len() + 1).sum::<usize>();
    broken.replace_range(at..at + 5, "12x66");
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".repeat(40);
    for (name, contents, parts) in [
        ("bad.csv", broken.into_bytes(), vec!["bad.csv", "line 70000", "12x66"]),
        ("empty", Vec::new(), vec!["empty"]),
        ("picture.png", png, vec!["PNG"]),
    ] {
        let path = file(folder.path(), name, contents);
        let (code, said) = refused(&["simulate", &path, "--drive", "cmr-7200"]);
        assert_eq!(code, 1, "{said}");
        for part in parts {
            assert!(said.contains(part), "«{said}» should name {part}");
        }
    }
    let path = file(folder.path(), "bad.csv", msr_lines(10) + "nonsense\n" + &msr_lines(5));
    let summary = json(&["simulate", &path, "--drive", "cmr-7200", "--json", "--skip-malformed"]);
    let workload = &summary["workload"];
    assert_eq!((&workload["requests"], &workload["rejected"]["malformed"]), (&15.into(), &1.into()));
}

#[test]
fn a_truncated_binary_trace_is_told_by_its_offset() {
    let Some(path) = sample("cloudPhysicsIO.vscsi") else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let bytes = std::fs::read(path).expect("the sample");
    let cut = file(folder.path(), "cut.vscsi", &bytes[..32 * 1000 + 7]);
    let (code, said) = refused(&["simulate", &cut, "--drive", "cmr-7200"]);
    assert_eq!(code, 1);
    assert!(said.contains("32000") && said.contains("cut"), "{said}");
}

#[test]
fn words_beyond_any_disk_are_refused_before_they_cost_memory_or_overflow() {
    let workload = "rw=randwrite,bs=4k,number_ios=20";
    for (drive, said) in [
        ("cmr-7200:mechanics.seek.short_base_ns=18446744073709551615", "seek.short_base_ns"),
        ("cmr-7200:mechanics.settle_ns=60000000001", "settle_ns"),
        ("cassuto-307g+s-blocks:sblock_size=512", "use larger ones"),
        ("imr-20t+imr-rmw:backup_regions=4294967296", "give at most 1024"),
        ("seagate-st8000dm004+media-cache:map_entries=9223372036854775808", "give at most 4294967295"),
    ] {
        let (code, words) = refused(&["simulate", workload, "--drive", drive]);
        assert!(code == 2 && words.contains(said), "{drive}: {code}, {words}");
    }
    for workload in [workload, "demo"] {
        let (code, words) = refused(&["simulate", workload, "--format", "zzz", "--drive", "cmr-7200"]);
        assert!(
            code == 2 && words.contains("zzz") && words.contains("leave --format out"),
            "{workload}: {code}, {words}"
        );
    }
}

#[test]
fn a_workload_past_the_drive_is_refused_or_grows_aloud() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = file(folder.path(), "far.csv", "128166372000000000,hm,1,Write,900000000000,4096,1\n".repeat(3));
    let (code, said) = refused(&["simulate", &trace, "--drive", "cassuto-307g", "--fit", "error"]);
    assert_eq!(code, 1);
    assert!(said.contains("past the end of cassuto-307g") && said.contains("--fit grow"), "{said}");
    let output = imbrex(&["simulate", &trace, "--drive", "cassuto-307g", "--json"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("it gets more tracks"));
    let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(summary["drives"][0]["completed"], 3);
    for fit in ["wrap", "scale"] {
        let summary = json(&["simulate", &trace, "--drive", "cassuto-307g", "--json", "--fit", fit]);
        assert_eq!(summary["drives"][0]["completed"], 3, "{fit}");
    }
}

#[test]
fn wrong_words_end_with_2_and_say_what_would_be_right() {
    for (words, parts) in [
        (vec!["simulate", "demo", "--drive", "nosuch"], vec!["nosuch", "cmr-7200"]),
        (vec!["simulate", "demo", "--drive", "cassuto-307g+nosuch"], vec!["nosuch", "s-blocks"]),
        (vec!["simulate", "demo", "--drive", "cassuto-307g:cache_shore=3%"], vec!["cache_shore", "cache_share"]),
        (vec!["simulate", "demo", "--drive", "cassuto-307g:cache_share=lots"], vec!["cache_share=lots", "1%"]),
        (vec!["simulate", "demo", "--drive", "cmr-7200:geometry.surfaces=0"], vec!["geometry.surfaces"]),
        (vec!["simulate", "demo", "--drive", "cmr-7200:geometry.colour=3"], vec!["geometry.colour"]),
        (vec!["simulate", "rw=randwrite,bs=4k"], vec!["number_ios"]),
        (vec!["simulate", "no-such-file"], vec!["no-such-file", "list generators"]),
        (vec!["simulate", "demo", "--drive", "cmr-7200+imr-rmw"], vec!["conventional recording", "interlaced"]),
    ] {
        let (code, said) = refused(&words);
        assert_eq!(code, 2, "{words:?}: {said}");
        for part in parts {
            assert!(said.contains(part), "{words:?}: «{said}» should name {part}");
        }
    }
}

#[test]
fn a_profile_file_is_refused_with_its_line() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let good = include_str!("../../../disk/profiles/cmr-7200.toml");
    let words = ["simulate", "rw=randread,bs=4k,number_ios=10", "--drive"];
    assert!(imbrex(&[&words[..], &[&file(folder.path(), "good.toml", good)]].concat()).status.success());
    for (bad, line, parts) in [
        (good.replacen("[mechanics]", "[mechanics]\nspeed = 3", 1), "speed", ["speed", "settle_ns"]),
        (good.replacen("surfaces = 8", "surfaces = 0", 1), "surfaces", ["surfaces", "at least one"]),
    ] {
        let number = 1 + bad.lines().position(|text| text.starts_with(line)).expect("it was put there");
        let (code, said) = refused(&[&words[..], &[&file(folder.path(), "bad.toml", bad)]].concat());
        assert_eq!(code, 2);
        let place = format!("bad.toml:{number}");
        assert!(said.contains(&place) && parts.iter().all(|part| said.contains(part)), "{place}: {said}");
    }
}

#[test]
fn a_folder_of_results_may_be_called_like_the_workload_and_goes_where_nothing_ran() {
    let place = tempfile::tempdir().expect("a folder");
    let run = |words: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_imbrex")).args(words).current_dir(place.path()).output().expect("it starts")
    };
    for _ in 0..2 {
        let output = run(&["simulate", "demo", "--limit", "50", "--drive", "cmr-7200", "--out", "demo"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(place.path().join("demo/summary.json").exists());
    let output = run(&["simulate", "nonsuch", "--drive", "cmr-7200", "--out", "other"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!place.path().join("other").exists(), "an empty folder was left");
}

#[test]
fn an_out_that_cannot_be_written_is_told_before_the_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let in_the_way = file(folder.path(), "taken", "x");
    let (code, said) = refused(&["simulate", "demo", "--drive", "cmr-7200", "--out", &in_the_way]);
    assert_eq!(code, 1);
    assert!(said.contains("taken") && said.contains("--out"), "{said}");
    assert_eq!(std::fs::read(&in_the_way).expect("untouched"), b"x");
}

#[cfg(unix)]
#[test]
fn ctrl_c_finishes_the_files_and_ends_with_1() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let words = ["simulate", "rw=randread,bs=4k,number_ios=2000000000", "--drive", "cmr-7200", "--json", "--out"];
    let child = Command::new(env!("CARGO_BIN_EXE_imbrex"))
        .args(words)
        .arg(&out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // Once the folder exists, the run has been prepared.
    imbrex_testkit::patience::until("the folder", || out.exists().then_some(()));
    std::thread::sleep(Duration::from_millis(500));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(killed.success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("interrupted"));
    let summary: Value = serde_json::from_slice(&output.stdout).expect("the results so far");
    assert_eq!(summary["workload"]["requests"], summary["drives"][0]["completed"]);
    let warning = "interrupted: the results are those of the requests read until then";
    assert_eq!(summary["warnings"], serde_json::json!([warning]));
    let page = std::fs::read_to_string(out.join("report.html")).expect("the page");
    assert!(page.contains(warning), "the page does not say that it is not whole");
    let kept = std::fs::read_to_string(out.join("summary.json")).expect("the summary");
    assert!(kept.contains(warning), "{kept}");
    let entries = std::fs::read_dir(&out).expect("the folder");
    let names: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().ends_with(".unfinished")), "{names:?}");
}

#[test]
fn without_a_drive_one_of_every_kind_runs() {
    let summary = json(&["simulate", "rw=randrw,bs=4k,number_ios=200", "--json"]);
    let drives = summary["drives"].as_array().expect("drives");
    assert!(drives.len() >= 4, "{} drives", drives.len());
    let layers: std::collections::BTreeSet<_> = drives.iter().map(|drive| drive["layer"].to_string()).collect();
    assert!(layers.len() >= 4, "{layers:?}");
    // The word `all` stands for the same drives; the demonstration takes fewer.
    let all = json(&["simulate", "rw=randrw,bs=4k,number_ios=200", "--drive", "all", "--json"]);
    assert_eq!(all["drives"].as_array().map(Vec::len), Some(drives.len()));
    let demo = json(&["simulate", "demo", "--limit", "200", "--no-baseline", "--json"]);
    let names: Vec<&str> =
        demo["drives"].as_array().expect("drives").iter().filter_map(|drive| drive["drive"].as_str()).collect();
    assert_eq!(names.len(), 6, "{names:?}");
    assert!(names.contains(&"cmr-7200") && names.contains(&"imr-1t+track-map"), "{names:?}");
}

/// Returns the first drive of a checked run, the exit code and the printed table.
fn checked(folder: &Path, trace: &str, drive: &str) -> (Value, Option<i32>, String) {
    let trace = file(folder, "trace.csv", trace);
    let words = ["simulate", &trace, "--drive", drive, "--no-baseline", "--check"];
    let output = imbrex(&[&words[..], &["--json"]].concat());
    let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let table = imbrex(&words);
    assert_eq!(table.status.code(), output.status.code());
    (summary["drives"][0].clone(), output.status.code(), String::from_utf8_lossy(&table.stdout).into_owned())
}

/// Returns the lines of a trace, a millisecond apart: writes of 4 KiB at the given sectors of 4 KiB.
fn writes(sectors: impl IntoIterator<Item = u64>) -> String {
    let line = |(number, sector): (usize, u64)| {
        format!("{},hm,1,Write,{},4096,100\n", 128_166_372_000_000_000 + number as u64 * 10_000, sector * 4096)
    };
    sectors.into_iter().enumerate().map(line).collect()
}

#[test]
fn a_host_managed_drive_says_what_breaks_its_rules() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Zones of 4096 sectors, the first four conventional. Zone 4 is written in order, its conventional neighbours
    // anywhere.
    let fourth = 4 * 4096;
    let in_order = || (fourth..fourth + 512).chain([77, 5, 77]);
    let (drive, code, table) = checked(folder.path(), &writes(in_order()), "strict-append");
    assert_eq!((&drive["integrity"], code), (&"ok".into(), Some(0)));
    assert!(table.contains("no live sector was lost"), "{table}");
    // The zone's first sector again: that is off the pointer, and destroys the neighbours on the next track, of 256
    // sectors.
    let (drive, code, table) = checked(folder.path(), &writes(in_order().chain([fourth])), "strict-append");
    let integrity = &drive["integrity"];
    assert_eq!((integrity["rule_breaks"].as_u64(), integrity["request"].as_u64(), code), (Some(1), Some(516), Some(3)));
    let first = "zone 4 takes its next write at LBA 16896, not at 16384: a write elsewhere would destroy data";
    assert_eq!(integrity["first"], first);
    let lost = integrity["live_sectors_destroyed"].as_u64().expect("a number");
    assert!((1..=4).contains(&lost), "{lost}");
    let line =
        format!("strict-append: 1 write breaks the drive's rules (first, at request 516: {first}), {lost} live sector");
    assert!(table.contains(&line) && !table.contains("no live sector was lost"), "{table}");
    // A write ahead of the pointer destroys nothing, but still breaks the rule.
    let (drive, code, _) = checked(folder.path(), &writes([fourth + 1, fourth + 2]), "strict-append");
    let integrity = &drive["integrity"];
    assert_eq!((integrity["rule_breaks"].as_u64(), integrity["live_sectors_destroyed"].as_u64()), (Some(1), Some(0)));
    assert_eq!(code, Some(0));
    // DNOR 6 and DID 16: a write of sector 90 damages 97 … 106 (Singh 2014 §3.2), where 100 is live.
    let (drive, code, table) = checked(folder.path(), &writes([100, 200, 90]), "caveat-1g");
    let integrity = &drive["integrity"];
    assert_eq!((integrity["rule_breaks"].as_u64(), integrity["live_sectors_destroyed"].as_u64()), (Some(0), Some(1)));
    assert_eq!((integrity["request"].as_u64(), code), (Some(3), Some(3)));
    assert!(table.contains("a write destroyed LBA 100, which was live), 1 live sector destroyed"), "{table}");
}

#[test]
fn writes_against_the_rules_are_told_without_being_asked() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = |sectors: &[u64], drive: &str, more: &[&str]| {
        let trace = file(folder.path(), "trace.csv", writes(sectors.iter().copied()));
        let output = imbrex(&[&["simulate", &trace, "-d", drive, "--no-baseline", "-q"], more].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    // Zone 4 is the first sequential zone: its second sector is written before its first, then its third.
    let fourth = 4 * 4096;
    let broken = [fourth + 1, fourth, fourth + 2];
    let told = run(&broken, "strict-append", &[]);
    let line = "strict-append: 2 writes break the drive's rules (first, at request 1: zone 4 takes its next write at LBA 16384";
    assert!(told.contains(line) && told.contains("--check counts the destroyed live sectors"), "{told}");
    let json: Value = serde_json::from_str(&run(&broken, "strict-append", &["--json"])).expect("--json prints JSON");
    let integrity = &json["drives"][0]["integrity"];
    assert_eq!((integrity["rule_breaks"].as_u64(), integrity.get("live_sectors_destroyed")), (Some(2), None));
    // A host that keeps the rules gets no message, and a run without --check does not claim that no sector was lost.
    let kept = [fourth, fourth + 1, 7, 3];
    let told = run(&kept, "strict-append", &[]);
    assert!(!told.contains("rules") && !told.contains("no live sector"), "{told}");
    let json: Value = serde_json::from_str(&run(&kept, "strict-append", &["--json"])).expect("--json prints JSON");
    assert_eq!(json["drives"][0]["integrity"], "off");
    // A caveat disk has no pointers: only --check knows the sectors that a write destroyed.
    let told = run(&[100, 200, 90], "caveat-1g", &[]);
    assert!(told.contains("lost live sectors were not counted"), "{told}");
}

#[test]
fn every_profile_serves_under_its_own_layer_and_loses_nothing() {
    let workload = "rw=randrw,bs=4k,size=64m,number_ios=300,fsync=50;rw=write,bs=256k,size=64m,number_ios=100,fsync=0;\
                    rw=randtrim,bs=64k,number_ios=20;idle=10s;rw=randread,bs=4k,number_ios=100";
    for name in imbrex_disk::Profile::names() {
        let profile = imbrex_disk::Profile::named(name).expect("it is built in");
        let layer = imbrex_layer::registry::named(&profile.default_layer).expect("it is built in");
        if layer.host_managed {
            continue; // The effect of this workload on such a drive is tested below.
        }
        let summary = json(&["simulate", workload, "--drive", name, "--no-baseline", "--check", "--json"]);
        let drive = &summary["drives"][0];
        assert_eq!(drive["completed"], summary["workload"]["requests"], "{name}");
        assert_eq!(drive["integrity"], "ok", "{name}: {}", drive["integrity"]);
        assert!(drive["slowdown"].is_null(), "{name} has nothing to be compared with");
    }
}

/// Goal: a queue that is full hides no wait. Method: 100 requests a millisecond apart on a drive that takes some ten
/// milliseconds for each, with a queue of two and with an unbounded one.
#[test]
fn the_wait_before_a_full_queue_is_shown() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("fast.csv");
    let rows: String = (0..100u64).map(|number| format!("0.{number:03},W,{},4096\n", number * 7919 * 4096)).collect();
    std::fs::write(&path, rows).expect("the trace can be written");
    let run = |words: &[&str]| {
        let fixed = [
            "simulate",
            path.to_str().unwrap(),
            "--columns",
            "time,op,offset,size",
            "-d",
            "cmr-7200:host.write_cache_bytes=0,host.schedule=fifo",
        ];
        json(&[&fixed[..], words, &["--no-baseline", "--json", "-q"]].concat())
    };
    let (full, open) = (run(&["--queue", "2"]), run(&["--arrival", "open"]));
    let of = |summary: &serde_json::Value, at: &str| {
        summary["drives"][0].pointer(at).and_then(|value| value.as_u64()).expect("a number")
    };
    let duration = of(&full, "/duration_ns");
    assert!(of(&full, "/queue_full_ns") > duration * 9 / 10, "{full}");
    // In order of arrival, each request completes at the same time with either queue. So with an unbounded one, its
    // latency is longer by the wait before the other.
    let before = of(&full, "/latency_ns/before_queue/mean");
    assert!(before > duration / 4 && of(&open, "/latency_ns/before_queue/max") == 0, "{before} of {duration}");
    let sum = before + of(&full, "/latency_ns/all/mean");
    assert!(sum.abs_diff(of(&open, "/latency_ns/all/mean")) <= 2, "{sum}: {open}");
    let warning = full["warnings"][0].as_str().expect("a warning");
    assert!(
        warning.contains("the queue of 2 requests was full for") && warning.contains("--arrival open"),
        "{warning}"
    );
    assert_eq!(open["warnings"], serde_json::json!([]));
}

/// Goal: idle time is no stall. Method: two bursts a minute apart, on a drive that stalls in neither.
#[test]
fn idle_windows_are_not_counted_as_stalls() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("bursts.csv");
    let rows: String = [0, 60]
        .iter()
        .flat_map(|second| (0..20).map(move |number| format!("{second}.{number:02},R,{},4096\n", number * 4096)))
        .collect();
    std::fs::write(&path, rows).expect("the trace can be written");
    let summary = json(&[
        "simulate",
        path.to_str().unwrap(),
        "--columns",
        "time,op,offset,size",
        "-d",
        "cmr-7200",
        "--no-baseline",
        "--json",
        "-q",
    ]);
    let windows = &summary["drives"][0]["windows"];
    assert_eq!(
        (&windows["zero"], &windows["busy"], &windows["stalled"]),
        (&59.into(), &2.into(), &0.into()),
        "{windows}"
    );
}

/// Goal: `--table` gives other programs the numbers of the JSON. Method: each cell of a time in CSV is compared with the
/// JSON's; Markdown and LaTeX have a row for each drive.
#[test]
fn tables_for_other_programs_have_the_numbers_of_the_json() {
    let words = ["simulate", "rw=randwrite,bs=4k,number_ios=300", "--drive", "imr-1t+track-map", "--drive", "cmr-7200"];
    let summary = json(&[&words[..], &["--json"]].concat());
    let table = |form: &str| {
        let output = imbrex(&[&words[..], &["--table", form]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let csv = table("csv");
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().expect("a header");
    let rows: Vec<Vec<&str>> = lines.collect();
    let drives = summary["drives"].as_array().expect("drives");
    assert_eq!(rows.len(), drives.len());
    for drive in drives {
        let row = rows.iter().find(|row| drive["drive"] == row[0]).expect("the drive has a row");
        for (name, at) in [
            ("write_mean_ns", "/latency_ns/write/mean"),
            ("write_p99_ns", "/latency_ns/write/p99"),
            ("duration_ns", "/duration_ns"),
            ("longest_stall_ns", "/longest_stall_ns"),
        ] {
            let place = names.iter().position(|column| *column == name).expect("the column is there");
            assert_eq!(drive.pointer(at).map(Value::to_string).as_deref(), Some(row[place]), "{name}");
        }
        let reads = names.iter().position(|column| *column == "read_mean_ns").expect("the column is there");
        assert_eq!(row[reads], "", "no reads were made");
    }
    // The baseline of the interlaced drive stands before it.
    let place = |name: &str| rows.iter().position(|row| row[0] == name).expect("a row");
    assert!(place("imr-1t+conventional") < place("imr-1t+track-map"));
    assert_eq!(table("markdown").lines().count(), 2 + drives.len());
    assert!(table("latex").contains("\\begin{tabular}{ll"));
    let refused = imbrex(&[&words[..], &["--table", "csv", "--json"]].concat());
    assert_eq!(refused.status.code(), Some(2));
}
