//! An emulated drive as a Linux block device, `/dev/ublkbN`, whose requests the kernel gives to this process.
//!
//! The protocol is spoken here over `io-uring`: it is six commands and a table of requests. The `libublk` crate would
//! bring an executor and needs libclang to build.
//!
//! The device goes when the process does. The kernel could let it wait for another server (user recovery), but a killed
//! drive has lost its volatile cache, and a file system above would go on as if it had not.
//!
//! Invariants:
//! 1. A device that was made is taken away and forgotten, whatever goes wrong after.

pub mod abi;
pub mod control;
mod queue;

use std::fs::File;
use std::path::PathBuf;
use std::sync::mpsc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use abi::{attribute, part, DeviceInfo, Parameters, KERNEL_SECTOR_BYTES};
use control::{no_ring, Control, Words};
use queue::{Agreed, Queue};

use crate::front::{Facts, Front};

/// Requests at once: as many as a SATA drive's queue takes, and as many again in the block layer's hands.
const QUEUE_DEPTH: u16 = 64;
/// Bytes of a request at most.
const REQUEST_BYTES_MAX: u32 = 1 << 20;
/// Bytes of a discard at most.
const DISCARD_BYTES_MAX: u64 = 1 << 30;
/// Bytes of a write of zeroes at most, which may have to be written.
const ZEROES_BYTES_MAX: u64 = 8 << 20;
/// How long the character device may take to appear.
const APPEARANCE_TIME: Duration = Duration::from_secs(10);

/// A block device with a drive behind it.
pub struct BlockDevice {
    control: Control,
    number: u32,
    queue: Option<JoinHandle<std::io::Result<()>>>,
    is_gone: bool,
}

impl BlockDevice {
    /// Makes `/dev/ublkbN` of the drive behind `front`; without a number, the first that is free.
    pub fn start(front: Arc<Front>, number: Option<u32>) -> Result<BlockDevice, Words> {
        let mut control = Control::open()?;
        let mut info = DeviceInfo {
            queues: 1,
            queue_depth: QUEUE_DEPTH,
            request_bytes_max: REQUEST_BYTES_MAX,
            device: number.unwrap_or(u32::MAX),
            process: std::process::id() as i32,
            ..DeviceInfo::default()
        };
        control.add(&mut info)?;
        // From here on the device is forgotten again when this goes out of scope.
        let mut device = BlockDevice { control, number: info.device, queue: None, is_gone: false };
        device.control.set_parameters(info.device, &mut parameters(front.facts()))?;
        let bytes = info.request_bytes_max as usize;
        let agreed = Agreed::new(info.queue_depth, bytes, |command| device.control.opcode(command));
        device.queue = Some(begin_queue(front, open_when_there(info.device)?, agreed)?);
        device.control.start(info.device)?;
        Ok(device)
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        format!("/dev/ublkb{}", self.number).into()
    }

    /// Whether somebody has mounted it, or claims it otherwise.
    pub fn is_in_use(&self) -> bool {
        let exclusive =
            std::os::unix::fs::OpenOptionsExt::custom_flags(File::options().read(true), libc::O_EXCL).open(self.path());
        exclusive.is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
    }

    /// Whether its queue still runs: it ends by itself only when something is wrong.
    pub fn is_served(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| !queue.is_finished())
    }

    /// Takes it away: what was written is with the drive when this returns.
    pub fn stop(mut self) -> Result<(), Words> {
        self.end()
    }

    fn end(&mut self) -> Result<(), Words> {
        self.is_gone = true;
        let (mut stopped, mut ended) = (Ok(()), Ok(()));
        if let Some(queue) = self.queue.take() {
            stopped = self.control.stop(self.number);
            ended = queue.join().expect("the queue's thread does not panic");
        }
        let deleted = self.control.delete(self.number);
        stopped.and(deleted).map_err(|error| self.stays(&error))?;
        ended.map_err(|error| format!("{}: its queue failed: {error}", self.path().display()))
    }

    fn stays(&self, error: &std::io::Error) -> Words {
        format!("{} cannot be taken away: {error}", self.path().display())
    }
}

impl Drop for BlockDevice {
    fn drop(&mut self) {
        if !self.is_gone {
            // Already on the way out with an error that says more.
            let _ = self.end();
        }
    }
}

/// The character device of a device just made, which may take a moment to appear.
fn open_when_there(number: u32) -> Result<File, Words> {
    let path = format!("/dev/ublkc{number}");
    let begun = Instant::now();
    loop {
        match File::options().read(true).write(true).open(&path) {
            Ok(file) => return Ok(file),
            Err(error) if begun.elapsed() > APPEARANCE_TIME => return Err(format!("{path}: {error}")),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// Starts the thread of the queue; comes back when it is about to ask for requests.
fn begin_queue(front: Arc<Front>, device: File, agreed: Agreed) -> Result<JoinHandle<std::io::Result<()>>, Words> {
    let (made, is_made) = mpsc::channel();
    let thread = std::thread::Builder::new().name("ublk".into()).spawn(move || {
        let queue = Queue::new(front, device, agreed);
        // Whoever starts the thread waits for this word.
        let _ = made.send(queue.as_ref().err().map(no_ring));
        queue?.run()
    });
    let thread = thread.map_err(|error| format!("no thread for the queue: {error}"))?;
    match is_made.recv() {
        Ok(None) => Ok(thread),
        Ok(Some(words)) => Err(words),
        Err(_) => Err("the queue's thread ended before it began".into()),
    }
}

/// What the block layer is told of the drive.
fn parameters(facts: &Facts) -> Parameters {
    let shift = facts.sector_bytes.trailing_zeros() as u8;
    // Flushes are asked for even where the drive has no volatile cache: they are what makes its image durable.
    let mut attributes = attribute::ROTATIONAL | attribute::VOLATILE_CACHE | attribute::FUA;
    if facts.read_only {
        attributes |= attribute::READ_ONLY;
    }
    let mut parameters = Parameters {
        length: size_of::<Parameters>() as u32,
        parts: part::BASIC | part::DISCARD,
        attributes,
        logical_shift: shift,
        physical_shift: shift,
        best_shift: shift,
        least_shift: shift,
        sectors_max: (u64::from(REQUEST_BYTES_MAX) / KERNEL_SECTOR_BYTES) as u32,
        sectors: facts.capacity_bytes / KERNEL_SECTOR_BYTES,
        discard_granularity: facts.sector_bytes,
        zeroes_sectors_max: (ZEROES_BYTES_MAX / KERNEL_SECTOR_BYTES) as u32,
        discard_segments_max: 1,
        ..Parameters::default()
    };
    if facts.trims_to_zeros {
        let sectors_max = (DISCARD_BYTES_MAX / KERNEL_SECTOR_BYTES) as u32;
        (parameters.discard_sectors_max, parameters.zeroes_sectors_max) = (sectors_max, sectors_max);
    }
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            label: "a drive".into(),
            capacity_bytes: 1 << 30,
            sector_bytes: 4096,
            read_only: false,
            trims_to_zeros: false,
            has_volatile_cache: true,
        }
    }

    #[test]
    fn the_block_layer_is_told_what_the_drive_is() {
        let told = parameters(&facts());
        assert_eq!((told.logical_shift, told.physical_shift), (12, 12));
        assert_eq!(told.sectors, 2 << 20, "sectors of 512 bytes");
        assert_eq!(told.attributes & attribute::READ_ONLY, 0);
        assert_eq!(told.discard_sectors_max, 0, "a layer that forgets trims takes none");
        let told = parameters(&Facts { read_only: true, trims_to_zeros: true, ..facts() });
        assert_ne!(told.attributes & attribute::READ_ONLY, 0);
        assert!(told.discard_sectors_max > 0);
    }

    #[test]
    fn without_a_driver_the_error_says_what_to_do() {
        if std::path::Path::new("/dev/ublk-control").exists() {
            eprintln!("skipped: this kernel has a ublk driver");
            return;
        }
        let error = Control::open().err().expect("there is no driver");
        assert!(error.contains("modprobe ublk_drv") && error.contains("--nbd"), "{error}");
    }
}
