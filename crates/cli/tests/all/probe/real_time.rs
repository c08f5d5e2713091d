//! Goal: an unknown drive is characterised by its latencies alone, from another process, in real time. Method: drives
//! drawn at random, each an image served at a Unix socket; the verdict is compared with the true properties of the
//! drive, which follow from the draw: categories exactly, sizes within 5 %.

use imbrex_probe::experiments;
use imbrex_probe::{Confidence, Property, Value, Verdict};

use super::support::{Drawn, Size, draw, faults};
use super::{said, verdict};

use crate::nbd::common::*;

/// One drive of each kind: conventional, a cache on the platters in a journal, one by blocks, one of flash, several
/// caches.
const SEEDS: [u64; 5] = [26, 15, 96, 37, 5];
/// Budget that a user would give. A drive that does not clean when idle would take longer.
const BUDGET: &str = "70m";

fn word(text: &str) -> &'static str {
    text.to_string().leak()
}

/// Returns the printed verdict as the program's type.
fn read_back(printed: &serde_json::Value) -> Verdict {
    let property = |told: &serde_json::Value| Property {
        name: word(told["name"].as_str().unwrap()),
        value: match &told["value"] {
            serde_json::Value::Number(number) => Value::Number(number.as_f64().unwrap()),
            serde_json::Value::String(text) => Value::Word(word(text)),
            _ => Value::CannotTell,
        },
        unit: word(told["unit"].as_str().unwrap()),
        confidence: Confidence::Medium,
        at_least: told["at_least"].as_bool().unwrap_or(false),
        because: told["because"].as_str().unwrap().to_string(),
        evidence: Vec::new(),
    };
    let words = |name: &str| printed[name].as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_string());
    Verdict {
        properties: printed["properties"].as_array().unwrap().iter().map(property).collect(),
        left_out: words("left_out").collect(),
        target_ns: printed["target_ns"].as_u64().unwrap(),
        ..Verdict::default()
    }
}

/// Returns the properties with a wrong value, and those that are missing although their test was run to its end.
fn wrong(drawn: &Drawn) -> Vec<String> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (profile, image) = (path("drawn.toml"), path("image"));
    std::fs::write(&profile, &drawn.text).unwrap();
    let made = imbrex(&["drive", "create", &image, "--drive", &profile]);
    assert!(made.status.success(), "{}", said(&made));
    let server = Server::start(folder.path(), &[&image, "--time", "real"]);
    let words = ["probe", &server.uri(), "--destroy-data", "--really", "--json", "--budget", BUDGET];
    let output = imbrex(&words);
    assert!(output.status.success(), "{}", said(&output));
    let found = read_back(&verdict(&output));
    eprintln!("seed {}, {}: {} s; {}", drawn.seed, drawn.truth.kind, found.target_ns / 1_000_000_000, server.stop());
    let is_left_out = |fault: &String| {
        let name = fault.split(' ').next().unwrap();
        let mut experiments = experiments::all().iter().filter(|experiment| experiment.properties.contains(&name));
        found.word(name).is_none()
            && found.number(name).is_none()
            && experiments.any(|experiment| found.left_out.iter().any(|line| line.starts_with(experiment.name)))
    };
    let (left_out, faults): (Vec<String>, Vec<String>) =
        faults(&drawn.truth, &found).into_iter().partition(is_left_out);
    assert!(left_out.len() < found.properties.len() / 2, "most is told: {left_out:?}");
    faults
}

#[test]
#[ignore = "takes more than an hour: `make test-long`"]
fn drives_drawn_at_random_are_known_in_real_time_from_another_process() {
    let found: Vec<(u64, Vec<String>)> = std::thread::scope(|scope| {
        let probes = SEEDS.map(|seed| scope.spawn(move || (seed, wrong(&draw(seed, Size::Tiny)))));
        probes.into_iter().map(|probe| probe.join().unwrap()).collect()
    });
    assert!(found.iter().all(|(_, faults)| faults.is_empty()), "{found:#?}");
}
