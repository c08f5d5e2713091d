//! Goal: with mirrored metadata, files in the hot zone are stored only there. They take no space in the store. They are
//! found after a power cut at any moment and after the loss or damage of either mirror. They are evicted when they
//! should not be there, but never if a write would lack the space. Method: `imbrex_fs::verify::cuts` with harm to
//! either mirror, against the naive file system; small file systems whose mirrors are removed, altered and returned.
//! The expected space follows from the sizes of the files.

use imbrex_fs::core::{MountOptions, Sabotage, SetAttribute};
use imbrex_fs::device::model::{Contents, Model};
use imbrex_fs::device::{Device, Geometry, Kind};
use imbrex_fs::format::change::Inode;
use imbrex_fs::hot::HINT_ATTRIBUTE;
use imbrex_fs::salvage::{SalvageOptions, salvage};
use imbrex_fs::verify::cuts::{fresh, judge};
use imbrex_fs::verify::operation::{find, pattern};
use imbrex_fs::verify::rig::Rig;
use imbrex_fs::verify::trial::{Harm, Trial};
use imbrex_fs::verify::{Operation, perform, scripts, with_files_alone};
use imbrex_fs::{Executor, Fs, FsError};
use uuid::Uuid;

use crate::support::sequences::{is_long, judge_sequences_of_three, on, setting, with_bounds};

const DRIVES: usize = 3;

#[test]
fn sequences_of_three_operations_are_found_as_promised() {
    judge_sequences_of_three(with_files_alone());
}

#[test]
fn long_sequences_are_found_as_promised_also_where_a_mirror_dies_in_use() {
    let (first, count) = (setting("IMBREX_FS_SEED", 1), setting("IMBREX_FS_LONG", 1));
    for (name, trial) in with_bounds(with_files_alone()) {
        for seed in first..first + count {
            let operations = scripts::long_with_reads(seed, 120);
            // A drive that died in use returns as it was then, or stays away. In the short form one copy dies early,
            // and the other one late.
            let dying = (0..2).flat_map(|copy| {
                let harms = vec![Harm::None, Harm::CopyLost(copy), Harm::CopyAltered(copy)];
                let moments = [10 + seed * 13, 70 + seed * 17];
                let moments = if is_long() { moments.to_vec() } else { vec![moments[copy]] };
                moments.into_iter().map(move |events| (Some((trial.drives + copy, events)), harms.clone()))
            });
            for (dies, harms) in [(None, trial.harms.clone())].into_iter().chain(dying) {
                let trial = Trial { random_subsets: 2, dies, harms, ..trial.clone() };
                let tally =
                    judge(&trial, &operations).unwrap_or_else(|why| panic!("{name}, seed {seed}, {dies:?}: {why}"));
                println!("{name}, {dies:?}: {tally:?}");
            }
        }
    }
}

/// Returns operations on a small file that is durable once, and then rewritten repeatedly.
fn rewritten() -> Vec<Operation> {
    let write = |seed| Operation::WriteOut("a".into(), 0, 4096, seed);
    let first = [Operation::Create("a".into()), write(1), Operation::Sync];
    first.into_iter().chain((2..8).map(write)).chain([Operation::Sync]).collect()
}

#[test]
fn mistakes_made_on_purpose_are_caught() {
    let all = with_files_alone();
    // This zone has space for all files, so that the store has none: a mistake that is caught here was made with the
    // zone.
    let metadata = vec![Geometry { blocks: 400, kind: Kind::Plain }; 2];
    let of_zone = Trial { hot_blocks: 200, metadata, ..all[0].1.clone() };
    for (sabotage, trials) in Sabotage::OF_FILES_ALONE.into_iter().flat_map(|sabotage| {
        [(sabotage, vec![of_zone.clone()]), (sabotage, all.iter().map(|(_, trial)| trial.clone()).collect())]
    }) {
        let of = trials.len();
        let is_caught = trials.into_iter().any(|trial| {
            let trial = Trial { sabotage: Some(sabotage), random_subsets: 4, ..trial };
            let long = (1..4).map(|seed| scripts::long_with_reads(seed, 60));
            std::iter::once(rewritten()).chain(long).any(|operations| judge(&trial, &operations).is_err())
        });
        assert!(is_caught, "{sabotage:?} goes unnoticed on {of} trials");
    }
    for operations in [rewritten(), scripts::long_with_reads(1, 60)] {
        assert_eq!(judge(&of_zone, &operations).err(), None);
    }
}

/// Returns three drives with one parity and enough space, with a zone of `hot_blocks` blocks on two mirrors.
fn array(hot_blocks: u64) -> Trial {
    let kind = Kind::Zoned { zone_blocks: 32, zones: 14, conventional: 0, active_max: None };
    let metadata = vec![Geometry { blocks: 300, kind: Kind::Plain }; 2];
    let trial = Trial::new(Geometry { blocks: 32 * 14, kind }, Vec::new());
    Trial { drives: DRIVES, metadata, store: Some("log"), parity: 1, hot_blocks, ..trial }
}

/// Makes and writes a file of `blocks` blocks, and makes it durable.
async fn write(fs: &Fs, name: &str, blocks: usize) -> Inode {
    for operation in [
        Operation::Create(name.into()),
        Operation::WriteOut(name.into(), 0, blocks * 4096, name.as_bytes()[0]),
        Operation::Fsync(name.into()),
    ] {
        perform(fs, &operation).await.unwrap();
    }
    find(fs, name).unwrap()
}

/// Waits for promotions and evictions.
async fn wait(fs: &Fs) {
    perform(fs, &Operation::Wait(1)).await.unwrap();
    perform(fs, &Operation::Sync).await.unwrap();
}

async fn say(fs: &Fs, name: &str, value: &[u8]) {
    fs.set_attribute(find(fs, name).unwrap(), HINT_ATTRIBUTE, value, SetAttribute::Any).await.unwrap();
    wait(fs).await;
}

/// Reads a file `times` times, and compares it.
async fn read(fs: &Fs, name: &str, blocks: usize, times: usize) {
    for _ in 0..times {
        let bytes = fs.read(find(fs, name).unwrap(), 0, blocks * 4096).await;
        assert!(bytes.unwrap() == pattern(name.as_bytes()[0], 0, blocks * 4096), "{name} reads as something else");
        wait(fs).await;
    }
}

/// Returns the number of files and of blocks stored only in the zone, and the number of live blocks in the store.
fn figures(fs: &Fs) -> (u64, u64, u64) {
    let status = fs.status();
    (status.hot.alone_files, status.hot.alone_blocks, status.usage.live)
}

async fn mount(executor: &Executor, rig: &Rig, missing: &[usize], options: &[(&str, &str)]) -> Fs {
    let options = options.iter().map(|(key, value)| ((*key).to_string(), (*value).to_string())).collect();
    let options = MountOptions { options, ..MountOptions::default() };
    Fs::mount(executor, &rig.devices(executor, missing), &options).await.unwrap().0
}

#[test]
fn a_small_file_goes_to_the_zone_at_once_and_takes_no_room_of_the_store() {
    on(&array(8), async |fs: Fs, rig: Rig, executor: Executor| {
        let before = fs.statfs();
        let writes = fs.status().traffic.writes;
        write(&fs, "a", 3).await;
        assert_eq!(figures(&fs), (1, 3, 0));
        assert_eq!(fs.status().traffic.writes, writes, "no drive is written");
        let after = fs.statfs();
        assert_eq!(after.free, before.free, "what can be written is as much as before");
        assert_eq!((after.blocks - after.free) - (before.blocks - before.free), 3, "and the file is counted as used");
        let reads = fs.status().traffic.reads;
        read(&fs, "a", 3, 1).await;
        assert_eq!((fs.status().traffic.reads, fs.status().hot.counters.hits), (reads, 1));
        // A rewritten file stays there; then the zone has no space for both versions.
        perform(&fs, &Operation::WriteOut("a".into(), 0, 3 * 4096, b'a')).await.unwrap();
        wait(&fs).await;
        assert_eq!(figures(&fs), (1, 3, 0));
        perform(&fs, &Operation::Truncate("a".into(), 4096)).await.unwrap();
        wait(&fs).await;
        assert_eq!((figures(&fs), fs.status().hot.used), ((1, 1, 0), 1));
        read(&fs, "a", 1, 1).await;
        fs.unmount().await.unwrap();
        let fs = mount(&executor, &rig, &[], &[]).await;
        assert_eq!((figures(&fs), fs.status().hot.used), ((1, 1, 0), 1));
        perform(&fs, &Operation::Unlink("a".into())).await.unwrap();
        wait(&fs).await;
        assert_eq!((figures(&fs), fs.status().hot.used), ((0, 0, 0), 0));
    });
}

#[test]
fn a_hot_file_that_comes_in_gives_its_blocks_back_and_gets_others_when_it_goes() {
    on(&array(40), async |fs: Fs, _: Rig, _: Executor| {
        write(&fs, "a", 10).await;
        assert_eq!(figures(&fs), (0, 0, 10), "it is not small");
        read(&fs, "a", 10, 2).await;
        assert_eq!(figures(&fs), (1, 10, 0), "it was read twice");
        read(&fs, "a", 10, 1).await;
        assert_eq!(fs.status().hot.counters.hits, 1);
        say(&fs, "a", b"never").await;
        assert_eq!((figures(&fs), fs.status().hot.used), ((0, 0, 10), 0));
        read(&fs, "a", 10, 1).await;
        say(&fs, "a", b"always").await;
        assert_eq!(figures(&fs), (1, 10, 0));
    });
}

#[test]
fn the_colder_goes_to_the_store_for_the_hotter() {
    on(&array(4), async |fs: Fs, _: Rig, _: Executor| {
        write(&fs, "a", 2).await;
        write(&fs, "b", 2).await;
        assert_eq!(figures(&fs), (2, 4, 0));
        read(&fs, "b", 2, 2).await;
        write(&fs, "c", 2).await;
        assert_eq!(figures(&fs), (2, 4, 2), "there is no room for another");
        read(&fs, "c", 2, 3).await;
        assert_eq!(figures(&fs), (2, 4, 2));
        let hits = fs.status().hot.counters.hits;
        for (name, is_there) in [("c", 1), ("b", 2), ("a", 2)] {
            read(&fs, name, 2, 1).await;
            assert_eq!(fs.status().hot.counters.hits - hits, is_there, "{name}");
        }
    });
}

#[test]
fn where_the_store_is_full_a_file_stays_and_no_write_misses_its_room() {
    on(&array(8), async |fs: Fs, _: Rig, _: Executor| {
        write(&fs, "a", 4).await;
        let free = fs.statfs().free;
        perform(&fs, &Operation::Create("full".into())).await.unwrap();
        let filling = Operation::WriteOut("full".into(), 0, (free as usize - 8) * 4096, 7);
        perform(&fs, &filling).await.unwrap();
        perform(&fs, &Operation::Sync).await.unwrap();
        let left = fs.statfs().free;
        say(&fs, "a", b"never").await;
        assert_eq!((figures(&fs).0, fs.statfs().free), (1, left), "it stays, and nobody misses room");
        // All space that is reported free can be written.
        perform(&fs, &Operation::Create("last".into())).await.unwrap();
        perform(&fs, &Operation::WriteOut("last".into(), 0, left as usize * 4096, 9)).await.unwrap();
        let more = perform(&fs, &Operation::Write("full".into(), (free - 8) * 4096, 4096, 9)).await;
        assert_eq!(more.map_err(|error| error.errno()), Err(FsError::NoSpace.errno()));
        read(&fs, "a", 4, 1).await;
        perform(&fs, &Operation::Unlink("full".into())).await.unwrap();
        wait(&fs).await;
        say(&fs, "a", b"never").await;
        assert_eq!(figures(&fs).0, 0, "there is room now");
        read(&fs, "a", 4, 1).await;
    });
}

#[test]
fn with_one_mirror_lost_files_stay_and_none_goes_alone_until_it_is_whole_again() {
    on(&array(8), async |fs: Fs, rig: Rig, executor: Executor| {
        write(&fs, "a", 2).await;
        fs.unmount().await.unwrap();
        for missing in [DRIVES, DRIVES + 1] {
            let fs = mount(&executor, &Rig::with(rig.contents()), &[missing], &[]).await;
            assert_eq!(figures(&fs), (1, 2, 0));
            read(&fs, "a", 2, 1).await;
            write(&fs, "b", 2).await;
            wait(&fs).await;
            let hot = fs.status().hot;
            assert_eq!((figures(&fs), hot.files), ((1, 2, 2), 2), "b has a copy, and is in the store");
        }
        let fs = mount(&executor, &rig, &[DRIVES + 1], &[]).await;
        write(&fs, "b", 2).await;
        wait(&fs).await;
        fs.unmount().await.unwrap();
        let fs = mount(&executor, &rig, &[], &[]).await;
        wait(&fs).await;
        assert_eq!(figures(&fs), (2, 4, 0), "the copy is all that there is, now that it is on both");
        fs.unmount().await.unwrap();
        for missing in [DRIVES, DRIVES + 1] {
            let fs = mount(&executor, &Rig::with(rig.contents()), &[missing], &[]).await;
            read(&fs, "a", 2, 1).await;
            read(&fs, "b", 2, 1).await;
        }
    });
}

/// Alters all blocks of the zone on the metadata devices `which`.
fn alter_zone(fs: &Fs, models: &[Model], which: &[usize]) {
    let (first, blocks) = fs.superblock().layout.hot;
    for model in which.iter().map(|copy| &models[DRIVES + copy]) {
        model.alter(|contents: &mut Contents| {
            let used = contents.used_blocks();
            let zone = used.into_iter().filter(|block| (first..first + blocks).contains(block));
            zone.for_each(|block| contents.corrupt(block, |bytes| bytes[5] ^= 1));
        });
    }
}

#[test]
fn what_is_damaged_on_one_mirror_is_made_again_and_on_both_the_file_is_named() {
    for altered in [0, 1] {
        on(&array(6), async move |fs: Fs, rig: Rig, _: Executor| {
            write(&fs, "a", 3).await;
            alter_zone(&fs, rig.models(), &[altered]);
            let found = fs.scrub_array(false, |_, _| true).await.unwrap();
            assert_eq!((found.metadata_blocks, found.lost.len()), (3, 0));
            if altered == 0 {
                // Reads use the first mirror first: a reader notices its damage and repairs it.
                read(&fs, "a", 3, 1).await;
                assert_eq!(fs.status().hot.counters.damaged, 3);
            } else {
                fs.scrub_array(true, |_, _| true).await.unwrap();
            }
            assert_eq!(fs.scrub_array(false, |_, _| true).await.unwrap().metadata_blocks, 0, "it is whole on both");
            alter_zone(&fs, rig.models(), &[1 - altered]);
            read(&fs, "a", 3, 1).await;
            fs.scrub_array(true, |_, _| true).await.unwrap();
            let inode = write(&fs, "b", 1).await;
            alter_zone(&fs, rig.models(), &[0, 1]);
            let named = fs.scrub_array(true, |_, _| true).await.unwrap();
            let a = find(&fs, "a").unwrap();
            assert_eq!(named.lost, [(a, 0), (a, 1), (a, 2), (inode, 0)]);
            assert!(matches!(fs.read(inode, 0, 10).await, Err(FsError::Damaged { .. })));
        });
    }
}

#[test]
fn a_copy_that_leaves_gives_what_only_it_has_whole() {
    for leaves in [0, 1] {
        on(&array(6), async move |fs: Fs, rig: Rig, executor: Executor| {
            write(&fs, "a", 3).await;
            alter_zone(&fs, rig.models(), &[1 - leaves]);
            let new = Model::new(Geometry { blocks: 300, kind: Kind::Plain });
            let device = Device::new(&executor, "new", Box::new(new));
            fs.replace_copy(leaves, (&device, Uuid::from_u128(77)), false, |_, _| true).await.unwrap();
            assert_eq!(fs.scrub_array(false, |_, _| true).await.unwrap().metadata_blocks, 0);
            read(&fs, "a", 3, 1).await;
        });
    }
}

#[test]
fn who_wants_copies_gets_them_and_may_change_his_mind() {
    let copies = Trial { options: vec![("hot_files".into(), "copies".into())], ..array(8) };
    on(&copies, async |fs: Fs, rig: Rig, executor: Executor| {
        write(&fs, "a", 2).await;
        wait(&fs).await;
        assert_eq!((figures(&fs), fs.status().hot.files), ((0, 0, 2), 1));
        fs.unmount().await.unwrap();
        let fs = mount(&executor, &rig, &[], &[("hot_files", "alone")]).await;
        wait(&fs).await;
        assert_eq!((figures(&fs), fs.status().hot.used), ((1, 2, 0), 2));
        fs.unmount().await.unwrap();
        let fs = mount(&executor, &rig, &[], &[]).await;
        wait(&fs).await;
        assert_eq!(figures(&fs), (0, 0, 2), "all are in the store again");
        read(&fs, "a", 2, 1).await;
    });
    for (trial, word) in [
        (Trial { options: vec![("hot_files".into(), "both".into())], ..array(8) }, "copies or alone"),
        (
            Trial {
                options: vec![("hot_files".into(), "alone".into())],
                metadata: vec![Geometry { blocks: 300, kind: Kind::Plain }],
                ..array(8)
            },
            "--meta twice",
        ),
    ] {
        let executor = Executor::in_virtual_time();
        let own = executor.clone();
        let outcome = executor.run(async move { fresh(&own, &trial).await.map(drop) }).unwrap();
        let words = outcome.unwrap_err().to_string();
        assert!(words.contains(word), "{words}");
    }
}

#[test]
fn the_loss_of_all_flash_loses_files_that_were_there_alone_and_no_others() {
    let trial = array(8);
    on(&array(8), async move |fs: Fs, rig: Rig, executor: Executor| {
        write(&fs, "a", 10).await;
        write(&fs, "b", 2).await;
        write(&fs, "c", 9).await;
        assert_eq!(figures(&fs), (1, 2, 19));
        // A part of the file is rewritten in the zone, which has no records for salvage.
        say(&fs, "b", b"never").await;
        say(&fs, "b", b"always").await;
        perform(&fs, &Operation::WriteOut("b".into(), 4096, 4096, 9)).await.unwrap();
        fs.unmount().await.unwrap();
        let drives = rig.devices(&executor, &[DRIVES, DRIVES + 1]);
        let metadata = Device::new(&executor, "new", Box::new(Model::new(trial.metadata[0])));
        let told = salvage(&drives, &metadata, &SalvageOptions::default(), |_| {}).await.unwrap();
        assert!(told.may_lack_files_alone);
        let devices: Vec<Device> = drives.into_iter().chain([metadata]).collect();
        let (found, _) = Fs::mount(&executor, &devices, &MountOptions::default()).await.unwrap();
        read(&found, "a", 10, 1).await;
        read(&found, "c", 9, 1).await;
        // The file returns as the drives stored it last, and not as a mixture of two versions.
        read(&found, "b", 2, 1).await;
    });
}
