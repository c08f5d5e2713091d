//! The parts that the two queues of a section share: the entries of its cache buffer ([`super::entries`]) and the slots
//! of its S-block buffer ([`super::slots`]).

use std::collections::VecDeque;

/// Value that stands for the S-block of a slot, or the first LBA of a cache entry, that is no longer known because the
/// slot or the entry is dead.
pub(super) const DEAD: u64 = u64::MAX;

/// Least number of words by which a queue grows.
const GROWTH_MIN: usize = 32;

/// Makes room in `queue` if it lacks space for `more` words, which are at most 32. The capacity grows by an eighth of
/// the length or by 32 words, whichever is more. Doubling would let a thousand queues that grow together take twice the
/// memory they need.
#[inline]
pub(super) fn grow(queue: &mut VecDeque<u32>, more: usize) {
    if queue.len() + more > queue.capacity() {
        queue.reserve_exact(GROWTH_MIN.max(queue.len() / 8));
    }
}
