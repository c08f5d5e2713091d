//! Goal: after a power cut every sector is old or new, as the table in `sectors` says. That holds for any block, chunk
//! and region, and any batch size of reads. Sectors that no interrupted era wrote stay unchanged. Method: lines and
//! contents are put on a medium in every combination, and the lines after recovery are compared with that table.

use imbrex_disk::{Extent, Pba, Sectors};

use super::super::bounds::Bounds;
use super::super::layout::BLOCK_BYTES;
use super::super::sectors::{ABSENT, Block, DESTROYED, Line, SPOILT, ZERO};
use super::super::space::Space;
use super::super::transfer::Write;
use super::super::{Header, Region};
use super::header;
use crate::media::Media;
use crate::media::memory::Memory;

/// Chunks of 128 sectors, in blocks of 62, 62 and 4: three chunks of platters, one of flash, in four slots in this
/// order.
const CHUNK_SECTORS: u64 = 128;
const SLOTS: [(Region, u64); 4] = [(Region::Disk, 0), (Region::Disk, 128), (Region::Disk, 256), (Region::Flash, 0)];
const BLOCKS: [u64; 3] = [62, 62, 4];

fn toy() -> Header {
    header(512, 3 * CHUNK_SECTORS, CHUNK_SECTORS, 64 << 10, 64 << 10)
}

/// A code of a line, before the checksums of its sector are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Code {
    Word(u32),
    /// Checksum of contents that consist of this byte.
    Bytes(u8),
}

const CODES: [Code; 7] = [
    Code::Word(ABSENT),
    Code::Word(DESTROYED),
    Code::Word(ZERO),
    Code::Word(SPOILT),
    Code::Bytes(1),
    Code::Bytes(2),
    Code::Bytes(3),
];

/// Returns the old code of a sector, its new code, and the byte that lies there. Chosen by the number of the sector in
/// the image, so that all 147 combinations occur, and runs of open lines of many lengths.
fn combination(slot: u64, sector: u64) -> (Code, Code, u8) {
    let number = (slot * CHUNK_SECTORS + sector) * 59 % 147;
    (CODES[number as usize % 7], CODES[number as usize / 7 % 7], 1 + (number / 49) as u8)
}

/// The table in `sectors`, line by line.
fn expected((was, is, lies): (Code, Code, u8)) -> (Code, Code) {
    let after = match (was, is) {
        _ if was == is => is,
        (_, Code::Word(_)) => is,
        (_, Code::Bytes(new)) if new == lies => is,
        (Code::Word(_), _) => was,
        (Code::Bytes(old), _) if old == lies => was,
        _ => is,
    };
    (after, after)
}

/// Returns the line of a sector with these codes.
fn line(space: &Space<Memory>, (region, first): (Region, u64), sector: u64, codes: (Code, Code)) -> Line {
    let word = |code| match code {
        Code::Word(word) => word,
        Code::Bytes(byte) => {
            let mut found = 0;
            space.contents[region as usize].sectors(first + sector, &[byte; 512], 512, |_, sum| found = sum);
            found
        }
    };
    Line { was: word(codes.0), is: word(codes.1) }
}

/// Creates an image in which all slots are assigned and no line is open, with no later state.
fn made() -> Space<Memory> {
    let mut media = Memory::new();
    toy().write(&mut media).expect("memory takes a toy");
    let mut space = Space::create(media, &toy(), Bounds::default()).expect("memory takes a toy");
    for (region, first) in SLOTS {
        let (extent, contents) = (Extent::new(Pba(first), Sectors(1)), [[9; 512][..].into()]);
        let write = Write { region, extent, contents: Some(&contents), spoilt: &[], destroyed: &[] };
        space.write(&write).expect("memory fails nobody");
    }
    space.barrier(0).expect("memory fails nobody");
    space
}

/// Returns the era of a block, relative to that of the state. Of five blocks, one is of the era before, and one is two
/// eras later.
fn era(since: u64, slot: u64, number: u64) -> u64 {
    since - 1 + [1, 0, 1, 3, 1][(slot as usize * 3 + number as usize) % 5]
}

/// Puts the combinations and their contents on the medium. Block 1 of slot 2 is damaged.
fn cut(space: &mut Space<Memory>) {
    let (layout, seal, since) = (*space.layout(), space.seal, space.state().era);
    for (slot, place) in (0..).zip(SLOTS) {
        for (number, sectors) in (0..).zip(BLOCKS) {
            let mut block = Block::filled(ABSENT);
            block.enter(era(since, slot, number));
            for index in 0..sectors {
                let sector = number * 62 + index;
                let (was, is, lies) = combination(slot, sector);
                block.set(index, line(space, place, sector, (was, is)));
                let at = layout.content(slot, sector * 512);
                space.media_mut().write_at(at, &[lies; 512]).expect("memory fails nobody");
            }
            let mut bytes = seal.close(slot, number, Some(slot), &mut block);
            bytes[200] ^= if is_spoilt(slot, number) { 4 } else { 0 };
            space.media_mut().write_at(layout.block(slot, number), &bytes).expect("memory fails nobody");
        }
    }
}

fn is_spoilt(slot: u64, number: u64) -> bool {
    (slot, number) == (2, 1)
}

/// Returns the blocks as they are on the medium.
fn blocks(space: &mut Space<Memory>) -> Vec<[u8; BLOCK_BYTES]> {
    let layout = *space.layout();
    let places = (0..4).flat_map(|slot| (0..3).map(move |number| layout.block(slot, number)));
    places
        .map(|at| {
            let mut bytes = [0; BLOCK_BYTES];
            space.media_mut().read_at(at, &mut bytes).expect("memory fails nobody");
            bytes
        })
        .collect()
}

#[test]
fn settling_leaves_every_sector_old_or_new() {
    // One sector per read, three, and more than a block.
    for (read_bytes, tables_ahead) in [(1, 1), (3 * 512, 3), (64 << 10, 256)] {
        let mut before = made();
        cut(&mut before);
        let as_cut = blocks(&mut before);
        let bounds = Bounds { read_bytes, tables_ahead, ..Bounds::default() };
        let mut space = Space::open(before.into_media(), &toy(), "image", bounds).expect("its facts are whole");
        let since = space.state().era;
        space.settle().expect("memory fails nobody");
        assert_eq!(space.state().era, since + 3, "what is written from now on is of no era that was cut");
        for (index, (bytes, as_cut)) in blocks(&mut space).into_iter().zip(as_cut).enumerate() {
            let (slot, number) = (index as u64 / 3, index as u64 % 3);
            if is_spoilt(slot, number) || era(since, slot, number) < since {
                assert_eq!(bytes, as_cut, "block {number} of slot {slot} is left as it lies");
                continue;
            }
            let block = space.seal.open(slot, number, &bytes).expect("it is whole");
            assert_eq!((block.chunk(), block.era()), (Some(slot), since + 3));
            for index in 0..BLOCKS[number as usize] {
                let (sector, place) = (number * 62 + index, SLOTS[slot as usize]);
                let combination = combination(slot, sector);
                let expected = line(&space, place, sector, expected(combination));
                assert_eq!(
                    block.line(index).is,
                    expected.is,
                    "sector {sector} of {place:?} was, is, holds {combination:?}"
                );
            }
            // The lines after the last sector of a chunk stay blank.
            (BLOCKS[number as usize]..62).for_each(|index| assert_eq!(block.line(index), Line::settled(ABSENT)));
        }
    }
}

#[test]
fn what_was_left_in_good_order_is_not_settled() {
    let mut space = made();
    space.update(|state| state.is_sealed = true).expect("memory fails nobody");
    cut(&mut space);
    let (as_cut, era) = (blocks(&mut space), space.state().era);
    let mut space = Space::open(space.into_media(), &toy(), "image", Bounds::default()).expect("its facts are whole");
    space.settle().expect("memory fails nobody");
    assert!(blocks(&mut space) == as_cut && space.state().era == era, "nothing has changed");
}
