//! The journal records of `s-blocks`.
//!
//! A position is the number of sectors ever written to a buffer before it. The `tail` of a record is the tail of its
//! buffer after the record is applied: the record of a copy also frees the copy's source.
//!
//! The checkpoint of a section begins with `Restart`: both buffers are empty and begin at these positions. It ends with
//! `Heads`: sectors before these heads that no record named are dead.

use imbrex_disk::{Lba, Sectors};

use super::ring::Position;
use crate::journal_records;
use crate::plan::record::Word;

journal_records! {
    /// The kinds of journal record of `s-blocks`: changes of the map.
    pub(super) enum Record of "s-blocks" {
        1 => Cached { lba: Lba, sectors: Sectors, position: Position, tail: Position } "written to the cache buffer",
        2 => Trimmed { lba: Lba, sectors: Sectors } "trimmed",
        3 => Placed { sblock: u64, position: Position, tail: Position, is_direct: bool } "an S-block lies at this position",
        4 => Streamed { sblock: u64, position: Position, filled_sectors: u64, tail: Position }
            "an S-block has been written directly up to filled_sectors",
        5 => Completed { sblock: u64 } "a direct S-block is complete",
        6 => Restart { section: u64, sblock_tail: Position, cache_tail: Position } "a checkpoint of a section begins",
        7 => Heads { section: u64, sblock_head: Position, cache_head: Position } "the checkpoint's heads",
    }
}

impl Word for Position {
    fn to_word(self) -> u64 {
        self.0
    }

    fn from_word(word: u64) -> Result<Position, &'static str> {
        Ok(Position(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_they_were() {
        crate::plan::record::testing::assert_round_trips(Record::INFO, |note| Record::decode(note).map(Record::encode));
    }
}
