//! Goal: a write of metadata or data that the host's disk dropped is detected, of whatever age. Acknowledged data reads
//! right or is an error, and is never other bytes; it reads right if a second copy or parity has it. Method: a naive
//! file system performs the same operations, and all blocks of all devices are kept after every write. Then one block,
//! or 512 bytes of one, is restored to an earlier state, after a clean unmount and after a power cut. Deliberate
//! mistakes must be found.

use std::collections::BTreeSet;

use imbrex_fs::core::{MountOptions, Mounted, Sabotage};
use imbrex_fs::device::BLOCK_BYTES;
use imbrex_fs::device::model::{Contents, Snapshot};
use imbrex_fs::format::file_type::REGULAR;
use imbrex_fs::format::superblock::Superblock;
use imbrex_fs::journal::mirror::State;
use imbrex_fs::verify::cuts::{compare_all, fresh, lose_write, shown};
use imbrex_fs::verify::operation::find;
use imbrex_fs::verify::rig::Rig;
use imbrex_fs::verify::trial::Trial;
use imbrex_fs::verify::{Naive, Operation, arrays, mirrored, perform, scripts, toys, with_hot_zones_on_drives};
use imbrex_fs::{Bounds, Executor, Fs, FsError};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Returns the setting `IMBREX_FS_LONG`, for longer runs.
fn rounds() -> u64 {
    std::env::var("IMBREX_FS_LONG").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Number of harms to one recording.
const HARMS: u64 = 60;

/// A moment at which all operations are durable.
struct Point {
    /// Number of snapshots taken until then.
    events: usize,
    naive: Naive,
}

/// A file system with all its earlier states.
struct Recording {
    snapshots: Vec<Vec<Snapshot>>,
    points: Vec<Point>,
}

fn options(trial: &Trial) -> MountOptions {
    MountOptions { bounds: Some(trial.bounds), sabotage: trial.sabotage, ..MountOptions::default() }
}

/// Performs operations chosen by `seed`, with a sync after every few, and unmounts.
async fn record(executor: Executor, trial: Trial, seed: u64) -> Recording {
    let (mut fs, rig) = fresh(&executor, &trial).await.unwrap();
    rig.keep_snapshots();
    let first = rig.events();
    let (mut naive, mut points) = (Naive::default(), Vec::new());
    for (number, operation) in scripts::long(seed, 90).iter().enumerate() {
        if matches!(operation, Operation::Remount) || number == 45 {
            fs.unmount().await.unwrap();
            fs = Fs::mount(&executor, &rig.devices(&executor, &[]), &options(&trial)).await.unwrap().0;
        } else if perform(&fs, operation).await.is_ok() {
            naive.perform(operation).unwrap();
        }
        if number % 5 == 4 {
            fs.sync().await.unwrap();
            points.push(Point { events: (rig.events() - first) as usize, naive: naive.clone() });
        }
    }
    fs.sync().await.unwrap();
    fs.unmount().await.unwrap();
    points.push(Point { events: (rig.events() - first) as usize, naive });
    Recording { snapshots: rig.take_snapshots(), points }
}

fn recorded(trial: &Trial, seed: u64) -> Recording {
    let executor = Executor::in_virtual_time();
    let recording = executor.run(record(executor.clone(), trial.clone(), seed)).unwrap();
    executor.shut_down();
    recording
}

/// The effect of a harm.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Outcome {
    /// The file system is not mounted for writing, and an error gives the reason.
    Refused,
    /// Some data cannot be read.
    Unreadable,
    Right,
}

/// Compares the readable data of `fs` with `naive`; the error describes the difference.
async fn compare_readable(fs: &Fs, naive: &Naive) -> Result<Outcome, String> {
    let (found, expected) = (shown(fs).await?, naive.shown());
    if found != expected {
        let paths: BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
        let differ: Vec<_> = paths.into_iter().filter(|path| found.get(*path) != expected.get(*path)).collect();
        return Err(format!("names differ: {differ:?}"));
    }
    let mut outcome = Outcome::Right;
    for (path, number) in naive.paths() {
        let Some(bytes) = naive.bytes(number) else { continue };
        let inode = find(fs, &path).map_err(|error| format!("'{path}': {error}"))?;
        assert_eq!(fs.attr(inode).unwrap().attributes.mode & REGULAR, REGULAR, "'{path}'");
        for (block, expected) in bytes.chunks(BLOCK_BYTES).enumerate() {
            match fs.read(inode, (block * BLOCK_BYTES) as u64, BLOCK_BYTES).await {
                Ok(read) if read == expected => {}
                Ok(_) => return Err(format!("block {block} of '{path}' holds other bytes")),
                Err(_) => outcome = Outcome::Unreadable,
            }
        }
    }
    Ok(outcome)
}

/// Mounts the devices, reads all data, performs more operations, and reads all data again.
async fn look(executor: Executor, trial: Trial, left: Vec<Contents>, naive: Naive) -> Result<Outcome, String> {
    let rig = Rig::with(left);
    let mount = async || Fs::mount(&executor, &rig.devices(&executor, &[]), &options(&trial)).await;
    let Ok((fs, _)) = mount().await else { return Ok(Outcome::Refused) };
    let outcome = compare_readable(&fs, &naive).await?;
    let mut after = naive;
    for operation in [Operation::Create("later".into()), Operation::WriteOut("later".into(), 0, 5000, 3)] {
        match perform(&fs, &operation).await {
            Ok(()) => after.perform(&operation).map_err(|error| error.to_string())?,
            Err(FsError::NoSpace | FsError::Exists) => {}
            Err(error) => return Err(format!("afterwards {operation:?}: {error}")),
        }
    }
    fs.unmount().await.map_err(|error| format!("unmounting: {error}"))?;
    let (fs, _) = mount().await.map_err(|error| format!("mounting again: {error}"))?;
    let again = compare_readable(&fs, &after).await.map_err(|why| format!("mounted again: {why}"))?;
    fs.unmount().await.map_err(|error| format!("unmounting again: {error}"))?;
    Ok(outcome.min(again))
}

/// Numbers of outcomes.
#[derive(Clone, Copy, Default, Debug)]
struct Tally {
    refused: u64,
    unreadable: u64,
    right: u64,
}

/// Returns the first blocks of the frames of the log, in order of the device.
fn frames(contents: &Contents) -> Vec<(u64, Vec<u8>)> {
    let blocks = contents.used_blocks().into_iter().filter_map(|block| Some((block, contents.block(block)?.to_vec())));
    blocks.filter(|(_, bytes)| bytes.starts_with(b"Ilog")).collect()
}

/// Harms `device` of a recording, at its end or at earlier syncs, and checks the effects.
fn judge(trial: &Trial, seed: u64, device: usize, is_redundant: bool, at_end: bool) -> Result<Tally, String> {
    let recording = recorded(trial, seed);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ (device as u64) << 32);
    let mut tally = Tally::default();
    for round in 0..HARMS {
        let last = recording.points.len() - 1;
        let point = if at_end { last } else { 1 + (round as usize * 7) % (last - 1) };
        let now = &recording.points[point];
        let at = |events: usize| -> Vec<Contents> {
            recording.snapshots[events - 1].iter().map(|snapshot| snapshot.cut(|_| true)).collect()
        };
        let mut left = at(now.events);
        // After an unmount, a block of any age is detected. After a cut with one copy of the metadata, nothing proves
        // the last frame of the log. So only blocks from before the sync that preceded this frame are rolled back.
        let of_metadata = left.len() - 1;
        let is_earlier = |point: &&Point| frames(&at(point.events)[of_metadata]) != frames(&left[of_metadata]);
        let before = recording.points[..point].iter().rev().find(is_earlier);
        let until = if at_end || is_redundant { Some(now.events) } else { before.map(|before| before.events) };
        let Some(until) = until else { continue };
        let was = at(until);
        let mut harmed = left[device].clone();
        let earlier = &recording.snapshots[..until];
        let Some(block) = lose_write(&mut harmed, (device, earlier), &mut random) else { continue };
        if was[device].block(block) != left[device].block(block) {
            continue;
        }
        left[device] = harmed;
        let executor = Executor::in_virtual_time();
        let looked = executor.run(look(executor.clone(), trial.clone(), left, now.naive.clone()));
        executor.shut_down();
        let when = format!("seed {seed}, device {device}, block {block}, round {round}, at sync {point} of {last}");
        match looked.map_err(|stalled| format!("{when}: {stalled}"))?.map_err(|why| format!("{when}: {why}"))? {
            Outcome::Right => tally.right += 1,
            other if is_redundant => return Err(format!("{when}: {other:?}, and another device has it")),
            Outcome::Refused => tally.refused += 1,
            Outcome::Unreadable => tally.unreadable += 1,
        }
    }
    Ok(tally)
}

/// Returns every kind of store, each with whether its metadata, and its data, lie on more than one device.
fn trials() -> Vec<(String, Trial, bool, bool)> {
    let named = |(name, trial): (&str, Trial)| (name.to_string(), trial);
    let single = toys().into_iter().map(named).map(|(name, trial)| (name, trial, false, false));
    let arrays = arrays().into_iter().chain(with_hot_zones_on_drives()).map(named);
    let arrays = arrays.map(|(name, trial)| (name, trial.clone(), false, trial.parity > 0));
    let mirrored = mirrored().into_iter().map(named);
    let mirrored = mirrored.map(|(name, trial)| (format!("{name}, mirrored"), trial.clone(), true, trial.parity > 0));
    let usual: Vec<_> = single.chain(arrays).chain(mirrored).collect();
    let smallest = usual.iter().map(|(name, trial, metadata, data)| {
        let trial = Trial { bounds: Bounds::smallest(), ..trial.clone() };
        (format!("{name}, smallest bounds"), trial, *metadata, *data)
    });
    usual.iter().cloned().chain(smallest).collect()
}

fn judge_all(at_end: bool) {
    for (name, trial, metadata, data) in trials() {
        let mut sum = Tally::default();
        for seed in 1..=rounds() {
            for device in 0..trial.drives + trial.metadata.len() {
                let is_redundant = if device < trial.drives { data } else { metadata };
                let tally =
                    judge(&trial, seed, device, is_redundant, at_end).unwrap_or_else(|why| panic!("{name}: {why}"));
                sum.refused += tally.refused;
                sum.unreadable += tally.unreadable;
                sum.right += tally.right;
            }
        }
        println!("{name}: {sum:?}");
    }
}

#[test]
fn a_write_lost_at_any_time_before_an_unmount_is_found_or_made_good() {
    judge_all(true);
}

#[test]
fn a_write_lost_before_the_last_sync_but_one_is_found_or_made_good() {
    judge_all(false);
}

/// Restores headers of checkpoints to all earlier states: at each sync, with all data durable, and after a clean
/// unmount.
fn judge_headers(trial: &Trial, seed: u64) -> Result<Tally, String> {
    let recording = recorded(trial, seed);
    let device = trial.drives + trial.metadata.len() - 1;
    let mut tally = Tally::default();
    for point in &recording.points {
        let end: Vec<Contents> =
            recording.snapshots[point.events - 1].iter().map(|snapshot| snapshot.cut(|_| true)).collect();
        let layout = Superblock::decode(end[device].block(0).unwrap()).unwrap().layout;
        let mut seen = BTreeSet::new();
        for (snapshot, (header, _)) in
            recording.snapshots[..point.events].iter().flat_map(|taken| layout.checkpoints.map(|slot| (taken, slot)))
        {
            let then = snapshot[device].cut(|_| true);
            let is_new = |old: &&[u8]| end[device].block(header) != Some(*old) && seen.insert((header, old.to_vec()));
            let Some(old) = then.block(header).filter(is_new) else { continue };
            let mut left = end.clone();
            left[device].corrupt(header, |bytes| bytes.copy_from_slice(old));
            let executor = Executor::in_virtual_time();
            let looked = executor.run(look(executor.clone(), trial.clone(), left, point.naive.clone())).unwrap();
            executor.shut_down();
            match looked.map_err(|why| format!("seed {seed}, header {header}, after {} events: {why}", point.events))? {
                Outcome::Right => tally.right += 1,
                Outcome::Refused => tally.refused += 1,
                Outcome::Unreadable => tally.unreadable += 1,
            }
        }
    }
    Ok(tally)
}

fn stores_in_order() -> impl Iterator<Item = (String, Trial)> {
    // On a caveat disk, the blocks of the metadata are numbered differently from those of the device.
    let all = trials().into_iter().filter(|(name, _, metadata, _)| !metadata && !name.contains("caveat"));
    all.map(|(name, trial, ..)| (name, trial))
}

#[test]
fn a_lost_header_of_a_checkpoint_is_found() {
    for (name, trial) in stores_in_order() {
        let tally = judge_headers(&trial, 1).unwrap_or_else(|why| panic!("{name}: {why}"));
        println!("{name}: {tally:?}");
    }
}

/// After a clean unmount, restores the header of a checkpoint to its earlier state together with a block of the log, a
/// combination that could hide the harm although neither restoration alone does. The blocks are chosen by `seed`.
fn judge_pairs(trial: &Trial, seed: u64) -> Result<Tally, String> {
    let recording = recorded(trial, seed);
    let (device, point) = (trial.drives + trial.metadata.len() - 1, recording.points.last().unwrap());
    let at = |snapshot: &[Snapshot]| -> Vec<Contents> { snapshot.iter().map(|it| it.cut(|_| true)).collect() };
    let end = at(recording.snapshots.last().unwrap());
    let layout = Superblock::decode(end[device].block(0).unwrap()).unwrap().layout;
    let all: Vec<Contents> = recording.snapshots.iter().map(|taken| taken[device].cut(|_| true)).collect();
    let before = |block: u64| {
        let mut older = all.iter().rev().filter_map(|then| then.block(block));
        older.find(|old| end[device].block(block) != Some(*old))
    };
    let mut tally = Tally::default();
    for (header, _) in layout.checkpoints {
        for block in layout.log.0..layout.log.0 + layout.log.1 {
            let (Some(old_header), Some(old)) = (before(header), before(block)) else { continue };
            let mut left = end.clone();
            left[device].corrupt(header, |bytes| bytes.copy_from_slice(old_header));
            left[device].corrupt(block, |bytes| bytes.copy_from_slice(old));
            let executor = Executor::in_virtual_time();
            let looked = executor.run(look(executor.clone(), trial.clone(), left, point.naive.clone())).unwrap();
            executor.shut_down();
            match looked.map_err(|why| format!("seed {seed}, header {header}, log block {block}: {why}"))? {
                Outcome::Right => tally.right += 1,
                Outcome::Refused => tally.refused += 1,
                Outcome::Unreadable => tally.unreadable += 1,
            }
        }
    }
    Ok(tally)
}

#[test]
fn a_lost_header_with_a_lost_frame_is_found_after_an_unmount() {
    for (name, trial) in stores_in_order() {
        let tally = judge_pairs(&trial, 1).unwrap_or_else(|why| panic!("{name}: {why}"));
        println!("{name}: {tally:?}");
    }
}

#[test]
fn superblocks_that_vouch_for_nothing_are_caught() {
    let without = |(_, trial): (String, Trial)| Trial { sabotage: Some(Sabotage::LastDurableNotRecorded), ..trial };
    let mut trials = stores_in_order().map(without);
    let is_caught = trials.any(|trial| (1..6).any(|seed| judge_pairs(&trial, seed).is_err()));
    assert!(is_caught, "nobody misses what superblocks say of log and checkpoints");
}

async fn mount(executor: &Executor, rig: &Rig, missing: &[usize], options: &MountOptions) -> (Fs, Mounted) {
    Fs::mount(executor, &rig.devices(executor, missing), options).await.unwrap()
}

async fn act(fs: &Fs, naive: &mut Naive, operations: &[Operation]) {
    for operation in operations {
        if perform(fs, operation).await.is_ok() {
            naive.perform(operation).unwrap();
        }
    }
    fs.sync().await.unwrap();
}

/// Restores one copy to an earlier mount; the error describes a wrong reaction.
async fn put_back(executor: Executor, trial: Trial, copy: usize) -> Result<(), String> {
    let (own, other) = (trial.drives + copy, trial.drives + 1 - copy);
    let (fs, rig) = fresh(&executor, &trial).await.unwrap();
    let mut naive = Naive::default();
    act(&fs, &mut naive, &scripts::long(3, 40)).await;
    fs.unmount().await.unwrap();
    let earlier = rig.contents()[own].clone();
    let (fs, _) = mount(&executor, &rig, &[], &options(&trial)).await;
    act(&fs, &mut naive, &scripts::long(4, 40)).await;
    fs.unmount().await.unwrap();
    let mut contents = rig.contents();
    contents[own] = earlier;
    let rig = Rig::with(contents);
    let name = format!("model {own}");
    let read_only = MountOptions { read_only: true, ..options(&trial) };
    for options in [&read_only, &options(&trial)] {
        let (fs, found) = mount(&executor, &rig, &[], options).await;
        if found.outdated_copies != [name.as_str()] {
            return Err(format!("outdated are {:?}, and not {name}", found.outdated_copies));
        }
        compare_all(&fs, &naive).await?;
        if options.read_only {
            continue;
        }
        for _ in 0..1000 {
            executor.sleep(1_000_000).await;
            if fs.status().copies.iter().all(|(.., state)| *state == State::Current) {
                break;
            }
        }
        fs.unmount().await.unwrap();
    }
    let (fs, found) = mount(&executor, &rig, &[other], &options(&trial)).await;
    assert!(found.outdated_copies.is_empty());
    compare_all(&fs, &naive).await
}

fn judge_put_back(sabotage: Option<Sabotage>) -> Result<(), String> {
    for (_, trial) in mirrored() {
        for copy in 0..2 {
            let executor = Executor::in_virtual_time();
            let trial = Trial { sabotage, ..trial.clone() };
            let outcome = executor.run(put_back(executor.clone(), trial, copy)).unwrap();
            executor.shut_down();
            outcome.map_err(|why| format!("copy {copy}: {why}"))?;
        }
    }
    Ok(())
}

#[test]
fn a_copy_put_back_as_of_an_earlier_mount_is_named_and_brought_up_to_date_whichever_it_is() {
    judge_put_back(None).unwrap();
}

#[test]
fn a_generation_that_is_not_begun_is_caught() {
    assert!(judge_put_back(Some(Sabotage::GenerationNotBegun)).is_err());
}

/// Pages of the table of checksums are zeroed on one copy; the other still has them.
#[test]
fn pages_of_checksums_that_one_copy_lost_are_taken_from_the_other() {
    for (_, trial) in mirrored() {
        for copy in 0..2 {
            let executor = Executor::in_virtual_time();
            let own = executor.clone();
            let trial = trial.clone();
            let work = async move {
                let (fs, rig) = fresh(&own, &trial).await.unwrap();
                let mut naive = Naive::default();
                act(&fs, &mut naive, &scripts::long(5, 60)).await;
                fs.unmount().await.unwrap();
                let (first, blocks) = fs.superblock().layout.checksums;
                let mut contents = rig.contents();
                for block in first..first + blocks {
                    contents[trial.drives + copy].corrupt(block, |bytes| bytes.fill(0));
                }
                let rig = Rig::with(contents);
                let (fs, _) = mount(&own, &rig, &[], &options(&trial)).await;
                compare_all(&fs, &naive).await.unwrap();
                assert!(fs.scrub_copies(false).await.unwrap() > 0, "zeroed pages are damage");
                fs.scrub_copies(true).await.unwrap();
                assert_eq!(fs.scrub_copies(false).await, Ok(0));
                fs.unmount().await.unwrap();
                let (fs, _) = mount(&own, &rig, &[trial.drives + 1 - copy], &options(&trial)).await;
                compare_all(&fs, &naive).await.unwrap();
            };
            executor.run(work).unwrap();
            executor.shut_down();
        }
    }
}
