//! Goal: no layer loses acknowledged data, on bytes. Method: random work with every layer on every toy disk, with a
//! power cut after every act. Any subset of the blocks written since the last flush survives. Each image is reopened
//! and compared (`verify::power_loss`).
//!
//! A usual run takes a third of the subjects of each layer, a run with `IMBREX_LONG=1` all of them. `IMBREX_SEEDS=n`
//! runs n seeds instead of one, `IMBREX_LAYER=name` only one layer. A loss prints its seed and the numbers of the
//! fewest operations that still fail: put both into `KEPT`.

use std::time::Instant;

use imbrex_device::image::Bounds;
use imbrex_device::verify::power_loss::{Loss, Tally, Trial, run, run_actions};
use imbrex_sim::Drive;

use crate::common;

/// A loss found once: part of the subject's name, seed, number of operations drawn, and the operations that are needed.
struct Kept {
    subject: &'static str,
    seed: u64,
    drawn: u32,
    actions: &'static [u32],
}

/// Every loss ever found.
const KEPT: &[Kept] = &[];

fn as_it_is(_: &mut Drive) {}

fn seeds(few: u64) -> std::ops::Range<u64> {
    let seeds = std::env::var("IMBREX_SEEDS").ok();
    0..seeds.map_or(few, |seeds| seeds.parse().expect("IMBREX_SEEDS is a number"))
}

fn trial(subject: &common::Subject, seed: u64, actions: u32, images_per_act: usize) -> Result<Tally, Box<Loss>> {
    trial_within(Bounds::default(), subject, seed, actions, images_per_act)
}

fn trial_within(
    bounds: Bounds,
    subject: &common::Subject,
    seed: u64,
    actions: u32,
    images_per_act: usize,
) -> Result<Tally, Box<Loss>> {
    let header = &subject.header;
    run(&Trial { header, prepare: &as_it_is, seed, actions, sectors_max: 24, images_per_act, bounds, is_checked: true })
}

/// Runs `test` on each subject, prints the sums of each layer, and returns the sum of all.
fn for_each(subjects: Vec<common::Subject>, mut test: impl FnMut(&common::Subject) -> Tally) -> Tally {
    let mut all = Tally::default();
    let mut sums: Vec<(String, Tally, f64)> = Vec::new();
    for subject in subjects {
        let begun = Instant::now();
        let tally = test(&subject);
        let layer = &subject.header.layer;
        if sums.last().is_none_or(|(last, ..)| last != layer) {
            sums.push((layer.clone(), Tally::default(), 0.0));
        }
        let (_, sum, seconds) = sums.last_mut().expect("pushed just now");
        *sum += tally;
        all += tally;
        *seconds += begun.elapsed().as_secs_f64();
    }
    println!(
        "| layer | acts and flushes | images opened | torn | openings cut | gone on after a cut | checkpoints | s |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (layer, tally, seconds) in sums {
        let Tally { events, images, torn, openings_cut, later_openings_cut: _, adopted, checkpoints } = tally;
        println!(
            "| {layer} | {events} | {images} | {torn} | {openings_cut} | {adopted} | {checkpoints} | {seconds:.1} |"
        );
    }
    all
}

#[test]
fn short_runs_survive_every_cut() {
    for_each(common::a_third_of_subjects(0), |subject| {
        let mut sum = Tally::default();
        for seed in seeds(1) {
            sum += trial(subject, seed, 3, 12).unwrap_or_else(|loss| panic!("{}: {loss}", subject.what));
        }
        sum
    });
}

fn long_runs(bounds: Bounds, subjects: Vec<common::Subject>) {
    let all = for_each(subjects, |subject| {
        let mut sum = Tally::default();
        for seed in seeds(1) {
            sum += trial_within(bounds, subject, 1000 + seed, 40, 1)
                .unwrap_or_else(|loss| panic!("{}: {loss}", subject.what));
        }
        assert!(sum.adopted > 0 && sum.checkpoints > 0, "{}: {sum:?}", subject.what);
        sum
    });
    assert!(all.later_openings_cut > 100, "openings after a cut opening were cut as well: {all:?}");
}

#[test]
fn long_runs_survive_random_cuts() {
    long_runs(Bounds::default(), common::a_third_of_subjects(1));
}

/// Blocks are evicted, slots prepared and journals replaced constantly, as on a large drive after long use.
#[test]
fn long_runs_survive_random_cuts_with_the_smallest_bounds() {
    long_runs(Bounds::SMALLEST, common::a_third_of_subjects(2));
}

/// The long form, whose figures are in docs/power-loss.md.
#[test]
#[ignore = "takes minutes: make test-long"]
fn long_form() {
    for_each(common::subjects(), |subject| {
        let mut sum = Tally::default();
        for seed in seeds(2) {
            let lost = |loss| -> Tally { panic!("{}: {loss}", subject.what) };
            sum += trial(subject, 2000 + seed, 4, 200).unwrap_or_else(lost);
            sum += trial(subject, 3000 + seed, 150, 2).unwrap_or_else(lost);
        }
        sum
    });
}

#[test]
fn what_was_lost_once_is_kept() {
    for kept in KEPT {
        for subject in common::subjects().iter().filter(|subject| subject.what.contains(kept.subject)) {
            let (header, prepare) = (&subject.header, &as_it_is);
            let bounds = Bounds::default();
            let (seed, actions) = (kept.seed, kept.drawn);
            let trial =
                Trial { header, prepare, seed, actions, sectors_max: 24, images_per_act: 16, bounds, is_checked: true };
            run_actions(&trial, kept.actions).unwrap_or_else(|loss| panic!("{}: {loss}", subject.what));
        }
    }
}

#[test]
fn two_runs_do_the_same() {
    let subjects = common::subjects();
    let subject = subjects.last().expect("there is one");
    assert_eq!(trial(subject, 5, 30, 2), trial(subject, 5, 30, 2));
}
