//! Stripe groups of a store on an array.

use crate::format::change::Change;

/// A store on an array. It forms stripe groups, each of one zone on several drives, when it needs them, and drops the
/// groups that were emptied.
pub trait StripeGroups {
    /// Removes and returns the pending changes of the metadata: stripe groups that were opened or dropped since the
    /// last call. They must be journaled before any record of a later allocation.
    fn drain_changes(&self) -> Vec<Change>;

    /// Recomputes the available space, after a drive was added, removed or lost.
    fn refresh(&self);

    /// Returns the number of stripe groups that could be opened now from the free zones of the drives, those kept back
    /// for the cleaner included.
    fn unopened(&self) -> u64;
}
