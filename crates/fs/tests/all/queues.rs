//! Goal: a reader beside writers waits only for the operations at the device and one overdue write; no write waits for
//! ever beside readers; adjacent writes are merged; and a file may be larger than the memory for it. Method: drives
//! with times in closed form ([`timed`]), in virtual time: the expected times are sums of seeks and transfers.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use imbrex_fs::core::{Caller, MakeOptions, MountOptions, Parts, make_on};
use imbrex_fs::device::memory::Memory;
use imbrex_fs::device::queue::QueueLimits;
use imbrex_fs::device::{BLOCK_BYTES, Geometry, Kind};
use imbrex_fs::format::file_type::REGULAR;
use imbrex_fs::namespace::ROOT;
use imbrex_fs::{Bounds, Device, Executor, Fs};
use uuid::Uuid;

use crate::support::devices::Counting;
use crate::support::timed::{BLOCK_NS, SECOND_NS, SEEK_NS, Timed};

const ZONE_BLOCKS: u64 = 1024;
const WRITE_BLOCKS: u64 = 256;
/// Times of a large write, and of a read of one block, each with a seek.
const WRITE_NS: u64 = SEEK_NS + WRITE_BLOCKS * BLOCK_NS;
const READ_NS: u64 = SEEK_NS + BLOCK_NS;

const ONE: QueueLimits = QueueLimits { depth: 1, deadline_ns: u64::MAX, gather_blocks: WRITE_BLOCKS };

fn device(executor: &Executor, limits: QueueLimits) -> Device {
    let device = Device::new(executor, "drive", Box::new(Timed::new(64, ZONE_BLOCKS)));
    device.set_queue_limits(limits);
    device
}

fn bytes(blocks: u64) -> Vec<u8> {
    vec![7; blocks as usize * BLOCK_BYTES]
}

/// Returns the latency of a read that arrives just after `writes` writes, each to a zone of its own, nanoseconds.
fn read_behind(writes: u64, limits: QueueLimits) -> u64 {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let read = async move {
        let device = device(&own, limits);
        for zone in 0..writes {
            let device = device.clone();
            own.spawn(async move { device.write((1 + zone) * ZONE_BLOCKS, bytes(WRITE_BLOCKS)).await.unwrap() });
        }
        own.sleep(1).await;
        let began_ns = own.now_ns();
        device.read(50 * ZONE_BLOCKS, 1).await.unwrap();
        own.now_ns() - began_ns
    };
    let took_ns = executor.run(read).unwrap();
    executor.shut_down();
    took_ns
}

#[test]
fn a_read_waits_for_what_is_at_the_device_and_one_overdue_write() {
    assert_eq!(read_behind(8, ONE), WRITE_NS - 1 + READ_NS, "for the write that was begun");
    assert_eq!(read_behind(8, QueueLimits { deadline_ns: 0, ..ONE }), 2 * WRITE_NS - 1 + READ_NS, "and one overdue");
    assert_eq!(
        read_behind(8, QueueLimits { depth: 3, ..ONE }),
        3 * WRITE_NS - 1 + READ_NS,
        "for three that were begun"
    );
    assert_eq!(read_behind(8, QueueLimits { depth: 32, ..ONE }), 8 * WRITE_NS - 1 + READ_NS, "nothing waits: no order");
}

/// Runs four streaming writers, each in zones of its own, and a reader with a read every 31 ms, for three seconds.
/// Returns the longest latency of a read, nanoseconds, and the number of writes completed.
fn read_beside_writers(limits: QueueLimits) -> (u64, u64) {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let task = async move {
        let (device, written) = (device(&own, limits), Rc::new(Cell::new(0)));
        for writer in 0..4 {
            let (device, written) = (device.clone(), written.clone());
            own.spawn(async move {
                for block in (0..15 * ZONE_BLOCKS).step_by(WRITE_BLOCKS as usize) {
                    device.write(writer * 15 * ZONE_BLOCKS + block, bytes(WRITE_BLOCKS)).await.unwrap();
                    written.set(written.get() + 1);
                }
            });
        }
        let mut longest_ns = 0;
        while own.now_ns() < 3 * SECOND_NS {
            own.sleep(31_000_000).await;
            let began_ns = own.now_ns();
            device.read(63 * ZONE_BLOCKS, 1).await.unwrap();
            longest_ns = longest_ns.max(own.now_ns() - began_ns);
        }
        (longest_ns, written.get())
    };
    let found = executor.run(task).unwrap();
    executor.shut_down();
    found
}

#[test]
fn a_reader_beside_streaming_writers_waits_for_the_deadline_at_most() {
    // Four writers keep three writes waiting, so each is overdue when its turn comes.
    let deadline_ns = 2 * WRITE_NS;
    let (longest_ns, written) = read_beside_writers(QueueLimits { deadline_ns, ..ONE });
    assert!(longest_ns <= deadline_ns + READ_NS, "{longest_ns} ns");
    let (without_ns, _) = read_beside_writers(QueueLimits { depth: 32, ..ONE });
    assert!(without_ns > deadline_ns + READ_NS, "without a queue {without_ns} ns");
    // Writes get all the time that reads leave: in three seconds, no more than one of each in turn is lost.
    let turns = 3 * SECOND_NS / (31_000_000 + READ_NS);
    let at_least = (3 * SECOND_NS - (turns + 2) * READ_NS) / WRITE_NS - 2;
    assert!(written >= at_least, "{written} writes, and {at_least} are expected");
}

/// Runs two readers without pauses, and ten simultaneous writes. Returns when the last write ended, if that was before
/// the readers had read a thousand times.
fn writes_beside_readers(limits: QueueLimits) -> Option<u64> {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let task = async move {
        let (device, left, last_ns) = (device(&own, limits), Rc::new(Cell::new(10)), Rc::new(Cell::new(0)));
        let reader = |start: u64| {
            let device = device.clone();
            own.spawn(async move {
                for number in 0..500 {
                    device.read(start + 2 * (number % 100), 1).await.unwrap();
                }
            })
        };
        let readers = [reader(40 * ZONE_BLOCKS), reader(50 * ZONE_BLOCKS)];
        for zone in 0..10 {
            let (device, left, last_ns, executor) = (device.clone(), left.clone(), last_ns.clone(), own.clone());
            own.spawn(async move {
                device.write(zone * ZONE_BLOCKS, bytes(WRITE_BLOCKS)).await.unwrap();
                left.set(left.get() - 1);
                last_ns.set(executor.now_ns());
            });
        }
        for reader in readers {
            reader.await;
        }
        (left.get() == 0).then_some(last_ns.get())
    };
    let found = executor.run(task).unwrap();
    executor.shut_down();
    found
}

#[test]
fn no_write_waits_for_ever_beside_readers() {
    assert_eq!(writes_beside_readers(ONE), None, "with no deadline they do");
    let deadline_ns = SECOND_NS;
    let last_ns = writes_beside_readers(QueueLimits { deadline_ns, ..ONE }).unwrap();
    // After the deadline, reads and writes take turns; a read is in flight then, and one more may precede the first
    // write.
    let most_ns = deadline_ns + 2 * READ_NS + 10 * WRITE_NS + 9 * READ_NS;
    assert!((deadline_ns..=most_ns).contains(&last_ns), "{last_ns} ns, and {most_ns} are the most");
}

#[test]
fn writes_that_follow_each_other_go_as_one() {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let task = async move {
        let counting = Counting::new(Timed::new(64, ZONE_BLOCKS));
        let operations = counting.operations.clone();
        let device = Device::new(&own, "drive", Box::new(counting));
        device.set_queue_limits(ONE);
        let write = |number: u64| {
            let device = device.clone();
            own.spawn(async move { device.write(number * 4, bytes(4)).await.unwrap() })
        };
        // The first is written by itself, 64 of the others as one, and 36 as another.
        let tasks: Vec<_> = (0..101).map(write).collect();
        for task in tasks {
            task.await;
        }
        let took_ns = own.now_ns();
        assert!(device.read(0, 404).await.unwrap() == bytes(404));
        assert_eq!(*operations.borrow(), [4, 256, 144]);
        took_ns
    };
    // The writes begin at the head, and each continues where the one before ended: no seek at all.
    assert_eq!(executor.run(task).unwrap(), 404 * BLOCK_NS);
    executor.shut_down();
}

#[test]
fn a_flush_is_not_answered_before_one_that_others_began_for_the_same_write() {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let task = async move {
        let device = device(&own, ONE);
        let write = |zone: u64| {
            let device = device.clone();
            own.spawn(async move { device.write(zone * ZONE_BLOCKS, bytes(WRITE_BLOCKS)).await.unwrap() })
        };
        // The other task's flush follows its write, and both follow our write.
        let (ours, _) = (write(1), write(2));
        let other = device.clone();
        own.spawn(async move { other.flush().await.unwrap() });
        ours.await;
        assert_eq!(own.now_ns(), WRITE_NS);
        device.flush().await.unwrap();
        own.now_ns()
    };
    assert_eq!(executor.run(task).unwrap(), 2 * WRITE_NS);
    executor.shut_down();
}

/// Returns a file system on three drives with one parity, and the sizes of all writes to the drives in blocks.
async fn array(executor: &Executor, bounds: Bounds) -> (Fs, Rc<RefCell<Vec<u64>>>) {
    let operations = Rc::new(RefCell::new(Vec::new()));
    let drive = |number: u32| {
        let mut counting = Counting::new(Timed::new(48, ZONE_BLOCKS));
        counting.operations = operations.clone();
        Device::new(executor, &format!("drive {number}"), Box::new(counting))
    };
    let drives: Vec<Device> = (0..3).map(drive).collect();
    let metadata = Memory::new(Geometry { blocks: 40_000, kind: Kind::Plain });
    let metadata = [Device::new(executor, "metadata", Box::new(metadata))];
    let options = MakeOptions { store: Some("log".into()), parity: 1, ..MakeOptions::default() };
    make_on(Parts { drives: &drives, metadata: &metadata, spares: &[] }, &options, 0).await.unwrap();
    let devices: Vec<Device> = drives.into_iter().chain(metadata).collect();
    let options = MountOptions { bounds: Some(bounds), ..MountOptions::default() };
    let (fs, _) = Fs::mount(executor, &devices, &options).await.unwrap();
    operations.borrow_mut().clear();
    (fs, operations)
}

async fn create(fs: &Fs, name: &str) -> u32 {
    fs.make_node(ROOT, name.as_bytes(), REGULAR | 0o644, 0, Caller::default()).await.unwrap().inode
}

const CACHE_BYTES: u64 = 4 << 20;

#[test]
fn files_larger_than_all_memory_for_them_are_streamed_beside_a_reader() {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let task = async move {
        let bounds = Bounds {
            cache_bytes: CACHE_BYTES,
            written_blocks: 0,
            queue: QueueLimits { deadline_ns: 2 * WRITE_NS, ..ONE },
            ..Bounds::default()
        };
        let (fs, writes) = array(&own, bounds).await;
        let small = create(&fs, "small").await;
        fs.write(small, 0, &bytes(1)).await.unwrap();
        fs.sync().await.unwrap();
        let (most_bytes, left) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(3)));
        let piece = 128 * BLOCK_BYTES as u64;
        for number in 0..3 {
            let (fs, most_bytes, left) = (fs.clone(), most_bytes.clone(), left.clone());
            own.spawn(async move {
                let inode = create(&fs, &format!("large {number}")).await;
                for at in 0..(24 << 20) / piece {
                    fs.write(inode, at * piece, &bytes(128)).await.unwrap();
                    most_bytes.set(fs.status().staged_bytes.max(most_bytes.get()));
                }
                left.set(left.get() - 1);
            });
        }
        let (mut longest_ns, mut reads) = (0, 0);
        while left.get() > 0 {
            own.sleep(17_000_000).await;
            let began_ns = own.now_ns();
            assert_eq!(fs.read(small, 0, BLOCK_BYTES).await.unwrap().len(), BLOCK_BYTES);
            longest_ns = longest_ns.max(own.now_ns() - began_ns);
            reads += 1;
        }
        let largest = writes.borrow().iter().copied().max().unwrap();
        (longest_ns, reads, most_bytes.get(), largest)
    };
    let (longest_ns, reads, most_bytes, largest) = executor.run(task).unwrap();
    executor.shut_down();
    println!("{reads} reads, the longest {:.1} ms; {most_bytes} bytes staged", longest_ns as f64 / 1e6);
    assert!(reads > 20, "{reads} reads");
    assert!(longest_ns <= 2 * WRITE_NS + READ_NS, "{longest_ns} ns");
    assert!(largest <= WRITE_BLOCKS, "a write of {largest} blocks");
    // Three writers, each with one write beyond the cache.
    assert!(most_bytes <= CACHE_BYTES + 3 * 128 * BLOCK_BYTES as u64, "{most_bytes} bytes");
}

/// Returns how many of eight reads a device has in flight at most.
async fn reads_at_once(executor: &Executor, device: &Device, at_once: &Cell<(usize, usize)>) -> usize {
    at_once.set((at_once.get().0, 0));
    let read = |block: u64| {
        let device = device.clone();
        executor.spawn(async move { device.read(block, 1).await.unwrap() })
    };
    let tasks: Vec<_> = (0..8).map(read).collect();
    for task in tasks {
        task.await;
    }
    at_once.get().1
}

#[test]
fn devices_that_come_later_keep_to_the_bounds_of_the_mount() {
    for (queue, expected) in [(ONE, 1), (QueueLimits { depth: 3, ..ONE }, 3)] {
        let executor = Executor::in_virtual_time();
        let own = executor.clone();
        let task = async move {
            let (fs, _) = array(&own, Bounds { queue, ..Bounds::default() }).await;
            let drive = |name: &str| {
                let counting = Counting::new(Timed::new(48, ZONE_BLOCKS));
                let at_once = counting.at_once.clone();
                (Device::new(&own, name, Box::new(counting)), at_once)
            };
            let [added, spare, successor] = ["added", "spare", "successor"].map(drive);
            fs.add_drive(&added.0, Uuid::from_u128(71), false).await.unwrap();
            fs.add_spare(&spare.0, Uuid::from_u128(72), false).await.unwrap();
            let named = Some((&successor.0, Uuid::from_u128(73)));
            fs.replace_drive(0, named, false, |_| true).await.unwrap();
            let memory = Counting::new(Memory::new(Geometry { blocks: 40_000, kind: Kind::Plain }));
            let at_once = memory.at_once.clone();
            let copy = (Device::new(&own, "copy", Box::new(memory)), at_once);
            fs.replace_copy(0, (&copy.0, Uuid::from_u128(74)), false, |_, _| true).await.unwrap();
            for (device, at_once) in [&added, &spare, &successor, &copy] {
                let found = reads_at_once(&own, device, at_once).await;
                assert_eq!(found, expected, "{}: {queue:?}", device.name());
            }
        };
        executor.run(task).unwrap();
        executor.shut_down();
    }
}
