//! Parts of the hot zone: a single part in the metadata area, or one part on each drive of an array that gives blocks.
//! The blocks of all parts are numbered consecutively. An allocation is in one part, so a file is on one drive.
//!
//! Invariant: no block of a closed part is allocated. Blocks allocated earlier can still be freed.

use super::free_extents::FreeExtents;
use crate::block_run::BlockRun;

struct Part {
    room: FreeExtents,
    is_open: bool,
}

/// Allocator of the blocks of 4 KiB of all parts of the hot zone: one part in the metadata area, or one on each of
/// several drives. Blocks are numbered through all parts, in the order of the parts.
pub struct FreeExtentsOfParts {
    parts: Vec<Part>,
}

impl FreeExtentsOfParts {
    /// Returns an allocator with one part for each entry of `blocks`, the number of its blocks. All blocks are free and
    /// all parts open.
    pub fn new(blocks: &[u64]) -> FreeExtentsOfParts {
        let mut first = 0;
        let part = |blocks: &u64| {
            let room = FreeExtents::new(BlockRun { start: first, blocks: *blocks });
            first += blocks;
            Part { room, is_open: true }
        };
        FreeExtentsOfParts { parts: blocks.iter().map(part).collect() }
    }

    /// Returns the number of blocks of all parts, free and used, open and closed.
    pub fn blocks(&self) -> u64 {
        self.parts.iter().map(|part| part.room.blocks()).sum()
    }

    /// Returns the number of blocks that are not free, in part `number`, counted from 0, or in all parts if `number` is
    /// `None`. Returns 0 if there is no such part.
    pub fn used(&self, number: Option<usize>) -> u64 {
        let meant = self.parts.iter().enumerate().filter(|(at, _)| number.is_none_or(|number| *at == number));
        meant.map(|(_, part)| part.room.blocks() - part.room.free_blocks()).sum()
    }

    /// Returns the number of parts, open and closed ones; 0 if there is no hot zone.
    pub fn count(&self) -> usize {
        self.parts.len()
    }

    /// Returns, for each open part, its number counted from 0, the number of its blocks, and the number of its free
    /// blocks.
    pub fn open(&self) -> impl Iterator<Item = (usize, u64, u64)> {
        let open = self.parts.iter().enumerate().filter(|(_, part)| part.is_open);
        open.map(|(number, part)| (number, part.room.blocks(), part.room.free_blocks()))
    }

    /// Returns the number of blocks, free and used, of the largest open part; 0 if no part is open.
    pub fn largest(&self) -> u64 {
        self.open().map(|(_, blocks, _)| blocks).max().unwrap_or(0)
    }

    /// Sets whether blocks of part `number`, counted from 0, may be allocated. Blocks of a closed part can still be
    /// claimed and freed.
    ///
    /// # Panics
    /// There is no part `number`.
    pub fn set_open(&mut self, number: usize, is_open: bool) {
        self.parts[number].is_open = is_open;
    }

    /// Returns the number, counted from 0, of the part that holds block `block`. For a block behind the last part it is
    /// the last part; without parts it is 0.
    pub fn part_of(&self, block: u64) -> usize {
        let behind = self.parts.iter().position(|part| block < part.room.end());
        behind.unwrap_or(self.parts.len().saturating_sub(1))
    }

    /// Marks the blocks of `run` as used, also in a closed part, in which nothing is allocated.
    ///
    /// # Errors
    /// The run is empty, is not wholly in one part, or has blocks that are not free. The text is a message for the
    /// user.
    pub fn claim(&mut self, run: BlockRun) -> Result<(), String> {
        let number = self.part_of(run.start);
        match self.parts.get_mut(number) {
            Some(part) => part.room.claim(run),
            None => FreeExtents::new(BlockRun { start: 0, blocks: 0 }).claim(run),
        }
    }

    /// Allocates `blocks` blocks in the open part with the most free blocks, the lowest part of equals, and returns
    /// their runs. Returns `None` if no part is open, that part has too few free blocks, or `blocks` is 0.
    pub fn take(&mut self, blocks: u64) -> Option<Vec<BlockRun>> {
        let (number, ..) = self.open().max_by_key(|(number, _, free)| (*free, std::cmp::Reverse(*number)))?;
        self.parts[number].room.take(blocks)
    }

    /// Frees the blocks of `run`, also in a closed part.
    ///
    /// # Panics
    /// Blocks of the run are free already, more blocks would be free than its part has, or there is no part.
    pub fn free(&mut self, run: BlockRun) {
        let number = self.part_of(run.start);
        self.parts[number].room.free(run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(start: u64, blocks: u64) -> BlockRun {
        BlockRun { start, blocks }
    }

    #[test]
    fn a_file_is_in_one_part_and_the_emptiest_comes_first() {
        let mut rooms = FreeExtentsOfParts::new(&[3, 5, 4]);
        assert_eq!((rooms.blocks(), rooms.largest(), rooms.take(6)), (12, 5, None), "no part has six");
        assert_eq!(rooms.take(2), Some(vec![run(3, 2)]), "five are free there");
        assert_eq!(rooms.take(2), Some(vec![run(8, 2)]), "four");
        assert_eq!(rooms.take(3), Some(vec![run(0, 3)]), "three, as in the second");
        assert_eq!((rooms.take(3), rooms.take(3)), (Some(vec![run(5, 3)]), None));
        assert_eq!((rooms.used(None), rooms.used(Some(1)), rooms.used(Some(2))), (10, 5, 2));
        rooms.free(run(4, 2));
        assert_eq!(rooms.take(2), Some(vec![run(4, 2)]));
    }

    #[test]
    fn a_part_that_is_not_open_gives_nothing_and_takes_back() {
        let mut rooms = FreeExtentsOfParts::new(&[2, 4]);
        assert_eq!(rooms.take(3), Some(vec![run(2, 3)]));
        rooms.set_open(1, false);
        assert_eq!((rooms.largest(), rooms.take(2), rooms.take(1)), (2, Some(vec![run(0, 2)]), None));
        rooms.free(run(2, 3));
        assert_eq!((rooms.used(Some(1)), rooms.take(1)), (0, None));
        rooms.set_open(1, true);
        assert_eq!(rooms.take(4), Some(vec![run(2, 4)]));
    }

    #[test]
    fn what_is_on_two_drives_or_none_cannot_be() {
        let mut rooms = FreeExtentsOfParts::new(&[3, 5]);
        for wrong in [run(2, 2), run(7, 2), run(8, 1), run(u64::MAX, 1)] {
            assert!(rooms.claim(wrong).is_err(), "{wrong:?}");
        }
        assert!(rooms.claim(run(0, 3)).is_ok() && rooms.claim(run(3, 5)).is_ok());
        assert!(FreeExtentsOfParts::new(&[]).claim(run(0, 1)).is_err());
    }
}
