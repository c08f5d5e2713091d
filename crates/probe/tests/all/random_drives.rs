//! Goal: the probe finds the true properties of random drives: categories exactly, sizes within 5 %. Method: the truth
//! follows from a drive's parameters by simple arithmetic (`support`). A drive that once had a wrong verdict stays in
//! the test.

use crate::support::{Size, draw, faults, probed_text};

/// Probes the drives of these seeds on as many threads as there are processors; returns the errors of each.
fn wrong(seeds: &[u64], size: Size) -> Vec<String> {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let found = std::sync::Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some(&seed) = seeds.get(index) else { return };
                    let drawn = draw(seed, size);
                    let begun = std::time::Instant::now();
                    let faults = faults(&drawn.truth, &probed_text(&drawn.text));
                    if size == Size::Full {
                        let seconds = begun.elapsed().as_secs();
                        eprintln!(
                            "seed {seed}, {}: {} faults, {seconds} s {}",
                            drawn.truth.kind,
                            faults.len(),
                            faults.join("; ")
                        );
                    }
                    if !faults.is_empty() {
                        let told = format!("seed {seed}, {}:\n  {}\n", drawn.truth.kind, faults.join("\n  "));
                        found.lock().expect("no thread panics with it").push(told);
                    }
                }
            });
        }
    });
    let mut found = found.into_inner().expect("no thread panics with it");
    found.sort();
    found
}

/// Seeds beyond the first 200 that once had a wrong verdict.
const ONCE_WRONG: [u64; 7] = [209, 243, 257, 281, 296, 369, 426];

#[test]
fn two_hundred_drives_are_known() {
    let seeds: Vec<u64> = (1..=200).chain(ONCE_WRONG).collect();
    let wrong = wrong(&seeds, Size::Small);
    assert!(wrong.is_empty(), "{} of {} drives:\n{}", wrong.len(), seeds.len(), wrong.concat());
}

/// Seeds of the full range that once had a wrong verdict.
const LARGE_ONCE_WRONG: [u64; 2] = [140, 163];

#[test]
fn large_drives_once_wrong_are_known() {
    let wrong = wrong(&LARGE_ONCE_WRONG, Size::Full);
    assert!(wrong.is_empty(), "{}", wrong.concat());
}

/// Tests the full range: terabytes, caches of 1 to 64 GiB, maps of a thousand to a million entries. `IMBREX_DRIVES` is
/// the number of drives, `IMBREX_SEED` the first seed.
#[test]
#[ignore = "takes many minutes: `make probe-nightly`"]
fn large_drives_are_known() {
    let given = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: a number")))
    };
    let first = given("IMBREX_SEED", 1);
    let seeds: Vec<u64> = (first..first + given("IMBREX_DRIVES", 40)).collect();
    let wrong = wrong(&seeds, Size::Full);
    assert!(wrong.is_empty(), "{} of {} drives:\n{}", wrong.len(), seeds.len(), wrong.concat());
}
