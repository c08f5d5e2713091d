//! Messages about wrong command lines.

use std::io::IsTerminal;

use clap::error::ErrorKind;

use crate::error::ExitCode;
use crate::output;

/// Error messages of Rust's number parsers, each with its replacement in plain words.
const WORDS: [(&str, &str); 4] = [
    ("invalid digit found in string", "expected a whole number from 0"),
    ("cannot parse integer from empty string", "expected a whole number from 0, and there is nothing"),
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
    let words = words.to_string();
    let words = match error.kind() {
        // The help of a command that was called without arguments.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => words,
        _ => in_our_form(&in_plain_words(words)),
    };
    crate::message::part(format_args!("{words}"));
    std::process::exit(ExitCode::Usage as i32)
}

/// Gives a message of the parser the form of all error messages: `imbrex:` and the fault, then lines with `try:`.
fn in_our_form(message: &str) -> String {
    let (fault, rest) = message.split_once('\n').unwrap_or((message, ""));
    let mut lines = format!("imbrex: {}\n", fault.strip_prefix("error: ").unwrap_or(fault));
    // A word with two hyphens is a misspelt option; it is hardly ever the name of a file.
    let is_meant = |line: &&str| !line.trim().is_empty() && !line.starts_with("  tip: to pass '--");
    for line in rest.lines().filter(is_meant) {
        let line = match line {
            "For more information, try '--help'." => "  try: --help".to_string(),
            _ if line.starts_with("  tip: ") => line.replacen("tip", "try", 1),
            _ if line.starts_with("Usage: ") => format!("  {}", line.replacen("Usage", "usage", 1)),
            _ => line.to_string(),
        };
        lines.push_str(&line);
        lines.push('\n');
    }
    lines
}

/// Replaces the errors of number parsers, which end the first line.
fn in_plain_words(words: String) -> String {
    let (fault, rest) = words.split_once('\n').unwrap_or((&words, ""));
    let replaced = WORDS.iter().find_map(|(of_rust, plain)| Some(format!("{}{plain}", fault.strip_suffix(of_rust)?)));
    format!("{}\n{rest}", replaced.as_deref().unwrap_or(fault))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args;

    #[test]
    fn wrong_command_lines_have_the_form_of_all_errors() {
        for (words, expected) in [
            (
                &["simulate"][..],
                "imbrex: the following required arguments were not provided:\n  <WORKLOAD>\n  usage: imbrex simulate <WORKLOAD>\n  try: --help\n",
            ),
            (
                &["simulte"],
                "imbrex: unrecognized subcommand 'simulte'\n  try: a similar subcommand exists: 'simulate'\n  usage: imbrex [OPTIONS] <COMMAND>\n  try: --help\n",
            ),
            (
                &["serve", "--sync", "full", "x"],
                "imbrex: invalid value 'full' for '--sync <WHAT>'\n  [possible values: none, barrier]\n  try: --help\n",
            ),
            (
                &["simulate", "x", "--zzz", "3"],
                "imbrex: unexpected argument '--zzz' found\n  usage: imbrex simulate <WORKLOAD>\n  try: --help\n",
            ),
            (
                &["simulate", "x", "--limit", "-1"],
                "imbrex: invalid value '-1' for '--limit <REQUESTS>': invalid digit found in string\n  try: --help\n",
            ),
            (
                &["simulate", "x", "--limit", "a\nerror: b"],
                "imbrex: invalid value 'a\nerror: b' for '--limit <REQUESTS>': invalid digit found in string\n  try: --help\n",
            ),
        ] {
            let error = args::parse([&["imbrex"], words].concat()).expect_err("it is wrong");
            assert_eq!(in_our_form(&error.render().to_string()), expected);
        }
    }

    #[test]
    fn a_number_that_is_none_is_told_in_plain_words() {
        for (text, plain) in [("x", WORDS[0].1), ("", WORDS[1].1), ("99999999999", WORDS[2].1)] {
            let of_rust = text.parse::<u32>().expect_err("it is none").to_string();
            let message = |reason: &str| format!("'{text}': {reason}\n\nmore\n");
            assert_eq!(in_plain_words(message(&of_rust)), message(plain));
        }
    }
}
