//! Goal: on emulated drives with their times, file systems behave like a naive one, keep the rules of their drives, and
//! repeat the same device I/O at the same times in a second run. Method: random operations by several concurrent
//! applications; every operation of the device is recorded.

use std::cell::RefCell;
use std::rc::Rc;

use imbrex_device::EmulatedDrive;
use imbrex_device::drive::{Making, header_of};
use imbrex_disk::Profile;
use imbrex_fs::core::{MakeOptions, MountOptions, make};
use imbrex_fs::device::emulated::Emulated;
use imbrex_fs::device::{Backend, Geometry, Operation as Asked, Outcome};
use imbrex_fs::verify::Naive;
use imbrex_fs::verify::cuts::compare_all;
use imbrex_fs::verify::operation::{Chooser, Operation, perform};
use imbrex_fs::{Bounds, Device, Executor, Fs, FsError};
use imbrex_sim::{Drive, DriveSpec};
use uuid::Uuid;

/// Log of a device: its operations with their times, and violations of its rules.
type Log = Rc<RefCell<(Vec<(u64, Asked)>, Vec<String>)>>;

struct Recorder {
    inner: Emulated,
    log: Log,
}

impl Backend for Recorder {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn submit(&mut self, now_ns: u64, number: u64, operation: Asked) {
        self.log.borrow_mut().0.push((now_ns, operation.clone()));
        self.inner.submit(now_ns, number, operation);
    }

    fn next_event_ns(&mut self, now_ns: u64) -> Option<u64> {
        self.inner.next_event_ns(now_ns)
    }

    fn answers(&mut self, now_ns: u64, answers: &mut Vec<(u64, Outcome)>) {
        let before = answers.len();
        self.inner.answers(now_ns, answers);
        let broken = answers[before..].iter().filter_map(|(_, outcome)| outcome.as_ref().err());
        self.log.borrow_mut().1.extend(broken.filter(|fault| fault.breaks_rules).map(ToString::to_string));
    }

    fn head_position(&self) -> u64 {
        self.inner.head_position()
    }
}

fn device(executor: &Executor, words: &str) -> (Device, Log) {
    let spec = DriveSpec::parse(words).unwrap();
    let profile = Profile::named(words.split(':').next().unwrap()).unwrap();
    let drive = Drive::build(&spec, &profile).unwrap();
    let making = Making { uuid: Uuid::from_u128(7), chunk_bytes: 1 << 20, journal_bytes: 1 << 30 };
    let drive = EmulatedDrive::in_memory(header_of(&drive, &spec, &making).unwrap()).unwrap();
    let log = Log::default();
    let recorder = Recorder { inner: Emulated::new(drive).unwrap(), log: log.clone() };
    (Device::new(executor, words, Box::new(recorder)), log)
}

const DRIVES: [(&str, &[(&str, &str)]); 4] = [
    ("strict-append", &[("cleaner", "cost-benefit")]),
    ("caveat-1g:host.write_cache_bytes=1048576", &[]),
    ("caveat-1g", &[("fit", "last-accessed")]),
    ("caveat-1g-512", &[("extents", "on"), ("fit", "worst")]),
];

async fn fresh(executor: &Executor, device: &Device, options: &[(&str, &str)], bounds: Bounds) -> Fs {
    let options = options.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let metadata_blocks = Some(1000);
    let made = MakeOptions { uuid: Some(Uuid::from_u128(3)), options, metadata_blocks, ..MakeOptions::default() };
    make(device, None, &made, 0).await.unwrap();
    mounted(executor, device, bounds).await
}

async fn mounted(executor: &Executor, device: &Device, bounds: Bounds) -> Fs {
    let options = MountOptions { bounds: Some(bounds), ..MountOptions::default() };
    Fs::mount(executor, std::slice::from_ref(device), &options).await.unwrap().0
}

#[test]
fn what_is_written_is_read_also_after_mounting_again() {
    for (words, options) in DRIVES {
        let executor = Executor::in_virtual_time();
        let (device, log) = device(&executor, words);
        let own = executor.clone();
        let run = async move {
            // The cache is so small that files are written all the time, by commands of 16 blocks.
            let bounds = Bounds {
                cache_bytes: 200_000,
                written_blocks: 3,
                piece_blocks: 16,
                checksum_pages: 2,
                ..Bounds::default()
            };
            let mut fs = fresh(&own, &device, options, bounds).await;
            log.borrow_mut().1.clear();
            let mut naive = Naive::default();
            let mut chooser = Chooser::new(11, 300_000);
            for number in 0..1500 {
                let operation = chooser.choose();
                let outcome = perform(&fs, &operation).await;
                assert_ne!(outcome, Err(FsError::NoSpace), "{words}: {operation:?} on a drive that is nearly empty");
                let expected = naive.perform(&operation);
                let number_of = |outcome: &Result<(), FsError>| outcome.as_ref().err().map(FsError::errno);
                assert_eq!(number_of(&outcome), number_of(&expected), "{words}, {number}: {operation:?}");
                if number % 300 == 299 {
                    fs.unmount().await.unwrap();
                    fs = mounted(&own, &device, bounds).await;
                    compare_all(&fs, &naive).await.unwrap_or_else(|why| panic!("{words}, after {number}: {why}"));
                }
            }
            assert_eq!(fs.self_check(), Vec::<String>::new());
            assert!(own.now_ns() > 0, "time passes on an emulated drive");
            fs.unmount().await.unwrap();
            log
        };
        let log = executor.run(run).unwrap();
        assert_eq!(log.borrow().1, Vec::<String>::new(), "{words}: rules of the drive were broken");
    }
}

/// Runs several applications concurrently, each with its own generator of operations.
fn run_of_many(words: &'static str, options: &'static [(&str, &str)], seed: u64) -> (u64, Vec<(u64, Asked)>) {
    let executor = Executor::in_virtual_time();
    let (device, log) = device(&executor, words);
    let own = executor.clone();
    let run = async move {
        let fs = fresh(&own, &device, options, Bounds { cache_bytes: 1 << 20, ..Bounds::default() }).await;
        let mut tasks = Vec::new();
        for application in 0..4u64 {
            let fs = fs.clone();
            tasks.push(own.spawn(async move {
                let mut chooser = Chooser::new(seed + application, 200_000);
                for _ in 0..150 {
                    // One application may remove a file of another: only the final state counts here.
                    let _ = perform(&fs, &chooser.choose()).await;
                }
            }));
        }
        for task in tasks {
            task.await;
        }
        perform(&fs, &Operation::Sync).await.unwrap();
        assert_eq!(fs.self_check(), Vec::<String>::new());
        fs.unmount().await.unwrap();
        own.now_ns()
    };
    let end_ns = executor.run(run).unwrap();
    let log = std::mem::take(&mut log.borrow_mut().0);
    (end_ns, log)
}

#[test]
fn two_runs_with_one_seed_do_the_same_io_at_the_same_times() {
    for (words, options) in DRIVES {
        let (one, other) = (run_of_many(words, options, 5), run_of_many(words, options, 5));
        assert!(one.1.len() > 100, "{words}: {} operations", one.1.len());
        assert_eq!(one, other, "{words}");
        assert_ne!(run_of_many(words, options, 6).1, one.1, "{words}: another seed does something else");
    }
}
