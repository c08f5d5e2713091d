//! The limit on the size of files (`ulimit -f`). A write past the limit gets the error EFBIG, but only in a process
//! that ignores SIGXFSZ; any other process is killed in the middle of its work.

/// Ignores SIGXFSZ from now on, so that a write past the limit is an error like any other.
#[cfg(unix)]
#[expect(unsafe_code, reason = "to ignore a signal is a call of the C library, and no crate of ours wraps it")]
pub(crate) fn report_as_error() {
    // SAFETY: SIG_IGN runs no code of ours, and no other thread is there yet.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Does nothing: this platform has no SIGXFSZ, the Unix signal for a write past the limit on the size of files.
#[cfg(not(unix))]
pub fn report_as_error() {}
