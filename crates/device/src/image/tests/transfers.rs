//! Goal: sectors hold the contents that were written last, and report that they were destroyed or lost, also after the
//! image is opened again. That must not depend on chunks, blocks and cache sizes. Method: random writes, compared with
//! an array of sectors.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use imbrex_disk::{Extent, Pba, Sectors};
use proptest::prelude::*;

use super::super::bounds::Bounds;
use super::super::checksum;
use super::super::space::{Blank, Space};
use super::super::transfer::{Class, Fault, FaultKind, Given, Write};
use super::super::{Header, Region};
use super::header;
use crate::media::Media;
use crate::media::memory::Memory;

const SECTOR: usize = 512;
/// Three chunks of 64 sectors (two blocks of a sector table each) of platters, one of flash.
const SECTORS: [u64; 2] = [192, 64];
const REGIONS: [Region; 2] = [Region::Disk, Region::Flash];

fn toy() -> Header {
    header(512, SECTORS[0], SECTORS[1], 64 * 512, 64 * 512)
}

/// Class of a sector, and the byte that it holds.
type Held = (Class, u8);

#[derive(Clone, Debug)]
enum Act {
    /// Region, first sector, contents by sector (0 is zeros), whether there are contents; destroyed sectors; whether
    /// some are damaged.
    Write(usize, u64, Vec<u8>, bool, Option<(u64, u64)>, bool),
    GiveUp(usize, u64, u64),
    Blank(usize, u64, u64),
    Barrier,
    Reopen,
}

fn within(region: usize, start: u64, sectors: u64) -> (u64, u64) {
    let start = start % SECTORS[region];
    (start, sectors.min(SECTORS[region] - start))
}

fn extent((start, sectors): (u64, u64)) -> Extent {
    Extent::new(Pba(start), Sectors(sectors))
}

fn act() -> impl Strategy<Value = Act> {
    let contents = prop::collection::vec(prop_oneof![1 => Just(0u8), 2 => 1..255u8], 1..80);
    let destroyed = prop::option::of((0..192u64, 1..70u64));
    prop_oneof![
        6 => (0..2usize, 0..192u64, contents, prop::bool::weighted(0.85), destroyed, prop::bool::weighted(0.2)).prop_map(
            |(region, start, mut bytes, is_given, destroyed, has_spoilt)| {
                let (start, sectors) = within(region, start, bytes.len() as u64);
                bytes.truncate(sectors as usize);
                // A write does not destroy its own sectors: a guarantee of recordings.
                let destroyed = destroyed.map(|(start, sectors)| within(0, start, sectors)).filter(|&(from, count)| {
                    region == 0 && (from + count <= start || start + sectors <= from)
                });
                Act::Write(region, start, bytes, is_given, destroyed, has_spoilt)
            }
        ),
        1 => (0..2usize, 0..192u64, 1..70u64).prop_map(|(region, start, sectors)| {
            let (start, sectors) = within(region, start, sectors);
            Act::GiveUp(region, start, sectors)
        }),
        1 => (0..2usize, 0..192u64, 1..70u64).prop_map(|(region, start, sectors)| {
            let (start, sectors) = within(region, start, sectors);
            Act::Blank(region, start, sectors)
        }),
        2 => Just(Act::Barrier),
        1 => Just(Act::Reopen),
    ]
}

/// Model of a space: the sectors, and the chunks that have a slot. Zeroing, destroying or losing sectors of a chunk
/// without a slot leaves no trace.
struct Naive {
    sectors: [Vec<Held>; 2],
    has_slot: [Vec<bool>; 2],
    blank: Blank,
}

impl Naive {
    fn new(blank: Blank) -> Naive {
        let sectors = SECTORS.map(|sectors| vec![(Class::Absent, 0); sectors as usize]);
        Naive { sectors, has_slot: SECTORS.map(|sectors| vec![false; sectors as usize / 64]), blank }
    }

    fn write(&mut self, region: usize, start: u64, bytes: &[u8], destroyed: Option<(u64, u64)>, spoilt: Option<u64>) {
        let held = |offset: usize| match bytes[offset] {
            _ if spoilt == Some(offset as u64) => (Class::Spoilt, 0),
            0 => (Class::Zero, 0),
            byte => (Class::Stored, byte),
        };
        for offset in 0..bytes.len() {
            if held(offset).0 != Class::Zero || self.blank.remembers_zeros {
                self.has_slot[region][(start as usize + offset) / 64] = true;
            }
        }
        for offset in 0..bytes.len() {
            if self.has_slot[region][(start as usize + offset) / 64] {
                self.sectors[region][start as usize + offset] = held(offset);
            }
        }
        let Some((from, count)) = destroyed else { return };
        for pba in from as usize..(from + count) as usize {
            self.has_slot[0][pba / 64] |= self.blank.remembers_zeros;
            let is_hit = match self.sectors[0][pba].0 {
                Class::Stored | Class::Zero => true,
                Class::Absent => self.blank.remembers_zeros,
                Class::Destroyed | Class::Spoilt => false,
            };
            if is_hit && self.has_slot[0][pba / 64] {
                self.sectors[0][pba] = (Class::Destroyed, 0);
            }
        }
    }

    fn redraw(&mut self, region: usize, start: u64, sectors: u64, class: Class) {
        for pba in start as usize..(start + sectors) as usize {
            if self.has_slot[region][pba / 64] {
                self.sectors[region][pba] = (class, 0);
            }
        }
    }

    /// Returns the fault that reading the sector reports.
    fn fault(&self, region: usize, pba: usize) -> Option<FaultKind> {
        match self.sectors[region][pba].0 {
            Class::Destroyed => Some(FaultKind::Destroyed),
            Class::Absent if self.blank.is_damaged && region == 0 => Some(FaultKind::Destroyed),
            Class::Spoilt => Some(FaultKind::Damaged),
            Class::Absent | Class::Zero | Class::Stored => None,
        }
    }
}

fn compare(
    space: &mut Space<Memory>,
    naive: &Naive,
    region: usize,
    start: u64,
    sectors: u64,
) -> Result<(), TestCaseError> {
    let range = start as usize..(start + sectors) as usize;
    let mut reached = start;
    let mut classes = Vec::new();
    space
        .for_each_class(REGIONS[region], extent((start, sectors)), |run, class| {
            assert!(run.start.0 == reached && !run.is_empty(), "{run:?} after {reached}");
            assert!(classes.last() != Some(&class), "two runs of one class side by side");
            classes.extend(std::iter::repeat_n(class, run.sectors.0 as usize));
            reached = run.end().0;
        })
        .expect("memory fails nobody");
    let expected: Vec<Class> = naive.sectors[region][range.clone()].iter().map(|&(class, _)| class).collect();
    prop_assert_eq!(classes, expected);
    let (mut bytes, mut faults) = (vec![0xee; sectors as usize * SECTOR], Vec::new());
    space.read(REGIONS[region], Pba(start), &mut bytes, &mut faults).expect("memory fails nobody");
    for (pba, sector) in range.clone().zip(bytes.chunks(SECTOR)) {
        prop_assert!(sector == [naive.sectors[region][pba].1; SECTOR], "sector {} of {}", pba, region);
    }
    let mut expected: Vec<Fault> = Vec::new();
    for pba in range {
        let Some(kind) = naive.fault(region, pba) else { continue };
        match expected.last_mut() {
            Some(last) if last.kind == kind && last.extent.end().0 == pba as u64 => last.extent.sectors += Sectors(1),
            _ => expected.push(Fault { extent: extent((pba as u64, 1)), kind }),
        }
    }
    prop_assert_eq!(faults, expected);
    Ok(())
}

fn opened(media: Memory, bounds: Bounds, blank: Blank) -> Space<Memory> {
    let mut space = Space::open(media, &toy(), "image", bounds).expect("it is whole");
    assert_eq!(space.notices(), [""; 0], "it is whole");
    space.set_blank(blank);
    space
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn sectors_hold_what_was_written_last(
        acts in prop::collection::vec(act(), 1..16),
        windows in prop::collection::vec((0..2usize, 0..192u64, 1..100u64), 8),
        (is_smallest, is_damaged, remembers_zeros) in any::<(bool, bool, bool)>(),
    ) {
        let bounds = if is_smallest { Bounds::SMALLEST } else { Bounds::default() };
        let blank = Blank { is_damaged, remembers_zeros };
        let mut media = Memory::new();
        toy().write(&mut media).expect("memory takes a toy");
        let mut space = Space::create(media, &toy(), bounds).expect("memory takes a toy");
        space.set_blank(blank);
        let mut naive = Naive::new(blank);
        for act in acts {
            match act {
                Act::Write(region, start, bytes, is_given, destroyed, has_spoilt) => {
                    let bytes = if is_given { bytes } else { vec![0; bytes.len()] };
                    let contents: Vec<u8> = bytes.iter().flat_map(|&byte| [byte; SECTOR]).collect();
                    // Half of the writes come with parts of their checksums.
                    let mut parts = Vec::new();
                    checksum::parts(&contents, SECTOR, &mut parts);
                    let given = Given { bytes: &contents, parts: (start % 2 == 0).then_some(&parts) };
                    let spoilt = (has_spoilt && is_given).then_some(bytes.len() as u64 / 2);
                    let spoilt_extent: Vec<Extent> = spoilt.map(|offset| extent((start + offset, 1))).into_iter().collect();
                    let destroyed_extent: Vec<Extent> = destroyed.map(extent).into_iter().collect();
                    space.write(&Write {
                        region: REGIONS[region],
                        extent: extent((start, bytes.len() as u64)),
                        contents: is_given.then_some(&[given][..]),
                        spoilt: &spoilt_extent,
                        destroyed: &destroyed_extent,
                    }).expect("memory fails nobody");
                    naive.write(region, start, &bytes, destroyed, spoilt);
                }
                Act::GiveUp(region, start, sectors) => {
                    space.give_up(REGIONS[region], extent((start, sectors))).expect("memory fails nobody");
                    naive.redraw(region, start, sectors, Class::Spoilt);
                }
                Act::Blank(region, start, sectors) => {
                    space.blank(REGIONS[region], extent((start, sectors))).expect("memory fails nobody");
                    naive.redraw(region, start, sectors, Class::Zero);
                }
                Act::Barrier => space.barrier(0).expect("memory fails nobody"),
                Act::Reopen => {
                    space.barrier(0).expect("memory fails nobody");
                    space = opened(space.into_media(), bounds, blank);
                    space.settle().expect("memory fails nobody");
                }
            }
        }
        for &(region, start, sectors) in &windows {
            let (start, sectors) = within(region, start, sectors);
            compare(&mut space, &naive, region, start, sectors)?;
        }
        // Opened again from the medium, the image gives the same results, and its contents lie where the image says.
        let mut space = opened(space.into_media(), bounds, blank);
        for (region, sectors) in SECTORS.into_iter().enumerate() {
            compare(&mut space, &naive, region, 0, sectors)?;
        }
        let mut image = vec![0; space.media().len() as usize];
        space.media_mut().read_at(0, &mut image).expect("memory fails nobody");
        let mut lying = [0, 0];
        for at in (0..image.len()).step_by(SECTOR) {
            let Some((region, sector)) = space.sector_at(at as u64) else { continue };
            if let (Class::Stored, byte) = naive.sectors[region as usize][sector as usize] {
                prop_assert!(image[at..at + SECTOR] == [byte; SECTOR], "sector {} of {:?} at {}", sector, region, at);
                lying[region as usize] += 1;
            }
        }
        let stored = |region: usize| naive.sectors[region].iter().filter(|held| held.0 == Class::Stored).count();
        prop_assert_eq!(lying, [stored(0), stored(1)]);
    }
}

/// Returns an empty space.
fn blank() -> Space<Memory> {
    let mut media = Memory::new();
    toy().write(&mut media).expect("memory takes a toy");
    Space::create(media, &toy(), Bounds::default()).expect("memory takes a toy")
}

/// Writes contents, one byte value for each sector, in pieces with these numbers of sectors.
fn write_pieces(space: &mut Space<Memory>, start: u64, bytes: &[u8], pieces: &[usize]) {
    let contents: Vec<u8> = bytes.iter().flat_map(|&byte| [byte; SECTOR]).collect();
    let (mut given, mut rest) = (Vec::new(), &contents[..]);
    for sectors in pieces {
        let (piece, after) = rest.split_at(sectors * SECTOR);
        given.push(piece.into());
        rest = after;
    }
    assert!(rest.is_empty(), "the pieces are all of it");
    let extent = extent((start, bytes.len() as u64));
    let write = Write { region: Region::Disk, extent, contents: Some(&given), spoilt: &[], destroyed: &[] };
    space.write(&write).expect("memory fails nobody");
}

#[test]
fn contents_are_the_same_however_they_come_in_pieces() {
    // From sector 50 on, across the ends of the first two chunks at 64 and 128. One run of zeros is short enough to be
    // written along (16 KiB, 32 sectors), the other is longer.
    let bytes: Vec<u8> = (0..100)
        .map(|index| if (20..22).contains(&index) || (40..75).contains(&index) { 0 } else { 1 + index })
        .collect();
    for pieces in [&[100][..], &[1, 3, 96], &[14, 64, 22], &[13, 2, 62, 23], &[21, 30, 30, 19], &[1; 100]] {
        let mut space = blank();
        write_pieces(&mut space, 50, &bytes, pieces);
        let (mut read, mut faults) = (vec![0xee; 100 * SECTOR], Vec::new());
        space.read(Region::Disk, Pba(50), &mut read, &mut faults).expect("memory fails nobody");
        let sectors: Vec<u8> = read.chunks(SECTOR).map(|sector| sector[0]).collect();
        assert_eq!((sectors, faults), (bytes.clone(), vec![]), "{pieces:?}");
        assert!(read.chunks(SECTOR).all(|sector| sector == [sector[0]; SECTOR]), "{pieces:?}");
    }
}

/// Durable contents are overwritten at most once before a barrier, so a power cut leaves old or new contents. A second
/// overwrite could leave neither.
#[test]
fn what_was_durable_is_written_over_once_in_an_era() {
    let mut space = blank();
    write_pieces(&mut space, 10, &[1; 4], &[4]);
    let first = space.state().era;
    write_pieces(&mut space, 10, &[2; 4], &[4]);
    assert_eq!(space.state().era, first, "what is not durable may be lost as well as written over");
    space.barrier(0).expect("memory fails nobody");
    let era = space.state().era;
    assert_eq!(era, first + 1, "a barrier ends an era");
    write_pieces(&mut space, 10, &[3; 4], &[4]);
    write_pieces(&mut space, 14, &[3; 4], &[4]);
    assert_eq!(space.state().era, era, "each of these is written over once");
    // Zeros are not stored: the line is enough.
    write_pieces(&mut space, 11, &[0; 1], &[1]);
    assert_eq!(space.state().era, era);
    write_pieces(&mut space, 13, &[4; 2], &[2]);
    assert_eq!(space.state().era, era + 1, "sector 13 would be written over twice");
    write_pieces(&mut space, 13, &[5; 1], &[1]);
    assert_eq!(space.state().era, era + 2, "and again");
}

/// A medium in memory that counts read operations.
#[derive(Debug, Default)]
struct Counting {
    memory: Memory,
    reads: Arc<AtomicU64>,
}

impl Media for Counting {
    fn len(&self) -> u64 {
        self.memory.len()
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.memory.read_at(offset, into)
    }

    fn write_at(&mut self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.memory.write_at(offset, from)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Cached sector tables survive a call of `lend`: every destage makes one.
#[test]
fn a_loan_makes_nothing_be_read_again() {
    let mut media = Counting::default();
    let reads = media.reads.clone();
    toy().write(&mut media).expect("memory takes a toy");
    let mut space = Space::create(media, &toy(), Bounds::default()).expect("memory takes a toy");
    let reads_of_a_write = |space: &mut Space<Counting>| {
        let before = reads.load(Ordering::Relaxed);
        let contents = [Given::from(&[7; 2 * SECTOR][..])];
        let (region, extent) = (Region::Disk, extent((3, 2)));
        let write = Write { region, extent, contents: Some(&contents), spoilt: &[], destroyed: &[] };
        space.write(&write).expect("memory fails nobody");
        reads.load(Ordering::Relaxed) - before
    };
    assert!(reads_of_a_write(&mut space) > 0, "the table is read first");
    space.lend(&mut std::iter::once(Arc::new(vec![7; SECTOR])));
    assert_eq!(reads_of_a_write(&mut space), 0);
    space.lend(&mut std::iter::empty());
    assert_eq!(reads_of_a_write(&mut space), 0);
    space.media_mut();
    assert!(reads_of_a_write(&mut space) > 0, "whoever has the medium may have changed it");
}
