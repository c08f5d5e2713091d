//! Account of background moves: whether moves have saved more writes than they have made (ours).
//!
//! A host sector written to a bottom track costs read-modify-write four more sectors: two copies, and two rewritten top
//! sectors. If a move has brought a bottom's data to a place under no top, each sector written to that data saves four.
//! If a move has brought a top's data to a bottom, each sector written to that data costs four. Moves stop while they
//! have written more sectors than were saved. A small share of the sectors that read-modify-write would have written is
//! allowed as credit: without it no move could ever begin. Moves begin again when the savings have paid for the earlier
//! moves.
//!
//! Invariants:
//! 1. A move begins only if, by this account, the layer has afterwards written at most as many sectors, besides the
//!    host's, as read-modify-write with nothing moved would have, plus one in `watch` of those. Later writes of the
//!    host to data that moves have brought to bottom tracks can exceed this.

use super::options::SAVED_PER_SECTOR;

/// Account of the sectors that background moves have written and saved, since the layer was built. It decides whether
/// another move may begin. It is not stored: after a restart all counts are 0.
#[derive(Clone, Copy, Default, Debug)]
pub struct Account {
    /// Sectors written by moves.
    moved: u64,
    /// Sectors, besides the host's, that read-modify-write would have written with nothing moved.
    unmoved: u64,
    /// Sectors, besides the host's and those of moves, that were written.
    written: u64,
}

impl Account {
    /// Counts `sectors` that the host writes. A read-modify-write of a sector on a bottom track counts as
    /// [`SAVED_PER_SECTOR`] (4) further sectors. `home_is_bottom` says whether the home of these sectors (their place
    /// if nothing had been moved) is on a bottom track; `is_bottom` says whether their present place is.
    #[inline]
    pub fn host(&mut self, sectors: u64, home_is_bottom: bool, is_bottom: bool) {
        self.unmoved += SAVED_PER_SECTOR * sectors * u64::from(home_is_bottom);
        self.written += SAVED_PER_SECTOR * sectors * u64::from(is_bottom);
    }

    /// Counts `sectors` that a phase of a background move writes, backup copies included.
    pub fn moved(&mut self, sectors: u64) {
        self.moved += sectors;
    }

    /// Returns whether a move that writes `sectors` may begin. Sectors that the host itself writes do not count here.
    /// With the move, the layer must have written no more sectors than read-modify-write would have written if nothing
    /// had been moved, plus 1/`watch` of that number. If `watch` is 0, every move may begin.
    pub fn allows(&self, sectors: u64, watch: u32) -> bool {
        watch == 0 || self.written + self.moved + sectors <= self.unmoved + self.unmoved / watch as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_begin_on_credit_and_go_on_while_they_pay() {
        let mut account = Account::default();
        assert!(account.allows(1, 0) && !account.allows(1, 64), "nothing was written yet");
        account.host(1600, true, true);
        assert!(account.allows(100, 64) && !account.allows(101, 64), "a 64th of 4 · 1600");
        account.moved(100);
        assert!(!account.allows(1, 64));
        // Saved: 4 · 250, and a 64th of that as further credit.
        account.host(250, true, false);
        assert!(account.allows(1015, 64) && !account.allows(1016, 64));
        // Data that a move brought to a bottom costs.
        account.host(250, false, true);
        assert!(account.allows(15, 64) && !account.allows(16, 64));
    }
}
