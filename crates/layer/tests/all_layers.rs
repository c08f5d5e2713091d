//! Goal: every layer in the registry keeps the promises of `layer.rs`. Method: each on every toy disk of every recording
//! it accepts, with each of its toy parameters: random runs under the checker, power cuts at every step, checkpoints.
//!
//! A new layer is found by its registry line. `IMBREX_SEEDS=n` runs n seeds instead of the few that fit a commit,
//! `IMBREX_LAYER=name` one layer alone.

use imbrex_disk::SharedDisk;
use imbrex_layer::verify::cuts::{self, Tally, Trial};
use imbrex_layer::verify::{toy, Checker};
use imbrex_layer::{registry, Layer, Medium, Plan};

/// `key=value,key=value` as the registry takes it.
fn parameters(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(',').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').expect("key=value")).map(|(key, value)| (key.into(), value.into())).collect()
}

fn seeds(few: u64) -> std::ops::Range<u64> {
    let seeds = std::env::var("IMBREX_SEEDS").ok();
    0..seeds.map_or(few, |seeds| seeds.parse().expect("IMBREX_SEEDS is a number"))
}

/// Calls `test` with every layer, toy disk and toy parameters. A disk that a layer refuses is skipped aloud, but each
/// layer takes a disk of every recording it lists, and each of its toys suits some disk.
fn for_each_toy(mut test: impl FnMut(&SharedDisk, &dyn Fn() -> Box<dyn Layer>, &str)) {
    for info in registry::all() {
        if std::env::var("IMBREX_LAYER").is_ok_and(|only| only != info.name) {
            continue;
        }
        assert!(!info.toys.is_empty(), "{} has no toy parameters, and so no tests", info.name);
        let mut untried_toys: Vec<_> = info.toys.to_vec();
        let mut untried_recordings: Vec<_> = info.recordings.to_vec();
        for (recording, disk) in info.recordings.iter().flat_map(|&name| toy::disks(name).map(move |disk| (name, disk)))
        {
            for toy in info.toys {
                let what = format!("{}:{toy} on {}", info.name, disk.name);
                let build = || registry::build(info.name, &disk.disk, &parameters(toy));
                if let Err(error) = build() {
                    eprintln!("does not fit: {what}: {error}");
                    continue;
                }
                untried_toys.retain(|untried| untried != toy);
                untried_recordings.retain(|untried| *untried != recording);
                test(&disk.disk, &|| build().expect("it was built a moment ago"), &what);
            }
        }
        assert!(untried_toys.is_empty(), "{}: no toy disk suits {untried_toys:?}", info.name);
        assert!(untried_recordings.is_empty(), "{}: no toy suits {untried_recordings:?}", info.name);
    }
}

/// A run of `plans` random plans under the checker.
fn run_checked(
    disk: &SharedDisk,
    layer: &mut dyn Layer,
    power_safe: bool,
    seed: u64,
    plans: u32,
) -> Result<(), String> {
    let mut checker = Checker::new(disk, layer, power_safe);
    let mut commands = toy::Commands::new(seed, layer.capacity(), 24);
    let mut plan = Plan::new();
    for number in 0..plans {
        let given = commands.plan(layer, &mut plan);
        checker.check(&plan, &given, layer).map_err(|error| format!("seed {seed}: {error}\n{given:?}\n{plan:?}"))?;
        if number % 16 == 0 {
            layer.self_check().map_err(|violation| format!("seed {seed}, plan {number}: {violation}"))?;
            layer.caches(&mut |cache| {
                assert!(cache.used <= cache.size && cache.start < cache.end, "seed {seed}, plan {number}: {cache:?}");
                let ends_on_disk = cache.end.0 <= disk.geometry.sectors().0;
                assert!(cache.medium == Medium::Flash || ends_on_disk, "{cache:?} reaches past the disk");
            });
        }
    }
    Ok(())
}

#[test]
fn random_runs_lose_nothing_and_read_the_newest() {
    for_each_toy(|disk, build, what| {
        for seed in seeds(2) {
            run_checked(disk, build().as_mut(), true, seed, 1500).unwrap_or_else(|error| panic!("{what}: {error}"));
        }
    });
}

#[test]
fn the_papers_own_steps_lose_nothing_without_a_power_cut() {
    for info in registry::all().iter().filter(|info| info.parameters.iter().any(|known| known.key == "safety")) {
        for recording in info.recordings {
            for disk in toy::disks(recording) {
                for toy in info.toys {
                    let text = format!("{toy},safety=paper");
                    let Ok(mut layer) = registry::build(info.name, &disk.disk, &parameters(&text)) else { continue };
                    run_checked(&disk.disk, layer.as_mut(), false, 7, 1500)
                        .unwrap_or_else(|error| panic!("{}:{text}: {error}", info.name));
                }
            }
        }
    }
}

fn cut(disk: &SharedDisk, build: &dyn Fn() -> Box<dyn Layer>, seed: u64, plans: u32, images: usize) -> Tally {
    let trial = Trial { disk, build, seed, plans, sectors_max: 24, images_per_step: images };
    cuts::run(&trial).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn recovery_at_every_cut_of_short_runs() {
    for_each_toy(|disk, build, what| {
        eprintln!("{what}");
        for seed in seeds(1) {
            let tally = cut(disk, build, seed, 40, usize::MAX);
            assert!(tally.images > 40, "{tally:?}");
        }
    });
}

#[test]
fn recovery_at_random_cuts_of_long_runs() {
    for_each_toy(|disk, build, what| {
        eprintln!("{what}");
        for seed in seeds(1) {
            let tally = cut(disk, build, 1000 + seed, 200, 2);
            assert!(tally.adopted > 0 && tally.checkpoints > 0, "{tally:?}");
        }
    });
}

#[test]
fn two_runs_plan_the_same() {
    for_each_toy(|_, build, what| {
        let run = || {
            let mut layer = build();
            let mut commands = toy::Commands::new(3, layer.capacity(), 24);
            let (mut plan, mut all) = (Plan::new(), Vec::new());
            for _ in 0..300 {
                commands.plan(layer.as_mut(), &mut plan);
                all.push(plan.clone());
            }
            all
        };
        assert!(run() == run(), "{what} plans differently the second time");
    });
}

#[test]
fn memory_and_parameters_are_described() {
    for info in registry::all() {
        assert!(!info.summary.is_empty() && !info.source.is_empty() && !info.mapping_unit.is_empty());
        for parameter in info.parameters {
            let given = [(parameter.key.to_string(), parameter.default.to_string())];
            let read = imbrex_layer::Parameters::new(info.parameters, &given);
            assert!(read.is_ok(), "{}: the default of {} is refused: {read:?}", info.name, parameter.key);
            assert!(!parameter.help.is_empty(), "{}: {} has no help", info.name, parameter.key);
        }
        let page = format!("{}/../../docs/layers/{}.md", env!("CARGO_MANIFEST_DIR"), info.name);
        let text = std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{page}: {error}"));
        for parameter in info.parameters {
            assert!(text.contains(&format!("`{}`", parameter.key)), "{page} says nothing of `{}`", parameter.key);
        }
    }
}
