//! Goal: features that a researcher relies on: ratios against the right drive, messages about drives that cannot run
//! while the others do, sweeps by one option, listed parameters. Method: the built program, its JSON and its report.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn imbrex(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_imbrex")).args(words).stdin(Stdio::null()).output().expect("the program starts")
}

fn json(words: &[&str]) -> Value {
    let output = imbrex(words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("--json prints JSON")
}

/// Writes a trace of some writes, the last of which ends at `end_sector`.
fn trace_to(folder: &tempfile::TempDir, end_sector: u64) -> String {
    let path = folder.path().join("reaching.trace");
    let far = end_sector - 8;
    let lines: String = [0, 4096, far].iter().enumerate().map(|(at, lba)| format!("{at}.0 0 {lba} 8 0\n")).collect();
    std::fs::write(&path, lines).expect("the trace can be written");
    path.to_string_lossy().into_owned()
}

#[test]
fn every_layer_grows_to_a_workload_that_reaches_past_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // 400 GiB, a little more than the 307 GB of the drive.
    let trace = trace_to(&folder, 838_860_800);
    for layer in ["s-blocks", "set-associative", "region-rmw", "fully-associative", "log-structured"] {
        let drive = format!("cassuto-307g+{layer}");
        let summary = json(&["simulate", &trace, "--format", "disksim", "-d", &drive, "--no-baseline", "--json", "-q"]);
        let found = &summary["drives"][0];
        assert_eq!(found["completed"], 3, "{layer}: {found}");
        assert!(found["capacity_bytes"].as_u64() >= Some(400 << 30), "{layer}: {}", found["capacity_bytes"]);
    }
}

#[test]
fn drives_grow_to_the_size_in_a_generators_words() {
    // 300 GiB are more than the 307 GB of the first drive, which grows; the second drive has enough space.
    let run = |workload: &str, fit: &str| {
        let drives = ["-d", "cassuto-307g+s-blocks", "-d", "cmr-7200", "--no-baseline", "--json", "-q"];
        imbrex(&[&["simulate", workload, "--fit", fit][..], &drives].concat())
    };
    let of = |fit: &str| -> Value {
        let output = run("rw=randwrite,bs=4k,size=300GiB,number_ios=200", fit);
        assert!(output.status.success(), "{fit}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("--json prints JSON")
    };
    for fit in ["grow", "wrap", "scale"] {
        let summary = of(fit);
        let capacity = |index: usize| summary["drives"][index]["capacity_bytes"].as_u64().expect("a number");
        assert_eq!(capacity(0) >= 300 << 30, fit == "grow", "{fit}: {}", capacity(0));
        assert_eq!(capacity(1), of("wrap")["drives"][1]["capacity_bytes"], "{fit}");
        for index in [0, 1] {
            assert_eq!(summary["drives"][index]["completed"], 200, "{fit}");
        }
        assert!(summary["workload"]["lba_end"].as_u64() > Some((290 << 30) / 512), "{fit}: the whole size is used");
    }
    let refused = run("rw=randwrite,bs=4k,size=300GiB,number_ios=200", "error");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("reaches to") && said.contains("cassuto-307g+s-blocks"), "{said}");
}

#[test]
fn a_layer_of_coarse_shares_grows_to_any_size() {
    // The S-blocks of 1,500 sections make the capacity change by gigabytes: near 1000 GiB a drive a 512th larger has no
    // more capacity.
    for gigabytes in [300, 997, 1000, 1001, 1024] {
        let workload = format!("rw=randwrite,bs=4k,size={gigabytes}GiB,number_ios=20");
        let summary = json(&["simulate", &workload, "-d", "cassuto-307g+s-blocks", "--no-baseline", "--json", "-q"]);
        let capacity = summary["drives"][0]["capacity_bytes"].as_u64().expect("a number");
        assert!(capacity >= gigabytes << 30 && capacity <= (gigabytes << 30) * 102 / 100, "{gigabytes}: {capacity}");
    }
}

#[test]
fn a_drive_that_cannot_run_takes_no_other_with_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // 150 TB need more S-blocks of a megabyte than the layer supports.
    let trace = trace_to(&folder, 300_000_000_000);
    let drives = ["-d", "cassuto-307g+s-blocks", "-d", "cmr-7200", "--no-baseline"];
    let output = imbrex(&[&["simulate", &trace, "--format", "disksim"][..], &drives].concat());
    let (said, printed) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(printed.contains("cmr-7200") && !printed.contains("s-blocks"), "{printed}");
    assert!(said.contains("not run: drive 'cassuto-307g+s-blocks': sblock_size"), "{said}");
}

#[test]
fn ratios_are_against_each_drives_own_baseline() {
    let drives = ["-d", "imr-1t", "-d", "cassuto-307g+s-blocks", "-d", "cmr-7200+conventional"];
    let words = [&["simulate", "rw=randwrite,bs=4k,size=1GiB,number_ios=200", "--json", "-q"][..], &drives].concat();
    let summary = json(&words);
    let compared = |drive: &str| {
        let all = summary["drives"].as_array().expect("a list");
        all.iter().find(|found| found["drive"] == drive).expect("it ran")["compared_with"].clone()
    };
    assert_eq!(compared("imr-1t"), "imr-1t+conventional");
    assert_eq!(compared("cassuto-307g+s-blocks"), "cassuto-307g+conventional");
    assert_eq!(compared("cmr-7200+conventional"), "cmr-7200+conventional");
}

const READS: &str = "rw=randrw,bs=4k,size=1GiB,number_ios=300";

/// Returns the results of a run on `drives`.
fn results(drives: &[&str]) -> Vec<Value> {
    let mut words = vec!["simulate", READS, "--json", "-q"];
    drives.iter().for_each(|drive| words.extend(["-d", drive]));
    json(&words)["drives"].as_array().expect("a list").clone()
}

/// A baseline differs from its drive in recording and layer alone. So each drive has the ratios of its run alone.
#[test]
fn drives_of_one_profile_with_other_values_have_baselines_of_their_own() {
    for (key, values) in [
        ("mechanics.seek.max_ms", ["9", "90"]),
        ("geometry.surfaces", ["2", "8"]),
        ("host.overhead_ns", ["100000", "9000000"]),
        ("host.write_cache_bytes", ["0", "1048576"]),
    ] {
        let drives = values.map(|value| format!("imr-1t+track-map:{key}={value}"));
        let both = results(&[&drives[0], &drives[1]]);
        assert_eq!(both.len(), 4, "{key}: two baselines");
        for (index, value) in values.iter().enumerate() {
            let alone = results(&[&drives[index]]);
            let baseline = format!("imr-1t+conventional:{key}={value}");
            assert_eq!((&both[index]["compared_with"], alone.len()), (&baseline.as_str().into(), 2), "{key}");
            assert_eq!(both[2 + index]["drive"], baseline.as_str(), "{key}");
            for figure in ["duration_ratio", "latency_ratio"] {
                assert_eq!(both[index][figure], alone[0][figure], "{figure} of {}", drives[index]);
            }
        }
    }
}

#[test]
fn a_given_conventional_drive_is_the_baseline_of_drives_that_equal_it_in_all_else() {
    let slow = "imr-1t+track-map:interval=500,mechanics.seek.max_ms=90";
    // The plain conventional drive has other seeks.
    let found = results(&[slow, "imr-1t+conventional"]);
    let baseline = "imr-1t+conventional:mechanics.seek.max_ms=90";
    assert_eq!((found.len(), &found[0]["compared_with"]), (3, &baseline.into()));
    assert_eq!((&found[1]["compared_with"], &found[2]["baseline"]), (&"imr-1t+conventional".into(), &true.into()));
    assert_eq!(found[0]["latency_ratio"], results(&[slow])[0]["latency_ratio"]);
    // One that has the same seeks, in nanoseconds, is its baseline.
    let given = "imr-1t+conventional:mechanics.seek.max_ns=90000000";
    let found = results(&[given, slow]);
    assert_eq!((found.len(), &found[1]["compared_with"]), (2, &given.into()));
    // A drive whose layer is conventional by default is one, too.
    let found = results(&["cmr-7200", "cmr-7200+conventional"]);
    assert_eq!((found.len(), &found[0]["compared_with"]), (2, &"cmr-7200".into()));
}

#[test]
fn drives_that_differ_in_recording_and_layer_alone_share_a_baseline() {
    let drives = [
        "imr-1t+track-map:interval=500",
        "imr-1t+imr-rmw",
        "imr-1t+track-map:layer.track-map.interval=2000",
        "imr-1t+imr-rmw:mechanics.seek.max_ms=90",
        "imr-1t+track-map:mechanics.seek.max_ns=90000000",
    ];
    let found = results(&drives);
    let compared: Vec<_> = found.iter().map(|drive| drive["compared_with"].as_str().expect("a drive")).collect();
    let (plain, slow) = ("imr-1t+conventional", "imr-1t+conventional:mechanics.seek.max_ms=90");
    assert_eq!(compared, [plain, plain, plain, slow, slow, plain, slow]);
    let output = imbrex(&["simulate", READS, "-q", "-d", drives[0], "-d", drives[3]]);
    let table = String::from_utf8_lossy(&output.stdout);
    for (drive, baseline) in [(drives[0], plain), (drives[3], slow)] {
        assert!(table.contains(&format!("{baseline} (baseline)")), "{table}");
        assert!(table.contains(&format!("(×): ratio to {baseline}: {drive}\n")), "{table}");
    }
}

#[test]
fn a_sweep_is_one_flag_and_is_drawn_against_its_parameter() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let out = out.to_string_lossy();
    let sweep = "emulated-smr-1:cache_share=1%..4%/1%";
    let words = ["simulate", "rw=randwrite,bs=4k,size=1GiB,number_ios=300", "-d", sweep, "--json", "-q", "--out", &out];
    let summary = json(&words);
    let drives: Vec<_> = summary["drives"].as_array().expect("a list").iter().map(|drive| &drive["drive"]).collect();
    let wanted: Vec<String> = (1..5).map(|share| format!("emulated-smr-1:cache_share={share}%")).collect();
    assert_eq!(drives[..4], wanted.iter().collect::<Vec<_>>()[..], "and a baseline: {drives:?}");
    assert_eq!(drives.len(), 5);
    let page = std::fs::read_to_string(format!("{out}/report.html")).expect("there is a report");
    assert!(page.contains("By parameter") && page.contains(">cache_share=2%</button>"), "no chart, or a long legend");
    assert_eq!(imbrex(&["simulate", "demo", "-d", "emulated-smr-1:cache_share=1%..4%"]).status.code(), Some(2));
}

#[test]
fn an_address_past_any_drive_is_an_error() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("far.trace");
    std::fs::write(&path, "0.0 0 9223372036854775807 8 0\n").expect("the trace can be written");
    let output = imbrex(&["simulate", &path.to_string_lossy(), "--format", "disksim", "-d", "cmr-7200"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(1 | 2)) && output.stdout.is_empty(), "{said}");
}

#[test]
fn values_that_no_drive_has_are_refused_by_name() {
    for (drive, says) in [
        ("hm-zoned:geometry.tracks=0", "tracks"),
        ("cmr-7200:host.overhead_ns=9223372036854775807", "host.overhead_ns"),
        ("cmr-7200:host.write_cache_acknowledge_ns=60000000001", "at most 60000000000 ns"),
        ("cmr-7200:mechanics.seek.short_base_ns=18446744073709551615", "seek.short_base_ns"),
        ("cmr-7200:mechanics.seek.long_thousand_tracks_ns=4294967295", "long_thousand_tracks_ns"),
        ("emulated-smr-2:flash.write_ns=9223372036854775807", "flash.write_ns"),
        ("emulated-smr-2:flash.bytes_per_second=1", "flash.bytes_per_second"),
        ("cassuto-307g:mechanics.media_bytes_per_second=1", "media_bytes_per_second"),
        ("cmr-7200+media-cache:cache_size=0", "cache_size"),
        ("cmr-7200+fully-associative:band_size=4k", "band_size"),
        ("cmr-7200+log-structured:zone_size=4k", "zone_size"),
        ("seagate-st5000as0011+region-rmw:region_size=512", "region_size"),
    ] {
        let words = ["simulate", "rw=randrw,bs=4k,number_ios=20", "-d", drive, "--no-baseline", "--json", "-q"];
        let output = imbrex(&words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{drive}: {said}");
        assert!(said.contains(says) && output.stdout.is_empty(), "{drive}: {said}");
    }
}

#[test]
fn the_table_is_as_narrow_as_columns_says() {
    let words = ["simulate", "rw=randrw,bs=4k,size=1g,number_ios=50", "-d", "imr-1t", "--no-baseline", "-q"];
    let of = |columns: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_imbrex")).args(words).env("COLUMNS", columns).output();
        String::from_utf8(output.expect("the program starts").stdout).expect("it is text")
    };
    for columns in [60, 80, 120] {
        let table = of(&columns.to_string());
        let longest = table.lines().skip(1).map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(longest <= columns && table.contains("\n  done 50"), "{columns}: {table}");
    }
    // One line per drive where the terminal is wide enough, or where the width is unknown.
    assert!(of("400").contains(" imr-1t    50") && of("").contains(" imr-1t    50"), "{}", of("400"));
}

#[test]
fn numbers_of_nothing_are_wrong_words() {
    let trace = "rw=randwrite,bs=4k,number_ios=20";
    for words in [
        &["simulate", trace, "--limit", "0"][..],
        &["trace", "convert", trace, "nothing.csv", "--limit", "0"],
        &["trace", "info", trace, "--read-flag", "2"],
        &["probe", "sim:cmr-7200", "--budget", "0"],
    ] {
        let output = imbrex(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout.is_empty(), "{words:?}");
    }
}

#[test]
fn layers_and_drives_are_listed_one_by_one() {
    let layer = json(&["list", "layers", "s-blocks", "--json"]);
    let shown = String::from_utf8(imbrex(&["list", "layers", "s-blocks"]).stdout).expect("it is text");
    let parameters = layer["parameters"].as_array().expect("a list");
    assert!(parameters.len() > 5);
    for parameter in parameters {
        for field in ["key", "type", "takes", "default", "help"] {
            assert!(parameter[field].is_string(), "{parameter}");
        }
        let line = format!("{}={}", parameter["key"].as_str().unwrap(), parameter["default"].as_str().unwrap());
        assert!(shown.contains(&line), "{line}");
    }
    assert_eq!(
        json(&["list", "layers", "--json"])["layers"][0]["parameters"].as_array().map(Vec::is_empty),
        Some(false)
    );
    // The printed profile of a drive can be read as a drive again.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("again.toml");
    std::fs::write(&path, imbrex(&["list", "drives", "imr-1t"]).stdout).expect("it can be written");
    let run = |drive: &str| {
        json(&["simulate", "rw=randwrite,bs=4k,number_ios=50", "-d", drive, "--no-baseline", "--json", "-q"])["drives"]
            [0]["duration_ns"]
            .clone()
    };
    assert_eq!(run("imr-1t"), run(&path.to_string_lossy()));
    assert_eq!(imbrex(&["list", "layers", "no-such"]).status.code(), Some(2));
}

/// Returns the rows of a table in CSV without quoted cells, its headings first.
fn csv(words: &[&str]) -> Vec<Vec<String>> {
    let output = imbrex(&[words, &["--table", "csv"]].concat());
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| line.split(',').map(str::to_string).collect()).collect()
}

#[test]
fn every_command_that_prints_a_table_prints_it_for_programs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (image, store) = (at("drive.img"), at("store.img"));
    for (path, drive) in [(&image, "cmr-7200"), (&store, "strict-append")] {
        let made = imbrex(&["drive", "create", path, "--drive", drive, "-q"]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    let made = imbrex(&["fs", "mkfs", &store, "-q"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));

    for words in [&["trace", "info", READS][..], &["drive", "info", &image], &["fs", "stat", &store]] {
        let rows = csv(words);
        assert_eq!(rows[0], ["figure", "value"], "{words:?}");
        let document = json(&[words, &["--json"]].concat());
        let mut compared = 0;
        for row in &rows[1..] {
            let found = row[0].split('.').fold(&document, |value, part| match part.parse::<usize>() {
                Ok(index) => &value[index],
                Err(_) => &value[part],
            });
            if let Some(number) = found.as_f64() {
                assert_eq!(row[1].parse::<f64>().ok(), Some(number), "{words:?}: {row:?}");
                compared += 1;
            }
        }
        assert!(compared >= 5, "{words:?}: {compared} numbers");
    }
    let explain = ["explain", READS, "-d", "cassuto-307g+s-blocks", "--worst", "3", "-q"];
    let (rows, document) = (csv(&explain), json(&[&explain[..], &["--json"]].concat()));
    let requests = document["drives"][0]["requests"].as_array().expect("a list");
    let parts: usize = requests.iter().map(|request| request["parts"].as_array().map_or(0, Vec::len)).sum();
    assert_eq!((rows.len() - 1, requests.len()), (parts, 3));
    let column = |name: &str| rows[0].iter().position(|heading| heading == name).expect("a column");
    let number = requests[0]["number"].to_string();
    let of_first = rows[1..].iter().filter(|row| row[column("request")] == number);
    let sum: u64 = of_first.map(|row| row[column("duration_ns")].parse::<u64>().expect("nanoseconds")).sum();
    assert_eq!(Some(sum), requests[0]["latency_ns"].as_u64(), "the parts sum to the latency");

    let capacity =
        ["fs", "capacity", "--did", "16", "--fit", "best,first", "--size", "64MiB", "--operations", "500", "-q"];
    let (rows, document) = (csv(&capacity), json(&[&capacity[..], &["--json"]].concat()));
    assert_eq!(rows.len(), 3);
    for (row, search) in rows[1..].iter().zip(document["searches"].as_array().expect("a list")) {
        assert_eq!((row[0].as_str(), &row[1][..]), ("16", search["fit"].as_str().expect("a name")));
        assert_eq!(row[2].parse::<f64>().ok(), search["over_allocation_percent"].as_f64());
    }
}

#[test]
fn tables_fold_on_a_narrow_terminal() {
    let folded = |words: &[&str], columns: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_imbrex")).args(words).env("COLUMNS", columns).output();
        let output = output.expect("the program starts");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let capacity = ["fs", "capacity", "--did", "16", "--fit", "best", "--size", "64MiB", "--operations", "500", "-q"];
    for words in [&capacity[..], &["list", "generators"]] {
        let (wide, narrow) = (folded(words, "400"), folded(words, "60"));
        assert!(wide.lines().any(|line| line.chars().count() > 60), "{words:?}: {wide}");
        assert!(narrow.lines().count() > wide.lines().count(), "{narrow}");
        let values = |text: &str| text.split_whitespace().filter(|word| word.contains('%')).count();
        assert_eq!(values(&wide), values(&narrow), "{narrow}");
    }
    let narrow = folded(&capacity, "60");
    assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
}

/// Returns the width and the height in a PNG file.
fn png_size(bytes: &[u8]) -> (u32, u32) {
    assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    (number(16), number(20))
}

#[test]
fn charts_are_written_as_svg_and_png_of_a_papers_column() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let charts = folder.path().join("a").join("charts");
    let words = ["simulate", READS, "-d", "cassuto-307g+s-blocks", "-q", "--charts"];
    let output = Command::new(env!("CARGO_BIN_EXE_imbrex")).args(words).arg(&charts).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
    let mut names: Vec<String> = std::fs::read_dir(&charts)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert!(names.iter().any(|name| name.starts_with("latency-read")), "{names:?}");
    let of = |ending: &str| -> Vec<String> {
        names.iter().filter_map(|name| name.strip_suffix(ending)).map(str::to_string).collect()
    };
    assert_eq!(of(".svg"), of(".png"));
    assert_eq!(names.len(), 2 * of(".svg").len());
    for name in of(".svg") {
        let svg = std::fs::read_to_string(charts.join(format!("{name}.svg"))).expect("a text");
        let size = |word: &str| -> f64 {
            let text = svg.split(&format!(" {word}=\"")).nth(1).and_then(|rest| rest.split("mm\"").next());
            text.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{name}: no {word} in mm: {svg}"))
        };
        assert_eq!(size("width"), 88.0, "{name}");
        assert!(!svg.contains("var(--"), "{name}: colours of a page");
        // 88 mm at 600 dots per inch.
        let (width, height) = png_size(&std::fs::read(charts.join(format!("{name}.png"))).expect("a file"));
        assert_eq!(width, 2079, "{name}");
        assert!((f64::from(height) - 2079.0 * size("height") / 88.0).abs() <= 3.0, "{name}: {height}");
    }
    // Something else under the folder's name is refused before the simulation.
    let file = folder.path().join("file");
    std::fs::write(&file, "mine").expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_imbrex")).args(words).arg(&file).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("a file stands in the way"), "{said}");
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "mine");
}
