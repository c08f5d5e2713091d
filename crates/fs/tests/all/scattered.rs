//! Goal: no record of a file's extents is too large for the log, however fragmented the file; its contents are right at
//! each length of a record, with the cleaner at work, and after a mount. Method: a log that is smaller than the list of
//! the file's pieces. Contents are compared with a vector of bytes, and the writes to the metadata device are counted.

use std::cell::RefCell;
use std::rc::Rc;

use imbrex_fs::core::{Allocate, Caller, MakeOptions, MountOptions, SetAttr, make};
use imbrex_fs::device::memory::Memory;
use imbrex_fs::device::{BLOCK_BYTES, Geometry, Kind};
use imbrex_fs::format::change::Inode;
use imbrex_fs::format::file_type::REGULAR;
use imbrex_fs::journal::Checksums;
use imbrex_fs::namespace::ROOT;
use imbrex_fs::{Bounds, Device, Executor, Fs, FsError};

use crate::support::timed::Timed;
use crate::support::within::within;
use crate::support::{devices, timed};

const ZONE_BLOCKS: u64 = 1024;
const ZONES: u32 = 80;
const BLOCK: u64 = BLOCK_BYTES as u64;

/// Runs `task` on a drive of store `log` with a log of `log_blocks` blocks. The task also gets a function that mounts
/// again, and the sizes of all writes to the metadata in blocks.
fn on<T: 'static>(
    log_blocks: u64,
    bounds: Bounds,
    task: impl AsyncFnOnce(Fs, Rc<dyn Fn() -> Mounting>, Writes) -> T + 'static,
) -> T {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let done = executor.run(async move {
        let drive = Device::new(&own, "drive", Box::new(Timed::new(ZONES, ZONE_BLOCKS)));
        let blocks = 2 + Checksums::blocks_for(ZONE_BLOCKS * u64::from(ZONES)) + 4 * log_blocks;
        let counting = devices::Counting::new(Memory::new(Geometry { blocks, kind: Kind::Plain }));
        let writes = counting.operations.clone();
        let metadata = Device::new(&own, "metadata", Box::new(counting));
        let options = MakeOptions { store: Some("log".into()), ..MakeOptions::default() };
        make(&drive, Some(&metadata), &options, 0).await.unwrap();
        let all = [drive, metadata];
        let again: Rc<dyn Fn() -> Mounting> = Rc::new(move || {
            let (executor, all) = (own.clone(), all.clone());
            let options = MountOptions { bounds: Some(bounds), ..MountOptions::default() };
            Box::pin(async move { Fs::mount(&executor, &all, &options).await.unwrap().0 })
        });
        let fs = again().await;
        assert!(fs.superblock().layout.log.1.abs_diff(log_blocks) <= 1, "{:?}", fs.superblock().layout);
        task(fs, again, writes).await
    });
    executor.shut_down();
    done.unwrap()
}

type Mounting = std::pin::Pin<Box<dyn Future<Output = Fs>>>;
type Writes = Rc<RefCell<Vec<u64>>>;

async fn create(fs: &Fs, name: &str) -> Inode {
    fs.make_node(ROOT, name.as_bytes(), REGULAR | 0o644, 0, Caller::default()).await.unwrap().inode
}

/// Writes one block of `byte` at each of these blocks of a file, and into `model`.
async fn scatter(fs: &Fs, inode: Inode, blocks: impl Iterator<Item = u64>, byte: u8, model: &mut Vec<u8>) {
    for block in blocks {
        let (from, to) = ((block * BLOCK) as usize, ((block + 1) * BLOCK) as usize);
        model.resize(model.len().max(to), 0);
        model[from..to].fill(byte);
        fs.write(inode, block * BLOCK, &[byte; BLOCK_BYTES]).await.unwrap();
    }
}

async fn assert_is(fs: &Fs, inode: Inode, model: &[u8]) {
    assert_eq!(fs.attr(inode).unwrap().attributes.size, model.len() as u64);
    for from in (0..model.len()).step_by(1 << 20) {
        let to = model.len().min(from + (1 << 20));
        assert!(fs.read(inode, from as u64, to - from).await.unwrap() == model[from..to], "from byte {from} on");
    }
    assert_eq!(fs.self_check(), Vec::<String>::new());
}

/// A record of all pieces of the file would take 250 KiB; half the log has 128.
#[test]
fn a_file_in_more_pieces_than_the_log_holds_is_written_and_found_again() {
    const PIECES: u64 = 16_000;
    on(64, Bounds::default(), async |fs: Fs, again, _| {
        let (inode, mut model) = (create(&fs, "f").await, Vec::new());
        scatter(&fs, inode, (0..PIECES).map(|number| 2 * number), 1, &mut model).await;
        fs.fsync(inode).await.expect("no record is larger than the log");
        scatter(&fs, inode, (0..PIECES / 8).map(|number| 16 * number), 2, &mut model).await;
        fs.fsync(inode).await.unwrap();
        assert_is(&fs, inode, &model).await;
        // Like after a power cut: nothing else is made durable.
        drop(fs);
        let fs = again().await;
        assert_is(&fs, inode, &model).await;
        let half = model.len() as u64 / 2;
        fs.set_attr(inode, &SetAttr { size: Some(half), ..SetAttr::default() }).await.unwrap();
        model.truncate(half as usize);
        fs.unmount().await.unwrap();
        let fs = again().await;
        assert_is(&fs, inode, &model).await;
        fs.unlink(ROOT, b"f").await.unwrap();
        fs.unmount().await.unwrap();
        assert_eq!(again().await.status().usage.live, 0);
    });
}

#[test]
fn a_file_is_right_at_each_size_of_a_record() {
    // Records of one piece, of two, and so on; at last one of all the file's pieces.
    for extent_record_bytes in [1, 17 + 16, 17 + 2 * 16, 13 + 40 * 16, 64 << 10] {
        on(500, Bounds { extent_record_bytes, ..Bounds::default() }, async |fs: Fs, again, _| {
            let (inode, mut model) = (create(&fs, "f").await, Vec::new());
            scatter(&fs, inode, 3..40, 1, &mut model).await;
            fs.fsync(inode).await.unwrap();
            scatter(&fs, inode, (0..100).map(|number| 3 * number), 2, &mut model).await;
            fs.allocate(inode, 30 * BLOCK, 9 * BLOCK, Allocate::PunchHole).await.unwrap();
            model[30 * BLOCK_BYTES..39 * BLOCK_BYTES].fill(0);
            fs.fsync(inode).await.unwrap();
            assert_is(&fs, inode, &model).await;
            fs.unmount().await.unwrap();
            assert_is(&again().await, inode, &model).await;
        });
    }
}

#[test]
fn what_one_record_tells_of_is_bounded() {
    let longest = |extent_record_bytes| {
        let bounds = Bounds { extent_record_bytes, pending_bytes: 1, ..Bounds::default() };
        // The log is so large that no checkpoint is due, because chunks of checkpoints are longer.
        on(4000, bounds, async |fs: Fs, _, writes: Writes| {
            let (inode, mut model) = (create(&fs, "f").await, Vec::new());
            scatter(&fs, inode, (0..400).map(|number| 2 * number), 1, &mut model).await;
            writes.borrow_mut().clear();
            fs.fsync(inode).await.unwrap();
            let longest = writes.borrow().iter().copied().max();
            longest.unwrap()
        })
    };
    // All pieces in one record: 13 + 400 × 16 bytes, and 117 of the frame, the record and the attributes.
    assert_eq!([1, 1 << 20].map(longest), [1, 2]);
}

/// Writes single blocks with holes between, with an fsync now and then, until a write is refused. Returns the durable
/// contents, and the error.
async fn scatter_until_refused(fs: Fs, inode: Inode) -> (Vec<u8>, FsError) {
    let (mut model, mut acknowledged) = (Vec::new(), Vec::new());
    for block in (0..).step_by(2) {
        model.resize((block * BLOCK) as usize, 0);
        model.extend_from_slice(&[7; BLOCK_BYTES]);
        if let Err(error) = fs.write(inode, block * BLOCK, &[7; BLOCK_BYTES]).await {
            return (acknowledged, error);
        }
        if block % 1000 == 0 {
            // A write that was accepted has space when it is written back.
            fs.fsync(inode).await.unwrap();
            acknowledged.clone_from(&model);
        }
    }
    unreachable!("it ends with an error")
}

/// A checkpoint has space for about 24,000 pieces here.
#[test]
fn a_file_in_more_pieces_than_the_metadata_hold_is_refused_as_it_is_written() {
    on(64, Bounds::default(), async |fs: Fs, again, _| {
        let (small, mut of_small) = (create(&fs, "small").await, Vec::new());
        scatter(&fs, small, 0..100, 3, &mut of_small).await;
        fs.fsync(small).await.unwrap();
        let inode = create(&fs, "f").await;
        let (model, error) =
            within(fs.executor(), 1000 * timed::SECOND_NS, scatter_until_refused(fs.clone(), inode)).await;
        assert_eq!((error.clone(), error.errno()), (FsError::NoMetadataSpace, 28));
        assert!(error.to_string().contains("df -i"), "{error}: it says what is full");
        assert!(model.len() > 40_000 * BLOCK_BYTES, "{} blocks were taken", model.len() / BLOCK_BYTES);
        assert_eq!(
            fs.attr(inode).unwrap().attributes.size % (2 * BLOCK),
            BLOCK,
            "nothing of what was refused is there"
        );
        let (used, there) = fs.status().checkpoint;
        assert!(used <= there, "{used} bytes of {there}: a checkpoint has room for what was taken");
        assert_is(&fs, small, &of_small).await;
        // Like after a power cut.
        drop(fs);
        let fs = again().await;
        assert_is(&fs, small, &of_small).await;
        assert!(fs.attr(inode).unwrap().attributes.size >= model.len() as u64);
        assert!(fs.read(inode, 0, model.len()).await.unwrap() == model, "what was acknowledged is there");
        let own = fs.clone();
        within(fs.executor(), 100 * timed::SECOND_NS, async move { own.unlink(ROOT, b"f").await }).await.unwrap();
        let (next, mut of_next) = (create(&fs, "next").await, Vec::new());
        scatter(&fs, next, (0..5000).map(|number| 2 * number), 4, &mut of_next).await;
        fs.unmount().await.unwrap();
        assert_is(&again().await, next, &of_next).await;
    });
}

/// The records of each file fill an eighth of the log; those of all files exceed it.
#[test]
fn many_scattered_files_are_made_durable_at_the_same_time() {
    on(64, Bounds::default(), async |fs: Fs, again, _| {
        let mut files = Vec::new();
        for number in 0..8u8 {
            let (inode, mut model) = (create(&fs, &format!("f{number}")).await, Vec::new());
            scatter(&fs, inode, (0..2000).map(|number| 2 * number), number + 1, &mut model).await;
            files.push((inode, model));
        }
        let durable: Vec<_> = files
            .iter()
            .map(|(inode, _)| {
                let (fs, inode) = (fs.clone(), *inode);
                fs.executor().clone().spawn(async move { fs.fsync(inode).await })
            })
            .collect();
        within(fs.executor(), 1000 * timed::SECOND_NS, async move {
            for fsync in durable {
                fsync.await.unwrap();
            }
        })
        .await;
        drop(fs);
        let fs = again().await;
        for (inode, model) in files {
            assert_is(&fs, inode, &model).await;
        }
    });
}
