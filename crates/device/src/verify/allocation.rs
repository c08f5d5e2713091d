//! A counting allocator, for tests which check that untrusted input causes no unbounded allocation. A test declares
//! [`Counting`] as its global allocator. Threads are counted separately, so tests in parallel do not disturb each
//! other.
//!
//! Invariants:
//! 1. Every call is passed unchanged to the system's allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD_BYTES: Cell<i64> = const { Cell::new(0) };
    static PEAK_BYTES: Cell<i64> = const { Cell::new(0) };
}

/// A global allocator that counts, for each thread, the bytes held allocated now and their maximum. A release subtracts
/// from the count of the thread that releases. Every call is passed on to the system's allocator.
/// [`Counting::peak_bytes`] reads the counts.
pub struct Counting;

impl Counting {
    /// Calls `work` and returns its result, together with the largest number of bytes that this thread held allocated
    /// at any time during the call, minus those that it held before. Meaningful only if [`Counting`] is the global
    /// allocator of the program.
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
// SAFETY: every call is passed unchanged to the system's allocator. The counters are plain thread-local numbers,
// which allocate nothing and have no destructors.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes as i64 - layout.size() as i64);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(at, layout, bytes) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }
}
