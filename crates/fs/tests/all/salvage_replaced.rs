//! Goal: all metadata is lost, and a drive that had been replaced is given to salvage again, beside its replacement or
//! instead of it. The drive is named, and nothing on it is read: the files are those that return without it, with no
//! outdated bytes. Method: small arrays whose files are written, replaced, deleted and cleaned before and after a drive
//! is replaced. The drive as it was then is given again, in every position among the others, also while another is
//! missing, and after a replacement that was cut short.

use std::collections::BTreeMap;

use imbrex_fs::core::MountOptions;
use imbrex_fs::device::model::{Contents, Model};
use imbrex_fs::device::{Geometry, Kind};
use imbrex_fs::salvage::{SalvageOptions, Salvaged, salvage};
use imbrex_fs::verify::cuts::{fresh, shown};
use imbrex_fs::verify::operation::{find, pattern};
use imbrex_fs::verify::rig::Rig;
use imbrex_fs::verify::trial::Trial;
use imbrex_fs::verify::{Operation, perform};
use imbrex_fs::{Device, Executor, Fs, FsError};
use uuid::Uuid;

const NEW: Uuid = Uuid::from_u128(0xabc);
/// The drive that is replaced.
const OLD: usize = 1;
const BYTES: usize = 9 * 4096;

fn arrays() -> Vec<(&'static str, Trial)> {
    let zoned = Kind::Zoned { zone_blocks: 32, zones: 14, conventional: 0, active_max: None };
    let array = |kind, drives: usize, parity| {
        let metadata = vec![Geometry { blocks: 300, kind: Kind::Plain }];
        let trial = Trial::new(Geometry { blocks: 32 * 14, kind }, Vec::new());
        Trial { drives, metadata, store: Some("log"), parity, ..trial }
    };
    vec![
        ("a mirror of two", array(zoned, 2, 1)),
        ("four and one parity", array(zoned, 5, 1)),
        ("three and two parity", array(zoned, 5, 2)),
        ("drives without zones", array(Kind::Plain, 3, 1)),
    ]
}

/// Files by name, each with the seed of its bytes.
type Files = BTreeMap<String, u8>;

/// Writes files from number `first` on, with these seeds.
async fn write(fs: &Fs, files: &mut Files, first: usize, seeds: std::ops::Range<u8>) {
    for (number, seed) in (first..).zip(seeds) {
        let path = format!("f{number}");
        if find(fs, &path).is_err() {
            perform(fs, &Operation::Create(path.clone())).await.unwrap();
        }
        perform(fs, &Operation::WriteOut(path.clone(), 0, BYTES, seed)).await.unwrap();
        files.insert(path, seed);
    }
    fs.sync().await.unwrap();
}

/// An array in which a drive was replaced.
struct Replaced {
    files: Files,
    /// The present drives, with the replacement in the place of the replaced drive.
    now: Vec<Contents>,
    /// The replaced drive.
    old: Contents,
}

/// Makes files before a drive is replaced and, unless the replacement `stops` after a number of groups, after it.
fn replaced(trial: &Trial, stops: Option<u64>) -> Replaced {
    let (executor, own) = (Executor::in_virtual_time(), trial.clone());
    let inner = executor.clone();
    let run = async move {
        let (fs, rig) = fresh(&inner, &own).await.unwrap();
        let mut files = Files::new();
        write(&fs, &mut files, 0, 0..8).await;
        let model = Model::new(own.geometry);
        let new = Device::new(&inner, "new", Box::new(model.clone()));
        let goes_on = |reached: imbrex_fs::core::Replaced| stops.is_none_or(|stops| reached.groups < stops);
        let outcome = fs.replace_drive(OLD as u8, Some((&new, NEW)), false, goes_on).await;
        assert!(outcome.is_ok() || outcome == Err(FsError::Stopped) && stops.is_some(), "{outcome:?}");
        let old = rig.models()[OLD].contents();
        if stops.is_none() {
            // Now some files have other bytes, some are deleted, and zones that held both are emptied.
            write(&fs, &mut files, 2, 20..23).await;
            for number in [5, 6] {
                perform(&fs, &Operation::Unlink(format!("f{number}"))).await.unwrap();
                files.remove(&format!("f{number}"));
            }
            fs.sync().await.unwrap();
            fs.clean(2).await.unwrap();
            write(&fs, &mut files, 8, 40..42).await;
        }
        fs.unmount().await.unwrap();
        let mut now = rig.contents();
        now.truncate(own.drives);
        now[OLD] = model.contents();
        Replaced { files, now, old }
    };
    let done = executor.run(run).unwrap();
    executor.shut_down();
    done
}

/// The result of a salvage.
struct Back {
    salvaged: Salvaged,
    /// Every file with its bytes.
    files: BTreeMap<String, Vec<u8>>,
    /// Devices that the mount names as stale.
    stale: Vec<String>,
    missing: Vec<String>,
}

/// Salvages these drives, given with their names, with new metadata; mounts all of them, reads, and continues to write.
fn back(trial: &Trial, drives: Vec<(String, Contents)>) -> Back {
    let (executor, trial) = (Executor::in_virtual_time(), trial.clone());
    let own = executor.clone();
    let run = async move {
        let (names, contents): (Vec<String>, Vec<Contents>) = drives.into_iter().unzip();
        let rig = Rig::with(contents);
        let device = |(name, model): (&String, &Model)| Device::new(&own, name, Box::new(model.clone()));
        let mut devices: Vec<Device> = names.iter().zip(rig.models()).map(device).collect();
        let metadata = Device::new(&own, "new metadata", Box::new(Model::new(trial.metadata[0])));
        let salvaged = salvage(&devices, &metadata, &SalvageOptions::default(), |_| {}).await.unwrap();
        assert_eq!(rig.events(), 0, "the drives are read only");
        devices.push(metadata);
        let (fs, mounted) = Fs::mount(&own, &devices, &MountOptions::default()).await.unwrap();
        assert_eq!(fs.self_check(), Vec::<String>::new());
        let mut files = BTreeMap::new();
        for path in shown(&fs).await.unwrap().into_keys() {
            let inode = find(&fs, &path).unwrap();
            if let Ok(bytes) = fs.read(inode, 0, 1 << 20).await {
                files.insert(path, bytes);
            }
        }
        // The write may fail for lack of space while drives are missing.
        perform(&fs, &Operation::Create("new".into())).await.unwrap();
        let written = perform(&fs, &Operation::WriteOut("new".into(), 0, BYTES, 90)).await;
        assert!(matches!(written, Ok(()) | Err(FsError::NoSpace)), "{written:?}");
        fs.unmount().await.unwrap();
        assert_eq!(rig.broken_rules(), 0);
        Back { salvaged, files, stale: mounted.stale, missing: mounted.missing }
    };
    let done = executor.run(run).unwrap();
    executor.shut_down();
    done
}

fn named(contents: &[Contents]) -> Vec<(String, Contents)> {
    contents.iter().enumerate().map(|(number, one)| (format!("drive {number}"), one.clone())).collect()
}

/// Checks that every file exists with its bytes, and that every other file is one that was deleted.
fn check(back: &Back, files: &Files, when: &str) {
    for (path, seed) in files {
        let found = back.files.get(path).unwrap_or_else(|| panic!("{when}: {path} is not there: {:?}", back.salvaged));
        assert!(*found == pattern(*seed, 0, BYTES), "{when}: {path} has other bytes");
    }
    assert_eq!(back.salvaged.incomplete, [], "{when}");
    for path in back.files.keys().filter(|path| !files.contains_key(*path)) {
        assert!(path.starts_with("f5") || path.starts_with("f6"), "{when}: {path} was never there");
    }
}

#[test]
fn a_replaced_drive_beside_the_one_that_took_its_place_is_named_and_not_read() {
    for (name, trial) in arrays() {
        let Replaced { files, now, old } = replaced(&trial, None);
        let without = back(&trial, named(&now));
        check(&without, &files, name);
        assert_eq!((&without.salvaged.replaced, &without.stale), (&vec![], &vec![]), "{name}");
        for place in 0..=now.len() {
            let when = format!("{name}, the old drive in place {place}");
            let mut drives = named(&now);
            drives.insert(place, ("old".into(), old.clone()));
            let with = back(&trial, drives);
            check(&with, &files, &when);
            assert_eq!(with.salvaged, Salvaged { replaced: vec!["old".into()], ..without.salvaged.clone() }, "{when}");
            assert_eq!(with.files, without.files, "{when}");
            assert_eq!((with.stale, with.missing), (vec!["old".to_string()], vec![]), "{when}");
        }
    }
}

/// The replacement is missing: that costs no file anything, with the old drive or without it.
#[test]
fn a_replaced_drive_instead_of_the_one_that_took_its_place_gives_no_bytes_of_another_time() {
    for (name, trial) in arrays() {
        let Replaced { files, now, old } = replaced(&trial, None);
        let mut drives = named(&now);
        drives.remove(OLD);
        let without = back(&trial, drives.clone());
        check(&without, &files, &format!("{name}, neither of both"));
        for place in 0..=drives.len() {
            let when = format!("{name}, the old drive instead, in place {place}");
            let mut drives = drives.clone();
            drives.insert(place, ("old".into(), old.clone()));
            let with = back(&trial, drives);
            check(&with, &files, &when);
            let told = [&with.salvaged.replaced[..], &with.salvaged.standing_in].concat();
            assert_eq!(told, ["old"], "{when}: {:?}", with.salvaged);
        }
    }
}

#[test]
fn a_replaced_drive_is_not_read_while_another_is_missing() {
    for (name, trial) in arrays() {
        let Replaced { files, now, old } = replaced(&trial, None);
        for missing in (0..now.len()).filter(|drive| *drive != OLD) {
            let when = format!("{name}, without drive {missing}");
            let mut drives = named(&now);
            drives.remove(missing);
            drives.push(("old".into(), old.clone()));
            let with = back(&trial, drives);
            check(&with, &files, &when);
            assert_eq!(
                (with.salvaged.replaced, with.stale),
                (vec!["old".to_string()], vec!["old".to_string()]),
                "{when}"
            );
        }
    }
}

#[test]
fn a_drive_whose_replacement_was_cut_short_is_read() {
    for (name, trial) in arrays() {
        for stops in 0..4 {
            let when = format!("{name}, after {stops} groups");
            let Replaced { files, now, old } = replaced(&trial, Some(stops));
            for place in 0..=now.len() {
                let mut drives = named(&now);
                drives.insert(place, ("old".into(), old.clone()));
                let with = back(&trial, drives);
                check(&with, &files, &format!("{when}, in place {place}"));
            }
        }
    }
}
