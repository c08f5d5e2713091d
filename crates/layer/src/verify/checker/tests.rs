//! Goal: the checker finds steps outside of the medium, misplaced data and stale data, to the sector. Method: plans
//! made by hand over an identity layer, one fault each. Faults of real layers are tested in `tests/all/mutants.rs`.

use super::*;
use crate::layer::MapMemory;
use crate::plan::Cause;
use crate::plan::note::{Note, ReplayError};
use crate::registry;
use crate::verify::toy;
use crate::violation::Violation;

/// Returns a toy disk, an identity layer on it, and the number of its sectors.
fn identity() -> (SharedDisk, Box<dyn Layer>, u64) {
    let disk = toy::disks("conventional").next().expect("there is one").disk;
    let layer = registry::build("conventional", &disk, &[]).expect("it takes the toy");
    let sectors = layer.capacity().0;
    assert_eq!(sectors, disk.geometry.sectors().0, "an identity has all sectors");
    (disk, layer, sectors)
}

type Put = fn(&mut Plan, u64);

/// Returns the verdict of a new checker on one group that serves `commands`. `put` appends the group's steps; it is
/// given the number of sectors.
fn judged(kind: GroupKind, commands: &[Command], put: Put) -> Result<(), Fault> {
    let (disk, layer, sectors) = identity();
    let mut checker = Checker::new(&disk, layer.as_ref(), true);
    let mut plan = Plan::new();
    plan.open(kind);
    put(&mut plan, sectors);
    checker.check(&plan, commands, layer.as_ref()).map_err(|error| error.fault)
}

fn access(plan: &mut Plan, op: StepOp, kind: Kind, pba: u64, lba: u64, sectors: u64) {
    plan.access(op, Medium::Disk, kind, Cause::Host, Pba(pba), Lba(lba), Sectors(sectors));
}

#[test]
fn no_step_leaves_the_medium_or_the_drive() {
    let judged = |put: Put| judged(GroupKind::Cleaning, &[], put);
    let whole: [Put; 4] = [
        |plan, end| access(plan, StepOp::Read, Kind::Data, end - 2, end - 2, 2),
        |plan, end| access(plan, StepOp::Drop, Kind::Data, 0, end - 2, 2),
        |plan, end| access(plan, StepOp::Read, Kind::Map, end - 2, 0, 2),
        // Sectors that hold no data have no logical sectors.
        |plan, end| access(plan, StepOp::Read, Kind::Map, 0, end, 2),
    ];
    whole.into_iter().for_each(|put| assert_eq!(judged(put), Ok(())));
    let beyond: [Put; 5] = [
        |plan, end| access(plan, StepOp::Read, Kind::Data, end - 2, end - 1, 2),
        |plan, end| access(plan, StepOp::Write, Kind::Data, 0, end, 1),
        |plan, end| access(plan, StepOp::Drop, Kind::Data, 0, end - 1, 2),
        |plan, end| access(plan, StepOp::Read, Kind::Data, end - 1, 0, 2),
        |plan, end| access(plan, StepOp::Write, Kind::Map, end, 0, 1),
    ];
    beyond.into_iter().for_each(|put| assert_eq!(judged(put), Err(Fault::OutOfBounds)));
}

#[test]
fn a_read_of_other_sectors_is_named_with_its_place() {
    let fault = judged(GroupKind::Cleaning, &[], |plan, _| access(plan, StepOp::Read, Kind::Data, 20, 10, 4));
    let found = Contents::Holds { lba: Lba(20), version: 0 };
    assert_eq!(fault, Err(Fault::ReadWrong { lba: Lba(10), pba: Pba(20), found }));
}

#[test]
fn a_host_read_brings_the_newest_version() {
    let (disk, layer, _) = identity();
    let mut checker = Checker::new(&disk, layer.as_ref(), true);
    let mut write = Plan::new();
    write.open(GroupKind::Host);
    access(&mut write, StepOp::Write, Kind::Data, 10, 10, 4);
    checker.check(&write, &[Command::write(10, 4)], layer.as_ref()).expect("it is where the identity has it");
    assert_eq!(checker.host_writes(), 1);
    let mut read = |sectors: u64| {
        let mut plan = Plan::new();
        plan.open(GroupKind::Host);
        access(&mut plan, StepOp::Read, Kind::Data, 8, 8, sectors);
        checker.check(&plan, &[Command::read(8, 6)], layer.as_ref()).map_err(|error| error.fault)
    };
    assert_eq!(read(6), Ok(()));
    // Sectors that are not read are zeros for the host, but sector 13 was written.
    assert_eq!(read(5), Err(Fault::StaleRead { lba: Lba(13), expected: 1, found: 0 }));
}

#[test]
fn a_write_that_is_not_carried_out_is_lost() {
    let fault = judged(GroupKind::Host, &[Command::write(10, 4)], |plan, _| {
        access(plan, StepOp::Write, Kind::Data, 10, 10, 3);
    });
    let found = Contents::Holds { lba: Lba(13), version: 0 };
    assert_eq!(fault, Err(Fault::Lost { lba: Lba(13), expected: 1, at: Some((Medium::Disk, Pba(13))), found }));
}

/// A layer of few sectors with a map made by hand: every sector lies where it was at first, or all as `pieces` say.
struct ByHand {
    sectors: u64,
    pieces: Vec<Piece>,
    is_host_managed: bool,
}

impl Layer for ByHand {
    fn name(&self) -> &'static str {
        "by-hand"
    }
    fn capacity(&self) -> Sectors {
        Sectors(self.sectors)
    }
    fn plan(&mut self, _commands: &[Command], _plan: &mut Plan) {
        unreachable!("its plans are made by hand")
    }
    fn lookup(&self, lba: Lba, sectors: Sectors, pieces: &mut Vec<Piece>) {
        if self.pieces.is_empty() {
            pieces.push(Piece { lba, sectors, at: Some((Medium::Disk, Pba(lba.0))) });
        }
        pieces.extend(&self.pieces);
    }
    fn is_host_managed(&self) -> bool {
        self.is_host_managed
    }
    fn keeps_trims(&self) -> bool {
        true
    }
    fn self_check(&self) -> Result<(), Violation> {
        Ok(())
    }
    fn memory(&self) -> MapMemory {
        MapMemory::default()
    }
    fn checkpoint(&self, _notes: &mut Vec<Note>) {}
    fn replay(&mut self, _note: &Note) -> Result<(), ReplayError> {
        Ok(())
    }
}

/// A checker over a toy, and the layer that it checks.
struct Bench {
    checker: Checker,
    layer: ByHand,
}

impl Bench {
    fn new(recording: &str, is_host_managed: bool) -> Bench {
        let disk = toy::disks(recording).next().expect("there is one").disk;
        let layer = ByHand { sectors: 200, pieces: Vec::new(), is_host_managed };
        Bench { checker: Checker::new(&disk, &layer, true), layer }
    }

    /// Returns the checker's verdict on one group that serves `commands`.
    fn judge(&mut self, kind: GroupKind, commands: &[Command], put: impl FnOnce(&mut Plan)) -> Result<(), Fault> {
        let mut plan = Plan::new();
        plan.open(kind);
        put(&mut plan);
        self.checker.check(&plan, commands, &self.layer).map_err(|error| error.fault)
    }

    /// Sets the layer's map to these runs: first sector, number of sectors, and place. Only these runs are looked up.
    fn points(&mut self, pieces: &[(u64, u64, Option<u64>)]) {
        let at = |pba: u64| (Medium::Disk, Pba(pba));
        let piece = |&(lba, sectors, pba): &(u64, u64, Option<u64>)| Piece {
            lba: Lba(lba),
            sectors: Sectors(sectors),
            at: pba.map(at),
        };
        self.layer.pieces = pieces.iter().map(piece).collect();
    }
}

fn read(plan: &mut Plan, pba: u64, lba: u64, sectors: u64) {
    access(plan, StepOp::Read, Kind::Data, pba, lba, sectors);
}

fn write(plan: &mut Plan, pba: u64, lba: u64, sectors: u64) {
    access(plan, StepOp::Write, Kind::Data, pba, lba, sectors);
}

/// Overwrites `sectors` from `pba` with something that is no data.
fn spoil(plan: &mut Plan, pba: u64, sectors: u64) {
    access(plan, StepOp::Write, Kind::Map, pba, 0, sectors);
}

#[test]
fn flash_is_for_drives_that_have_some() {
    let put = |plan: &mut Plan| {
        plan.access(StepOp::Write, Medium::Flash, Kind::Map, Cause::Host, Pba(0), Lba(0), Sectors(1));
    };
    for (profile, expected) in [("cmr-7200", Err(Fault::NoFlash)), ("emulated-smr-2", Ok(()))] {
        let disk = imbrex_disk::Profile::named(profile).expect("it is built in").disk();
        assert_eq!(disk.flash.is_some(), expected.is_ok(), "{profile}");
        let layer = ByHand { sectors: 200, pieces: Vec::new(), is_host_managed: false };
        let mut bench = Bench { checker: Checker::new(&disk, &layer, true), layer };
        assert_eq!(bench.judge(GroupKind::Cleaning, &[], put), expected, "{profile}");
    }
}

#[test]
fn what_is_dropped_is_written_as_zeros() {
    let mut bench = Bench::new("conventional", false);
    let written = bench.judge(GroupKind::Host, &[Command::write(10, 4)], |plan| write(plan, 10, 10, 4));
    assert_eq!(written, Ok(()));
    // Without the drop, the sectors read first would restore version 1.
    let trimmed = bench.judge(GroupKind::Host, &[Command::trim(10, 4)], |plan| {
        read(plan, 10, 10, 4);
        plan.drop_sectors(Cause::Host, Lba(10), Sectors(4));
        write(plan, 10, 10, 4);
    });
    assert_eq!(trimmed, Ok(()));
    let kept = bench.judge(GroupKind::Cleaning, &[], |plan| {
        read(plan, 20, 20, 4);
        write(plan, 20, 20, 4);
    });
    assert_eq!(kept, Ok(()));
}

#[test]
fn what_another_group_drops_is_not_given_to_the_host() {
    let mut bench = Bench::new("conventional", false);
    bench.judge(GroupKind::Host, &[Command::write(10, 4)], |plan| write(plan, 10, 10, 4)).expect("it is in its place");
    let outcome = bench.judge(GroupKind::Host, &[Command::read(10, 4)], |plan| {
        read(plan, 10, 10, 4);
        plan.open(GroupKind::Cleaning);
        plan.drop_sectors(Cause::Cleaning, Lba(10), Sectors(4));
    });
    assert_eq!(outcome, Ok(()));
    // If the host's own group drops them, they are zeros, which differ from version 1.
    let outcome = bench.judge(GroupKind::Host, &[Command::read(10, 4)], |plan| {
        read(plan, 10, 10, 4);
        plan.drop_sectors(Cause::Host, Lba(10), Sectors(4));
    });
    assert_eq!(outcome, Err(Fault::StaleRead { lba: Lba(10), expected: 1, found: 0 }));
}

#[test]
fn a_copy_that_is_gone_at_a_barrier_is_named_with_its_place() {
    let mut bench = Bench::new("conventional", false);
    // Sectors 10 and 11 lie elsewhere in a newer version: of the run at 10 only the sectors after them are still
    // needed.
    bench.points(&[(10, 2, Some(230))]);
    bench
        .judge(GroupKind::Host, &[Command::write(10, 2)], |plan| write(plan, 230, 10, 2))
        .expect("it is where it says");
    bench.points(&[(12, 2, Some(12))]);
    let fault = bench.judge(GroupKind::Cleaning, &[], |plan| {
        spoil(plan, 10, 4);
        plan.barrier();
    });
    assert_eq!(fault, Err(Fault::Endangered { lba: Lba(12), at: (Medium::Disk, Pba(12)) }));
}

#[test]
fn of_a_run_whose_end_is_gone_the_first_such_sector_is_named() {
    let mut bench = Bench::new("conventional", false);
    let fault = bench.judge(GroupKind::Cleaning, &[], |plan| {
        // All four sectors are copied; then both places lose the last two.
        read(plan, 10, 10, 4);
        write(plan, 250, 10, 4);
        spoil(plan, 10, 4);
        spoil(plan, 252, 2);
        plan.barrier();
    });
    assert_eq!(fault, Err(Fault::Endangered { lba: Lba(12), at: (Medium::Disk, Pba(12)) }));
}

/// Copies sectors 8 … 15 to `places` (first sector, number of sectors, place), then twice to other places. Then the old
/// place and both later copies lose 10 … 13, so that only the first copies hold them at the barrier.
fn only_first_copies(places: &[(u64, u64, u64)]) -> Result<(), Fault> {
    let mut bench = Bench::new("conventional", false);
    bench.points(&[(8, 8, Some(8))]);
    let mut plan = Plan::new();
    plan.open(GroupKind::Cleaning);
    read(&mut plan, 8, 8, 8);
    for &(lba, sectors, pba) in places {
        write(&mut plan, pba, lba, sectors);
    }
    write(&mut plan, 120, 8, 8);
    write(&mut plan, 140, 8, 8);
    for pba in [122, 142, 10] {
        spoil(&mut plan, pba, 4);
    }
    // At a barrier the checker checks every run that was hit. Here only one run is set, by hand; the map points at its
    // old place.
    let layer = &bench.layer;
    bench.checker.begin(&[]);
    bench.checker.plans = 1;
    for (number, step) in plan.steps.iter().enumerate() {
        bench.checker.step(step, false, number, layer)?;
    }
    let hit = |lba, sectors, pba| Copied { lba, sectors, at: At { medium: Medium::Disk, pba } };
    bench.layer.pieces = vec![Piece { lba: Lba(10), sectors: Sectors(4), at: Some((Medium::Disk, Pba(10))) }];
    bench.checker.endangered = vec![hit(10, 4, 10)];
    bench.checker.barrier(&bench.layer)
}

#[test]
fn any_copy_of_the_plan_will_do_at_a_barrier() {
    let lost = |lba| Err(Fault::Endangered { lba: Lba(lba), at: (Medium::Disk, Pba(lba)) });
    // One copy of all, of more, of each half, and of each half with an overlap.
    for whole in [
        &[(10, 4, 100)][..],
        &[(8, 8, 100)],
        &[(8, 4, 100), (12, 4, 110)],
        &[(12, 4, 100), (8, 4, 110)],
        &[(8, 5, 100), (11, 5, 110)],
        &[(10, 1, 100), (11, 1, 104), (12, 1, 108), (13, 1, 112)],
    ] {
        assert_eq!(only_first_copies(whole), Ok(()), "{whole:?}");
    }
    assert_eq!(only_first_copies(&[]), lost(10));
    // The error names the first sector of the whole run, although a part of the run is in a copy.
    for part in [&[(8, 2, 100)][..], &[(14, 2, 100)], &[(8, 5, 100)], &[(11, 5, 100)], &[(10, 3, 100)], &[(11, 2, 100)]]
    {
        assert_eq!(only_first_copies(part), lost(10), "{part:?}");
    }
}

#[test]
fn a_place_counts_only_for_the_sectors_it_holds() {
    let mut bench = Bench::new("conventional", false);
    // Sector 20 holds zeros as well, but those of LBA 20.
    bench.points(&[(10, 1, Some(20))]);
    let fault = bench.judge(GroupKind::Cleaning, &[], |plan| spoil(plan, 10, 1));
    let found = Contents::Holds { lba: Lba(20), version: 0 };
    assert_eq!(fault, Err(Fault::Lost { lba: Lba(10), expected: 0, at: Some((Medium::Disk, Pba(20))), found }));
}

#[test]
fn what_a_write_destroys_is_lost_unless_the_host_answers_for_it() {
    // DNOR 5 and DID 12: a write of 100 … 103 damages 106 … 115 (Singh 2014 §3.2).
    let commands = [Command::write(108, 4), Command::write(100, 4)];
    let put = |plan: &mut Plan| {
        write(plan, 108, 108, 4);
        write(plan, 100, 100, 4);
    };
    assert_eq!(Bench::new("caveat", true).judge(GroupKind::Host, &commands, put), Ok(()));
    let fault = Bench::new("caveat", false).judge(GroupKind::Host, &commands, put);
    let Err(Fault::Lost { lba: Lba(106), found: Contents::Destroyed { .. }, .. }) = fault else {
        panic!("{fault:?}");
    };
}

#[test]
fn a_lookup_covers_what_it_is_asked_for_once() {
    let judged = |pieces: &[(u64, u64, Option<u64>)]| {
        let mut bench = Bench::new("conventional", false);
        bench.points(pieces);
        bench.judge(GroupKind::Host, &[Command::write(10, 4)], |plan| write(plan, 10, 10, 4))
    };
    assert_eq!(judged(&[(10, 1, Some(10)), (11, 3, Some(11))]), Ok(()));
    let bad = |lba| Err(Fault::BadLookup { lba: Lba(lba) });
    assert_eq!(judged(&[(10, 1, Some(10)), (12, 2, Some(12))]), bad(11), "a gap");
    assert_eq!(judged(&[(10, 4, Some(10)), (14, 0, Some(14))]), bad(14), "an empty piece");
    assert_eq!(judged(&[(10, 3, Some(10))]), bad(13), "too short");
    assert_eq!(judged(&[(10, 5, Some(10))]), bad(15), "too long");
}

#[test]
fn plans_steps_and_writes_are_counted() {
    let mut bench = Bench::new("conventional", false);
    for number in 1..=3 {
        let outcome = bench.judge(GroupKind::Host, &[Command::write(10, 4)], |plan| write(plan, 10, 10, 4));
        assert_eq!((outcome, bench.checker.host_writes()), (Ok(()), number));
    }
    let mut plan = Plan::new();
    plan.open(GroupKind::Cleaning);
    read(&mut plan, 10, 10, 4);
    plan.next_phase(GroupKind::Cleaning);
    read(&mut plan, 20, 20, 4);
    read(&mut plan, 20, 30, 4);
    let error = bench.checker.check(&plan, &[], &bench.layer).expect_err("sector 30 lies elsewhere");
    let (number, step) = error.step.expect("a step did it");
    assert_eq!((error.plan, number, step.lba), (4, 2, Lba(30)));
}

#[test]
fn a_group_knows_nothing_of_what_another_has_read() {
    let outcome = |opens: bool, kind: GroupKind| {
        let mut bench = Bench::new("conventional", false);
        let mut copied = |kind: GroupKind, put: &dyn Fn(&mut Plan)| bench.judge(kind, &[], |plan| put(plan));
        copied(GroupKind::Cleaning, &|plan| write(plan, 210, 10, 4)).expect("zeros are what 10 … 13 hold");
        bench.judge(GroupKind::Host, &[Command::write(10, 4)], |plan| write(plan, 10, 10, 4)).expect("in its place");
        // The second part writes the sectors that the first has read. It has them only if it continues the first one's
        // group.
        bench.judge(GroupKind::Cleaning, &[], |plan| {
            read(plan, 10, 10, 4);
            if opens {
                plan.open(kind);
            } else {
                plan.next_phase(kind);
            }
            write(plan, 10, 10, 4);
        })
    };
    assert_eq!(outcome(false, GroupKind::Cleaning), Ok(()));
    let found = Contents::Holds { lba: Lba(10), version: 0 };
    let lost = Err(Fault::Lost { lba: Lba(10), expected: 1, at: Some((Medium::Disk, Pba(10))), found });
    assert_eq!(outcome(true, GroupKind::Cleaning), lost);
    assert_eq!(outcome(true, GroupKind::Host), lost);
}

#[test]
fn what_is_dropped_is_no_longer_staged() {
    let mut bench = Bench::new("conventional", false);
    bench.judge(GroupKind::Host, &[Command::write(10, 4)], |plan| write(plan, 10, 10, 4)).expect("in its place");
    bench.points(&[(10, 4, None)]);
    bench.judge(GroupKind::Host, &[Command::trim(10, 4)], |_| {}).expect("nothing lies anywhere");
    bench.layer.pieces.clear();
    bench
        .judge(GroupKind::Cleaning, &[], |plan| {
            read(plan, 10, 10, 4);
            plan.drop_sectors(Cause::Cleaning, Lba(10), Sectors(4));
            write(plan, 10, 10, 4);
        })
        .expect("nothing newer than zeros was hit");
    let seen = bench.judge(GroupKind::Host, &[Command::read(10, 4)], |plan| read(plan, 10, 10, 4));
    assert_eq!(seen, Ok(()), "zeros, as the host has trimmed them");
}

#[test]
fn what_another_group_reads_is_not_given_to_the_host() {
    let mut bench = Bench::new("conventional", false);
    bench.judge(GroupKind::Host, &[Command::write(10, 4)], |plan| write(plan, 10, 10, 4)).expect("in its place");
    let outcome = bench.judge(GroupKind::Cleaning, &[Command::read(10, 4)], |plan| read(plan, 10, 10, 4));
    assert_eq!(outcome, Err(Fault::StaleRead { lba: Lba(10), expected: 1, found: 0 }));
}

#[test]
fn a_read_of_what_was_destroyed_is_the_layers_fault_unless_the_host_answers_for_it() {
    let judged = |is_host_managed| {
        let mut bench = Bench::new("caveat", is_host_managed);
        let written = bench.judge(GroupKind::Host, &[Command::write(100, 4)], |plan| write(plan, 100, 100, 4));
        assert_eq!(written.is_ok(), is_host_managed, "106 … 115 were live");
        bench.judge(GroupKind::Host, &[Command::read(106, 4)], |plan| read(plan, 106, 106, 4))
    };
    assert_eq!(judged(true), Ok(()));
    let by = WriteNumber::new(1, 0);
    assert_eq!(judged(false), Err(Fault::ReadDestroyed { pba: Pba(106), by }));
}

#[test]
fn each_part_of_a_write_lies_behind_the_one_before() {
    let mut bench = Bench::new("conventional", false);
    let commands = [Command::write(10, 2), Command::write(12, 2)];
    assert_eq!(bench.judge(GroupKind::Host, &commands, |plan| write(plan, 10, 10, 4)), Ok(()));
}

#[test]
fn where_a_sector_was_before_it_was_copied_will_do_at_a_barrier() {
    let judged = |original: u64| {
        let mut bench = Bench::new("conventional", false);
        bench.judge(GroupKind::Host, &[Command::write(10, 4)], |plan| write(plan, 10, 10, 4)).expect("in its place");
        let copied = bench.judge(GroupKind::Cleaning, &[], |plan| {
            read(plan, 10, 10, 4);
            write(plan, 210, 10, 4);
        });
        copied.expect("both have it");
        // At the barrier the new place is not written yet, and the copy is gone.
        bench.points(&[(10, 4, Some(230))]);
        bench.judge(GroupKind::Cleaning, &[], |plan| {
            read(plan, 10, 10, 4);
            spoil(plan, 210, 4);
            spoil(plan, original, 4);
            plan.barrier();
            write(plan, 230, 10, 4);
        })
    };
    assert_eq!(judged(250), Ok(()), "the original is left");
    assert_eq!(judged(10), Err(Fault::Endangered { lba: Lba(10), at: (Medium::Disk, Pba(210)) }));
}

#[test]
fn of_a_sector_that_was_copied_twice_the_copy_before_the_last_will_do() {
    let mut bench = Bench::new("conventional", false);
    bench.judge(GroupKind::Host, &[Command::write(10, 4)], |plan| write(plan, 10, 10, 4)).expect("in its place");
    for (from, to) in [(10, 210), (210, 220)] {
        let copied = bench.judge(GroupKind::Cleaning, &[], |plan| {
            read(plan, from, 10, 4);
            write(plan, to, 10, 4);
        });
        copied.expect("both have it");
    }
    // At the barrier the first place and the last are gone, and the new place is not written yet.
    bench.points(&[(10, 4, Some(230))]);
    let outcome = bench.judge(GroupKind::Cleaning, &[], |plan| {
        read(plan, 210, 10, 4);
        spoil(plan, 10, 4);
        spoil(plan, 220, 4);
        plan.barrier();
        write(plan, 230, 10, 4);
    });
    assert_eq!(outcome, Ok(()));
}
