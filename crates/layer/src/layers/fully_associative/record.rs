//! The journal records of `fully-associative`. Bands and logical bands are numbered over the drive. `offset` and
//! `filled_sectors` are in sectors within a band.
//!
//! The checkpoint of a zone begins with `Restart` and ends with `Filled`; the records between them describe the zone
//! completely.

use imbrex_disk::{Lba, Sectors};

use crate::journal_records;

journal_records! {
    /// The kinds of journal record of `fully-associative`: changes of the map. Bands and logical bands are numbered
    /// over the whole drive.
    pub(super) enum Record of "fully-associative" {
        1 => Logged { lba: Lba, sectors: Sectors, band: u64, offset: u32 } "written to a log band",
        2 => Trimmed { lba: Lba, sectors: Sectors } "trimmed",
        3 => Placed { logical_band: u64, band: u64 } "a logical band lives in this band",
        4 => Streamed { logical_band: u64, band: u64, filled_sectors: u32 } "a stream has rewritten part of a logical band",
        5 => Completed { logical_band: u64 } "a stream is complete",
        6 => Restart { zone: u64 } "a checkpoint of a zone begins",
        7 => Filled { zone: u64, filled_sectors: u32 } "the newest log band is filled up to filled_sectors",
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
