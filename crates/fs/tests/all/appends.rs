//! Goal: a file on an array is written in several appends at a time, so that no drive waits for a rotation between two
//! of them. If one fails, everything behind it is written elsewhere, and acknowledged data is kept. Method: rotating
//! drives with times in closed form, in virtual time; and models that refuse a write, lose a zone or die at each of the
//! appends in flight.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use imbrex_fs::core::{Caller, MakeOptions, MountOptions, Parts, make_on};
use imbrex_fs::device::memory::Memory;
use imbrex_fs::device::model::{Contents, Model};
use imbrex_fs::device::{BLOCK_BYTES, Backend, DeviceFault, Geometry, Kind, Operation, Outcome, ZoneCondition};
use imbrex_fs::format::file_type::REGULAR;
use imbrex_fs::namespace::ROOT;
use imbrex_fs::verify::operation::{find, pattern};
use imbrex_fs::{Bounds, Device, Executor, Fs, FsError};

use crate::support::devices::{Counting, Late};
use crate::support::timed::{BLOCK_NS, SEEK_NS, Timed};

/// A rotation at 7,200 per minute, nanoseconds.
const TURN_NS: u64 = 8_333_333;
const TRANSFER_BLOCKS: usize = 20_000;

async fn make(drives: &[Device], metadata: &Device, append_blocks: Option<u64>) {
    let options = append_blocks.map(|blocks| ("append_blocks".to_string(), blocks.to_string()));
    let (store, options) = (Some("log".into()), options.into_iter().collect());
    let options = MakeOptions { store, options, parity: 1, ..MakeOptions::default() };
    make_on(Parts { drives, metadata: std::slice::from_ref(metadata), spares: &[] }, &options, 0).await.unwrap();
}

async fn mount(executor: &Executor, devices: &[Device], bounds: Bounds) -> Result<Fs, FsError> {
    let options = MountOptions { bounds: Some(bounds), ..MountOptions::default() };
    Ok(Fs::mount(executor, devices, &options).await?.0)
}

/// Returns the time until a file that is written at once to five rotating drives is durable, nanoseconds; the number of
/// writes to the first drive; and their blocks.
fn transfer(appends: usize) -> (u64, u64, u64) {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let work = async move {
        let counting = (0..5).map(|_| Counting::new(Timed::new(4, 8192).turning(TURN_NS))).collect::<Vec<_>>();
        let writes = counting[0].operations.clone();
        let device = |inner: Box<dyn Backend>| Device::new(&own, "device", inner);
        let drives: Vec<Device> = counting.into_iter().map(|drive| device(Box::new(drive))).collect();
        let flash = device(Box::new(Memory::new(Geometry { blocks: 4096, kind: Kind::Plain })));
        make(&drives, &flash, None).await;
        // An append is one command on each drive, and all appends are submitted at once.
        let bounds = Bounds { appends, piece_blocks: 2048, behind_bytes: u64::MAX, ..Bounds::default() };
        let fs = mount(&own, &[drives, vec![flash]].concat(), bounds).await.unwrap();
        let inode = fs.make_node(ROOT, b"f", REGULAR | 0o644, 0, Caller::default()).await.unwrap().inode;
        fs.write(inode, 0, &vec![7; TRANSFER_BLOCKS * BLOCK_BYTES]).await.unwrap();
        writes.borrow_mut().clear();
        // All earlier operations are long over.
        own.sleep(100 * TURN_NS).await;
        let began_ns = own.now_ns();
        fs.fsync(inode).await.unwrap();
        let (took_ns, writes) = (own.now_ns() - began_ns, writes.borrow().clone());
        assert!(fs.read(inode, 0, TRANSFER_BLOCKS * BLOCK_BYTES).await.unwrap().iter().all(|byte| *byte == 7));
        (took_ns, writes.len() as u64, writes.iter().sum())
    };
    let outcome = executor.run(work).unwrap();
    executor.shut_down();
    outcome
}

#[test]
fn drives_turn_in_vain_between_appends_only_where_one_is_under_way_at_a_time() {
    let (one_ns, appends, blocks) = transfer(1);
    // The zone's header is written with the first append.
    assert!(appends >= 20, "{appends} appends of {TRANSFER_BLOCKS} blocks");
    let transfer_ns = blocks * BLOCK_NS;
    assert_eq!(
        one_ns,
        SEEK_NS + (appends - 1) * TURN_NS + transfer_ns,
        "{appends} appends, each behind the one before"
    );
    for at_once in [2, 3, 4] {
        assert_eq!(transfer(at_once), (SEEK_NS + transfer_ns, appends, blocks), "{at_once} at a time");
    }
}

/// A fault of a drive at a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    /// The drive refuses this write.
    Refused,
    /// The zone is read-only from then on.
    ReadOnly,
    /// The zone is offline: its data is lost.
    Offline,
    /// The drive no longer answers.
    Dead,
}

/// A model with a fault at the write to one block.
struct Befallen {
    model: Model,
    at: Rc<RefCell<Option<(u64, Fault)>>>,
    refused: Vec<(u64, Outcome)>,
    /// Number of times that the fault occurred.
    times: Rc<Cell<u32>>,
}

impl Backend for Befallen {
    fn geometry(&self) -> Geometry {
        self.model.geometry()
    }

    fn submit(&mut self, now_ns: u64, number: u64, operation: Operation) {
        let fault = match (&operation, *self.at.borrow()) {
            (Operation::Write { block, .. }, Some((at, fault))) if *block == at => Some(fault),
            _ => None,
        };
        let zone_blocks = match self.geometry().kind {
            Kind::Zoned { zone_blocks, .. } => zone_blocks,
            _ => self.geometry().blocks,
        };
        let fail_zone = |condition| {
            let zone = self.at.borrow().map_or(0, |(at, _)| at / zone_blocks) as u32;
            self.model.alter(|contents| contents.fail_zone(zone, condition));
        };
        self.times.set(self.times.get() + u32::from(fault.is_some()));
        match fault {
            Some(Fault::Refused) => {
                return self.refused.push((number, Err(DeviceFault::new("a write is refused"))));
            }
            Some(Fault::ReadOnly) => fail_zone(ZoneCondition::ReadOnly),
            Some(Fault::Offline) => fail_zone(ZoneCondition::Offline),
            Some(Fault::Dead) => self.model.fail_after(0),
            None => {}
        }
        self.model.submit(now_ns, number, operation);
    }

    fn next_event_ns(&mut self, now_ns: u64) -> Option<u64> {
        if self.refused.is_empty() { self.model.next_event_ns(now_ns) } else { Some(now_ns) }
    }

    fn answers(&mut self, now_ns: u64, answers: &mut Vec<(u64, Outcome)>) {
        answers.append(&mut self.refused);
        self.model.answers(now_ns, answers);
    }

    fn head_position(&self) -> u64 {
        self.model.head_position()
    }
}

const DRIVES: usize = 4;
const ZONE_BLOCKS: u64 = 64;
const ZONES: u32 = 12;
/// Two rows of three data blocks.
const APPEND_BLOCKS: u64 = 6;
const LATE_NS: u64 = 1_000_000;
/// Six appends: a first one, four in flight at a time, and a last one.
const LONG: usize = 6 * APPEND_BLOCKS as usize * BLOCK_BYTES;
const BEFORE: usize = APPEND_BLOCKS as usize * BLOCK_BYTES;

fn devices_of(executor: &Executor, models: &[Model], missing: &[usize]) -> Vec<Device> {
    let there = models.iter().enumerate().filter(|(number, _)| !missing.contains(number));
    there.map(|(number, model)| Device::new(executor, &format!("model {number}"), Box::new(model.clone()))).collect()
}

async fn write(fs: &Fs, name: &str, seed: u8, length: usize) -> Result<u32, FsError> {
    let inode = match find(fs, name) {
        Ok(inode) => inode,
        Err(_) => fs.make_node(ROOT, name.as_bytes(), REGULAR | 0o644, 0, Caller::default()).await?.inode,
    };
    fs.write(inode, 0, &pattern(seed, 0, length)).await?;
    fs.fsync(inode).await?;
    Ok(inode)
}

async fn compare(fs: &Fs, when: &str) {
    for (name, seed, length) in [("before", 1, BEFORE), ("long", 2, LONG)] {
        let read = fs.read(find(fs, name).unwrap(), 0, 1 << 20).await;
        let read = read.unwrap_or_else(|error| panic!("{when}: '{name}': {error}"));
        assert!(read == pattern(seed, 0, length), "{when}: '{name}' has other bytes");
    }
    assert_eq!(fs.self_check(), Vec::<String>::new(), "{when}");
}

/// Writes a file of six appends, `appends` of them at a time, with `fault` on drive `drive` at append number `append`.
/// Returns the largest number of operations in flight on that drive.
fn befall(kind: Kind, appends: usize, (drive, append, fault): (usize, u64, Fault)) -> usize {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let when = format!("{kind:?}, {appends} at a time: {fault:?} at append {append} on drive {drive}");
    let work = async move {
        // A drive without zones is divided into 256.
        let blocks = ZONE_BLOCKS * if kind == Kind::Plain { 256 } else { u64::from(ZONES) };
        let geometries = vec![Geometry { blocks, kind }; DRIVES].into_iter();
        let flash = Geometry { blocks: 2000, kind: Kind::Plain };
        let models: Vec<Model> = geometries.chain([flash]).map(Model::new).collect();
        let mut devices = devices_of(&own, &models, &[]);
        let befallen =
            Befallen { model: models[drive].clone(), at: Rc::default(), refused: Vec::new(), times: Rc::default() };
        let (at, times) = (befallen.at.clone(), befallen.times.clone());
        let counting = Counting::new(Late::new(befallen, LATE_NS));
        let at_once = counting.at_once.clone();
        devices[drive] = Device::new(&own, "befallen", Box::new(counting));
        make(&devices[..DRIVES], &devices[DRIVES], Some(APPEND_BLOCKS)).await;
        let bounds = Bounds { appends, pieces: 1, ..Bounds::default() };
        let fs = mount(&own, &devices, bounds).await.unwrap();
        write(&fs, "before", 1, BEFORE).await.unwrap();
        let next = models[drive].contents().used_blocks().pop().unwrap() + 1;
        *at.borrow_mut() = Some((next + append * APPEND_BLOCKS / (DRIVES as u64 - 1), fault));
        at_once.set((0, 0));
        write(&fs, "long", 2, LONG).await.unwrap_or_else(|error| panic!("{when}: {error}"));
        assert_eq!(times.get(), 1, "{when}: it has come to pass");
        compare(&fs, &when).await;
        // Data that was acknowledged but not durable is lost here.
        let left: Vec<Contents> = models.iter().map(|model| model.snapshot().cut(|_| false)).collect();
        for missing in (0..=DRIVES).filter(|missing| fault != Fault::Dead || *missing == drive) {
            let when = format!("{when}, then {missing} missing");
            let missing = if missing == DRIVES { vec![] } else { vec![missing] };
            let models: Vec<Model> = left.iter().cloned().map(Model::with).collect();
            // The data of an offline zone is reconstructed from the other drives, so no further drive may be missing.
            if fault == Fault::Offline && missing.iter().any(|it| *it != drive) {
                continue;
            }
            compare(&mount(&own, &devices_of(&own, &models, &missing), Bounds::default()).await.unwrap(), &when).await;
        }
        assert_eq!(fs.status().missing, if fault == Fault::Dead { vec![drive as u8] } else { vec![] }, "{when}");
        fs.unmount().await.unwrap();
        at_once.get().1
    };
    let outcome = executor.run(work).unwrap();
    executor.shut_down();
    outcome
}

#[test]
fn what_fails_among_appends_under_way_is_written_elsewhere_with_all_behind_it() {
    let zoned = Kind::Zoned { zone_blocks: ZONE_BLOCKS, zones: ZONES, conventional: 0, active_max: None };
    let of_zones = [Fault::Refused, Fault::ReadOnly, Fault::Offline, Fault::Dead];
    for (kind, faults) in [(zoned, &of_zones[..]), (Kind::Plain, &[Fault::Refused, Fault::Dead])] {
        for fault in faults {
            for (drive, append) in (0..DRIVES).flat_map(|drive| (0..6).map(move |append| (drive, append))) {
                let most = befall(kind, 4, (drive, append, *fault));
                assert!(most >= 4 || append == 0, "{most} operations at a time");
                befall(kind, 1, (drive, append, *fault));
            }
        }
    }
}
