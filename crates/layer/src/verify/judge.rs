//! The tests that every layer of this crate has to pass, as functions for layers of any crate.
//!
//! A program that brings its own layer calls [`everything`] in a test; each part is also a function of its own. A fault
//! is a panic that names the toy disk, the parameters and the seed.

use std::collections::BTreeSet;

use imbrex_disk::SharedDisk;

use super::cuts::{self, PowerCutTest, Tally};
use super::{Checker, toy};
use crate::context::Context;
use crate::info::LayerInfo;
use crate::layer::Layer;
use crate::parameters::{ConfigError, Parameters};
use crate::plan::reason::{Area, AreaKind};
use crate::plan::{GroupKind, Medium, Plan};

/// Runs all tests of this module on a layer, over every toy disk and every set of the layer's toy parameters. The
/// number of seeds is small, so the tests take a few seconds.
///
/// # Panics
///
/// If the layer fails a test. The message names the toy disk, the parameters and the seed.
pub fn everything(info: &'static LayerInfo) {
    described(info);
    random_runs(info, 0..2);
    papers_own_steps(info);
    every_cut_of_short_runs(info, Disks::All, 0..1);
    random_cuts_of_long_runs(info, Disks::All, 0..1);
    same_plans_twice(info);
}

/// Parses `key=value,key=value` to the pairs that the registry takes.
fn parameters(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(',').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').expect("key=value")).map(|(key, value)| (key.into(), value.into())).collect()
}

/// Builds the layer of `info` over `disk` with the parameters `toy`.
fn built(info: &'static LayerInfo, disk: &SharedDisk, toy: &str) -> Result<Box<dyn Layer>, ConfigError> {
    let parameters = Parameters::new(info.parameters, &parameters(toy))?;
    (info.build)(&Context { disk: disk.clone(), parameters })
}

/// The toy disks on which a test runs a layer.
#[derive(Clone, Copy, Debug)]
pub enum Disks {
    /// All toy disks that the layer accepts.
    All,
    /// One toy disk for each set of the layer's toy parameters. Disk `n` of those that the layer accepts is taken for
    /// set 0, the next one for set 1, and so on, round robin.
    One(usize),
}

/// Calls `test` with every toy disk of the layer's recordings and every set of the layer's toy parameters. The
/// arguments are the disk, a function that builds a new layer, and a description of both for messages. A combination
/// that the layer refuses is skipped with a message on standard error.
///
/// # Panics
///
/// If the layer has no sets of toy parameters, if it accepts no toy disk of a recording that it lists, or if no toy
/// disk fits one of its sets of toy parameters.
pub fn for_each_toy(info: &'static LayerInfo, test: impl FnMut(&SharedDisk, &dyn Fn() -> Box<dyn Layer>, &str)) {
    for_toys(info, Disks::All, test);
}

/// Calls `test` as [`for_each_toy`], for the combinations that `selected` selects.
fn for_toys(
    info: &'static LayerInfo,
    selected: Disks,
    mut test: impl FnMut(&SharedDisk, &dyn Fn() -> Box<dyn Layer>, &str),
) {
    assert!(!info.toys.is_empty(), "{} has no toy parameters, and so no tests", info.name);
    let disks: Vec<_> =
        info.recordings.iter().flat_map(|&name| toy::disks(name).map(move |disk| (name, disk))).collect();
    let mut untried_recordings: Vec<_> = info.recordings.to_vec();
    for (number, toy) in info.toys.iter().enumerate() {
        let mut fitting = Vec::new();
        for (recording, disk) in &disks {
            match built(info, &disk.disk, toy) {
                Ok(_) => fitting.push((recording, disk)),
                Err(error) => eprintln!("does not fit: {}:{toy} on {}: {error}", info.name, disk.name),
            }
        }
        assert!(!fitting.is_empty(), "{}: no toy disk suits {toy}", info.name);
        untried_recordings.retain(|untried| fitting.iter().all(|(recording, _)| *recording != untried));
        if let Disks::One(first) = selected {
            let count = fitting.len();
            fitting = vec![fitting.swap_remove((first + number) % count)];
        }
        for (_, disk) in fitting {
            let what = format!("{}:{toy} on {}", info.name, disk.name);
            let build = || built(info, &disk.disk, toy).expect("it was built a moment ago");
            test(&disk.disk, &build, &what);
        }
    }
    assert!(untried_recordings.is_empty(), "{}: no toy suits {untried_recordings:?}", info.name);
}

/// Executes `plans` random plans under the checker.
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
    let stores = stores_of(disk, layer);
    for number in 0..plans {
        let given = commands.plan(layer, &mut plan);
        checker.check(&plan, &given, layer).map_err(|error| format!("seed {seed}: {error}\n{given:?}\n{plan:?}"))?;
        check_reasons(&plan, &stores).map_err(|error| format!("seed {seed}, plan {number}: {error}\n{plan:?}"))?;
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

/// Returns the areas of the layer's stores.
///
/// # Panics
///
/// If runs of stores overlap, or one is empty or reaches past the disk.
fn stores_of(disk: &SharedDisk, layer: &dyn Layer) -> BTreeSet<Area> {
    let mut extents = Vec::new();
    layer.stores(&mut |extent| extents.push(extent));
    extents.sort_by_key(|extent| (extent.medium as u8, extent.start));
    for extent in &extents {
        let ends_on_disk = extent.medium == Medium::Flash || extent.end.0 <= disk.geometry.sectors().0;
        assert!(extent.start < extent.end && ends_on_disk, "{extent:?} is empty or reaches past the disk");
    }
    for pair in extents.windows(2) {
        assert!(pair[0].medium != pair[1].medium || pair[0].end <= pair[1].start, "{pair:?} overlap");
    }
    extents.into_iter().map(|extent| extent.area).collect()
}

/// Checks that each phase of the layer's own work has a reason, and that the reason names one of the layer's stores, or
/// the map.
fn check_reasons(plan: &Plan, stores: &BTreeSet<Area>) -> Result<(), String> {
    for phase in &plan.phases {
        let needs_reason = !matches!(phase.kind, GroupKind::Host | GroupKind::Recovery);
        if needs_reason != phase.reason.is_some() {
            return Err(format!("a phase of kind {:?} has the reason {:?}", phase.kind, phase.reason));
        }
        if let Some(store) = phase.reason.and_then(|reason| reason.store)
            && store.kind != AreaKind::Map
            && !stores.contains(&store)
        {
            return Err(format!("the reason names {store}, which is none of the layer's stores"));
        }
    }
    Ok(())
}

/// Tests with the [`Checker`] that 1,500 random plans lose no data, that a power cut at a barrier would lose none, and
/// that reads return the newest versions. After every 16th plan, the layer's self-check must pass, and its caches must
/// be within their bounds. Each phase of the layer's own work must have a reason. Runs once for each seed on every toy.
///
/// # Panics
///
/// If the layer fails the test.
pub fn random_runs(info: &'static LayerInfo, seeds: std::ops::Range<u64>) {
    for_each_toy(info, |disk, build, what| {
        for seed in seeds.clone() {
            run_checked(disk, build().as_mut(), true, seed, 1500).unwrap_or_else(|error| panic!("{what}: {error}"));
        }
    });
}

/// Tests that a layer with the parameter `safety=paper` loses no data as long as there is no power cut. If the layer
/// says that power cuts lose nothing either, tests that too, and that its plans equal those of `safety=power`. Does
/// nothing for a layer without the parameter `safety`.
///
/// # Panics
///
/// If the layer fails the test.
pub fn papers_own_steps(info: &'static LayerInfo) {
    if !info.parameters.iter().any(|known| known.key == "safety") {
        return;
    }
    for disk in info.recordings.iter().flat_map(|recording| toy::disks(recording)) {
        for toy in info.toys {
            let text = format!("{toy},safety=paper");
            let Ok(mut layer) = built(info, &disk.disk, &text) else { continue };
            let is_safe = layer.is_power_safe();
            run_checked(&disk.disk, layer.as_mut(), is_safe, 7, 1500)
                .unwrap_or_else(|error| panic!("{}:{text}: {error}", info.name));
            if is_safe {
                let [paper, power] =
                    [text.as_str(), toy].map(|text| built(info, &disk.disk, text).expect("it was built"));
                assert_equal_plans(paper, power, &format!("{}:{text}", info.name));
            }
        }
    }
}

/// Tests that two layers make equal plans for equal commands.
fn assert_equal_plans(mut one: Box<dyn Layer>, mut other: Box<dyn Layer>, what: &str) {
    let [mut of_one, mut of_other] = [(); 2].map(|()| toy::Commands::new(7, one.capacity(), 24));
    let (mut plan, mut equal) = (Plan::new(), Plan::new());
    for number in 0..1500 {
        of_one.plan(one.as_mut(), &mut plan);
        of_other.plan(other.as_mut(), &mut equal);
        assert_eq!(plan.steps, equal.steps, "{what}: plan {number}");
    }
}

fn cut(disk: &SharedDisk, build: &dyn Fn() -> Box<dyn Layer>, seed: u64, plans: u32, images: usize) -> Tally {
    let test = PowerCutTest { disk, build, seed, plans, sectors_max: 24, images_per_step: images };
    cuts::run(&test).unwrap_or_else(|error| panic!("{error}"))
}

/// Tests recovery from power cuts after every step, and inside every write, of a run of 40 random plans. If more than
/// three earlier writes are not durable yet at a cut, only some of their combinations are tried. Runs once for each
/// seed on every toy, on the selected `disks`.
///
/// # Panics
///
/// If a recovery loses data or fails, or if a run has 40 recoveries or fewer.
pub fn every_cut_of_short_runs(info: &'static LayerInfo, disks: Disks, seeds: std::ops::Range<u64>) {
    for_toys(info, disks, |disk, build, what| {
        eprintln!("{what}");
        for seed in seeds.clone() {
            let tally = cut(disk, build, seed, 40, usize::MAX);
            assert!(tally.images > 40, "{tally:?}");
        }
    });
}

/// Tests recovery from power cuts in a run of 200 random plans. After each write, journal record and barrier, the run
/// tries at most two of the states of the medium that a cut can leave there, chosen at random. Runs once for each seed
/// on every toy, on the selected `disks`. The seed of a run is 1,000 plus a number from `seeds`.
///
/// # Panics
///
/// If a recovery loses data or fails, or if a run has no cut after which it continued or no checkpoint.
pub fn random_cuts_of_long_runs(info: &'static LayerInfo, disks: Disks, seeds: std::ops::Range<u64>) {
    for_toys(info, disks, |disk, build, what| {
        eprintln!("{what}");
        for seed in seeds.clone() {
            let tally = cut(disk, build, 1000 + seed, 200, 2);
            assert!(tally.adopted > 0 && tally.checkpoints > 0, "{tally:?}");
        }
    });
}

/// Tests that the layer is deterministic: two equal layers make equal plans for 300 equal random commands. Runs on
/// every toy.
///
/// # Panics
///
/// If the plans differ.
pub fn same_plans_twice(info: &'static LayerInfo) {
    for_each_toy(info, |_, build, what| {
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

/// Tests that the layer's summary, source, mapping unit and the help of each parameter are not empty, and that each
/// default has the form of its parameter's kind. No layer is built.
///
/// # Panics
///
/// If the layer fails the test.
pub fn described(info: &'static LayerInfo) {
    assert!(!info.summary.is_empty() && !info.source.is_empty() && !info.mapping_unit.is_empty());
    for parameter in info.parameters {
        let given = [(parameter.key.to_string(), parameter.default.to_string())];
        let read = Parameters::new(info.parameters, &given);
        assert!(read.is_ok(), "{}: the default of {} is refused: {read:?}", info.name, parameter.key);
        assert!(!parameter.help.is_empty(), "{}: {} has no help", info.name, parameter.key);
    }
}
