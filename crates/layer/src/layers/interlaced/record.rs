//! The journal records that every layer of an interlaced disk has: backups and their places, and live sectors.
//!
//! A backup for one host operation, or for one move, may take several records. The last record names the operation and
//! completes the backup; the first and those in the middle do not name it. Each record has room for two runs of LBAs,
//! whose copies follow each other from `backup_pba` on. `sectors_of_both` has the lengths of the first and second run
//! in sectors; a missing second run has length 0.

use imbrex_disk::{Lba, Pba};

use crate::journal_records;

/// The first tag (number of a kind of journal record) that a layer of interlaced disks may give to records of its own.
/// Lower tags belong to records of backups and of live sectors, which all these layers share.
pub const FIRST_LAYER_TAG: u8 = 16;

journal_records! {
    /// The kinds of journal record that all layers of interlaced disks share: changes of the backup log, and of the set
    /// of live sectors. A record of a backup names one or two runs of LBAs, whose copies lie one after the other from
    /// `backup_pba` on; a missing second run has length 0. `end_lba` is exclusive.
    pub enum Record of "the backup log" {
        1 => First { backup_pba: Pba, lba: Lba, second_lba: Lba, sectors_of_both: (u32, u32) }
            "backup, the first of several",
        2 => Middle { backup_pba: Pba, lba: Lba, second_lba: Lba, sectors_of_both: (u32, u32) }
            "backup, one of several",
        3 => HostOnly { backup_pba: Pba, lba: Lba, second_lba: Lba, sectors_of_both: (u32, u32) }
            "backup for the host's write, complete",
        4 => HostLast { backup_pba: Pba, lba: Lba, second_lba: Lba, sectors_of_both: (u32, u32) }
            "backup for the host's write, its last",
        5 => MoveOnly { backup_pba: Pba, lba: Lba, second_lba: Lba, sectors_of_both: (u32, u32) }
            "backup for a move, complete",
        6 => MoveLast { backup_pba: Pba, lba: Lba, second_lba: Lba, sectors_of_both: (u32, u32) }
            "backup for a move, its last",
        7 => HostCleared {} "the host's backup is no longer needed",
        8 => MoveCleared {} "the move's backup is no longer needed",
        9 => Live { start_lba: Lba, end_lba: Lba } "sectors are live",
        10 => Dead { start_lba: Lba, end_lba: Lba } "sectors are dead",
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
