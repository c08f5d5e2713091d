//! Goal: ageing follows the paper's description of its tool, and does the same operations wherever it runs. Method:
//! closed forms of its sizes; its steps counted; runs on the core and in a directory compared.

#![allow(clippy::unwrap_used)] // a panic shows where a test failed

use super::*;
use crate::load::{InDirectory, run_now};

/// Singh 2014 §5.3: 1 GB, 100,000 operations.
const PAPER: Age = Age { fill_blocks: 262_144, operations: 100_000, seed: 1, deletes: DeleteOrder::Weighted };

/// Returns the sum of weight × blocks^power, divided by 10,000.
fn moment(power: u32) -> f64 {
    let sum: u64 = SIZES.iter().map(|(blocks, weight)| weight * blocks.pow(power)).sum();
    sum as f64 / SIZES.iter().map(|(_, weight)| *weight).sum::<u64>() as f64
}

#[test]
fn the_weights_are_those_that_the_paper_tells_of() {
    assert_eq!(SIZES.iter().map(|(_, weight)| weight).sum::<u64>(), 10_000);
    let kib = moment(1) * 4.0;
    assert!((41.5..42.5).contains(&kib), "the mean is {kib} KiB, and should be about 42");
    let heaviest = SIZES.iter().skip(2).all(|(_, weight)| *weight < SIZES[0].1.min(SIZES[1].1));
    assert!(heaviest && SIZES[0].0 == 1 && SIZES[1].0 == 2, "4 and 8 KB are the heaviest");
    assert!(SIZES.windows(2).skip(1).all(|pair| pair[0].1 > pair[1].1), "larger ones come less often");
    assert_eq!(SIZES[SIZES.len() - 1].0 * 4096, 4 << 20);
    let allocated = PAPER.fill_blocks as f64 / 2.0 + PAPER.operations as f64 * moment(1) / 2.0;
    let times = allocated / PAPER.fill_blocks as f64;
    assert!((2.48..2.52).contains(&times), "{times} times the size is allocated, and the paper has 2.5");
}

#[test]
fn a_hundred_thousand_operations_allocate_what_the_closed_form_says() {
    const SEEDS: u64 = 20;
    let (mut created, mut steady) = (0.0, 0.0);
    for seed in 0..SEEDS {
        let mut steps = Steps::new(&Age { seed, ..PAPER });
        let blocks = steps.by_ref().map(|step| if let Step::Create { blocks, .. } = step { blocks } else { 0 });
        created += blocks.sum::<u64>() as f64 / SEEDS as f64;
        steady += steps.steady_after().unwrap() as f64 / SEEDS as f64;
    }
    // Each run adds up the sizes of about 62,500 files: three standard deviations of the mean of the runs.
    let deviation = (moment(2) - moment(1).powi(2)).sqrt() * (62_500.0 / SEEDS as f64).sqrt();
    let expected = PAPER.fill_blocks as f64 / 2.0 + PAPER.operations as f64 * moment(1) / 2.0;
    assert!((created - expected).abs() < 3.0 * deviation, "{created} blocks, expected {expected} ± {deviation}");
    let expected = PAPER.fill_blocks as f64 / (0.6 * moment(1));
    assert!((steady / expected - 1.0).abs() < 0.03, "full after {steady} operations, expected {expected}");
}

#[test]
fn no_more_is_live_than_was_asked_for_and_then_nearly_as_much_all_the_time() {
    let mut steps = Steps::new(&PAPER);
    let mut fullest = 0;
    while let Some(step) = steps.next() {
        let live = steps.live.blocks();
        if steps.done.is_multiple_of(10_000) {
            assert_eq!(live, steps.live.files().map(|(_, blocks)| blocks).sum::<u64>());
        }
        assert!(live <= PAPER.fill_blocks, "{step:?}: {live} blocks are live");
        fullest = fullest.max(live);
        if let (Some(_), Step::Delete { blocks, .. }) = (steps.steady_after, step) {
            let before = live + blocks + steps.next_blocks;
            assert!(before > PAPER.fill_blocks, "{step:?}: deleted although the next file fits");
        }
    }
    assert!(fullest > PAPER.fill_blocks - 16, "{fullest} blocks at most");
}

#[test]
fn one_seed_is_one_load_and_another_is_another() {
    let steps = |seed| Steps::new(&Age { seed, operations: 5_000, ..PAPER }).collect::<Vec<_>>();
    assert_eq!(steps(7), steps(7));
    assert_ne!(steps(7), steps(8));
}

#[test]
fn in_a_directory_what_is_left_is_what_the_steps_left() {
    let folder = tempfile::tempdir().unwrap();
    let asked = Age { fill_blocks: 2_000, operations: 600, seed: 3, ..PAPER };
    let files = InDirectory::new(folder.path(), "aged").unwrap();
    let aged = run_now(age(&files, &asked, |_| true)).unwrap();
    assert_eq!((aged.operations, aged.full_at, aged.is_interrupted), (600, None, false));
    let mut steps = Steps::new(&asked);
    steps.by_ref().for_each(drop);
    let mut expected: Vec<(String, u64)> =
        steps.live.files().map(|(file, blocks)| (path_of(file), blocks * BLOCK_BYTES as u64)).collect();
    expected.sort();
    let mut found = Vec::new();
    for directory in std::fs::read_dir(folder.path().join("aged")).unwrap().flatten() {
        for file in std::fs::read_dir(directory.path()).unwrap().flatten() {
            let name = format!("{}/{}", directory.file_name().display(), file.file_name().display());
            found.push((name, file.metadata().unwrap().len()));
        }
    }
    found.sort();
    assert_eq!(found, expected);
    assert_eq!(aged.blocks_created - aged.blocks_deleted, steps.live.blocks());
    let again = InDirectory::new(folder.path(), "aged").err().unwrap();
    assert!(again.to_string().contains("aged"), "a directory that is there is not touched: {again}");
}

#[test]
fn whoever_watches_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let files = InDirectory::new(folder.path(), "aged").unwrap();
    let asked = Age { fill_blocks: 2_000, operations: 600, seed: 3, ..PAPER };
    let aged = run_now(age(&files, &asked, |done| done < 10)).unwrap();
    assert_eq!((aged.operations, aged.is_interrupted), (10, true));
}
