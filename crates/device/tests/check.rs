//! Goal: the check of an image finds what is wrong with it, and nothing else. Method: images after random work are
//! found whole; then one thing is spoilt in each, by hand, and that must be found.

mod common;

use imbrex_device::check::{check_image, Finding};
use imbrex_device::image::space::SlotFault;
use imbrex_device::image::{Region, Space};
use imbrex_device::media::memory::Memory;
use imbrex_device::{DeviceError, Media, Store};
use imbrex_disk::{Command, Lba, Pba, Sectors};
use imbrex_layer::{GroupKind, Layer, MapMemory, Medium, Note, Piece, Plan, ReplayError, Violation};

/// Where the table of an image begins.
const TABLE: u64 = (64 << 10) + 8192;

/// A worked image of a layer, opened to look.
fn opened(layer: &str) -> (imbrex_sim::Drive, Store<Memory>) {
    let subject = common::subjects_of(layer).swap_remove(0);
    Store::open_to_look(common::worked(&subject, 3, 60), "image").expect("it is whole")
}

/// Where byte `offset` of `region` lies on the medium.
fn place(space: &mut Space<Memory>, region: Region, offset: u64) -> u64 {
    let mut runs = Vec::new();
    space.runs(region, offset, 1, false, &mut runs).expect("memory reads");
    runs[0].at.expect("it was written")
}

fn flip(media: &mut Memory, at: u64) {
    let mut byte = [0];
    media.read_at(at, &mut byte).expect("memory reads");
    media.write_at(at, &[byte[0] ^ 0x10]).expect("memory takes it");
}

#[test]
fn worked_images_are_whole() {
    for subject in common::drive_managed_subjects() {
        for deeds in [0, 5, 80] {
            let findings = check_image(common::worked(&subject, 2, deeds), "image").expect("it opens");
            assert_eq!(findings, [], "{}, {deeds} deeds", subject.what);
        }
    }
}

#[test]
fn the_check_leaves_the_image_alone() {
    let subject = common::subjects_of("region-rmw").swap_remove(0);
    let image = common::worked(&subject, 4, 60);
    let bytes = |mut media: Memory| {
        let mut bytes = vec![0; media.len() as usize];
        media.read_at(0, &mut bytes).expect("memory reads");
        bytes
    };
    let shared = common::Shared::new(image.clone());
    check_image(shared.clone(), "image").expect("it opens");
    assert!(bytes(image) == bytes(shared.with(|media| media.clone())));
}

#[test]
fn a_destroyed_live_sector_is_found() {
    let (drive, mut store) = opened("set-associative");
    let mut pieces = Vec::new();
    drive.layer.lookup(Lba(20), Sectors(1), &mut pieces);
    let Some((Medium::Disk, pba)) = pieces[0].at else { panic!("LBA 20 lies nowhere: {pieces:?}") };
    let byte = [1 << (pba.0 % 8)];
    store.space_mut().write_together(&[(Region::Damage, pba.0 / 8, &byte)]).expect("memory takes it");
    let findings = check_image(store.space().media().clone(), "image").expect("it opens");
    let lost = |finding: &Finding| *finding == Finding::Destroyed { lba: Lba(20), pba, sectors: Sectors(1) };
    assert!(findings.iter().any(lost), "{findings:?}");
    assert!(findings.iter().all(|finding| matches!(finding, Finding::Destroyed { .. })), "{findings:?}");
}

#[test]
fn a_spoilt_journal_record_is_found_in_an_open_image() {
    let (drive, mut store) = opened("set-associative");
    let record = store.journal().records() / 2;
    let at = place(store.space_mut(), Region::JournalA, record * 64 + 30);
    flip(store.space_mut().media_mut(), at);
    assert_eq!(store.check(drive.layer.as_ref()).expect("memory reads"), [Finding::Journal { record }]);
}

#[test]
fn a_spoilt_journal_record_keeps_the_image_shut() {
    let (_, mut store) = opened("set-associative");
    let at = place(store.space_mut(), Region::JournalA, 64 + 30);
    flip(store.space_mut().media_mut(), at);
    let findings = check_image(store.space().media().clone(), "image").expect("that is a finding");
    assert!(matches!(&findings[..], [Finding::Unopenable(reason)] if reason.contains("record 1 of its journal")));
}

#[test]
fn two_chunks_in_one_slot_are_found() {
    let (_, mut store) = opened("set-associative");
    let mut first = [0; 4];
    let media = store.space_mut().media_mut();
    media.read_at(TABLE, &mut first).expect("memory reads");
    let slot = u64::from(u32::from_le_bytes(first)) - 1;
    // The last chunk of journal B, which nothing was written to.
    let header = store.header().clone();
    let damage_chunks = (header.disk_sectors / 8).div_ceil(4096);
    let disk_chunks = [header.disk_sectors, header.flash_sectors].map(|sectors| (sectors * 512).div_ceil(4096));
    let chunk = disk_chunks[0] + disk_chunks[1] + damage_chunks + 2 * (header.journal_bytes / 4096) - 1;
    store.space_mut().media_mut().write_at(TABLE + chunk * 4, &first).expect("memory takes it");
    let findings = check_image(store.space().media().clone(), "image").expect("it opens");
    assert_eq!(findings, [Finding::Slots(SlotFault::Shared { chunk, slot })]);
}

#[test]
fn a_slot_that_was_never_given_is_found() {
    let (drive, mut store) = opened("set-associative");
    let unused = store.header().disk_sectors * 512 / 4096 + 1;
    store.space_mut().media_mut().write_at(TABLE + unused * 4, &999_999u32.to_le_bytes()).expect("memory takes it");
    let findings = store.check(drive.layer.as_ref()).expect("memory reads");
    assert_eq!(findings, [Finding::Slots(SlotFault::NeverGiven { chunk: unused, slot: 999_998 })]);
    let reopened = check_image(store.space().media().clone(), "image").expect("it opens");
    assert_eq!(reopened, findings);
    // One that the opening needs keeps the image shut: that of the journal's first chunk.
    let header = store.header().clone();
    let before = [header.disk_sectors * 512, header.flash_sectors * 512, header.disk_sectors.div_ceil(8)];
    let chunk: u64 = before.iter().map(|bytes| bytes.div_ceil(4096)).sum();
    store.space_mut().media_mut().write_at(TABLE + chunk * 4, &999_999u32.to_le_bytes()).expect("memory takes it");
    let shut = check_image(store.space().media().clone(), "image").expect("that is a finding");
    assert!(matches!(&shut[..], [Finding::Unopenable(reason)] if reason.contains("its table says slot 999999")));
}

/// Whether a physical sector serves two logical ones, sector by sector.
fn serves_twice(layer: &dyn Layer) -> bool {
    let (mut pieces, mut seen) = (Vec::new(), std::collections::BTreeSet::new());
    layer.lookup(Lba(0), layer.capacity(), &mut pieces);
    let places = pieces.iter().filter_map(|piece| piece.at.map(|(_, pba)| pba.0..pba.0 + piece.sectors.0));
    places.flatten().any(|pba| !seen.insert(pba))
}

#[test]
fn two_sectors_in_one_place_are_found() {
    let (drive, mut store) = opened("set-associative");
    // The record of a write, once more for sectors elsewhere.
    let mut notes = Vec::new();
    drive.layer.checkpoint(&mut notes);
    let subject = common::subjects_of("set-associative").swap_remove(0);
    let fresh = || imbrex_layer::registry::build("set-associative", &drive.disk, &subject.header.parameters);
    let mapped_twice = |twice: &Note| {
        let mut layer = fresh().expect("it was built before");
        let takes = notes.iter().chain([twice]).all(|note| layer.replay(note).is_ok());
        takes && serves_twice(layer.as_ref())
    };
    let found = notes.iter().find_map(|note| {
        let moved =
            |by| Note { fields: [note.fields[0] + by, note.fields[1], note.fields[2], note.fields[3]], ..*note };
        (1..64).map(moved).find(mapped_twice)
    });
    let twice = found.expect("a record of a mapping is taken twice");
    let mut plan = Plan::new();
    plan.open(GroupKind::Host);
    plan.note(twice);
    plan.barrier();
    store.execute(&plan, &mut []).expect("memory takes it");
    let findings = check_image(store.space().media().clone(), "image").expect("it opens");
    assert!(findings.iter().any(|finding| matches!(finding, Finding::Shared { .. })), "{twice:?}: {findings:?}");
}

/// A map made by hand, over a drive of which nothing else is asked.
struct Map(Vec<Piece>, Option<Violation>);

impl Layer for Map {
    fn name(&self) -> &'static str {
        "map"
    }
    fn capacity(&self) -> Sectors {
        Sectors(100)
    }
    fn plan(&mut self, _: &[Command], _: &mut Plan) {}
    fn lookup(&self, _: Lba, _: Sectors, pieces: &mut Vec<Piece>) {
        pieces.extend_from_slice(&self.0);
    }
    fn keeps_trims(&self) -> bool {
        false
    }
    fn self_check(&self) -> Result<(), Violation> {
        self.1.clone().map_or(Ok(()), Err)
    }
    fn memory(&self) -> MapMemory {
        MapMemory::default()
    }
    fn checkpoint(&self, _: &mut Vec<Note>) {}
    fn replay(&mut self, _: &Note) -> Result<(), ReplayError> {
        Ok(())
    }
}

fn piece(lba: u64, sectors: u64, pba: u64) -> Piece {
    Piece { lba: Lba(lba), sectors: Sectors(sectors), at: Some((Medium::Disk, Pba(pba))) }
}

#[test]
fn a_wrong_map_is_found() {
    let (_, mut store) = opened("conventional");
    let past = store.header().disk_sectors - 1;
    let mut check = |pieces: &[Piece]| store.check(&Map(pieces.to_vec(), None)).expect("memory reads");
    let map = |lba, what| Finding::Map { lba: Lba(lba), what };
    assert_eq!(check(&[piece(0, 100, 0)]), []);
    assert_eq!(check(&[piece(0, 40, 0), piece(50, 50, 50)]), [map(40, "leaves sectors out")]);
    assert_eq!(check(&[piece(0, 60, 0), piece(50, 50, 150)]), [map(50, "repeats sectors")]);
    assert_eq!(check(&[piece(0, 90, 0)]), [map(90, "ends too early or too late")]);
    assert_eq!(check(&[piece(0, 98, 0), piece(98, 2, past)]), [map(98, "points past the medium")]);
    let lbas = [Lba(5), Lba(90)];
    let shared = Finding::Shared { medium: Medium::Disk, pba: Pba(5), sectors: Sectors(10), lbas };
    assert_eq!(check(&[piece(0, 90, 0), piece(90, 10, 5)]), [shared]);
}

#[test]
fn a_broken_invariant_of_the_layer_is_found() {
    let (_, mut store) = opened("conventional");
    let violation = Violation { layer: "map", invariant: 2, detail: "made by hand".into() };
    let findings = store.check(&Map(vec![piece(0, 100, 0)], Some(violation.clone()))).expect("memory reads");
    assert_eq!(findings, [Finding::Layer(violation)]);
}

#[test]
fn a_foreign_file_is_no_finding_but_an_error() {
    let error = check_image(Memory::with(b"something else"), "notes.txt").expect_err("it is no image");
    assert!(matches!(error, DeviceError::Image { .. }), "{error}");
}
