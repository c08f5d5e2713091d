//! Goal: help, lists, completions and man pages name everything that exists. Method: the built binary is compared with
//! the registries and with its own help.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn imbrex(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_imbrex")).args(words).stdin(Stdio::null()).output().expect("the program starts")
}

fn text(words: &[&str]) -> String {
    let output = imbrex(words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn lists_name_every_member_of_every_registry() {
    let all = text(&["list"]);
    for layer in imbrex_layer::registry::all() {
        assert!(all.contains(layer.name), "{}", layer.name);
    }
    for name in imbrex_disk::Profile::names() {
        assert!(all.contains(name), "{name}");
    }
    for format in imbrex_trace::formats::all() {
        assert!(all.contains(format.name), "{}", format.name);
    }
    for entry in imbrex_trace::generators::built_in() {
        assert!(all.contains(entry.name), "{}", entry.name);
    }
    let layers = text(&["list", "layers"]);
    for layer in imbrex_layer::registry::all() {
        for parameter in layer.parameters {
            assert!(layers.contains(&format!("{}:{}=", layer.name, parameter.key)), "{}:{}", layer.name, parameter.key);
        }
    }
    let document: Value = serde_json::from_str(&text(&["list", "--json"])).expect("JSON");
    assert_eq!(document["schema"], "imbrex.list/1");
}

#[test]
fn the_page_on_simulate_names_every_option() {
    let page = include_str!("../../../../docs/simulate.md");
    let help = text(&["simulate", "--help"]);
    let options = help.split_whitespace().filter(|word| word.starts_with("--"));
    // An optional value stands in brackets behind the name.
    let name = |word: &str| {
        word.split('[').next().unwrap_or(word).trim_end_matches([',', '.', ')', ';', ':', ']']).to_string()
    };
    for option in options.map(name) {
        assert!(option == "--help" || page.contains(&option), "docs/simulate.md does not name {option}");
    }
}

#[test]
fn the_page_on_simulate_names_every_option_of_a_sweep() {
    let page = include_str!("../../../../docs/simulate.md");
    let section = page.split("## Sweeps").nth(1).expect("it has a section on sweeps");
    let help = text(&["sweep", "--help"]);
    let options = help.split_whitespace().filter(|word| word.starts_with("--"));
    for option in options.map(|word| word.trim_end_matches([',', '.', ')', ';', ':', ']'])) {
        let is_everywhere = ["--help", "--quiet"].contains(&option);
        assert!(is_everywhere || section.contains(option), "docs/simulate.md does not name {option} of sweeps");
    }
}

#[test]
fn the_page_on_serving_names_every_option_and_every_bound() {
    let page = include_str!("../../../../docs/serve.md");
    let help = text(&["serve", "--help"]);
    let options = help.split_whitespace().filter(|word| word.starts_with("--"));
    for option in options.map(|word| word.trim_end_matches([',', '.', ')', ';', ':', ']'])) {
        let is_common = ["--help", "--quiet"].contains(&option);
        assert!(is_common || page.contains(option), "docs/serve.md does not name {option}");
    }
    // The line width of the help depends on the terminal.
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    // The program's defaults must be the library's.
    let (limits, pages) = (imbrex_serve::Limits::default(), imbrex_serve::PageLimits::default());
    for (option, default) in [
        ("--connections", limits.connections.to_string()),
        ("--peer-connections", limits.connections_per_peer.to_string()),
        ("--payload-memory", format!("{}MiB", limits.payload_bytes >> 20)),
        ("--peer-payload-memory", format!("{}MiB", limits.payload_bytes_per_peer >> 20)),
        ("--newcomer-rate", format!("{}MiB", limits.newcomer_bytes_per_s >> 20)),
        ("--shortage-time", limits.shortage_time.as_secs().to_string()),
        ("--handshake-time", limits.handshake_time.as_secs().to_string()),
        ("--request-time", limits.request_time.as_secs().to_string()),
        ("--reply-time", limits.reply_time.as_secs().to_string()),
        ("--page-connections", pages.connections.to_string()),
        ("--page-header", format!("{}KiB", pages.header_bytes >> 10)),
        ("--page-time", pages.header_time.as_secs().to_string()),
    ] {
        let of_option = help.split(&format!("{option} <")).nth(1).unwrap_or_else(|| panic!("no {option} in {help}"));
        let told = of_option.split("[default: ").nth(1).and_then(|rest| rest.split(']').next());
        assert_eq!(told, Some(default.as_str()), "{option}");
    }
}

#[test]
fn the_page_on_the_probe_names_every_option_and_every_test() {
    let page = include_str!("../../../../docs/probe.md");
    let help = text(&["probe", "--help"]);
    let options = help.split_whitespace().filter(|word| word.starts_with("--"));
    for option in options.map(|word| word.trim_end_matches([',', '.', ')', ';', ':', ']'])) {
        let is_common = ["--help", "--quiet"].contains(&option);
        assert!(is_common || page.contains(option), "docs/probe.md does not name {option}");
    }
    for experiment in imbrex_probe::experiments::all() {
        let row = format!("| `{}` | {} |", experiment.name, experiment.question);
        assert!(page.contains(&row), "docs/probe.md has no row {row}");
    }
}

#[test]
fn completions_and_man_pages_cover_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        // The script calls the program with this variable; `completions` tests the answers.
        assert!(text(&["completions", shell]).contains("IMBREX_COMPLETE"), "{shell}");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = imbrex(&["man", folder.path().to_str().expect("a path")]);
    assert!(output.status.success());
    for page in ["imbrex.1", "imbrex-simulate.1", "imbrex-trace-convert.1", "imbrex-list.1", "imbrex-reproduce.1"] {
        let text = std::fs::read_to_string(folder.path().join(page)).expect(page);
        assert!(text.contains(".TH") && text.contains(".SH \"EXIT STATUS\""), "{page}");
        let has_subcommands = page == "imbrex.1";
        assert!(has_subcommands || text.contains(".SH EXAMPLES"), "{page}");
    }
}

#[test]
fn traces_convert_to_every_format_and_read_back_the_same() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let words = "rw=randrw,bs=4k,size=1g,rate_iops=1000,number_ios=500";
    let first: Value = serde_json::from_str(&text(&["trace", "info", words, "--json"])).expect("JSON");
    for (name, to) in [("a.parquet", "imbrex"), ("a.iolog", "fio-iolog"), ("a.disksim", "disksim"), ("a.csv", "msr")] {
        let path = folder.path().join(name).to_string_lossy().into_owned();
        text(&["trace", "convert", words, &path, "--to", to]);
        let again: Value = serde_json::from_str(&text(&["trace", "info", &path, "--json"])).expect("JSON");
        for field in ["requests", "reads", "writes", "read_bytes", "write_bytes", "lba_end"] {
            assert_eq!(first[field], again[field], "{field} through {to}");
        }
    }
    let head = text(&["trace", "head", &folder.path().join("a.parquet").to_string_lossy(), "-n", "3"]);
    assert_eq!(head.lines().count(), 4, "{head}");
}

/// The page names tests as `FOLDER/tests/FILE.rs::NAME`, below `crates`.
#[test]
fn every_test_that_the_page_on_power_loss_names_is_there() {
    let page = include_str!("../../../../docs/power-loss.md");
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder of crates");
    let rows = page.lines().skip_while(|line| *line != "| promise | test |").skip(2);
    let mut named = 0;
    for row in rows.take_while(|line| line.starts_with('|')) {
        let tests: Vec<(&str, &str)> = row.split('`').filter_map(|word| word.split_once("::")).collect();
        assert!(!tests.is_empty(), "a promise without a test: {row}");
        for (file, name) in tests {
            let source = std::fs::read_to_string(crates.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(is_test(&source, name), "{file} has no test {name}");
            named += 1;
        }
    }
    assert!(named >= 40, "{named} tests are named");
}

/// Returns whether `source` has a function `name` with `#[test]` among the attributes above it.
fn is_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let function = format!("fn {name}()");
    let Some(at) = lines.iter().position(|line| line.starts_with(&function)) else { return false };
    lines[..at].iter().rev().take_while(|line| line.starts_with("#[")).any(|line| *line == "#[test]")
}
