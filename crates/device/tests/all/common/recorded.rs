//! Drives after random work, with a separate record of the expected contents of every sector.

use imbrex_device::caveat::CaveatDevice;
use imbrex_device::image::Bounds;
use imbrex_device::image::regions::{Use, Used};
use imbrex_device::media::memory::Memory;
use imbrex_device::verify::values::{LOST, fill, version_in};
use imbrex_device::zoned::Condition;
use imbrex_device::{DeviceError, EmulatedCaveat, EmulatedDrive, EmulatedZoned, Media, Store, ZonedDevice};
use imbrex_disk::{Lba, Sectors, SimDuration};
use imbrex_layer::verify::toy::below;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256StarStar;

use super::{Shared, Subject};

/// Bytes of a sector of a toy.
pub(crate) const SECTOR: usize = 512;
/// Most sectors of one write.
const SECTORS_MAX: u64 = 20;

/// An image after an orderly shutdown, and the expected contents of its sectors.
pub(crate) struct Recorded {
    /// The image.
    pub image: Memory,
    /// Version of each sector, or [`LOST`] if the host itself destroyed the sector.
    pub right: Vec<u64>,
}

/// Opens the drive on `medium`.
pub(crate) fn open(medium: impl Media + 'static, bounds: Bounds) -> Result<EmulatedDrive, DeviceError> {
    let medium: Box<dyn Media> = Box::new(medium);
    Store::open_bounded(medium, "image", bounds, |_| {}).map(EmulatedDrive::new)
}

/// Returns the bytes of `medium`.
pub(crate) fn bytes_of(mut medium: Memory) -> Vec<u8> {
    let mut bytes = vec![0; medium.len() as usize];
    medium.read_at(0, &mut bytes).expect("memory reads");
    bytes
}

/// Performs `actions` random actions on a new drive and shuts it down.
pub(crate) fn recorded(subject: &Subject, seed: u64, actions: u32, bounds: Bounds) -> Recorded {
    let (medium, mut drive, mut host) = begun(subject, seed, bounds);
    drive = host.work(drive, actions);
    drive.shut_down().expect("memory takes it");
    drop(drive);
    Recorded { image: medium.with(|medium| medium.clone()), right: host.right }
}

/// Like [`recorded`], but the process is killed after a flush and some reads.
pub(crate) fn killed(subject: &Subject, seed: u64, actions: u32) -> Recorded {
    let (medium, mut drive, mut host) = begun(subject, seed, Bounds::default());
    drive = host.work(drive, actions);
    drive.flush().expect("memory takes it");
    drop(drive);
    Recorded { image: medium.with(|medium| medium.clone()), right: host.right }
}

fn begun(subject: &Subject, seed: u64, bounds: Bounds) -> (Shared<Memory>, EmulatedDrive, Host) {
    let medium = Shared::new(Memory::new());
    let boxed: Box<dyn Media> = Box::new(medium.clone());
    let drive = subject.header.drive().expect("it was assembled before");
    let opened = Store::create_bounded(boxed, subject.header.clone(), drive, bounds).expect("memory takes it");
    let drive = EmulatedDrive::new(opened);
    let host = Host::new(&drive, seed);
    (medium, drive, host)
}

/// A host that records its writes.
pub(crate) struct Host {
    random: Xoshiro256StarStar,
    /// Expected version of each sector, as in [`Recorded`].
    pub right: Vec<u64>,
    version: u64,
}

impl Host {
    /// Returns the host of a new drive.
    pub(crate) fn new(drive: &EmulatedDrive, seed: u64) -> Host {
        let sectors = drive.drive().layer.capacity().0 as usize;
        let is_damaged = drive.drive().disk.recording.leaves_damage_to_host();
        let right = vec![if is_damaged { LOST } else { 0 }; sectors];
        Host { random: Xoshiro256StarStar::seed_from_u64(seed), right, version: 0 }
    }

    /// Returns the host of a recorded drive.
    pub(crate) fn of(right: Vec<u64>, seed: u64) -> Host {
        Host { random: Xoshiro256StarStar::seed_from_u64(seed), right, version: 1 << 40 }
    }

    /// Performs `actions` random actions that suit the kind of drive.
    pub(crate) fn work(&mut self, drive: EmulatedDrive, actions: u32) -> EmulatedDrive {
        let layer = &drive.drive().layer;
        let (is_host_managed, has_zones) = (layer.is_host_managed(), layer.zones().is_some());
        if has_zones {
            let mut device = EmulatedZoned::new(drive).expect("it has zones");
            (0..actions).for_each(|_| self.act_in_zone(&mut device));
            device.into_drive()
        } else if is_host_managed {
            let mut device = EmulatedCaveat::new(drive).expect("it is a caveat disk");
            (0..actions).for_each(|_| self.act_on_caveat(&mut device));
            device.into_drive()
        } else {
            let mut drive = drive;
            (0..actions).for_each(|_| self.act(&mut drive));
            drive
        }
    }

    /// Returns bytes to write to `sectors` from `lba` on, and records them as expected. Some are zeros.
    fn fresh(&mut self, lba: u64, sectors: u64) -> Vec<u8> {
        self.version += 1;
        let version = if below(&mut self.random, 16) == 0 { 0 } else { self.version };
        let mut bytes = vec![0; sectors as usize * SECTOR];
        fill(&mut bytes, lba, version, SECTOR);
        self.right[lba as usize..(lba + sectors) as usize].fill(version);
        bytes
    }

    fn place(&mut self) -> (u64, u64) {
        let sectors = 1 + below(&mut self.random, SECTORS_MAX);
        (below(&mut self.random, self.right.len() as u64 - sectors), sectors)
    }

    fn act(&mut self, drive: &mut EmulatedDrive) {
        let (lba, sectors) = self.place();
        match below(&mut self.random, 12) {
            0 => drive.flush().expect("memory takes it"),
            1 => {
                drive.trim(lba * SECTOR as u64, sectors * SECTOR as u64).expect("memory takes it");
                if drive.drive().layer.keeps_trims() {
                    self.right[lba as usize..(lba + sectors) as usize].fill(0);
                }
            }
            2 => {
                drive.advance(drive.now() + SimDuration::from_secs(1));
            }
            _ => {
                let bytes = self.fresh(lba, sectors);
                drive.write(lba * SECTOR as u64, &bytes, false).expect("memory takes it");
            }
        }
    }

    fn act_in_zone(&mut self, device: &mut EmulatedZoned) {
        let index = below(&mut self.random, u64::from(device.mode_sense().zones)) as u32;
        let zone = device.zone(index).expect("it has this zone");
        let (start, sectors) = (zone.start.0, 1 + below(&mut self.random, SECTORS_MAX));
        match below(&mut self.random, 12) {
            0 => device.flush().expect("memory takes it"),
            1 if zone.condition != Condition::Conventional => {
                device.reset(index).expect("it has a pointer");
                self.right[start as usize..(start + zone.sectors.0) as usize].fill(0);
            }
            _ => {
                let is_conventional = zone.condition == Condition::Conventional;
                let within = if is_conventional { below(&mut self.random, zone.sectors.0) } else { zone.pointer.0 };
                let sectors = sectors.min(zone.sectors.0 - within);
                if sectors == 0 || zone.condition == Condition::Full {
                    return;
                }
                let before = self.right.clone();
                let bytes = self.fresh(start + within, sectors);
                if let Err(error) = device.write(Lba(start + within), &bytes) {
                    // Too many zones are active.
                    assert!(matches!(error, DeviceError::Zone(_)), "{error}");
                    self.right = before;
                }
            }
        }
    }

    fn act_on_caveat(&mut self, device: &mut EmulatedCaveat) {
        let (lba, sectors) = self.place();
        if below(&mut self.random, 12) == 0 {
            return device.flush().expect("memory takes it");
        }
        let bytes = self.fresh(lba, sectors);
        for damaged in device.mode_sense().damaged_by(Lba(lba), Sectors(sectors)) {
            self.right[damaged as usize] = LOST;
        }
        device.write(Lba(lba), &bytes).expect("memory takes it");
    }

    /// Rewrites every sector, in a way that suits the kind of drive.
    pub(crate) fn write_all(&mut self, drive: EmulatedDrive) -> Result<EmulatedDrive, DeviceError> {
        let all = self.right.len() as u64;
        if drive.drive().layer.zones().is_none() {
            let mut drive = drive;
            for lba in (0..all).step_by(SECTORS_MAX as usize) {
                let bytes = self.fresh(lba, SECTORS_MAX.min(all - lba));
                drive.write(lba * SECTOR as u64, &bytes, false)?;
            }
            return Ok(drive);
        }
        let mut device = EmulatedZoned::new(drive)?;
        device.reset_all()?;
        for index in 0..device.mode_sense().zones {
            let zone = device.zone(index)?;
            let bytes = self.fresh(zone.start.0, zone.sectors.0);
            device.write(zone.start, &bytes)?;
        }
        Ok(device.into_drive())
    }
}

/// Result of reading a drive.
#[derive(Default)]
pub(crate) struct Readings {
    /// Sectors that returned wrong bytes.
    pub wrong: Vec<u64>,
    /// Sectors that should be readable, but failed.
    pub errors: Vec<u64>,
}

/// Reads every sector of `drive`: many at once, and one by one if that fails.
pub(crate) fn read_all(drive: &mut EmulatedDrive, right: &[u64]) -> Readings {
    let (mut readings, mut bytes, window) = (Readings::default(), Vec::new(), 48);
    for first in (0..right.len()).step_by(window) {
        let end = right.len().min(first + window);
        bytes.resize((end - first) * SECTOR, 0);
        if drive.read((first * SECTOR) as u64, &mut bytes).is_ok() {
            readings.take(first, &bytes, &right[first..end]);
            continue;
        }
        for lba in first..end {
            match drive.read((lba * SECTOR) as u64, &mut bytes[..SECTOR]) {
                Ok(()) => readings.take(lba, &bytes[..SECTOR], &right[lba..=lba]),
                Err(_) if right[lba] == LOST => {}
                Err(_) => readings.errors.push(lba as u64),
            }
        }
    }
    readings
}

impl Readings {
    fn take(&mut self, first: usize, bytes: &[u8], right: &[u64]) {
        for (index, (sector, &right)) in bytes.chunks_exact(SECTOR).zip(right).enumerate() {
            let lba = (first + index) as u64;
            if version_in(sector, lba) != Ok(right) {
                self.wrong.push(lba);
            }
        }
    }
}

/// Returns the pieces of an image that are in use.
pub(crate) fn used(image: &Memory) -> Vec<Used> {
    let (_, mut store) = Store::open_to_look(image.clone(), "image").expect("it is whole");
    let mut pieces = Vec::new();
    store.for_each_used(&mut |used| pieces.push(used)).expect("memory reads");
    pieces
}

/// Returns the offsets of the two copies of every journal record.
pub(crate) fn journal_places(image: &Memory) -> [Vec<u64>; 2] {
    let records = used(image).into_iter().filter(|used| used.what == Use::Journal);
    let mut first: Vec<u64> = records.flat_map(|used| (used.offset..used.offset + used.bytes).step_by(64)).collect();
    let second = first.split_off(first.len() / 2);
    [first, second]
}

/// Flips a bit of the byte at `at`.
pub(crate) fn flip(media: &mut Memory, at: u64) {
    let mut byte = [0];
    media.read_at(at, &mut byte).expect("memory reads");
    media.write_at(at, &[byte[0] ^ 0x10]).expect("memory takes it");
}
