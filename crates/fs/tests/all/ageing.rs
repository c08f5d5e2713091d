//! Goal: ageing gives equal results on a disk in memory, which takes no time, and on an emulated disk with its times;
//! it destroys no live file; and equal seeds give equal runs. Method: the same ageing on both, then all files are read.

use imbrex_device::EmulatedDrive;
use imbrex_device::drive::{Making, header_of};
use imbrex_disk::Profile;
use imbrex_fs::core::{MakeOptions, MountOptions, make};
use imbrex_fs::device::emulated::Emulated;
use imbrex_fs::device::memory::Memory;
use imbrex_fs::device::{Backend, Geometry, Kind, Traffic};
use imbrex_fs::load::OnCore;
use imbrex_fs::load::age::{Age, Aged, DeleteOrder, age};
use imbrex_fs::namespace::ROOT;
use imbrex_fs::store::Usage;
use imbrex_fs::{Bounds, Device, Executor, Fs};
use imbrex_sim::{Drive, DriveSpec};
use uuid::Uuid;

/// A caveat disk of 64 MiB, with the DID of Singh 2014 §5.2.
const DRIVE: &str = "caveat-1g:geometry.tracks=64";

fn emulated() -> Box<dyn Backend> {
    let spec = DriveSpec::parse(DRIVE).unwrap();
    let drive = Drive::build(&spec, &Profile::named("caveat-1g").unwrap()).unwrap();
    let making = Making { uuid: Uuid::from_u128(7), chunk_bytes: 1 << 20, journal_bytes: 1 << 28 };
    let drive = EmulatedDrive::in_memory(header_of(&drive, &spec, &making).unwrap()).unwrap();
    Box::new(Emulated::new(drive).unwrap())
}

fn in_memory() -> Box<dyn Backend> {
    Box::new(Memory::new(emulated().geometry()))
}

/// Reads every file; returns the number of bytes.
async fn read_all(fs: &Fs) -> u64 {
    let (mut directories, mut bytes) = (vec![ROOT], 0);
    while let Some(directory) = directories.pop() {
        let names = fs.list(directory, 0, 100_000).unwrap();
        for name in names.into_iter().filter(|name| name.name != b"." && name.name != b"..") {
            if name.mode & 0o170_000 == 0o040_000 {
                directories.push(name.inode);
            } else {
                bytes += fs.read(name.inode, 0, 8 << 20).await.unwrap().len() as u64;
            }
        }
    }
    bytes
}

fn aged(backend: Box<dyn Backend>, fit: &'static str, asked: Age) -> (Aged, Usage, Traffic) {
    let executor = Executor::in_virtual_time();
    let data = Device::new(&executor, "disk", backend);
    let geometry = Geometry { blocks: 8192, kind: Kind::Plain };
    let metadata = Device::new(&executor, "metadata", Box::new(Memory::new(geometry)));
    let options = vec![("fit".to_string(), fit.to_string())];
    let own = executor.clone();
    let run = async move {
        let made = MakeOptions { uuid: Some(Uuid::from_u128(3)), options, ..MakeOptions::default() };
        make(&data, Some(&metadata), &made, 0).await.unwrap();
        // Each change is committed at once, so that the free space does not depend on the time that has passed.
        let bounds = Bounds { pending_bytes: 1, ..Bounds::default() };
        let options = MountOptions { bounds: Some(bounds), ..MountOptions::default() };
        let fs = Fs::mount(&own, &[data, metadata], &options).await.unwrap().0;
        let files = OnCore::new(&fs, "aged").await.unwrap();
        let aged = age(&files, &asked, |_| true).await.unwrap();
        let status = fs.status();
        assert_eq!(read_all(&fs).await, (aged.blocks_created - aged.blocks_deleted) * 4096, "{fit}");
        (aged, status.usage, status.traffic)
    };
    let outcome = executor.run(run).unwrap();
    executor.shut_down();
    outcome
}

#[test]
fn a_disk_in_memory_says_what_an_emulated_one_says() {
    for (fit, fill_blocks) in [("best", 8_000), ("worst", 9_000), ("last-accessed", 10_000), ("first", 16_000)] {
        let asked = Age { fill_blocks, operations: 2_500, seed: 4, deletes: DeleteOrder::Random };
        let (quick, usage, traffic) = aged(in_memory(), fit, asked);
        let (timed, ..) = aged(emulated(), fit, asked);
        let all = (Aged { elapsed_ns: 0, ..timed }, usage, traffic);
        let again = aged(emulated(), fit, asked);
        assert_eq!(all, (quick, again.1, again.2), "{fit}");
        assert_eq!(again.0, timed, "{fit}: one seed, one run");
        assert!(timed.elapsed_ns > 1_000_000_000, "{fit}: {} ns for {} operations", timed.elapsed_ns, timed.operations);
        assert_eq!(quick.full_at.is_some(), fit == "first", "{fit}: {quick:?}");
    }
}
