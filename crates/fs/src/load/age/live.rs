//! The live files of the ageing, and the choice of the next file to delete.
//!
//! Invariants:
//! 1. No list is empty.
//! 2. The files of a list are in the order of their creation, except with the orders `weighted` and `random`.

use std::collections::{BTreeMap, VecDeque};

use super::{DeleteOrder, FILES_A_DIRECTORY, SIZES};
use crate::load::random::Choices;

/// Number and blocks of a file.
type File = (u64, u64);

/// The live files of the ageing.
#[derive(Clone, Debug)]
pub(super) struct Live {
    order: DeleteOrder,
    /// Lists of live files: by size with the order `weighted`, by directory with `directory`, and one list otherwise.
    lists: BTreeMap<u64, VecDeque<File>>,
    blocks: u64,
    /// The directory whose files are being deleted.
    directory: Option<u64>,
    /// The run that is being deleted: the place of its next file in the list, and the number of files to delete.
    run: (usize, u64),
}

impl Live {
    /// Returns an empty set of files, to be deleted in this order.
    pub(super) fn new(order: DeleteOrder) -> Live {
        Live { order, lists: BTreeMap::new(), blocks: 0, directory: None, run: (0, 0) }
    }

    /// Returns the number of blocks of all live files together.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Returns whether there is no live file.
    pub(super) fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Adds file number `file`, the last one created, with its number of blocks.
    pub(super) fn insert(&mut self, file: u64, blocks: u64) {
        let list = match self.order {
            DeleteOrder::Weighted => blocks,
            DeleteOrder::Directory => file / FILES_A_DIRECTORY,
            DeleteOrder::Random | DeleteOrder::Oldest | DeleteOrder::Runs(_) => 0,
        };
        self.lists.entry(list).or_default().push_back((file, blocks));
        self.blocks += blocks;
    }

    /// Removes the next file to delete, and returns its number and its blocks.
    ///
    /// # Panics
    /// There is no live file.
    pub(super) fn remove_next(&mut self, choices: &mut Choices) -> File {
        let key = self.choose_list(choices);
        let list = self.lists.get_mut(&key).expect("the chosen list is there");
        let length = list.len() as u64;
        let file = match self.order {
            DeleteOrder::Weighted | DeleteOrder::Random => list.swap_remove_back(choices.below(length) as usize),
            DeleteOrder::Oldest | DeleteOrder::Directory => list.pop_front(),
            DeleteOrder::Runs(files) => {
                let (place, left) = self.run;
                if left == 0 || place == list.len() {
                    self.run = (choices.below(length) as usize, files.get());
                }
                self.run.1 -= 1;
                list.remove(self.run.0)
            }
        };
        if list.is_empty() {
            self.lists.remove(&key);
        }
        let (file, blocks) = file.expect("no list is empty, and a place is below its length");
        self.blocks -= blocks;
        (file, blocks)
    }

    /// Returns the key of the list with the next file to delete.
    fn choose_list(&mut self, choices: &mut Choices) -> u64 {
        assert!(!self.is_empty(), "a file is deleted, and none is live");
        match self.order {
            DeleteOrder::Random | DeleteOrder::Oldest | DeleteOrder::Runs(_) => 0,
            DeleteOrder::Weighted => {
                let is_live = |size: &(u64, u64)| self.lists.contains_key(&size.0);
                choices.weighted(&SIZES.into_iter().filter(is_live).collect::<Vec<_>>())
            }
            DeleteOrder::Directory => {
                let current = self.directory.filter(|directory| self.lists.contains_key(directory));
                let chosen = current.unwrap_or_else(|| {
                    let place = choices.below(self.lists.len() as u64) as usize;
                    *self.lists.keys().nth(place).expect("the place is below the number of directories")
                });
                self.directory = Some(chosen);
                chosen
            }
        }
    }

    /// Returns all live files, in no particular order.
    #[cfg(test)]
    pub(super) fn files(&self) -> impl Iterator<Item = File> + '_ {
        self.lists.values().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    //! Goal: each order deletes the files that it names. Method: sets of files put in by hand, and the numbers of the
    //! files in the order of their deletion; for `weighted` and `random` the shares that follow from the weights and
    //! from the numbers of files.

    #![allow(clippy::unwrap_used)] // a panic shows where a test failed

    use super::*;

    /// Deletes all of `count` files of one block, and returns their numbers in the order of deletion.
    fn deleted(order: &str, count: u64) -> Vec<u64> {
        let mut live = Live::new(order.parse().unwrap());
        (0..count).for_each(|file| live.insert(file, 1));
        let mut choices = Choices::new(7);
        let all = (0..count).map(|_| live.remove_next(&mut choices).0).collect();
        assert!(live.is_empty() && live.blocks() == 0, "{order}");
        all
    }

    #[test]
    fn every_order_deletes_each_file_once() {
        for order in ["weighted", "random", "oldest", "directory", "runs=1", "runs=500", "runs=100000"] {
            let mut all = deleted(order, 3_500);
            assert_eq!(all.is_sorted(), order == "oldest", "{order}");
            all.sort_unstable();
            assert!(all.into_iter().eq(0..3_500), "{order}");
        }
    }

    #[test]
    fn a_directory_is_emptied_before_the_next_one() {
        let all = deleted("directory", 3_500);
        let mut directories: Vec<u64> = all.iter().map(|file| file / 1_000).collect();
        directories.dedup();
        assert_eq!(directories.len(), 4, "{directories:?}");
        assert!(!directories.is_sorted(), "the directories have an order by chance: {directories:?}");
        assert!(all.chunk_by(|one, next| one / 1_000 == next / 1_000).all(|files| files.is_sorted()));
    }

    #[test]
    fn a_run_has_its_number_of_neighbours_or_ends_at_the_last_file() {
        let mut live = Live::new("runs=500".parse().unwrap());
        let mut choices = Choices::new(7);
        (0..3_500).for_each(|file| live.insert(file, 1));
        let mut expected: Vec<u64> = (0..3_500).collect();
        let (mut next, mut created) = (None, 3_500);
        let mut runs = Vec::new();
        for _ in 0..20_000 {
            let (file, _) = live.remove_next(&mut choices);
            if next != Some(file) || runs.last() == Some(&500) {
                let is_short = runs.last().is_some_and(|length| *length < 500);
                assert!(!is_short || next.is_none(), "a run of {:?} ended before file {next:?}", runs.last());
                runs.push(0);
            }
            *runs.last_mut().unwrap() += 1;
            let place = expected.binary_search(&file).unwrap();
            expected.remove(place);
            // A file is created during the run, as in the ageing: it does not end the run.
            live.insert(created, 1);
            expected.push(created);
            created += 1;
            next = expected.get(place).copied();
        }
        assert!(runs.len() >= 40 && runs.iter().all(|length| *length <= 500), "{runs:?}");
    }

    /// Returns the share of files of 1,024 blocks among the deleted ones, where always 100 of 1,100 live files have
    /// 1,024 blocks, and the others one block.
    fn share_of_large(order: DeleteOrder) -> f64 {
        let mut live = Live::new(order);
        (0..1_100).for_each(|file| live.insert(file, if file < 100 { 1_024 } else { 1 }));
        let mut choices = Choices::new(7);
        let mut large = 0;
        for file in 1_100..101_100 {
            let (_, blocks) = live.remove_next(&mut choices);
            large += u64::from(blocks == 1_024);
            live.insert(file, blocks);
        }
        large as f64 / 100_000.0
    }

    #[test]
    fn weighted_deletes_by_the_weights_of_sizes_and_random_by_the_number_of_files() {
        // The weights of one block and of 1,024 blocks are 3,497 and 13. Four standard deviations of 100,000 choices.
        for (order, expected) in [(DeleteOrder::Weighted, 13.0 / 3_510.0), (DeleteOrder::Random, 1.0 / 11.0)] {
            let found = share_of_large(order);
            let deviation = f64::sqrt(expected * (1.0 - expected) / 100_000.0);
            assert!((found - expected).abs() < 4.0 * deviation, "{order}: {found}, expected {expected}");
        }
    }

    #[test]
    fn words_are_read_as_they_are_printed_and_others_are_refused() {
        for word in ["weighted", "random", "oldest", "directory", "runs=500"] {
            assert_eq!(word.parse::<DeleteOrder>().unwrap().to_string(), word);
        }
        for word in ["runs=0", "runs=", "runs=-1", "runs=x"] {
            let reason = word.parse::<DeleteOrder>().unwrap_err();
            assert!(reason.contains(word) && reason.contains("at least one file"), "{reason}");
        }
        for word in ["", "runs", "newest", "Random"] {
            let reason = word.parse::<DeleteOrder>().unwrap_err();
            assert!(reason.contains("weighted, random, oldest, directory"), "{reason}");
        }
    }
}
