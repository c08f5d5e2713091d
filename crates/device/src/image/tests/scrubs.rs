//! Goal: all damage in an image is reported at its place and no other, and repaired. Method: one byte is damaged in
//! each kind of data, at places computed from the layout.

use imbrex_disk::{Extent, Pba, Sectors};

use super::super::bounds::Bounds;
use super::super::regions::{Use, Used};
use super::super::scrub::Flaw;
use super::super::space::Space;
use super::super::transfer::Write;
use super::super::{Header, Journal, Region};
use super::header;
use crate::media::Media;
use crate::media::memory::Memory;

/// Three chunks of 128 sectors (three blocks of a sector table each) of platters, one of flash.
fn toy() -> Header {
    header(512, 384, 128, 64 << 10, 64 << 10)
}

fn extent(start: u64, sectors: u64) -> Extent {
    Extent::new(Pba(start), Sectors(sectors))
}

/// Sectors 100 … 299 of the platters and 0 … 9 of the flash are written; 150 … 159 are zeros.
fn written() -> Space<Memory> {
    let mut media = Memory::new();
    toy().write(&mut media).expect("memory takes a toy");
    let mut space = Space::create(media, &toy(), Bounds::default()).expect("memory takes a toy");
    let mut bytes = vec![7; 200 * 512];
    bytes[50 * 512..60 * 512].fill(0);
    for (region, extent) in [(Region::Disk, extent(100, 200)), (Region::Flash, extent(0, 10))] {
        let contents = [bytes[..extent.sectors.0 as usize * 512].into()];
        space
            .write(&Write { region, extent, contents: Some(&contents), spoilt: &[], destroyed: &[] })
            .expect("memory fails nobody");
    }
    space.barrier(0).expect("memory fails nobody");
    space
}

/// Flips one bit.
fn spoil(space: &mut Space<Memory>, at: u64) {
    let mut byte = [0];
    space.media_mut().read_at(at, &mut byte).expect("memory fails nobody");
    space.media_mut().write_at(at, &[byte[0] ^ 4]).expect("memory fails nobody");
}

fn flaws(space: &mut Space<Memory>) -> (Vec<Flaw>, Vec<(u64, u64)>) {
    let (mut flaws, mut progress) = (Vec::new(), Vec::new());
    let mut each = |flaw| flaws.push(flaw);
    space.scrub(&toy(), "image", &mut each, &mut |done, all| progress.push((done, all))).expect("memory reads");
    (flaws, progress)
}

/// Returns the offset of a sector's contents.
fn place(space: &Space<Memory>, region: Region, sector: u64) -> u64 {
    let chunk = space.layout().chunk(region, sector * 512);
    let slot = space.directory.slot(chunk).expect("it is written");
    space.layout().content(slot, sector % 128 * 512)
}

#[test]
fn each_flaw_is_named_and_put_right() {
    let mut space = written();
    let slot_bytes = space.layout().slot_bytes();
    // Slots exist for chunks 0, 1 and 2 of the platters and for chunk 3, of the flash.
    let all = [1, 2, 3, 4].map(|slots| (slots * slot_bytes, 4 * slot_bytes)).to_vec();
    assert_eq!(flaws(&mut space), (vec![], all));
    let layout = *space.layout();
    for sector in [103, 104, 109, 127, 128, 190, 254, 299] {
        let at = place(&space, Region::Disk, sector);
        spoil(&mut space, at + 511);
    }
    let at = place(&space, Region::Flash, 9);
    spoil(&mut space, at);
    let at = place(&space, Region::Disk, 155);
    spoil(&mut space, at); // No contents are stored for zeros.
    spoil(&mut space, layout.block(2, 1) + 300); // In the third chunk, after the written sectors.
    spoil(&mut space, layout.header(1) + 30);
    spoil(&mut space, layout.state(2, 1) + 8);
    spoil(&mut space, layout.entry(1) + 8);
    spoil(&mut space, layout.entry(6) + 8); // Entry of a slot that is prepared and not assigned.
    spoil(&mut space, layout.slot(3) + 200);
    let contents = |region, start, sectors| Flaw::Contents { region, extent: extent(start, sectors) };
    let expected = vec![
        Flaw::Header { copy: 1 },
        Flaw::State { copy: 2, place: 1 },
        Flaw::Entry { slot: 1 },
        contents(Region::Disk, 103, 2),
        contents(Region::Disk, 109, 1),
        contents(Region::Disk, 127, 1),
        contents(Region::Disk, 128, 1),
        contents(Region::Disk, 190, 1),
        contents(Region::Disk, 254, 1),
        contents(Region::Disk, 299, 1),
        Flaw::Table { region: Region::Disk, extent: extent(318, 62) },
        Flaw::SlotHeader { slot: 3 },
        contents(Region::Flash, 9, 1),
    ];
    let (mut found, _) = flaws(&mut space);
    let missing: Vec<_> = expected.iter().filter(|flaw| !found.contains(flaw)).collect();
    assert!(missing.is_empty(), "{missing:?} of {found:?}");
    found.retain(|flaw| !expected.contains(flaw) && *flaw != Flaw::Entry { slot: 6 });
    assert_eq!(found, []);
    for flaw in expected {
        if let Flaw::Table { region, extent } | Flaw::Contents { region, extent } = flaw {
            space.give_up(region, extent).expect("memory fails nobody");
        }
    }
    space.heal(&toy()).expect("memory fails nobody");
    assert_eq!(flaws(&mut space).0, [], "a second look finds nothing");
    let mut faults = Vec::new();
    space.read(Region::Disk, Pba(100), &mut vec![0; 200 * 512], &mut faults).expect("memory fails nobody");
    let lost: Vec<Extent> = faults.iter().map(|fault| fault.extent).collect();
    assert_eq!(
        lost,
        [(103, 2), (109, 1), (127, 2), (190, 1), (254, 1), (299, 1)].map(|(start, sectors)| extent(start, sectors))
    );
}

#[test]
fn slots_whose_owner_nobody_knows_are_counted() {
    let mut space = written();
    let layout = *space.layout();
    let everything = |slot| {
        let blocks = (0..3).map(move |number| layout.block(slot, number) + 300);
        blocks.chain([layout.entry(slot) + 8, layout.slot(slot) + 200])
    };
    // One block of a sector table is enough to determine the owner of its slot.
    everything(1).for_each(|at| spoil(&mut space, at));
    everything(2).skip(1).for_each(|at| spoil(&mut space, at));
    let media = space.into_media();
    let error =
        Space::open(media.clone(), &toy(), "image", Bounds::default()).expect_err("somebody's sectors are lost");
    assert!(error.to_string().contains("of 4 assigned slots, only 3 have a known owner"), "{error}");
    let mut space = Space::open_ruined(media, &toy(), "image", Bounds::default()).expect("it can be repaired");
    let orphans: Vec<Flaw> =
        flaws(&mut space).0.into_iter().filter(|flaw| matches!(flaw, Flaw::Orphans { .. })).collect();
    assert_eq!(orphans, [Flaw::Orphans { slots: 1 }]);
}

#[test]
fn an_image_that_is_cut_short_is_named_and_lengthened() {
    let space = written();
    let (needed, mut bytes) = (space.layout().slot(space.state().slot_mark), vec![0; space.media().len() as usize]);
    assert!(bytes.len() as u64 >= needed);
    space.into_media().read_at(0, &mut bytes).expect("memory fails nobody");
    for (length, is_short) in [(needed, false), (needed - 1, true)] {
        let media = Memory::with(&bytes[..length as usize]);
        let mut space =
            Space::open(media, &toy(), "image", Bounds::default()).expect("what is cut off is in nobody's slot");
        let short = Flaw::CutShort { bytes: length, needed };
        assert_eq!(flaws(&mut space).0.contains(&short), is_short, "{length} of {needed}");
        assert_eq!(!space.notices().is_empty(), is_short);
        space.heal(&toy()).expect("memory fails nobody");
        assert_eq!(flaws(&mut space).0, []);
        assert!(space.media().len() >= needed);
    }
}

#[test]
fn what_is_in_use_is_told_piece_by_piece() {
    let mut space = written();
    let journal = Journal::replay(&mut space, 64 << 10, "image", |_| Ok(())).expect("it is empty");
    let mut used = Vec::new();
    space.for_each_used(&toy(), &journal, &mut |piece| used.push(piece)).expect("memory fails nobody");
    let bytes_of = |what| used.iter().filter(|piece| piece.what == what).map(|piece| piece.bytes).collect::<Vec<u64>>();
    assert_eq!(bytes_of(Use::Header), [toy().length(); 3]);
    assert_eq!(bytes_of(Use::State), [72; 6]);
    assert_eq!(bytes_of(Use::Directory), [16; 4]);
    assert_eq!(bytes_of(Use::SlotHeader), [512; 4]);
    assert_eq!(bytes_of(Use::SectorTable), [512; 12]);
    assert_eq!(bytes_of(Use::Journal), [0; 0]);
    // Runs of contents, block by block of 62 sectors, without the zeros.
    let runs = [(100, 24), (124, 4), (128, 22), (160, 30), (190, 62), (252, 4), (256, 44)];
    let contents: Vec<Used> = used.iter().filter(|piece| piece.what == Use::Contents).copied().collect();
    let mut expected: Vec<Used> = runs
        .map(|(sector, sectors)| Used {
            what: Use::Contents,
            offset: place(&space, Region::Disk, sector),
            bytes: sectors * 512,
        })
        .to_vec();
    expected.push(Used { what: Use::Contents, offset: place(&space, Region::Flash, 0), bytes: 10 * 512 });
    assert_eq!(contents, expected);
}
