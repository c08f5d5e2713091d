//! Goal: a damaged or forged image is refused with an error, or read according to its contents. It never ends the
//! program and never makes it allocate without bound. Method: the fuzzer's entry functions on valid headers,
//! journals, records and images altered from a seed, and on noise. Inputs found by the fuzzer are kept in
//! `REGRESSIONS`.

use imbrex_device::Media;
use imbrex_device::image::header::HEADER_BYTES;
use imbrex_device::verify::allocation::Counting;
use imbrex_device::verify::hostile;
use imbrex_device::verify::mutation::{mutate, noise};
use imbrex_layer::verify::toy::{Commands, below};
use imbrex_layer::{Note, Plan, registry};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256StarStar;

use crate::common::{first_subject_of, making, worked};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// More bytes than any of these inputs needs, and far fewer than their largest numbers request.
const PEAK_BYTES_MAX: u64 = 48 << 20;

/// Calls `entry` on `data`, and checks that its memory is bounded.
fn run<T>(data: &[u8], entry: impl FnOnce(&[u8]) -> T) -> T {
    let (outcome, peak_bytes) = Counting::peak_bytes(|| entry(data));
    assert!(peak_bytes <= PEAK_BYTES_MAX, "{peak_bytes} bytes held for {} of input: {data:?}", data.len());
    outcome
}

fn random(seed: u64) -> Xoshiro256StarStar {
    Xoshiro256StarStar::seed_from_u64(seed)
}

/// Returns one copy of a header, as stored at the start of an image.
fn valid_header() -> Vec<u8> {
    let mut media = imbrex_device::media::memory::Memory::new();
    let header = first_subject_of("media-cache").header;
    header.write(&mut media).expect("memory takes it");
    // Only the first copy, because a second valid copy would hide the alterations.
    let mut bytes = vec![0; header.length() as usize];
    media.read_at(0, &mut bytes).expect("memory gives it");
    bytes
}

#[test]
fn spoilt_headers_are_refused() {
    let (valid, mut random) = (valid_header(), random(1));
    let header = run(&valid, hostile::header).expect("it is valid");
    assert_eq!(header, first_subject_of("media-cache").header);
    for _ in 0..10_000 {
        let data = mutate(&mut random, &valid);
        let accepted = run(&data, hostile::header);
        // An accepted header must be unaltered; only the bytes after it may differ.
        assert!(accepted.is_none_or(|accepted| accepted == header && data.starts_with(&valid)), "{data:?}");
        run(&noise(&mut random, 200), hostile::header);
    }
}

#[test]
fn headers_that_make_no_sense_are_refused() {
    let (valid, mut random) = (valid_header(), random(2));
    let text = &valid[24..];
    assert!(run(text, hostile::header_text).is_some(), "the text of a valid header is one");
    let mut accepted = 0;
    for _ in 0..15_000 {
        accepted += u64::from(run(&mutate(&mut random, text), hostile::header_text).is_some());
        // Alterations of sizes are the most dangerous.
        let at = text.windows(14).position(|word| word == b"\"sector_bytes\"").expect("it is in the text");
        let sizes = [&text[..at], &mutate(&mut random, &text[at..])].concat();
        accepted += u64::from(run(&sizes, hostile::header_text).is_some());
    }
    assert!(accepted > 100, "{accepted}: some alterations leave a header");
    let mut huge: serde_json::Value = serde_json::from_slice(text).expect("it is JSON");
    huge["flash_sectors"] = ((1u64 << 48) - 1).into();
    assert!(run(huge.to_string().as_bytes(), hostile::header_text).is_none(), "a table of 2⁴⁵ chunks");
}

/// Returns the records of a journal, as stored in an image.
fn valid_journal() -> Vec<u8> {
    let media = worked(&first_subject_of("media-cache"), 5, 60);
    let mut bytes = vec![0; media.len() as usize];
    media.clone().read_at(0, &mut bytes).expect("memory gives it");
    // The journal is the chunk that starts with a valid record number 0 of the first epoch.
    let is_first = |chunk: &[u8]| hostile::journal(chunk) > 0;
    let mut chunks = bytes[HEADER_BYTES as usize..].chunks_exact(making().chunk_bytes as usize);
    chunks.find(|chunk| is_first(chunk)).expect("the drive has written its journal").to_vec()
}

#[test]
fn spoilt_journals_end_where_they_are_spoilt() {
    let (valid, mut random) = (valid_journal(), random(3));
    let whole = run(&valid, hostile::journal);
    assert!(whole >= 20, "{whole} records");
    let valid = &valid[..whole as usize * 64];
    for _ in 0..10_000 {
        let data = mutate(&mut random, valid);
        let accepted = run(&data, hostile::journal);
        let same = data.chunks_exact(64).zip(valid.chunks_exact(64)).take_while(|(is, was)| is == was).count() as u64;
        assert!((same..=whole).contains(&accepted), "{accepted} records of {same} that are whole: {data:?}");
        run(&noise(&mut random, 300), hostile::journal);
    }
}

/// Returns notes that a layer writes during random work.
fn valid_records(index: usize) -> Vec<Note> {
    let (mut layer, mut plan, mut notes) = (hostile::layer(index), Plan::new(), Vec::new());
    let mut commands = Commands::new(7, layer.capacity(), 24);
    for _ in 0..60 {
        commands.plan(layer.as_mut(), &mut plan);
        notes.extend_from_slice(&plan.notes);
    }
    layer.checkpoint(&mut notes);
    notes
}

#[test]
fn records_of_another_kind_are_refused() {
    let mut random = random(4);
    for (index, info) in registry::all().iter().enumerate() {
        let bytes: Vec<u8> = valid_records(index).iter().flat_map(hostile::record_bytes).collect();
        for case in 0..1500 {
            let records = bytes.len() / hostile::NOTE_BYTES;
            let first = below(&mut random, records as u64 + 1) as usize * hostile::NOTE_BYTES;
            let last = bytes.len().min(first + 20 * hostile::NOTE_BYTES);
            let mut data = vec![index as u8];
            data.extend(mutate(&mut random, &bytes[first..last]));
            let outcome = std::panic::catch_unwind(|| run(&data, hostile::records));
            assert!(outcome.is_ok(), "{}, case {case}: {data:?}", info.name);
        }
    }
}

#[test]
fn spoilt_images_are_refused_or_read() {
    let subject = first_subject_of("media-cache");
    let (media, mut random) = (worked(&subject, 9, 40), random(5));
    let mut valid = vec![0; media.len() as usize];
    media.clone().read_at(0, &mut valid).expect("memory gives it");
    let begin = HEADER_BYTES as usize;
    for _ in 0..1500 {
        // State and sector table are in the first part, where damage has most effect.
        let end = begin + if below(&mut random, 2) == 0 { 8192 + 4096 } else { valid.len() - begin };
        let data = [&valid[..begin], &mutate(&mut random, &valid[begin..end]), &valid[end..]].concat();
        run(&data, |data| hostile::image(&subject.header, data));
    }
}
