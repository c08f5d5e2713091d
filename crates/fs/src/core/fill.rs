//! What is known of the rows of stripe groups whose drives do not tell it ([`crate::array`]), from one mount to the next.
//!
//! ```text
//!   unmount: nothing more is appended ─► rows told ─► checkpoint        mount: rows read ─► forgotten, durably ─► appends
//! ```
//!
//! Whatever is appended has records, and these have numbers: so the rows are forgotten with the record that lets the first of
//! them be given ([`super::records`]). A mount that writes nothing forgets nothing.
//!
//! Invariants:
//! 1. Rows are told only of groups that nothing is appended to from then on.
//! 2. Nothing is appended to a group of which they were told before it is durable that they are forgotten.

use super::Fs;
use crate::format::change::Change;

impl Fs {
    /// Tells the rows of the groups that can be appended to when it is mounted again, and closes them until then.
    pub(super) fn tell_rows(&self) {
        let Some(array) = self.0.data.array() else { return };
        let groups = array.seal_untold();
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

    /// What forgets the rows that are known, if any are; [`Fs::rows_are_forgotten`] follows when that is durable.
    pub(super) fn forget_rows(&self) -> Option<Change> {
        let is_known = !self.0.namespace.borrow().groups().rows().is_empty();
        is_known.then(|| Change::Rows { groups: Vec::new() })
    }

    /// Groups of which the rows were known are appended to from now on.
    pub(super) fn rows_are_forgotten(&self) {
        self.0.data.array().into_iter().for_each(|array| array.trust_no_more());
    }
}
