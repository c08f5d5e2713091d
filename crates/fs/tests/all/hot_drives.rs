//! Goal: a hot zone on the drives of an array holds only copies, each whole on one drive, and serves reads. A drive
//! that is lost, stale, altered or replaced costs no more than copies, and never gives outdated bytes; nor does a power
//! cut at any moment. Method: `imbrex_fs::verify::cuts` with zones down to one block; small arrays whose drives are
//! removed, restored to an old state, altered at every block, and replaced. An outdated block with the checksum of the
//! current one is made by adding the polynomial of the checksum: only the stamp of its drive can tell it.

use imbrex_fs::array::zone_header::ZoneHeader;
use imbrex_fs::core::{HotOn, MountOptions, PartStatus, Sabotage, Standing};
use imbrex_fs::device::model::{Contents, Model};
use imbrex_fs::device::{BLOCK_BYTES, Device, Geometry, Kind};
use imbrex_fs::format::change::Inode;
use imbrex_fs::format::hot_part::PART_FIRST;
use imbrex_fs::salvage::{SalvageOptions, salvage};
use imbrex_fs::verify::cuts::{fresh, judge};
use imbrex_fs::verify::operation::{find, pattern};
use imbrex_fs::verify::rig::Rig;
use imbrex_fs::verify::trial::{Harm, Trial};
use imbrex_fs::verify::{Operation, perform, scripts, with_hot_zones_on_drives};
use imbrex_fs::{Executor, Fs, FsError};
use uuid::Uuid;

use crate::support::sequences::{judge_long_sequences_with_reads, judge_sequences_of_three, on};

const DRIVES: usize = 4;
const ZONE_BLOCKS: u64 = 16;
/// Blocks of each drive's part: two conventional zones, less two superblocks and the stamp.
const PART_BLOCKS: u64 = 2 * ZONE_BLOCKS - PART_FIRST;
const NEW: Uuid = Uuid::from_u128(0xabc);

#[test]
fn sequences_of_three_operations_are_found_as_promised() {
    judge_sequences_of_three(with_hot_zones_on_drives());
}

#[test]
fn long_sequences_with_reads_are_found_as_promised() {
    judge_long_sequences_with_reads(with_hot_zones_on_drives());
}

/// Checks that the copies on a drive that dies while copies are written and flushed do not count, even if the drive
/// returns.
#[test]
fn a_drive_that_dies_at_any_moment_costs_nothing_acknowledged() {
    let (_, usual) = with_hot_zones_on_drives().swap_remove(0);
    for (drive, events) in (0..usual.drives).flat_map(|drive| (0..60).step_by(4).map(move |events| (drive, events))) {
        let harms = vec![Harm::None, Harm::Lost(vec![drive])];
        let dies = Some((drive, events + drive as u64));
        let trial = Trial { dies, harms, random_subsets: 1, ..usual.clone() };
        judge(&trial, &scripts::long_with_reads(events, 40))
            .unwrap_or_else(|why| panic!("drive {drive} dies after {events} events: {why}"));
    }
}

#[test]
fn a_file_that_changes_and_keeps_its_copy_is_caught() {
    let is_caught = with_hot_zones_on_drives().into_iter().any(|(_, trial)| {
        let trial = Trial { sabotage: Some(Sabotage::CopyKept), random_subsets: 4, ..trial };
        (1..10).any(|seed| judge(&trial, &scripts::long_with_reads(seed, 60)).is_err())
    });
    assert!(is_caught);
}

fn zoned(conventional: u32) -> Geometry {
    let kind = Kind::Zoned { zone_blocks: ZONE_BLOCKS, zones: 14, conventional, active_max: None };
    Geometry { blocks: 14 * ZONE_BLOCKS, kind }
}

/// Returns four drives with one parity, all of whose conventional zones form a hot zone.
fn array() -> Trial {
    let metadata = vec![Geometry { blocks: 300, kind: Kind::Plain }];
    let hot_blocks = DRIVES as u64 * PART_BLOCKS;
    let trial = Trial::new(zoned(2), Vec::new());
    Trial { drives: DRIVES, metadata, store: Some("log"), parity: 1, hot_blocks, hot_on: HotOn::Drives, ..trial }
}

/// Runs `task` with a new file system on `trial` whose hot zone is in use.
fn with_zone<T: 'static>(trial: &Trial, task: impl AsyncFnOnce(Fs, Rig, Executor) -> T + 'static) -> T {
    on(trial, async move |fs: Fs, rig: Rig, executor: Executor| {
        perform(&fs, &Operation::Wait(1)).await.unwrap();
        task(fs, rig, executor).await
    })
}

/// Writes files of the given numbers of blocks, from `f0` on; makes them durable, and waits for promotions.
async fn write_files(fs: &Fs, blocks: &[usize]) {
    for (number, count) in blocks.iter().enumerate() {
        let path = format!("f{number}");
        if find(fs, &path).is_err() {
            perform(fs, &Operation::Create(path.clone())).await.unwrap();
        }
        let write = Operation::WriteOut(path.clone(), 0, count * BLOCK_BYTES, number as u8);
        for operation in [Operation::Truncate(path.clone(), 0), write, Operation::Fsync(path), Operation::Wait(1)] {
            perform(fs, &operation).await.unwrap();
        }
    }
}

/// Reads all files and compares them. Returns the number of pieces read from the zone, and from the store.
async fn read_files(fs: &Fs, blocks: &[usize], when: &str) -> (u64, u64) {
    let before = fs.status().hot.counters;
    for (number, count) in blocks.iter().enumerate() {
        let inode = find(fs, &format!("f{number}")).unwrap();
        let bytes = fs.read(inode, 0, 1 << 20).await.unwrap_or_else(|error| panic!("{when}: f{number}: {error}"));
        assert!(bytes == pattern(number as u8, 0, count * BLOCK_BYTES), "{when}: f{number} has other bytes");
    }
    let after = fs.status().hot.counters;
    (after.hits - before.hits, after.misses - before.misses)
}

async fn mount(executor: &Executor, rig: &Rig, missing: &[usize]) -> (Fs, Vec<u8>) {
    mount_as(executor, rig, missing, &MountOptions::default()).await
}

/// Returns the file system, and the drives whose part of the zone is outdated.
async fn mount_as(executor: &Executor, rig: &Rig, missing: &[usize], options: &MountOptions) -> (Fs, Vec<u8>) {
    let (fs, mounted) = Fs::mount(executor, &rig.devices(executor, missing), options).await.unwrap();
    perform(&fs, &Operation::Wait(1)).await.unwrap();
    (fs, mounted.doubted_parts)
}

fn standings(fs: &Fs) -> Vec<Standing> {
    fs.status().hot_parts.iter().map(|part| part.standing).collect()
}

const SIX: [usize; 6] = [3, 5, 2, 4, 1, 3];

#[test]
fn each_copy_is_whole_on_one_drive_and_reads_are_served_from_there() {
    with_zone(&array(), async |fs: Fs, rig: Rig, executor: Executor| {
        write_files(&fs, &SIX).await;
        // The emptiest part comes first: 3, 5, 2 and 4 go to a drive each, 1 to the one with 2, and 3 to one of those
        // with 3.
        let used = |fs: &Fs| fs.status().hot_parts.iter().map(|part| part.used).collect::<Vec<u64>>();
        assert_eq!(used(&fs), [6, 5, 3, 4]);
        assert_eq!(standings(&fs), [Standing::Used; DRIVES]);
        fs.unmount().await.unwrap();
        let options = MountOptions { read_only: true, ..MountOptions::default() };
        let events = rig.events();
        let (fs, _) = mount_as(&executor, &rig, &[], &options).await;
        let before = fs.status().traffic.reads;
        assert_eq!(read_files(&fs, &SIX, "looked at").await, (6, 0));
        let status = fs.status();
        // The store has a block of a row on each of three drives; a copy is read at once from one.
        assert_eq!(status.traffic.reads - before, 6, "one read of one drive for each file");
        let hits: Vec<u64> = status.hot_parts.iter().map(|part| part.hits).collect();
        assert_eq!((hits, used(&fs)), (vec![2, 1, 2, 1], vec![6, 5, 3, 4]));
        assert_eq!((rig.events(), standings(&fs)), (events, vec![Standing::Read; DRIVES]), "nothing is written");
        drop(fs);
        let (fs, doubted) = mount(&executor, &rig, &[]).await;
        assert_eq!((doubted, standings(&fs)), (Vec::new(), vec![Standing::Used; DRIVES]));
        assert_eq!(read_files(&fs, &SIX, "mounted").await, (6, 0));
        assert_eq!(fs.scrub_array(true, |_, _| true).await.unwrap().metadata_blocks, 0);
        assert_eq!(rig.broken_rules(), 0);
    });
}

#[test]
fn a_drive_that_is_missing_costs_its_copies_and_is_not_believed_when_it_is_back() {
    for drive in 0..DRIVES {
        with_zone(&array(), async move |fs: Fs, rig: Rig, executor: Executor| {
            write_files(&fs, &SIX).await;
            let files = fs.status().hot.files;
            fs.unmount().await.unwrap();
            let then = rig.contents();
            let (fs, _) = mount(&executor, &rig, &[drive]).await;
            let status = fs.status();
            assert_eq!(status.hot_parts[drive].standing, Standing::GivenUp);
            assert_eq!(status.hot_parts[drive].used, 0, "the records of its copies are dropped");
            assert!(status.hot.files >= files - 2);
            read_files(&fs, &SIX, "without it").await;
            fs.unmount().await.unwrap();
            // Its copies have gone to other drives; then the drive returns as it was.
            let mut now = rig.contents();
            now[drive] = then[drive].clone();
            let rig = Rig::with(now);
            let (fs, _) = mount(&executor, &rig, &[]).await;
            assert_eq!(standings(&fs), [Standing::Used; DRIVES], "it begins anew");
            assert_eq!(fs.status().hot_parts[drive].hits, 0);
            read_files(&fs, &SIX, "back").await;
            assert_eq!(fs.status().hot.counters.damaged, 0, "nothing was read there");
        });
    }
}

/// The drive was away unnoticed between two mounts, and each mount has written since.
#[test]
fn a_drive_that_is_put_back_as_it_was_has_its_copies_dropped() {
    for drive in 0..DRIVES {
        with_zone(&array(), async move |fs: Fs, rig: Rig, executor: Executor| {
            write_files(&fs, &SIX).await;
            fs.unmount().await.unwrap();
            let then = rig.contents();
            let (fs, _) = mount(&executor, &rig, &[]).await;
            let used = fs.status().hot_parts[drive].used;
            fs.unmount().await.unwrap();
            let mut now = rig.contents();
            now[drive] = then[drive].clone();
            let looked = Rig::with(now.clone());
            let options = MountOptions { read_only: true, ..MountOptions::default() };
            let (fs, doubted) = mount_as(&executor, &looked, &[], &options).await;
            assert_eq!((doubted, fs.status().hot_parts[drive].used), (vec![drive as u8], used), "nothing is dropped");
            let (hits, misses) = read_files(&fs, &SIX, "looked at").await;
            assert!(hits + misses == 6 && misses > 0, "what is there is right, and not believed: {hits} and {misses}");
            assert_eq!((fs.scrub_copies(false).await.unwrap(), fs.status().hot_parts[drive].hits), (0, 0));
            drop(fs);
            let rig = Rig::with(now);
            let (fs, doubted) = mount(&executor, &rig, &[]).await;
            assert_eq!((doubted, standings(&fs)), (vec![drive as u8], vec![Standing::Used; DRIVES]));
            let counters = fs.status().hot.counters;
            assert!(counters.went_out > 0 && counters.went_out == counters.came_in, "made anew: {counters:?}");
            assert_eq!(read_files(&fs, &SIX, "mounted").await, (6, 0));
            assert_eq!(fs.status().hot.counters.damaged, 0);
        });
    }
}

/// Alters a block without changing its CRC-32C: adds the polynomial, with its highest power first.
fn forge(block: &mut [u8]) {
    let before = crc32c::crc32c(block);
    let polynomial = 1 | 0x82F6_3B78_u64 << 1;
    polynomial.to_le_bytes().iter().zip(&mut block[40..48]).for_each(|(one, other)| *other ^= one);
    assert_eq!(crc32c::crc32c(block), before);
}

/// Restores a drive to the time when a file of one block had other contents with an equal checksum. Returns whether
/// reads of the file are right.
fn read_after_forgery(sabotage: Option<Sabotage>) -> bool {
    with_zone(&array(), async move |fs: Fs, rig: Rig, executor: Executor| {
        write_files(&fs, &[1]).await;
        let part = fs.status().hot_parts.iter().position(|part| part.used > 0).unwrap();
        fs.unmount().await.unwrap();
        let mut then = rig.contents();
        then[part].corrupt(PART_FIRST, forge);
        let (fs, _) = mount(&executor, &rig, &[]).await;
        fs.unmount().await.unwrap();
        let mut now = rig.contents();
        now[part] = then[part].clone();
        let options = MountOptions { sabotage, ..MountOptions::default() };
        let (fs, _) = Fs::mount(&executor, &Rig::with(now).devices(&executor, &[]), &options).await.unwrap();
        let inode = find(&fs, "f0").unwrap();
        let mut is_right = true;
        for _ in 0..3 {
            is_right &= fs.read(inode, 0, BLOCK_BYTES).await.unwrap() == pattern(0, 0, BLOCK_BYTES);
            perform(&fs, &Operation::Wait(1)).await.unwrap();
        }
        is_right
    })
}

#[test]
fn bytes_of_another_time_are_not_given_even_where_their_checksum_is_right() {
    assert!(read_after_forgery(None));
    assert!(!read_after_forgery(Some(Sabotage::StalePartBelieved)), "the mistake goes unnoticed");
}

#[test]
fn a_drive_that_dies_in_use_costs_its_copies() {
    for drive in 0..DRIVES {
        with_zone(&array(), async move |fs: Fs, rig: Rig, executor: Executor| {
            write_files(&fs, &SIX).await;
            rig.models()[drive].fail_after(0);
            // Files are read before the failure is known; then the drive is written.
            read_files(&fs, &SIX, "dead").await;
            perform(&fs, &Operation::Create("new".into())).await.unwrap();
            for seed in 0..6 {
                perform(&fs, &Operation::WriteOut("new".into(), 0, 9 * BLOCK_BYTES, seed)).await.unwrap();
                perform(&fs, &Operation::Fsync("new".into())).await.unwrap();
            }
            perform(&fs, &Operation::Wait(1)).await.unwrap();
            let part = &fs.status().hot_parts[drive];
            assert_eq!((part.standing, part.used), (Standing::GivenUp, 0));
            let misses = read_files(&fs, &SIX, "without it").await.1;
            perform(&fs, &Operation::Wait(1)).await.unwrap();
            assert_eq!(read_files(&fs, &SIX, "settled").await, (6, 0), "{misses} came in elsewhere");
            fs.unmount().await.unwrap();
            let rig = Rig::with(rig.contents());
            let (fs, _) = mount(&executor, &rig, &[]).await;
            assert_eq!(standings(&fs), [Standing::Used; DRIVES], "it answers again");
            read_files(&fs, &SIX, "answers again").await;
            assert_eq!(fs.status().hot.counters.damaged, 0);
        });
    }
}

#[test]
fn a_block_that_is_altered_is_never_given_and_made_anew() {
    let blocks = |drive: usize| (drive, 2..2 + 1 + PART_BLOCKS);
    for (drive, block) in (0..DRIVES).map(blocks).flat_map(|(drive, all)| all.map(move |block| (drive, block))) {
        with_zone(&array(), async move |fs: Fs, rig: Rig, executor: Executor| {
            write_files(&fs, &SIX).await;
            fs.unmount().await.unwrap();
            let mut contents = rig.contents();
            if !contents[drive].used_blocks().contains(&block) {
                return;
            }
            contents[drive].corrupt(block, |bytes| bytes[100] ^= 64);
            let when = format!("block {block} of drive {drive}");
            let is_stamp = block + 1 == PART_FIRST;
            let rig = Rig::with(contents);
            let options = MountOptions { read_only: true, ..MountOptions::default() };
            let (fs, doubted) = mount_as(&executor, &rig, &[], &options).await;
            assert_eq!(doubted.len(), usize::from(is_stamp), "{when}");
            assert_eq!(fs.scrub_copies(false).await.unwrap(), u64::from(!is_stamp), "{when}");
            drop(fs);
            let (fs, _) = mount(&executor, &rig, &[]).await;
            read_files(&fs, &SIX, &when).await;
            perform(&fs, &Operation::Wait(1)).await.unwrap();
            let counters = fs.status().hot.counters;
            assert_eq!(counters.damaged, u64::from(!is_stamp), "{when}");
            assert!(counters.went_out > 0 && counters.went_out == counters.came_in, "{when}: {counters:?}");
            assert_eq!(read_files(&fs, &SIX, &when).await, (6, 0));
            assert_eq!(fs.scrub_copies(false).await.unwrap(), 0, "{when}");
        });
    }
}

#[test]
fn scrub_repairs_what_is_altered_and_a_stamp_too() {
    with_zone(&array(), async move |fs: Fs, rig: Rig, _: Executor| {
        write_files(&fs, &SIX).await;
        for block in [PART_FIRST - 1, PART_FIRST] {
            rig.models()[1].alter(|contents| contents.corrupt(block, |bytes| bytes[9] ^= 1));
            for (repairs, found) in [(false, 1), (true, 1), (false, 0)] {
                let scrubbed = fs.scrub_array(repairs, |_, _| true).await.unwrap();
                assert_eq!(scrubbed.metadata_blocks, found, "block {block}, {repairs}");
                perform(&fs, &Operation::Wait(1)).await.unwrap();
            }
        }
        assert_eq!(read_files(&fs, &SIX, "repaired").await, (6, 0));
    });
}

/// Replaces drive `old` by a drive of `geometry`, and mounts with the devices of that moment.
async fn replace(
    executor: &Executor,
    rig: &Rig,
    missing: &mut Vec<usize>,
    old: usize,
    geometry: Geometry,
) -> (Fs, Rig) {
    let rig = Rig::with(rig.contents().into_iter().chain([Contents::new(geometry)]).collect());
    let last = rig.models().len() - 1;
    missing.push(old);
    let (fs, _) = mount(executor, &rig, &[missing.as_slice(), &[last]].concat()).await;
    let new = rig.devices(executor, &[]).pop().unwrap();
    let number = if old < DRIVES { old } else { old - 1 };
    let uuid = Uuid::from_u128(NEW.as_u128() + last as u128);
    fs.replace_drive(number as u8, Some((&new, uuid)), true, |_| true).await.unwrap();
    perform(&fs, &Operation::Wait(1)).await.unwrap();
    (fs, rig)
}

fn part_of_one(fs: &Fs) -> PartStatus {
    fs.status().hot_parts[1].clone()
}

/// Checks that a drive takes over the part if it has space for it, whatever its predecessor had.
#[test]
fn after_a_replacement_the_part_is_on_the_new_drive_where_that_has_room() {
    with_zone(&array(), async |fs: Fs, rig: Rig, executor: Executor| {
        write_files(&fs, &SIX).await;
        fs.unmount().await.unwrap();
        // The devices: four drives, the metadata, then the replacements. Drive 4 is device 5.
        let mut missing = Vec::new();
        let (mut rig, mut at) = (rig, 1);
        for (geometry, has_room) in [(zoned(2), true), (zoned(1), false), (zoned(3), true), (zoned(0), false)] {
            let fs;
            (fs, rig) = replace(&executor, &rig, &mut missing, at, geometry).await;
            at = rig.models().len() - 1;
            let expected = if has_room { Standing::Used } else { Standing::GivenUp };
            let part = part_of_one(&fs);
            assert_eq!((part.drive as usize, part.standing), (at - 1, expected), "{geometry:?}");
            read_files(&fs, &SIX, "replaced").await;
            // New groups lie behind the part.
            write_files(&fs, &[9, 9, 9, 9, 9, 9]).await;
            write_files(&fs, &SIX).await;
            assert_eq!(read_files(&fs, &SIX, "written").await.0, 6);
            let part = part_of_one(&fs);
            assert_eq!((part.used > 0, part.hits > 0), (has_room, has_room), "{part:?}");
            fs.unmount().await.unwrap();
            let (fs, doubted) = mount(&executor, &rig, &missing).await;
            assert_eq!((doubted, part_of_one(&fs).standing), (Vec::new(), expected));
            assert_eq!(read_files(&fs, &SIX, "mounted again").await, (6, 0));
            assert_eq!(fs.scrub_array(false, |_, _| true).await.unwrap().metadata_blocks, 0);
            // New groups lie behind the part after a mount, too.
            write_files(&fs, &[9, 9, 9, 9, 9, 9]).await;
            write_files(&fs, &SIX).await;
            fs.unmount().await.unwrap();
            let new = rig.devices(&executor, &[]).pop().unwrap();
            let in_part = ZoneHeader::decode(&new.read(ZONE_BLOCKS, 1).await.unwrap_or_default());
            assert_eq!(in_part.is_none(), has_room, "the first zones are taken first: {in_part:?}");
            assert_eq!(rig.broken_rules(), 0);
        }
    });
}

/// Checks a power cut after every event of a replacement, which is then completed: the hot zone is used, and no data is
/// wrong.
#[test]
fn a_replacement_that_is_cut_anywhere_goes_on() {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let contents = with_zone(&array(), async move |fs: Fs, rig: Rig, _: Executor| {
        write_files(&fs, &SIX).await;
        fs.unmount().await.unwrap();
        rig.contents()
    });
    let done = executor.run(async move {
        let rig = Rig::with(contents.into_iter().chain([Contents::new(zoned(2))]).collect());
        let (fs, _) = mount(&own, &rig, &[1, 5]).await;
        rig.keep_snapshots();
        let new = rig.devices(&own, &[]).pop().unwrap();
        fs.replace_drive(1, Some((&new, NEW)), true, |_| true).await.unwrap();
        perform(&fs, &Operation::Wait(1)).await.unwrap();
        let snapshots = rig.take_snapshots();
        assert!(snapshots.len() > 20, "{}", snapshots.len());
        for (number, snapshot) in snapshots.iter().enumerate() {
            for survives in [false, true] {
                let rig = Rig::with(snapshot.iter().map(|one| one.cut(|_| survives)).collect());
                let new = rig.devices(&own, &[]).pop().unwrap();
                let is_begun = imbrex_fs::core::look(&new).await.is_ok();
                let (fs, _) = mount(&own, &rig, if is_begun { &[1] } else { &[1, 5] }).await;
                let when = format!("cut after event {number}, {survives}");
                read_files(&fs, &SIX, &when).await;
                match fs.replace_drive(1, None, false, |_| true).await {
                    Err(FsError::Invalid(why)) if why.contains("no drive of that number") => {}
                    Err(FsError::Invalid(_)) => {
                        fs.replace_drive(1, Some((&new, NEW)), true, |_| true).await.map(drop).unwrap();
                    }
                    outcome => drop(outcome.unwrap()),
                }
                perform(&fs, &Operation::Wait(1)).await.unwrap();
                assert_eq!(
                    (part_of_one(&fs).standing, fs.status().hot.counters.damaged),
                    (Standing::Used, 0),
                    "{when}"
                );
                read_files(&fs, &SIX, &when).await;
                assert_eq!(rig.broken_rules(), 0, "{when}");
            }
        }
    });
    executor.shut_down();
    done.unwrap();
}

/// Checks that file contents in the zone, copies of zone headers among them, are not taken for stripe groups. The zone
/// must exist afterwards, also on a replacement drive, and also if the metadata are lost twice.
#[test]
fn salvage_takes_the_zone_for_no_group_and_keeps_it() {
    with_zone(&array(), async |fs: Fs, rig: Rig, executor: Executor| {
        write_files(&fs, &SIX).await;
        fs.unmount().await.unwrap();
        let mut missing = Vec::new();
        let (fs, rig) = replace(&executor, &rig, &mut missing, 1, zoned(2)).await;
        // A header of a group with a higher sequence, wherever a zone begins in the parts.
        let forged = forged_header(&fs, &rig, &executor).await;
        perform(&fs, &Operation::Create("forged".into())).await.unwrap();
        let inode = find(&fs, "forged").unwrap();
        let bytes = forged.repeat(PART_BLOCKS as usize / 4);
        fs.write(inode, 0, &bytes).await.unwrap();
        perform(&fs, &Operation::Sync).await.unwrap();
        read_often(&fs, inode).await;
        fs.unmount().await.unwrap();
        let mut contents = rig.contents();
        for drive in [0, 2, 3, 5] {
            // The second zone begins in the part, too.
            contents[drive].corrupt(ZONE_BLOCKS, |block| block.copy_from_slice(&forged));
        }
        for time in 0..2 {
            let rig = Rig::with(contents.clone());
            let drives = rig.devices(&executor, &[1, 4]);
            let metadata = Device::new(&executor, "new", Box::new(Model::new(array().metadata[0])));
            let told = salvage(&drives, &metadata, &SalvageOptions::default(), |_| {}).await.unwrap();
            assert_eq!((told.files, told.incomplete.len(), told.unreadable_groups), (7, 0, 0), "time {time}");
            let devices: Vec<Device> = drives.into_iter().chain([metadata]).collect();
            let (fs, _) = Fs::mount(&executor, &devices, &MountOptions::default()).await.unwrap();
            perform(&fs, &Operation::Wait(1)).await.unwrap();
            assert_eq!(standings(&fs), [Standing::Used; DRIVES], "time {time}");
            read_files(&fs, &SIX, "salvaged").await;
            assert!(fs.read(inode, 0, bytes.len()).await.unwrap() == bytes);
            // Groups that are opened now do not lie in the parts.
            write_files(&fs, &[9, 9, 9, 9, 9, 9]).await;
            write_files(&fs, &SIX).await;
            assert_eq!(read_files(&fs, &SIX, "written").await.0, 6);
            fs.unmount().await.unwrap();
            assert_eq!(rig.broken_rules(), 0);
            contents = rig.contents();
        }
    });
}

async fn read_often(fs: &Fs, inode: Inode) {
    for _ in 0..4 {
        fs.read(inode, 0, 1 << 20).await.unwrap();
        perform(fs, &Operation::Wait(1)).await.unwrap();
    }
}

/// Returns a zone header of the file system with a higher sequence: it claims that its group was begun later.
async fn forged_header(fs: &Fs, rig: &Rig, executor: &Executor) -> Vec<u8> {
    perform(fs, &Operation::Sync).await.unwrap();
    let drive = rig.devices(executor, &[]).swap_remove(0);
    for zone in 2..14 {
        let block = drive.read(zone * ZONE_BLOCKS, 1).await.unwrap_or_default();
        if let Some(header) = ZoneHeader::decode(&block) {
            let mut layout = header.layout.clone();
            layout.sequence += 1000;
            return ZoneHeader { layout, ..header }.encode();
        }
    }
    panic!("no zone has a header");
}

#[test]
fn drives_that_cannot_give_so_much_are_refused_with_how_much_they_could() {
    let rest = Trial { metadata: Vec::new(), drives: 1, parity: 0, ..array() };
    let alone = vec![("hot_files".to_string(), "alone".to_string())];
    let two = vec![array().metadata[0]; 2];
    // 29 blocks of each of four drives are 464 KiB.
    for (trial, word) in [
        (Trial { hot_blocks: 117, ..array() }, "464 KiB at most"),
        (Trial { geometry: zoned(0), hot_blocks: 1, ..array() }, "0 B at most"),
        (Trial { options: alone, metadata: two, ..array() }, "a hot zone on drives holds copies"),
        (rest, "has the metadata on it"),
        (Trial { store: Some("strict-append"), drives: 1, parity: 0, ..array() }, "has no hot zone"),
    ] {
        let executor = Executor::in_virtual_time();
        let own = executor.clone();
        let outcome = executor.run(async move { fresh(&own, &trial).await.map(drop) }).unwrap();
        let words = outcome.unwrap_err().to_string();
        assert!(words.contains(word), "{words}");
    }
    with_zone(
        &Trial { metadata: vec![array().metadata[0]; 2], ..array() },
        async |fs: Fs, rig: Rig, executor: Executor| {
            assert!(fs.superblock().options.is_empty(), "with two copies of the metadata it has copies too");
            fs.unmount().await.unwrap();
            let options =
                MountOptions { options: vec![("hot_files".into(), "alone".into())], ..MountOptions::default() };
            let refused = Fs::mount(&executor, &rig.devices(&executor, &[]), &options).await.map(drop);
            assert!(refused.unwrap_err().to_string().contains("a hot zone on drives holds copies"));
        },
    );
}
