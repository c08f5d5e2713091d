//! Goal: the hot zone holds the files with most reads for their size, and those with a hint. Reads from the zone equal
//! those from the store. Neither a power cut at any moment nor the loss of the zone costs data. Method:
//! `imbrex_fs::verify::cuts` with zones down to one block and reads between operations; small file systems whose zone
//! is filled, altered and destroyed. The expected contents of the zone follow from the number of reads of each file.

use imbrex_fs::core::{MountOptions, Sabotage, SetAttribute};
use imbrex_fs::device::model::Model;
use imbrex_fs::device::{Device, Geometry, Kind};
use imbrex_fs::format::change::Inode;
use imbrex_fs::format::superblock::Role;
use imbrex_fs::hot::{Counters, EXTENSIONS_ATTRIBUTE, HINT_ATTRIBUTE, HotStatus};
use imbrex_fs::salvage::{SalvageOptions, salvage};
use imbrex_fs::verify::cuts::{compare_all, fresh, judge};
use imbrex_fs::verify::operation::{find, pattern};
use imbrex_fs::verify::rig::Rig;
use imbrex_fs::verify::trial::Trial;
use imbrex_fs::verify::{Naive, Operation, perform, scripts, with_hot_zones};
use imbrex_fs::{Bounds, Executor, Fs, FsError};

use crate::support::sequences::{judge_long_sequences_with_reads, judge_sequences_of_three, on};

#[test]
fn sequences_of_three_operations_are_found_as_promised() {
    judge_sequences_of_three(with_hot_zones());
}

#[test]
fn long_sequences_with_reads_are_found_as_promised() {
    judge_long_sequences_with_reads(with_hot_zones());
}

#[test]
fn mistakes_made_on_purpose_are_caught() {
    for sabotage in [Sabotage::CopyKept, Sabotage::CopyBeforeDurable] {
        let is_caught = with_hot_zones().into_iter().any(|(_, trial)| {
            let trial = Trial { sabotage: Some(sabotage), random_subsets: 4, ..trial };
            (1..4).any(|seed| judge(&trial, &scripts::long_with_reads(seed, 60)).is_err())
        });
        assert!(is_caught, "{sabotage:?} goes unnoticed");
    }
}

/// Returns three drives with one parity and enough space, with a zone of `hot_blocks` blocks on each of `copies`
/// devices.
fn array(hot_blocks: u64, copies: usize) -> Trial {
    let kind = Kind::Zoned { zone_blocks: 32, zones: 14, conventional: 0, active_max: None };
    let metadata = vec![Geometry { blocks: 300, kind: Kind::Plain }; copies];
    let trial = Trial::new(Geometry { blocks: 32 * 14, kind }, vec![("hot_files".into(), "copies".into())]);
    Trial { drives: 3, metadata, store: Some("log"), parity: 1, hot_blocks, ..trial }
}

/// Makes and writes a file of `blocks` blocks, makes it durable, and waits for its promotion to the zone.
async fn write(fs: &Fs, name: &str, blocks: usize) -> Inode {
    let seed = name.as_bytes()[0];
    for operation in [
        Operation::Create(name.into()),
        Operation::WriteOut(name.into(), 0, blocks * 4096, seed),
        Operation::Fsync(name.into()),
        Operation::Wait(1),
    ] {
        perform(fs, &operation).await.unwrap();
    }
    find(fs, name).unwrap()
}

/// Reads a file `times` times and compares it; waits for promotions after each read.
async fn read(fs: &Fs, name: &str, blocks: usize, times: usize) {
    let inode = find(fs, name).unwrap();
    for _ in 0..times {
        let bytes = fs.read(inode, 0, blocks * 4096).await.unwrap();
        assert!(bytes == pattern(name.as_bytes()[0], 0, blocks * 4096), "{name} reads as something else");
        perform(fs, &Operation::Wait(1)).await.unwrap();
    }
}

/// Returns whether a read of the file is served from the zone.
async fn is_hot(fs: &Fs, name: &str) -> bool {
    let before = fs.status().hot.counters.hits;
    fs.read(find(fs, name).unwrap(), 4095, 1).await.unwrap();
    fs.status().hot.counters.hits > before
}

#[test]
fn what_is_read_most_for_its_size_has_the_zone() {
    on(&array(8, 1), async |fs: Fs, _: Rig, _: Executor| {
        for name in ["a", "b", "c", "d"] {
            write(&fs, name, 2).await;
        }
        let full = fs.status().hot;
        assert_eq!((full.blocks, full.used, full.files), (8, 8, 4), "small files come in while there is room");
        write(&fs, "e", 2).await;
        assert_eq!(fs.status().hot.counters.came_in, 4, "there is none for a file that nobody reads");
        for (name, times) in [("a", 5), ("b", 3), ("c", 4), ("d", 6)] {
            read(&fs, name, 2, times).await;
        }
        let counters = fs.status().hot.counters;
        assert_eq!((counters.hits, counters.misses), (5 + 3 + 4 + 6, 0));
        // Three reads each of two blocks: as hot as b, and not hotter.
        read(&fs, "e", 2, 3).await;
        assert_eq!(fs.status().hot.counters.misses, 3);
        // The fourth is one more than b has, and takes its place; the fifth is a hit.
        read(&fs, "e", 2, 2).await;
        let counters = fs.status().hot.counters;
        let expected = Counters { hits: 18 + 1, misses: 4, came_in: 5, went_out: 1, damaged: 0 };
        assert_eq!(counters, expected);
        assert!(is_hot(&fs, "e").await && is_hot(&fs, "c").await && !is_hot(&fs, "b").await);
    });
}

#[test]
fn what_is_read_no_more_makes_room_for_what_is() {
    on(&array(2, 1), async |fs: Fs, _: Rig, executor: Executor| {
        write(&fs, "old", 2).await;
        read(&fs, "old", 2, 8).await;
        write(&fs, "new", 2).await;
        read(&fs, "new", 2, 2).await;
        assert!(!is_hot(&fs, "new").await, "three reads against eight");
        // After four half-lives of ten minutes, eight reads count as half a read, and three as less.
        executor.sleep(4 * 600 * 1_000_000_000).await;
        read(&fs, "new", 2, 3).await;
        assert!(is_hot(&fs, "new").await && !is_hot(&fs, "old").await);
    });
}

/// Heat is stored with the checkpoint of an unmount; for a power cut, with any other checkpoint.
#[test]
fn what_was_read_most_before_a_mount_still_wins_after_it() {
    for is_cut in [false, true] {
        on(&array(2, 1), async move |fs: Fs, rig: Rig, executor: Executor| {
            for name in ["a", "b", "c"] {
                write(&fs, name, 2).await;
            }
            read(&fs, "a", 2, 6).await;
            assert!(is_hot(&fs, "a").await, "seven reads");
            read(&fs, "b", 2, 4).await;
            if is_cut {
                fs.checkpoint().await.unwrap();
            } else {
                fs.unmount().await.unwrap();
            }
            let rig = Rig::with(rig.contents());
            let (fs, _) = Fs::mount(&executor, &rig.devices(&executor, &[]), &MountOptions::default()).await.unwrap();
            read(&fs, "c", 2, 4).await;
            assert!(is_hot(&fs, "a").await && !is_hot(&fs, "c").await, "four reads now against seven before");
            // The reads of b before the mount count: nine in all are more than those of a.
            read(&fs, "b", 2, 6).await;
            assert!(is_hot(&fs, "b").await && !is_hot(&fs, "a").await);
        });
    }
}

#[test]
fn what_is_said_of_extensions_holds_in_a_directory_and_from_the_uppermost_everywhere() {
    on(&array(12, 1), async |fs: Fs, rig: Rig, executor: Executor| {
        let say_of = async |fs: &Fs, path: &str, list: &[u8]| {
            let inode = find(fs, path).unwrap();
            fs.set_attribute(inode, EXTENSIONS_ATTRIBUTE, list, SetAttribute::Any).await.unwrap();
        };
        for directory in ["d", "e"] {
            perform(&fs, &Operation::MakeDirectory(directory.into())).await.unwrap();
        }
        for name in ["d/a.tmp", "d/b.db", "e/c.tmp", "e/d"] {
            write(&fs, name, 1).await;
        }
        assert_eq!(files_in_zone(&fs).await, 4);
        say_of(&fs, "d", b"tmp=never").await;
        assert_eq!(files_in_zone(&fs).await, 3, "d/a.tmp is out");
        say_of(&fs, "", b"tmp=never,db=never").await;
        assert_eq!(files_in_zone(&fs).await, 1, "so are all others but e/d");
        say(&fs, "d", b"always").await;
        assert_eq!(
            files_in_zone(&fs).await,
            2,
            "what its directory says goes before the uppermost, and not before its own list"
        );
        perform(&fs, &Operation::Rename("e/c.tmp".into(), "e/c.txt".into())).await.unwrap();
        assert_eq!(files_in_zone(&fs).await, 3, "it has another extension now");
        fs.unmount().await.unwrap();
        let (fs, _) = Fs::mount(&executor, &rig.devices(&executor, &[]), &MountOptions::default()).await.unwrap();
        write(&fs, "e/x.tmp", 1).await;
        assert_eq!(files_in_zone(&fs).await, 3, "what was said is remembered");
        fs.remove_attribute(imbrex_fs::namespace::ROOT, EXTENSIONS_ATTRIBUTE).await.unwrap();
        assert_eq!(files_in_zone(&fs).await, 4, "and taken back; d/a.tmp is still not to be there");
    });
}

#[test]
fn who_asks_for_it_is_in_the_zone_and_who_asks_not_to_is_not() {
    on(&array(4, 1), async |fs: Fs, _: Rig, _: Executor| {
        perform(&fs, &Operation::MakeDirectory("d".into())).await.unwrap();
        say(&fs, "d", b"never").await;
        perform(&fs, &Operation::Create("d/x".into())).await.unwrap();
        perform(&fs, &Operation::WriteOut("d/x".into(), 0, 4096, 7)).await.unwrap();
        perform(&fs, &Operation::Sync).await.unwrap();
        assert_eq!(fs.status().hot.files, 0, "its directory says never");
        write(&fs, "a", 4).await;
        read(&fs, "a", 4, 9).await;
        assert!(is_hot(&fs, "a").await);
        perform(&fs, &Operation::Create("z".into())).await.unwrap();
        say(&fs, "z", b"always").await;
        perform(&fs, &Operation::WriteOut("z".into(), 0, 4096, 7)).await.unwrap();
        perform(&fs, &Operation::Wait(1)).await.unwrap();
        assert!(is_hot(&fs, "z").await && !is_hot(&fs, "a").await, "what is asked for pushes out what is only hot");
        say(&fs, "z", b"never").await;
        perform(&fs, &Operation::Wait(1)).await.unwrap();
        assert!(!is_hot(&fs, "z").await);
        assert_eq!(fs.status().hot.files, 0);
    });
}

/// Sets the hint of a file or directory.
async fn say(fs: &Fs, path: &str, value: &[u8]) {
    fs.set_attribute(find(fs, path).unwrap(), HINT_ATTRIBUTE, value, SetAttribute::Any).await.unwrap();
}

/// Removes the hint of a file or directory.
async fn say_nothing(fs: &Fs, path: &str) {
    fs.remove_attribute(find(fs, path).unwrap(), HINT_ATTRIBUTE).await.unwrap();
}

/// Returns the number of files in the zone after time for promotions and evictions.
async fn files_in_zone(fs: &Fs) -> u64 {
    perform(fs, &Operation::Wait(1)).await.unwrap();
    fs.status().hot.files
}

#[test]
fn what_is_said_later_holds_for_what_is_in_the_zone_already() {
    for (bounds, files) in [(Bounds::default(), 3), (Bounds::smallest(), 3)] {
        on(&Trial { bounds, ..array(12, 1) }, async move |fs: Fs, _: Rig, _: Executor| {
            for directory in ["d", "e"] {
                perform(&fs, &Operation::MakeDirectory(directory.into())).await.unwrap();
            }
            for number in 0..files {
                write(&fs, &format!("d/{number}"), 1).await;
            }
            assert_eq!(files_in_zone(&fs).await, files);
            say(&fs, "d", b"never").await;
            assert_eq!(files_in_zone(&fs).await, 0, "the directory of all says never");
            say(&fs, "d/1", b"always").await;
            assert_eq!(files_in_zone(&fs).await, 1, "what a file says goes before");
            say_nothing(&fs, "d/1").await;
            assert_eq!(files_in_zone(&fs).await, 0);
            say_nothing(&fs, "d").await;
            assert_eq!(files_in_zone(&fs).await, files, "small files come in where there is room");
            say(&fs, "e", b"never").await;
            assert_eq!(files_in_zone(&fs).await, files, "it is empty");
            perform(&fs, &Operation::Rename("d/2".into(), "e/2".into())).await.unwrap();
            assert_eq!(files_in_zone(&fs).await, files - 1, "it has another directory now");
            perform(&fs, &Operation::Exchange("d/1".into(), "e/2".into())).await.unwrap();
            assert_eq!(files_in_zone(&fs).await, files - 1);
            assert!(is_hot(&fs, "d/1").await && !is_hot(&fs, "e/2").await, "each has the directory of the other");
        });
    }
}

#[test]
fn the_directory_of_the_name_given_last_is_the_one_that_counts() {
    on(&array(12, 1), async |fs: Fs, _: Rig, _: Executor| {
        perform(&fs, &Operation::MakeDirectory("d".into())).await.unwrap();
        say(&fs, "d", b"never").await;
        write(&fs, "f", 1).await;
        assert_eq!(files_in_zone(&fs).await, 1);
        perform(&fs, &Operation::Link("f".into(), "d/g".into())).await.unwrap();
        assert_eq!(files_in_zone(&fs).await, 0, "its new name is in a directory that says never");
        perform(&fs, &Operation::Unlink("d/g".into())).await.unwrap();
        assert_eq!(files_in_zone(&fs).await, 1, "it has that name no more");
        perform(&fs, &Operation::Link("f".into(), "d/g".into())).await.unwrap();
        assert_eq!(files_in_zone(&fs).await, 0);
        perform(&fs, &Operation::Rename("f".into(), "h".into())).await.unwrap();
        assert_eq!(files_in_zone(&fs).await, 1, "a new name in the same directory is the one given last");
        perform(&fs, &Operation::Link("h".into(), "d/i".into())).await.unwrap();
        assert_eq!(files_in_zone(&fs).await, 0);
        write(&fs, "x", 1).await;
        assert_eq!(files_in_zone(&fs).await, 1);
        perform(&fs, &Operation::Rename("x".into(), "d/i".into())).await.unwrap();
        assert_eq!(files_in_zone(&fs).await, 1, "x is in that directory now, and h no more");
        assert!(is_hot(&fs, "h").await && !is_hot(&fs, "d/i").await);
        perform(&fs, &Operation::MakeDirectory("e".into())).await.unwrap();
        perform(&fs, &Operation::Rename("d".into(), "e/d".into())).await.unwrap();
        assert_eq!(files_in_zone(&fs).await, 1, "what a directory says goes with it");
    });
}

#[test]
fn no_hint_is_passed_over_however_many_come_at_once() {
    let bounds = Bounds { hot: Bounds::smallest().hot, ..Bounds::default() };
    on(&Trial { bounds, ..array(12, 1) }, async move |fs: Fs, _: Rig, _: Executor| {
        let names = ["a", "b", "c", "d", "e", "f"];
        for name in names {
            write(&fs, name, 1).await;
        }
        assert_eq!(files_in_zone(&fs).await, 6);
        // No write lies between two hints, so that none waits for another.
        for name in names {
            say(&fs, name, b"never").await;
        }
        assert_eq!(files_in_zone(&fs).await, 0);
    });
}

#[test]
fn copies_are_there_after_a_mount_and_are_read_without_being_changed() {
    on(&array(6, 2), async |fs: Fs, rig: Rig, executor: Executor| {
        let inode = write(&fs, "a", 3).await;
        let before = fs.status().hot;
        fs.unmount().await.unwrap();
        let events = rig.events();
        let options = MountOptions { read_only: true, ..MountOptions::default() };
        let (again, _) = Fs::mount(&executor, &rig.devices(&executor, &[]), &options).await.unwrap();
        let drives = again.status().traffic.reads;
        assert!(again.read(inode, 0, 3 * 4096).await.unwrap() == pattern(b'a', 0, 3 * 4096));
        assert_eq!(again.status().traffic.reads, drives, "no drive is read");
        let counters = Counters { hits: 1, ..Counters::default() };
        assert_eq!(again.status().hot, HotStatus { counters, ..before });
        assert_eq!(rig.events(), events);
    });
}

/// Alters all blocks of the zone on the metadata devices `which`.
fn alter_zone(fs: &Fs, models: &[Model], which: &[usize]) {
    let (first, blocks) = fs.superblock().layout.hot;
    for model in which.iter().map(|copy| &models[3 + copy]) {
        model.alter(|contents| {
            let used = contents.used_blocks();
            let zone = used.into_iter().filter(|block| (first..first + blocks).contains(block));
            zone.for_each(|block| contents.corrupt(block, |bytes| bytes[5] ^= 1));
        });
    }
}

#[test]
fn a_copy_that_is_damaged_is_never_given_and_made_anew() {
    for (copies, altered) in [(1, vec![0]), (2, vec![0]), (2, vec![0, 1])] {
        on(&array(6, copies), async move |fs: Fs, rig: Rig, _: Executor| {
            write(&fs, "a", 3).await;
            alter_zone(&fs, rig.models(), &altered);
            let found = fs.scrub_copies(false).await.unwrap();
            assert_eq!(found, 3, "each block of the copy, on whatever device");
            read(&fs, "a", 3, 1).await;
            let counters = fs.status().hot.counters;
            let is_lost = u64::from(altered.len() == copies);
            assert_eq!((counters.damaged, counters.hits), (1, 1 - is_lost), "{copies} devices, altered {altered:?}");
            assert_eq!((counters.went_out, counters.came_in), (1, 2));
            assert_eq!(fs.scrub_copies(false).await.unwrap(), 0, "it was made anew");
            read(&fs, "a", 3, 1).await;
            assert_eq!(fs.status().hot.counters.damaged, 1);
            // The blocks of the former copy are free once its removal is durable.
            fs.sync().await.unwrap();
            alter_zone(&fs, rig.models(), &altered);
            assert!(fs.scrub_copies(true).await.unwrap() > 0);
            perform(&fs, &Operation::Wait(1)).await.unwrap();
            assert_eq!(fs.scrub_copies(true).await.unwrap(), 0, "repaired");
            assert_eq!(fs.status().hot.files, 1);
        });
    }
}

#[test]
fn the_loss_of_all_flash_loses_no_file() {
    let trial = array(8, 1);
    on(&array(8, 1), async move |fs: Fs, rig: Rig, executor: Executor| {
        let mut naive = Naive::default();
        for number in 0..6 {
            let name = format!("f{number}");
            for operation in [
                Operation::Create(name.clone()),
                Operation::WriteOut(name.clone(), 0, 3000 + 2500 * number, 40 + number as u8),
                Operation::Read(name.clone()),
            ] {
                perform(&fs, &operation).await.unwrap();
                naive.perform(&operation).unwrap();
            }
        }
        fs.unmount().await.unwrap();
        assert!(fs.status().hot.files >= 3);
        // Only the drives, and a new device for metadata.
        let drives = rig.devices(&executor, &[3]);
        let metadata = Device::new(&executor, "new", Box::new(Model::new(trial.metadata[0])));
        let told = salvage(&drives, &metadata, &SalvageOptions::default(), |_| {}).await.unwrap();
        assert_eq!(told.files, 6);
        let devices: Vec<Device> = drives.into_iter().chain([metadata]).collect();
        let (found, _) = Fs::mount(&executor, &devices, &MountOptions::default()).await.unwrap();
        compare_all(&found, &naive).await.unwrap();
        assert_eq!(found.status().hot.blocks, 0, "the new metadata have no zone");
    });
}

#[test]
fn a_zone_that_cannot_be_is_refused_with_a_reason() {
    for (trial, word) in [
        // 10,000 blocks are 39.0625 MiB. With 2 blocks of superblocks, 11 of checksums, and four times the smallest log
        // of 16, they are 39.3633 MiB.
        (array(10_000, 1), "a hot zone of 39.06 MiB: give 39.37 MiB or more, or ask for a smaller one"),
        (Trial { store: Some("strict-append"), drives: 1, parity: 0, ..array(6, 1) }, "has no hot zone"),
    ] {
        let executor = Executor::in_virtual_time();
        let own = executor.clone();
        let outcome = executor.run(async move { fresh(&own, &trial).await.map(drop) }).unwrap();
        let Err(FsError::Format { .. }) = &outcome else { panic!("{outcome:?}") };
        let words = outcome.unwrap_err().to_string();
        assert!(words.contains(word), "{words}");
    }
}

/// The outer part of a conventional disk is where its blocks begin; flash of a hybrid drive may be a device of one
/// zone.
#[test]
fn the_zone_lies_on_the_outer_part_of_a_disk_or_on_a_device_of_one_conventional_zone() {
    let disk = Geometry { blocks: 2000, kind: Kind::Plain };
    let single = Trial { store: Some("log"), hot_blocks: 6, ..Trial::new(disk, Vec::new()) };
    let kind = Kind::Zoned { zone_blocks: 300, zones: 1, conventional: 1, active_max: None };
    let hybrid = Trial { metadata: vec![Geometry { blocks: 300, kind }], ..array(6, 1) };
    for trial in [single, hybrid] {
        on(&trial, async |fs: Fs, _: Rig, _: Executor| {
            write(&fs, "a", 2).await;
            assert!(is_hot(&fs, "a").await);
            let superblock = fs.superblock();
            assert_eq!(superblock.layout.place.first, 0);
            let is_inside = superblock.members[superblock.metadata_members()[0]].role == Role::Both;
            // If the zone is on the same disk as the data, files that are not hot lie behind it.
            let end = superblock.layout.place.end();
            assert!(!is_inside || (end < 2000 && superblock.layout.hot.0 + superblock.layout.hot.1 <= end));
        });
    }
}

#[test]
fn a_zone_of_one_block_takes_a_file_of_one_and_gives_it_up() {
    on(&array(1, 1), async |fs: Fs, _: Rig, _: Executor| {
        write(&fs, "a", 2).await;
        assert_eq!(fs.status().hot.files, 0);
        write(&fs, "b", 1).await;
        assert_eq!((fs.status().hot.files, fs.status().hot.used), (1, 1));
        perform(&fs, &Operation::Unlink("b".into())).await.unwrap();
        perform(&fs, &Operation::Sync).await.unwrap();
        assert_eq!((fs.status().hot.files, fs.status().hot.used), (0, 0), "what is deleted has no copy");
    });
}
