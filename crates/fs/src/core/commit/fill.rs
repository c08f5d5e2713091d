//! Row counts of stripe groups on drives that do not report how far a zone is written ([`crate::array`]), kept from one
//! mount to the next.
//!
//! ```text
//!   unmount: nothing more is appended ─► rows recorded ─► checkpoint        mount: rows read ─► forgotten, durably ─► appends
//! ```
//!
//! All appended data carry records with sequence numbers. So the log record that reserves the first of these numbers
//! also drops the row counts ([`crate::core::write_back::records`]). A mount that writes nothing keeps the row counts.
//!
//! Invariants:
//! 1. Row counts are recorded only for groups to which nothing is appended afterwards.
//! 2. Nothing is appended to a group with a recorded row count before it is durable that the row count is dropped.

use super::Committer;
use crate::format::change::Change;

impl Committer<'_> {
    /// Records the row counts of groups whose drives do not report them, if the next mount can append there. Closes
    /// these groups until then.
    pub(super) fn record_rows(self) {
        let Some(array) = self.0.data.array() else { return };
        let groups = array.seal_unreported();
        let is_known = self
            .0
            .namespace
            .borrow()
            .groups()
            .rows()
            .iter()
            .map(|(group, rows)| (*group, *rows))
            .eq(groups.iter().copied());
        if !is_known {
            self.0.record(&[Change::Rows { groups }]);
        }
    }

    /// Returns the change that drops all row counts, if there are any. Once it is durable, the caller calls
    /// [`Committer::rows_are_forgotten`].
    pub(in crate::core) fn forget_rows(self) -> Option<Change> {
        let is_known = !self.0.namespace.borrow().groups().rows().is_empty();
        is_known.then(|| Change::Rows { groups: Vec::new() })
    }

    /// Allows appends to the groups that had a row count.
    pub(in crate::core) fn rows_are_forgotten(self) {
        self.0.data.array().into_iter().for_each(|array| array.trust_no_more());
    }
}
