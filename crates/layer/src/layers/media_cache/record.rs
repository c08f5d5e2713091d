//! The journal records of `media-cache`.
//!
//! With `placement=journal`, the `Cached` records that follow a `Packet` are the entries of that packet. Between
//! `Begin` or `BeginPart` and `End`, the spare is the place of the band, or of its sectors from `from` on.

use imbrex_disk::{Lba, Pba, Sectors};

use crate::journal_records;

journal_records! {
    /// The kinds of journal record of `media-cache`: changes of the map, of the packets, or of the known state of a
    /// band.
    pub(super) enum Record of "media-cache" {
        1 => Cached { lba: Lba, sectors: Sectors, pba: Pba } "written to the cache",
        2 => Trimmed { lba: Lba, sectors: Sectors } "trimmed",
        3 => Begin { band: u64 } "the spare holds all of a band",
        4 => End { band: u64 } "a band is in its place again",
        5 => Packet { head_half_tracks: u64, half_tracks: u64 } "a packet begins",
        6 => Bare { band: u64 } "sectors of a band that are not cached are absent",
        7 => Placed { band: u64 } "a band is written whole in its place",
        8 => Written { first_band: u64, bits_0: u64, bits_64: u64, bits_128: u64 }
            "which bands have been written, as bits",
        9 => BeginPart { band: u64, from: u64 } "the spare holds a band from a sector on",
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
