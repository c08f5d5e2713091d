//! Allocation algorithms (Singh 2014 §4.4.4): which free run a file gets. One file each.
//!
//! To add one: a file with a struct that implements [`Fit`], and a line in [`ALL`].

mod best;
mod first;
mod last_accessed;
mod next;
mod worst;

use super::free_list::FreeList;
use crate::block_run::BlockRun;

/// Allocation algorithm of the store `caveat`: chooses the free run for a file.
pub trait Fit {
    /// Returns a free run of at least `need` blocks, of which the caller takes the first `need`; `None` if no free run
    /// is long enough. The returned run may begin within a free run. `last` is the block after the last allocation's
    /// data, at first the first block of the store. `head` returns the block after the last read or write of the disk.
    fn choose(&mut self, free: &FreeList, need: u64, last: u64, head: &dyn Fn() -> u64) -> Option<BlockRun>;
}

/// Name of an allocation algorithm, its description for users, and its constructor.
pub type Known = (&'static str, &'static str, fn() -> Box<dyn Fit>);

/// All allocation algorithms of the store `caveat`: name, description for users, and constructor of each.
pub const ALL: &[Known] = &[
    ("best", "the smallest run that is long enough", || Box::new(best::Best)),
    ("worst", "the longest run of the class that the size selects", || Box::new(worst::Worst)),
    ("first", "the run with the lowest address", || Box::new(first::First)),
    ("next", "the next run behind the last allocation", || Box::new(next::Next)),
    ("last-accessed", "the next run behind the head of the disk", || Box::new(last_accessed::LastAccessed)),
];

/// Returns the allocation algorithm called `name`.
///
/// # Errors
/// There is no such algorithm. The error is a message for the user that lists the known names.
pub fn named(name: &str) -> Result<Box<dyn Fit>, String> {
    let found = ALL.iter().find(|(known, ..)| *known == name);
    let known: Vec<&str> = ALL.iter().map(|(known, ..)| *known).collect();
    found.map(|(_, _, make)| make()).ok_or_else(|| format!("fit={name}: there are {}", known.join(", ")))
}

/// Returns the first run behind `from` that is long enough; a run that contains `from` is cut to begin there. Wraps
/// around to the lowest address.
fn behind(free: &FreeList, need: u64, from: u64) -> Option<BlockRun> {
    let cut = |run: BlockRun| {
        let start = run.start.max(from);
        BlockRun { start, blocks: run.end() - start }
    };
    let found = free.runs_from(from).map(cut).find(|run| run.blocks >= need);
    found.or_else(|| free.runs().find(|run| run.blocks >= need))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns free runs of 20, 600, 30, 300 and 450 blocks.
    fn example() -> FreeList {
        let mut free = FreeList::default();
        for (start, blocks) in [(0, 20), (100, 600), (1000, 30), (2000, 300), (3000, 450)] {
            free.insert(BlockRun { start, blocks });
        }
        free
    }

    fn chosen(name: &str, need: u64, last: u64, head: u64) -> Option<u64> {
        named(name).unwrap().choose(&example(), need, last, &|| head).map(|run| run.start)
    }

    #[test]
    fn each_chooses_as_the_paper_has_it() {
        assert_eq!(chosen("best", 25, 0, 0), Some(1000));
        assert_eq!(chosen("best", 301, 0, 0), Some(3000));
        // 25 blocks select the class under 1 MiB, whose longest run has 30. 256 blocks select that of 1 to 2 MiB, whose
        // longest has 450.
        assert_eq!(chosen("worst", 25, 0, 0), Some(1000));
        assert_eq!(chosen("worst", 256, 0, 0), Some(3000));
        assert_eq!(chosen("worst", 500, 0, 0), Some(100));
        assert_eq!(chosen("first", 25, 0, 0), Some(100));
        assert_eq!(chosen("next", 25, 650, 0), Some(650), "a run is split where the last allocation is in its midst");
        assert_eq!(chosen("next", 60, 650, 0), Some(2000));
        assert_eq!(chosen("next", 500, 650, 0), Some(100), "and round");
        assert_eq!(chosen("last-accessed", 25, 650, 2100), Some(2100));
    }

    #[test]
    fn none_chooses_what_is_not_there() {
        for (name, ..) in ALL {
            assert_eq!(chosen(name, 601, 0, 0), None, "{name}");
            assert!(chosen(name, 600, 5000, 5000).is_some(), "{name}");
        }
    }
}
