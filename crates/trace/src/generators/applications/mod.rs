//! Workloads of applications, which fio's words cannot describe: requests come in transactions, whose parts go to
//! different positions and must stay in order.
//!
//! Invariants:
//! 1. The number of requests is exactly the announced one; the last transaction may be cut short.
//! 2. Equal drive sizes and seeds give equal requests.
//! 3. Memory is bounded: one transaction, and the state of the application.

pub(super) mod database;
pub(super) mod mail;

use imbrex_units::{Command, SimDuration, SimTime};

use super::error::{WordError, WordPlace, WorkloadError};
use super::quantity::Share;
use super::random::Stream;
use crate::request::{Request, Source, TraceError, When};

/// Sectors of the smallest drive with enough room for an application.
const DEVICE_SECTORS_MIN: u64 = 1 << 25;

/// An application that makes transactions.
trait Application: Send {
    /// Appends the commands of the next transaction to `requests`.
    fn transaction(&mut self, requests: &mut Vec<Command>);
}

/// The source of an application's requests.
struct Transactions<A> {
    application: A,
    in_hand: Vec<Command>,
    next: usize,
    left: u64,
    whole: u64,
}

impl<A: Application> Transactions<A> {
    fn new(application: A, requests: u64) -> Transactions<A> {
        Transactions { application, in_hand: Vec::new(), next: 0, left: requests, whole: requests }
    }
}

impl<A: Application> Source for Transactions<A> {
    fn next(&mut self, _now: SimTime) -> Result<Option<Request>, TraceError> {
        if self.left == 0 {
            return Ok(None);
        }
        if self.next == self.in_hand.len() {
            self.in_hand.clear();
            self.next = 0;
            self.application.transaction(&mut self.in_hand);
            assert!(!self.in_hand.is_empty(), "a transaction makes at least one request");
        }
        let command = self.in_hand[self.next];
        self.next += 1;
        self.left -= 1;
        Ok(Some(Request { when: When::Free(SimDuration::ZERO), device: 0, command }))
    }

    fn expected_requests(&self) -> Option<u64> {
        Some(self.whole)
    }
}

/// Returns an error if the drive is too small for an application.
fn check_room(name: &str, device_sectors: u64) -> Result<(), WorkloadError> {
    if device_sectors >= DEVICE_SECTORS_MIN {
        return Ok(());
    }
    let complaint = WordError::new(format!("{name} needs a drive of 16 GiB or more"), "use a larger drive");
    Err(complaint.at(WordPlace::Workload))
}

/// A circular part of the drive: a journal, a log.
struct Ring {
    first: u64,
    sectors: u64,
    cursor: u64,
}

impl Ring {
    fn new(first: u64, sectors: u64) -> Ring {
        Ring { first, sectors, cursor: 0 }
    }

    /// Allocates the next `sectors` of the ring and returns the first one.
    fn append(&mut self, sectors: u32) -> u64 {
        if self.cursor + sectors as u64 > self.sectors {
            self.cursor = 0;
        }
        let place = self.first + self.cursor;
        self.cursor += sectors as u64;
        place
    }
}

const fn percent(percent: u32) -> Share {
    Share::from_millionths(percent * 10_000)
}

/// Draws one of `sizes` by its share in percent. Returns sectors.
fn size(stream: &mut Stream, sizes: &[(u64, u32)]) -> u32 {
    let mut draw = stream.below(100);
    for &(share, sectors) in sizes {
        match draw.checked_sub(share) {
            Some(rest) => draw = rest,
            None => return sectors,
        }
    }
    unreachable!("the shares add up to 100 percent")
}

#[cfg(test)]
mod tests {
    //! Goal: the properties in the applications' module docs. Method: generate the requests once and count.

    use std::collections::BTreeMap;

    use super::*;
    use imbrex_units::Operation;

    type Build = fn(u64, u64) -> Result<Box<dyn Source>, WorkloadError>;

    const APPLICATIONS: [(&str, Build); 2] = [("mail-server", mail::build), ("database", database::build)];
    const DEVICE_SECTORS: u64 = 1 << 31;

    fn made(build: Build, seed: u64) -> Vec<Command> {
        let mut source = build(DEVICE_SECTORS, seed).expect("has room");
        std::iter::from_fn(|| source.next(SimTime::ZERO).expect("does not fail")).map(|r| r.command).collect()
    }

    fn share(commands: &[Command], is_counted: impl Fn(&Command) -> bool) -> f64 {
        commands.iter().filter(|command| is_counted(command)).count() as f64 / commands.len() as f64
    }

    #[test]
    fn a_seed_makes_one_workload_within_the_drive() {
        for (name, build) in APPLICATIONS {
            let commands = made(build, 7);
            assert!(commands.iter().all(|command| command.end().0 <= DEVICE_SECTORS), "{name}");
            assert!(commands.iter().all(|c| (c.sectors == 0) == (c.operation == Operation::Flush)), "{name}");
            assert_eq!(commands, made(build, 7), "{name}");
            assert_ne!(commands, made(build, 8), "{name}");
            assert!(build(DEVICE_SECTORS_MIN - 1, 7).is_err(), "{name}");
        }
    }

    #[test]
    fn every_delivery_ends_in_a_flush_and_reads_find_messages() {
        let commands = made(mail::build, 3);
        // Of 100 transactions, 45 are deliveries with four requests, 10 are marks with three, and 45 are reads with
        // one. Of their 255 requests, 55 are flushes and 45 are reads.
        let flushes = share(&commands, |command| command.operation == Operation::Flush);
        let reads = share(&commands, |command| command.operation == Operation::Read);
        assert!((flushes - 55.0 / 255.0).abs() < 0.005, "{flushes}");
        assert!((reads - 45.0 / 255.0).abs() < 0.005, "{reads}");
        let mut written = BTreeMap::new();
        let mut found = 0;
        for command in &commands {
            match command.operation {
                Operation::Write => _ = written.insert(command.lba, command.sectors),
                Operation::Read => found += u32::from(written.get(&command.lba) == Some(&command.sectors)),
                Operation::Flush | Operation::Trim => {}
            }
        }
        let reads = commands.iter().filter(|command| command.operation == Operation::Read).count() as f64;
        assert!(found as f64 / reads > 0.9, "{found} of {reads} reads are of a message delivered before");
    }

    #[test]
    fn commits_go_to_the_log_in_order_and_are_forced() {
        let commands = made(database::build, 3);
        let forced: Vec<_> = commands.iter().filter(|command| command.fua).collect();
        // Of ten transactions, seven are reads with one request. The other three are commits with one forced write and
        // one page write.
        let expected = 30.0 / 130.0;
        assert!((forced.len() as f64 / commands.len() as f64 - expected).abs() < 0.005, "{}", forced.len());
        assert!(forced.windows(2).all(|pair| pair[0].end() == pair[1].lba || pair[1].lba < pair[0].lba));
        let reads = share(&commands, |command| command.operation == Operation::Read);
        assert!((reads - 70.0 / 130.0).abs() < 0.005, "{reads}");
    }
}
