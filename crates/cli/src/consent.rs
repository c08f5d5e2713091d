//! The user's consent before a command overwrites a target. The rule is that of [`imbrex_safety::survey`]: a target in
//! use is always refused, `--force` permits the loss of contents, `--yes` answers the question.

use std::fmt::Display;
use std::io::{BufRead, IsTerminal, Write};

use imbrex::{Failure, human};
use imbrex_safety::{Refusal, Survey};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::interrupt;

/// Interval, in nanoseconds, at which Ctrl-C is checked while the program waits for the user's answer.
const LOOK_NS: i64 = 50_000_000;

/// Permissions that the options of a command give.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Consent {
    /// Whether `--force` was given: a target with contents is not refused. A target in use is still refused, and the
    /// question is still asked.
    pub force: bool,
    /// Whether `--yes` was given: the user is not asked on a terminal. A target with contents is still refused without
    /// `--force`.
    pub yes: bool,
}

/// Returns the failure for a target that must not be written.
pub(crate) fn refused(refusal: &Refusal) -> Failure {
    let failure = Failure::failed(refusal);
    match refusal.remedy() {
        Some(remedy) => failure.or_try(remedy),
        None => failure,
    }
}

/// Returns a function that makes the failure for a survey that ended with an I/O error.
pub(crate) fn not_surveyed(name: impl Display) -> impl Fn(std::io::Error) -> Failure {
    move |error| {
        Failure::failed(format!("{name}: looking for who uses it and what it holds: {error}; nothing was written"))
    }
}

/// Returns a failure if a target is in use, or if a target has contents and `--force` was not given.
pub(crate) fn check(surveys: &[Survey], consent: Consent) -> Result<(), Failure> {
    match surveys.iter().find_map(|survey| survey.refusal(consent.force)) {
        Some(refusal) => Err(refused(&refusal)),
        None => Ok(()),
    }
}

/// Checks all targets, shows those that need a question, and asks the user once about all of them. `what_happens` is
/// printed after the target's size.
pub(crate) fn ask(surveys: &[Survey], consent: Consent, what_happens: &str) -> Result<(), Failure> {
    check(surveys, consent)?;
    let asked: Vec<&Survey> = surveys.iter().filter(|survey| survey.needs_question()).collect();
    if asked.is_empty() {
        return Ok(());
    }
    for survey in asked {
        show(survey, what_happens);
    }
    confirm(consent)
}

/// Prints the facts and contents of a target on standard error.
pub(crate) fn show(survey: &Survey, what_happens: &str) {
    message!("{}: {}; {what_happens}", survey.name, human::bytes(survey.size_bytes));
    for (name, value) in &survey.facts {
        message!("  {name}: {value}");
    }
    match survey.contents.is_empty() {
        true => message!("  contents: nothing that is recognised"),
        false => survey.contents.iter().for_each(|contents| message!("  contents: {contents} (--force was given)")),
    }
}

/// Asks on a terminal whether to continue, unless `--yes` was given. Without a terminal nobody is asked.
///
/// # Errors
/// The user answered anything but "yes", pressed Ctrl-C, or the terminal could not be read.
pub(crate) fn confirm(consent: Consent) -> Result<(), Failure> {
    if consent.yes {
        return Ok(());
    }
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        message!("  standard input is no terminal, so nobody is asked");
        return Ok(());
    }
    interrupt::set_asking(true);
    crate::message::part(format_args!("Type yes to go on: "));
    let answer = std::io::stderr().flush().and_then(|()| answer());
    match answer {
        Ok(Some(answer)) if answer.trim() == "yes" => {
            interrupt::set_asking(false);
            Ok(())
        }
        // `IS_ASKING` stays set: a Ctrl-C that is still being handled was meant for this question.
        _ => Err(Failure::failed("not confirmed; nothing was written")),
    }
}

/// Returns the line that the user types, or `None` if Ctrl-C comes first.
fn answer() -> std::io::Result<Option<String>> {
    let stdin = std::io::stdin();
    loop {
        let mut waits = [PollFd::new(&stdin, PollFlags::IN)];
        let look = Timespec { tv_sec: 0, tv_nsec: LOOK_NS };
        match poll(&mut waits, Some(&look)) {
            Ok(0) | Err(Errno::INTR) if interrupt::requested() => return Ok(None),
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => break,
            Err(error) => return Err(error.into()),
        }
    }
    let mut line = String::new();
    stdin.lock().read_line(&mut line)?;
    Ok(Some(line))
}
