//! An emulated drive as a Linux block device, `/dev/ublkbN`, whose requests the kernel passes to this process.
//!
//! This module implements the protocol itself over `io-uring`: it has six commands and a table of requests. The
//! `libublk` crate would add an executor, and needs libclang to build.
//!
//! The device disappears with the process. The kernel could let the device wait for another server (user recovery). But
//! a killed drive has lost its volatile cache, and a file system on the device would continue as if the cache were
//! intact.
//!
//! Invariants:
//! 1. A device that was created is stopped and deleted, even after an error.

pub mod abi;
pub mod control;
mod queue;

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use abi::{DeviceInfo, KERNEL_SECTOR_BYTES, Parameters, attribute, feature, part};
use control::{Control, Words, no_ring};
use queue::{Agreed, Queue};

use crate::drive_server::{DriveServer, Facts};
use imbrex_device::zoned::ZonedMode;

/// Maximum number of requests in flight: the queue of a SATA drive, and as many again for the block layer's own
/// queueing.
const QUEUE_DEPTH: u16 = 64;
/// Maximum size of a request in bytes.
const REQUEST_BYTES_MAX: u32 = 1 << 20;
/// Maximum size of a discard in bytes.
const DISCARD_BYTES_MAX: u64 = 1 << 30;
/// Maximum size in bytes of a write of zeroes, which may have to be written.
const ZEROES_BYTES_MAX: u64 = 8 << 20;
/// Maximum time for the character device to appear.
const APPEARANCE_TIME: Duration = Duration::from_secs(10);

/// A Linux block device `/dev/ublkbN` that is backed by an emulated drive. Dropping this value removes the device, if
/// [`BlockDevice::stop`] did not; errors are then ignored.
pub struct BlockDevice {
    control: Control,
    number: u32,
    queue: Option<JoinHandle<std::io::Result<()>>>,
    is_gone: bool,
}

impl BlockDevice {
    /// Creates `/dev/ublkbN` for the drive of `front`, with N = `number`, or the first free number for `None`. A thread
    /// serves its requests.
    ///
    /// # Errors
    ///
    /// The ublk driver or io_uring is missing or forbidden, a server already runs for the number, or the kernel does
    /// not accept the device. Zones must have a power of two of bytes, below 2 TiB.
    pub fn start(front: Arc<DriveServer>, number: Option<u32>) -> Result<BlockDevice, Words> {
        let mut parameters = parameters(front.facts())?;
        let mut control = Control::open()?;
        let is_zoned = front.facts().zones.is_some();
        let mut info = DeviceInfo {
            queues: 1,
            queue_depth: QUEUE_DEPTH,
            request_bytes_max: REQUEST_BYTES_MAX,
            device: number.unwrap_or(u32::MAX),
            process: std::process::id() as i32,
            features: if is_zoned { feature::USER_COPY | feature::ZONED } else { 0 },
            ..DeviceInfo::default()
        };
        control.add(&mut info)?;
        // From here on, dropping `device` deletes the device.
        let mut device = BlockDevice { control, number: info.device, queue: None, is_gone: false };
        device.control.set_parameters(info.device, &mut parameters)?;
        let bytes = info.request_bytes_max as usize;
        let agreed = Agreed::new(info.queue_depth, bytes, |command| device.control.opcode(command));
        device.queue = Some(begin_queue(front, open_when_there(info.device)?, agreed)?);
        device.control.start(info.device)?;
        Ok(device)
    }

    /// Returns the path of the block device, `/dev/ublkbN`.
    pub fn path(&self) -> PathBuf {
        format!("/dev/ublkb{}", self.number).into()
    }

    /// Returns whether the block device is mounted, or opened exclusively in another way. Returns false if this cannot
    /// be found out.
    pub fn is_in_use(&self) -> bool {
        let exclusive =
            std::os::unix::fs::OpenOptionsExt::custom_flags(File::options().read(true), libc::O_EXCL).open(self.path());
        exclusive.is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
    }

    /// Returns whether the thread that serves the device's requests still runs. It ends by itself only after an error.
    pub fn is_served(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| !queue.is_finished())
    }

    /// Removes the block device, after all of its requests have been answered. When this returns, all writes have
    /// reached the drive, whose volatile cache may still hold them.
    ///
    /// # Errors
    ///
    /// The driver does not remove the device, or its requests could not be served until the end.
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
            // The caller already has an error that says more.
            let _ = self.end();
        }
    }
}

/// Opens the character device of a newly created device, which may take a moment to appear.
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

/// Starts the thread of the queue. Returns when the thread is about to ask the driver for requests.
fn begin_queue(
    front: Arc<DriveServer>,
    device: File,
    agreed: Agreed,
) -> Result<JoinHandle<std::io::Result<()>>, Words> {
    let (made, is_made) = mpsc::channel();
    let thread = std::thread::Builder::new().name("ublk".into()).spawn(move || {
        let queue = Queue::new(front, device, agreed);
        // The starting thread waits for this message.
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

/// Returns the parameters that describe the drive to the block layer.
///
/// # Errors
///
/// The reason why the block layer cannot have the drive.
fn parameters(facts: &Facts) -> Result<Parameters, Words> {
    let shift = facts.sector_bytes.trailing_zeros() as u8;
    // The block layer must send flushes even if the drive has no volatile cache: they make its image durable.
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
    if let Some(mode) = &facts.zones {
        add_zones(mode, &mut parameters)?;
    }
    Ok(parameters)
}

fn add_zones(mode: &ZonedMode, parameters: &mut Parameters) -> Result<(), Words> {
    let zone_bytes = mode.zone_sectors.0 * u64::from(mode.sector_bytes);
    let sectors = u32::try_from(zone_bytes / KERNEL_SECTOR_BYTES).ok().filter(|sectors| sectors.is_power_of_two());
    let words = || {
        format!(
            "zones of {zone_bytes} bytes: Linux takes powers of two below 2 TiB; make the drive with others (zone_size=)"
        )
    };
    parameters.zone_sectors = sectors.ok_or_else(words)?;
    parameters.parts |= part::ZONED;
    parameters.open_zones_max = mode.open_max.unwrap_or(0);
    parameters.active_zones_max = mode.active_max.unwrap_or(0);
    parameters.append_sectors_max = parameters.sectors_max;
    // Zeroes, too, must be written at the write pointer: with 0, the block layer writes them as data.
    parameters.zeroes_sectors_max = 0;
    Ok(())
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
            zones: None,
            leaves_damage_to_host: false,
        }
    }

    #[test]
    fn the_block_layer_is_told_what_the_drive_is() {
        let told = parameters(&facts()).expect("it has no zones");
        assert_eq!((told.logical_shift, told.physical_shift), (12, 12));
        assert_eq!(told.sectors, 2 << 20, "sectors of 512 bytes");
        assert_eq!(told.attributes & attribute::READ_ONLY, 0);
        assert_eq!(told.discard_sectors_max, 0, "a layer that forgets trims takes none");
        let told = parameters(&Facts { read_only: true, trims_to_zeros: true, ..facts() }).expect("it has no zones");
        assert_ne!(told.attributes & attribute::READ_ONLY, 0);
        assert!(told.discard_sectors_max > 0);
    }

    #[test]
    fn zones_are_told_in_the_block_layers_sectors() {
        let mode = |zone_sectors| ZonedMode {
            sector_bytes: 4096,
            zone_sectors: imbrex_disk::Sectors(zone_sectors),
            zones: 4,
            conventional_zones: 1,
            open_max: Some(2),
            active_max: None,
        };
        let told = parameters(&Facts { zones: Some(mode(1024)), ..facts() }).expect("4 MiB is a power of two");
        assert_eq!((told.zone_sectors, told.open_zones_max, told.active_zones_max), (8192, 2, 0));
        assert_ne!(told.parts & part::ZONED, 0);
        let words =
            parameters(&Facts { zones: Some(mode(1000)), ..facts() }).expect_err("the kernel takes no such zones");
        assert!(words.contains("4096000 bytes") && words.contains("zone_size"), "{words}");
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
