//! The parts of the zone: one where it lies with the metadata, one for each drive that has some where it lies on drives. Their
//! blocks are numbered one after the other. What is taken lies in one part, so a file is on one drive.
//!
//! Invariant: nothing is taken of a part that is not open; what was taken before is given back all the same.

use super::room::Room;
use crate::store::Run;

struct Part {
    room: Room,
    is_open: bool,
}

/// The parts.
pub struct Rooms {
    parts: Vec<Part>,
}

impl Rooms {
    /// Parts of so many blocks, all of them free and open.
    pub fn new(blocks: &[u64]) -> Rooms {
        let mut first = 0;
        let part = |blocks: &u64| {
            let room = Room::new(Run { start: first, blocks: *blocks });
            first += blocks;
            Part { room, is_open: true }
        };
        Rooms { parts: blocks.iter().map(part).collect() }
    }

    /// How many blocks all have together.
    pub fn blocks(&self) -> u64 {
        self.parts.iter().map(|part| part.room.blocks()).sum()
    }

    /// Blocks that are not free, in all parts or in one.
    pub fn used(&self, number: Option<usize>) -> u64 {
        let meant = self.parts.iter().enumerate().filter(|(at, _)| number.is_none_or(|number| *at == number));
        meant.map(|(_, part)| part.room.blocks() - part.room.free_blocks()).sum()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.parts.len()
    }

    /// Each part that is open: its number, and its blocks and how many of them are free.
    pub fn open(&self) -> impl Iterator<Item = (usize, u64, u64)> {
        let open = self.parts.iter().enumerate().filter(|(_, part)| part.is_open);
        open.map(|(number, part)| (number, part.room.blocks(), part.room.free_blocks()))
    }

    /// The blocks of the largest part that is open.
    pub fn largest(&self) -> u64 {
        self.open().map(|(_, blocks, _)| blocks).max().unwrap_or(0)
    }

    /// Whether something is taken of part `number` from now on.
    pub fn set_open(&mut self, number: usize, is_open: bool) {
        self.parts[number].is_open = is_open;
    }

    /// The part that block `block` is in, or would be if it were the last.
    pub fn part_of(&self, block: u64) -> usize {
        let behind = self.parts.iter().position(|part| block < part.room.end());
        behind.unwrap_or(self.parts.len().saturating_sub(1))
    }

    /// Takes a given run; an error says why it cannot be had.
    pub fn claim(&mut self, run: Run) -> Result<(), String> {
        let number = self.part_of(run.start);
        match self.parts.get_mut(number) {
            Some(part) => part.room.claim(run),
            None => Room::new(Run { start: 0, blocks: 0 }).claim(run),
        }
    }

    /// Takes `blocks` of the open part with the most that are free; nothing if none has so many.
    pub fn take(&mut self, blocks: u64) -> Option<Vec<Run>> {
        let (number, ..) = self.open().max_by_key(|(number, _, free)| (*free, std::cmp::Reverse(*number)))?;
        self.parts[number].room.take(blocks)
    }

    /// Gives a run back.
    pub fn free(&mut self, run: Run) {
        let number = self.part_of(run.start);
        self.parts[number].room.free(run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(start: u64, blocks: u64) -> Run {
        Run { start, blocks }
    }

    #[test]
    fn a_file_is_in_one_part_and_the_emptiest_comes_first() {
        let mut rooms = Rooms::new(&[3, 5, 4]);
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
        let mut rooms = Rooms::new(&[2, 4]);
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
        let mut rooms = Rooms::new(&[3, 5]);
        for wrong in [run(2, 2), run(7, 2), run(8, 1), run(u64::MAX, 1)] {
            assert!(rooms.claim(wrong).is_err(), "{wrong:?}");
        }
        assert!(rooms.claim(run(0, 3)).is_ok() && rooms.claim(run(3, 5)).is_ok());
        assert!(Rooms::new(&[]).claim(run(0, 1)).is_err());
    }
}
