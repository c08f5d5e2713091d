//! Goal: conditions and limits are those of the diagram. Method: by hand, zone by zone.

use super::*;
use imbrex_disk::Extent;

/// Returns six zones of 10 sectors, the first of them conventional.
fn zones(open_max: u32, active_max: u32) -> Zones {
    let places: Vec<Extent> = (0..6).map(|index| Extent::new(Pba(index * 13), Sectors(10))).collect();
    Zones::new(Regions::from_extents(&places), 1, open_max, active_max)
}

fn write(zones: &mut Zones, lba: u64, sectors: u64) -> Result<u32, ZoneError> {
    let index = zones.accept_write(Lba(lba), sectors)?;
    zones.wrote(Lba(lba), Sectors(sectors));
    zones.self_check("zones").expect("counts agree");
    Ok(index)
}

fn condition(zones: &Zones, index: u32) -> Condition {
    zones.zone(index).expect("it is there").condition
}

#[test]
fn a_zone_goes_round_its_diagram() {
    let (mut zones, mut plan) = (zones(0, 0), Plan::new());
    assert_eq!(condition(&zones, 0), Condition::Conventional);
    assert_eq!(condition(&zones, 1), Condition::Empty);
    assert_eq!(write(&mut zones, 10, 4), Ok(1));
    assert_eq!(condition(&zones, 1), Condition::ImplicitlyOpen);
    assert_eq!(zones.zone(1).expect("it is there").pointer, Sectors(4));
    zones.open(1).expect("an open zone can be opened");
    assert_eq!(condition(&zones, 1), Condition::ExplicitlyOpen);
    zones.close(1).expect("an open zone can be closed");
    assert_eq!(condition(&zones, 1), Condition::Closed);
    assert_eq!(write(&mut zones, 14, 6), Ok(1));
    assert_eq!(condition(&zones, 1), Condition::Full);
    assert!(matches!(write(&mut zones, 10, 1), Err(ZoneError::Condition { what: "written", .. })));
    zones.reset(1, &mut plan).expect("a full zone can be reset");
    assert_eq!(condition(&zones, 1), Condition::Empty);
    zones.open(2).expect("an empty zone can be opened");
    zones.close(2).expect("and closed");
    assert_eq!(condition(&zones, 2), Condition::Empty, "nothing is written in it");
    zones.finish(2, &mut plan).expect("an empty zone can be finished");
    assert_eq!(condition(&zones, 2), Condition::Full);
    assert_eq!(zones.written(2), Ok(Sectors(0)));
    zones.fail(3, Condition::ReadOnly, &mut plan).expect("any zone can fail");
    assert!(zones.reset(3, &mut plan).is_err() && zones.open(3).is_err() && zones.finish(3, &mut plan).is_err());
    assert!(zones.reset(0, &mut plan).is_err(), "a conventional zone has no pointer");
    zones.self_check("zones").expect("counts agree");
}

#[test]
fn writes_elsewhere_are_refused() {
    let mut zones = zones(0, 0);
    assert_eq!(write(&mut zones, 3, 5), Ok(0), "a conventional zone is written anywhere");
    let elsewhere = ZoneError::NotAtPointer { zone: 1, pointer: Lba(10), lba: Lba(11) };
    assert_eq!(write(&mut zones, 11, 1), Err(elsewhere));
    assert_eq!(write(&mut zones, 10, 11), Err(ZoneError::NoRoom { zone: 1, room: 10, sectors: 11 }));
    assert_eq!(write(&mut zones, 5, 6), Err(ZoneError::NoRoom { zone: 0, room: 5, sectors: 6 }));
    assert_eq!(write(&mut zones, 60, 1), Err(ZoneError::PastEnd { lba: Lba(60), sectors: 1, end: 60 }));
    assert_eq!(condition(&zones, 1), Condition::Empty, "what is refused changes nothing");
}

#[test]
fn limits_close_what_was_opened_by_writes_and_nothing_else() {
    let (mut zones, mut plan) = (zones(2, 3), Plan::new());
    write(&mut zones, 10, 1).expect("at the pointer");
    zones.open(2).expect("two may be open");
    write(&mut zones, 30, 1).expect("zone 1 makes room");
    assert_eq!(
        [1, 2, 3].map(|index| condition(&zones, index)),
        [Condition::Closed, Condition::ExplicitlyOpen, Condition::ImplicitlyOpen]
    );
    assert_eq!(write(&mut zones, 40, 1), Err(ZoneError::TooManyActive { limit: 3 }));
    zones.open(3).expect("it is open already");
    assert_eq!(write(&mut zones, 11, 1), Err(ZoneError::TooManyOpen { limit: 2 }));
    zones.finish(2, &mut plan).expect("an open zone can be finished");
    write(&mut zones, 40, 1).expect("there is room again");
}

#[test]
fn records_bring_back_what_was_durable() {
    let (mut before, mut plan) = (zones(0, 0), Plan::new());
    write(&mut before, 10, 4).expect("at the pointer");
    write(&mut before, 20, 10).expect("at the pointer");
    write(&mut before, 30, 2).expect("at the pointer");
    before.finish(3, &mut plan).expect("an open zone can be finished");
    before.fail(4, Condition::Offline, &mut plan).expect("any zone can fail");
    before.set_back(1, 3, &mut plan).expect("it goes back");
    assert!(matches!(before.set_back(1, 5, &mut plan), Err(ZoneError::PointerAhead { .. })));
    let mut notes = Vec::new();
    before.checkpoint(&mut notes);
    for records in [notes, plan.notes.clone()] {
        let mut after = zones(0, 0);
        records.iter().for_each(|note| after.replay(note).expect("a record of these zones"));
        after.self_check("zones").expect("counts agree");
        let conditions = [1, 2, 3, 4, 5].map(|index| condition(&after, index));
        let expected = [Condition::Closed, Condition::Full, Condition::Full, Condition::Offline, Condition::Empty];
        assert_eq!(conditions, expected);
        assert_eq!(after.written(1), Ok(Sectors(3)));
        assert_eq!(after.written(3), Ok(Sectors(2)));
    }
}

#[test]
fn a_fault_moves_a_pointer_either_way_and_is_recorded() {
    let (mut faulty, mut plan) = (zones(0, 2), Plan::new());
    write(&mut faulty, 10, 4).expect("an empty zone takes a write at its start");
    for (to, expected) in [
        (7, Condition::ImplicitlyOpen),
        (2, Condition::ImplicitlyOpen),
        (10, Condition::Full),
        (3, Condition::Closed),
        (0, Condition::Empty),
        (6, Condition::Closed),
    ] {
        plan.clear();
        plan.open(crate::plan::GroupKind::Host);
        faulty.move_pointer(1, to, &mut plan).expect("a sequential zone has a pointer");
        faulty.self_check("zones").expect("counts agree");
        let zone = faulty.zone(1).expect("it is there");
        assert_eq!((zone.pointer, zone.condition), (Sectors(to), expected), "moved to {to}");
        let noted: Vec<_> = plan.notes.iter().map(|note| note.fields).collect();
        assert_eq!(noted, [[1, to, 0, 0]], "moved to {to}");
    }
    let no_room = ZoneError::NoRoom { zone: 1, room: 10, sectors: 11 };
    assert_eq!(faulty.move_pointer(1, 11, &mut plan), Err(no_room));
    assert!(faulty.move_pointer(0, 1, &mut plan).is_err(), "a conventional zone has no pointer");
    faulty.move_pointer(2, 1, &mut plan).expect("two zones may be active");
    assert_eq!(faulty.move_pointer(3, 1, &mut plan), Err(ZoneError::TooManyActive { limit: 2 }));
    assert_eq!(condition(&faulty, 3), Condition::Empty, "what is refused changes nothing");
}

#[test]
fn a_mended_zone_is_as_its_pointer_says_or_finished() {
    let (mut mended, mut plan) = (zones(0, 0), Plan::new());
    plan.open(crate::plan::GroupKind::Host);
    write(&mut mended, 20, 4).expect("it is empty");
    write(&mut mended, 30, 4).expect("it is empty");
    mended.finish(3, &mut plan).expect("it is closed");
    for (index, failed, expected) in [
        (0, Condition::ReadOnly, Condition::Conventional),
        (1, Condition::Offline, Condition::Empty),
        (2, Condition::Offline, Condition::Closed),
        (3, Condition::ReadOnly, Condition::Full),
        (4, Condition::Empty, Condition::Empty),
    ] {
        if failed != Condition::Empty {
            mended.fail(index, failed, &mut plan).expect("any zone can fail");
            assert!(mended.accept_write(Lba(u64::from(index) * 10), 1).is_err(), "zone {index} has failed");
        }
        mended.mend(index, &mut plan).expect("it is there");
        assert_eq!(condition(&mended, index), expected, "zone {index}");
        mended.self_check("zones").expect("counts agree");
    }
    let mut again = zones(0, 0);
    for note in &plan.notes {
        again.replay(note).expect("its own records");
    }
    assert_eq!(condition(&again, 0), Condition::Conventional);
    assert_eq!((condition(&again, 1), condition(&again, 2)), (Condition::Empty, Condition::Closed));
    assert_eq!(condition(&again, 3), Condition::Full, "a finished zone stays finished");
}

/// Goal: the host's pointer runs ahead of the recorded one, and never the other way round (invariant 5). Method: writes
/// that are accepted first and executed later, with records taken in between.
#[test]
fn accepted_writes_move_the_pointer_and_no_record() {
    let (mut zones, mut plan) = (zones(0, 0), Plan::new());
    assert_eq!(zones.accept_write(Lba(10), 4), Ok(1));
    assert_eq!(zones.accept_write(Lba(14), 6), Ok(1), "the pointer counts what is on its way");
    assert_eq!((condition(&zones, 1), zones.written(1)), (Condition::Full, Ok(Sectors(0))));
    assert!(zones.accept_write(Lba(10), 1).is_err(), "it is full");
    zones.wrote(Lba(10), Sectors(4));
    zones.note_moved(&mut plan);
    let mut after = self::zones(0, 0);
    plan.notes.iter().for_each(|note| after.replay(note).expect("a record of these zones"));
    assert_eq!(
        (condition(&after, 1), after.written(1)),
        (Condition::Closed, Ok(Sectors(4))),
        "not full: it was not finished"
    );
    zones.wrote(Lba(14), Sectors(6));
    assert_eq!((condition(&zones, 1), zones.written(1)), (Condition::Full, Ok(Sectors(10))));
    zones.self_check("zones").expect("counts agree");
}

#[test]
fn whole_zones_are_those_with_a_pointer_from_end_to_end() {
    let mut zones = zones(0, 0);
    for (lba, sectors, expected) in
        [(0, 60, 1..6), (10, 10, 1..2), (11, 19, 2..3), (11, 18, 2..2), (9, 11, 1..2), (0, 10, 1..1)]
    {
        assert_eq!(zones.whole_within(Lba(lba), sectors), expected, "{sectors} from {lba}");
    }
    let mut plan = Plan::new();
    write(&mut zones, 20, 3).expect("at the pointer");
    zones.fail(3, Condition::ReadOnly, &mut plan).expect("any zone can fail");
    assert_eq!(zones.reset_those_of(1..6, &mut plan), 1, "the others are as new, or cannot be");
    assert_eq!((condition(&zones, 2), condition(&zones, 3)), (Condition::Empty, Condition::ReadOnly));
}
