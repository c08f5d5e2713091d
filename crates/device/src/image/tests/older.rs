//! Goal: if the host's disk dropped a write, the older block that remains is detected, and never used. Method: sectors
//! of a space change in every era, and each version of each block is kept. At the end one block is put back to each of
//! its versions.

use imbrex_disk::{Extent, Pba, Sectors};
use imbrex_layer::Note;

use super::super::bounds::Bounds;
use super::super::journal::Journal;
use super::super::layout::{COPIES, Region};
use super::super::scrub::Flaw;
use super::super::space::Space;
use super::super::state::STATE_BYTES;
use super::super::transfer::{Given, Write};
use super::header;
use crate::media::Media;
use crate::media::crashing::Crashing;
use crate::media::memory::Memory;

const SECTOR: usize = 512;
const SECTORS: u64 = 24;
const ERAS: u8 = 6;

fn write<M: Media>(space: &mut Space<M>, first: u64, sectors: u64, value: Option<u8>, sector_bytes: usize) {
    let bytes = vec![value.unwrap_or(0); sectors as usize * sector_bytes];
    let contents = [Given::from(&bytes[..])];
    let extent = Extent::new(Pba(first), Sectors(sectors));
    let contents = value.map(|_| &contents[..]);
    let write = Write { region: Region::Disk, extent, contents, spoilt: &[], destroyed: &[] };
    space.write(&write).expect("memory fails nobody");
}

/// Returns the contents of sector `sector` after era `era`. Some sectors are written in every era, some seldom, some
/// become zeros, some are never written.
fn value(era: u8, sector: u64) -> u8 {
    let written = |every: u8| era / every * every;
    match sector % 4 {
        0 => 1 + era,
        1 => 1 + written(3),
        2 if era % 2 == 1 => 0,
        2 => 101 + era,
        _ => 0,
    }
}

/// Returns the medium after each era, sealed at the last, and the offsets of the sector tables and of the digests.
fn aged() -> (Vec<Memory>, Vec<u64>, Vec<u64>) {
    let header = header(SECTOR as u32, SECTORS, 0, 4096, 8192);
    let mut media = Memory::new();
    header.write(&mut media).expect("memory fails nobody");
    let mut space = Space::create(media, &header, Bounds::default()).expect("memory fails nobody");
    let mut versions = Vec::new();
    for era in 0..ERAS {
        let is_new = |sector: &u64| era == 0 || value(era, *sector) != value(era - 1, *sector);
        for sector in (0..SECTORS).filter(|sector| sector % 4 != 3).filter(is_new) {
            let value = value(era, sector);
            write(&mut space, sector, 1, (value != 0).then_some(value), SECTOR);
        }
        space.barrier(0).expect("memory fails nobody");
        if era == ERAS - 1 {
            space.update(|state| state.is_sealed = true).expect("memory fails nobody");
        }
        versions.push(space.media().clone());
    }
    let slots = 0..SECTORS / 8;
    let tables = slots.clone().map(|slot| space.layout().block(slot, 0)).collect();
    (versions, tables, slots.map(|slot| space.layout().digests(slot, 0)).collect())
}

fn open(medium: Memory) -> Space<Memory> {
    let header = header(SECTOR as u32, SECTORS, 0, 4096, 8192);
    let mut space = Space::open(medium, &header, "image", Bounds::default()).expect("its facts are whole");
    space.settle().expect("memory fails nobody");
    space
}

fn flaws(space: &mut Space<Memory>) -> Vec<Flaw> {
    let header = header(SECTOR as u32, SECTORS, 0, 4096, 8192);
    let mut flaws = Vec::new();
    space.scrub(&header, "image", &mut |flaw| flaws.push(flaw), &mut |_, _| {}).expect("memory fails nobody");
    flaws
}

/// Reads all sectors, and returns the number of faults. Sectors without a fault must have the right contents.
fn read(space: &mut Space<Memory>, what: &str) -> u64 {
    let (mut bytes, mut faults) = (vec![0; SECTORS as usize * SECTOR], Vec::new());
    space.read(Region::Disk, Pba(0), &mut bytes, &mut faults).expect("memory fails nobody");
    for (sector, held) in (0..).zip(bytes.chunks(SECTOR)) {
        let is_fault = faults.iter().any(|fault| fault.extent.contains(Pba(sector)));
        let expected = value(ERAS - 1, sector);
        assert!(is_fault || held.iter().all(|byte| *byte == expected), "{what}: sector {sector} is {}", held[0]);
    }
    faults.iter().map(|fault| fault.extent.sectors.0).sum()
}

/// Returns the last medium with `length` bytes at `at` as they were in `before`, or `None` if they are equal.
fn put_back(last: &Memory, before: &Memory, at: u64, length: usize) -> Option<Memory> {
    let (mut last, mut before) = (last.clone(), before.clone());
    let (mut now, mut then) = (vec![0; length], vec![0; length]);
    last.read_at(at, &mut now).expect("memory fails nobody");
    before.read_at(at, &mut then).expect("memory fails nobody");
    last.write_at(at, &then).expect("memory fails nobody");
    (now != then).then_some(last)
}

#[test]
fn what_was_not_put_back_is_whole() {
    let (versions, ..) = aged();
    let mut space = open(versions.last().expect("there are some").clone());
    assert_eq!((read(&mut space, "whole"), flaws(&mut space)), (0, Vec::new()));
}

#[test]
fn an_older_block_of_a_table_is_found_and_no_sector_of_it_given_out() {
    let (versions, tables, _) = aged();
    let last = versions.last().expect("there are some");
    let mut tried = 0;
    // A block of 512 bytes, and the 4 KiB of the host's disk around it.
    for (length, round) in [(512, 1), (4096, 4096)] {
        for (era, before) in versions[..versions.len() - 1].iter().enumerate() {
            for &at in &tables {
                let Some(medium) = put_back(last, before, at / round * round, length) else { continue };
                let what = format!("{length} bytes of era {era} at {at}");
                let mut space = open(medium);
                assert_eq!(read(&mut space, &what), 8, "{what}: all sectors of the table");
                let found = flaws(&mut space);
                assert!(matches!(found[..], [Flaw::Table { .. }]), "{what}: {found:?}");
                tried += 1;
            }
        }
    }
    assert_eq!(tried, 2 * 5 * tables.len());
}

#[test]
fn older_digests_are_found_cost_nothing_and_are_mended() {
    let (versions, _, digests) = aged();
    let last = versions.last().expect("there are some");
    for (era, before) in versions[..versions.len() - 1].iter().enumerate() {
        for (slot, &at) in (0..).zip(&digests) {
            let medium = put_back(last, before, at, 512).expect("they change in every era");
            let what = format!("digests of era {era} at {at}");
            let mut space = open(medium);
            assert_eq!(read(&mut space, &what), 0, "{what}");
            assert_eq!(flaws(&mut space), [Flaw::Digests { slot }], "{what}");
            space.heal(&header(SECTOR as u32, SECTORS, 0, 4096, 8192)).expect("memory fails nobody");
            assert_eq!((read(&mut space, &what), flaws(&mut space)), (0, Vec::new()), "{what}");
        }
    }
}

/// Each sector of 4 KiB that a power cut tears in pieces of 512 bytes is old or new afterwards, as its copy in the
/// restore area allows.
#[test]
fn a_torn_sector_is_restored() {
    let header = header(4096, 6, 0, 4096, 8192);
    let mut space = Space::create(Memory::new(), &header, Bounds::default()).expect("memory fails nobody");
    write(&mut space, 0, 3, Some(7), 4096);
    space.barrier(0).expect("memory fails nobody");
    let mut space = Space::open(Crashing::new(space.into_media(), 512), &header, "image", Bounds::default())
        .expect("its facts are whole");
    space.settle().expect("memory fails nobody");
    // Two durable sectors and one that was never written.
    write(&mut space, 3, 1, Some(9), 4096);
    write(&mut space, 2, 1, Some(8), 4096);
    write(&mut space, 0, 2, Some(9), 4096);
    let mut seen = std::collections::BTreeSet::new();
    let blocks = space.media().blocks();
    assert!(blocks >= 16, "contents of two sectors at least wait: {blocks}");
    for seed in 0..2000u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let left = space.media().cut(|_, _| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % 2 == 0
        });
        let mut cut = Space::open(left, &header, "image", Bounds::default()).expect("its facts are whole");
        cut.settle().expect("memory fails nobody");
        let (mut bytes, mut faults) = (vec![0; 4 * 4096], Vec::new());
        cut.read(Region::Disk, Pba(0), &mut bytes, &mut faults).expect("memory fails nobody");
        assert_eq!(faults, [], "seed {seed}");
        let values: Vec<u8> = bytes.chunks(4096).map(|sector| sector[0]).collect();
        for (sector, value) in bytes.chunks(4096).zip(&values) {
            assert!(sector.iter().all(|byte| byte == value), "seed {seed}: neither old nor new");
        }
        // Contents that the flush before the last write covered are certain.
        let allowed = [&[7, 9][..], &[7, 9], &[8], &[9]];
        assert!(values.iter().zip(allowed).all(|(value, allowed)| allowed.contains(value)), "seed {seed}: {values:?}");
        seen.insert(values);
    }
    assert!(seen.len() > 2, "one is torn, the other, both: {seen:?}");
}

/// A sector is overwritten and a barrier follows, but the host's disk dropped the contents. The power cut also loses
/// the state of the next era. A journal record of that era proves that the old contents are damage. Without a record,
/// the cut may have come before the overwrite.
#[test]
fn a_record_is_the_witness_that_the_eras_before_it_have_ended() {
    let header = header(SECTOR as u32, SECTORS, 0, 4096, 8192);
    let mut media = Memory::new();
    header.write(&mut media).expect("memory fails nobody");
    let mut space = Space::create(media, &header, Bounds::default()).expect("memory fails nobody");
    let mut journal = Journal::replay(&mut space, 8192, "image", |_| Ok(())).expect("it is new");
    journal.begin_epoch(&mut space).expect("memory fails nobody");
    write(&mut space, 0, 1, Some(1), SECTOR);
    space.barrier(0).expect("memory fails nobody");
    let before = space.media().clone();
    write(&mut space, 0, 1, Some(2), SECTOR);
    space.barrier(0).expect("memory fails nobody");
    for (has_record, expected) in [(false, (1, 0)), (true, (2, 1))] {
        if has_record {
            journal.append(&mut space, &Note::new(9, &[7])).expect("memory fails nobody");
        }
        let layout = *space.layout();
        let mut cut = put_back(space.media(), &before, layout.content(0, 0), SECTOR).expect("it was written over");
        for (copy, at) in (0..COPIES).flat_map(|copy| [(copy, 0), (copy, 1)]) {
            cut = put_back(&cut, &before, layout.state(copy, at), STATE_BYTES).unwrap_or(cut);
        }
        let mut opened = Space::open(cut, &header, "image", Bounds::default()).expect("its facts are whole");
        let mut journal = Journal::replay(&mut opened, 8192, "image", |_| Ok(())).expect("it is whole");
        opened.settle().expect("memory fails nobody");
        journal.begin_epoch(&mut opened).expect("memory fails nobody");
        let (mut bytes, mut faults) = ([2; SECTOR], Vec::new());
        opened.read(Region::Disk, Pba(0), &mut bytes, &mut faults).expect("memory fails nobody");
        let held = if faults.is_empty() { bytes[0] } else { 2 };
        assert_eq!((held, faults.len()), expected, "with a record: {has_record}");
    }
}
