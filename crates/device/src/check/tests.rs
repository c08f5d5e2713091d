//! Goal: errors of a map are found, whatever their order and however few runs are checked at once. Method: hand-made
//! maps, compared with a count by sector and with the errors that were put in.

use imbrex_disk::Command;
use imbrex_layer::verify::toy;
use imbrex_layer::{MapMemory, Note, Plan, ReplayError, registry};
use proptest::prelude::*;

use super::*;
use crate::store::tests::made;

/// A map of these pieces, which need not be consistent.
struct Map {
    capacity: u64,
    pieces: Vec<Piece>,
}

impl Map {
    /// Returns a map of runs of four sectors, one run for each place.
    fn of_fours(places: &[u64]) -> Map {
        let pieces = places.iter().enumerate().map(|(index, &place)| piece(index as u64 * 4, 4, place)).collect();
        Map { capacity: places.len() as u64 * 4, pieces }
    }
}

impl Layer for Map {
    fn name(&self) -> &'static str {
        "map"
    }
    fn capacity(&self) -> Sectors {
        Sectors(self.capacity)
    }
    fn plan(&mut self, _: &[Command], _: &mut Plan) {}
    fn lookup(&self, lba: Lba, sectors: Sectors, pieces: &mut Vec<Piece>) {
        let asked = lba..lba + sectors;
        pieces.extend(self.pieces.iter().filter(|piece| asked.contains(&piece.lba)));
    }
    fn keeps_trims(&self) -> bool {
        false
    }
    fn self_check(&self) -> Result<(), Violation> {
        Ok(())
    }
    fn memory(&self) -> MapMemory {
        MapMemory::default()
    }
    fn checkpoint(&self, _: &mut Vec<Note>) {}
    fn replay(&mut self, _: &Note) -> Result<(), ReplayError> {
        Ok(())
    }
}

fn piece_on(medium: Medium, lba: u64, sectors: u64, pba: u64) -> Piece {
    Piece { lba: Lba(lba), sectors: Sectors(sectors), at: Some((medium, Pba(pba))) }
}

fn piece(lba: u64, sectors: u64, pba: u64) -> Piece {
    piece_on(Medium::Disk, lba, sectors, pba)
}

proptest! {
    #[test]
    fn what_serves_twice_is_found(places in prop::collection::vec(0u64..300, 1..40), runs_max in 1usize..12) {
        let mut uses = [0; 310];
        for place in &places {
            uses[*place as usize..*place as usize + 4].iter_mut().for_each(|count| *count += 1);
        }
        let findings = check_sharing(&Map::of_fours(&places), Medium::Disk, runs_max);
        prop_assert_eq!(findings.is_empty(), uses.iter().all(|&count| count < 2), "{:?}: {:?}", places, findings);
        let mut named = [false; 310];
        for finding in findings {
            let Finding::Shared { pba, sectors, lbas, .. } = finding else { panic!("{finding:?}") };
            let range = pba.0 as usize..(pba.0 + sectors.0) as usize;
            prop_assert!(uses[range.clone()].iter().all(|&count| count >= 2), "{:?}: {:?}", places, finding);
            named[range].fill(true);
            let lies = |lba: Lba| places[lba.0 as usize / 4] + lba.0 % 4 == pba.0;
            prop_assert!(lbas[0] != lbas[1] && lbas.into_iter().all(lies), "{:?}: {:?}", places, finding);
        }
        // If more runs begin in one place than fit into memory, the surplus is left out.
        let crowd = places.iter().map(|place| places.iter().filter(|other| *other == place).count()).max();
        if crowd.is_some_and(|most| most <= runs_max) {
            prop_assert!((0..310).all(|pba| named[pba] == (uses[pba] >= 2)), "{:?}: {:?}", places, named);
        }
    }
}

#[test]
fn no_more_runs_are_held_than_twice_the_bound() {
    let stretch = |places: &[u64], from| {
        let (runs, next) = runs_from(&Map::of_fours(places), Medium::Disk, from, 2);
        (runs.iter().map(|run| run.start).collect::<Vec<u64>>(), next)
    };
    assert_eq!(stretch(&[30, 10, 20], 0), (vec![10, 20, 30], None));
    // Of four runs the first two are kept, and the rest begins at the third.
    assert_eq!(stretch(&[40, 10, 30, 20], 0), (vec![10, 20], Some(30)));
    assert_eq!(stretch(&[40, 10, 30, 20], 30), (vec![30, 40], None));
    // A later run is kept if it lies before the rest.
    assert_eq!(stretch(&[50, 40, 30, 20, 10], 0), (vec![10, 20, 30], Some(40)));
    assert_eq!(stretch(&[50, 40, 30, 20, 60], 0), (vec![20, 30], Some(40)));
}

#[test]
fn places_are_shared_on_one_medium_alone_and_by_more_than_what_is_joined() {
    let shared = |medium, pieces: &[Piece]| {
        let capacity = pieces.iter().map(|piece| (piece.lba + piece.sectors).0).max().expect("there are some");
        check_sharing(&Map { capacity, pieces: pieces.to_vec() }, medium, 100)
    };
    let apart = [piece(0, 10, 50), piece_on(Medium::Flash, 10, 10, 50)];
    assert_eq!((shared(Medium::Disk, &apart), shared(Medium::Flash, &apart)), (vec![], vec![]));
    let absent = [piece(0, 10, 50), Piece { at: None, ..piece(10, 10, 0) }, piece(20, 10, 60)];
    assert_eq!(shared(Medium::Disk, &absent), [], "neighbours do not overlap");
    let found = |pba, sectors, first, second| Finding::Shared {
        medium: Medium::Disk,
        pba: Pba(pba),
        sectors: Sectors(sectors),
        lbas: [Lba(first), Lba(second)],
    };
    // Two contiguous pieces form one run. The second run lies within the first, the third extends past its end.
    let nested = [piece(0, 10, 50), piece(10, 10, 60), piece(20, 3, 55), piece(30, 10, 65)];
    assert_eq!(shared(Medium::Disk, &nested), [found(55, 3, 5, 20), found(65, 5, 15, 30)]);
    // Adjacent pieces that are not contiguous in the map are two runs.
    let jumping = [piece(0, 10, 50), piece(20, 10, 60), piece(40, 2, 59), piece(50, 2, 61)];
    assert_eq!(shared(Medium::Disk, &jumping), [found(59, 1, 9, 40), found(60, 1, 41, 20), found(61, 2, 21, 50)]);
}

#[test]
fn coverage_is_every_sector_once_and_in_order() {
    let limits = [Sectors(100), Sectors(50)];
    let covered = |pieces: &[Piece]| check_coverage(&Map { capacity: 60, pieces: pieces.to_vec() }, limits);
    let map = |lba, what| Finding::Map { lba: Lba(lba), what };
    assert_eq!(covered(&[piece(0, 30, 70), piece_on(Medium::Flash, 30, 30, 20)]), [], "both end with their medium");
    assert_eq!(covered(&[piece(0, 30, 71), piece(30, 30, 0)]), [map(0, "points past the medium")]);
    let flash = [piece(0, 30, 0), piece_on(Medium::Flash, 30, 30, 21)];
    assert_eq!(covered(&flash), [map(30, "points past the medium")]);
    assert_eq!(covered(&[piece(0, 30, 0), piece(31, 29, 30)]), [map(30, "leaves sectors out")]);
    assert_eq!(covered(&[piece(0, 30, 0), piece(29, 31, 30)]), [map(29, "repeats sectors")]);
    assert_eq!(covered(&[piece(0, 30, 0), piece(30, 31, 30)]), [map(61, "ends too early or too late")]);
    assert_eq!(covered(&[piece(0, 59, 0)]), [map(59, "ends too early or too late")]);
    let absent = Piece { at: None, ..piece(0, 60, 0) };
    assert_eq!(covered(&[absent]), [], "what was never written lies nowhere");
}

#[test]
fn findings_of_a_ruined_map_are_listed_up_to_a_bound() {
    let pieces: Vec<Piece> = (0..FINDINGS_MAX as u64 + 20).map(|index| piece(index, 1, 7 + index % 2 * 2)).collect();
    let map = Map { capacity: pieces.len() as u64, pieces };
    assert_eq!(check_sharing(&map, Medium::Disk, RUNS_MAX).len(), FINDINGS_MAX);
    assert_eq!(check_coverage(&map, [Sectors(5), Sectors(5)]).len(), FINDINGS_MAX);
    let mut findings = Vec::new();
    (0..FINDINGS_MAX as u64 + 20).for_each(|record| push(&mut findings, Finding::Journal { record, copy: 1 }));
    assert_eq!(findings.len(), FINDINGS_MAX);
    assert_eq!(findings.last(), Some(&Finding::Journal { record: FINDINGS_MAX as u64 - 1, copy: 1 }));
}

/// Reads a map that is larger than one window. The map records the ranges that it is asked for.
#[test]
fn a_large_map_is_looked_at_in_windows() {
    struct Large(std::sync::Mutex<Vec<(u64, u64)>>);
    const CAPACITY: u64 = 2 * WINDOW_SECTORS + 5;
    impl Layer for Large {
        fn name(&self) -> &'static str {
            "large"
        }
        fn capacity(&self) -> Sectors {
            Sectors(CAPACITY)
        }
        fn plan(&mut self, _: &[Command], _: &mut Plan) {}
        fn lookup(&self, lba: Lba, sectors: Sectors, pieces: &mut Vec<Piece>) {
            self.0.lock().expect("nobody panics with it").push((lba.0, sectors.0));
            pieces.push(piece(lba.0, sectors.0, lba.0));
        }
        fn keeps_trims(&self) -> bool {
            false
        }
        fn self_check(&self) -> Result<(), Violation> {
            Ok(())
        }
        fn memory(&self) -> MapMemory {
            MapMemory::default()
        }
        fn checkpoint(&self, _: &mut Vec<Note>) {}
        fn replay(&mut self, _: &Note) -> Result<(), ReplayError> {
            Ok(())
        }
    }
    let (large, mut seen) = (Large(std::sync::Mutex::default()), Vec::new());
    for_each_piece(&large, |piece| seen.push((piece.lba.0, piece.sectors.0)));
    let windows = [(0, WINDOW_SECTORS), (WINDOW_SECTORS, WINDOW_SECTORS), (2 * WINDOW_SECTORS, 5)];
    assert_eq!((&seen[..], &large.0.lock().expect("nobody panics with it")[..]), (&windows[..], &windows[..]));
}

#[test]
fn of_a_zone_what_lies_below_its_pointer_is_live() {
    let toy = toy::disks("conventional").next().expect("there is one");
    let words = [("zone_size", "10000"), ("conventional_zones", "1")].map(|(key, value)| (key.into(), value.into()));
    let mut layer = registry::build("zoned", &toy.disk, &words).expect("it takes the toy");
    let zone = layer.zones().expect("it has zones").zone_sectors().0;
    let mut plan = Plan::new();
    layer.plan(&[Command::write(zone, 5)], &mut plan);
    let live = |layer: &dyn Layer, lba: u64, sectors: u64| below_pointer(layer, &piece(lba, sectors, 7)).sectors.0;
    assert_eq!(live(layer.as_ref(), zone, zone), 5);
    assert_eq!(live(layer.as_ref(), zone + 3, 9), 2);
    assert_eq!(live(layer.as_ref(), zone + 1, 2), 2, "all of it lies below");
    assert_eq!(live(layer.as_ref(), zone + 5, 4), 0);
    assert_eq!(live(layer.as_ref(), zone + 8, 4), 0);
    assert_eq!(live(layer.as_ref(), 2 * zone, 4), 0, "an empty zone");
    assert_eq!(live(layer.as_ref(), 2, zone - 2), zone - 2, "a conventional zone has no pointer");
    let other = below_pointer(layer.as_ref(), &piece(zone + 3, 9, 7));
    assert_eq!((other.lba, other.at), (Lba(zone + 3), Some((Medium::Disk, Pba(7)))));
    layer.zones_mut().expect("it has zones").fail(1, Condition::Offline, &mut plan).expect("it is there");
    assert_eq!(live(layer.as_ref(), zone, zone), 0, "an offline zone holds nothing");
    let map = Map::of_fours(&[20, 40]);
    assert_eq!(live(&map, 4, 4), 4, "a drive without zones");
}

/// Of the last 30 sectors of the disk, five are destroyed and two are damaged. The map puts LBA 100 at the first of the
/// 30.
#[test]
fn what_the_map_points_to_is_looked_at_to_the_end_of_the_medium() {
    let (drive, mut store) = made("conventional", "conventional");
    let disk_sectors = store.header().disk_sectors;
    let start = disk_sectors - 30;
    let extent = |offset, sectors| Extent::new(Pba(start + offset), Sectors(sectors));
    let bytes = vec![5; 30 * 512];
    let destroyed = [extent(10, 5)];
    let first = Extent::new(Pba(0), Sectors(30));
    for (extent, destroyed) in [(extent(0, 30), &[][..]), (first, &destroyed[..])] {
        let write = crate::image::transfer::Write {
            region: Region::Disk,
            extent,
            contents: Some(&[bytes[..].into()]),
            spoilt: &[],
            destroyed,
        };
        store.space.write(&write).expect("memory fails nobody");
    }
    store.space.give_up(Region::Disk, extent(28, 2)).expect("memory fails nobody");
    let found = |store: &mut Store<_>, layer: &dyn Layer| {
        let mut findings = Vec::new();
        store.for_each_unreadable(layer, |finding| findings.push(finding)).expect("memory fails nobody");
        findings
    };
    let map = Map { capacity: 130, pieces: vec![piece(100, 30, start)] };
    let pba = |offset| Pba(start + offset);
    let expected = [
        Finding::Destroyed { lba: Lba(110), pba: pba(10), sectors: Sectors(5) },
        Finding::Unreadable { lba: Lba(128), medium: Medium::Disk, pba: pba(28), sectors: Sectors(2) },
    ];
    assert_eq!(found(&mut store, &map), expected);
    assert_eq!(expected.each_ref().map(Finding::lbas), [Some((Lba(110), Sectors(5))), Some((Lba(128), Sectors(2)))]);
    assert_eq!(Finding::Journal { record: 3, copy: 0 }.lbas(), None);
    // A PBA past the end of the medium is an error of the map, which this check does not report.
    assert_eq!(found(&mut store, &Map { capacity: 131, pieces: vec![piece(100, 31, start)] }), []);
    let on_flash = Map { capacity: 130, pieces: vec![piece_on(Medium::Flash, 100, 30, start)] };
    assert_eq!(found(&mut store, &on_flash), [], "the flash is another medium");
    assert_eq!(found(&mut store, drive.layer.as_ref()).len(), 2, "the identity has them at their own numbers");
}
