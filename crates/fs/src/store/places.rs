//! Reservations that name particular blocks.

use super::Reservation;
use crate::block_run::BlockRun;

/// A store whose reservations name particular blocks, not only a number of blocks.
///
/// One allocation takes the whole reservation. A reservation that is made anew may name other blocks than before.
pub trait Places {
    /// Returns the blocks that `reservation` names for data, without their footers: the blocks after a write that it
    /// may destroy.
    fn places_of(&self, reservation: &Reservation) -> Vec<BlockRun>;
}
