//! A mail server: messages are delivered, read while they are new, and marked.
//!
//! A delivery writes the message behind the previous message of its mailbox, the mailbox's index block and a record of
//! the file system's journal, and flushes. Marking a message writes index and journal, and flushes. Each mailbox has a
//! contiguous slice of the first half of the drive. Some mailboxes get far more mail than others (zipf). All figures
//! are our own choice.
//!
//! Invariants:
//! 1. Each slice is written as a ring: its newest messages never overlap, and all lie within the slice.

use imbrex_units::Command;

use super::super::distribution::{Distribution, Sampler};
use super::super::error::WorkloadError;
use super::super::random::{Stream, mix};
use super::{Application, Ring, Transactions, check_room, percent, size};
use crate::request::Source;

/// Total number of requests.
const REQUESTS: u64 = 600_000;
const MAILBOXES: u64 = 4096;
/// Sectors of the file system's journal, at the front of the drive.
const JOURNAL_SECTORS: u64 = 128 * 2048;
/// Sectors of an index block. `RECORD_SECTORS` is the size of a journal record.
const INDEX_SECTORS: u32 = 8;
const RECORD_SECTORS: u32 = 16;
/// Number of newest messages in a mailbox that may be read again.
const NEWEST: usize = 16;
/// Sizes of messages in sectors, with shares in percent. The mean is 12.2 KiB.
const MESSAGE_SECTORS: [(u64, u32); 5] = [(40, 8), (30, 16), (15, 32), (10, 64), (5, 128)];

/// A mailbox: the position of its next message, and its newest messages.
#[derive(Clone)]
struct Mailbox {
    cursor: u64,
    newest: Vec<(u64, u32)>,
    next: usize,
}

struct Mail {
    stream: Stream,
    popular: Sampler,
    first: u64,
    slice_sectors: u64,
    mailboxes: Vec<Mailbox>,
    journal: Ring,
}

/// Returns the workload on a drive of `device_sectors` sectors.
pub(crate) fn build(device_sectors: u64, seed: u64) -> Result<Box<dyn Source>, WorkloadError> {
    check_room("mail-server", device_sectors)?;
    let empty = Mailbox { cursor: INDEX_SECTORS as u64, newest: Vec::new(), next: 0 };
    let mail = Mail {
        stream: Stream::new(seed, 0),
        popular: Sampler::new(&Distribution::Zipf { theta: 0.9 }, MAILBOXES, mix(seed)),
        first: JOURNAL_SECTORS,
        slice_sectors: (device_sectors / 2 - JOURNAL_SECTORS) / MAILBOXES / 8 * 8,
        mailboxes: vec![empty; MAILBOXES as usize],
        journal: Ring::new(0, JOURNAL_SECTORS),
    };
    Ok(Box::new(Transactions::new(mail, REQUESTS)))
}

impl Mail {
    fn deliver(&mut self, mailbox: usize, requests: &mut Vec<Command>) {
        let sectors = size(&mut self.stream, &MESSAGE_SECTORS);
        let slice = self.first + mailbox as u64 * self.slice_sectors;
        let own = &mut self.mailboxes[mailbox];
        if own.cursor + sectors as u64 > self.slice_sectors {
            own.cursor = INDEX_SECTORS as u64;
        }
        let lba = slice + own.cursor;
        own.cursor += sectors as u64;
        if own.newest.len() < NEWEST {
            own.newest.push((lba, sectors));
        } else {
            own.newest[own.next] = (lba, sectors);
        }
        own.next = (own.next + 1) % NEWEST;
        requests.push(Command::write(lba, sectors));
        self.mark(mailbox, requests);
    }

    fn mark(&mut self, mailbox: usize, requests: &mut Vec<Command>) {
        requests.push(Command::write(self.first + mailbox as u64 * self.slice_sectors, INDEX_SECTORS));
        requests.push(Command::write(self.journal.append(RECORD_SECTORS), RECORD_SECTORS));
        requests.push(Command::flush());
    }

    fn read(&mut self, mailbox: usize, requests: &mut Vec<Command>) {
        let own = &self.mailboxes[mailbox];
        let (lba, sectors) = match own.newest.len() as u64 {
            0 => (self.first + mailbox as u64 * self.slice_sectors, INDEX_SECTORS),
            count => own.newest[self.stream.below(count) as usize],
        };
        requests.push(Command::read(lba, sectors));
    }
}

impl Application for Mail {
    fn transaction(&mut self, requests: &mut Vec<Command>) {
        let mailbox = self.popular.sample(&mut self.stream) as usize;
        if self.stream.chance(percent(45)) {
            self.deliver(mailbox, requests);
        } else if self.stream.chance(percent(82)) {
            self.read(mailbox, requests);
        } else {
            self.mark(mailbox, requests);
        }
    }
}
