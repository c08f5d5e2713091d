//! The core of the file systems: files made a second, memory per file, and the time to mount a million files. One
//! thread, media in memory, no fsync; the log and checkpoints are included.

use std::future::Future;
use std::time::Instant;

use imbrex_device::EmulatedDrive;
use imbrex_device::drive::{Making, header_of};
use imbrex_disk::Profile;
use imbrex_fs::core::{Caller, MakeOptions, MountOptions, make};
use imbrex_fs::device::emulated::Emulated;
use imbrex_fs::format::change::Inode;
use imbrex_fs::namespace::ROOT;
use imbrex_fs::{Device, Executor, Fs};
use imbrex_sim::{Drive, DriveSpec};
use uuid::Uuid;

use crate::Row;
use crate::memory::resident_now_bytes;

const FILES: usize = 1_000_000;
const FOLDERS: usize = 1000;
const CALLER: Caller = Caller { uid: 1000, gid: 1000 };

/// Measures the rows whose names contain `only`.
pub(crate) fn measure(only: &str, report: &mut dyn FnMut(Row)) {
    let is_wanted = |name: &str| name.contains(only);
    let thousands = |seconds: f64| FILES as f64 / seconds / 1e3;
    let spread = "files made, 1,000 directories";
    if is_wanted(spread) {
        let (_, seconds) = made(FOLDERS, false);
        report(Row { name: spread.into(), value: thousands(seconds), unit: "thousand/s", target: Some(50.0) });
    }
    let one = "files made, one directory";
    if is_wanted(one) {
        let (_, seconds) = made(1, false);
        report(Row { name: one.into(), value: thousands(seconds), unit: "thousand/s", target: Some(50.0) });
    }
    let (memory, mounting) = ("memory a file, with one extent", "mounting a million files");
    if !is_wanted(memory) && !is_wanted(mounting) {
        return;
    }
    let (place, _) = made(FOLDERS, true);
    let before = resident_now_bytes();
    let began = Instant::now();
    let fs = place.mount();
    let seconds = began.elapsed().as_secs_f64();
    let growth = resident_now_bytes().saturating_sub(before) as f64;
    report(Row { name: mounting.into(), value: seconds, unit: "s", target: Some(2.0) });
    report(Row { name: memory.into(), value: growth / FILES as f64, unit: "bytes", target: Some(300.0) });
    assert_eq!(fs.statfs().files - fs.statfs().files_free, (FILES + FOLDERS + 1) as u64);
}

/// A drive in memory, and the `Executor` on which its tasks run.
struct Place {
    executor: Executor,
    device: Device,
}

impl Place {
    fn new() -> Place {
        let spec = DriveSpec::parse("strict-append-2t").expect("it is right");
        let profile = Profile::named("strict-append-2t").expect("it is built in");
        let drive = Drive::build(&spec, &profile).expect("it can be built");
        let making = Making { uuid: Uuid::from_u128(1), chunk_bytes: 1 << 20, journal_bytes: 1 << 30 };
        let header = header_of(&drive, &spec, &making).expect("it can be an image");
        let drive = EmulatedDrive::in_memory(header).expect("there is memory");
        let executor = Executor::on_the_wall();
        let device = Device::new(&executor, "memory", Box::new(Emulated::new(drive).expect("it is zoned").unpaced()));
        Place { executor, device }
    }

    fn mount(&self) -> Fs {
        let (executor, devices) = (self.executor.clone(), [self.device.clone()]);
        let mounting = async move { Fs::mount(&executor, &devices, &MountOptions::default()).await };
        self.executor.run(mounting).expect("it goes on").expect("it was made just now").0
    }

    fn run(&self, task: impl Future<Output = ()> + 'static) {
        self.executor.run(task).expect("it goes on");
    }
}

/// Makes the files and unmounts. Returns the drive, and the seconds that the making of the files took.
fn made(folders: usize, with_data: bool) -> (Place, f64) {
    let place = Place::new();
    let device = place.device.clone();
    place.run(async move {
        make(&device, None, &MakeOptions::default(), 0).await.expect("there is room");
    });
    let fs = place.mount();
    let (working, began) = (fs.clone(), Instant::now());
    place.run(async move {
        let mut all = Vec::new();
        for folder in 0..folders {
            let name = format!("folder{folder}");
            let made = working.make_directory(ROOT, name.as_bytes(), 0o755, CALLER).await;
            all.push(made.expect("it is new").inode);
        }
        for number in 0..FILES {
            make_file(&working, all[number % folders], number, with_data).await;
        }
    });
    let seconds = began.elapsed().as_secs_f64();
    let executor = place.executor.clone();
    place.run(async move {
        fs.unmount().await.expect("there is room");
        drop(fs);
        // The tasks of the file system end meanwhile, and drop their references to the device.
        executor.sleep(1_000_000).await;
    });
    (place, seconds)
}

async fn make_file(fs: &Fs, folder: Inode, number: usize, with_data: bool) {
    // The name has sixteen bytes.
    let name = format!("file{number:012}");
    let inode = fs.make_node(folder, name.as_bytes(), 0o100_644, 0, CALLER).await.expect("it is new").inode;
    if with_data {
        fs.open(inode).expect("it is there");
        fs.write(inode, 0, &[0; 4096]).await.expect("there is room");
        fs.close(inode).await.expect("there is room");
    }
}
