//! Reservations that name particular blocks.

use super::Reservation;
use crate::block_run::BlockRun;

/// A store whose reservations name particular blocks.
///
/// One allocation takes the whole reservation, so a reservation is lent and returned as a whole. A new reservation may
/// name other blocks than the one before.
pub trait Places {
    /// Returns the blocks of `reservation` without their footers.
    fn places_of(&self, reservation: &Reservation) -> Vec<BlockRun>;
}
