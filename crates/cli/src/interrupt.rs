//! Ctrl-C: the first asks long work to finish its files, the second ends the program.

use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Begins to listen. Harmless if the system does not let it.
pub fn listen() {
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            crate::files::discard_unfinished();
            std::process::exit(1);
        }
        eprintln!("\ninterrupted: finishing what has been read; Ctrl-C again to stop at once");
    });
}

/// Whether the user wants an end.
pub fn requested() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
