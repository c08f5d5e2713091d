//! Goal: data that the drives and parity have lost is not lost while a copy in the hot zone holds it: reads get it,
//! scrub distinguishes it from lost data, and a repair rewrites it. Method: small arrays with a hot zone on their
//! drives or with the metadata. Blocks of the store are altered beyond parity, or unreadable. The findings of scrub are
//! compared with reads of each block, from the store alone and from both.

use imbrex_fs::core::{HotOn, Scrubbed, SetAttribute};
use imbrex_fs::device::model::Contents;
use imbrex_fs::device::{BLOCK_BYTES, Geometry, Kind, ZoneCondition};
use imbrex_fs::format::change::Inode;
use imbrex_fs::verify::operation::{find, pattern};
use imbrex_fs::verify::rig::Rig;
use imbrex_fs::verify::trial::Trial;
use imbrex_fs::verify::{Operation, perform};
use imbrex_fs::{Executor, Fs};

use crate::support::sequences::on;

const DRIVES: usize = 4;
const ZONE_BLOCKS: u64 = 16;
const BLOCK: u64 = BLOCK_BYTES as u64;
/// Numbers of blocks of the files with a copy, and of the file without.
const COPIED: [usize; 5] = [3, 5, 2, 4, 1];
const WITHOUT: usize = 4;

/// Blocks of files that are lost, and that only a copy holds.
type Named = (Vec<(Inode, u64)>, Vec<(Inode, u64)>);

/// Returns arrays of four drives with one parity, and a hot zone in their conventional zones, or with the metadata on
/// one device.
fn arrays() -> Vec<(&'static str, Trial)> {
    let kind = |conventional| Kind::Zoned { zone_blocks: ZONE_BLOCKS, zones: 14, conventional, active_max: None };
    let array = |conventional, hot_on, hot_blocks| {
        let metadata = vec![Geometry { blocks: 400, kind: Kind::Plain }];
        let trial = Trial::new(Geometry { blocks: 14 * ZONE_BLOCKS, kind: kind(conventional) }, Vec::new());
        Trial { drives: DRIVES, metadata, store: Some("log"), parity: 1, hot_blocks, hot_on, ..trial }
    };
    vec![("on drives", array(2, HotOn::Drives, 100)), ("with the metadata", array(0, HotOn::Metadata, 60))]
}

/// Returns the first block of the store on a drive of the array.
fn first_of(trial: &Trial) -> u64 {
    if trial.hot_on == HotOn::Drives { 2 * ZONE_BLOCKS } else { ZONE_BLOCKS }
}

/// Writes files with copies, from `f0` on, and one without.
async fn write_files(fs: &Fs) -> Vec<(Inode, usize)> {
    let mut files = Vec::new();
    for (number, count) in COPIED.into_iter().chain([WITHOUT]).enumerate() {
        let path = format!("f{number}");
        perform(fs, &Operation::Create(path.clone())).await.unwrap();
        let inode = find(fs, &path).unwrap();
        let hint: &[u8] = if number < COPIED.len() { b"always" } else { b"never" };
        fs.set_attribute(inode, b"user.imbrex.hot", hint, SetAttribute::Any).await.unwrap();
        let write = Operation::WriteOut(path.clone(), 0, count * BLOCK_BYTES, number as u8);
        for operation in [write, Operation::Fsync(path), Operation::Wait(1)] {
            perform(fs, &operation).await.unwrap();
        }
        files.push((inode, count));
    }
    assert_eq!(fs.status().hot.files, COPIED.len() as u64);
    files
}

/// Returns the blocks that drives and parity cannot give: those that are lost, and those that a copy gives. Checks the
/// bytes of all others.
async fn not_in_store(fs: &Fs, files: &[(Inode, usize)]) -> Named {
    let (mut lost, mut held) = (Vec::new(), Vec::new());
    for (number, (inode, count)) in files.iter().enumerate() {
        for block in 0..*count as u64 {
            let right = pattern(number as u8, block * BLOCK, BLOCK_BYTES);
            let stored = fs.read_stored_only(*inode, block * BLOCK, BLOCK_BYTES).await;
            let read = fs.read(*inode, block * BLOCK, BLOCK_BYTES).await;
            assert!([&stored, &read].into_iter().flatten().all(|bytes| *bytes == right), "f{number}, block {block}");
            match (stored.is_ok(), read.is_ok()) {
                (true, true) => {}
                (false, true) => held.push((*inode, block)),
                (false, false) => lost.push((*inode, block)),
                (true, false) => panic!("f{number}, block {block}: the store has it, and it cannot be read"),
            }
        }
    }
    (lost, held)
}

fn named(mut scrubbed: Scrubbed) -> Named {
    scrubbed.lost.sort_unstable();
    scrubbed.held_by_copies.sort_unstable();
    (scrubbed.lost, scrubbed.held_by_copies)
}

/// Harms the store of each array and scrubs it; checks the findings, the repairs, and the data afterwards.
fn judge(harm: impl Fn(&Trial, &Rig) + Clone + 'static, loses_all_without: bool) {
    for (name, trial) in arrays() {
        let (harm, own) = (harm.clone(), trial.clone());
        on(&trial, async move |fs: Fs, rig: Rig, _: Executor| {
            perform(&fs, &Operation::Wait(1)).await.unwrap();
            let files = write_files(&fs).await;
            harm(&own, &rig);
            let (lost, held) = not_in_store(&fs, &files).await;
            assert!(!held.is_empty() && !lost.is_empty(), "{name}: {lost:?} are lost, {held:?} in copies");
            assert_eq!(lost.len() == WITHOUT, loses_all_without, "{name}: {lost:?}");
            let looked = fs.scrub_array(false, |_, _| true).await.unwrap();
            assert_eq!(looked.repaired_rows, 0);
            assert_eq!(named(looked), (lost.clone(), held.clone()), "{name}");
            let repaired = fs.scrub_array(true, |_, _| true).await.unwrap();
            assert!(repaired.repaired_rows > 0, "{name}: {repaired:?}");
            assert_eq!(named(repaired), (lost.clone(), held), "{name}");
            let (still_lost, still_held) = not_in_store(&fs, &files).await;
            assert_eq!((&still_lost, still_held), (&lost, vec![]), "{name}: written anew from the copies");
            let again = fs.scrub_array(false, |_, _| true).await.unwrap();
            assert_eq!(named(again), (lost, vec![]), "{name}");
        });
    }
}

#[test]
fn what_is_altered_beyond_parity_is_written_anew_from_copies() {
    judge(
        |trial, rig| {
            for model in &rig.models()[..DRIVES] {
                let first = first_of(trial);
                let of_store = |block: &u64| *block >= first && !block.is_multiple_of(ZONE_BLOCKS);
                model.alter(|contents: &mut Contents| {
                    let blocks: Vec<u64> = contents.used_blocks().into_iter().filter(of_store).collect();
                    blocks.into_iter().for_each(|block| contents.corrupt(block, |bytes| bytes[100] ^= 64));
                });
            }
        },
        true,
    );
}

/// Zones of two drives are offline: blocks on other drives are read, and moved.
#[test]
fn what_cannot_be_read_beyond_parity_is_written_anew_from_copies() {
    judge(
        |trial, rig| {
            for model in &rig.models()[..2] {
                let first = first_of(trial);
                model.alter(|contents: &mut Contents| {
                    let zones = contents.used_blocks().into_iter().filter(|block| *block >= first);
                    let zones: std::collections::BTreeSet<u64> = zones.map(|block| block / ZONE_BLOCKS).collect();
                    zones.into_iter().for_each(|zone| contents.fail_zone(zone as u32, ZoneCondition::Offline));
                });
            }
        },
        false,
    );
}

/// A copy with one altered block gives its other blocks, if the store has lost those.
#[test]
fn of_a_damaged_copy_what_is_whole_is_read() {
    let (_, trial) = arrays().remove(0);
    on(&trial, async |fs: Fs, rig: Rig, _: Executor| {
        perform(&fs, &Operation::Wait(1)).await.unwrap();
        let files = write_files(&fs).await;
        let (inode, blocks) = files[1];
        let whole = pattern(1, 0, blocks * BLOCK_BYTES);
        // Alters the first block of the copy, and all blocks of the store but that one.
        let first = &whole[..BLOCK_BYTES];
        for model in &rig.models()[..DRIVES] {
            model.alter(|contents: &mut Contents| {
                let is_first = |contents: &Contents, block: u64| contents.block(block) == Some(first);
                for block in contents.used_blocks().into_iter().filter(|block| *block > 2) {
                    let is_of_store = block >= 2 * ZONE_BLOCKS;
                    let is_header = is_of_store && block.is_multiple_of(ZONE_BLOCKS);
                    if is_of_store != is_first(contents, block) && !is_header {
                        contents.corrupt(block, |bytes| bytes[100] ^= 64);
                    }
                }
            });
        }
        let read = fs.read(inode, 0, whole.len()).await;
        assert!(read.as_ref() == Ok(&whole), "{:?}", read.map(|bytes| bytes.len()));
        assert!(fs.read_stored_only(inode, 0, whole.len()).await.is_err());
    });
}
