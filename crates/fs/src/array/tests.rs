//! Goal: an array returns the data written to it while the lost drives and altered blocks are within its parity, and
//! keeps the rules of its drives. Method: operations at random on drives in memory, against a map from block to bytes.

#![allow(clippy::unwrap_used)] // in a test a panic is the report

use std::collections::BTreeMap;

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::device::BLOCK_BYTES;
use crate::device::model::Model;
use crate::executor::Executor;
use crate::format::change::Change;
use crate::journal::checksums::of_block;
use crate::namespace::Namespace;

const ZONE_BLOCKS: u64 = 6;
const FILE_SYSTEM: Uuid = Uuid::from_u128(77);

struct Rig {
    models: Vec<Model>,
    shape: Shape,
    /// Groups as the metadata would record them.
    namespace: Namespace,
}

impl Rig {
    /// Makes zoned drives; if `mixed`, every second one is conventional.
    fn new(drives: usize, width: u8, parity: u8, mixed: bool) -> Rig {
        let zoned = Kind::Zoned { zone_blocks: ZONE_BLOCKS, zones: 6, conventional: 0, active_max: None };
        let kind = |drive: usize| if mixed && drive % 2 == 1 { Kind::Plain } else { zoned };
        let model = |drive| Model::new(Geometry { blocks: 6 * ZONE_BLOCKS, kind: kind(drive) });
        let shape = Shape { parity, width, zone_blocks: ZONE_BLOCKS, groups: 20 };
        Rig { models: (0..drives).map(model).collect(), shape, namespace: Namespace::new(1) }
    }

    async fn assemble(&self, executor: &Executor, missing: &[usize]) -> Array {
        let part = |drive: usize| Part {
            uuid: Uuid::from_u128(drive as u128),
            device: (!missing.contains(&drive))
                .then(|| Device::new(executor, &format!("drive {drive}"), Box::new(self.models[drive].clone()))),
            geometry: crate::device::Backend::geometry(&self.models[drive]),
            first: 1,
            belongs: Belongs::Yes,
        };
        let parts = (0..self.models.len()).map(part).collect();
        Array::assemble(FILE_SYSTEM, self.shape, parts, self.namespace.groups(), false).await.unwrap()
    }

    fn broken(&self) -> u64 {
        self.models.iter().map(Model::broken_rules).sum()
    }
}

struct Random(Xoshiro256PlusPlus);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    fn blocks(&mut self, count: u64) -> Vec<u8> {
        let mut bytes = vec![0; count as usize * BLOCK_BYTES];
        self.0.fill_bytes(&mut bytes);
        bytes
    }
}

/// Expected blocks, and rows and width of each group.
#[derive(Default)]
struct Naive {
    blocks: BTreeMap<u64, Vec<u8>>,
    pointers: BTreeMap<u32, (u64, u64)>,
}

async fn act(rig: &mut Rig, array: &Array, naive: &mut Naive, random: &mut Random) {
    let shape = rig.shape;
    match random.below(6) {
        0 => {
            let width = 1 + random.below(u64::from(shape.width)) as usize;
            let could = array.can_open(width, 0, width);
            let opened = array.open(width).await;
            assert_eq!(opened.is_some(), could, "a group of {width}");
            if let Some((group, layout)) = opened {
                rig.namespace.apply(&Change::Group { group, layout });
                naive.pointers.insert(group, (0, width as u64));
            }
        }
        1 if random.below(3) == 0 => {
            let Some((&group, _)) = naive.pointers.iter().nth(random.below(9) as usize) else { return };
            array.reset(group).await.unwrap();
            rig.namespace.apply(&Change::DropGroup { group });
            naive.pointers.remove(&group);
            let first = u64::from(group) * shape.stride();
            naive.blocks.retain(|block, _| !(first..first + shape.stride()).contains(block));
        }
        _ => {
            let Some((&group, &(rows, width))) = naive.pointers.iter().nth(random.below(9) as usize) else { return };
            if rows == shape.rows() || array.zones()[group as usize].condition == ZoneCondition::Full {
                return;
            }
            let blocks = 1 + random.below((shape.rows() - rows) * width);
            let start = u64::from(group) * shape.stride() + rows * width;
            let bytes = random.blocks(blocks);
            array.write(start, bytes.clone()).await.unwrap();
            let pieces = bytes.chunks(BLOCK_BYTES).zip(start..);
            naive.blocks.extend(pieces.map(|(piece, block)| (block, piece.to_vec())));
            naive.pointers.insert(group, (rows + blocks.div_ceil(width), width));
        }
    }
}

/// Checks that every run of written blocks is read unchanged.
async fn compare(array: &Array, naive: &Naive, random: &mut Random) {
    for (&block, bytes) in &naive.blocks {
        let most = (block..).take_while(|at| naive.blocks.contains_key(at)).count() as u64;
        let in_group = array.shape().stride() - block % array.shape().stride();
        let blocks = 1 + random.below(most.min(in_group));
        let read = array.read(block, blocks).await.unwrap_or_else(|fault| panic!("{blocks} from {block}: {fault}"));
        let expected: Vec<u8> = (block..block + blocks).flat_map(|at| naive.blocks[&at].clone()).collect();
        assert!(read == expected, "{blocks} blocks from {block}");
        assert_eq!(of_block(&read[..BLOCK_BYTES]), of_block(bytes));
    }
}

fn pairs(drives: usize, parity: u8) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = (0..drives).map(|drive| vec![drive]).collect();
    if parity > 1 {
        all.extend((0..drives).flat_map(|one| (one + 1..drives).map(move |other| vec![one, other])));
    }
    all
}

#[test]
fn what_was_written_is_read_with_any_drives_lost_within_parity() {
    for (drives, width, parity, mixed) in
        [(1, 1, 0, false), (3, 3, 0, true), (3, 2, 1, false), (5, 3, 2, true), (4, 4, 1, false)]
    {
        for seed in 1..=3 {
            let executor = Executor::in_virtual_time();
            let own = executor.clone();
            let run = async move {
                let mut rig = Rig::new(drives, width, parity, mixed);
                let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(seed));
                let mut naive = Naive::default();
                let mut array = rig.assemble(&own, &[]).await;
                for number in 0..60 {
                    act(&mut rig, &array, &mut naive, &mut random).await;
                    if number % 20 == 19 {
                        array.flush().await.unwrap();
                        compare(&array, &naive, &mut random).await;
                        array = rig.assemble(&own, &[]).await;
                    }
                }
                compare(&array, &naive, &mut random).await;
                assert!(!naive.blocks.is_empty(), "something was written");
                if parity > 0 {
                    for missing in pairs(drives, parity) {
                        let degraded = rig.assemble(&own, &missing).await;
                        compare(&degraded, &naive, &mut random).await;
                    }
                }
                assert_eq!(rig.broken(), 0, "rules of the drives were broken");
            };
            executor.run(run).unwrap();
        }
    }
}

/// Writes `blocks` to a new group of `width` data columns; no drive is missing. Returns the group and the bytes.
async fn one_group(executor: &Executor, rig: &mut Rig, width: usize, blocks: u64) -> (u32, Vec<u8>) {
    let array = rig.assemble(executor, &[]).await;
    let (group, layout) = array.open(width).await.unwrap();
    rig.namespace.apply(&Change::Group { group, layout });
    let bytes = Random(Xoshiro256PlusPlus::seed_from_u64(9)).blocks(blocks);
    array.write(u64::from(group) * rig.shape.stride(), bytes.clone()).await.unwrap();
    array.flush().await.unwrap();
    (group, bytes)
}

#[test]
fn altered_blocks_are_made_again_from_their_row_if_not_too_many_are() {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let run = async move {
        let mut rig = Rig::new(5, 3, 2, false);
        let (group, bytes) = one_group(&own, &mut rig, 3, 7).await;
        let layout = rig.namespace.groups().all()[&group].clone();
        let array = rig.assemble(&own, &[]).await;
        let sum = of_block(&bytes[..BLOCK_BYTES]);
        let alter = |column: usize| {
            let at = layout.members[column];
            let block = u64::from(at.zone) * ZONE_BLOCKS + 1;
            rig.models[usize::from(at.drive)].alter(|contents| contents.corrupt(block, |bytes| bytes[5] ^= 1));
        };
        let start = u64::from(group) * rig.shape.stride();
        for (altered, is_found) in [(0, true), (1, true), (2, false)] {
            alter(altered);
            let found = array.recover(start, sum).await;
            assert_eq!(found.is_some(), is_found, "after column {altered} was altered too");
            assert!(found.is_none_or(|block| block == bytes[..BLOCK_BYTES]));
        }
        assert_eq!(array.counters().recovered_blocks, 2);
    };
    executor.run(run).unwrap();
}

#[test]
fn a_group_that_missed_something_is_sealed_and_a_drive_that_returns_harms_nothing() {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let run = async move {
        let mut rig = Rig::new(3, 1, 1, false);
        let (group, bytes) = one_group(&own, &mut rig, 1, 2).await;
        let layout = rig.namespace.groups().all()[&group].clone();
        let state = |array: &Array| array.zones()[group as usize].condition;
        assert_eq!(state(&rig.assemble(&own, &[]).await), ZoneCondition::Writable, "whole and even: it goes on");
        // One drive is absent. Later it returns with zones of equal length but other contents.
        let away = usize::from(layout.members[0].drive);
        let degraded = rig.assemble(&own, &[away]).await;
        assert_eq!(state(&degraded), ZoneCondition::Full, "with a drive away it takes no more");
        let stale = rig.models[away].contents();
        let other = GroupLayout { sequence: layout.sequence + 9, ..layout.clone() };
        rig.namespace.apply(&Change::Group { group, layout: other });
        rig.models[away] = Model::with(stale);
        assert_eq!(state(&rig.assemble(&own, &[]).await), ZoneCondition::Full, "its header is of another time");
        rig.namespace.apply(&Change::Group { group, layout });
        let array = rig.assemble(&own, &[]).await;
        let read = array.read(u64::from(group) * rig.shape.stride(), 2).await.unwrap();
        assert!(read == bytes);
    };
    executor.run(run).unwrap();
}

#[test]
fn a_drive_that_fails_in_mid_append_seals_the_group_and_is_passed_by() {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let run = async move {
        let mut rig = Rig::new(4, 2, 1, false);
        let (group, bytes) = one_group(&own, &mut rig, 2, 4).await;
        let array = rig.assemble(&own, &[]).await;
        let member = rig.namespace.groups().all()[&group].members[1];
        rig.models[usize::from(member.drive)].fail_after(0);
        let start = u64::from(group) * rig.shape.stride();
        assert!(array.write(start + 4, bytes.clone()).await.is_err());
        assert_eq!(array.lost(), [member.drive]);
        assert_eq!(array.zones()[group as usize].condition, ZoneCondition::Full);
        array.flush().await.expect("one may be lost");
        assert!(array.read(start, 4).await.unwrap() == bytes, "what was there is read");
        let (other, layout) = array.open(2).await.expect("three drives are left");
        assert!(layout.members.iter().all(|at| at.drive != member.drive));
        array.write(u64::from(other) * rig.shape.stride(), bytes).await.unwrap();
        rig.models[usize::from(layout.members[0].drive)].fail_after(0);
        assert!(array.flush().await.is_err(), "two are one too many");
    };
    executor.run(run).unwrap();
}
