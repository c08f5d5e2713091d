//! Messages about wrong command lines.

use std::io::IsTerminal;

use clap::error::ErrorKind;

use crate::error::ExitCode;
use crate::output;

/// Error messages of Rust's number parsers, each with its replacement in plain words.
const WORDS: [(&str, &str); 4] = [
    ("invalid digit found in string", "expected a whole number"),
    ("cannot parse integer from empty string", "expected a whole number, and there is nothing"),
    ("number too large to fit in target type", "the number is too large"),
    ("number too small to fit in target type", "the number is too small"),
];

/// Prints the usage error, or the help or version text that was requested, and ends the program.
pub(crate) fn leave(error: &clap::Error) -> ! {
    let words = error.render();
    if !error.use_stderr() {
        let words = if std::io::stdout().is_terminal() { words.ansi().to_string() } else { words.to_string() };
        output::part(&words);
        std::process::exit(output::finished(ExitCode::Done) as i32)
    }
    if error.kind() != ErrorKind::ValueValidation {
        error.exit();
    }
    let words = if std::io::stderr().is_terminal() { words.ansi().to_string() } else { words.to_string() };
    crate::message::part(format_args!("{}", in_plain_words(words)));
    std::process::exit(ExitCode::Usage as i32)
}

fn in_plain_words(words: String) -> String {
    WORDS.iter().fold(words, |words, (of_rust, plain)| words.replace(of_rust, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_none_is_told_in_plain_words() {
        for (text, plain) in [("x", WORDS[0].1), ("", WORDS[1].1), ("99999999999", WORDS[2].1)] {
            let of_rust = text.parse::<u32>().expect_err("it is none").to_string();
            assert_eq!(in_plain_words(format!("'{text}': {of_rust}")), format!("'{text}': {plain}"));
        }
    }
}
