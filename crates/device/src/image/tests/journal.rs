//! Goal: a journal returns the appended records up to the first that a power cut lost, and is refused if a durable
//! record is lost. Method: small journals whose copies are damaged by hand.

use imbrex_layer::Note;

use super::super::Region;
use super::super::bounds::Bounds;
use super::super::journal::{Journal, RECORD_BYTES};
use super::super::space::Space;
use super::header;
use crate::error::DeviceError;
use crate::media::memory::Memory;

/// Size of a journal in bytes: 128 records, in two chunks.
const JOURNAL_BYTES: u64 = 8192;
const MAX: u64 = 128;
const COPIES: [Region; 2] = [Region::JournalA, Region::MirrorA];

/// Records are read and written seven at a time, so that batches end within chunks and cross their ends.
fn bounds() -> Bounds {
    Bounds { journal_batch: 7, journal_before_checkpoint: 10, ..Bounds::default() }
}

fn made(bounds: Bounds) -> (Space<Memory>, Journal) {
    let (toy, mut media) = (header(512, 64, 0, 4096, JOURNAL_BYTES), Memory::new());
    toy.write(&mut media).expect("memory takes a toy");
    let mut space = Space::create(media, &toy, bounds).expect("memory takes a toy");
    let (journal, notes) = replayed(&mut space).expect("it is new");
    assert!(notes.is_empty());
    (space, journal)
}

/// Opens the image again, without repairs.
fn reopened(space: Space<Memory>) -> Space<Memory> {
    reopened_within(space, bounds())
}

fn reopened_within(space: Space<Memory>, bounds: Bounds) -> Space<Memory> {
    Space::open(space.into_media(), &header(512, 64, 0, 4096, JOURNAL_BYTES), "image", bounds).expect("it is whole")
}

fn replayed(space: &mut Space<Memory>) -> Result<(Journal, Vec<u64>), DeviceError> {
    let mut notes = Vec::new();
    let journal = Journal::replay(space, JOURNAL_BYTES, "image", |note| {
        assert_eq!((note.tag, note.fields[1]), (9, note.fields[0] * 3));
        notes.push(note.fields[0]);
        Ok(())
    })?;
    assert_eq!(journal.records(), notes.len() as u64);
    Ok((journal, notes))
}

fn note(number: u64) -> Note {
    Note::new(9, &[number, number * 3])
}

fn append(space: &mut Space<Memory>, journal: &mut Journal, numbers: std::ops::Range<u64>) {
    numbers.for_each(|number| journal.append(space, &note(number)).expect("memory fails nobody"));
}

/// Makes all records durable, and says so in the state.
fn barrier(space: &mut Space<Memory>, journal: &mut Journal) {
    space.barrier(journal.records()).expect("memory fails nobody");
    journal.flushed();
}

/// Zeros the copies of a record in these regions.
fn wipe(space: &mut Space<Memory>, regions: &[Region], number: u64) {
    let pieces: Vec<(Region, u64, &[u8])> =
        regions.iter().map(|&region| (region, number * RECORD_BYTES as u64, &[0; RECORD_BYTES][..])).collect();
    space.write_raw(&pieces).expect("memory fails nobody");
}

fn spoilt(space: &mut Space<Memory>, journal: &Journal) -> Vec<(u64, usize)> {
    let mut named = Vec::new();
    journal.for_each_spoilt(space, |number, copy| named.push((number, copy))).expect("memory fails nobody");
    named
}

#[test]
fn what_was_appended_is_replayed_until_it_is_full() {
    for bounds in [bounds(), Bounds::SMALLEST, Bounds::default()] {
        let (mut space, mut journal) = made(bounds);
        append(&mut space, &mut journal, 0..MAX);
        let full = journal.append(&mut space, &note(MAX)).expect_err("there is no room");
        assert!(full.to_string().contains("full"), "{full}");
        assert_eq!(spoilt(&mut space, &journal), []);
        barrier(&mut space, &mut journal);
        let (again, notes) = replayed(&mut reopened(space)).expect("it is whole");
        assert_eq!((notes, again.records()), ((0..MAX).collect(), MAX));
    }
}

#[test]
fn one_copy_is_enough_and_the_other_is_made_anew() {
    let (mut space, mut journal) = made(bounds());
    append(&mut space, &mut journal, 0..100);
    barrier(&mut space, &mut journal);
    wipe(&mut space, &COPIES[..1], 0);
    wipe(&mut space, &COPIES[1..], 70);
    wipe(&mut space, &COPIES[1..], 99);
    let mut space = reopened(space);
    let (mut journal, notes) = replayed(&mut space).expect("one copy of each is there");
    assert_eq!(notes, (0..100).collect::<Vec<u64>>());
    let damage = [(0, 0), (70, 1), (99, 1)];
    assert_eq!(spoilt(&mut space, &journal), damage);
    journal.begin_epoch(&mut space).expect("memory fails nobody");
    assert_eq!(spoilt(&mut space, &journal), damage, "what was durable and is gone is damage, not a cut");
    journal.heal(&mut space).expect("memory fails nobody");
    assert_eq!(spoilt(&mut space, &journal), []);
    // After the repair the other copies can be lost.
    for (number, copy) in damage {
        wipe(&mut space, &[COPIES[1 - copy]], number);
    }
    assert_eq!(replayed(&mut reopened(space)).expect("the new copies are whole").1.len(), 100);
}

#[test]
fn both_copies_gone_are_named_and_keep_the_image_shut() {
    let (mut space, mut journal) = made(bounds());
    append(&mut space, &mut journal, 0..20);
    barrier(&mut space, &mut journal);
    wipe(&mut space, &COPIES, 12);
    assert_eq!(spoilt(&mut space, &journal), [(12, 0), (12, 1)]);
    let error = replayed(&mut reopened(space)).expect_err("record 12 was durable");
    assert!(
        error.to_string().contains("both copies of record 12 of its journal are spoilt, and 20 were durable"),
        "{error}"
    );
}

#[test]
fn a_journal_that_lost_its_last_chunk_names_every_record_there() {
    let (space, mut journal) = made(bounds());
    let mut space = space;
    append(&mut space, &mut journal, 0..3);
    let (mut other, _) = made(bounds());
    // A space to which nothing of the journal was ever written.
    assert_eq!(spoilt(&mut other, &journal), [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]);
}

#[test]
fn a_cut_ends_the_journal_unless_what_it_took_was_durable() {
    // Two of six records are known to be durable, from the state or from later records.
    for (lost, kept) in [(2, Some(2)), (3, Some(3)), (1, None)] {
        let (mut space, mut journal) = made(bounds());
        append(&mut space, &mut journal, 0..2);
        journal.flushed();
        append(&mut space, &mut journal, 2..6);
        wipe(&mut space, &COPIES, lost);
        let outcome = replayed(&mut reopened(space));
        assert_eq!(outcome.map(|(_, notes)| notes.len()).ok(), kept, "record {lost} lost");
    }
}

#[test]
fn what_a_cut_left_behind_a_gap_is_never_taken_for_what_came_after() {
    let (mut space, mut journal) = made(bounds());
    append(&mut space, &mut journal, 0..5);
    wipe(&mut space, &COPIES, 2);
    let mut space = reopened(space);
    let (mut journal, notes) = replayed(&mut space).expect("none of them was durable");
    assert_eq!(notes, [0, 1]);
    let epoch = space.state().epoch;
    journal.begin_epoch(&mut space).expect("memory fails nobody");
    assert_eq!((space.state().epoch, space.state().journal_records), (epoch + 1, 2));
    append(&mut space, &mut journal, 7..8);
    // Records 3 and 4 of the earlier epoch are valid, and lie where the next two would.
    assert_eq!(replayed(&mut reopened(space)).expect("it is whole").1, [0, 1, 7]);
}

#[test]
fn a_record_of_which_a_cut_left_one_copy_is_no_damage_and_gets_two() {
    let (mut space, mut journal) = made(bounds());
    append(&mut space, &mut journal, 0..2);
    barrier(&mut space, &mut journal);
    append(&mut space, &mut journal, 2..4);
    wipe(&mut space, &COPIES[..1], 2);
    wipe(&mut space, &COPIES[1..], 3);
    let mut space = reopened(space);
    let (mut journal, notes) = replayed(&mut space).expect("one copy of each is there");
    assert_eq!((notes, spoilt(&mut space, &journal)), (vec![0, 1, 2, 3], vec![]));
    journal.begin_epoch(&mut space).expect("memory fails nobody");
    wipe(&mut space, &COPIES[1..], 2);
    wipe(&mut space, &COPIES[..1], 3);
    assert_eq!(replayed(&mut reopened(space)).expect("the new copies are whole").1, [0, 1, 2, 3]);
}

#[test]
fn a_record_that_was_whole_when_it_was_opened_can_be_damaged_since() {
    let (mut space, mut journal) = made(bounds());
    append(&mut space, &mut journal, 0..2);
    barrier(&mut space, &mut journal);
    append(&mut space, &mut journal, 2..4);
    let mut space = reopened(space);
    let (journal, _) = replayed(&mut space).expect("it is whole");
    wipe(&mut space, &COPIES[1..], 3);
    assert_eq!(spoilt(&mut space, &journal), [(3, 1)]);
}

#[test]
fn the_books_are_closed_by_a_seal_and_opened_by_work() {
    let (mut space, mut journal) = made(bounds());
    append(&mut space, &mut journal, 0..4);
    journal.seal(&mut space).expect("memory fails nobody");
    assert_eq!((space.state().is_sealed, space.state().journal_records), (true, 4));
    wipe(&mut space, &COPIES, 3);
    assert!(replayed(&mut space).is_err(), "what is lost of a sealed journal shows");
    append_back(&mut space, 3);
    let mut space = reopened(space);
    let (mut journal, _) = replayed(&mut space).expect("it is whole");
    journal.begin_epoch(&mut space).expect("memory fails nobody");
    assert_eq!((space.state().is_sealed, space.state().journal_records), (false, 4));
}

/// Writes a record as it was before.
fn append_back(space: &mut Space<Memory>, number: u64) {
    let mut bytes = [0; RECORD_BYTES];
    let record = super::super::journal::Record { note: note(number), epoch: space.state().epoch, durable: 0, era: 0 };
    record.encode(space.journal, number, &mut bytes);
    let pieces = COPIES.map(|region| (region, number * RECORD_BYTES as u64, &bytes[..]));
    space.write_raw(&pieces).expect("memory fails nobody");
}

#[test]
fn a_checkpoint_goes_to_the_other_journal_and_is_all_that_counts() {
    let (mut space, mut journal) = made(bounds());
    append(&mut space, &mut journal, 0..30);
    let mut epoch = space.state().epoch;
    for (turn, count) in [(1, 23), (0, 7), (1, MAX - 1), (0, 0)] {
        let notes: Vec<Note> = (500..500 + count).map(note).collect();
        journal.checkpoint(&mut space, &notes).expect("memory fails nobody");
        epoch += 1;
        let state = space.state();
        assert_eq!(
            (state.journal, state.journal_epoch, state.epoch, state.journal_records),
            (turn, epoch, epoch, count)
        );
        assert_eq!((journal.records(), spoilt(&mut space, &journal)), (count, vec![]));
        append(&mut space, &mut journal, 900..901);
        barrier(&mut space, &mut journal);
        space = reopened(space);
        let (again, notes) = replayed(&mut space).expect("it is whole");
        assert_eq!(notes, (500..500 + count).chain([900]).collect::<Vec<u64>>());
        journal = again;
    }
    let notes: Vec<Note> = (0..MAX).map(note).collect();
    let overfull = journal.checkpoint(&mut space, &notes).expect_err("nothing could be appended after it");
    assert!(overfull.to_string().contains("overfills"), "{overfull}");
    assert_eq!(space.state().journal, 0, "nothing has changed");
}

#[test]
fn records_of_a_checkpoint_are_durable_for_those_appended_to_it() {
    let (mut space, mut journal) = made(bounds());
    journal.checkpoint(&mut space, &(0..5).map(note).collect::<Vec<_>>()).expect("memory fails nobody");
    append(&mut space, &mut journal, 5..7);
    // The state does not have the number of durable records; the records do.
    space.barrier(0).expect("memory fails nobody");
    wipe(&mut space, &[Region::JournalB, Region::MirrorB], 2);
    let error = replayed(&mut reopened(space)).expect_err("record 2 was durable");
    assert!(error.to_string().contains("both copies of record 2"), "{error}");
}

#[test]
fn a_checkpoint_is_due_when_the_journal_has_grown() {
    // Columns: bound, size of the latest checkpoint, number of records at which a checkpoint is due. It is due at the
    // bound, or at four times the checkpoint if that is more, but at half the journal at the latest. After a checkpoint
    // that nearly fills that half, an eighth of the journal may be appended.
    for (bound, checkpoint, due) in [(10, 0, 10), (30, 0, 30), (100, 0, 64), (30, 9, 36), (10, 20, 64), (10, 60, 76)] {
        let (mut space, mut journal) = made(Bounds { journal_before_checkpoint: bound, ..bounds() });
        if checkpoint > 0 {
            journal
                .checkpoint(&mut space, &(0..checkpoint).map(note).collect::<Vec<_>>())
                .expect("memory fails nobody");
        }
        append(&mut space, &mut journal, checkpoint..due - 1);
        assert!(!journal.wants_checkpoint(), "{} records after a checkpoint of {checkpoint}", due - 1);
        append(&mut space, &mut journal, due - 1..due);
        assert!(journal.wants_checkpoint(), "{due} records after a checkpoint of {checkpoint}");
    }
}

/// Goal: however often a drive is killed, its journal is as short as without kills. Method: the image is opened again
/// after every appended record.
#[test]
fn a_checkpoint_is_as_due_after_openings_as_before() {
    for (bound, checkpoint, due) in [(10, 0, 10), (30, 9, 36), (10, 20, 64)] {
        let (mut space, mut journal) = made(Bounds { journal_before_checkpoint: bound, ..bounds() });
        if checkpoint > 0 {
            let notes: Vec<Note> = (0..checkpoint).map(note).collect();
            journal.checkpoint(&mut space, &notes).expect("memory fails nobody");
        }
        for number in checkpoint..due {
            assert!(!journal.wants_checkpoint(), "{number} records after a checkpoint of {checkpoint}");
            append(&mut space, &mut journal, number..number + 1);
            barrier(&mut space, &mut journal);
            space = reopened_within(space, Bounds { journal_before_checkpoint: bound, ..bounds() });
            journal = replayed(&mut space).expect("it is whole").0;
            journal.begin_epoch(&mut space).expect("memory fails nobody");
        }
        assert!(journal.wants_checkpoint(), "{due} records after a checkpoint of {checkpoint}");
    }
}

#[test]
fn a_journal_begun_anew_forgets_what_there_was() {
    let (mut space, mut journal) = made(bounds());
    append(&mut space, &mut journal, 0..5);
    barrier(&mut space, &mut journal);
    wipe(&mut space, &COPIES, 1);
    let before = space.state();
    let mut journal = Journal::begin_anew(&mut space, JOURNAL_BYTES).expect("memory fails nobody");
    let state = space.state();
    let expected = (1, before.epoch + 1, before.epoch + 1, 0);
    assert_eq!((state.journal, state.journal_epoch, state.epoch, state.journal_records), expected);
    append(&mut space, &mut journal, 40..40 + MAX);
    assert!(journal.append(&mut space, &note(0)).is_err(), "it has as much room as the other");
    barrier(&mut space, &mut journal);
    assert_eq!(replayed(&mut reopened(space)).expect("it is whole").1, (40..40 + MAX).collect::<Vec<u64>>());
}
