//! Random operations on any zoned drive, compared with a naive model. One test body checks both images and drives of
//! the host.
//!
//! The model is a list of zones, each with a condition and a pointer, and a stamp for every written sector. It leaves
//! open two points in which drives differ: the implicitly open zone that is closed to open another, and the text of
//! errors.
//!
//! Invariants:
//! 1. The run is the same for the same seed, drive and zones.
//! 2. The run begins by resetting the zones that it uses, and changes no others.

use std::collections::BTreeMap;

use imbrex_disk::{Lba, Sectors};
use imbrex_layer::verify::toy::below;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256StarStar;

use super::{Condition, Zone, ZonedDevice, ZonedMode};
use crate::error::DeviceError;

/// Number of conventional zones and of other zones used.
const ZONES_USED: [u32; 2] = [2, 7];
/// Sectors of the longest operation.
const SECTORS_MAX: u64 = 40;

/// A way to close a zoned drive and open it again during a trial.
pub struct Reopening<'a> {
    /// Closes the given drive, opens it again and returns it.
    pub reopen: &'a mut dyn FnMut(Box<dyn ZonedDevice>) -> Result<Box<dyn ZonedDevice>, DeviceError>,
    /// Whether closing and opening the drive again closes its open zones, as a power cycle does.
    pub closes_zones: bool,
}

/// Counts of the operations in a trial.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Tally {
    /// Number of sectors that the trial wrote successfully, by writes and appends. The preparation of the zones does
    /// not count.
    pub written: u64,
    /// Number of operations of the trial that the drive refused, as it had to.
    pub refused: u64,
    /// Number of times that the trial closed the drive and opened it again.
    pub reopened: u64,
    /// Number of successful resets of zones in the trial.
    pub resets: u64,
}

/// State of a zone in the naive model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct NaiveZone {
    condition: Condition,
    pointer: u64,
}

struct Runner {
    device: Option<Box<dyn ZonedDevice>>,
    mode: ZonedMode,
    random: Xoshiro256StarStar,
    zones: BTreeMap<u32, NaiveZone>,
    stamps: BTreeMap<u64, u64>,
    next_stamp: u64,
    tally: Tally,
}

/// Fills `sector` with the contents for sector `lba` and `stamp`; stamp 0 is zeros.
fn fill(sector: &mut [u8], lba: u64, stamp: u64) {
    sector.fill(0);
    if stamp > 0 {
        for words in sector.chunks_exact_mut(16) {
            words[..8].copy_from_slice(&stamp.to_le_bytes());
            words[8..].copy_from_slice(&lba.to_le_bytes());
        }
    }
}

/// Performs `steps` random operations on the first zones of `device` (2 conventional and 7 others), and compares the
/// drive with a simple model. The previous contents of these zones are lost. `seed` selects the operations; without
/// `reopening` the drive is never reopened.
///
/// # Errors
/// A description of the first difference between the drive and the model, or of a failure to prepare the zones.
pub fn run(
    device: Box<dyn ZonedDevice>,
    seed: u64,
    steps: u32,
    mut reopening: Option<Reopening<'_>>,
) -> Result<Tally, String> {
    let mode = device.mode_sense();
    let mut runner = Runner {
        device: Some(device),
        mode,
        random: Xoshiro256StarStar::seed_from_u64(seed),
        zones: BTreeMap::new(),
        stamps: BTreeMap::new(),
        next_stamp: 1,
        tally: Tally::default(),
    };
    runner.begin().map_err(|error| format!("the zones cannot be readied: {error}"))?;
    for number in 0..steps {
        let outcome = runner.step(&mut reopening).and_then(|what| {
            if number % 16 == 15 {
                runner.compare_all().map_err(|difference| format!("{what}: {difference}"))?;
            }
            Ok(())
        });
        outcome.map_err(|difference| format!("seed {seed}, step {number}: {difference}"))?;
    }
    runner.compare_all()?;
    Ok(runner.tally)
}

impl Runner {
    fn device(&mut self) -> &mut dyn ZonedDevice {
        self.device.as_mut().expect("it is only away while it is opened again").as_mut()
    }

    fn begin(&mut self) -> Result<(), DeviceError> {
        let (conventional, zones) = (self.mode.conventional_zones, self.mode.zones);
        let first_few = (0..conventional.min(ZONES_USED[0])).chain(conventional..conventional + ZONES_USED[1]);
        for index in first_few.take_while(|&index| index < zones) {
            let mut zone = self.device().zone(index)?;
            if zone.condition != Condition::Conventional {
                self.device().reset(index)?;
                zone = self.device().zone(index)?;
            } else {
                // The previous contents are unknown, so the part that the run reads is filled with zeros.
                let zeros = vec![0; (zone.sectors.0.min(4 * SECTORS_MAX) as usize) * self.mode.sector_bytes as usize];
                self.device().write(zone.start, &zeros)?;
            }
            self.zones.insert(index, NaiveZone { condition: zone.condition, pointer: 0 });
        }
        Ok(())
    }

    /// Performs one operation and returns its description, or the difference found.
    fn step(&mut self, reopening: &mut Option<Reopening<'_>>) -> Result<String, String> {
        let indices: Vec<u32> = self.zones.keys().copied().collect();
        let index = indices[below(&mut self.random, indices.len() as u64) as usize];
        let drawn = below(&mut self.random, 100);
        let what = format!("operation {drawn} on zone {index}");
        self.compare(index)?;
        let outcome = match drawn {
            0..=39 => self.write(index, false),
            40..=52 => self.append(index),
            53..=58 => self.write(index, true),
            59..=74 => self.read(index),
            75..=79 => self.reset(index),
            80..=84 => self.open(index),
            85..=89 => self.close(index),
            90..=92 => self.finish(index),
            93..=96 => self.device().flush().map_err(|error| error.to_string()),
            _ => match reopening {
                Some(reopening) => self.reopen(reopening),
                None => Ok(()),
            },
        };
        outcome.and_then(|()| self.compare(index)).map_err(|difference| format!("{what}: {difference}"))?;
        Ok(what)
    }

    /// Returns whether zone `index` is open, or may be opened by its condition and the limits.
    fn may_open(&self, index: u32) -> bool {
        let zone = self.zones[&index];
        let count = |is: fn(Condition) -> bool| self.zones.values().filter(|zone| is(zone.condition)).count() as u32;
        match zone.condition {
            condition if condition.is_open() => true,
            Condition::Empty | Condition::Closed => {
                let is_active = zone.condition.is_active();
                let has_active = is_active || count(Condition::is_active) < self.mode.active_max.unwrap_or(u32::MAX);
                let explicitly = count(|condition| condition == Condition::ExplicitlyOpen);
                has_active && explicitly < self.mode.open_max.unwrap_or(u32::MAX)
            }
            _ => false,
        }
    }

    /// Returns the number of sectors of zone `index` that the run uses: of a large conventional zone only the start.
    fn zone_room(&mut self, index: u32) -> Result<u64, String> {
        let Zone { sectors, condition, .. } = self.device().zone(index).map_err(|error| error.to_string())?;
        Ok(if condition == Condition::Conventional { sectors.0.min(4 * SECTORS_MAX) } else { sectors.0 })
    }

    fn contents(&mut self, lba: u64, sectors: u64) -> Vec<u8> {
        let sector_bytes = self.mode.sector_bytes as usize;
        let mut bytes = vec![0; sectors as usize * sector_bytes];
        for (offset, sector) in bytes.chunks_exact_mut(sector_bytes).enumerate() {
            fill(sector, lba + offset as u64, self.next_stamp);
        }
        bytes
    }

    fn write(&mut self, index: u32, is_elsewhere: bool) -> Result<(), String> {
        let zone = self.zones[&index];
        let room = self.zone_room(index)?;
        let sectors = 1 + below(&mut self.random, SECTORS_MAX.min(room));
        let is_conventional = zone.condition == Condition::Conventional;
        let at = match (is_conventional, is_elsewhere) {
            (true, _) => below(&mut self.random, room),
            (false, false) => zone.pointer.min(room - 1),
            (false, true) => below(&mut self.random, room),
        };
        let fits = at + sectors <= room;
        if is_conventional && !fits {
            return Ok(());
        }
        let lba = self.mode.start(index).0 + at;
        if lba >= self.mode.capacity().0 {
            return Ok(());
        }
        let is_right = is_conventional || (at == zone.pointer && fits && self.may_open(index));
        let bytes = self.contents(lba, sectors);
        let outcome = self.device().write(Lba(lba), &bytes);
        self.judge(outcome.map(|()| Lba(lba)), is_right, index, lba, sectors)
    }

    fn append(&mut self, index: u32) -> Result<(), String> {
        let zone = self.zones[&index];
        let room = self.zone_room(index)?;
        let sectors = 1 + below(&mut self.random, SECTORS_MAX.min(room));
        let lba = self.mode.start(index).0 + zone.pointer;
        let fits = zone.pointer + sectors <= room;
        let is_right = fits && zone.condition != Condition::Conventional && self.may_open(index);
        let bytes = self.contents(lba, sectors);
        let outcome = self.device().append(index, &bytes);
        self.judge(outcome, is_right, index, lba, sectors)
    }

    /// Checks that a write succeeded if and only if `is_right`, and applies it to the model.
    fn judge(
        &mut self,
        outcome: Result<Lba, DeviceError>,
        is_right: bool,
        index: u32,
        lba: u64,
        sectors: u64,
    ) -> Result<(), String> {
        match (outcome, is_right) {
            (Ok(at), true) if at == Lba(lba) => {}
            (Err(_), false) => {
                self.tally.refused += 1;
                return Ok(());
            }
            (outcome, _) => {
                return Err(format!("{sectors} sectors at {lba}, right is {is_right}: {outcome:?}"));
            }
        }
        for lba in lba..lba + sectors {
            self.stamps.insert(lba, self.next_stamp);
        }
        self.next_stamp += 1;
        self.tally.written += sectors;
        let room = self.zone_room(index)?;
        let zone = self.zones.get_mut(&index).expect("it is used");
        if zone.condition != Condition::Conventional {
            zone.pointer += sectors;
            zone.condition = match zone.condition {
                _ if zone.pointer == room => Condition::Full,
                Condition::ExplicitlyOpen => Condition::ExplicitlyOpen,
                _ => Condition::ImplicitlyOpen,
            };
        }
        Ok(())
    }

    fn read(&mut self, index: u32) -> Result<(), String> {
        let room = self.zone_room(index)?;
        let at = below(&mut self.random, room);
        let sectors = 1 + below(&mut self.random, SECTORS_MAX.min(room - at));
        self.compare_sectors(self.mode.start(index).0 + at, sectors)
    }

    fn compare_sectors(&mut self, lba: u64, sectors: u64) -> Result<(), String> {
        let sector_bytes = self.mode.sector_bytes as usize;
        let mut bytes = vec![0xaa; sectors as usize * sector_bytes];
        self.device().read(Lba(lba), &mut bytes).map_err(|error| format!("{sectors} sectors at {lba}: {error}"))?;
        let mut expected = vec![0; sector_bytes];
        for (offset, sector) in bytes.chunks_exact(sector_bytes).enumerate() {
            let at = lba + offset as u64;
            fill(&mut expected, at, self.stamps.get(&at).copied().unwrap_or(0));
            if sector != expected {
                return Err(format!("sector {at} reads {:?}…, not {:?}…", &sector[..16], &expected[..16]));
            }
        }
        Ok(())
    }

    /// Checks that a command to a zone succeeded if and only if `is_right`, and returns whether it did.
    fn managed(&mut self, outcome: Result<(), DeviceError>, is_right: bool) -> Result<bool, String> {
        self.tally.refused += u64::from(!is_right);
        match outcome {
            Ok(()) if is_right => Ok(true),
            Err(_) if !is_right => Ok(false),
            outcome => Err(format!("right is {is_right}: {outcome:?}")),
        }
    }

    fn reset(&mut self, index: u32) -> Result<(), String> {
        let is_right = self.zones[&index].condition != Condition::Conventional;
        let outcome = self.device().reset(index);
        if self.managed(outcome, is_right)? {
            let (start, end) = (self.mode.start(index).0, self.mode.start(index + 1).0);
            self.stamps.retain(|lba, _| !(start..end).contains(lba));
            self.zones.insert(index, NaiveZone { condition: Condition::Empty, pointer: 0 });
            self.tally.resets += 1;
        }
        Ok(())
    }

    fn open(&mut self, index: u32) -> Result<(), String> {
        let is_right = self.may_open(index);
        let outcome = self.device().open(index);
        if self.managed(outcome, is_right)? {
            self.zones.get_mut(&index).expect("it is used").condition = Condition::ExplicitlyOpen;
        }
        Ok(())
    }

    fn close(&mut self, index: u32) -> Result<(), String> {
        let zone = self.zones[&index];
        let is_right = zone.condition.is_active();
        let outcome = self.device().close(index);
        if self.managed(outcome, is_right)? {
            let condition = if zone.pointer == 0 { Condition::Empty } else { Condition::Closed };
            self.zones.get_mut(&index).expect("it is used").condition = condition;
        }
        Ok(())
    }

    fn finish(&mut self, index: u32) -> Result<(), String> {
        let condition = self.zones[&index].condition;
        // Drives differ in whether finishing a zone that is not open requires a free place among the open zones.
        let has_limits = self.mode.open_max.is_some() || self.mode.active_max.is_some();
        if has_limits && matches!(condition, Condition::Empty | Condition::Closed) {
            return Ok(());
        }
        let outcome = self.device().finish(index);
        if self.managed(outcome, condition != Condition::Conventional)? {
            let sectors = self.zone_room(index)?;
            self.zones.insert(index, NaiveZone { condition: Condition::Full, pointer: sectors });
        }
        Ok(())
    }

    fn reopen(&mut self, reopening: &mut Reopening<'_>) -> Result<(), String> {
        self.device().flush().map_err(|error| error.to_string())?;
        let device = self.device.take().expect("it is there");
        self.device = Some((reopening.reopen)(device).map_err(|error| format!("opening again: {error}"))?);
        self.tally.reopened += 1;
        if reopening.closes_zones {
            for zone in self.zones.values_mut().filter(|zone| zone.condition.is_open()) {
                zone.condition = if zone.pointer == 0 { Condition::Empty } else { Condition::Closed };
            }
        }
        self.compare_all()
    }

    fn compare(&mut self, index: u32) -> Result<(), String> {
        let zone = self.device().zone(index).map_err(|error| error.to_string())?;
        let naive = self.zones.get_mut(&index).expect("it is used");
        // The drive may have closed the zone to open another.
        if naive.condition == Condition::ImplicitlyOpen && zone.condition == Condition::Closed {
            naive.condition = Condition::Closed;
        }
        if zone.condition != naive.condition || zone.pointer != Sectors(naive.pointer) {
            return Err(format!("{zone:?}, not {naive:?}"));
        }
        Ok(())
    }

    fn compare_all(&mut self) -> Result<(), String> {
        let indices: Vec<u32> = self.zones.keys().copied().collect();
        for index in indices {
            self.compare(index)?;
            let room = self.zone_room(index)?;
            let written = self.zones[&index].pointer;
            let sectors = if written == 0 { room } else { (written + 2 * SECTORS_MAX).min(room) };
            let mut at = 0;
            while at < sectors.min(64 * SECTORS_MAX) {
                let count = SECTORS_MAX.min(sectors - at);
                self.compare_sectors(self.mode.start(index).0 + at, count)?;
                at += count;
            }
        }
        let open = self.zones.values().filter(|zone| zone.condition.is_open()).count() as u32;
        match self.mode.open_max {
            Some(open_max) if open > open_max => Err(format!("{open} zones are open of {open_max} that may be")),
            _ => Ok(()),
        }
    }
}
