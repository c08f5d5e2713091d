//! Goal: every layer in the registry keeps the promises of `layer.rs`. Method: each layer on every toy disk of every
//! recording that it accepts, with each of its sets of toy parameters. The tests are random runs under the checker,
//! power cuts at every step, and checkpoints.
//!
//! A new layer is tested as soon as it is in the registry. `IMBREX_SEEDS=n` runs n seeds instead of the few for a
//! commit, and `IMBREX_LAYER=name` tests only one layer. The two tests of recovery run each set of parameters on one of
//! its disks, and with `IMBREX_LONG=1` on all of them.

use imbrex_layer::verify::judge::{self, Disks};
use imbrex_layer::{LayerInfo, registry};

fn seeds(few: u64) -> std::ops::Range<u64> {
    let seeds = std::env::var("IMBREX_SEEDS").ok();
    0..seeds.map_or(few, |seeds| seeds.parse().expect("IMBREX_SEEDS is a number"))
}

fn layers() -> impl Iterator<Item = &'static LayerInfo> {
    let only = std::env::var("IMBREX_LAYER").ok();
    registry::all().into_iter().filter(move |info| only.as_ref().is_none_or(|only| only == info.name))
}

/// Returns one disk for each set of toy parameters, beginning with disk `first`, or all in the long form.
fn disks(first: usize) -> Disks {
    if std::env::var_os("IMBREX_LONG").is_some() { Disks::All } else { Disks::One(first) }
}

#[test]
fn random_runs_lose_nothing_and_read_the_newest() {
    layers().for_each(|info| judge::random_runs(info, seeds(2)));
}

#[test]
fn the_papers_own_steps_lose_nothing_without_a_power_cut() {
    layers().for_each(judge::papers_own_steps);
}

#[test]
fn recovery_at_every_cut_of_short_runs() {
    layers().for_each(|info| judge::every_cut_of_short_runs(info, disks(0), seeds(1)));
}

#[test]
fn recovery_at_random_cuts_of_long_runs() {
    layers().for_each(|info| judge::random_cuts_of_long_runs(info, disks(1), seeds(1)));
}

#[test]
fn two_runs_plan_the_same() {
    layers().for_each(judge::same_plans_twice);
}

#[test]
fn memory_and_parameters_are_described() {
    for info in layers() {
        judge::described(info);
        let page = format!("{}/../../docs/layers/{}.md", env!("CARGO_MANIFEST_DIR"), info.name);
        let text = std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{page}: {error}"));
        for parameter in info.parameters {
            assert!(text.contains(&format!("`{}`", parameter.key)), "{page} says nothing of `{}`", parameter.key);
        }
    }
}
