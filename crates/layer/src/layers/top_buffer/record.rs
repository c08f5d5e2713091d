//! The journal records of a buffer in reserved top tracks.

use imbrex_disk::Lba;

use crate::journal_records;
use crate::layers::interlaced::record::FIRST_LAYER_TAG;

journal_records! {
    /// The kinds of journal record of the write buffer: changes of the set of buffered runs. `position` is the number
    /// of sectors that were written to the ring (circular buffer) `ring` before the run, since the ring was made.
    /// `end_lba` is exclusive.
    pub enum Record of "the write buffer" {
        FIRST_LAYER_TAG => Buffered { lba: Lba, sectors: u32, ring: u32, position: u64 } "written to a buffer",
        FIRST_LAYER_TAG + 1 => Home { start_lba: Lba, end_lba: Lba } "written home",
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
