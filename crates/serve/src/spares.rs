//! Large buffers that any connection may reuse: a new buffer costs more than copying data into it. Small buffers stay
//! with their connection.
//!
//! Invariants:
//! 1. The buffers kept have at most [`SPARE_BYTES_IN_ALL`] bytes, however many clients there are.
//! 2. A buffer that is taken has at most twice the requested capacity: the drive may keep it.
//! 3. Old contents of a buffer are never sent to a client: the connection that takes a buffer overwrites it first.

use std::sync::{Mutex, MutexGuard};

/// Maximum total capacity of all kept buffers of one [`Spares`], in bytes: 32 MiB.
pub const SPARE_BYTES_IN_ALL: usize = 32 << 20;

/// Buffers that are kept for reuse by all connections of a server, of at most 32 MiB together.
#[derive(Default)]
pub struct Spares(Mutex<Vec<Vec<u8>>>);

impl Spares {
    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().expect("no thread panics while it looks through buffers")
    }

    /// Removes a kept buffer with a capacity of `bytes` to twice `bytes` (inclusive), and returns it with its old
    /// contents and length. Returns a new empty buffer without capacity if none fits.
    pub fn take(&self, bytes: usize) -> Vec<u8> {
        let mut kept = self.lock();
        let found = kept.iter().rposition(|buffer| (bytes..=2 * bytes).contains(&buffer.capacity()));
        found.map_or_else(Vec::new, |index| kept.swap_remove(index))
    }

    /// Keeps `buffer` for reuse, or frees it if the kept buffers would then exceed [`SPARE_BYTES_IN_ALL`].
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
