//! Reservations that name particular blocks.

use super::Reservation;
use crate::block_run::BlockRun;

/// A store whose reservations name particular blocks, not only a number of blocks.
///
/// One allocation takes the whole reservation. A reservation that is made anew may name other blocks than before.
pub trait Places {
    /// Returns the runs of blocks that `reservation` reserves for data. Their footers are left out: the blocks directly
    /// after each run that a write of the run destroys.
    fn places_of(&self, reservation: &Reservation) -> Vec<BlockRun>;
}
