//! Asking the processor for memory before it is needed. A map of hundreds of thousands of runs lies in no cache, and fetching a
//! line of it takes as long as all else that is done for a request; where the next request is known, that time need not be
//! waited for.
//!
//! Invariants:
//! 1. Nothing is read or written: results are the same with it and without.

/// Bytes that are fetched at once.
const LINE_BYTES: usize = 64;

/// Asks for all lines of memory in which `items` lie.
#[inline]
pub fn prefetch_all<T>(items: &[T]) {
    let start = items.as_ptr().cast::<u8>();
    (0..size_of_val(items)).step_by(LINE_BYTES).for_each(|offset| ask_for(start.wrapping_add(offset)));
}

/// Asks for the line of memory in which `item` begins.
#[inline]
pub fn prefetch<T>(item: &T) {
    ask_for(std::ptr::from_ref(item).cast());
}

#[inline]
fn ask_for(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        #[allow(unsafe_code)] // the standard library has no safe form that is stable
        // SAFETY: a hint to the processor, which reads and writes nothing and takes any address.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(address.cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
