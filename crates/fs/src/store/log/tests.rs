//! Goal: the store allocates space by its rules and within its limits, at the smallest limits too. Method: small arrays
//! of model drives, and the next step of the store.

#![allow(clippy::unwrap_used)] // in a test a panic is the report

use super::*;
use crate::array::{Belongs, Part};
use crate::device::model::Model;
use crate::device::{Backend, Device, Geometry, Kind};
use crate::executor::Executor;
use crate::format::record::{FileRecord, Piece};
use crate::format::shape::Shape;
use crate::namespace::Groups;

const ROWS: u64 = 31;

/// Creates a store on `drives` drives of 12 data zones each, of which `parity` may be lost.
async fn store(executor: &Executor, drives: usize, parity: u8, options: &[(&str, &str)]) -> LogStore {
    let kind = Kind::Zoned { zone_blocks: ROWS + 1, zones: 13, conventional: 0, active_max: None };
    let geometry = Geometry { blocks: 13 * (ROWS + 1), kind };
    let part = |number: usize| {
        let model = Model::new(geometry);
        assert_eq!(model.geometry(), geometry);
        let device = Some(Device::new(executor, "drive", Box::new(model)));
        Part { uuid: uuid::Uuid::from_u128(number as u128), device, geometry, first: 1, belongs: Belongs::Yes }
    };
    let shape = Shape { parity, width: drives as u8 - parity, zone_blocks: ROWS + 1, groups: 40 };
    let parts = (0..drives).map(part).collect();
    let array = Array::assemble(uuid::Uuid::from_u128(5), shape, parts, &Groups::default(), false).await.unwrap();
    let option = |key: &str| options.iter().find(|(known, _)| *known == key).map(|(_, value)| value.to_string());
    LogStore::new(array, option).unwrap()
}

/// Runs `test` on its own executor.
fn run<T: 'static>(test: impl AsyncFnOnce(Executor) -> T + 'static) -> T {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let outcome = executor.run(async move { test(own).await }).unwrap();
    executor.shut_down();
    outcome
}

async fn take(store: &LogStore, blocks: u64) -> Allocation {
    let mut reservation = Reservation::default();
    store.allocate(&mut reservation, blocks).await.unwrap()
}

fn width_at(store: &LogStore, allocation: &Allocation) -> u64 {
    store.row_blocks(allocation.runs[0].start)
}

#[test]
fn small_files_go_to_narrow_groups_while_there_is_room_and_large_ones_to_wide() {
    run(async |executor: Executor| {
        let store = store(&executor, 5, 1, &[]).await;
        for (blocks, width) in [(1, 1), (2, 1), (3, 4), (4, 4), (9, 4)] {
            let allocation = take(&store, blocks).await;
            assert_eq!(width_at(&store, &allocation), width, "a file of {blocks} blocks");
            store.commit(allocation);
        }
        // Fill the store until a narrow group would leave space for fewer than three wide ones.
        let mut taken = 0;
        while store.is_narrow(1) {
            store.commit(take(&store, 60).await);
            taken += 1;
        }
        assert!(taken > 5);
        let narrow = || store.bands.borrow().all().filter(|(_, band)| band.capacity == ROWS).count();
        let before = narrow();
        for _ in 0..ROWS {
            store.commit(take(&store, 1).await);
        }
        assert_eq!((before, narrow()), (1, 1), "another narrow group is opened though there is little room");
    });
}

#[test]
fn files_written_at_once_lie_in_different_groups_up_to_the_bound() {
    for (open_groups, expected) in [("5", 4), ("3", 2), ("1", 1)] {
        run(async move |executor: Executor| {
            let store = store(&executor, 1, 0, &[("open_groups", open_groups)]).await;
            let mut allocations = Vec::new();
            while store.next_step(Who::File, 2) != Step::Nothing {
                allocations.push(take(&store, 2).await);
            }
            let groups: std::collections::BTreeSet<u64> =
                allocations.iter().map(|allocation| allocation.runs[0].start / store.band_blocks()).collect();
            assert_eq!((allocations.len(), groups.len()), (expected, expected), "open_groups={open_groups}");
            // With more than one open group, one is reserved for the cleaner.
            let for_cleaner = store.next_step(Who::Cleaner, 2);
            assert_eq!(for_cleaner == Step::Nothing, expected == 1, "open_groups={open_groups}: {for_cleaner:?}");
            allocations.into_iter().for_each(|allocation| store.commit(allocation));
        });
    }
}

#[test]
fn writers_leave_what_is_kept_back_and_the_cleaner_takes_it() {
    run(async |executor: Executor| {
        let store = store(&executor, 3, 1, &[("kept_back", "2")]).await;
        let mut reservation = Reservation::default();
        let room = store.usage().blocks;
        assert_eq!(
            room,
            10 * (2 * ROWS - 4 - 3),
            "twelve wide groups, two kept back, two rows and three records lost in each"
        );
        store.reserve(&mut reservation, room).unwrap();
        assert_eq!(store.reserve(&mut Reservation::default(), 1), Err(FsError::NoSpace));
        store.unreserve(&mut reservation);
        while store.next_step(Who::File, 30) != Step::Nothing {
            let allocation = take(&store, 30).await;
            let run = allocation.runs[0];
            store.commit(allocation);
            // Frees the blocks, so that not the reservation ends the loop.
            store.free(run);
        }
        assert_eq!(store.array.free_groups().len(), 2);
        assert_eq!(store.next_step(Who::Cleaner, 30), Step::Open(2));
        store.commit(store.allocate_for_cleaner(8).await.unwrap());
        assert_eq!(store.array.free_groups().len(), 1);
    });
}

#[test]
fn what_the_cleaner_opened_is_its_own_while_it_cleans() {
    run(async |executor: Executor| {
        let store = store(&executor, 1, 0, &[]).await;
        let allocation = take(&store, ROWS).await;
        let run = allocation.runs[0];
        store.commit(allocation);
        store.free(BlockRun { start: run.start, blocks: 5 });
        let victim = store.victim().unwrap();
        let copies = store.allocate_for_cleaner(ROWS - 5).await.unwrap();
        store.commit(copies);
        store.free(BlockRun { start: run.start + 5, blocks: ROWS - 5 });
        assert!(store.changes.borrow().iter().all(|change| matches!(change, Change::Group { .. })));
        while store.array.can_open(1, KEPT_BACK, 1) {
            store.commit(take(&store, ROWS).await);
        }
        assert_eq!(
            store.next_step(Who::File, 1),
            Step::Nothing,
            "the cleaner's group has room, and a zone is being emptied"
        );
        store.array.reset(victim.zone).await.unwrap();
        store.emptied(victim.zone, true);
        assert!(matches!(store.next_step(Who::File, 1), Step::Open(_) | Step::Take(_)));
        assert_eq!(store.drain_changes().last(), Some(&Change::DropGroup { group: victim.zone }));
        assert_eq!(store.drain_changes(), []);
    });
}

/// Allocates blocks behind `allocation`, which has been submitted to the device.
async fn take_behind(store: &LogStore, allocation: &Allocation, blocks: u64) -> Option<Allocation> {
    store.allocate_behind(allocation, &mut Reservation::default(), blocks, &RecordContext::default()).await
}

#[test]
fn who_writes_to_a_group_appends_on_behind_it_and_nobody_else_does() {
    run(async |executor: Executor| {
        let store = store(&executor, 3, 1, &[("append_blocks", "6")]).await;
        let first = take(&store, 20).await;
        let second = take_behind(&store, &first, 14).await.unwrap();
        let third = take_behind(&store, &second, 8).await.unwrap();
        let runs = [&first, &second, &third].map(|allocation| allocation.runs[0]);
        assert_eq!(runs.map(|run| run.blocks), [6; 3], "no more than an append may have");
        assert_eq!([runs[0].end(), runs[1].end()], [runs[1].start, runs[2].start], "one behind the other");
        let group = store.group_of(&first);
        let other = take(&store, 6).await;
        assert_ne!(store.group_of(&other), group, "somebody else gets another group");
        store.commit(first);
        assert!(!store.is_quiet(group) && store.bands.borrow().band(group).room() == 0, "two are under way still");
        store.commit(second);
        store.commit(third);
        assert!(store.is_quiet(group) && store.bands.borrow().band(group).room() > 0);
        store.commit(other);
    });
}

#[test]
fn where_a_group_ends_the_next_one_goes_on_at_once() {
    run(async |executor: Executor| {
        let store = store(&executor, 3, 1, &[]).await;
        let mut allocations = vec![take(&store, 2 * ROWS).await];
        assert_eq!(store.bands.borrow().band(store.group_of(&allocations[0])).room_behind(), 0);
        allocations.push(take_behind(&store, &allocations[0], 10).await.unwrap());
        assert_ne!(store.group_of(&allocations[1]), store.group_of(&allocations[0]));
        allocations.into_iter().for_each(|allocation| store.commit(allocation));
    });
}

#[test]
fn who_writes_lets_go_of_a_group_that_somebody_else_waits_for() {
    run(async |executor: Executor| {
        let store = std::rc::Rc::new(store(&executor, 3, 1, &[("open_groups", "1")]).await);
        let first = take(&store, 6).await;
        let second = take_behind(&store, &first, 6).await.unwrap();
        let other = store.clone();
        let waiting = executor.spawn(async move { take(&other, 6).await });
        executor.yield_now().await;
        assert_eq!(take_behind(&store, &second, 6).await, None, "another waits");
        store.commit(first);
        store.commit(second);
        let theirs = waiting.await;
        // The cleaner waits for a group too.
        let cleaner = store.clone();
        let cleaning = executor.spawn(async move { cleaner.allocate_for_cleaner(6).await });
        executor.yield_now().await;
        assert_eq!(take_behind(&store, &theirs, 6).await, None, "the cleaner waits");
        store.commit(theirs);
        store.commit(cleaning.await.unwrap());
    });
}

#[test]
fn what_could_not_be_written_was_not_allocated() {
    run(async |executor: Executor| {
        let store = store(&executor, 3, 1, &[]).await;
        store.commit(take(&store, 5).await);
        let allocation = take(&store, 7).await;
        assert_eq!(store.usage().allocated, 12);
        store.abort(allocation);
        let usage = store.usage();
        assert_eq!((usage.allocated, usage.freed, usage.live), (5, 0, 5));
    });
}

#[test]
fn records_that_could_not_be_written_are_not_counted() {
    run(async |executor: Executor| {
        let store = store(&executor, 3, 1, &[]).await;
        store.commit(take(&store, 5).await);
        let before = store.usage().records;
        // The records of this number of files fill a unit.
        let file = |inode| FileRecord { inode, name: vec![b'n'; 200].into(), ..FileRecord::default() };
        let pieces = (1..30).map(|inode| Piece { file: file(inode).into(), at: 0, blocks: 1 }).collect();
        let context = RecordContext { pieces, ..RecordContext::default() };
        let allocation = store.allocate_with_records(&mut Reservation::default(), 29, &context).await.unwrap();
        assert_eq!(store.usage().records, (before.0 + allocation.counted.0, before.1 + allocation.counted.1));
        assert!(allocation.counted.0 > 0, "{:?}", allocation.counted);
        store.abort(allocation);
        assert_eq!(store.usage().records, before);
    });
}

#[test]
fn options_out_of_range_are_named() {
    run(async |executor: Executor| {
        let array = store(&executor, 1, 0, &[]).await.array;
        for (key, value) in [("open_groups", "0"), ("kept_back", "none"), ("cleaner", "lazy"), ("clean_below", "95")] {
            let option = |known: &str| (known == key).then(|| value.to_string());
            let wrong = LogStore::new(array.clone(), option).map(drop).expect_err(key);
            assert!(wrong.contains(key) && wrong.contains(value), "{wrong}");
        }
    });
}
