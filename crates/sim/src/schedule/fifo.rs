//! First in, first out.

use crate::queue::{Queue, Slot};

/// Returns the oldest command.
pub(super) fn choose(queue: &Queue) -> Option<Slot> {
    queue.oldest()
}
