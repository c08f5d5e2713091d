//! Goal: pieces of data and holes are found in steps, and `allocate` of zeros changes the size of a file only if it
//! succeeds. Method: a look at each block; a host that runs out of room.

use super::*;
use crate::core::{Bounds, Caller, MakeOptions, MountOptions, make};
use crate::device::model::Model;
use crate::device::{Device, Geometry, Kind};
use crate::executor::Executor;
use crate::executor::tests::Blockable;
use crate::format::file_type::REGULAR;
use crate::namespace::ROOT;

/// Compares the result with that of a look at each block.
#[test]
fn pieces_of_data_and_holes_are_found_in_steps() {
    let extent = |at, blocks| Extent { at, blocks, start: 1000 + u64::from(at) };
    let extents = Extents::from(&[extent(2, 3), extent(5, 1), extent(9, 4)][..]);
    let mut staged = Blocks::default();
    for (at, block) in [(4, Block::Zeros), (7, Block::Bytes(Block::zeros())), (8, Block::Zeros), (13, Block::Zeros)] {
        staged.insert(at, block);
    }
    let is_data = |at: u64| match staged.get(at as u32) {
        Some(block) => matches!(block, Block::Bytes(_)),
        None => extents.within(at, at + 1).next().is_some(),
    };
    for at in 0..20 {
        let (found, until) = piece_at(Some(&staged), &extents, at, 20);
        assert!(until > at && until <= 20, "block {at}: {until}");
        assert!((at..until).all(|block| is_data(block) == found), "blocks {at} to {until} are not all {found}");
    }
}

const FILE_BYTES: u64 = 2 * BYTES + 100;

/// Runs `test` with a file of [`FILE_BYTES`] bytes in memory, more than the limit of staged data.
fn with_file(test: impl AsyncFnOnce(Executor, Fs, Inode, Rc<Blockable>) + 'static) {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let task = async move {
        let device = |name, geometry| Device::new(&own, name, Box::new(Model::new(geometry)));
        let kind = Kind::Zoned { zone_blocks: 64, zones: 16, conventional: 2, active_max: None };
        let disk = device("disk", Geometry { blocks: 1024, kind });
        let metadata = device("metadata", Geometry { blocks: 2048, kind: Kind::Plain });
        make(&disk, Some(&metadata), &MakeOptions::default(), 0).await.expect("it fits");
        let bounds = Some(Bounds { cache_bytes: BYTES, ..Bounds::default() });
        let options = MountOptions { bounds, ..MountOptions::default() };
        let (fs, _) = Fs::mount(&own, &[disk, metadata], &options).await.expect("it was made");
        let made = fs.make_node(ROOT, b"file", REGULAR | 0o644, 0, Caller::default()).await;
        let inode = made.expect("there is room").inode;
        fs.write(inode, 0, &[7; FILE_BYTES as usize]).await.expect("there is room");
        let source = Rc::new(Blockable::default());
        own.add_source(source.clone());
        test(own, fs.clone(), inode, source).await;
        fs.sync().await.expect("there is room");
        assert_eq!(fs.self_check(), Vec::<String>::new());
    };
    executor.run(task).expect("nobody waits for ever");
    executor.shut_down();
}

fn size(fs: &Fs, inode: Inode) -> u64 {
    fs.attr(inode).expect("it exists").attributes.size
}

/// The file is longer already when the write-back that makes room in memory fails.
#[test]
fn zeros_without_room_in_memory_leave_the_size() {
    with_file(async |_, fs, inode, source| {
        source.0.set(true);
        let outcome = fs.allocate(inode, BYTES, 4 * BYTES, Allocate::Zeros).await;
        assert_eq!(outcome, Err(FsError::HostFull("full".into())));
        assert_eq!(size(&fs, inode), FILE_BYTES);
        source.0.set(false);
        assert_eq!(fs.read(inode, 0, 100_000).await, Ok(vec![7; FILE_BYTES as usize]));
        assert_eq!(fs.allocate(inode, BYTES, 4 * BYTES, Allocate::Zeros).await, Ok(()));
        assert_eq!(size(&fs, inode), 5 * BYTES);
    });
}

/// The file is longer already when another task holds its locks while a device waits for space.
#[test]
fn zeros_that_have_begun_wait_for_the_locks_of_the_file() {
    with_file(async |executor, fs, inode, source| {
        fs.sync().await.expect("there is room");
        let open = fs.0.files().open_or_new(inode);
        let locks = open.enter().await;
        let own = fs.clone();
        let zeros = executor.spawn(async move { own.allocate(inode, BYTES, 4 * BYTES, Allocate::Zeros).await });
        executor.sleep(1).await;
        let own = executor.clone();
        let other = executor.spawn(async move {
            let _locks = open.enter().await;
            source.0.set(true);
            own.notify_blocked();
            own.sleep(10).await;
            source.0.set(false);
        });
        executor.sleep(1).await;
        drop(locks);
        let outcome = zeros.await;
        other.await;
        assert_eq!((outcome, size(&fs, inode)), (Ok(()), 5 * BYTES));
        let expected = [vec![7; BLOCK_BYTES], vec![0; 4 * BLOCK_BYTES]].concat();
        assert_eq!(fs.read(inode, 0, 100_000).await, Ok(expected));
    });
}
