//! Ctrl-C: the first asks long work to end and to finish its files, the second ends the program at once.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static ANSWER: OnceLock<&str> = OnceLock::new();
/// Whether the user is being asked a question. Ctrl-C is then an answer, and the function that asks prints the message.
static IS_ASKING: AtomicBool = AtomicBool::new(false);

/// Installs the handler of Ctrl-C. An error of the operating system is ignored: then Ctrl-C ends the program at once.
pub(crate) fn listen() {
    imbrex::files::stop_waiting_when(requested);
    let _ = ctrlc::set_handler(|| {
        // Read before `INTERRUPTED` is set: the function that asks clears the flag as soon as it sees the interrupt.
        let is_asking = IS_ASKING.load(Ordering::SeqCst);
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            imbrex::files::discard_unfinished();
            imbrex_probe::targets::restore_all();
            std::process::exit(1);
        }
        if is_asking {
            message!();
            return;
        }
        let answer = ANSWER.get().unwrap_or(&"finishing what has been read");
        message!("\ninterrupted: {answer}; Ctrl-C again to stop at once");
    });
}

/// Sets the message that the first Ctrl-C prints, for work that has its own way to end.
pub(crate) fn answer_with(words: &'static str) {
    // Only the first call counts: a program does one such work.
    let _ = ANSWER.set(words);
}

/// Records whether the user is being asked a question.
pub(crate) fn set_asking(is_asking: bool) {
    IS_ASKING.store(is_asking, Ordering::SeqCst);
}

/// Asks the running work to end, as the first Ctrl-C does.
pub(crate) fn request() {
    INTERRUPTED.store(true, Ordering::SeqCst);
}

/// Returns whether the end of the work was requested.
pub(crate) fn requested() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
