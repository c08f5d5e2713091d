//! First in, first out.

use crate::queue::{Queue, Slot};

/// The oldest.
pub fn choose(queue: &Queue) -> Option<Slot> {
    queue.oldest()
}
