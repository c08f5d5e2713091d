//! Goal: stripe groups whose drives do not report how far they are written are appended to after a clean unmount, and
//! only then. Their remaining space is not lost, and a power cut at any moment overwrites no block of a file. Method:
//! small arrays of drives without zones, and of drives with conventional and other zones. Alternating mounts and
//! unmounts are compared with one long mount; the power is cut after every event around an unmount, a mount and the
//! first append.

use imbrex_fs::core::{MountOptions, Sabotage};
use imbrex_fs::device::model::Contents;
use imbrex_fs::device::{Geometry, Kind};
use imbrex_fs::format::superblock::{FORMAT, Superblock};
use imbrex_fs::verify::cuts::{Tally, judge};
use imbrex_fs::verify::operation::find;
use imbrex_fs::verify::rig::Rig;
use imbrex_fs::verify::trial::Trial;
use imbrex_fs::verify::{Operation, Toy, arrays, perform};
use imbrex_fs::{Bounds, Executor, Fs};

use crate::support::sequences::on;
use crate::support::superblocks::make_older;

/// Returns arrays in which some drives, or some zones, do not report how far they are written; and one in which all do.
fn toys() -> Vec<Toy> {
    let arrays = arrays();
    let some = Kind::Zoned { zone_blocks: 8, zones: 12, conventional: 6, active_max: None };
    let with = |name, kind, blocks, toy: &Toy| (name, Trial { geometry: Geometry { blocks, kind }, ..toy.1.clone() });
    vec![
        arrays[4].clone(),
        with("conventional zones beside others", some, 96, &arrays[2]),
        with("drives without zones, two parity", Kind::Plain, 160, &arrays[3]),
        arrays[2].clone(),
    ]
}

async fn mounted(executor: &Executor, rig: &Rig, missing: &[usize]) -> Fs {
    // One of the tests has a file system of an older format.
    let options = MountOptions { upgrades: true, ..MountOptions::default() };
    Fs::mount(executor, &rig.devices(executor, missing), &options).await.unwrap().0
}

/// Writes a file of a block.
async fn write_one(fs: &Fs, number: usize) {
    let path = format!("f{number}");
    perform(fs, &Operation::Create(path.clone())).await.unwrap();
    perform(fs, &Operation::WriteOut(path, 0, 4096, number as u8)).await.unwrap();
}

/// Returns the number of groups, and of those that could still be opened.
fn groups(fs: &Fs) -> (usize, u64) {
    let status = fs.status();
    (status.zones.len(), status.usage.free_runs)
}

const ROUNDS: usize = 14;

#[test]
fn mounting_and_unmounting_costs_no_room() {
    for (name, trial) in toys() {
        let kept = on(&trial, async |fs, _, _| {
            for round in 0..ROUNDS {
                write_one(&fs, round).await;
                fs.sync().await.unwrap();
            }
            groups(&fs)
        });
        let again = on(&trial, async |mut fs, rig, executor| {
            for round in 0..ROUNDS {
                write_one(&fs, round).await;
                fs.unmount().await.unwrap();
                fs = mounted(&executor, &rig, &[]).await;
            }
            for round in 0..ROUNDS {
                let inode = find(&fs, &format!("f{round}")).unwrap();
                assert_eq!(fs.read(inode, 0, 4096).await.unwrap().len(), 4096);
            }
            assert_eq!(rig.broken_rules(), 0);
            groups(&fs)
        });
        assert_eq!(again, kept, "{name}: groups that there are, and that could still be opened");
    }
}

/// Returns small appends before, between and after mounts.
fn with_mounts(mounts: usize) -> Vec<Operation> {
    let write = |path: &str, blocks: usize, seed: u8| {
        let path = path.to_string();
        [
            Operation::Create(path.clone()),
            Operation::WriteOut(path.clone(), 0, 4096 * blocks, seed),
            Operation::Fsync(path),
        ]
    };
    let mut operations: Vec<Operation> = write("a", 1, 1).into_iter().chain(write("b", 5, 2)).collect();
    for round in 0..mounts {
        operations.push(Operation::Remount);
        let seed = 10 * round as u8;
        // A write that is not durable before the next mount, and one that is.
        let begin = |path: &str, seed| Operation::WriteOut(path.into(), 4096 * (round as u64), 4096, seed);
        operations.push(Operation::Together(vec![begin("a", seed + 2), begin("b", seed + 3)]));
        operations.extend(write(&format!("f{round}"), 2, seed + 4));
        operations.push(Operation::WriteOut("a".into(), 0, 4096, seed + 5));
    }
    operations
}

#[test]
fn whatever_moment_the_power_is_cut_at_around_mounts_nothing_is_written_over() {
    for (name, usual) in toys() {
        let smallest = Trial { bounds: Bounds::smallest(), ..usual.clone() };
        for (bounds, trial) in [("usual", usual), ("smallest", smallest)] {
            let Tally { cuts, states } =
                judge(&trial, &with_mounts(2)).unwrap_or_else(|why| panic!("{name}, {bounds} bounds: {why}"));
            println!("{name}, {bounds} bounds: {cuts} cuts, {states} states");
            assert!(states > 100, "{name}, {bounds} bounds: {states} states");
        }
    }
}

#[test]
fn appending_before_what_was_told_is_forgotten_is_caught() {
    let is_caught = |(_, trial): &Toy| {
        let trial = Trial { sabotage: Some(Sabotage::RowsForgottenLate), ..trial.clone() };
        judge(&trial, &with_mounts(2)).is_err_and(|why| why.contains("written over"))
    };
    let caught: Vec<bool> = toys().iter().map(is_caught).collect();
    assert_eq!(caught, [true, true, true, false], "the last array has drives that tell everything");
}

/// Makes an array with a file in an open group, unmounted cleanly or not; returns the contents of its devices before
/// and after that file.
fn with_a_file(in_order: bool) -> (Vec<Contents>, Vec<Contents>) {
    on(&toys()[0].1, async move |fs, rig, _| {
        write_one(&fs, 0).await;
        fs.sync().await.unwrap();
        let before = rig.contents();
        write_one(&fs, 1).await;
        fs.sync().await.unwrap();
        if in_order {
            fs.unmount().await.unwrap();
        }
        (before, rig.contents())
    })
}

/// Data blocks of a full group of one and of two columns, with fifteen rows.
const FULL: [u64; 2] = [15, 30];

/// Results of mounting devices and writing a file.
struct Found {
    /// Number of groups before the write that can be appended to.
    open: usize,
    /// Number of groups opened for the file.
    opened: usize,
    /// Contents of the devices after a clean unmount.
    after: Vec<Contents>,
}

fn with_another_file(contents: &[Contents], missing: &[usize]) -> Found {
    let (executor, contents, missing) = (Executor::in_virtual_time(), contents.to_vec(), missing.to_vec());
    let own = executor.clone();
    let done = executor.run(async move {
        let rig = Rig::with(contents);
        let fs = mounted(&own, &rig, &missing).await;
        let before = groups(&fs).0;
        let open = fs.status().zones.iter().filter(|(written, _)| !FULL.contains(written)).count();
        let names = fs.list(imbrex_fs::namespace::ROOT, 2, usize::MAX).unwrap().len();
        write_one(&fs, names).await;
        for number in 0..=names {
            let inode = find(&fs, &format!("f{number}")).unwrap();
            let expected = imbrex_fs::verify::operation::pattern(number as u8, 0, 4096);
            assert_eq!(fs.read(inode, 0, 4096).await, Ok(expected), "file {number}");
        }
        let opened = groups(&fs).0 - before;
        fs.unmount().await.unwrap();
        Found { open, opened, after: rig.contents() }
    });
    executor.shut_down();
    done.unwrap()
}

fn is_same(one: &Contents, other: &Contents) -> bool {
    let blocks = [one.used_blocks(), other.used_blocks()].concat();
    blocks.iter().all(|block| one.block(*block) == other.block(*block))
}

#[test]
fn only_after_an_unmount_in_order_a_group_is_appended_to() {
    let (_, in_order) = with_a_file(true);
    assert_eq!(with_another_file(&in_order, &[]).opened, 0);
    let (_, cut) = with_a_file(false);
    assert_eq!(with_another_file(&cut, &[]).opened, 1);
}

#[test]
fn a_mount_that_changes_nothing_forgets_nothing() {
    let (_, contents) = with_a_file(true);
    let (executor, own_contents) = (Executor::in_virtual_time(), contents.clone());
    let own = executor.clone();
    let after = executor.run(async move {
        let rig = Rig::with(own_contents);
        let options = MountOptions { read_only: true, ..MountOptions::default() };
        let (fs, _) = Fs::mount(&own, &rig.devices(&own, &[]), &options).await.unwrap();
        assert_eq!(fs.read(find(&fs, "f1").unwrap(), 0, 4096).await.unwrap().len(), 4096);
        fs.unmount().await.unwrap();
        rig.contents()
    });
    let after = after.unwrap();
    assert!(after.iter().zip(&contents).all(|(one, other)| is_same(one, other)));
    assert_eq!(with_another_file(&after, &[]).opened, 0);
}

#[test]
fn a_group_is_closed_where_a_drive_of_it_is_missing_or_as_it_once_was() {
    let (before, contents) = with_a_file(true);
    for drive in 0..3 {
        assert!(!is_same(&before[drive], &contents[drive]), "the group lies on each drive");
        let mut stale = contents.clone();
        stale[drive] = before[drive].clone();
        // Data whose records lie on that drive is also moved to another group.
        let found = with_another_file(&stale, &[]);
        assert!(found.open == 0 && found.opened > 0, "drive {drive} as it once was");
        // Groups opened meanwhile are appended to afterwards; the first one is not, because its record of rows was
        // removed.
        let found = with_another_file(&contents, &[drive]);
        assert_eq!((found.open, found.opened), (0, 1), "without drive {drive}");
        assert_eq!(with_another_file(&found.after, &[]).open, 1, "drive {drive} is back");
    }
}

#[test]
fn groups_of_the_format_before_are_closed_once() {
    let (_, mut contents) = with_a_file(false);
    let metadata = contents.len() - 1;
    (0..2).for_each(|block| contents[metadata].corrupt(block, |block| make_older(block, 7)));
    let format = |contents: &[Contents]| Superblock::decode(contents[metadata].block(0).unwrap()).unwrap().format;
    assert_eq!(format(&contents), 7);
    let Found { open, opened, after } = with_another_file(&contents, &[]);
    assert_eq!((open, opened, format(&after)), (0, 1, FORMAT));
    assert_eq!(with_another_file(&after, &[]).opened, 0);
}
