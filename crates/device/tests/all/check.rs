//! Goal: the check of an image finds the fault in it, and nothing else. Method: images after random work have no
//! findings. Then each image gets one fault, which the check must find.

use imbrex_device::check::{Checked, Finding, check_image};
use imbrex_device::image::Region;
use imbrex_device::image::scrub::Flaw;
use imbrex_device::image::transfer::Write;
use imbrex_device::media::memory::Memory;
use imbrex_device::{DeviceError, Media, Store};
use imbrex_disk::{Command, Extent, Lba, Pba, Sectors};
use imbrex_layer::{GroupKind, Layer, MapMemory, Medium, Note, Piece, Plan, ReplayError, Violation};

use crate::common;
use crate::common::recorded::{flip, journal_places};

/// Returns an image of a layer after random work, opened without changes.
fn opened(layer: &str) -> (imbrex_sim::Drive, Store<Memory>) {
    let subject = common::subjects_of(layer).swap_remove(0);
    Store::open_to_look(common::worked(&subject, 3, 60), "image").expect("it is whole")
}

fn check(media: impl Media) -> Result<Checked, DeviceError> {
    check_image(media, "image", &mut |_, _| {})
}

/// Returns the place of logical sector `lba` on the platters.
fn place_of(drive: &imbrex_sim::Drive, lba: u64) -> Pba {
    let mut pieces = Vec::new();
    drive.layer.lookup(Lba(lba), Sectors(1), &mut pieces);
    let Some((Medium::Disk, pba)) = pieces[0].at else { panic!("LBA {lba} lies nowhere: {pieces:?}") };
    pba
}

#[test]
fn worked_images_are_whole() {
    for subject in common::drive_managed_subjects() {
        for actions in [0, 5, 80] {
            let checked = check(common::worked(&subject, 2, actions)).expect("it opens");
            assert_eq!(checked, Checked::default(), "{}, {actions} actions", subject.what);
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
    check(shared.clone()).expect("it opens");
    assert!(bytes(image) == bytes(shared.with(|media| media.clone())));
}

#[test]
fn a_destroyed_live_sector_is_found() {
    let (drive, mut store) = opened("set-associative");
    let pba = place_of(&drive, 20);
    let extent = Extent::new(pba, Sectors(1));
    let write = Write { region: Region::Disk, extent, contents: None, spoilt: &[], destroyed: &[extent] };
    store.space_mut().write(&write).expect("memory takes it");
    let findings = check(store.space().media().clone()).expect("it opens").findings;
    assert_eq!(findings, [Finding::Destroyed { lba: Lba(20), pba, sectors: Sectors(1) }]);
}

#[test]
fn a_flipped_bit_in_contents_is_found_with_its_sector() {
    let subject = common::subjects_of("set-associative").swap_remove(0);
    let recorded = common::recorded::recorded(&subject, 3, 60, Default::default());
    let lba = recorded.right.iter().position(|&version| version != 0).expect("something was written") as u64;
    let (drive, mut store) = Store::open_to_look(recorded.image.clone(), "image").expect("it is whole");
    let pba = place_of(&drive, lba);
    let mut offset = None;
    store.for_each_used(&mut |used| offset = offset.max(Some(used.offset + used.bytes))).expect("memory reads");
    let at = (0..offset.expect("it holds something"))
        .step_by(512)
        .find(|&at| store.space().sector_at(at) == Some((Region::Disk, pba.0)))
        .expect("it lies somewhere");
    let mut image = recorded.image;
    flip(&mut image, at + 77);
    let extent = Extent::new(pba, Sectors(1));
    let expected = [
        Finding::Image(Flaw::Contents { region: Region::Disk, extent }),
        Finding::Unreadable { lba: Lba(lba), medium: Medium::Disk, pba, sectors: Sectors(1) },
    ];
    assert_eq!(check(image).expect("it opens").findings, expected);
}

#[test]
fn a_spoilt_copy_of_a_journal_record_is_found_in_an_open_image() {
    let (drive, mut store) = opened("set-associative");
    let record = store.journal().records() / 2;
    for copy in [0, 1] {
        let at = journal_places(store.space().media())[copy][record as usize] + 30;
        flip(store.space_mut().media_mut(), at);
        let findings = store.check(drive.layer.as_ref(), "image", &mut |_, _| {}).expect("memory reads");
        assert_eq!(findings, [Finding::Journal { record, copy }]);
        flip(store.space_mut().media_mut(), at);
    }
}

#[test]
fn a_record_whose_two_copies_are_spoilt_keeps_the_image_shut() {
    let (_, mut store) = opened("set-associative");
    let places = journal_places(store.space().media());
    places.iter().for_each(|copy| flip(store.space_mut().media_mut(), copy[1] + 30));
    let findings = check(store.space().media().clone()).expect("that is a finding").findings;
    assert!(
        matches!(&findings[..], [Finding::Unopenable(reason)] if reason.contains("both copies of record 1 of its journal")),
        "{findings:?}"
    );
}

/// Returns whether any physical sector serves two logical ones, by a search sector by sector.
fn serves_twice(layer: &dyn Layer) -> bool {
    let (mut pieces, mut seen) = (Vec::new(), std::collections::BTreeSet::new());
    layer.lookup(Lba(0), layer.capacity(), &mut pieces);
    let places = pieces.iter().filter_map(|piece| piece.at.map(|(_, pba)| pba.0..pba.0 + piece.sectors.0));
    places.flatten().any(|pba| !seen.insert(pba))
}

#[test]
fn two_sectors_in_one_place_are_found() {
    let (drive, mut store) = opened("set-associative");
    // A note of a write, repeated for sectors elsewhere.
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
    let findings = check(store.space().media().clone()).expect("it opens").findings;
    assert!(findings.iter().any(|finding| matches!(finding, Finding::Shared { .. })), "{twice:?}: {findings:?}");
}

/// A map built by the test. The other methods of the layer are never called.
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
    let mut check =
        |pieces: &[Piece]| store.check(&Map(pieces.to_vec(), None), "image", &mut |_, _| {}).expect("memory reads");
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
    let map = Map(vec![piece(0, 100, 0)], Some(violation.clone()));
    let findings = store.check(&map, "image", &mut |_, _| {}).expect("memory reads");
    assert_eq!(findings, [Finding::Layer(violation)]);
}

#[test]
fn a_foreign_file_is_no_finding_but_an_error() {
    let error = check(Memory::with(b"something else")).expect_err("it is no image");
    assert!(matches!(error, DeviceError::Image { .. }), "{error}");
}
