//! Whether moves pay: what they have written, against what they have saved (ours).
//!
//! A sector written to a bottom costs read-modify-write four more: two copies, and two tops written anew. Where a move has
//! brought a bottom's data to where nothing lies over it, a write to it saves four; where it has brought a top's data
//! below, a write to that costs four. Moves are stopped while they have written more than was saved, but for a small share of what
//! read-modify-write would have written: without that none could ever begin. They begin again when what was moved before
//! has paid for itself.
//!
//! Invariants:
//! 1. By this account a layer never writes more than read-modify-write and one in `watch` sectors of what that writes besides the
//!    host's: a move is begun only if that holds after it too.

use super::options::SAVED_PER_SECTOR;

/// What moves cost and saved, in sectors.
#[derive(Clone, Copy, Default, Debug)]
pub struct Account {
    /// Written by moves.
    moved: u64,
    /// What read-modify-write with nothing moved would have written besides the host's sectors.
    unmoved: u64,
    /// What was written besides them, moves apart.
    written: u64,
}

impl Account {
    /// Counts a host write of so many sectors: whether their home, and whether their place, is under a top.
    #[inline]
    pub fn host(&mut self, sectors: u64, home_is_bottom: bool, is_bottom: bool) {
        self.unmoved += SAVED_PER_SECTOR * sectors * u64::from(home_is_bottom);
        self.written += SAVED_PER_SECTOR * sectors * u64::from(is_bottom);
    }

    /// Counts what a phase of a move wrote.
    pub fn moved(&mut self, sectors: u64) {
        self.moved += sectors;
    }

    /// Whether a move that writes `sectors` may begin, where one in `watch` sectors may be lost.
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
        // Saved: 4 · 250, and a 64th of it more.
        account.host(250, true, false);
        assert!(account.allows(1015, 64) && !account.allows(1016, 64));
        // Data that a move brought below costs.
        account.host(250, false, true);
        assert!(account.allows(15, 64) && !account.allows(16, 64));
    }
}
