//! Goal: a scrub with repair ends although more blocks are damaged than parity can reconstruct. It leaves the store
//! usable: writes find the free space, and the unmount succeeds. Method: in a half full store, blocks of two drives of
//! arrays that tolerate the loss of one are altered, in the same rows. A model of the altered blocks tells which files
//! are readable.

use imbrex_fs::core::MountOptions;
use std::cell::Cell;
use std::rc::Rc;

use imbrex_fs::device::model::Model;
use imbrex_fs::device::{BLOCK_BYTES, Backend, Device, DeviceFault, Geometry, Kind, Operation as Asked, Outcome};
use imbrex_fs::verify::cuts::fresh;
use imbrex_fs::verify::operation::{find, pattern};
use imbrex_fs::verify::rig::Rig;
use imbrex_fs::verify::trial::Trial;
use imbrex_fs::verify::{Operation, perform};
use imbrex_fs::{Executor, Fs, FsError};

const ZONE_BLOCKS: u64 = 16;
/// Most polls of tasks in a run: a run that ends takes a hundredth of them.
const POLLS_MAX: u64 = 50_000_000;
const FILE_BYTES: usize = 7 * BLOCK_BYTES + 100;

fn trials() -> Vec<(&'static str, Trial)> {
    let array = |drives: usize, zones: u32, active_max| {
        let kind = Kind::Zoned { zone_blocks: ZONE_BLOCKS, zones, conventional: 0, active_max };
        let trial = Trial::new(Geometry { blocks: u64::from(zones) * ZONE_BLOCKS, kind }, Vec::new());
        let metadata = vec![Geometry { blocks: 600, kind: Kind::Plain }];
        Trial { drives, parity: 1, store: Some("log"), metadata, ..trial }
    };
    vec![
        ("a mirror", array(2, 16, None)),
        ("three and one parity", array(4, 16, None)),
        ("two zones open", array(3, 12, Some(2))),
    ]
}

async fn written(fs: &Fs, name: &str, bytes: usize, seed: u8) {
    perform(fs, &Operation::Create(name.into())).await.unwrap_or_default();
    perform(fs, &Operation::Truncate(name.into(), 0)).await.unwrap();
    let write = Operation::WriteOut(name.into(), 0, bytes, seed);
    perform(fs, &write).await.unwrap_or_else(|error| panic!("{name}: {error}; {:?}", fs.statfs()));
}

/// Returns the files that can be read; checks their bytes.
async fn readable(fs: &Fs, files: u8) -> Vec<u8> {
    let mut readable = Vec::new();
    for number in 0..files {
        if let Ok(read) = fs.read(find(fs, &format!("f{number}")).unwrap(), 0, 1 << 20).await {
            assert!(read == pattern(number, 0, FILE_BYTES), "f{number} has other bytes");
            readable.push(number);
        }
    }
    readable
}

#[test]
fn what_is_damaged_beyond_parity_is_named_once_and_takes_no_room() {
    for (name, trial) in trials() {
        // One block in `every` is altered, on two drives.
        for (first, every) in [(1, 1), (2, 3), (1, 7)] {
            let executor = Executor::in_virtual_time();
            let own = executor.clone();
            let trial = trial.clone();
            let run = async move {
                let (fs, rig) = fresh(&own, &trial).await.unwrap();
                let room = fs.statfs().free;
                let mut files = 0;
                while fs.statfs().free > room / 2 {
                    written(&fs, &format!("f{files}"), FILE_BYTES, files).await;
                    files += 1;
                }
                fs.unmount().await.unwrap();
                let mut contents = rig.contents();
                for drive in &mut contents[..2] {
                    let used = drive.used_blocks();
                    // Headers of zones stay.
                    let meant =
                        |block: &u64| block % ZONE_BLOCKS > 1 && (block / ZONE_BLOCKS + block) % every == first % every;
                    for block in used.into_iter().filter(meant) {
                        drive.corrupt(block, |bytes| bytes[9] ^= 1);
                    }
                }
                let rig = Rig::with(contents);
                let devices = rig.devices(&own, &[]);
                let options = MountOptions { bounds: Some(trial.bounds), ..MountOptions::default() };
                let fs = Fs::mount(&own, &devices, &options).await.unwrap().0;
                let before = readable(&fs, files).await;
                let found = fs.scrub_array(true, |_, _| true).await.unwrap();
                assert!(!found.lost.is_empty(), "{name}: {found:?}");
                let unreadable: std::collections::BTreeSet<u32> = found.lost.iter().map(|(inode, _)| *inode).collect();
                assert_eq!(unreadable.len() + before.len(), usize::from(files), "{name}: each damaged file is named");
                for round in 0..3 {
                    let again = fs.scrub_array(true, |_, _| true).await.unwrap();
                    let sorted = |mut lost: Vec<(u32, u64)>| {
                        lost.sort_unstable();
                        lost
                    };
                    assert_eq!(sorted(again.lost), sorted(found.lost.clone()), "{name}, round {round}");
                    assert_eq!(readable(&fs, files).await, before, "{name}, round {round}");
                }
                // As much space is free as before.
                let largest = fs.statfs().free / 4 * 3 * BLOCK_BYTES as u64;
                for round in 0..4 {
                    written(&fs, "new", largest as usize, round).await;
                    perform(&fs, &Operation::Fsync("new".into())).await.unwrap();
                }
                // If all files are rewritten, nothing is damaged any more.
                for number in 0..files {
                    written(&fs, &format!("f{number}"), FILE_BYTES, number).await;
                }
                fs.sync().await.unwrap();
                let last = fs.scrub_array(true, |_, _| true).await.unwrap();
                assert_eq!((last.lost, last.wrong_rows + last.incomplete_rows), (Vec::new(), 0), "{name}");
                fs.unmount().await.unwrap_or_else(|error| panic!("{name}: it is not unmounted: {error}"));
                assert_eq!(rig.broken_rules(), 0, "{name}");
            };
            let ended = executor.run_at_most(POLLS_MAX, run).unwrap();
            assert!(ended.is_some(), "{name}, one in {every}: it does not end");
            executor.shut_down();
        }
    }
}

/// A drive with one unreadable block.
struct Scratched {
    model: Model,
    block: Rc<Cell<u64>>,
    failed: Vec<(u64, Outcome)>,
}

impl Backend for Scratched {
    fn geometry(&self) -> Geometry {
        self.model.geometry()
    }

    fn submit(&mut self, now_ns: u64, number: u64, operation: Asked) {
        match &operation {
            Asked::Read { block, blocks } if (*block..block + blocks).contains(&self.block.get()) => {
                self.failed.push((number, Err(DeviceFault::new("a scratch"))));
            }
            _ => self.model.submit(now_ns, number, operation),
        }
    }

    fn next_event_ns(&mut self, now_ns: u64) -> Option<u64> {
        if self.failed.is_empty() { self.model.next_event_ns(now_ns) } else { Some(now_ns) }
    }

    fn answers(&mut self, now_ns: u64, answers: &mut Vec<(u64, Outcome)>) {
        answers.append(&mut self.failed);
        self.model.answers(now_ns, answers);
    }

    fn head_position(&self) -> u64 {
        self.model.head_position()
    }
}

/// Returns the bytes of file `number`, which no other file has.
fn block_of(number: u64) -> Vec<u8> {
    (number + 1).to_le_bytes().repeat(BLOCK_BYTES / 8)
}

async fn written_block(fs: &Fs, number: u64) -> Result<(), FsError> {
    let inode = find(fs, &format!("f{number}"))?;
    fs.open(inode)?;
    fs.write(inode, 0, &block_of(number)).await?;
    fs.close(inode).await
}

/// Fills the drive with files of a block. Of the zone with the unreadable file, all other files are deleted; of each
/// other zone, half. So that zone promises the largest gain, but cannot be emptied; the deleted blocks of the others
/// must become free again.
#[test]
fn a_zone_that_cannot_be_read_does_not_keep_the_others_from_being_emptied() {
    let zoned = |conventional| Kind::Zoned { zone_blocks: ZONE_BLOCKS, zones: 24, conventional, active_max: None };
    let geometry = |conventional| Geometry { blocks: 24 * ZONE_BLOCKS, kind: zoned(conventional) };
    let append = Trial::new(geometry(8), Vec::new());
    let log = Trial {
        store: Some("log"),
        metadata: vec![Geometry { blocks: 600, kind: Kind::Plain }],
        ..Trial::new(geometry(0), Vec::new())
    };
    for (name, trial) in [("strict-append", append), ("log", log)] {
        let executor = Executor::in_virtual_time();
        let own = executor.clone();
        let run = async move {
            let rig = Rig::new(&trial);
            rig.make(&own, &trial).await.unwrap();
            let block = Rc::new(Cell::new(u64::MAX));
            let mut devices = rig.devices(&own, &[]);
            let scratched = Scratched { model: rig.models()[0].clone(), block: block.clone(), failed: Vec::new() };
            devices[0] = Device::new(&own, "scratched", Box::new(scratched));
            let options = MountOptions { bounds: Some(trial.bounds), ..MountOptions::default() };
            let fs = Fs::mount(&own, &devices, &options).await.unwrap().0;
            let fill = async |first: u64| {
                for number in first.. {
                    perform(&fs, &Operation::Create(format!("f{number}"))).await.unwrap();
                    match written_block(&fs, number).await {
                        Ok(()) => {}
                        Err(FsError::NoSpace) => return number,
                        Err(error) => panic!("{name}: f{number}: {error}"),
                    }
                }
                unreachable!("it is full some time")
            };
            let files = fill(0).await;
            fs.sync().await.unwrap();
            // A file in the middle, and the place of its bytes.
            let bad = files / 2;
            let contents = rig.contents();
            let place_of = |number: u64| {
                let mut used = contents[0].used_blocks().into_iter();
                used.find(|at| contents[0].block(*at) == Some(&block_of(number)[..])).unwrap()
            };
            let place = place_of(bad);
            block.set(place);
            let zone_of = |number: u64| place_of(number) / ZONE_BLOCKS;
            let mut deleted = 0;
            for number in (0..files).filter(|number| *number != bad) {
                if zone_of(number) == place / ZONE_BLOCKS || number % 2 == 0 {
                    perform(&fs, &Operation::Unlink(format!("f{number}"))).await.unwrap();
                    deleted += u64::from(zone_of(number) != place / ZONE_BLOCKS);
                }
            }
            let again = fill(1000).await - 1000;
            assert!(again + 2 * ZONE_BLOCKS >= deleted, "{name}: {again} files, and {deleted} were deleted elsewhere");
            assert!(fs.read(find(&fs, &format!("f{bad}")).unwrap(), 0, 1).await.is_err(), "{name}: it is told");
            // A file that was accepted before the read error was known may find no space in the end.
            perform(&fs, &Operation::Unlink(format!("f{}", 1000 + again))).await.unwrap();
            fs.sync().await.unwrap();
            fs.unmount().await.unwrap();
        };
        assert!(executor.run_at_most(POLLS_MAX, run).unwrap().is_some(), "{name}: it does not end");
        executor.shut_down();
    }
}
