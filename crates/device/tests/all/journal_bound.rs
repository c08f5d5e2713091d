//! Goal: on every layer, a journal never exceeds its bound, whatever the host does and however often the drive is
//! killed. So the time of an opening is bounded. Method: random work with a bound of a few records, and reopening now
//! and then. After every request the length of the journal is compared with the bound and four times the longest
//! checkpoint. A checkpoint within a request may hold more records than one after it; then the journal has become
//! shorter, and its length tells the most that the checkpoint can have had.

use imbrex_device::image::Bounds;
use imbrex_device::media::memory::Memory;
use imbrex_device::{EmulatedDrive, Store};

use crate::common;
use crate::common::recorded::{Host, open};
use crate::common::{Shared, Subject};

/// Records before a checkpoint.
const BOUND: u64 = 50;
const ACTIONS: u32 = 400;
/// Requests between two openings.
const LIFE: u32 = 45;

/// Returns the number of records of a checkpoint of the drive now.
fn checkpoint_records(drive: &EmulatedDrive) -> u64 {
    let mut notes = Vec::new();
    drive.drive().layer.checkpoint(&mut notes);
    notes.len() as u64
}

/// Runs random work. Returns the largest number of records in the journal, and in a checkpoint.
fn longest(subject: &Subject, seed: u64) -> (u64, u64) {
    let bounds = Bounds { journal_before_checkpoint: BOUND, ..Bounds::default() };
    let (_, store) = Store::create(Memory::new(), subject.header.clone()).expect("memory takes it");
    let medium = Shared::new(store.into_media());
    let mut drive = open(medium.clone(), bounds).expect("it is new");
    let mut host = Host::new(&drive, seed);
    let (mut records_max, mut checkpoint_max, mut before) = (0, 0, 0);
    for action in 0..ACTIONS {
        if action % LIFE == LIFE - 1 {
            drop(drive);
            drive = open(medium.clone(), bounds).unwrap_or_else(|error| panic!("{}: {error}", subject.what));
        }
        drive = host.work(drive, 1);
        checkpoint_max = checkpoint_max.max(checkpoint_records(&drive));
        let records = drive.store_mut().journal().records();
        if records < before {
            checkpoint_max = checkpoint_max.max(records);
        }
        records_max = records_max.max(records);
        before = records;
    }
    (records_max, checkpoint_max)
}

#[test]
fn journals_are_never_longer_than_their_bound() {
    let mut reached = 0;
    for (number, subject) in common::subjects().iter().enumerate() {
        for cache_bytes in [0, 8 << 10] {
            let subject = subject.with_cache(cache_bytes);
            let (records, checkpoint) = longest(&subject, number as u64);
            let bound = BOUND.max(4 * checkpoint);
            assert!(records <= bound, "{}, cache of {cache_bytes}: {records} records, {bound} allowed", subject.what);
            reached += u32::from(records > bound / 2);
        }
    }
    assert!(reached > 20 || std::env::var("IMBREX_LAYER").is_ok(), "the bound was near {reached} times");
}
