//! An allocator that counts, for tests that what a stranger says makes nobody allocate without bound. A test names it as
//! its global allocator; threads are counted each for itself, so tests beside one another do not disturb.
//!
//! Invariants:
//! 1. It gives and takes back exactly what the system's allocator does.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD_BYTES: Cell<i64> = const { Cell::new(0) };
    static PEAK_BYTES: Cell<i64> = const { Cell::new(0) };
}

/// The allocator.
pub struct Counting;

impl Counting {
    /// Calls `work`; says how many bytes more than before this thread held at the most meanwhile.
    pub fn peak_bytes<T>(work: impl FnOnce() -> T) -> (T, u64) {
        let before = HELD_BYTES.get();
        PEAK_BYTES.set(before);
        let outcome = work();
        (outcome, PEAK_BYTES.get().saturating_sub(before).max(0) as u64)
    }
}

fn count(bytes: i64) {
    let held = HELD_BYTES.get() + bytes;
    HELD_BYTES.set(held);
    PEAK_BYTES.set(PEAK_BYTES.get().max(held));
}

#[expect(unsafe_code, reason = "a global allocator is unsafe by its trait")]
// SAFETY: every call goes to the system's allocator as it came; the counters are plain thread-local numbers, which
// allocate nothing and have no destructors.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as the caller promised.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes as i64 - layout.size() as i64);
        // SAFETY: as the caller promised.
        unsafe { System.realloc(at, layout, bytes) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(at, layout) }
    }
}
