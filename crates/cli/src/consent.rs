//! The user's consent before a command writes all over a target. The rule is that of [`imbrex_safety::survey`]: use is never
//! overridden, `--force` replaces contents, `--yes` answers the question.

use std::fmt::Display;
use std::io::{BufRead, IsTerminal, Write};

use imbrex::{Failure, human};
use imbrex_safety::{Refusal, Survey};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::interrupt;

/// How often it is looked for Ctrl-C while the user is asked.
const LOOK_NS: i64 = 50_000_000;

/// What the options of a command allow.
#[derive(Clone, Copy, Default, Debug)]
pub struct Consent {
    /// `--force`: what a target holds may be lost.
    pub force: bool,
    /// `--yes`: the question on a terminal is answered.
    pub yes: bool,
}

/// Returns the failure for a target that must not be written.
pub fn refused(refusal: &Refusal) -> Failure {
    let failure = Failure::failed(refusal);
    match refusal.remedy() {
        Some(remedy) => failure.or_try(remedy),
        None => failure,
    }
}

/// Returns the failure of a survey.
pub fn not_surveyed(name: impl Display) -> impl Fn(std::io::Error) -> Failure {
    move |error| {
        Failure::failed(format!("{name}: looking for who uses it and what it holds: {error}; nothing was written"))
    }
}

/// Refuses targets that are in use, and targets that hold something without `--force`.
pub fn check(surveys: &[Survey], consent: Consent) -> Result<(), Failure> {
    match surveys.iter().find_map(|survey| survey.refusal(consent.force)) {
        Some(refusal) => Err(refused(&refusal)),
        None => Ok(()),
    }
}

/// Checks all targets, shows what will be lost of those that a person is asked about, and asks once. `what_happens`
/// is the sentence that stands behind the target's size.
pub fn ask(surveys: &[Survey], consent: Consent, what_happens: &str) -> Result<(), Failure> {
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

/// Shows what is known of a target.
pub fn show(survey: &Survey, what_happens: &str) {
    eprintln!("{}: {}; {what_happens}", survey.name, human::bytes(survey.size_bytes));
    for (name, value) in &survey.facts {
        eprintln!("  {name}: {value}");
    }
    match survey.contents.is_empty() {
        true => eprintln!("  contents: nothing that is recognised"),
        false => survey.contents.iter().for_each(|contents| eprintln!("  contents: {contents} (--force was given)")),
    }
}

/// Asks on a terminal whether to go on, unless `--yes` has answered.
pub fn confirm(consent: Consent) -> Result<(), Failure> {
    if consent.yes {
        return Ok(());
    }
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        eprintln!("  standard input is no terminal, so nobody is asked");
        return Ok(());
    }
    interrupt::set_asking(true);
    eprint!("Type yes to go on: ");
    let answer = std::io::stderr().flush().and_then(|()| answer());
    match answer {
        Ok(Some(answer)) if answer.trim() == "yes" => {
            interrupt::set_asking(false);
            Ok(())
        }
        // The question stays open: an interrupt that is still on its way was meant for it.
        _ => Err(Failure::failed("not confirmed; nothing was written")),
    }
}

/// Returns the line that the user types; none where Ctrl-C comes first.
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
