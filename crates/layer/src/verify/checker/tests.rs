//! Goal: the checker sees what leaves a medium, what is not where it should be, and what is stale, to the sector. Method:
//! plans made by hand over an identity, one fault each. What layers do wrong is in `tests/mutants.rs`.

use super::*;
use crate::plan::Cause;
use crate::registry;
use crate::verify::toy;

/// An identity on a toy, and how many sectors it has.
fn identity() -> (SharedDisk, Box<dyn Layer>, u64) {
    let disk = toy::disks("conventional").next().expect("there is one").disk;
    let layer = registry::build("conventional", &disk, &[]).expect("it takes the toy");
    let sectors = layer.capacity().0;
    assert_eq!(sectors, disk.geometry.sectors().0, "an identity has all sectors");
    (disk, layer, sectors)
}

type Put = fn(&mut Plan, u64);

/// What a fresh checker says of one group for `commands`, made by `put` given the number of sectors.
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
        // What holds no data has no logical sectors.
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
    // What is not read is zeros to the host: sector 13 was written.
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
