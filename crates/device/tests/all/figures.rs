//! Goal: prints the sizes and times that the documentation quotes. Method: one run in a file in the system's
//! temporary folder. No time is asserted. Command: `cargo test --release -p imbrex-device --test all figures:: -- --ignored
//! --nocapture`.

use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use imbrex_device::EmulatedDrive;
use imbrex_device::drive::{Making, create_file, header_of};
use imbrex_device::image::Header;
use imbrex_device::media::file::{FileMedium, Mode};
use imbrex_device::store::{Data, Store, Transfer};
use imbrex_disk::Command;
use imbrex_layer::Plan;
use imbrex_layer::verify::toy::below;
use imbrex_sim::{Drive, DriveSpec};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256StarStar;

use crate::common;

/// Most records of a journal before a checkpoint replaces it, if the checkpoint is short.
const RECORDS: u64 = (1 << 18) - 1;

#[test]
#[ignore = "a measurement: prints figures"]
fn opening_a_journal_at_its_bound_after_a_kill() {
    let folder = tempfile::tempdir().expect("there is room");
    for layer in ["set-associative", "fully-associative", "region-rmw"] {
        let subject = common::subjects_of(layer).swap_remove(0);
        let header = Header { chunk_bytes: 1 << 20, journal_bytes: 1 << 30, ..subject.header };
        let path = folder.path().join(layer);
        let (mut drive, mut store) = create_file(&path, header).expect("there is room");
        let mut random = Xoshiro256StarStar::seed_from_u64(1);
        let mut plan = Plan::new();
        while store.journal().records() < RECORDS {
            let lba = below(&mut random, drive.layer.capacity().0);
            plan.clear();
            drive.layer.plan(&[Command::write(lba, 1)], &mut plan);
            // Only the journal records matter, so all other steps are dropped.
            plan.steps.retain(|step| step.op == imbrex_layer::StepOp::Note);
            plan.phases.truncate(1);
            let data = [0; 512];
            store.execute(&plan, &mut [Transfer { lba, data: Data::Write(&data) }]).expect("there is room");
        }
        let records = store.journal().records();
        store.barrier().expect("there is room");
        drop(store);
        let begun = Instant::now();
        let medium = FileMedium::open(&path, Mode::Write, false).expect("it is free");
        let (_, store) = Store::open(medium, "image").expect("it is whole");
        println!("{layer}: {records} records opened in {:.3} s", begun.elapsed().as_secs_f64());
        // After one more request the journal is as long as its checkpoint.
        assert!(records < 2 * RECORDS && store.journal().records() <= records + 1000, "{layer}");
    }
}

#[test]
#[ignore = "a measurement: prints figures"]
fn making_a_drive_of_20_tb() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("imr-20t");
    let begun = Instant::now();
    let spec = DriveSpec::parse("imr-20t").expect("it is a drive");
    let profile = imbrex_disk::Profile::named("imr-20t").expect("it is built in");
    let drive = Drive::build(&spec, &profile).expect("it is built in");
    let header = header_of(&drive, &spec, &Making::default()).expect("its layer is safe");
    let (_, store) = create_file(&path, header).expect("there is room");
    let made = begun.elapsed().as_secs_f64();
    drop(store);
    let allocated = |what: &str| {
        let metadata = std::fs::metadata(&path).expect("it is there");
        println!("{what}: {} bytes allocated of a file of {}", metadata.blocks() * 512, metadata.len());
    };
    println!("a drive of {} bytes was made in {made:.3} s", drive.capacity_bytes());
    allocated("new");
    let begun = Instant::now();
    let mut drive = EmulatedDrive::open_file(&path, false).expect("it is whole");
    println!("opened in {:.3} s", begun.elapsed().as_secs_f64());
    drive.write(drive.capacity_bytes() - 4096, &[1; 4096], true).expect("there is room");
    allocated("after a write to its last sector");
    assert!(std::fs::metadata(&path).expect("it is there").len() < 16 << 40, "ext4 takes no longer file");
}
