//! Limits of an action: operations of devices, virtual time, memory, and wall-clock time against hangs. None is a
//! measurement: each limit is far above the needs of a store of a megabyte, and is reached only by endless work.
//!
//! Exceeding memory or time ends the process, because it cannot be unwound from there; the seed is printed first.
//!
//! The allocator serves the whole test program. It counts the memory of each thread separately, and limits the threads
//! that judge stores, so tests of other files that run beside them neither end the process nor are limited.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Write;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use imbrex_fs::device::{Backend, Geometry, Operation, Outcome};

/// Most operations of all devices in one action.
const OPERATIONS_MAX: u64 = 200_000;
/// Most bytes of memory in use by a thread that judges stores.
const MEMORY_MAX: i64 = 1 << 30;
/// Wall-clock time in seconds after which an action counts as endless.
const WATCHED_S: u64 = 600;

/// Seed and number of the current action, for the message that ends the process.
static SEED: AtomicU64 = AtomicU64::new(u64::MAX);
static ACTIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Bytes that this thread allocated, less those that it freed; memory may be freed by another thread.
    static BYTES: Cell<i64> = const { Cell::new(0) };
    /// Whether this thread judges stores.
    static IS_LIMITED: Cell<bool> = const { Cell::new(false) };
}

/// The system's allocator with a limit.
pub(crate) struct Bounded;

// SAFETY: every call is passed unchanged to the system's allocator; counting touches none of its memory. No safe crate
// limits the memory of a process and lets it print why it ended.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller keeps the promises that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller keeps the promises that `System` asks for.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.set(BYTES.get() - layout.size() as i64);
        // SAFETY: the pointer came from `System` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Counts an allocation of `size` bytes.
fn take(size: usize) {
    let bytes = BYTES.get() + size as i64;
    if bytes > MEMORY_MAX && IS_LIMITED.get() {
        end("more memory than there may be");
    }
    BYTES.set(bytes);
}

fn end(why: &str) -> ! {
    let (seed, action) = (SEED.load(Ordering::Relaxed), ACTIONS.load(Ordering::Relaxed));
    // Not by a macro: the output of tests is held back until they end.
    let _ = writeln!(std::io::stderr(), "seed {seed}, action {action}: {why}");
    std::process::abort()
}

/// Marks the beginning of an action of `seed` in this thread.
pub(crate) fn begin(seed: u64) {
    IS_LIMITED.set(true);
    SEED.store(seed, Ordering::Relaxed);
    ACTIONS.fetch_add(1, Ordering::Relaxed);
}

/// Starts a thread that checks that actions end.
pub(crate) fn watch() {
    static WATCH: std::sync::Once = std::sync::Once::new();
    WATCH.call_once(|| {
        std::thread::spawn(|| {
            loop {
                let before = ACTIONS.load(Ordering::Relaxed);
                std::thread::sleep(Duration::from_secs(WATCHED_S));
                if ACTIONS.load(Ordering::Relaxed) == before && SEED.load(Ordering::Relaxed) != u64::MAX {
                    end("it does not end");
                }
            }
        });
    });
}

/// Marks that all actions of this thread are over.
pub(crate) fn over() {
    IS_LIMITED.set(false);
    SEED.store(u64::MAX, Ordering::Relaxed);
}

/// A device that counts its operations together with those of other devices.
pub(crate) struct Limited<B> {
    inner: B,
    operations: Rc<Cell<u64>>,
}

impl<B> Limited<B> {
    /// Returns a counting device in front of `inner`.
    pub(crate) fn new(inner: B, operations: &Rc<Cell<u64>>) -> Limited<B> {
        Limited { inner, operations: operations.clone() }
    }
}

impl<B: Backend> Backend for Limited<B> {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn submit(&mut self, now_ns: u64, number: u64, operation: Operation) {
        self.operations.set(self.operations.get() + 1);
        assert!(self.operations.get() <= OPERATIONS_MAX, "more than {OPERATIONS_MAX} operations of the devices");
        self.inner.submit(now_ns, number, operation);
    }

    fn next_event_ns(&mut self, now_ns: u64) -> Option<u64> {
        self.inner.next_event_ns(now_ns)
    }

    fn answers(&mut self, now_ns: u64, answers: &mut Vec<(u64, Outcome)>) {
        self.inner.answers(now_ns, answers);
    }

    fn head_position(&self) -> u64 {
        self.inner.head_position()
    }

    fn next_data(&mut self, block: u64) -> u64 {
        self.inner.next_data(block)
    }
}
