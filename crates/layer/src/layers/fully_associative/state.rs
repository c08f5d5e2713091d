//! The map of the drive, and the records that change it.
//!
//! Planning makes a record and applies it; recovery reads the same records back and applies them. So a replayed map
//! equals the planned one by construction. Records number bands and logical bands over the drive.
//!
//! Invariants:
//! 1. Every change of a zone goes through [`State::apply`].
//! 2. `freed` is set if a band has become free since the last barrier: its old contents may still be needed.

use imbrex_disk::{Disk, Lba, Pba, Sectors};

use super::record::Record;
use super::zone::{BandZone, NOWHERE};
use crate::parameters::{ConfigError, Parameters};
use crate::plan::note::Note;
use crate::region::{RegionSize, Regions, check_count};

/// A run of logical sectors within one logical band: the band's zone and number in that zone, the run's offset in the
/// band, and its length in sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part {
    pub zone: usize,
    pub logical: u32,
    pub offset: u32,
    pub sectors: u32,
}

/// The map of a `fully-associative` drive: its zones, and the places of all bands.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub bands: Regions,
    pub band_sectors: u64,
    pub sector_bytes: u64,
    /// Number of physical bands in each zone, free ones included; the last zone may have fewer.
    pub zone_bands: usize,
    /// Number of logical bands in each zone: the bands that the host sees. The last zone may have fewer.
    pub zone_data: usize,
    pub zones: Vec<BandZone>,
    /// Capacity of the layer in logical sectors: those of all logical bands.
    pub capacity: u64,
    pub freed: bool,
}

/// Number of bands of a zone that begin as homes of logical bands (`data`), and of those that begin free.
struct Sizes {
    data: usize,
    free: usize,
}

impl State {
    pub(super) fn new(disk: &Disk, parameters: &Parameters) -> Result<State, ConfigError> {
        let sector_bytes = disk.sector_bytes as u64;
        let band_sectors = parameters.bytes("band_size") / sector_bytes;
        if band_sectors == 0 || band_sectors > u32::MAX as u64 / 2 {
            return Err(ConfigError(format!("band_size: a band of {band_sectors} sectors; expected 1 to 2³¹")));
        }
        check_count(disk, "band_size", Sectors(band_sectors))?;
        let bands = Regions::carve(disk, RegionSize::Sectors(Sectors(band_sectors)));
        let sizes = zone_sizes(parameters, sector_bytes * band_sectors)?;
        let zone_bands = sizes.data + sizes.free;
        if (zone_bands as u64 + 1) * band_sectors > u32::MAX as u64 {
            return Err(ConfigError(format!("zone_size: {zone_bands} bands of {band_sectors} sectors are past 2³²")));
        }
        let new_zone = |sizes: &Sizes| BandZone::new(sizes.data, sizes.free, band_sectors as u32);
        let mut zones: Vec<BandZone> = (0..bands.len() / zone_bands).map(|_| new_zone(&sizes)).collect();
        let rest = rest_sizes(parameters, &sizes, bands.len() % zone_bands);
        if bands.len() % zone_bands * 2 >= zone_bands || zones.is_empty() {
            zones.extend(rest.as_ref().map(new_zone));
        }
        if zones.is_empty() {
            let len = bands.len();
            return Err(ConfigError(format!("{len} bands fit on this disk, too few for a zone: make them smaller")));
        }
        let capacity = zones.iter().map(|zone| zone.homes.len() as u64).sum::<u64>() * band_sectors;
        Ok(State {
            bands,
            band_sectors,
            sector_bytes,
            zone_bands,
            zone_data: sizes.data,
            zones,
            capacity,
            freed: false,
        })
    }

    /// Returns the part of the LBAs `lba..end` that lies in the logical band that contains `lba`: from `lba` to `end`
    /// or to the end of that band.
    #[inline]
    pub(super) fn part(&self, lba: u64, end: u64) -> Part {
        let (band, offset) = (lba / self.band_sectors, lba % self.band_sectors);
        let zone = band as usize / self.zone_data;
        let logical = (band as usize - zone * self.zone_data) as u32;
        let sectors = (end - lba).min(self.band_sectors - offset);
        Part { zone, logical, offset: offset as u32, sectors: sectors as u32 }
    }

    /// Returns the number, counted over the whole drive, of the logical band with the number `logical` within `zone`.
    pub(super) fn logical_number(&self, zone: usize, logical: u32) -> u64 {
        (zone * self.zone_data) as u64 + logical as u64
    }

    /// Returns the number, counted over the whole drive, of the physical band with the number `band` within `zone`.
    pub(super) fn band_number(&self, zone: usize, band: u32) -> u64 {
        (zone * self.zone_bands) as u64 + band as u64
    }

    /// Returns the first LBA of the logical band with the number `logical` within `zone`.
    pub(super) fn first_lba(&self, zone: usize, logical: u32) -> u64 {
        self.logical_number(zone, logical) * self.band_sectors
    }

    /// Returns the physical sector at `place` in `zone`. A place is the number of a band within the zone, times the
    /// sectors of a band, plus an offset in the band.
    pub(super) fn pba(&self, zone: usize, place: u32) -> Pba {
        let (band, offset) = (place as u64 / self.band_sectors, place as u64 % self.band_sectors);
        self.bands.extent(zone * self.zone_bands + band as usize).start + Sectors(offset)
    }

    /// Splits the `sectors` from `lba` on into parts that lie in one piece. Calls `visit(lba, sectors, pba)` with each
    /// part in order of LBA; `pba` is its first physical sector, or `None` if the part is trimmed.
    pub(super) fn for_each_piece(&self, lba: Lba, sectors: Sectors, mut visit: impl FnMut(Lba, Sectors, Option<Pba>)) {
        let (mut next, end) = (lba.0, lba.0 + sectors.0);
        while next < end {
            let part = self.part(next, end);
            let first = self.first_lba(part.zone, part.logical);
            let zone = &self.zones[part.zone];
            zone.for_each_place(part.logical, part.offset, part.offset + part.sectors, |offset, length, place| {
                let pba = place.map(|place| self.pba(part.zone, place));
                visit(Lba(first + offset as u64), Sectors(length as u64), pba);
            });
            next += part.sectors as u64;
        }
    }

    /// Changes the map as the journal record `record` says.
    ///
    /// # Errors
    ///
    /// The record has impossible values or cannot follow the records before it. The error is a text with the reason.
    pub(super) fn apply(&mut self, record: Record) -> Result<(), &'static str> {
        match record {
            Record::Logged { lba, sectors, band, offset } => {
                let part = self.whole_part(lba.0, sectors.0)?;
                let band = self.local_band(part.zone, band)?;
                if u64::from(offset) >= self.band_sectors {
                    return Err("no such offset");
                }
                let zone = &mut self.zones[part.zone];
                self.freed |= zone.logged(part.logical, part.offset, part.sectors, band, offset)?;
            }
            Record::Trimmed { lba, sectors } => self.apply_trimmed(lba.0, sectors.0)?,
            Record::Placed { logical_band, band } => {
                let (zone, logical) = self.locate(logical_band)?;
                let band = self.local_band(zone, band)?;
                self.freed |= self.zones[zone].placed(logical, band)?;
            }
            Record::Streamed { logical_band, band, filled_sectors } => {
                let (zone, logical) = self.locate(logical_band)?;
                let band = self.local_band(zone, band)?;
                self.freed |= self.zones[zone].streamed(logical, band, filled_sectors)?;
            }
            Record::Completed { logical_band } => {
                let (zone, logical) = self.locate(logical_band)?;
                self.freed |= self.zones[zone].completed(logical)?;
            }
            Record::Restart { zone } => self.zone_at(zone)?.restart(),
            Record::Filled { zone, filled_sectors } => self.zone_at(zone)?.filled(filled_sectors)?,
        }
        Ok(())
    }

    fn apply_trimmed(&mut self, first: u64, sectors: u64) -> Result<(), &'static str> {
        let end = first.checked_add(sectors).filter(|&end| end <= self.capacity && sectors > 0);
        let end = end.ok_or("the run is empty or past the capacity")?;
        let mut next = first;
        while next < end {
            let part = self.part(next, end);
            self.freed |= self.zones[part.zone].trimmed(part.logical, part.offset, part.sectors);
            next += part.sectors as u64;
        }
        Ok(())
    }

    fn zone_at(&mut self, zone: u64) -> Result<&mut BandZone, &'static str> {
        self.zones.get_mut(zone as usize).ok_or("there is no such zone")
    }

    fn whole_part(&self, lba: u64, sectors: u64) -> Result<Part, &'static str> {
        let end = lba.checked_add(sectors).filter(|&end| end <= self.capacity && sectors > 0);
        let part = self.part(lba, end.ok_or("the run is empty or past the capacity")?);
        (part.sectors as u64 == sectors).then_some(part).ok_or("the run crosses the end of a logical band")
    }

    fn locate(&self, number: u64) -> Result<(usize, u32), &'static str> {
        let zone = (number / self.zone_data as u64) as usize;
        let logical = number % self.zone_data as u64;
        let holds = self.zones.get(zone).is_some_and(|zone| logical < zone.homes.len() as u64);
        holds.then_some((zone, logical as u32)).ok_or("there is no such logical band")
    }

    fn local_band(&self, zone: usize, number: u64) -> Result<u32, &'static str> {
        let local = number.checked_sub(self.band_number(zone, 0));
        let local = local.filter(|&local| local < self.zones[zone].live.len() as u64);
        local.map(|local| local as u32).ok_or("its band is not of its zone")
    }

    /// Appends to `notes` the records that describe completely every zone that differs from a zone of a new drive.
    pub(super) fn checkpoint(&self, notes: &mut Vec<Note>) {
        for (index, zone) in self.zones.iter().enumerate() {
            let is_fresh = zone.homes.iter().enumerate().all(|(logical, &home)| home == logical as u32)
                && zone.streams.is_empty()
                && zone.runs.iter().all(|list| list.is_empty());
            if !is_fresh {
                self.checkpoint_zone(index, zone, notes);
            }
        }
    }

    fn checkpoint_zone(&self, index: usize, zone: &BandZone, notes: &mut Vec<Note>) {
        notes.push(Record::Restart { zone: index as u64 }.encode());
        for (logical, &home) in (0..).zip(&zone.homes) {
            if home != NOWHERE {
                let band = self.band_number(index, home);
                notes.push(Record::Placed { logical_band: self.logical_number(index, logical), band }.encode());
            }
        }
        for stream in &zone.streams {
            let (logical_band, band) =
                (self.logical_number(index, stream.logical), self.band_number(index, stream.band));
            notes.push(Record::Streamed { logical_band, band, filled_sectors: stream.filled }.encode());
        }
        // A replay needs log bands from the oldest to the newest, and the runs of a log band in the order of their offsets.
        let mut ages = vec![u32::MAX; zone.live.len()];
        (0..).zip(&zone.logs).for_each(|(age, &band)| ages[band as usize] = age);
        let mut logged = Vec::new();
        for (logical, list) in (0..).zip(&zone.runs) {
            let first = self.first_lba(index, logical);
            for run in list.runs() {
                let (lba, sectors) = (Lba(first + run.offset as u64), Sectors(run.length as u64));
                if run.is_absent() {
                    notes.push(Record::Trimmed { lba, sectors }.encode());
                } else {
                    let (band, offset) = (run.place / zone.band_sectors, run.place % zone.band_sectors);
                    logged.push((ages[band as usize], offset, band, lba, sectors));
                }
            }
        }
        logged.sort_unstable();
        notes.extend(logged.iter().map(|&(_, offset, band, lba, sectors)| {
            Record::Logged { lba, sectors, band: self.band_number(index, band), offset }.encode()
        }));
        if !zone.logs.is_empty() {
            notes.push(Record::Filled { zone: index as u64, filled_sectors: zone.head }.encode());
        }
    }
}

/// Returns the band counts of a whole zone: `zone_size` counts only logical bands; the free bands are additional.
fn zone_sizes(parameters: &Parameters, band_bytes: u64) -> Result<Sizes, ConfigError> {
    let data = (parameters.bytes("zone_size") / band_bytes) as usize;
    let share = parameters.share("free_share");
    if data == 0 || share >= 1.0 {
        return Err(ConfigError(format!("a zone needs a band at least, and free_share={share} below 1")));
    }
    let free = match parameters.count("log_bands") {
        0 => (share / (1.0 - share) * data as f64).round() as u64,
        count => count.saturating_add(reserve(parameters)),
    };
    if free > u32::MAX as u64 {
        return Err(ConfigError(format!("a zone with {free} free bands; expected fewer than 2³²")));
    }
    Ok(Sizes { data, free: free.max(reserve(parameters) + 1) as usize })
}

/// Returns the band counts of the last zone, if the `bands` left over suffice for one.
fn rest_sizes(parameters: &Parameters, whole: &Sizes, bands: usize) -> Option<Sizes> {
    let free = match parameters.count("log_bands") {
        0 => (parameters.share("free_share") * bands as f64).round() as usize,
        _ => whole.free,
    };
    let free = free.max(reserve(parameters) as usize + 1);
    (bands > free).then(|| Sizes { data: bands - free, free })
}

/// Returns the value of the parameter `reserve_bands`: the number of free bands of each zone that only merges may take.
pub(super) fn reserve(parameters: &Parameters) -> u64 {
    parameters.count("reserve_bands")
}
