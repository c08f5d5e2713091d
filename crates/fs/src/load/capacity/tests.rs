//! Goal: the search finds the smallest over-allocation, and a run on the core fails where the paper's algorithms do.
//! Method: the search is compared with a scan of all sizes, the core with a bitmap that allocates as in §4.4.4, in the
//! plainest way.

#![allow(clippy::unwrap_used)] // a panic shows where a test failed

use super::super::age::{Step, Steps};
use super::*;

fn toy(fit: &str, isolation: u64, seed: u64) -> Capacity {
    let age = Age { fill_blocks: 3_000, operations: 1_200, seed, deletes: DeleteOrder::Weighted };
    Capacity { age, step: PARTS / 20, ..Capacity::of_the_paper(fit, isolation) }
}

fn trial(extra: u64, is_complete: bool) -> Trial {
    let aged = Aged { full_at: (!is_complete).then_some(1), ..Aged::default() };
    Trial { extra, aged, usage: Usage::default() }
}

#[test]
fn the_search_finds_every_threshold_in_few_runs() {
    for threshold in 0..=64 {
        let mut runs = 0;
        let found = search_by(5, 320, |extra| {
            runs += 1;
            Ok(trial(extra, extra >= threshold * 5))
        });
        assert_eq!(found, Ok(Found::At(trial(threshold * 5, true))));
        assert!(runs <= 14, "{runs} runs for threshold {threshold}");
    }
    assert_eq!(search_by(5, 320, |extra| Ok(trial(extra, false))), Ok(Found::Never(trial(320, false))));
}

#[test]
fn the_search_says_what_a_scan_says() {
    let mut judged = 0;
    for (fit, isolation, seed) in
        [("best", 16, 1), ("worst", 16, 2), ("first", 64, 3), ("next", 64, 4), ("next", 16, 5)]
    {
        let asked = toy(fit, isolation, seed);
        let complete: Vec<bool> =
            (0..=40).map(|step| run(&asked, step * asked.step, |_| true).unwrap().is_complete()).collect();
        let Found::At(found) = search(&asked, |_, _| true).unwrap() else { panic!("{asked:?}: nothing is found") };
        let at = (found.extra / asked.step) as usize;
        assert!(complete[at] && !complete[at - 1], "{asked:?}: {at} is no boundary of {complete:?}");
        let smallest = complete.iter().position(|is_complete| *is_complete).unwrap();
        if complete[smallest..].iter().all(|is_complete| *is_complete) {
            assert_eq!(at, smallest, "{asked:?}: {complete:?}");
            judged += 1;
        }
    }
    assert!(judged >= 3, "only {judged} of the toys are monotone");
}

/// The plainest allocator: a bitmap of free blocks.
struct Bitmap {
    free: Vec<bool>,
    last: usize,
}

impl Bitmap {
    /// Returns the runs of free blocks.
    fn runs(&self) -> Vec<(usize, usize)> {
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for at in (0..self.free.len()).filter(|at| self.free[*at]) {
            match runs.last_mut() {
                Some((start, length)) if *start + *length == at => *length += 1,
                _ => runs.push((at, 1)),
            }
        }
        runs
    }

    fn choose(&self, fit: &str, need: usize) -> Option<usize> {
        let fitting = self.runs().into_iter().filter(|(_, length)| *length >= need);
        match fit {
            "first" => fitting.map(|(start, _)| start).min(),
            "best" => fitting.min_by_key(|(start, length)| (*length, *start)).map(|(start, _)| start),
            _ => {
                let starts = (self.last..self.free.len()).chain(0..self.last);
                let is_free = |start: &usize| {
                    *start + need <= self.free.len() && self.free[*start..*start + need].iter().all(|free| *free)
                };
                starts.into_iter().find(is_free)
            }
        }
    }

    /// Returns the operation that runs out of space.
    fn full_at(asked: &Capacity, extra: u64) -> Option<u64> {
        let mut bitmap = Bitmap { free: vec![true; asked.blocks_with(extra) as usize], last: 0 };
        let mut places = std::collections::BTreeMap::new();
        for (number, step) in Steps::new(&asked.age).enumerate() {
            match step {
                Step::Create { file, blocks } => {
                    let need = (blocks + asked.isolation) as usize;
                    let Some(start) = bitmap.choose(&asked.fit, need) else { return Some(number as u64) };
                    bitmap.last = start + blocks as usize;
                    bitmap.free[start..bitmap.last].fill(false);
                    places.insert(file, start);
                }
                Step::Delete { file, blocks } => {
                    let start = places.remove(&file).unwrap();
                    bitmap.free[start..start + blocks as usize].fill(true);
                }
            }
        }
        None
    }
}

#[test]
fn the_core_is_full_when_a_bitmap_is() {
    let mut full = 0;
    for (fit, plain) in [("first", "first"), ("best", "best"), ("next", "next"), ("last-accessed", "next")] {
        for (isolation, seed) in [(16, 1), (64, 2), (5, 3)] {
            let asked = toy(fit, isolation, seed);
            for extra in [0, 1_000, 3_000, 8_000, 15_000] {
                let trial = run_on_core(&asked, extra, |_| true).unwrap();
                let expected = Bitmap::full_at(&Capacity { fit: plain.into(), ..asked.clone() }, extra);
                assert_eq!(trial.aged.full_at, expected, "{fit}, DID {isolation}, {extra} of {PARTS} more");
                full += usize::from(expected.is_some());
            }
        }
    }
    assert!((10..50).contains(&full), "{full} of 60 runs end early: the toys tell nothing");
}

#[test]
fn the_allocator_alone_ends_where_the_core_ends() {
    let (mut full, mut complete) = (0, 0);
    for (fit, ..) in crate::store::caveat::fit::ALL {
        for (isolation, seed, deletes) in [(16, 1, "weighted"), (64, 2, "oldest"), (5, 3, "runs=20"), (16, 4, "random")]
        {
            let mut asked = toy(fit, isolation, seed);
            asked.age.deletes = deletes.parse().unwrap();
            for extra in [0, 3_000, 15_000] {
                let core = run_on_core(&asked, extra, |_| true).unwrap();
                let alone = run(&asked, extra, |_| true).unwrap();
                let of = |trial: &Trial| {
                    let Usage { blocks, live, unusable, free_runs, .. } = trial.usage;
                    (trial.extra, trial.aged, blocks, live, unusable, free_runs)
                };
                assert_eq!(of(&alone), of(&core), "{fit}, DID {isolation}, {deletes}, {extra} of {PARTS} more");
                full += usize::from(core.aged.full_at.is_some());
                complete += usize::from(core.is_complete());
            }
        }
    }
    assert!(full >= 15 && complete >= 15, "{full} runs are full, {complete} are complete: the toys tell little");
}

#[test]
fn what_is_left_adds_up() {
    let asked = toy("best", 16, 1);
    let trial = run(&asked, 10_000, |_| true).unwrap();
    assert!(trial.is_complete());
    let live = trial.aged.blocks_created - trial.aged.blocks_deleted;
    assert_eq!((trial.usage.blocks, trial.usage.live), (asked.blocks_with(10_000), live));
    assert_eq!(trial.usage.blocks, 6_000);
    assert!(trial.usage.unusable + trial.usage.live <= trial.usage.blocks);
}

#[test]
fn the_watch_function_ends_the_search() {
    let asked = toy("best", 16, 1);
    assert_eq!(search(&asked, |_, done| done < 100), Ok(Found::Interrupted));
}

#[test]
fn a_fit_that_is_not_there_is_told() {
    for in_pieces in [false, true] {
        let asked = Capacity { in_pieces, ..toy("nearest", 16, 1) };
        let error = run(&asked, 0, |_| true).unwrap_err();
        assert!(error.reason.contains("nearest") && error.reason.contains("last-accessed"), "{error}");
    }
}
