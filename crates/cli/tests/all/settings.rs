//! Goal: no setting of a drive is dropped without a word. Method: every key of `[host]` and every parameter of every
//! layer is set on a drive of each kind; `drive info` shows it, or `drive create` refuses it.

use std::path::Path;
use std::process::{Command, Output};

use imbrex_layer::parameters::ParameterKind;
use imbrex_layer::{LayerInfo, registry};

/// The keys of `[host]`, with values that no profile has.
const HOST: [(&str, &str); 8] = [
    ("queue", "7"),
    ("schedule", "elevator"),
    ("age_limit_ns", "5000001"),
    ("write_cache_bytes", "2097152"),
    ("write_cache_acknowledge_ns", "7001"),
    ("read_ahead_bytes", "262144"),
    ("overhead_ns", "9001"),
    ("idle_threshold_ns", "3000000001"),
];

fn imbrex(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_imbrex")).args(words).output().unwrap()
}

/// Returns a small drive with `layer`.
fn drive_of(layer: &LayerInfo) -> String {
    let profile = match layer.recordings[0] {
        "conventional" => "cmr-7200",
        "shingled" => "seagate-st8000as0011",
        "caveat" => "caveat-1g",
        "interlaced" => "imr-1t",
        other => panic!("a drive of recording {other} is to be added here"),
    };
    format!("{profile}+{}", layer.name)
}

/// Makes the drive, and returns its facts, or `None` if it is refused.
fn facts_of(folder: &Path, drive: &str) -> Option<serde_json::Value> {
    let image = folder.join("drive.imbrex");
    let image = image.to_str().unwrap();
    let made = imbrex(&["drive", "create", image, "-d", drive]);
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    if !made.status.success() {
        assert_eq!(made.status.code(), Some(2), "{drive}: {said}");
        assert!(said.contains('\''), "{drive}: the refusal names no setting: {said}");
        return None;
    }
    let info = imbrex(&["drive", "info", image, "--json"]);
    assert!(info.status.success(), "{drive}: {}", String::from_utf8_lossy(&info.stderr));
    std::fs::remove_file(image).unwrap();
    Some(serde_json::from_slice(&info.stdout).unwrap())
}

#[test]
fn every_kind_of_drive_shows_the_host_settings_that_it_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let profile_page = include_str!("../../../../docs/profile.md");
    let listed = profile_page.split("## `host`").nth(1).unwrap().split("### ").next().unwrap();
    let listed = listed.lines().filter(|line| line.starts_with("| `")).map(|line| line.split('`').nth(1).unwrap());
    let keys: Vec<&str> = HOST.iter().map(|(key, _)| *key).chain(["controller"]).collect();
    assert!(listed.eq(keys), "the page of profiles lists other keys");
    for layer in registry::all() {
        let settings: Vec<_> = HOST.iter().map(|(key, value)| format!("host.{key}={value}")).collect();
        let drive = format!("{}:{}", drive_of(layer), settings.join(","));
        let facts = facts_of(folder.path(), &drive).unwrap_or_else(|| panic!("{drive} is refused"));
        for (key, value) in HOST {
            let shown = match &facts[key] {
                serde_json::Value::String(word) => word.clone(),
                other => other.to_string(),
            };
            assert_eq!(shown, value, "{drive}: {key}");
        }
    }
}

#[test]
fn every_layer_shows_the_parameters_that_it_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let (mut shown, mut refused) = (0, Vec::new());
    for layer in registry::all() {
        for parameter in layer.parameters {
            let values: Vec<String> = match parameter.kind {
                ParameterKind::Bytes => ["64k", "1MiB", "8MiB", "32MiB", "1GiB"].map(String::from).into(),
                ParameterKind::Count | ParameterKind::CountFrom(_) => {
                    ["3", "2", "5", "16", "200", "1"].map(String::from).into()
                }
                ParameterKind::Share | ParameterKind::ShareAboveZero => ["3%", "0.5"].map(String::from).into(),
                ParameterKind::Duration => ["7ms"].map(String::from).into(),
                ParameterKind::Switch => ["on", "off"].map(String::from).into(),
                ParameterKind::Choice(words) => words.iter().map(|word| word.to_string()).collect(),
            };
            let others = values.iter().filter(|value| *value != parameter.default);
            let made = others.filter_map(|value| {
                let setting = format!("{}={value}", parameter.key);
                // Heat in writes needs moves that are not paid back in sectors.
                let beside = if parameter.key == "heat" { ",payback=0" } else { "" };
                let facts = facts_of(folder.path(), &format!("{}:{setting}{beside}", drive_of(layer)))?;
                Some((setting, facts))
            });
            let Some((setting, facts)) = { made }.next() else {
                refused.push(format!("{}:{}", layer.name, parameter.key));
                continue;
            };
            let parameters = facts["parameters"].as_array().unwrap();
            assert!(parameters.iter().any(|given| *given == setting), "{}:{setting}: {parameters:?}", layer.name);
            shown += 1;
        }
    }
    // These drives have no flash and no tracks apart for conventional zones; an S-block must be smaller than its section;
    // `safety=paper` loses data in a power cut.
    let expected = [
        "flip-cache:safety",
        "media-cache:safety",
        "region-rmw:safety",
        "s-blocks:size",
        "set-associative:cache_medium",
        "set-associative:safety",
        "track-flip:safety",
        "zoned:conventional_zones",
    ];
    assert_eq!(refused, expected);
    assert!(shown > 80, "{shown} parameters");
}
