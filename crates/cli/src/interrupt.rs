//! Ctrl-C: the first asks long work to finish its files, the second ends the program.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static ANSWER: OnceLock<&str> = OnceLock::new();
/// Whether a question is open: then Ctrl-C is an answer, and whoever asked says what follows.
static IS_ASKING: AtomicBool = AtomicBool::new(false);

/// Begins to listen. Harmless if the system does not let it.
pub fn listen() {
    let _ = ctrlc::set_handler(|| {
        // Read first: the one who asks closes the question as soon as it sees the interrupt.
        let is_asking = IS_ASKING.load(Ordering::SeqCst);
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            imbrex::files::discard_unfinished();
            imbrex_probe::targets::restore_all();
            std::process::exit(1);
        }
        if is_asking {
            eprintln!();
            return;
        }
        let answer = ANSWER.get().unwrap_or(&"finishing what has been read");
        eprintln!("\ninterrupted: {answer}; Ctrl-C again to stop at once");
    });
}

/// What the first Ctrl-C is answered with from now on, for work that ends in its own way.
pub fn answer_with(words: &'static str) {
    // Only the first counts: a program does one such work.
    let _ = ANSWER.set(words);
}

/// Says that a question to the user is open, or is so no more.
pub fn set_asking(is_asking: bool) {
    IS_ASKING.store(is_asking, Ordering::SeqCst);
}

/// Asks for an end, as the first Ctrl-C does.
pub fn request() {
    INTERRUPTED.store(true, Ordering::SeqCst);
}

/// Whether the user wants an end.
pub fn requested() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
