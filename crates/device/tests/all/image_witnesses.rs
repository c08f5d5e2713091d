//! Goal: damage to one copy of any metadata loses nothing. If both copies are damaged, the damage is reported, and
//! nothing more is lost. Method: images with known contents are damaged at one place after the other, then opened,
//! read, checked and repaired.

use imbrex_device::check::{Finding, check_image};
use imbrex_device::image::Bounds;
use imbrex_device::image::regions::{Use, Used};
use imbrex_device::image::scrub::Flaw;
use imbrex_device::media::memory::Memory;
use imbrex_device::repair::{Repaired, repair_image};
use imbrex_device::{Media, Store};

use crate::common;
use crate::common::recorded::{Recorded, flip, journal_places, open, read_all, recorded, used};

const LAYERS: [&str; 4] = ["region-rmw", "track-flip", "track-cache", "set-associative"];

fn worked(layer: &str) -> Recorded {
    recorded(&common::first_subject_of(layer), 5, 90, Bounds::default())
}

fn pieces_of(image: &Memory, what: Use) -> Vec<Used> {
    used(image).into_iter().filter(|used| used.what == what).collect()
}

fn findings(image: &Memory) -> Vec<Finding> {
    check_image(image.clone(), "image", &mut |_, _| {}).expect("it was an image").findings
}

/// Returns the logical sectors that `findings` name, in order.
fn named(findings: &[Finding]) -> Vec<u64> {
    let runs = findings.iter().filter_map(Finding::lbas);
    let mut lbas: Vec<u64> = runs.flat_map(|(lba, sectors)| lba.0..lba.0 + sectors.0).collect();
    lbas.sort_unstable();
    lbas
}

fn repaired(image: &Memory) -> (Repaired, Memory) {
    repair_image(image.clone(), "image", &mut |_, _| {}).expect("it can be repaired")
}

/// Opens and reads `image`. Returns the notices, the sectors with wrong contents, and the unreadable sectors.
fn read(image: &Memory, right: &[u64]) -> (Vec<String>, Vec<u64>, Vec<u64>) {
    let mut drive = open(image.clone(), Bounds::default()).expect("it opens");
    let notices = drive.store_mut().notices().to_vec();
    let readings = read_all(&mut drive, right);
    (notices, readings.wrong, readings.errors)
}

/// Returns whether `finding` concerns a piece of kind `what`.
fn names(finding: &Finding, what: Use) -> bool {
    matches!(
        (finding, what),
        (Finding::Image(Flaw::Header { .. }), Use::Header)
            | (Finding::Image(Flaw::State { .. }), Use::State)
            | (Finding::Image(Flaw::Entry { .. }), Use::Directory)
            | (Finding::Image(Flaw::SlotHeader { .. }), Use::SlotHeader)
            | (Finding::Image(Flaw::Digests { .. }), Use::Digests)
            | (Finding::Journal { .. }, Use::Journal)
    )
}

#[test]
fn one_spoilt_copy_costs_nothing_and_is_named() {
    let mut tried = 0;
    for layer in LAYERS {
        let Recorded { image, right } = worked(layer);
        assert_eq!(findings(&image), [], "{layer}");
        for what in [Use::Header, Use::State, Use::Directory, Use::SlotHeader, Use::Journal] {
            for piece in pieces_of(&image, what) {
                for within in [0, piece.bytes / 2, piece.bytes - 1] {
                    let place = format!("{layer}: byte {within} of {piece:?}");
                    let mut spoilt = image.clone();
                    flip(&mut spoilt, piece.offset + within);
                    let (notices, wrong, errors) = read(&spoilt, &right);
                    assert_eq!((wrong, errors), (vec![], vec![]), "{place}");
                    let is_noticed = matches!(what, Use::Header | Use::State | Use::Directory);
                    assert!(!is_noticed || notices.iter().any(|notice| notice.contains("damaged")), "{place}");
                    let found = findings(&spoilt);
                    assert!(
                        !found.is_empty() && found.iter().all(|finding| names(finding, what)),
                        "{place}: {found:?}"
                    );
                    let (done, after) = repaired(&spoilt);
                    assert!(done.findings.iter().any(|finding| names(finding, what)), "{place}: {done:?}");
                    assert!(done.lost.is_empty() && done.left.is_empty() && !done.is_emptied, "{place}: {done:?}");
                    assert_eq!(findings(&after), [], "{place}");
                    assert_eq!(read(&after, &right), (vec![], vec![], vec![]), "{place}");
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 200, "{tried}");
}

#[test]
fn a_spoilt_sector_table_costs_its_sectors_and_no_others() {
    for layer in LAYERS {
        let Recorded { image, right } = worked(layer);
        let mut costs = 0;
        for piece in pieces_of(&image, Use::SectorTable) {
            let mut spoilt = image.clone();
            spoilt.write_at(piece.offset, &vec![0; piece.bytes as usize]).expect("memory takes it");
            let (_, wrong, errors) = read(&spoilt, &right);
            assert!(wrong.is_empty(), "{layer}: {piece:?}");
            // The sectors that the check reports as unreadable.
            let found = findings(&spoilt);
            let tables = found.iter().filter(|finding| matches!(finding, Finding::Image(Flaw::Table { .. }))).count();
            assert_eq!(tables, 1, "{layer}: {piece:?}: {found:?}");
            let mut expected = named(&found);
            expected.dedup();
            assert!(expected.len() <= 62, "{layer}: {piece:?}");
            assert_eq!(errors, expected, "{layer}: {piece:?}");
            costs += errors.len();
        }
        assert!(costs > 0, "{layer}: no table spoke of a live sector");
    }
}

#[test]
fn flipped_contents_cost_their_sector_and_no_other() {
    for layer in LAYERS {
        let Recorded { image, right } = worked(layer);
        let (_, store) = Store::open_to_look(image.clone(), "image").expect("it is whole");
        let mut costs = 0;
        for piece in pieces_of(&image, Use::Contents) {
            for at in (piece.offset..piece.offset + piece.bytes).step_by(512).step_by(5) {
                let mut spoilt = image.clone();
                flip(&mut spoilt, at + 300);
                let sector = store.space().sector_at(at).expect("contents are of sectors");
                // Recovery may read a sector to which no map points.
                let mut expected = named(&findings(&spoilt));
                expected.dedup();
                assert!(expected.len() <= 1, "{layer}: {sector:?}: {expected:?}");
                costs += expected.len();
                let (_, wrong, errors) = read(&spoilt, &right);
                assert_eq!((wrong, errors), (vec![], expected.clone()), "{layer}: {sector:?}");
                let (done, after) = repaired(&spoilt);
                let lost: Vec<u64> = done.lost.iter().flat_map(|(lba, sectors)| lba.0..lba.0 + sectors.0).collect();
                assert_eq!(lost, expected, "{layer}: {sector:?}");
                assert_eq!(findings(&after), [], "{layer}: {sector:?}");
                assert_eq!(read(&after, &right), (vec![], vec![], expected), "{layer}: {sector:?}");
            }
        }
        assert!(costs > 10, "{layer}: {costs} live sectors were damaged");
    }
}

#[test]
fn a_record_that_is_gone_costs_the_map_and_the_repair_says_so() {
    for layer in LAYERS {
        let Recorded { mut image, right } = worked(layer);
        journal_places(&image).iter().for_each(|copy| flip(&mut image, copy[copy.len() / 2] + 20));
        assert!(open(image.clone(), Bounds::default()).is_err(), "{layer}");
        let (done, after) = repaired(&image);
        let all = (imbrex_disk::Lba(0), imbrex_disk::Sectors(right.len() as u64));
        assert!(done.is_emptied && done.lost == [all] && done.left.is_empty(), "{layer}: {done:?}");
        assert_eq!(findings(&after), [], "{layer}");
        let mut drive = open(after, Bounds::default()).expect("it was repaired");
        let readings = read_all(&mut drive, &right);
        assert_eq!((readings.wrong, readings.errors.len()), (vec![], right.len()), "{layer}");
        let mut host = common::recorded::Host::of(right, 9);
        let mut drive = host.write_all(drive).expect("memory takes it");
        let readings = read_all(&mut drive, &host.right);
        assert_eq!((readings.wrong, readings.errors), (vec![], vec![]), "{layer}");
    }
}

#[test]
fn a_state_of_an_earlier_time_is_no_newer_one() {
    for layer in LAYERS {
        let Recorded { image, right } = worked(layer);
        let states = pieces_of(&image, Use::State);
        assert_eq!(states.len(), 6, "{layer}");
        let bytes = |offset: u64| {
            let mut bytes = [0; 72];
            image.clone().read_at(offset, &mut bytes).expect("memory reads");
            bytes
        };
        let generation = |piece: &Used| u64::from_le_bytes(bytes(piece.offset)[8..16].try_into().expect("eight"));
        let newest = states.iter().map(generation).max().expect("there are six");
        // All copies of the newest state are damaged: the state before it suffices.
        let mut spoilt = image.clone();
        for piece in states.iter().filter(|piece| generation(piece) == newest) {
            spoilt.write_at(piece.offset, &[0; 72]).expect("memory takes it");
        }
        let (notices, wrong, errors) = read(&spoilt, &right);
        assert_eq!((notices.len(), wrong, errors), (3, vec![], vec![]), "{layer}: {notices:?}");
        let found = findings(&spoilt);
        assert_eq!(found.len(), 3, "{layer}: {found:?}");
        // One copy is outdated: the other two copies are newer and prevail.
        let (_, mut store) = Store::open(image.clone(), "image").expect("it is whole");
        for _ in 0..3 {
            store.barrier().expect("memory takes it");
            store.seal().expect("memory takes it");
        }
        let mut rolled_back = store.into_media();
        let piece = states.iter().find(|piece| generation(piece) == newest).expect("it is one of them");
        rolled_back.write_at(piece.offset, &bytes(piece.offset)).expect("memory takes it");
        assert_eq!(read(&rolled_back, &right), (vec![], vec![], vec![]), "{layer}");
    }
}
