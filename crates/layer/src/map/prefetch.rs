//! Prefetching: asks the processor for memory before it is needed. A map of hundreds of thousands of runs does not fit
//! into the processor's caches. Fetching one line of it takes as long as all other work for a request. If the next
//! request is known, that wait can be avoided.
//!
//! Invariants:
//! 1. Nothing is read or written: results are equal with and without prefetching.

/// Bytes of a cache line, which the processor fetches at once.
const LINE_BYTES: usize = 64;

/// Makes the processor prefetch all cache lines in which `items` lie. Has no effect on processors other than x86-64.
#[inline]
pub fn prefetch_all<T>(items: &[T]) {
    let start = items.as_ptr().cast::<u8>();
    (0..size_of_val(items)).step_by(LINE_BYTES).for_each(|offset| ask_for(start.wrapping_add(offset)));
}

/// Makes the processor prefetch the cache line in which `item` begins; memory to which `item` points is not prefetched.
/// Has no effect on processors other than x86-64.
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
        // SAFETY: the instruction is a hint to the processor: it reads and writes nothing, and accepts any address.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(address.cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
