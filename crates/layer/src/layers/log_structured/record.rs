//! The journal records of `log-structured`.
//!
//! Appends and trims are recorded as they occur. A checkpoint is a sequence of its own. `Restart` opens it, and `End`
//! closes it. Between them, each `Zone` is followed by the `Kept` records of its live blocks in the order of their
//! places. At the end, blocks that were not named lie where the factory put them, and zones without live blocks are
//! free.

use crate::journal_records;

journal_records! {
    /// The kinds of journal record of `log-structured`: changes of the map. `block`, `place` and `zone` are numbers of
    /// logical blocks, physical blocks and zones, counted over the whole drive.
    pub(super) enum Record of "log-structured" {
        1 => Written { block: u64, blocks: u64, place: u64, stream: u64 } "written to the log",
        2 => Trimmed { block: u64, blocks: u64 } "trimmed",
        3 => Restart { first: u64 } "a checkpoint begins",
        4 => Zone { zone: u64, filled_blocks: u64, written_at: u64, stream: u64 } "a zone, as the checkpoint has it",
        5 => Kept { block: u64, blocks: u64, place: u64 } "live blocks of that zone",
        6 => End {} "the checkpoint ends",
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
