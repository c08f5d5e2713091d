//! Goal: corruption of an image by a faulty disk of the host is detected, and never read as data. Method: cuts as in
//! [`super::cuts`], each with one synced write that the disk dropped, or one block of which the disk holds an older
//! version, of any age; and recordings in which one sync fails with its pages dropped.

use imbrex_powercut::recorder::is_available;
use imbrex_powercut::{Event, Fault};
use imbrex_testkit::Random;

use super::carriers::Carrier;
use super::grade::{grade, grade_spoilt};
use super::recorded::{Story, record, record_failing};
use super::rounds::{BLOCK_BYTES, Count, Faulty, Rounds, Table, long, seed, wanted};

/// Requests of a recording.
const REQUESTS: usize = 120;
/// Cuts of a recording, for each kind of fault and size of block.
const ROUNDS: u64 = 40;
const FAULTS: [Faulty; 3] = [Fault::DropWrite, Fault::DropBlock, Fault::RollBack];

/// Cuts one recording with each fault, at blocks of each size.
fn spoil(test: &'static str, carrier: Carrier, seed: u64) -> Vec<Count> {
    let story = record(carrier, seed, REQUESTS);
    let rounds = |block_bytes, fault| Rounds {
        test,
        story: &story,
        block_bytes,
        rounds: 0..carrier.share(ROUNDS),
        fault: Some(fault),
        cuts_openings: false,
        positions: 0..=story.log.entries.len(),
        grade: grade_spoilt,
    };
    let all = |block_bytes| {
        FAULTS.iter().fold(Count::default(), |mut all, &fault| {
            all.add(rounds(block_bytes, fault).run());
            all
        })
    };
    BLOCK_BYTES.map(all).into()
}

fn survey(test: &'static str, mut each: impl FnMut(&mut Table, Carrier)) {
    if !is_available() {
        return;
    }
    let mut table = Table::default();
    for carrier in wanted() {
        each(&mut table, carrier);
    }
    table.end(test);
}

#[test]
fn a_dropped_write_is_found_and_never_read_as_data() {
    let test = "faults::a_dropped_write_is_found_and_never_read_as_data";
    survey(test, |table, carrier| table.add(carrier, spoil(test, carrier, seed())));
}

#[test]
#[ignore = "takes twenty minutes a carrier"]
fn long_a_dropped_write_is_found_and_never_read_as_data() {
    let test = "faults::long_a_dropped_write_is_found_and_never_read_as_data";
    survey(test, |table, carrier| long(2, |seed| table.add(carrier, spoil(test, carrier, seed))));
}

/// Returns the position of the failed sync.
fn failure(story: &Story) -> Option<usize> {
    let is_failed = |event: &Event| matches!(event, Event::Sync { has_failed: true, .. });
    story.log.entries.iter().position(|entry| is_failed(&entry.event))
}

/// Returns the number of a sync in a recording of `seed`: any, or, every other time, one right before an answer.
fn sync_to_fail(carrier: Carrier, seed: u64) -> u64 {
    let scouted = record(carrier, seed, REQUESTS);
    let (mut syncs, mut opening, mut answered) = (0, None, Vec::new());
    let mut is_last = false;
    for entry in &scouted.log.entries {
        match entry.event {
            Event::Sync { .. } => (syncs, is_last) = (syncs + 1, true),
            // Syncs before the first answer are left out: an opening that fails serves nothing.
            Event::Sent { .. } if opening.is_none() => opening = Some(syncs),
            Event::Sent { .. } if is_last => {
                answered.push(syncs);
                is_last = false;
            }
            _ => is_last = false,
        }
    }
    let (mut random, opening) = (Random::new(seed), opening.expect("it greets its client"));
    if random.one_in(2) && !answered.is_empty() {
        answered[random.below(answered.len() as u64) as usize]
    } else {
        opening + 1 + random.below((syncs - opening).max(1))
    }
}

/// Cuts one recording behind the sync that failed.
fn fail_sync(test: &'static str, carrier: Carrier, seed: u64) -> Vec<Count> {
    let Ok(story) = record_failing(carrier, seed, REQUESTS, Some(sync_to_fail(carrier, seed))) else {
        return Vec::new();
    };
    let Some(from) = failure(&story) else { return Vec::new() };
    let rounds = |block_bytes| Rounds {
        test,
        story: &story,
        block_bytes,
        rounds: 0..carrier.share(ROUNDS),
        fault: None,
        cuts_openings: false,
        positions: from..=story.log.entries.len(),
        grade,
    };
    BLOCK_BYTES.map(|block_bytes| rounds(block_bytes).run()).into()
}

#[test]
fn nothing_acknowledged_after_a_failed_sync_is_lost() {
    let test = "faults::nothing_acknowledged_after_a_failed_sync_is_lost";
    survey(test, |table, carrier| table.add(carrier, fail_sync(test, carrier, seed())));
}

#[test]
#[ignore = "takes twenty minutes a carrier"]
fn long_nothing_acknowledged_after_a_failed_sync_is_lost() {
    let test = "faults::long_nothing_acknowledged_after_a_failed_sync_is_lost";
    survey(test, |table, carrier| long(2, |seed| table.add(carrier, fail_sync(test, carrier, seed))));
}
