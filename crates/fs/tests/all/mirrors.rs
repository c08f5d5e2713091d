//! Goal: metadata on two devices survive the loss of either. All acknowledged data is found after a power cut at any
//! moment with one copy lost, damaged in any block, or in its state when it died in use. An outdated copy is never
//! taken for a newer one, and is brought up to date. Method: `imbrex_fs::verify::cuts`, and small file systems whose
//! copies are removed and returned.

use std::collections::BTreeMap;

use imbrex_fs::core::{MountOptions, Mounted};
use imbrex_fs::device::model::{Contents, Model};
use imbrex_fs::device::{Backend, Device, DeviceFault, Geometry, Kind, Operation as Asked, Outcome};
use imbrex_fs::format::superblock::{FORMAT, Superblock};
use imbrex_fs::journal::mirror::State;
use imbrex_fs::verify::cuts::{compare_all, fresh, judge};
use imbrex_fs::verify::rig::Rig;
use imbrex_fs::verify::trial::{Harm, Trial};
use imbrex_fs::verify::{Naive, Operation, mirrored, perform, scripts};
use imbrex_fs::{Executor, Fs, FsError};
use uuid::Uuid;

use crate::support::sequences::{judge_sequences_of_three, setting};
use crate::support::superblocks::make_older;

#[test]
fn sequences_of_three_operations_are_found_as_promised() {
    judge_sequences_of_three(mirrored());
}

#[test]
fn long_sequences_are_found_as_promised_also_where_a_copy_dies_in_use() {
    let (first, count) = (setting("IMBREX_FS_SEED", 1), setting("IMBREX_FS_LONG", 1));
    for (name, trial) in mirrored() {
        for seed in first..first + count {
            let operations = scripts::long(seed, 120);
            let alone = [(None, trial.harms.clone())];
            // A copy that died in use returns or stays away, without a second harm.
            let dying = (0..2).flat_map(|copy| {
                let harms = vec![Harm::None, Harm::CopyLost(copy), Harm::CopyAltered(copy)];
                [3 + seed * 7, 60 + seed * 11].map(|events| (Some((trial.drives + copy, events)), harms.clone()))
            });
            for (dies, harms) in alone.into_iter().chain(dying) {
                let trial = Trial { random_subsets: 2, dies, harms, ..trial.clone() };
                let tally = judge(&trial, &operations)
                    .unwrap_or_else(|why| panic!("{name}, seed {seed}, {dies:?}: {why}\n{operations:#?}"));
                println!("{name}, {dies:?}: {tally:?}");
            }
        }
    }
}

/// Returns the array with two copies of its metadata.
fn array() -> Trial {
    mirrored().remove(1).1
}

const FIRST: usize = 4;
const SECOND: usize = 5;

fn write(seed: u8) -> [Operation; 3] {
    let (one, other) = (format!("f{}", seed % 3), format!("g{}", seed % 2));
    [
        Operation::Create(one.clone()),
        Operation::WriteOut(one.clone(), 0, 9_000 + 500 * usize::from(seed), seed),
        if seed.is_multiple_of(2) { Operation::Link(one, other) } else { Operation::Sync },
    ]
}

/// Performs operations on both file systems, and checks that both succeed or both fail.
async fn act(fs: &Fs, naive: &mut Naive, seeds: std::ops::Range<u8>) {
    for operation in seeds.flat_map(write) {
        let (done, expected) = (perform(fs, &operation).await, naive.perform(&operation));
        assert_eq!(done.is_ok(), expected.is_ok(), "{operation:?}: {done:?}, {expected:?}");
    }
    fs.sync().await.unwrap();
}

async fn mount(executor: &Executor, rig: &Rig, missing: &[usize]) -> Result<(Fs, Mounted), FsError> {
    Fs::mount(executor, &rig.devices(executor, missing), &MountOptions::default()).await
}

/// Runs `task` on a new array with files on it, unmounted.
fn with_array<T: std::future::Future<Output = ()>>(task: impl FnOnce(Executor, Rig, Naive) -> T + 'static) {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let run = async move {
        let (fs, rig) = fresh(&own, &array()).await.unwrap();
        let mut naive = Naive::default();
        act(&fs, &mut naive, 0..6).await;
        fs.unmount().await.unwrap();
        task(own, rig, naive).await;
    };
    executor.run(run).unwrap();
    executor.shut_down();
}

/// Waits until every copy is up to date.
async fn until_current(executor: &Executor, fs: &Fs) {
    for _ in 0..1000 {
        if fs.status().copies.iter().all(|(.., state)| *state == State::Current) {
            return;
        }
        executor.sleep(1_000_000).await;
    }
    panic!("a copy stays behind: {:?}", fs.status().copies);
}

#[test]
fn every_altered_block_of_a_copy_is_made_again_from_the_other() {
    with_array(|executor, rig, naive| async move {
        let contents = rig.contents();
        let mut mended = 0;
        for copy in [FIRST, SECOND] {
            for block in contents[copy].used_blocks() {
                let mut altered = contents.clone();
                altered[copy].corrupt(block, |bytes| bytes[17] ^= 1);
                let rig = Rig::with(altered);
                let when = format!("block {block} of copy {copy}");
                let (fs, found) = mount(&executor, &rig, &[]).await.unwrap_or_else(|error| panic!("{when}: {error}"));
                assert_eq!(found.missing_copies, Vec::<String>::new(), "{when}");
                compare_all(&fs, &naive).await.unwrap_or_else(|why| panic!("{when}: {why}"));
                mended += fs.scrub_copies(true).await.unwrap_or_else(|error| panic!("{when}: {error}"));
                assert_eq!(fs.scrub_copies(false).await, Ok(0), "{when}");
                fs.unmount().await.unwrap();
                mended += fs.status().mended_blocks;
                // The repaired copy serves without the other.
                let other = FIRST + SECOND - copy;
                let (fs, found) =
                    mount(&executor, &rig, &[other]).await.unwrap_or_else(|error| panic!("{when}: {error}"));
                assert_eq!(found.missing_copies.len(), 1, "{when}");
                compare_all(&fs, &naive).await.unwrap_or_else(|why| panic!("{when}, alone: {why}"));
                fs.unmount().await.unwrap();
            }
        }
        assert!(mended >= 8, "superblocks, checkpoint and log are made again: {mended}");
    });
}

/// An upgrade that is cut at any moment keeps all files, and can be repeated.
#[test]
fn an_upgrade_that_the_power_ends_loses_nothing_and_goes_on() {
    with_array(|executor, rig, naive| async move {
        let mut contents = rig.contents();
        for copy in [FIRST, SECOND] {
            (0..2).for_each(|block| contents[copy].corrupt(block, |block| make_older(block, 8)));
        }
        let upgrades = MountOptions { upgrades: true, ..MountOptions::default() };
        let rig = Rig::with(contents);
        rig.keep_snapshots();
        let (fs, _) = Fs::mount(&executor, &rig.devices(&executor, &[]), &upgrades).await.unwrap();
        fs.unmount().await.unwrap();
        let snapshots = rig.take_snapshots();
        assert!(snapshots.len() > 20, "{}", snapshots.len());
        for (event, snapshot) in snapshots.iter().enumerate() {
            for survives in [0, 1, 2, 3] {
                // None of the writes in flight survives, every second one, the others, or all.
                let left = |block: usize| survives == 3 || (survives > 0 && block % 2 == survives - 1);
                let left: Vec<Contents> = snapshot.iter().map(|device| device.cut(left)).collect();
                let look = MountOptions { read_only: true, ..MountOptions::default() };
                let rig = Rig::with(left.clone());
                let (fs, _) = Fs::mount(&executor, &rig.devices(&executor, &[]), &look).await.unwrap();
                assert_eq!(fs.scrub_copies(false).await, Ok(0), "event {event}, {survives}: a cut is no damage");
                for missing in [&[][..], &[FIRST], &[SECOND]] {
                    let (rig, when) =
                        (Rig::with(left.clone()), format!("event {event}, {survives}, without {missing:?}"));
                    let mounted = Fs::mount(&executor, &rig.devices(&executor, missing), &upgrades).await;
                    let (fs, found) = mounted.unwrap_or_else(|error| panic!("{when}: {error}"));
                    assert_eq!((found.lost_from, found.outdated_copies.len()), (None, 0), "{when}");
                    compare_all(&fs, &naive).await.unwrap_or_else(|why| panic!("{when}: {why}"));
                    fs.unmount().await.unwrap();
                }
            }
        }
    });
}

/// An upgraded mount may at once write data that an older program cannot read, so the program must refuse from then on.
#[test]
fn an_older_format_becomes_the_newest_when_it_is_upgraded() {
    with_array(|executor, rig, mut naive| async move {
        let mut contents = rig.contents();
        for copy in [FIRST, SECOND] {
            (0..2).for_each(|block| contents[copy].corrupt(block, |block| make_older(block, 4)));
        }
        let rig = Rig::with(contents);
        let formats = async || {
            let mut formats = Vec::new();
            for device in &rig.devices(&executor, &[])[FIRST..=SECOND] {
                for block in 0..2 {
                    let label = Superblock::decode(&device.read(block, 1).await.unwrap()).unwrap();
                    formats.push(label.format);
                }
            }
            formats
        };
        let read_only = MountOptions { read_only: true, ..MountOptions::default() };
        let (fs, _) = Fs::mount(&executor, &rig.devices(&executor, &[]), &read_only).await.unwrap();
        compare_all(&fs, &naive).await.unwrap();
        drop(fs);
        assert_eq!(formats().await, [4; 4], "what is only read stays as it is");
        let refused = mount(&executor, &rig, &[]).await.map(drop).unwrap_err().to_string();
        assert!(refused.contains("has format 4") && refused.contains("imbrex fs upgrade"), "{refused}");
        assert_eq!(formats().await, [4; 4], "what is refused stays as it is");
        let upgrades = MountOptions { upgrades: true, ..MountOptions::default() };
        let (fs, found) = Fs::mount(&executor, &rig.devices(&executor, &[]), &upgrades).await.unwrap();
        assert_eq!(formats().await, [FORMAT; 4], "before anything else is written");
        assert_eq!((found.mended_blocks, found.missing_copies), (0, Vec::new()));
        act(&fs, &mut naive, 6..8).await;
        fs.unmount().await.unwrap();
        let (fs, _) = mount(&executor, &rig, &[FIRST]).await.unwrap();
        compare_all(&fs, &naive).await.unwrap();
    });
}

/// A device whose writes take a millisecond, and all other operations no time.
struct SlowToWrite {
    inner: Model,
    writes: BTreeMap<u64, u64>,
    held: Vec<(u64, u64, Outcome)>,
}

impl Backend for SlowToWrite {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn submit(&mut self, now_ns: u64, number: u64, operation: Asked) {
        if matches!(operation, Asked::Write { .. }) {
            self.writes.insert(number, now_ns + 1_000_000);
        }
        self.inner.submit(now_ns, number, operation);
    }

    fn next_event_ns(&mut self, now_ns: u64) -> Option<u64> {
        let held = self.held.iter().map(|(when, ..)| (*when).max(now_ns));
        held.chain(self.inner.next_event_ns(now_ns)).min()
    }

    fn answers(&mut self, now_ns: u64, answers: &mut Vec<(u64, Outcome)>) {
        let mut come = Vec::new();
        self.inner.answers(now_ns, &mut come);
        for (number, outcome) in come {
            self.held.push((self.writes.remove(&number).unwrap_or(now_ns), number, outcome));
        }
        let is_over = |(when, ..): &mut (u64, u64, Outcome)| *when <= now_ns;
        answers.extend(self.held.extract_if(.., is_over).map(|(_, number, outcome)| (number, outcome)));
    }

    fn head_position(&self) -> u64 {
        self.inner.head_position()
    }
}

/// A device that refuses writes to one block.
struct RefusesOne {
    inner: Model,
    block: u64,
    refused: Vec<(u64, Outcome)>,
}

impl Backend for RefusesOne {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn submit(&mut self, now_ns: u64, number: u64, operation: Asked) {
        match operation {
            Asked::Write { block, ref bytes } if (block..block + bytes.len() as u64 / 4096).contains(&self.block) => {
                self.refused.push((number, Err(DeviceFault::new("this block cannot be written"))));
            }
            operation => self.inner.submit(now_ns, number, operation),
        }
    }

    fn next_event_ns(&mut self, now_ns: u64) -> Option<u64> {
        if self.refused.is_empty() { self.inner.next_event_ns(now_ns) } else { Some(now_ns) }
    }

    fn answers(&mut self, now_ns: u64, answers: &mut Vec<(u64, Outcome)>) {
        answers.append(&mut self.refused);
        self.inner.answers(now_ns, answers);
    }

    fn head_position(&self) -> u64 {
        self.inner.head_position()
    }
}

/// Goal: a scrub does not count damaged metadata as repaired whose rewriting failed. Method: a page of checksums is
/// altered on a copy that refuses to write this block, or another one that no checkpoint writes.
#[test]
fn damaged_metadata_that_cannot_be_rewritten_are_not_whole() {
    with_array(|executor, rig, naive| async move {
        let superblock = rig.contents()[SECOND].block(0).and_then(|block| Superblock::decode(block).ok()).unwrap();
        let (first, count) = superblock.layout.checksums;
        let used = rig.contents()[SECOND].used_blocks();
        let page = used.into_iter().find(|block| (first..first + count).contains(block)).expect("there are files");
        for refused in [page, u64::MAX] {
            let rig = Rig::with(rig.contents());
            let mut devices = rig.devices(&executor, &[SECOND]);
            let second = RefusesOne { inner: rig.models()[SECOND].clone(), block: refused, refused: Vec::new() };
            devices.push(Device::new(&executor, "second copy", Box::new(second)));
            let (fs, _) = Fs::mount(&executor, &devices, &MountOptions::default()).await.unwrap();
            rig.models()[SECOND].alter(|contents| contents.corrupt(page, |bytes| bytes[17] ^= 1));
            let is_refused = refused == page;
            let seen = fs.scrub_array(false, |_, _| true).await.unwrap();
            assert_eq!((seen.metadata_blocks, seen.is_whole()), (1, false));
            assert_eq!((seen.metadata_copies[1].damaged, seen.metadata_copies[1].repaired), (1, 0));
            let found = fs.scrub_array(true, |_, _| true).await.unwrap();
            let [one, two] = &found.metadata_copies[..] else { panic!("there are two copies: {found:?}") };
            assert_eq!((one.slot, one.state, one.damaged), (0, State::Current, 0));
            let state = if is_refused { State::Lost } else { State::Current };
            assert_eq!((&*two.device, two.slot, two.state), ("second copy", 1, state));
            assert_eq!((two.damaged, two.repaired), (1, u64::from(!is_refused)));
            assert_eq!((found.metadata_blocks, found.is_whole()), (1, !is_refused));
            // The copy that is lost is not read again, and is not forgotten.
            let again = fs.scrub_array(true, |_, _| true).await.unwrap();
            assert_eq!((again.metadata_blocks, again.is_whole()), (0, !is_refused));
            assert_eq!(again.metadata_copies[1].state, state);
            compare_all(&fs, &naive).await.unwrap();
            fs.unmount().await.unwrap();
        }
    });
}

/// Scrubbing only reads, and so ends long before the checkpoint in progress.
#[test]
fn checkpoints_are_repaired_also_while_one_is_being_written() {
    with_array(|executor, rig, naive| async move {
        let mut devices = rig.devices(&executor, &[FIRST, SECOND]);
        for copy in [FIRST, SECOND] {
            let inner = rig.models()[copy].clone();
            let slow = SlowToWrite { inner, writes: BTreeMap::new(), held: Vec::new() };
            devices.push(Device::new(&executor, &format!("copy {copy}"), Box::new(slow)));
        }
        let (fs, _) = Fs::mount(&executor, &devices, &MountOptions::default()).await.unwrap();
        let headers = fs.superblock().layout.checkpoints.map(|(first, _)| first);
        let alter = |rig: &Rig, header: u64| {
            rig.models()[FIRST].alter(|contents| contents.corrupt(header, |bytes| bytes[17] ^= 1));
        };
        let (events, writing) = (rig.events(), fs.clone());
        let checkpoint = executor.spawn(async move { writing.checkpoint().await });
        while rig.events() == events {
            executor.yield_now().await;
        }
        headers.iter().for_each(|header| alter(&rig, *header));
        fs.scrub_copies(true).await.unwrap();
        let repaired = rig.contents();
        checkpoint.await.unwrap();
        for header in headers {
            let rig = Rig::with(repaired.clone());
            alter(&rig, header);
            let (fs, _) = mount(&executor, &rig, &[SECOND]).await.expect("the other checkpoint is whole");
            compare_all(&fs, &naive).await.unwrap();
        }
    });
}

#[test]
fn a_copy_that_returns_after_long_is_brought_up_to_date_and_never_taken_for_the_newer() {
    with_array(|executor, rig, mut naive| async move {
        // The second copy continues without the first for so long that its log wraps around.
        let before = rig.contents()[FIRST].clone();
        for round in 0..3 {
            let (fs, found) = mount(&executor, &rig, &[FIRST]).await.unwrap();
            assert_eq!(found.missing_copies.len(), 1);
            act(&fs, &mut naive, 10 * round..10 * round + 8).await;
            fs.unmount().await.unwrap();
        }
        assert_eq!(rig.contents()[FIRST].used_blocks(), before.used_blocks(), "the one that was away was not written");
        // A read-only mount needs only the newer copy, and writes nothing.
        let look = MountOptions { read_only: true, ..MountOptions::default() };
        let (fs, found) = Fs::mount(&executor, &rig.devices(&executor, &[]), &look).await.unwrap();
        assert_eq!(found.outdated_copies, ["model 4"]);
        compare_all(&fs, &naive).await.unwrap();
        let (fs, found) = mount(&executor, &rig, &[]).await.unwrap();
        assert_eq!(found.outdated_copies, ["model 4"]);
        compare_all(&fs, &naive).await.unwrap();
        act(&fs, &mut naive, 40..46).await;
        until_current(&executor, &fs).await;
        act(&fs, &mut naive, 46..50).await;
        fs.unmount().await.unwrap();
        let (fs, _) = mount(&executor, &rig, &[SECOND]).await.unwrap();
        compare_all(&fs, &naive).await.unwrap();
    });
}

#[test]
fn copies_that_went_on_without_each_other_are_not_mounted_together() {
    with_array(|executor, rig, naive| async move {
        let before = rig.contents();
        let mut of_first = naive.clone();
        let (fs, _) = mount(&executor, &rig, &[SECOND]).await.unwrap();
        act(&fs, &mut of_first, 10..13).await;
        fs.unmount().await.unwrap();
        let with_first = rig.contents();
        // The drives as before, as if the second copy had continued without the first from the beginning.
        let rig = Rig::with(before);
        let (fs, _) = mount(&executor, &rig, &[FIRST]).await.unwrap();
        act(&fs, &mut naive.clone(), 20..22).await;
        fs.unmount().await.unwrap();
        let mut both = with_first.clone();
        both[SECOND] = rig.contents()[SECOND].clone();
        let rig = Rig::with(both);
        let error = mount(&executor, &rig, &[]).await.map(drop).unwrap_err().to_string();
        assert!(error.contains("written without") && error.contains("model 4") && error.contains("model 5"), "{error}");
        let (fs, _) = mount(&executor, &rig, &[SECOND]).await.unwrap();
        compare_all(&fs, &of_first).await.unwrap();
    });
}

#[test]
fn a_device_is_put_in_the_place_of_a_copy_while_files_are_written() {
    with_array(|executor, rig, mut naive| async move {
        let new = Model::new(Geometry { blocks: 200, kind: Kind::Plain });
        let device = Device::new(&executor, "new", Box::new(new.clone()));
        let (fs, _) = mount(&executor, &rig, &[FIRST]).await.unwrap();
        let (writer, mut others) = (fs.clone(), naive.clone());
        let writing = executor.spawn(async move {
            act(&writer, &mut others, 10..40).await;
            others
        });
        let named = (&device, Uuid::from_u128(0xabcd));
        let mut told = 0;
        let asked = fs.replace_copy(0, named, false, |done, all| {
            told += 1;
            done <= all
        });
        asked.await.unwrap();
        assert!(told > 1);
        assert_eq!(fs.replace_copy(7, named, false, |_, _| true).await.map(drop).unwrap_err().errno(), 22);
        naive = writing.await;
        compare_all(&fs, &naive).await.unwrap();
        fs.unmount().await.unwrap();
        // The new copy holds everything; the replaced one is no longer part of the file system.
        let contents: Vec<Contents> = rig.contents().into_iter().chain([new.contents()]).collect();
        let rig = Rig::with(contents);
        let (fs, found) = mount(&executor, &rig, &[SECOND]).await.unwrap();
        assert_eq!(found.stale, ["model 4"]);
        compare_all(&fs, &naive).await.unwrap();
        fs.unmount().await.unwrap();
    });
}

#[test]
fn a_device_that_dies_while_it_is_brought_up_to_date_harms_nothing() {
    with_array(|executor, rig, mut naive| async move {
        let (fs, _) = mount(&executor, &rig, &[FIRST]).await.unwrap();
        let new = Model::new(Geometry { blocks: 200, kind: Kind::Plain });
        new.fail_after(0);
        let device = Device::new(&executor, "new", Box::new(new.clone()));
        let error = fs.replace_copy(0, (&device, Uuid::from_u128(1)), true, |_, _| true).await.unwrap_err();
        assert!(error.to_string().contains("new"), "{error}");
        // A drive that cannot hold a copy does no harm either.
        let kind = Kind::Zoned { zone_blocks: 16, zones: 40, conventional: 1, active_max: None };
        let zoned = Model::new(Geometry { blocks: 640, kind });
        let device = Device::new(&executor, "zoned", Box::new(zoned.clone()));
        let error = fs.replace_copy(0, (&device, Uuid::from_u128(3)), true, |_, _| true).await.unwrap_err();
        assert!(error.to_string().contains("zoned: has 16 blocks that can be written in any order"), "{error}");
        assert_eq!(zoned.events(), 0);
        act(&fs, &mut naive, 10..12).await;
        compare_all(&fs, &naive).await.unwrap();
        // A replacement that was stopped has no effect.
        let device = Device::new(&executor, "other", Box::new(Model::new(Geometry { blocks: 200, kind: Kind::Plain })));
        let stopped = fs.replace_copy(0, (&device, Uuid::from_u128(2)), false, |_, _| false).await;
        assert_eq!(stopped, Err(FsError::Stopped));
        fs.unmount().await.unwrap();
        compare_all(&mount(&executor, &rig, &[FIRST]).await.unwrap().0, &naive).await.unwrap();
    });
}
