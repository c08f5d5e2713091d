//! Images: the time to make a large drive, and to open an image whose journal is long.

use std::path::Path;
use std::time::Instant;

use imbrex_device::Store;
use imbrex_device::drive::{Making, create_file_of, header_of};
use imbrex_device::media::file::{FileMedium, Mode};
use imbrex_device::store::{Data, Transfer};
use imbrex_disk::{Command, Profile};
use imbrex_layer::verify::toy;
use imbrex_layer::{Plan, StepOp, registry};
use imbrex_sim::{Drive, DriveSpec};

use crate::Row;

const CREATE: &str = "create an image of imr-20t";
const OPEN: &str = "open an image of a million journal records";
const RECORDS: u64 = 1_000_000;
const LAYER: &str = "fully-associative";

/// Measures the rows whose names contain `only`.
pub(crate) fn measure(only: &str, report: &mut dyn FnMut(Row)) {
    let folder = std::env::temp_dir().join(format!("imbrex-bench-images-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("there is a temporary folder");
    let mut row = |name: &str, measured: fn(&Path) -> f64, target| {
        if name.contains(only) {
            report(Row { name: name.into(), value: measured(&folder), unit: "s", target });
        }
    };
    row(CREATE, create, Some(1.0));
    row(OPEN, open, None);
    // A folder that cannot be removed stays in the system's temporary folder, which is harmless.
    let _ = std::fs::remove_dir_all(&folder);
}

/// Returns the seconds from the words of a drive to its finished image.
fn create(folder: &Path) -> f64 {
    let begun = Instant::now();
    let spec = DriveSpec::parse("imr-20t").expect("the words are right");
    let profile = Profile::named(&spec.profile).expect("the profile comes with the program");
    let drive = Drive::build(&spec, &profile).expect("the drive can be built");
    let header = header_of(&drive, &spec, &Making::default()).expect("it can have an image");
    create_file_of(&folder.join("large"), header, drive).expect("there is room");
    begun.elapsed().as_secs_f64()
}

/// Returns the seconds to open an image with [`RECORDS`] journal records.
fn open(folder: &Path) -> f64 {
    let path = folder.join("long");
    write_records(&path);
    let begun = Instant::now();
    let medium = FileMedium::open(&path, Mode::Write, false).expect("it is free");
    let (_, store) = Store::open_to_look(medium, "image").expect("it is whole");
    let seconds = begun.elapsed().as_secs_f64();
    assert!(store.journal().records() >= RECORDS);
    seconds
}

/// Makes a drive and writes to it until its journal has [`RECORDS`] records.
fn write_records(path: &Path) {
    let info = registry::named(LAYER).expect("it is registered");
    let spec = DriveSpec::parse(&format!("toy+{LAYER}:{}", info.toys[0])).expect("key=value");
    let build = |toy: toy::Toy| Drive::assemble("toy", toy.profile, LAYER, &spec.parameters).ok();
    let drive = toy::disks("shingled").find_map(build).expect("a toy takes it");
    let making = Making { chunk_bytes: 1 << 20, journal_bytes: 1 << 30, ..Making::default() };
    let header = header_of(&drive, &spec, &making).expect("toys are power-safe");
    let (mut drive, mut store) = create_file_of(path, header, drive).expect("there is room");
    let (capacity, mut plan, data) = (drive.layer.capacity().0, Plan::new(), [0; 512]);
    let mut lba = 0;
    while store.journal().records() < RECORDS {
        lba = (lba + 7919) % capacity;
        plan.clear();
        drive.layer.plan(&[Command::write(lba, 1)], &mut plan);
        // Only journal records matter here, so the plan's other steps are left out.
        plan.steps.retain(|step| step.op == StepOp::Note);
        plan.phases.truncate(1);
        store.execute(&plan, &mut [Transfer { lba, data: Data::Write(&data) }]).expect("there is room");
    }
}
