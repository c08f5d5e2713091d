//! Goal: a drive is rebuilt at no less than 80 % of the sequential write rate of the slowest drive, and in time
//! proportional to the data of files on it. Method: emulated drives with their times, in virtual time. The rate follows
//! from the profile: a track per rotation and skew.

use imbrex_device::EmulatedDrive;
use imbrex_device::drive::{Making, header_of};
use imbrex_disk::Profile;
use imbrex_fs::core::{MakeOptions, MountOptions, Parts, Replaced, make_on};
use imbrex_fs::device::emulated::Emulated;
use imbrex_fs::device::model::Model;
use imbrex_fs::device::{Geometry, Kind};
use imbrex_fs::executor::SECOND_NS;
use imbrex_fs::verify::operation::{find, pattern};
use imbrex_fs::verify::{Operation, perform};
use imbrex_fs::{Device, Executor, Fs};
use imbrex_sim::{Drive, DriveSpec};
use uuid::Uuid;

const DRIVES: usize = 4;
const PARITY: u8 = 1;
const FILE_BYTES: usize = 1 << 20;
/// Profile strict-append: 256 sectors of 4 KiB a track; a rotation of 8,333,333 ns and a skew of 1 ms from track to
/// track.
const TRACK_BYTES: f64 = 1_048_576.0;
const TRACK_NS: f64 = 9_333_333.0;

fn device(executor: &Executor, number: usize) -> Device {
    let words = "strict-append";
    let spec = DriveSpec::parse(words).unwrap();
    let profile = Profile::named(words).unwrap();
    let drive = Drive::build(&spec, &profile).unwrap();
    let uuid = Uuid::from_u128(7 + number as u128);
    let making = Making { uuid, chunk_bytes: 1 << 20, journal_bytes: 1 << 30 };
    let drive = EmulatedDrive::in_memory(header_of(&drive, &spec, &making).unwrap()).unwrap();
    Device::new(executor, &format!("drive {number}"), Box::new(Emulated::new(drive).unwrap()))
}

async fn fill(fs: &Fs, files: u8) {
    for number in 0..files {
        let path = format!("f{number}");
        perform(fs, &Operation::Create(path.clone())).await.unwrap();
        perform(fs, &Operation::WriteOut(path, 0, FILE_BYTES, number)).await.unwrap();
    }
    fs.sync().await.unwrap();
}

/// Replaces a drive of an array with `files` files; returns the result, and the time in nanoseconds.
fn rebuilt(files: u8) -> (Replaced, u64) {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let run = async move {
        let drives: Vec<Device> = (0..DRIVES).map(|number| device(&own, number)).collect();
        let flash = Model::new(Geometry { blocks: 8_000, kind: Kind::Plain });
        let metadata = [Device::new(&own, "flash", Box::new(flash))];
        let made = MakeOptions {
            uuid: Some(Uuid::from_u128(3)),
            store: Some("log".into()),
            parity: PARITY,
            ..MakeOptions::default()
        };
        make_on(Parts { drives: &drives, metadata: &metadata, spares: &[] }, &made, 0).await.unwrap();
        let all = [drives.as_slice(), &metadata].concat();
        let (fs, _) = Fs::mount(&own, &all, &MountOptions::default()).await.unwrap();
        fill(&fs, files).await;
        fs.unmount().await.unwrap();
        let left: Vec<Device> =
            all.iter().enumerate().filter(|(number, _)| *number != 1).map(|(_, it)| it.clone()).collect();
        let (fs, _) = Fs::mount(&own, &left, &MountOptions::default()).await.unwrap();
        let new = device(&own, DRIVES);
        // After a mount, it searches for data without records in the background, which is not to be measured.
        own.sleep(SECOND_NS).await;
        let began_ns = own.now_ns();
        let replaced = fs.replace_drive(1, Some((&new, Uuid::from_u128(99))), false, |_| true).await.unwrap();
        let took_ns = own.now_ns() - began_ns;
        for number in 0..files {
            let read = fs.read(find(&fs, &format!("f{number}")).unwrap(), 0, FILE_BYTES).await.unwrap();
            assert!(read == pattern(number, 0, FILE_BYTES), "f{number}");
        }
        (replaced, took_ns)
    };
    let done = executor.run(run).unwrap();
    executor.shut_down();
    done
}

#[test]
fn a_drive_is_made_again_nearly_as_fast_as_it_can_be_written_and_no_longer_than_what_it_held() {
    let runs = [96, 192].map(|files| (files, rebuilt(files)));
    let mut took = Vec::new();
    for (files, (replaced, took_ns)) in runs {
        let bytes = replaced.blocks as f64 * 4096.0;
        let needed_ns = bytes / TRACK_BYTES * TRACK_NS;
        let share = needed_ns / took_ns as f64;
        println!("{files} files: {replaced:?} in {:.3} s, {:.1} % of the rate", took_ns as f64 / 1e9, share * 100.0);
        // Each file has a third of its data on each of three drives; the fourth drive holds parity, in turn.
        let held = f64::from(files) * FILE_BYTES as f64 / (DRIVES - usize::from(PARITY)) as f64;
        assert!((0.85..1.25).contains(&(bytes / held)), "{files} files: {bytes} bytes made again of {held}");
        assert!(share >= 0.80, "{files} files: {:.1} % of the slowest drive's rate", share * 100.0);
        took.push((took_ns as f64, bytes));
    }
    let (one, other) = (took[0], took[1]);
    let (times, sizes) = (other.0 / one.0, other.1 / one.1);
    assert!((times / sizes - 1.0).abs() < 0.15, "{times:.2} times as long for {sizes:.2} times as much");
}
