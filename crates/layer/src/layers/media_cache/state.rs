//! The state of the layer, and the operations that all its parts use: look-ups, changes of the map, checks of
//! invariants.

use imbrex_disk::{Lba, Pba, Sectors, SimDuration};

use super::journal::{Entry, Journal};
use super::shape::{self, Shape};
use super::stage::Cleaning;
use super::store::Store;
use super::zones::CacheZones;
use crate::context::Context;
use crate::layer::Piece;
use crate::map::extent_map::{ExtentMap, Mapped, MappedRun};
use crate::parameters::ConfigError;
use crate::plan::{GroupKind, Medium, Plan};
use crate::violation::Violation;

/// Name of the layer in the registry.
pub(super) const NAME: &str = "media-cache";

/// The values of the layer's parameters.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) map_entries: usize,
    pub(super) map_merge_every: u64,
    pub(super) map_merge_sectors: u64,
    pub(super) map_update_sectors: u64,
    pub(super) collect_sectors: u64,
    pub(super) stream_sectors: u64,
    pub(super) band_sectors_min: Sectors,
    pub(super) idle_after: SimDuration,
    pub(super) idle_rest: SimDuration,
    /// Number of seeks to the inner diameter and back before cleaning in idle time.
    pub(super) idle_visits: u64,
    pub(super) entries_end_at_bands: bool,
    /// Whether cleaning rewrites a band only from the track of its first cached or trimmed sector on.
    pub(super) is_rmw_partial: bool,
    pub(super) power_safe: bool,
}

/// The `media-cache` layer: its bands, its cache, the map of cached runs, and the cleaning in progress.
#[derive(Debug)]
pub(super) struct MediaCache {
    pub(super) disk: imbrex_disk::SharedDisk,
    pub(super) shape: Shape,
    pub(super) store: Store,
    pub(super) settings: Settings,
    pub(super) map: ExtentMap,
    /// One bit for each band, set if the band was ever written in its own place, so that live data may lie there.
    pub(super) written: Vec<u64>,
    pub(super) cleaning: Cleaning,
    pub(super) packets_since_merge: u64,
    /// LBA at which the search for trimmed runs to clean continues.
    pub(super) absent_next: Lba,
    /// Runs of the current write commands that have no place yet, as first LBA and length.
    pub(super) waiting: Vec<(Lba, Sectors)>,
    /// Entries of the current packet; with a cache that is overwritten in place, the new entries whose records are
    /// still to be planned after their data.
    pub(super) placed: Vec<Entry>,
}

impl MediaCache {
    pub(super) fn new(context: &Context) -> Result<MediaCache, ConfigError> {
        let (shape, store) = shape::build(context)?;
        let parameters = &context.parameters;
        let in_sectors = |key| parameters.bytes(key) / context.disk.sector_bytes as u64;
        let map_sectors = |key| {
            let tracks = (parameters.count(key) as usize).min(shape.map.len());
            shape.map.offset(tracks)
        };
        let settings = Settings {
            map_entries: parameters.count("map_entries") as usize,
            map_merge_every: parameters.count("map_merge_every"),
            map_merge_sectors: map_sectors("map_merge_tracks"),
            map_update_sectors: map_sectors("map_update_tracks"),
            collect_sectors: in_sectors("collect_per_block"),
            stream_sectors: in_sectors("stream_size").max(1),
            band_sectors_min: shape.bands.sectors_min(),
            idle_after: SimDuration(parameters.duration_ns("idle")),
            idle_rest: SimDuration(parameters.duration_ns("idle_rest")),
            idle_visits: parameters.count("idle_visits"),
            entries_end_at_bands: parameters.choice("cache_entry") == "band",
            is_rmw_partial: parameters.choice("rmw") == "partial",
            power_safe: parameters.choice("safety") == "power",
        };
        if settings.map_entries > u32::MAX as usize {
            return Err(ConfigError(format!("map_entries={}: give at most {}", settings.map_entries, u32::MAX)));
        }
        if settings.map_entries < 2 {
            return Err(ConfigError(
                "map_entries: a write can cut a run in two, so the map has two entries at least".into(),
            ));
        }
        Ok(MediaCache {
            disk: context.disk.clone(),
            written: vec![0; shape.bands.len().div_ceil(64)],
            shape,
            store,
            settings,
            map: ExtentMap::new(),
            cleaning: Cleaning::default(),
            packets_since_merge: 0,
            absent_next: Lba(0),
            waiting: Vec::new(),
            placed: Vec::new(),
        })
    }

    /// Opens a host group in `plan`, unless the last phase belongs to one. Steps that follow then belong to the host.
    pub(super) fn open_host(plan: &mut Plan) {
        if plan.phases.last().is_none_or(|phase| phase.kind != GroupKind::Host) {
            plan.open(GroupKind::Host);
        }
    }

    pub(super) fn is_written(&self, band: usize) -> bool {
        self.written[band / 64] >> (band % 64) & 1 == 1
    }

    pub(super) fn set_written(&mut self, band: usize) {
        self.written[band / 64] |= 1 << (band % 64);
    }

    /// Maps the `sectors` from `lba` on to `target`, in place of older runs. In a cache that is overwritten in place,
    /// the places of the older runs become free.
    #[inline]
    pub(super) fn map_run(&mut self, lba: Lba, sectors: Sectors, target: Mapped) {
        match &mut self.store {
            Store::Journal(_) => self.map.insert(lba, sectors, target, |_| {}),
            Store::InPlace(zones) => self.map.insert(lba, sectors, target, |run| zones.remove(run)),
        }
    }

    /// Removes all cached and trimmed runs of `band` from the map. In a cache that is overwritten in place, their
    /// places become free.
    pub(super) fn unmap_band(&mut self, band: usize) {
        let (first, sectors) = self.shape.band(band);
        match &mut self.store {
            Store::Journal(_) => self.map.remove(first, sectors, |_| {}),
            Store::InPlace(zones) => {
                // Runs that follow each other in the band mostly do so in their zone, too, and are then removed together.
                let mut leaving: Option<MappedRun> = None;
                self.map.remove(first, sectors, |run| match &mut leaving {
                    Some(before) if zones.leave_together(before, &run) => before.sectors += run.sectors,
                    _ => zones.remove_some(leaving.replace(run)),
                });
                zones.remove_some(leaving);
            }
        }
    }

    pub(super) fn for_each_piece(&self, lba: Lba, sectors: Sectors, mut visit: impl FnMut(Piece)) {
        self.map.cover(lba, sectors, |lba, sectors, mapped| match mapped {
            Some(Mapped::At(pba)) => visit(Piece { lba, sectors, at: Some((Medium::Disk, pba)) }),
            Some(Mapped::Absent) => visit(Piece { lba, sectors, at: None }),
            None => self
                .shape
                .bands
                .split(lba, sectors, |band, lba, sectors| self.for_each_home(band, lba, sectors, &mut visit)),
        });
    }

    /// Calls `visit` with the pieces in which the `sectors` of `band` from `lba` on lie, which are not cached: one
    /// piece in the band, and pieces in the spare while the band is rewritten.
    pub(super) fn for_each_home(&self, band: usize, lba: Lba, sectors: Sectors, visit: &mut impl FnMut(Piece)) {
        let offset = (lba - self.shape.bands.first_lba(band)).0;
        let from = if self.cleaning.rewriting() == Some(band) { self.cleaning.from } else { u64::MAX };
        let in_band = sectors.0.min(from.saturating_sub(offset));
        if in_band > 0 {
            let at = self.shape.bands.extent(band).start + Sectors(offset);
            visit(Piece { lba, sectors: Sectors(in_band), at: Some((Medium::Disk, at)) });
        }
        if in_band == sectors.0 {
            return;
        }
        self.shape.spare.runs(offset + in_band - from, sectors.0 - in_band, |done, extent| {
            let at = Some((Medium::Disk, extent.start));
            visit(Piece { lba: lba + Sectors(in_band + done), sectors: extent.sectors, at });
        });
    }

    pub(super) fn violation(invariant: u32, detail: String) -> Result<(), Violation> {
        Err(Violation { layer: NAME, invariant, detail })
    }

    /// Returns the cached runs with their first physical sectors, sorted by these.
    ///
    /// # Errors
    ///
    /// Two cached runs share a physical sector (invariant 1).
    pub(super) fn cached_by_place(&self) -> Result<Vec<(Pba, MappedRun)>, Violation> {
        let mut cached: Vec<(Pba, MappedRun)> = Vec::new();
        for run in self.map.iter() {
            if let Mapped::At(pba) = run.target {
                cached.push((pba, run));
            }
        }
        cached.sort_by_key(|(pba, _)| *pba);
        for pair in cached.windows(2) {
            if pair[0].0 + pair[0].1.sectors > pair[1].0 {
                let detail = format!("{:?} and {:?} share sectors", pair[0].1, pair[1].1);
                return Self::violation(1, detail).map(|()| Vec::new());
            }
        }
        Ok(cached)
    }

    pub(super) fn check_journal(&self, journal: &Journal) -> Result<(), Violation> {
        let (head, tail) = (journal.head, journal.tail);
        let taken: u64 = journal.packets.iter().map(|packet| packet.half_tracks as u64).sum();
        if head - tail != taken || taken > journal.raw_half_tracks() {
            return Self::violation(1, format!("packets take {taken} half tracks between {tail} and {head}"));
        }
        let mut live = 0;
        for entry in &journal.entries {
            let pieces = self.map.pieces(Lba(entry.lba), Sectors(entry.sectors as u64));
            let here = |lba: Lba| Mapped::At(Pba(entry.pba + (lba.0 - entry.lba)));
            live += pieces.filter(|run| run.target == here(run.lba)).map(|run| run.sectors.0).sum::<u64>();
        }
        let cached: u64 = self.cached_by_place()?.iter().map(|(_, run)| run.sectors.0).sum();
        if live != cached {
            return Self::violation(2, format!("{cached} sectors are cached, {live} of them in entries of packets"));
        }
        Ok(())
    }

    pub(super) fn check_zones(&self, zones: &CacheZones) -> Result<(), Violation> {
        let mut total = 0;
        for (place, lba, sectors) in zones.held() {
            let own = |run: &MappedRun| run.target == Mapped::At(place + (run.lba - lba));
            let mapped: Sectors = self.map.pieces(lba, sectors).filter(own).map(|run| run.sectors).sum();
            if mapped != sectors {
                return Self::violation(1, format!("{sectors:?} live at {place}, of which the map has {mapped:?}"));
            }
            total += sectors.0;
        }
        let cached: u64 = self.cached_by_place()?.iter().map(|(_, run)| run.sectors.0).sum();
        if cached != total || total + zones.free_sectors() != zones.sectors() {
            let (free, all) = (zones.free_sectors(), zones.sectors());
            return Self::violation(1, format!("{cached} sectors are cached, {total} held, {free} free, of {all}"));
        }
        if let Some(zone) = zones.first_wrong_sum() {
            return Self::violation(1, format!("cache zone {zone} has a wrong sum of used sectors"));
        }
        if zones.len() > self.settings.map_entries {
            let (runs, most) = (zones.len(), self.settings.map_entries);
            return Self::violation(5, format!("{runs} cached runs in a map of {most}"));
        }
        Ok(())
    }
}
