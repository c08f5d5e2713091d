//! Zoned block device of Linux: a host-managed drive, or `null_blk` with zones.
//!
//! Each operation is performed and answered when it is submitted; other tasks wait meanwhile.

use imbrex_device::DeviceError;
use imbrex_device::zoned::{LinuxZoned, Zone, ZonedDevice};
use imbrex_disk::Lba;

use super::emulated::condition_of;
use super::{Answer, BLOCK_BYTES, Backend, DeviceFault, Geometry, Kind, Operation, Outcome, ZoneState};

/// Backend on a zoned block device of Linux, with the answers that were not delivered yet.
pub struct Linux {
    device: LinuxZoned,
    geometry: Geometry,
    /// Sectors of the device per block.
    per_block: u64,
    answers: Vec<(u64, Outcome)>,
    head: u64,
}

impl Linux {
    /// Returns the backend of `device`.
    ///
    /// # Errors
    /// A zone is not a whole number of blocks of 4 KiB, or a sector is larger than a block.
    pub fn new(device: LinuxZoned) -> Result<Linux, DeviceFault> {
        let mode = device.mode_sense();
        let per_block = BLOCK_BYTES as u64 / u64::from(mode.sector_bytes);
        if per_block == 0 || !mode.zone_sectors.0.is_multiple_of(per_block) {
            let (sectors, bytes) = (mode.zone_sectors.0, mode.sector_bytes);
            return Err(DeviceFault::new(format!(
                "zones of {sectors} sectors of {bytes} bytes are not whole blocks of 4 KiB"
            )));
        }
        let zone_blocks = mode.zone_sectors.0 / per_block;
        let kind = Kind::Zoned {
            zone_blocks,
            zones: mode.zones,
            conventional: mode.conventional_zones,
            active_max: mode.active_max.or(mode.open_max),
        };
        let geometry = Geometry { blocks: zone_blocks * u64::from(mode.zones), kind };
        Ok(Linux { device, geometry, per_block, answers: Vec::new(), head: 0 })
    }

    fn perform(&mut self, operation: Operation) -> Result<Answer, DeviceError> {
        match operation {
            Operation::Read { block, blocks } => {
                let mut bytes = vec![0; blocks as usize * BLOCK_BYTES];
                self.device.read(Lba(block * self.per_block), &mut bytes)?;
                self.head = block + blocks;
                return Ok(Answer::Bytes(bytes));
            }
            Operation::Write { block, bytes } => {
                self.device.write(Lba(block * self.per_block), &bytes)?;
                self.head = block + (bytes.len() / BLOCK_BYTES) as u64;
            }
            Operation::Flush => self.device.flush()?,
            Operation::Reset(zone) => self.device.reset(zone)?,
            Operation::Finish(zone) => self.device.finish(zone)?,
            Operation::Report => return self.report(),
        }
        Ok(Answer::Done)
    }

    fn report(&mut self) -> Result<Answer, DeviceError> {
        let mut zones = Vec::new();
        let count = self.device.mode_sense().zones;
        self.device.report(0, count, &mut zones)?;
        let state = |zone: &Zone| ZoneState {
            written: zone.pointer.0.div_ceil(self.per_block),
            condition: condition_of(zone.condition),
        };
        Ok(Answer::Zones(zones.iter().map(state).collect()))
    }
}

impl Backend for Linux {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn submit(&mut self, _now_ns: u64, number: u64, operation: Operation) {
        let outcome = self.perform(operation).map_err(|error| {
            let breaks_rules = matches!(error, DeviceError::Zone(_));
            DeviceFault { reason: error.to_string(), breaks_rules }
        });
        self.answers.push((number, outcome));
    }

    fn next_event_ns(&mut self, now_ns: u64) -> Option<u64> {
        (!self.answers.is_empty()).then_some(now_ns)
    }

    fn answers(&mut self, _now_ns: u64, answers: &mut Vec<(u64, Outcome)>) {
        answers.append(&mut self.answers);
    }

    fn head_position(&self) -> u64 {
        self.head
    }

    fn survey(&mut self, name: &str) -> std::io::Result<imbrex_safety::Survey> {
        self.device.survey(name)
    }

    fn shut_down(&mut self) -> Result<(), DeviceFault> {
        self.device.flush().map_err(|error| DeviceFault::new(error.to_string()))
    }
}
