//! Large buffers that are used again by whichever connection needs one next: new ones cost more than what is copied into
//! them. Small ones stay with their connection.
//!
//! Invariants:
//! 1. What is kept is at most [`SPARE_BYTES_IN_ALL`], however many clients there are.
//! 2. Whoever takes a buffer gets at most twice what it asked for: the drive may keep it.
//! 3. What a buffer held before is never given to a client: whoever takes one fills it first.

use std::sync::{Mutex, MutexGuard};

/// Bytes of all buffers kept.
pub const SPARE_BYTES_IN_ALL: usize = 32 << 20;

/// Buffers of all connections.
#[derive(Default)]
pub struct Spares(Mutex<Vec<Vec<u8>>>);

impl Spares {
    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().expect("no thread panics while it looks through buffers")
    }

    /// A buffer with room for so many bytes and no more than twice as many, or an empty one. It holds what it held.
    pub fn take(&self, bytes: usize) -> Vec<u8> {
        let mut kept = self.lock();
        let found = kept.iter().rposition(|buffer| (bytes..=2 * bytes).contains(&buffer.capacity()));
        found.map_or_else(Vec::new, |index| kept.swap_remove(index))
    }

    /// Takes a buffer that is not needed any more; frees it where there are enough.
    pub fn keep(&self, buffer: Vec<u8>) {
        let mut kept = self.lock();
        let held: usize = kept.iter().map(Vec::capacity).sum();
        if held + buffer.capacity() <= SPARE_BYTES_IN_ALL {
            kept.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_kept_than_the_bound_and_what_fits_is_found() {
        let spares = Spares::default();
        let mib = 1 << 20;
        for size in [mib, 3 * mib, 2 * mib] {
            spares.keep(Vec::with_capacity(size));
        }
        assert_eq!(spares.take(2 * mib).capacity(), 2 * mib, "the one that was used last");
        assert_eq!(spares.take(2 * mib).capacity(), 3 * mib);
        assert_eq!(spares.take(2 * mib).capacity(), 0, "the last is too small");
        assert_eq!(spares.take(mib / 2 - 1).capacity(), 0, "and too large for so little");
        (0..100).for_each(|_| spares.keep(Vec::with_capacity(mib)));
        let held: usize = spares.lock().iter().map(Vec::capacity).sum();
        assert_eq!(held, SPARE_BYTES_IN_ALL);
    }
}
