//! Goal: `imbrex lab` works as a user types it, refuses wrong words, and its log is a trace that a simulation answers at the
//! same times. Method: the built program; the tests that need a kernel skip themselves aloud where none was built.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

fn imbrex(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_imbrex"));
    command.args(words).stdin(Stdio::null()).output().expect("the program starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns whether a kernel was built. Otherwise prints the name of the skipped test.
pub(crate) fn has_kernel(what: &str) -> bool {
    let is_built = imbrex_lab::Kernel::cached().is_ok();
    if !is_built {
        eprintln!("skipped: {what} (no kernel of the lab: imbrex lab build)");
    }
    is_built
}

#[test]
fn wrong_words_are_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8");
    let run: &[&str] = &["lab", "run", "--drive", "cmr-7200"];
    for (words, expected) in [
        (vec!["lab", "run", "--", "true"], "--drive"),
        (run.to_vec(), "COMMAND"),
        ([run, &["--keep-fs", "--", "true"]].concat(), "--fs"),
        ([run, &["--fs", "ntfs", "--", "true"]].concat(), "ext4"),
        ([run, &["--memory", "1MiB", "--", "true"]].concat(), "--memory"),
        ([run, &["--memory", "1000TiB", "--", "true"]].concat(), "at most 1TiB"),
        ([run, &["--cut", "soon", "--", "true"]].concat(), "--cut"),
        (
            vec!["lab", "run", "--image", "a", "--image", "./a", "--image", "a", "--", "true"],
            "--image a is given twice",
        ),
        ([run, &["--from", "1s", "--", "true"]].concat(), "--trace-events"),
    ] {
        let output = imbrex(&words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", said(&output));
        assert!(said(&output).contains(expected), "{words:?}: {}", said(&output));
    }
    // Before the run, which may take hours.
    let output = imbrex(&[run, &["--trace-events", "/nowhere/events", "--", "touch", "/nowhere/run"]].concat());
    if imbrex_lab::Kernel::cached().is_ok() {
        assert!(said(&output).contains("--trace-events /nowhere/events"), "{}", said(&output));
        assert!(!said(&output).contains("virtual time"), "{}", said(&output));
    }
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    let mut without = Command::new(env!("CARGO_BIN_EXE_imbrex"));
    without.args([run, &["--", "true"]].concat()).env("XDG_CACHE_HOME", path);
    let output = without.output().expect("the program starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("imbrex lab build"), "{}", said(&output));
    assert_eq!(fs::read_dir(path).expect("it is there").count(), 0);
}

#[test]
fn an_image_that_holds_something_gets_no_new_file_system() {
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("drive.img");
    let image_text = image.to_str().expect("UTF-8");
    assert!(imbrex(&["drive", "create", image_text, "--drive", "caveat-1g", "--quiet"]).status.success());
    let run: &[&str] = &["lab", "run", "--image", image_text, "--fs", "ext4"];
    // An empty image passes this check: without a kernel, that is the next error.
    let empty = imbrex(&[run, &["--kernel", "/nowhere/linux", "--", "true"]].concat());
    assert!(said(&empty).contains("/nowhere/linux"), "{}", said(&empty));
    assert!(imbrex(&["fs", "mkfs", image_text, "--quiet"]).status.success());
    let before = fs::read(&image).expect("an image");
    let output = imbrex(&[run, &["--", "true"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("holds") && said(&output).contains("--keep-fs"), "{}", said(&output));
    assert!(before == fs::read(&image).expect("an image"), "the image changed");
    // With --keep-fs, nothing is replaced.
    let kept = imbrex(&[run, &["--keep-fs", "--kernel", "/nowhere/linux", "--", "true"]].concat());
    assert!(said(&kept).contains("/nowhere/linux"), "{}", said(&kept));
}

#[test]
fn a_run_that_cannot_begin_leaves_no_folder() {
    if !has_kernel("a run of the lab that cannot begin") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("run");
    let words = ["lab", "run", "--drive", "cmr-7200", "--drive", "no-such-drive", "--out"];
    let output = imbrex(&[&words[..], &[out.to_str().expect("UTF-8"), "--", "true"]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("no-such-drive") && !out.exists(), "{}", said(&output));
}

#[test]
fn the_options_of_the_kernel_are_printed() {
    let output = imbrex(&["lab", "build", "--print-config"]);
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("CONFIG_UML_TIME_TRAVEL_SUPPORT=y") && text.contains("# CONFIG_UML_RANDOM is not set"));
}

/// Returns the columns `time` and `latency` of a log, in nanoseconds, in order of arrival.
fn log(path: &Path) -> Vec<(u64, u64)> {
    let ns = |text: &str| text.replace('.', "").parse::<u64>().expect("seconds with nine decimals");
    let text = fs::read_to_string(path).expect("a log");
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        (ns(fields[0]), ns(fields[5]))
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn a_simulation_of_the_log_answers_at_the_same_times() {
    if !has_kernel("a log of the lab in a simulation") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_string();
    let (drive, out) = ("emulated-smr-1:region_size=4MiB,cache_size=16MiB", at("run"));
    let script = "for i in 1 2 3; do cp -r /etc/init.d /mnt/vda/$i; sync; sleep 2; done; cat /mnt/vda/*/* > /dev/null";
    let events = at("events");
    let words = ["lab", "run", "--drive", drive, "--fs", "ext4", "--out", &out, "--trace-events", &events];
    let output = imbrex(&[&words[..], &["--", "sh", "-c", script]].concat());
    assert!(output.status.success(), "{}", said(&output));
    let expected = log(&folder.path().join("run/vda.csv"));
    let (trace, results) = (at("run/vda.csv"), at("results"));
    let columns = "time,op,offset,size,device,_,_";
    let words = ["simulate", &trace, "--columns", columns, "--arrival", "open", "--drive", drive, "--no-baseline"];
    let output = imbrex(&[&words[..], &["--out", &results, "--per-io", "--quiet"]].concat());
    assert!(output.status.success(), "{}", said(&output));
    let found = requests(&folder.path().join("results/ios.parquet"));
    assert_eq!(found.len(), expected.len());
    // A simulation begins with the first request.
    let first = expected[0].0;
    for (index, (found, (time, latency))) in found.iter().zip(expected).enumerate() {
        assert_eq!(*found, (time - first, time - first + latency), "request {index}");
    }
    // The file of events has the drive's name, and, as each request is a slice, many bytes for each.
    let events = fs::read(&events).expect("the events were written");
    let has = |text: &str| events.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has(&format!("imbrex drive 0: {drive}")) && has("cleaning of "), "{} bytes", events.len());
    assert!(events.len() > 40 * found.len(), "{} bytes for {} requests", events.len(), found.len());
}

/// Returns (arrival, end) in nanoseconds of each request of a simulation, in order of arrival.
fn requests(path: &Path) -> Vec<(u64, u64)> {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;
    let reader = SerializedFileReader::new(fs::File::open(path).expect("a file")).expect("Parquet");
    let names: Vec<String> =
        reader.metadata().file_metadata().schema_descr().columns().iter().map(|column| column.name().into()).collect();
    let at = |name: &str| names.iter().position(|each| each == name).unwrap_or_else(|| panic!("{name} in {names:?}"));
    let (sequence, arrival, end) = (at("sequence"), at("arrival_ns"), at("complete_ns"));
    let mut rows: Vec<(i64, u64, u64)> = reader
        .get_row_iter(None)
        .expect("rows")
        .map(|row| row.expect("a row"))
        // The last row of a drive has its work in the background.
        .filter(|row| row.get_long(sequence).expect("a number") >= 0)
        .map(|row| {
            let number = |column: usize| row.get_long(column).expect("a number");
            (number(sequence), number(arrival) as u64, number(end) as u64)
        })
        .collect();
    rows.sort_unstable();
    rows.into_iter().map(|(_, arrival, end)| (arrival, end)).collect()
}

#[test]
fn a_file_system_survives_a_cut_and_its_image_goes_on() {
    if !has_kernel("a power cut of the lab") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_string();
    let out = at("cut");
    let script = "while :; do date >> /mnt/vda/log; sync; done";
    let words =
        ["lab", "run", "--drive", "seagate-st8000as0022", "--fs", "ext4", "--cut", "2s", "--out", &out, "--json"];
    let output = imbrex(&[&words[..], &["--", "sh", "-c", script]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).expect("--json prints JSON");
    assert_eq!((summary["ended"].as_str(), summary["status"].is_null()), (Some("power-cut"), true));
    let page = fs::read_to_string(at("cut/vda.html")).expect("each new drive has a page");
    let log = fs::read_to_string(at("cut/vda.csv")).expect("each drive has a log");
    let is_moved = |line: &&str| ["read", "write", "write-fua"].contains(&line.split(',').nth(1).unwrap_or(""));
    let requests = log.lines().filter(is_moved).count() as u64;
    let shown = data_of(&page)["summary"]["workload"]["reads"].as_u64().unwrap_or(0)
        + data_of(&page)["summary"]["workload"]["writes"].as_u64().unwrap_or(0);
    assert_eq!(shown, requests, "the page shows all requests of the run");
    let again = imbrex(&[&words[..], &["--", "sh", "-c", script]].concat());
    assert_eq!(again.status.code(), Some(1), "a folder that exists");
    assert!(said(&again).contains("exists already"), "{}", said(&again));
    let image = at("cut/vda.img");
    let output =
        imbrex(&["lab", "run", "--image", &image, "--fs", "ext4", "--keep-fs", "--", "wc", "-l", "/mnt/vda/log"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let lines = String::from_utf8_lossy(&output.stdout);
    let lines: u64 = lines.split_whitespace().next().and_then(|word| word.parse().ok()).expect("a number");
    assert!(lines > 3, "{lines} lines were durable");
    let looked = at("looked");
    let output = imbrex(&["lab", "run", "--image", &image, "--out", &looked, "--", "fsck.ext4", "-fn", "/dev/vda"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(!Path::new(&at("looked/vda.html")).exists(), "the log does not have the state of an image");
}

/// Returns the data of a report page.
fn data_of(page: &str) -> Value {
    let (_, data) = page.split_once("id=\"data\">").expect("a page has its data");
    serde_json::from_str(data.split("</script>").next().expect("there is text")).expect("the data are JSON")
}

/// The table counts the command's requests, not those that make the file system.
#[test]
fn what_the_command_did_is_told_and_why_it_could_not_begin() {
    if !has_kernel("messages of the lab") {
        return;
    }
    let output = imbrex(&["lab", "run", "--drive", "cmr-7200", "--fs", "ext4", "--json", "--cut", "5s", "--", "true"]);
    let summary: Value = serde_json::from_slice(&output.stdout).expect("--json prints JSON");
    assert!(summary["drives"][0]["writes"].as_u64().is_some_and(|writes| writes < 40), "{summary}");
    assert!(said(&output).contains("the power was not cut"), "{}", said(&output));
    let small = ["lab", "run", "--drive", "cmr-7200:geometry.tracks=16", "--fs", "xfs", "--", "true"];
    let refused = [
        (vec!["lab", "run", "--drive", "hm-zoned", "--fs", "ext4", "--", "true"], "is host-managed"),
        (small.to_vec(), "300MB"),
    ];
    for (words, expected) in refused {
        let output = imbrex(&words);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {}", said(&output));
        assert!(said(&output).contains(expected), "{words:?}: {}", said(&output));
    }
    let fio = |words: &str| {
        let output = imbrex(&["lab", "run", "--drive", "cmr-7200", "--", "sh", "-c", &format!("echo {words}; :")]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        said(&output).contains("--clocksource=clock_gettime")
    };
    assert_eq!([fio("fio --name=x"), fio("fio --clocksource=clock_gettime"), fio("profio")], [true, false, false]);
}

/// Returns the processes that are in a folder.
fn processes_in(folder: &Path) -> Vec<u32> {
    let all = fs::read_dir("/proc").expect("there are processes").filter_map(|entry| {
        let number: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        (fs::read_link(format!("/proc/{number}/cwd")).ok()? == folder).then_some(number)
    });
    all.collect()
}

/// A guest that computes without a wait hears nothing of its drives, so it would go on when they are gone.
#[test]
fn no_guest_outlives_a_killed_run() {
    if !has_kernel("a killed run of the lab") {
        return;
    }
    const PATIENCE: Duration = Duration::from_secs(60);
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().canonicalize().expect("it exists").join("out");
    let words = ["lab", "run", "--drive", "cmr-7200", "--out", out.to_str().expect("UTF-8"), "--"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_imbrex"));
    command.args(words).args(["sh", "-c", "echo begun; while :; do :; done"]);
    let mut run = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let wait_until = |what: &str, is_so: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    wait_until("the command prints", &|| fs::read(out.join("output.txt")).is_ok_and(|text| text.starts_with(b"begun")));
    assert!(!processes_in(&out).is_empty(), "the guest runs in its folder");
    run.kill().expect("it runs");
    run.wait().expect("it was killed");
    wait_until("the guest ends", &|| processes_in(&out).is_empty());
}

/// Goal: synced files survive power cuts on a shingled drive that is cleaning. Method: a load that syncs file after file, cut at
/// many times; then the file system is mounted again, each synced file is compared, and its checker runs.
#[test]
#[ignore = "minutes: 50 cuts on each of five file systems; IMBREX_LAB_CUTS sets another number"]
fn file_systems_survive_power_cuts() {
    if !has_kernel("power cuts of the lab") {
        return;
    }
    let cuts: u64 = std::env::var("IMBREX_LAB_CUTS").map_or(50, |text| text.parse().expect("a number"));
    let load = "i=0; while :; do i=$((i + 1)); seq $i $((i + 500)) > /mnt/vda/f$i; sync -f /mnt/vda; echo $i; done";
    // A small one, since some file systems write to all parts of a new disk.
    let drive = "hm-zoned+set-associative:geometry.tracks=85";
    for (name, checker) in [
        ("ext4", "fsck.ext4 -fn"),
        ("xfs", "xfs_repair -n"),
        ("btrfs", "btrfs check"),
        ("f2fs", "fsck.f2fs --dry-run"),
        ("nilfs2", ""),
    ] {
        let mut durable = 0;
        for cut in 0..cuts {
            let folder = tempfile::tempdir().expect("a folder");
            let out = folder.path().join("cut").to_str().expect("UTF-8").to_string();
            // From the first writes on, and at no multiple of a turn of the disk.
            let time = format!("{}us", 1_000 + cut * 41_777);
            let seed = cut.to_string();
            let words = [
                "lab", "run", "--drive", drive, "--fs", name, "--seed", &seed, "--cut", &time, "--out", &out, "--quiet",
            ];
            let output = imbrex(&[&words[..], &["--", "sh", "-c", load]].concat());
            let which = format!("{name}, seed {seed}, cut after {time}");
            assert_eq!(output.status.code(), Some(0), "{which}: {}", said(&output));
            let printed = String::from_utf8_lossy(&output.stdout).lines().last().map(str::to_string);
            let synced: u64 = printed.map_or(0, |line| line.parse().expect("a number"));
            durable += synced;
            let judge = format!(
                "for i in $(seq 1 {synced}); do seq $i $((i + 500)) | cmp - /mnt/vda/f$i || exit 9; done; umount /mnt/vda; {checker} /dev/vda"
            );
            let judge = if checker.is_empty() { judge.replace("; umount /mnt/vda;  /dev/vda", "") } else { judge };
            let image = format!("{out}/vda.img");
            let words = ["lab", "run", "--image", &image, "--fs", name, "--keep-fs", "--", "sh", "-c", &judge];
            let output = imbrex(&words);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(output.status.code(), Some(0), "{which}, {synced} synced: {text}{}", said(&output));
        }
        eprintln!("{name}: {cuts} cuts, {durable} files were synced before");
    }
}
