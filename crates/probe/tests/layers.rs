//! Goal: whatever layer a drive has, the probe says nothing wrong with high confidence, and names the kind of most drives.
//! Method: drives drawn at random of each layer in the registry, all tests; of layers that are not in the papers' drives it
//! is only known what kind they are, and how they treat bottoms.

mod support;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use imbrex_probe::Confidence;
use support::{Size, draw_with, faults, probed_only, sure_and_wrong};

/// Of so many drives of a layer the kind must be named with high confidence, in hundredths: what a build named when this
/// was written, rounded down. Drives that rewrite a region in place cannot be told from others that do.
fn named_at_least(layer: &str) -> usize {
    match layer {
        // One drive in several shows it before it has written everything home.
        "region-rmw" | "top-buffer" => 0,
        _ => 100,
    }
}

/// The tests that a short run gives a layer: of those that fill a drive's cache only where that takes no time to simulate.
fn tests_of(layer: &str) -> &'static [&'static str] {
    match layer {
        "s-blocks" | "log-structured" => &["type", "cleaning", "cache-place"],
        _ => &[],
    }
}

/// Layers of drives that say themselves what they are are not probed.
fn layers() -> Vec<&'static str> {
    let all = imbrex_layer::registry::all();
    all.iter().filter(|info| !info.host_managed).map(|info| info.name).collect()
}

/// Probes `count` drives of each layer on as many threads as there are processors, and asserts.
fn probe_each(count: u64, is_whole: bool) {
    let layers = layers();
    let jobs: Vec<(&str, u64)> = (1..=count).flat_map(|seed| layers.iter().map(move |&layer| (layer, seed))).collect();
    let (next, told) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(&(layer, seed)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let size = if seed % 3 == 0 { Size::Fine } else { Size::Small };
                    let drawn = draw_with(layer, seed, size);
                    let verdict = probed_only(&drawn.text, if is_whole { &[] } else { tests_of(layer) });
                    let (mut wrong, is_named) = sure_and_wrong(&drawn, &verdict);
                    if drawn.truth.bands.len() > 1 {
                        let is_sure = |fault: &String| {
                            let name = fault.split(' ').next().unwrap_or("");
                            verdict.property(name).is_some_and(|found| found.confidence == Confidence::High)
                        };
                        wrong.extend(faults(&drawn.truth, &verdict).into_iter().filter(is_sure));
                    }
                    told.lock().expect("no thread panics with it").push((layer, seed, is_named, wrong));
                }
            });
        }
    });
    let told = told.into_inner().expect("no thread panics with it");
    let wrong: Vec<String> = (told.iter().filter(|(.., wrong)| !wrong.is_empty()))
        .map(|(layer, seed, _, wrong)| format!("{layer}, seed {seed}:\n  {}\n", wrong.join("\n  ")))
        .collect();
    assert!(wrong.is_empty(), "{} of {} drives:\n{}", wrong.len(), jobs.len(), wrong.concat());
    for layer in layers {
        let named = told.iter().filter(|(name, _, is_named, _)| *name == layer && *is_named).count();
        eprintln!("{layer}: {named} of {count} named with high confidence");
        assert!(100 * named >= named_at_least(layer) * count as usize, "{layer}: {named} of {count}");
    }
}

#[test]
fn twenty_drives_of_each_layer_are_not_mistaken() {
    probe_each(20, false);
}

#[test]
#[ignore = "takes many minutes: `make test-long`"]
fn two_hundred_drives_of_each_layer_are_not_mistaken() {
    probe_each(200, true);
}
