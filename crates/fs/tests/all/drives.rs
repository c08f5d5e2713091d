//! Goal: a drive that is replaced or added, or has altered blocks, costs no file any data, whenever the power is cut;
//! lost data is named. Method: small arrays. The power is cut after every write of a replacement, which is then
//! resumed, and another drive is lost after it. Blocks are altered one by one, or two at a time.

use imbrex_fs::core::{MakeOptions, MountOptions, Parts, Scrubbed, make_on};
use imbrex_fs::device::model::{Contents, Model, Snapshot};
use imbrex_fs::device::{Geometry, Kind};
use imbrex_fs::verify::cuts::fresh;
use imbrex_fs::verify::operation::{find, pattern};
use imbrex_fs::verify::rig::Rig;
use imbrex_fs::verify::trial::Trial;
use imbrex_fs::verify::{Operation, arrays, perform};
use imbrex_fs::{Bounds, Device, Executor, Fs, FsError};
use uuid::Uuid;

const FILES: u8 = 6;
const NEW: Uuid = Uuid::from_u128(0xabc);

fn bytes_of(number: u8) -> usize {
    3_000 + 3_000 * usize::from(number)
}

/// Returns the arrays that tolerate the loss of a drive.
fn with_parity() -> Vec<(&'static str, Trial)> {
    arrays().into_iter().filter(|(_, trial)| trial.parity > 0).collect()
}

/// Writes files of several lengths, some of them twice, and returns the contents of the devices.
fn written(trial: &Trial) -> Vec<Contents> {
    let (executor, own) = (Executor::in_virtual_time(), trial.clone());
    let inner = executor.clone();
    executor
        .run(async move {
            let (fs, rig) = fresh(&inner, &own).await.unwrap();
            for (round, names) in [(9, 0..FILES), (9, 2..4), (0, 0..FILES)] {
                for number in names {
                    let path = format!("f{number}");
                    if find(&fs, &path).is_err() {
                        perform(&fs, &Operation::Create(path.clone())).await.unwrap();
                    }
                    let write = Operation::WriteOut(path, 0, bytes_of(number), number + round);
                    perform(&fs, &write).await.unwrap();
                }
            }
            fs.unmount().await.unwrap();
            assert_eq!(rig.broken_rules(), 0);
            rig.contents()
        })
        .unwrap()
}

async fn mounted(executor: &Executor, rig: &Rig, missing: &[usize]) -> Result<Fs, FsError> {
    Ok(Fs::mount(executor, &rig.devices(executor, missing), &MountOptions::default()).await?.0)
}

/// Reads and compares every file.
async fn compare(fs: &Fs, when: &str) {
    for number in 0..FILES {
        let inode = find(fs, &format!("f{number}")).unwrap();
        let read = fs.read(inode, 0, 1 << 20).await.unwrap_or_else(|error| panic!("{when}: f{number}: {error}"));
        assert!(read == pattern(number, 0, bytes_of(number)), "{when}: f{number} has other bytes");
    }
    assert_eq!(fs.self_check(), Vec::<String>::new(), "{when}");
}

/// Replaces drive `old` by the last device of `rig`, from the beginning or from where a replacement stopped.
async fn replace(executor: &Executor, rig: &Rig, old: usize, when: &str) -> Fs {
    let last = rig.models().len() - 1;
    let new = rig.devices(executor, &[]).pop().unwrap();
    // Before its first block is written, the new drive does not belong to the file system.
    let is_begun = imbrex_fs::core::look(&new).await.is_ok();
    let missing = if is_begun { vec![old] } else { vec![old, last] };
    let fs = mounted(executor, rig, &missing).await.unwrap_or_else(|error| panic!("{when}: {error}"));
    compare(&fs, when).await;
    let replaced = match fs.replace_drive(old as u8, None, false, |_| true).await {
        // The replacement was complete before the power cut.
        Err(FsError::Invalid(why)) if why.contains("no drive of that number") => return fs,
        Err(FsError::Invalid(_)) => fs.replace_drive(old as u8, Some((&new, NEW)), true, |_| true).await,
        outcome => outcome,
    };
    let replaced = replaced.unwrap_or_else(|error| panic!("{when}: {error}"));
    assert_eq!(replaced.groups, replaced.groups_in_all);
    compare(&fs, when).await;
    fs
}

/// Replaces drive `old`; returns the state that a power cut after every event would leave.
fn cuts(trial: &Trial, contents: &[Contents], old: usize) -> Vec<Vec<Snapshot>> {
    let executor = Executor::in_virtual_time();
    let new = Model::new(trial.geometry).contents();
    let rig = Rig::with(contents.iter().cloned().chain([new]).collect());
    let own = executor.clone();
    let snapshots = executor.run(async move {
        rig.keep_snapshots();
        replace(&own, &rig, old, "at first").await.unmount().await.unwrap();
        assert_eq!(rig.broken_rules(), 0);
        rig.take_snapshots()
    });
    executor.shut_down();
    snapshots.unwrap()
}

#[test]
fn a_replacement_that_is_cut_anywhere_goes_on_and_gives_back_what_was_lost() {
    for (name, trial) in with_parity() {
        let contents = written(&trial);
        let (old, drives) = (1, trial.drives);
        for (event, snapshot) in cuts(&trial, &contents, old).into_iter().enumerate() {
            for survives in [false, true] {
                let when = format!("{name}, cut after event {event}, survivors: {survives}");
                let rig = Rig::with(snapshot.iter().map(|one| one.cut(|_| survives)).collect());
                let executor = Executor::in_virtual_time();
                let own = executor.clone();
                let run = async move {
                    replace(&own, &rig, old, &when).await.unmount().await.unwrap();
                    // The old drive is no longer part of the array: another may be lost.
                    for other in (0..drives).filter(|other| *other != old) {
                        let when = format!("{when}, then {other} lost");
                        let fs = mounted(&own, &rig, &[old, other]).await;
                        compare(&fs.unwrap_or_else(|error| panic!("{when}: {error}")), &when).await;
                    }
                    assert_eq!(rig.broken_rules(), 0, "{when}");
                };
                executor.run(run).unwrap();
                executor.shut_down();
            }
        }
    }
}

const THIRD: Uuid = Uuid::from_u128(0xdef);

/// Replaces drive `old` by the last device of `rig`, after the first replacement drive was lost for good; resumes that
/// if it had begun.
async fn take_over(executor: &Executor, rig: &Rig, old: usize, missing: &[usize], when: &str) -> Fs {
    let last = rig.models().len() - 1;
    let third = rig.devices(executor, &[]).pop().unwrap();
    let is_begun = imbrex_fs::core::look(&third).await.is_ok();
    let missing = if is_begun { missing.to_vec() } else { [missing, &[last]].concat() };
    let fs = mounted(executor, rig, &missing).await.unwrap_or_else(|error| panic!("{when}: {error}"));
    compare(&fs, when).await;
    let replaced = match fs.replace_drive(old as u8, None, false, |_| true).await {
        Err(FsError::Invalid(why)) if why.contains("no drive of that number") => return fs,
        Err(FsError::Invalid(_)) => fs.replace_drive(old as u8, Some((&third, THIRD)), true, |_| true).await,
        outcome => outcome,
    };
    replaced.unwrap_or_else(|error| panic!("{when}: {error}"));
    compare(&fs, when).await;
    fs
}

/// Returns whether the replacement of drive `old` has begun and is not complete.
async fn is_under_way(executor: &Executor, rig: &Rig, old: usize, missing: &[usize]) -> bool {
    let fs = mounted(executor, rig, missing).await.unwrap();
    let outcome = fs.replace_drive(old as u8, None, false, |_| true).await;
    matches!(outcome, Err(FsError::Invalid(why)) if why.contains("takes over from it"))
}

/// Starts from `left`, and checks every cut while another drive takes over; returns the number of cuts.
async fn judge_taking_over(
    executor: &Executor,
    (trial, left): (&Trial, &[Contents]),
    old: usize,
    missing: &[usize],
    when: &str,
) -> usize {
    let finish = async |rig: &Rig, when: &str| {
        take_over(executor, rig, old, missing, when).await.unmount().await.unwrap();
        for other in (0..trial.drives).filter(|other| *other != old) {
            let when = format!("{when}, then {other} lost");
            // None of the replaced drives is needed any more.
            let fs = mounted(executor, rig, &[missing, &[old, other]].concat()).await;
            compare(&fs.unwrap_or_else(|error| panic!("{when}: {error}")), &when).await;
        }
        assert_eq!(rig.broken_rules(), 0, "{when}");
    };
    let rig = Rig::with(left.to_vec());
    rig.keep_snapshots();
    finish(&rig, when).await;
    let cuts = rig.take_snapshots();
    for (event, snapshot) in cuts.iter().enumerate().step_by(5) {
        let rig = Rig::with(snapshot.iter().map(|one| one.cut(|_| event % 2 == 0)).collect());
        finish(&rig, &format!("{when}, cut again after event {event}")).await;
    }
    cuts.len()
}

#[test]
fn a_drive_that_came_and_dies_is_itself_replaced_wherever_that_is_cut() {
    let mut judged = [0; 2];
    for (name, trial) in with_parity() {
        let (contents, old) = (written(&trial), 1);
        for (event, snapshot) in cuts(&trial, &contents, old).into_iter().enumerate().step_by(7) {
            let third = Model::new(trial.geometry).contents();
            let left: Vec<Contents> = snapshot.iter().map(|one| one.cut(|_| true)).chain([third]).collect();
            let new = left.len() - 2;
            // The leaving drive still answers, or is lost as well.
            for (number, missing) in [vec![new], vec![new, old]].into_iter().enumerate() {
                let (executor, own_left, own_trial) = (Executor::in_virtual_time(), left.clone(), trial.clone());
                let (own, when) = (executor.clone(), format!("{name}, cut after event {event}, without {missing:?}"));
                let run = async move {
                    let all_missing = [&missing[..], &[own_left.len() - 1]].concat();
                    let rig = Rig::with(own_left.clone());
                    if !is_under_way(&own, &rig, old, &all_missing).await {
                        return 0;
                    }
                    judge_taking_over(&own, (&own_trial, &own_left), old, &missing, &when).await
                };
                judged[number] += executor.run(run).unwrap();
                executor.shut_down();
            }
        }
    }
    println!("{judged:?} events of taking over");
    assert!(judged.iter().all(|events| *events > 100), "{judged:?}");
}

/// Turns a superblock into one of another file system.
fn make_foreign(block: &mut [u8]) {
    block[16] ^= 1;
    block[12..16].fill(0);
    let sum = crc32c::crc32c(block);
    block[12..16].copy_from_slice(&sum.to_le_bytes());
}

/// Checks other devices in the place of the new drive, once the power is back.
#[test]
fn after_a_cut_in_a_replacement_a_stranger_is_refused_and_an_earlier_drive_gives_no_wrong_byte() {
    let (mut stale, mut strangers) = (0, 0);
    for (name, trial) in with_parity() {
        let (contents, old) = (written(&trial), 1);
        let cuts = cuts(&trial, &contents, old);
        for (event, snapshot) in cuts.iter().enumerate().step_by(3) {
            let whole: Vec<Contents> = snapshot.iter().map(|one| one.cut(|_| true)).collect();
            let new = whole.len() - 1;
            for earlier in [event / 3, event / 2, event * 3 / 4] {
                let when = format!("{name}, cut after event {event}, with the new drive of event {earlier}");
                let mut left = whole.clone();
                left[new] = cuts[earlier][new].cut(|_| earlier % 2 == 0);
                let (executor, rig) = (Executor::in_virtual_time(), Rig::with(left));
                let own = executor.clone();
                let run = async move {
                    let came = rig.devices(&own, &[]).pop().unwrap();
                    let is_there = imbrex_fs::core::look(&came).await.is_ok();
                    let missing = if is_there { vec![] } else { vec![new] };
                    let fs = mounted(&own, &rig, &missing).await.unwrap_or_else(|error| panic!("{when}: {error}"));
                    compare(&fs, &when).await;
                    let scrubbed = fs.scrub_array(true, |_, _| true).await.unwrap();
                    assert_eq!(scrubbed.lost, [], "{when}");
                    fs.unmount().await.unwrap();
                    assert_eq!(rig.broken_rules(), 0, "{when}");
                    usize::from(is_there)
                };
                stale += executor.run(run).unwrap();
                executor.shut_down();
            }
            let mut left = whole;
            if left[new].used_blocks().is_empty() {
                continue;
            }
            (0..2).for_each(|block| left[new].corrupt(block, make_foreign));
            let (executor, rig) = (Executor::in_virtual_time(), Rig::with(left));
            let (own, when) = (executor.clone(), format!("{name}, cut after event {event}, with a stranger"));
            let run = async move {
                let told = mounted(&own, &rig, &[]).await.err().map(|error| error.to_string()).unwrap_or_default();
                assert!(told.contains("belongs to file system"), "{when}: {told}");
                compare(&mounted(&own, &rig, &[new]).await.unwrap(), &when).await;
            };
            executor.run(run).unwrap();
            strangers += 1;
        }
    }
    assert!(stale > 50 && strangers > 20, "{stale} of earlier, {strangers} strangers");
}

#[test]
fn what_is_being_written_when_a_drive_begins_to_leave_is_moved_too() {
    const LONG: usize = 60 * 4096;
    let (_, trial) = with_parity().remove(1);
    let contents = {
        let executor = Executor::in_virtual_time();
        let (own, trial) = (executor.clone(), trial.clone());
        executor.run(async move { fresh(&own, &trial).await.unwrap().1.contents() }).unwrap()
    };
    // A file that takes several groups, and has no group before all is written, is begun at each moment.
    for moment in 0..80 {
        let executor = Executor::in_virtual_time();
        let new = Model::new(trial.geometry).contents();
        let rig = Rig::with(contents.iter().cloned().chain([new]).collect());
        let (own, drives) = (executor.clone(), trial.drives);
        let run = async move {
            let last = rig.models().len() - 1;
            let bounds = Bounds { piece_blocks: 1, ..Bounds::default() };
            let options = MountOptions { bounds: Some(bounds), ..MountOptions::default() };
            let (fs, _) = Fs::mount(&own, &rig.devices(&own, &[last]), &options).await.unwrap();
            perform(&fs, &Operation::Create("long".into())).await.unwrap();
            let (replacer, new) = (fs.clone(), rig.devices(&own, &[]).pop().unwrap());
            let replacing = async move { replacer.replace_drive(1, Some((&new, NEW)), false, |_| true).await };
            let replacing = own.spawn(replacing);
            for _ in 0..moment {
                own.yield_now().await;
            }
            perform(&fs, &Operation::WriteOut("long".into(), 0, LONG, 7)).await.unwrap();
            replacing.await.unwrap();
            fs.unmount().await.unwrap();
            for other in (0..drives).filter(|other| *other != 1) {
                let when = format!("moment {moment}, then {other} lost");
                let fs = mounted(&own, &rig, &[1, other]).await.unwrap();
                let read = fs.read(find(&fs, "long").unwrap(), 0, LONG).await;
                assert!(read.as_ref() == Ok(&pattern(7, 0, LONG)), "{when}: {:?}", read.map(|bytes| bytes.len()));
            }
        };
        executor.run(run).unwrap();
        executor.shut_down();
    }
}

#[test]
fn what_is_rebuilt_is_what_files_use() {
    let (_, trial) = with_parity().remove(1);
    let rebuilt = |contents: Vec<Contents>| {
        let executor = Executor::in_virtual_time();
        let new = Model::new(trial.geometry).contents();
        let rig = Rig::with(contents.into_iter().chain([new]).collect());
        let own = executor.clone();
        let run = async move {
            let last = rig.models().len() - 1;
            let fs = mounted(&own, &rig, &[1, last]).await.unwrap();
            let new = rig.devices(&own, &[]).pop().unwrap();
            fs.replace_drive(1, Some((&new, NEW)), false, |_| true).await.unwrap()
        };
        executor.run(run).unwrap()
    };
    let empty = {
        let executor = Executor::in_virtual_time();
        let (own, trial) = (executor.clone(), trial.clone());
        executor.run(async move { fresh(&own, &trial).await.unwrap().1.contents() }).unwrap()
    };
    assert_eq!(rebuilt(empty).blocks, 0, "an empty file system has nothing to rebuild");
    let full = rebuilt(written(&trial));
    let blocks: u64 = (0..FILES).map(|number| bytes_of(number).div_ceil(4096) as u64).sum();
    // Beside the data, each group may have a header and a row of records.
    let most = blocks + 2 * full.groups;
    assert!((blocks / 4..=most).contains(&full.blocks), "{full:?} for {blocks} blocks of files on four drives");
}

#[test]
fn a_drive_that_was_replaced_is_told_when_it_comes_back_and_nothing_is_read_of_it() {
    let (_, trial) = with_parity().remove(1);
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let run = async move {
        let new = Model::new(trial.geometry).contents();
        let rig = Rig::with(written(&trial).into_iter().chain([new]).collect());
        replace(&own, &rig, 1, "at first").await.unmount().await.unwrap();
        let devices = rig.devices(&own, &[]);
        let (fs, found) = Fs::mount(&own, &devices, &MountOptions::default()).await.unwrap();
        assert_eq!(found.stale, ["model 1"]);
        assert_eq!(found.missing, Vec::<String>::new());
        compare(&fs, "with the old one back").await;
    };
    executor.run(run).unwrap();
}

#[test]
fn an_added_drive_takes_part_and_more_fits() {
    let (_, trial) = with_parity().remove(1);
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let run = async move {
        let geometry = Geometry { blocks: 800, kind: imbrex_fs::device::Kind::Plain };
        let new = Model::new(geometry).contents();
        let rig = Rig::with(written(&trial).into_iter().chain([new]).collect());
        let last = rig.models().len() - 1;
        let fs = mounted(&own, &rig, &[last]).await.unwrap();
        let before = fs.statfs().blocks;
        let device = rig.devices(&own, &[]).pop().unwrap();
        fs.add_drive(&device, NEW, false).await.unwrap();
        assert!(fs.statfs().blocks > before, "{} blocks, and {before} before", fs.statfs().blocks);
        for number in 0..FILES {
            let write = Operation::WriteOut(format!("f{number}"), 0, bytes_of(number), number);
            perform(&fs, &write).await.unwrap();
        }
        fs.unmount().await.unwrap();
        for lost in 0..=last {
            if lost != 4 {
                compare(&mounted(&own, &rig, &[lost]).await.unwrap(), &format!("without {lost}")).await;
            }
        }
        assert!(mounted(&own, &rig, &[last, 0]).await.is_err(), "two are one too many");
    };
    executor.run(run).unwrap();
}

/// Returns the devices of an array with one parity, complete, with a spare as the last one.
fn with_spare() -> (Trial, Vec<Contents>) {
    let (_, trial) = with_parity().remove(1);
    let (executor, own) = (Executor::in_virtual_time(), trial.clone());
    let inner = executor.clone();
    let contents = executor
        .run(async move {
            let rig = Rig::with(written(&own).into_iter().chain([Model::new(own.geometry).contents()]).collect());
            let spare = rig.models().len() - 1;
            let fs = mounted(&inner, &rig, &[spare]).await.unwrap();
            let device = rig.devices(&inner, &[]).pop().unwrap();
            fs.add_spare(&device, NEW, false).await.unwrap();
            fs.unmount().await.unwrap();
            rig.contents()
        })
        .unwrap();
    (trial, contents)
}

/// Mounts as in normal use: failed drives are replaced by spares.
async fn in_use(executor: &Executor, rig: &Rig, missing: &[usize]) -> Fs {
    let options = MountOptions { replaces_by_itself: true, ..MountOptions::default() };
    Fs::mount(executor, &rig.devices(executor, missing), &options).await.unwrap().0
}

/// Waits until no drive is missing and none is being replaced.
async fn until_whole(executor: &Executor, fs: &Fs, when: &str) {
    for _ in 0..1000 {
        let status = fs.status();
        if status.missing.is_empty() && status.replacing.is_none() {
            return;
        }
        executor.sleep(1_000_000).await;
    }
    panic!("{when}: {:?} stay missing", fs.status().missing);
}

async fn write_all(fs: &Fs) {
    for number in (0..FILES).chain(0..FILES) {
        let write = Operation::WriteOut(format!("f{number}"), 0, bytes_of(number), number);
        perform(fs, &write).await.unwrap();
        perform(fs, &Operation::Fsync(format!("f{number}"))).await.unwrap();
    }
}

#[test]
fn a_drive_that_dies_under_load_is_replaced_by_a_spare_by_itself_also_after_a_cut() {
    let (trial, contents) = with_spare();
    let (drives, spare) = (trial.drives, contents.len() - 1);
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let run = async move {
        let rig = Rig::with(contents.clone());
        let fs = in_use(&own, &rig, &[]).await;
        assert_eq!(fs.status().spares.len(), 1);
        rig.keep_snapshots();
        rig.models()[1].fail_after(9);
        write_all(&fs).await;
        until_whole(&own, &fs, "under load").await;
        assert_eq!(fs.status().spares, Vec::<String>::new());
        write_all(&fs).await;
        fs.unmount().await.unwrap();
        assert_eq!(rig.broken_rules(), 0);
        let mut begun = 0;
        // Checking each event would take a minute.
        for (event, snapshot) in rig.take_snapshots().into_iter().enumerate().step_by(9) {
            let when = format!("cut after event {event}");
            let rig = Rig::with(snapshot.iter().map(|one| one.cut(|_| false)).collect());
            let fs = in_use(&own, &rig, &[1]).await;
            compare(&fs, &when).await;
            own.sleep(1_000_000).await;
            let status = fs.status();
            if status.missing.is_empty() || status.replacing.is_some() {
                begun += 1;
                until_whole(&own, &fs, &when).await;
            } else {
                // A replacement that had not begun does not start by itself: a drive that is missing at the mount may
                // only be late.
                let new = rig.devices(&own, &[]).pop().unwrap();
                fs.replace_drive(1, Some((&new, NEW)), true, |_| true).await.unwrap();
            }
            fs.unmount().await.unwrap();
            for other in (0..drives).filter(|other| *other != 1).chain([spare]) {
                let when = format!("{when}, then {other} lost");
                compare(&mounted(&own, &rig, &[1, other]).await.unwrap(), &when).await;
            }
        }
        assert!(begun > 4, "{begun} replacements went on by themselves");
    };
    executor.run(run).unwrap();
    executor.shut_down();
}

#[test]
fn a_drive_with_a_damaged_superblock_is_done_without_or_told_by_its_second_copy() {
    let (_, trial) = with_parity().remove(1);
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let run = async move {
        let contents = written(&trial);
        for (blocks, is_told) in [(vec![0], true), (vec![1], true), (vec![0, 1], false)] {
            let mut altered = contents.clone();
            blocks.iter().for_each(|block| altered[2].corrupt(*block, |bytes| bytes[9] ^= 1));
            let rig = Rig::with(altered);
            let devices = rig.devices(&own, &[]);
            let (fs, found) = Fs::mount(&own, &devices, &MountOptions::default()).await.unwrap();
            assert_eq!((found.missing.is_empty(), found.unknown.is_empty()), (is_told, is_told), "{found:?}");
            assert!(is_told || found.unknown[0].contains("model 2"), "{found:?}");
            compare(&fs, &format!("blocks {blocks:?}")).await;
            fs.unmount().await.unwrap();
            let lost = mounted(&own, &rig, &[0]).await.map(drop);
            assert!(is_told || lost.unwrap_err().to_string().contains("model 2"), "it is named where it is missed");
        }
    };
    executor.run(run).unwrap();
    executor.shut_down();
}

/// Scrubs `contents` with repair; returns the findings, the findings of a second scrub, and the unreadable files.
fn scrub(contents: Vec<Contents>) -> (Scrubbed, Scrubbed, Vec<u8>) {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let run = async move {
        let rig = Rig::with(contents);
        let fs = mounted(&own, &rig, &[]).await.unwrap();
        let first = fs.scrub_array(true, |_, _| true).await.unwrap();
        let again = fs.scrub_array(false, |_, _| true).await.unwrap();
        let mut damaged = Vec::new();
        for number in 0..FILES {
            match fs.read(find(&fs, &format!("f{number}")).unwrap(), 0, 1 << 20).await {
                Ok(read) => assert!(read == pattern(number, 0, bytes_of(number)), "f{number} has other bytes"),
                Err(_) => damaged.push(number),
            }
        }
        assert_eq!(rig.broken_rules(), 0);
        (first, again, damaged)
    };
    let found = executor.run(run).unwrap();
    executor.shut_down();
    found
}

#[test]
fn scrub_finds_and_repairs_every_altered_block_of_a_row_that_files_use() {
    for (name, trial) in with_parity() {
        let contents = written(&trial);
        let (whole, ..) = scrub(contents.clone());
        assert_eq!((whole.wrong_rows, whole.incomplete_rows), (0, 0), "{name}: {whole:?}");
        assert!(whole.rows > 0);
        let mut wrong = 0;
        for drive in 0..trial.drives {
            for block in contents[drive].used_blocks().into_iter().filter(|block| *block > 0) {
                let mut altered = contents.clone();
                altered[drive].corrupt(block, |bytes| bytes[9] ^= 1);
                let (first, again, damaged) = scrub(altered);
                assert_eq!((first.lost.len(), damaged.len()), (0, 0), "{name}: block {block} of drive {drive}");
                assert_eq!(first.repaired_rows, first.wrong_rows, "{name}: block {block} of drive {drive}: {first:?}");
                assert_eq!(again.wrong_rows, 0, "{name}: block {block} of drive {drive}: {again:?}");
                wrong += first.wrong_rows;
            }
        }
        let columns = (trial.drives as u64).min(whole.rows);
        assert!(wrong >= whole.rows.max(columns), "{name}: {wrong} altered blocks were noticed in {} rows", whole.rows);
    }
}

#[test]
fn what_is_lost_is_exactly_what_scrub_names() {
    let (name, trial) = with_parity().remove(1);
    let contents = written(&trial);
    let mut lost = 0;
    for block in contents[0].used_blocks().into_iter().filter(|block| *block > 0) {
        for other in 1..trial.drives {
            let mut altered = contents.clone();
            for drive in [0, other] {
                altered[drive].corrupt(block, |bytes| bytes[9] ^= 1);
            }
            let (first, _, damaged) = scrub(altered);
            let mut named: Vec<u32> = first.lost.iter().map(|(inode, _)| *inode).collect();
            named.dedup();
            assert_eq!(named.len(), damaged.len(), "{name}: block {block}: {first:?}, and unreadable are {damaged:?}");
            lost += damaged.len();
        }
    }
    assert!(lost > 0, "two blocks of one row are more than one parity bears");
}

/// A replacement was begun with one drive before a power cut; then another drive is offered.
#[test]
fn another_drive_is_refused_where_a_replacement_is_under_way() {
    let (name, trial) = with_parity().into_iter().next().unwrap();
    let contents = written(&trial);
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let done = executor.run(async move {
        let rig = Rig::with([contents, vec![Model::new(trial.geometry).contents(); 2]].concat());
        let (new, other) = (trial.drives + trial.metadata.len(), trial.drives + trial.metadata.len() + 1);
        let device = |number: usize| rig.devices(&own, &[]).remove(number);
        let fs = mounted(&own, &rig, &[1, new, other]).await.unwrap();
        let stopped = fs.replace_drive(1, Some((&device(new), NEW)), false, |_| false).await;
        assert_eq!(stopped, Err(FsError::Stopped), "{name}");
        fs.unmount().await.unwrap();
        let before = rig.models()[other].events();
        let fs = mounted(&own, &rig, &[1, other]).await.unwrap();
        let named = Some((&device(other), Uuid::from_u128(0xdef)));
        let refused = fs.replace_drive(1, named, true, |_| true).await.unwrap_err().to_string();
        assert!(refused.contains(&format!("model {new}: is being put in the place of drive 1")), "{refused}");
        assert_eq!(rig.models()[other].events(), before, "nothing was written to the other");
        fs.replace_drive(1, None, false, |_| true).await.unwrap();
        compare(&fs, name).await;
    });
    executor.shut_down();
    done.unwrap();
}

/// A drive of another make has zones of another size.
#[test]
fn drives_whose_zones_differ_in_size_are_refused_by_name_and_size() {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let done = executor.run(async move {
        let zoned = |name: &str, zone_blocks: u64| {
            let kind = Kind::Zoned { zone_blocks, zones: 12, conventional: 0, active_max: None };
            Device::new(&own, name, Box::new(Model::new(Geometry { blocks: 12 * zone_blocks, kind })))
        };
        let metadata = [Device::new(&own, "flash", Box::new(Model::new(Geometry { blocks: 200, kind: Kind::Plain })))];
        let options = MakeOptions { parity: 1, ..MakeOptions::default() };
        let drives = [zoned("one", 16), zoned("two", 16), zoned("three", 32)];
        let make = async |drives: &[Device]| {
            make_on(Parts { drives, metadata: &metadata, spares: &[] }, &options, 0).await.map(drop)
        };
        let refused = make(&drives).await.unwrap_err().to_string();
        assert!(refused.contains("three: has zones of 32 blocks, and one of 16"), "{refused}");
        make(&drives[..2]).await.unwrap();
        let all = [&drives[..2], &metadata].concat();
        let fs = Fs::mount(&own, &all, &MountOptions::default()).await.unwrap().0;
        let refused = fs.add_drive(&drives[2], NEW, true).await.unwrap_err().to_string();
        assert!(refused.contains("three: has zones of 32 blocks, and the array of 16"), "{refused}");
        assert!(imbrex_fs::core::look(&drives[2]).await.is_err(), "nothing was written to it");
    });
    executor.shut_down();
    done.unwrap();
}
