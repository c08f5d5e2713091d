//! Goal: with `Bounds::checkpoint_ns`, a checkpoint is taken at the end of each interval with changes, and at most one
//! more after the last change. Method: a file system in memory, in virtual time, whose log never fills; files are created, and checkpoints
//! counted. A mount afterwards finds all files.

use imbrex_fs::core::{Bounds, Caller, MakeOptions, MountOptions, make};
use imbrex_fs::device::memory::Memory;
use imbrex_fs::device::{Device, Geometry, Kind};
use imbrex_fs::format::file_type::REGULAR;
use imbrex_fs::namespace::ROOT;
use imbrex_fs::{Executor, Fs};

const SECOND_NS: u64 = 1_000_000_000;
const CALLER: Caller = Caller { uid: 1000, gid: 1000 };

/// Returns the numbers of checkpoints, since the mount, after ten seconds with a new file in each, and after ten more
/// without changes; and the number of blocks of the log in use then.
fn checkpoints(interval_ns: Option<u64>) -> (u64, u64, u64) {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let counted = executor.run(async move {
        let kind = Kind::Caveat { isolation: 4, no_overlap: 2 };
        let data = Device::new(&own, "disk", Box::new(Memory::new(Geometry { blocks: 20 * 256, kind })));
        let plain = Geometry { blocks: 4096, kind: Kind::Plain };
        let metadata = Device::new(&own, "flash", Box::new(Memory::new(plain)));
        make(&data, Some(&metadata), &MakeOptions::default(), 0).await.unwrap();
        let devices = [data, metadata];
        let bounds = Bounds { checkpoint_ns: interval_ns, commit_ns: SECOND_NS / 10, ..Bounds::default() };
        let options = MountOptions { bounds: Some(bounds), ..MountOptions::default() };
        // The first interval begins with the mount, and not with the clock.
        own.sleep(100 * SECOND_NS).await;
        let (fs, _) = Fs::mount(&own, &devices, &options).await.unwrap();
        let begun = fs.status().counters.checkpoints;
        for number in 0..10 {
            let name = format!("file {number}");
            fs.make_node(ROOT, name.as_bytes(), REGULAR | 0o644, 0, CALLER).await.unwrap();
            own.sleep(SECOND_NS).await;
        }
        let changing = fs.status().counters.checkpoints - begun;
        own.sleep(10 * SECOND_NS).await;
        let idle = fs.status().counters.checkpoints - begun - changing;
        let used = fs.status().log.0;
        fs.unmount().await.unwrap();
        let (fs, _) = Fs::mount(&own, &devices, &MountOptions::default()).await.unwrap();
        assert_eq!(fs.status().files, 11, "ten files and the root directory");
        (changing, idle, used)
    });
    executor.shut_down();
    counted.unwrap()
}

#[test]
fn checkpoints_are_taken_at_intervals_with_changes() {
    let (changing, idle, used) = checkpoints(None);
    assert_eq!((changing, idle), (0, 0), "the log is not full");
    assert!(used > 0, "no checkpoint has shortened the log");
    let (changing, idle, used) = checkpoints(Some(2 * SECOND_NS + SECOND_NS / 2));
    assert!((3..=4).contains(&changing), "four intervals end in ten seconds: {changing}");
    assert!(idle <= 1 && used == 0, "the last changes, and none after them: {idle}, {used} blocks");
    // Seven and fourteen seconds after the mount.
    assert_eq!(checkpoints(Some(7 * SECOND_NS)), (1, 1, 0));
    let (changing, idle, used) = checkpoints(Some(u64::MAX));
    assert_eq!((changing, idle), (0, 0), "an interval that never ends");
    assert!(used > 0);
}

#[test]
fn the_smallest_interval_gives_a_checkpoint_for_each_change_and_no_more() {
    let (changing, idle, used) = checkpoints(Some(1));
    assert!((10..=20).contains(&changing), "a file, and its record, in each second: {changing}");
    assert_eq!((idle, used), (0, 0));
}
