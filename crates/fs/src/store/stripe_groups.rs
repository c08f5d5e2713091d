//! Stripe groups of a store on an array.

use crate::format::change::Change;

/// A store on an array, which forms stripe groups of zones when it needs them and drops the groups that were emptied.
pub trait StripeGroups {
    /// Returns and removes the pending changes of the store itself: groups that were opened or dropped. They must be
    /// journaled before any record of a later allocation.
    fn drain_changes(&self) -> Vec<Change>;

    /// Recomputes the available space after a drive was added, removed or lost.
    fn refresh(&self);

    /// Returns the number of groups that could be opened now.
    fn unopened(&self) -> u64;
}
