//! Goal: after a slot's assignment is interrupted, both of its witnesses exist again. A slot whose assignment was lost
//! names no chunk, and damage to older slots is left for the check. Method: one slot is assigned durably, another is
//! not. Parts of the second are reset by hand to their prepared condition, piece by piece.

use imbrex_disk::{Extent, Pba, Sectors};

use super::super::bounds::Bounds;
use super::super::layout::{BLOCK_BYTES, ENTRY_BYTES};
use super::super::space::Space;
use super::super::transfer::Write;
use super::super::{Header, Region};
use super::header;
use crate::media::Media;
use crate::media::memory::Memory;

fn toy() -> Header {
    header(512, 3 * 8, 0, 4096, 4096)
}

fn write(space: &mut Space<Memory>, first: u64, byte: u8) {
    let (extent, sector) = (Extent::new(Pba(first), Sectors(1)), [byte; 512]);
    let contents = [sector[..].into()];
    let write = Write { region: Region::Disk, extent, contents: Some(&contents), spoilt: &[], destroyed: &[] };
    space.write(&write).expect("memory fails nobody");
}

/// Slot 0 is assigned and counted; slot 1 is assigned, and the state does not count it.
fn made() -> (Memory, u64, u64) {
    let mut media = Memory::new();
    toy().write(&mut media).expect("memory takes a toy");
    let mut space = Space::create(media, &toy(), Bounds::default()).expect("memory takes a toy");
    write(&mut space, 0, 1);
    space.barrier(0).expect("memory fails nobody");
    write(&mut space, 8, 2);
    let (entry, head) = (space.layout().entry(1), space.layout().slot(1));
    assert_eq!(space.state().slots_given, 1);
    (space.into_media(), entry, head)
}

fn settled(media: Memory) -> Space<Memory> {
    let mut space = Space::open(media, &toy(), "image", Bounds::default()).expect("no slot that is counted is lost");
    space.settle().expect("memory fails nobody");
    space
}

fn flaws(space: &mut Space<Memory>) -> usize {
    let mut flaws = 0;
    space.scrub(&toy(), "image", &mut |_| flaws += 1, &mut |_, _| {}).expect("memory fails nobody");
    flaws
}

fn byte_of(space: &mut Space<Memory>, first: u64) -> (u8, bool) {
    let (mut sector, mut faults) = ([0; 512], Vec::new());
    space.read(Region::Disk, Pba(first), &mut sector, &mut faults).expect("memory fails nobody");
    (sector[0], faults.is_empty())
}

fn free_header() -> [u8; BLOCK_BYTES] {
    let mut media = Memory::new();
    toy().write(&mut media).expect("memory takes a toy");
    let space = Space::create(media, &toy(), Bounds::default()).expect("memory takes a toy");
    space.directory.header(1, None)
}

#[test]
fn one_witness_is_made_two() {
    for lost in ["entry", "header"] {
        let (mut media, entry, head) = made();
        match lost {
            "entry" => media.write_at(entry, &[0; ENTRY_BYTES as usize]),
            _ => media.write_at(head, &free_header()),
        }
        .expect("memory takes it");
        let mut space = settled(media);
        assert_eq!((flaws(&mut space), byte_of(&mut space, 8)), (0, (2, true)), "the {lost} was lost");
        // From now on either witness is enough.
        for at in [entry, head] {
            let mut media = space.media().clone();
            media.write_at(at, &[0xff; 8]).expect("memory takes it");
            let mut space = Space::open(media, &toy(), "image", Bounds::default()).expect("the other is whole");
            assert_eq!(byte_of(&mut space, 8), (2, true), "the {lost} was lost, byte {at} is spoilt");
        }
    }
}

#[test]
fn a_slot_that_was_lost_names_nobody() {
    let (mut media, entry, head) = made();
    media.write_at(entry, &[0; ENTRY_BYTES as usize]).expect("memory takes it");
    media.write_at(head, &free_header()).expect("memory takes it");
    let mut space = settled(media);
    assert_eq!((flaws(&mut space), byte_of(&mut space, 8)), (0, (0, true)));
    // If its table still named the chunk, a damaged header would bring the chunk back.
    let mut media = space.into_media();
    media.write_at(head, &[0xff; 8]).expect("memory takes it");
    let mut space = settled(media);
    assert_eq!(byte_of(&mut space, 8), (0, true), "what was lost has come back");
}

#[test]
fn what_a_counted_slot_lacks_is_damage() {
    let (mut media, entry, _) = made();
    media.write_at(entry - ENTRY_BYTES, &[0; ENTRY_BYTES as usize]).expect("memory takes it");
    let mut space = settled(media);
    assert_eq!((flaws(&mut space), byte_of(&mut space, 0)), (1, (1, true)));
}
