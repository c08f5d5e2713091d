//! The interface of a caveat disk (Singh 2014 §4.2). The host reads DID and DNOR from the disk and may write
//! anywhere. Reads of sectors that its writes may have damaged fail. [`EmulatedCaveat`] is a view of an emulated
//! drive that serves commands in order.
//!
//! *create* and *open* (§4.2.4, §4.2.5) are those of every image: `Store::create` and `Store::open`.
//!
//! Invariants:
//! 1. A write of sectors i … j makes them valid, and marks max(i + 1 + DNOR, j + 1) … j + DID as maybe damaged. For the
//!    host, both changes are atomic (§3.2, §4.1).
//! 2. All sectors of a new disk are maybe damaged. A read that touches a maybe damaged sector returns no bytes, and
//!    its error names the first such sector (§4.2.3).
//! 3. The marks of a write are durable before it is answered. Its data is durable after a flush, or at once if the drive
//!    has no write cache. A power cut in the middle of the write-back of a write may damage its own sectors, too.

use imbrex_disk::recording::distances::CaveatDistances;
use imbrex_disk::{Extent, Lba, Pba, Sectors};

use crate::drive::EmulatedDrive;
use crate::error::DeviceError;

/// Parameters that a caveat disk reports to its host (Singh 2014 §3.3, §4.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CaveatMode {
    /// Size of a sector in bytes.
    pub sector_bytes: u32,
    /// Capacity of the disk in sectors.
    pub sectors: Sectors,
    /// DID, the drive isolation distance: a write may damage at most this many sectors after its last sector.
    pub isolation: Sectors,
    /// DNOR, the drive no overlap range: a write never damages this many sectors directly after its first sector.
    pub no_overlap: Sectors,
}

impl CaveatMode {
    /// Returns the half-open range of LBAs that a write of `sectors` sectors from `lba` on may damage (Singh 2014
    /// §3.2). The range begins at the end of the write, or at `lba` + 1 + DNOR if that is later. It ends DID sectors
    /// after the end of the write, or at the end of the disk. It is empty if the write damages nothing.
    pub fn damaged_by(&self, lba: Lba, sectors: Sectors) -> std::ops::Range<u64> {
        let distances = CaveatDistances { no_overlap: self.no_overlap, isolation: self.isolation };
        let damaged = distances.destroyed_by(&(lba..lba + sectors));
        damaged.start.0.min(self.sectors.0)..damaged.end.0.min(self.sectors.0)
    }
}

/// State of a caveat disk, for debugging the host's file system (Singh 2014 §4.2.6).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaveatDump {
    /// Parameters of the disk.
    pub mode: CaveatMode,
    /// Position of the head: the LBA after the last sector of the latest successful read or write; 0 before the first.
    pub head: Lba,
    /// Runs of sectors that are maybe damaged or were never written, in ascending order: first LBA and length.
    pub damaged: Vec<(Lba, Sectors)>,
}

/// Operations of a caveat disk (Singh 2014 §4.2): the host may write anywhere, and learns which sectors its writes may
/// damage.
pub trait CaveatDevice: Send {
    /// Returns the parameters of the disk: sector size, capacity, DID and DNOR.
    fn mode_sense(&self) -> CaveatMode;

    /// Writes `from`, one or more whole sectors, at `lba`. The written sectors become valid. The sectors after them
    /// that [`CaveatMode::damaged_by`] returns become maybe damaged.
    ///
    /// # Errors
    /// [`DeviceError::Refused`] if `from` is not one or more whole sectors, [`DeviceError::PastEnd`] past the end of
    /// the disk, or the error of the drive.
    fn write(&mut self, lba: Lba, from: &[u8]) -> Result<(), DeviceError>;

    /// Fills `into`, one or more whole sectors, with the sectors from `lba` on.
    ///
    /// # Errors
    /// [`DeviceError::Destroyed`] if one of the sectors is maybe damaged or was never written, [`DeviceError::Refused`]
    /// if `into` is not one or more whole sectors, [`DeviceError::PastEnd`] past the end of the disk, or the error of
    /// the drive.
    fn read(&mut self, lba: Lba, into: &mut [u8]) -> Result<(), DeviceError>;

    /// Makes all completed writes durable, and the marks of the sectors that they may have damaged.
    ///
    /// # Errors
    /// The drive fails or has stopped.
    fn flush(&mut self) -> Result<(), DeviceError>;

    /// Returns the position of the head: the LBA after the last sector of the latest successful read or write, or 0
    /// before the first one (Singh 2014 §4.4.4).
    fn head_position(&self) -> Lba;

    /// Returns the LBA of the first maybe damaged sector among the `sectors` sectors from `lba` on, or `None` if there
    /// is none. Sectors that were never written count as maybe damaged.
    ///
    /// # Errors
    /// The marks cannot be read from the image.
    fn first_damaged(&mut self, lba: Lba, sectors: Sectors) -> Result<Option<Lba>, DeviceError>;

    /// Returns the parameters, the head position and all sectors of the disk that are maybe damaged or were never
    /// written.
    ///
    /// # Errors
    /// The marks cannot be read from the image.
    fn dump(&mut self) -> Result<CaveatDump, DeviceError>;
}

/// A view of an emulated drive as a caveat disk. Each read, write and flush is a request to the drive and takes
/// simulated time.
pub struct EmulatedCaveat {
    drive: EmulatedDrive,
    mode: CaveatMode,
    head: Lba,
}

impl EmulatedCaveat {
    /// Returns a view of `drive` as a caveat disk, with the head at LBA 0.
    ///
    /// # Errors
    /// [`DeviceError::Refused`] if `drive` is not a caveat disk whose host manages the damage.
    pub fn new(drive: EmulatedDrive) -> Result<EmulatedCaveat, DeviceError> {
        let simulated = drive.drive();
        let Some(distances) = simulated.caveat_distances() else {
            let label = &simulated.label;
            let reason = format!("drive '{label}' is no caveat disk; make one with caveat-1g or +caveat");
            return Err(DeviceError::Refused(reason));
        };
        let mode = CaveatMode {
            sector_bytes: simulated.disk.sector_bytes,
            sectors: simulated.layer.capacity(),
            isolation: distances.isolation,
            no_overlap: distances.no_overlap,
        };
        Ok(EmulatedCaveat { drive, mode, head: Lba(0) })
    }

    /// Returns the drive, for example to read its clock and its metrics.
    pub fn drive(&self) -> &EmulatedDrive {
        &self.drive
    }

    /// Returns the drive for changes, for example to let simulated time pass.
    pub fn drive_mut(&mut self) -> &mut EmulatedDrive {
        &mut self.drive
    }

    /// Returns the drive and drops the view.
    pub fn into_drive(self) -> EmulatedDrive {
        self.drive
    }

    /// Calls `each`, in order, with every run of maybe damaged sectors of `extent`. Sectors in the write cache are
    /// readable.
    fn for_each_damage(&mut self, extent: Extent, mut each: impl FnMut(Extent)) -> Result<(), DeviceError> {
        let sector = u64::from(self.mode.sector_bytes);
        let dirty = self.drive.dirty_ranges();
        self.drive.store_mut().for_each_damage(extent, |run| {
            let mut next = run.start;
            let beyond = dirty.partition_point(|(offset, length)| offset + length <= run.start.0 * sector);
            for (offset, length) in &dirty[beyond..] {
                let (start, end) = (Pba(offset / sector).min(run.end()), Pba((offset + length) / sector));
                if next < start {
                    each(Extent::between(next, start));
                }
                next = next.max(end.min(run.end()));
                if end >= run.end() {
                    break;
                }
            }
            if next < run.end() {
                each(Extent::between(next, run.end()));
            }
        })
    }

    fn offset(&self, lba: Lba) -> u64 {
        lba.0 * u64::from(self.mode.sector_bytes)
    }

    fn check(&self, lba: Lba, bytes: usize) -> Result<Sectors, DeviceError> {
        let sector_bytes = self.mode.sector_bytes as usize;
        let sectors = (bytes / sector_bytes) as u64;
        if bytes == 0 || !bytes.is_multiple_of(sector_bytes) || sectors > u64::from(u32::MAX) {
            let reason = format!("{bytes} bytes: expected whole sectors of {sector_bytes} bytes, at least one");
            return Err(DeviceError::Refused(reason));
        }
        if lba.0.checked_add(sectors).is_none_or(|end| end > self.mode.sectors.0) {
            let sector = u64::from(self.mode.sector_bytes);
            let (offset, capacity) = (lba.0.saturating_mul(sector), self.mode.sectors.0 * sector);
            return Err(DeviceError::PastEnd { offset, length: bytes as u64, capacity });
        }
        Ok(Sectors(sectors))
    }
}

impl CaveatDevice for EmulatedCaveat {
    fn mode_sense(&self) -> CaveatMode {
        self.mode
    }

    fn write(&mut self, lba: Lba, from: &[u8]) -> Result<(), DeviceError> {
        let sectors = self.check(lba, from.len())?;
        self.drive.write(self.offset(lba), from, false)?;
        self.head = lba + sectors;
        Ok(())
    }

    fn read(&mut self, lba: Lba, into: &mut [u8]) -> Result<(), DeviceError> {
        let sectors = self.check(lba, into.len())?;
        self.drive.read(self.offset(lba), into)?;
        self.head = lba + sectors;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.drive.flush()
    }

    fn head_position(&self) -> Lba {
        self.head
    }

    fn first_damaged(&mut self, lba: Lba, sectors: Sectors) -> Result<Option<Lba>, DeviceError> {
        let mut first = None;
        self.for_each_damage(Extent::new(Pba(lba.0), sectors), |run| {
            first.get_or_insert(Lba(run.start.0));
        })?;
        Ok(first)
    }

    fn dump(&mut self) -> Result<CaveatDump, DeviceError> {
        let mut damaged = Vec::new();
        let all = Extent::new(Pba(0), self.mode.sectors);
        self.for_each_damage(all, |run| damaged.push((Lba(run.start.0), run.sectors)))?;
        Ok(CaveatDump { mode: self.mode, head: self.head, damaged })
    }
}
