//! What lies where: bands, the cache, the spare that merged bands are made safe in, and the map.
//!
//! The disk is carved into bands; those nearest to the asked-for places are given up to the map, the spare and the
//! cache, in this order, and their tracks used without guards ([`Tracks`]). The spare lies at the cache, which is
//! where these drives persist a merged band (Aghayev 2015 §4.5).

use imbrex_disk::{Disk, Extent, Lba, Sectors};

use super::journal::{Journal, PacketRules};
use super::slots::Slots;
use super::tracks::Tracks;
use super::Store;
use crate::parameters::{ConfigError, Parameters};
use crate::registry::Context;
use crate::run_map::RunMap;
use crate::space::{Position, RegionSize, Regions};

/// Tracks of a band where neither parameter nor recording says (Aghayev 2015 §4.7 gives 36 MiB in tracks of 1.8).
const BAND_TRACKS: u64 = 20;

/// What lies where.
#[derive(Debug)]
pub(super) struct Shape {
    /// Where data lives in the end, with the LBAs laid through.
    pub(super) bands: Regions,
    /// Takes a merged band.
    pub(super) spare: Tracks,
    /// Takes the map.
    pub(super) map: Tracks,
}

/// Regions on their way to their users.
struct Parting<'a> {
    disk: &'a Disk,
    rest: Regions,
    /// What belongs to anyone.
    owned: RunMap<()>,
}

impl Parting<'_> {
    /// The tracks of as many regions at `position` as `suffices` asks for; the regions are the caller's then.
    fn part(
        &mut self,
        position: Position,
        what: &str,
        suffices: impl Fn(&Tracks) -> bool,
    ) -> Result<Tracks, ConfigError> {
        let mut count = 1;
        while count < self.rest.len() {
            let (taken, rest) = self.rest.take(self.disk, count, position);
            taken_each(&taken, |extent| self.owned.remove(extent.start.0, extent.sectors.0));
            let tracks = Tracks::between(self.disk, &taken, &self.owned);
            if suffices(&tracks) {
                tracks.iter().for_each(|track| self.owned.insert(track.start.0, track.sectors.0, ()));
                self.rest = rest;
                return Ok(tracks);
            }
            taken_each(&taken, |extent| self.owned.insert(extent.start.0, extent.sectors.0, ()));
            count = grown(count);
        }
        Err(ConfigError(format!("the {what} does not fit on this disk beside its bands: make it or the bands smaller")))
    }
}

fn taken_each(taken: &Regions, visit: impl FnMut(Extent)) {
    (0..taken.len()).map(|index| taken.extent(index)).for_each(visit);
}

/// The next count to try: one more while there are few, a few per cent more while there are many.
fn grown(count: usize) -> usize {
    count + (count / 32).max(1)
}

/// Builds the places and the store that `context` asks for.
pub(super) fn build(context: &Context) -> Result<(Shape, Store), ConfigError> {
    let (disk, parameters) = (&*context.disk, &context.parameters);
    let bands = Regions::carve(disk, RegionSize::Tracks(band_tracks(context)?));
    if bands.is_empty() {
        return Err(ConfigError("band_tracks: no band fits on this disk".into()));
    }
    let mut owned = RunMap::default();
    taken_each(&bands, |extent| owned.insert(extent.start.0, extent.sectors.0, ()));
    let mut parting = Parting { disk, rest: bands, owned };
    let position = |key| Position::named(parameters.choice(key)).expect("one of the words");
    let map_tracks = parameters.count("map_merge_tracks").max(1);
    let map = parting.part(position("map_position"), "map", |tracks| tracks.len() as u64 >= map_tracks)?;
    let cache_position = position("cache_position");
    let band_sectors = parting.rest.sectors_max().0;
    let spare = parting.part(cache_position, "spare", |tracks| tracks.sectors() >= band_sectors)?;
    let store = match parameters.choice("placement") {
        "journal" => Store::Journal(journal(&mut parting, parameters, cache_position)?),
        _ => Store::InPlace(slots(&mut parting, parameters, cache_position)?),
    };
    Ok((Shape { bands: parting.rest, spare, map }, store))
}

fn band_tracks(context: &Context) -> Result<u32, ConfigError> {
    let tracks = match context.parameters.count("band_tracks") {
        0 => context.disk.recording.band_tracks().map_or(BAND_TRACKS, u64::from),
        tracks => tracks,
    };
    u32::try_from(tracks).map_err(|_| ConfigError(format!("band_tracks={tracks}: expected fewer than 2³²")))
}

fn sectors(disk: &Disk, parameters: &Parameters, key: &str) -> u64 {
    parameters.bytes(key) / disk.sector_bytes as u64
}

/// The raw size counts half tracks as large as the first: bytes of the cache in tracks that shrink inwards would hide
/// how many packets it takes, which is what was measured.
fn journal(parting: &mut Parting<'_>, parameters: &Parameters, position: Position) -> Result<Journal, ConfigError> {
    let disk = parting.disk;
    let in_sectors = |key| sectors(disk, parameters, key);
    let rules = PacketRules {
        out_of_band: parameters.count("out_of_band"),
        payload_sectors: in_sectors("half_track_payload"),
        writes_max: parameters.count("packet_writes") as usize,
        large_sectors: in_sectors("large_write"),
        large_payload_sectors: in_sectors("large_payload"),
    };
    let ring = |tracks: &Tracks| Ring::on(disk, tracks, in_sectors("cache_size"));
    let mut tracks = parting.part(position, "cache", |tracks| ring(tracks).is_some())?;
    let ring = ring(&tracks).expect("it fitted a moment ago");
    tracks.truncate(*ring.offsets.last().expect("begins with zero"));
    let raw = ring.raw;
    if raw <= rules.out_of_band
        || rules.payload_sectors == 0
        || rules.large_payload_sectors == 0
        || rules.writes_max == 0
    {
        let half_tracks = rules.out_of_band;
        let reason = format!("a packet has {half_tracks} half tracks of out-of-band data and one of payload at least");
        return Err(ConfigError(format!("cache_size: {raw} half tracks hold no packet: {reason}")));
    }
    Ok(Journal::new(tracks, ring.offsets, raw, rules))
}

/// The half tracks of a journal.
struct Ring {
    /// Sectors before each, and all at the end.
    offsets: Vec<u64>,
    /// How many packets may take.
    raw: u64,
}

impl Ring {
    /// A ring for `cache_sectors` on `tracks`, if they are enough.
    fn on(disk: &Disk, tracks: &Tracks, cache_sectors: u64) -> Option<Ring> {
        if tracks.len() == 0 {
            return None;
        }
        let rotation_ns = disk.geometry.rotation_ns() as u64;
        let passing_ns = rotation_ns + skew_ns(disk, tracks);
        let raw = cache_sectors / (tracks.track_sectors(0) / 2).max(1);
        // What a write reaches, and the track it lies on.
        let reach = (tracks.reach as u64 + 1) * 2 * passing_ns;
        let guard = if tracks.reach > 0 { reach.div_ceil(rotation_ns) + 1 } else { 0 };
        let (mut offsets, mut offset, mut track) = (vec![0], 0, 0);
        while (offsets.len() as u64) <= raw + guard {
            while track < tracks.len() && tracks.offset(track + 1) <= offset {
                track += 1;
            }
            if track == tracks.len() {
                return None;
            }
            offset += (tracks.track_sectors(track) * rotation_ns / (2 * passing_ns)).max(1);
            offsets.push(offset);
        }
        (offset <= tracks.sectors()).then_some(Ring { offsets, raw })
    }
}

/// The skew from one track to the next, as the first two have it. A quarter of a rotation or more is no skew but where
/// the tracks happen to lie.
fn skew_ns(disk: &Disk, tracks: &Tracks) -> u64 {
    let rotation_ns = disk.geometry.rotation_ns() as u64;
    let angles_ns: Vec<u64> =
        tracks.iter().take(2).map(|track| disk.geometry.locate(track.start).angle_ns as u64).collect();
    match angles_ns[..] {
        [first, second] => {
            Some((second + rotation_ns - first) % rotation_ns).filter(|&skew_ns| skew_ns < rotation_ns / 4)
        }
        _ => None,
    }
    .unwrap_or(0)
}

fn slots(parting: &mut Parting<'_>, parameters: &Parameters, position: Position) -> Result<Slots, ConfigError> {
    let disk = parting.disk;
    let block = sectors(disk, parameters, "cache_block");
    let zone_slots = sectors(disk, parameters, "cache_zone").checked_div(block).unwrap_or(0) as usize;
    let count = sectors(disk, parameters, "cache_size").checked_div(block).unwrap_or(0) as usize;
    if zone_slots == 0 || count == 0 {
        let reason = "a cache zone has at least one block, of at least one sector, and the cache at least one";
        return Err(ConfigError(format!("cache_block, cache_zone, cache_size: {reason}")));
    }
    let starts = |tracks: &Tracks| slot_starts(disk, tracks, block);
    let tracks =
        parting.part(position, "cache on tracks that can be overwritten", |tracks| starts(tracks).len() >= count)?;
    let mut starts = starts(&tracks);
    starts.truncate(count);
    Ok(Slots::new(starts, block, zone_slots))
}

/// Where slots begin: one after the other wherever tracks follow each other and can be overwritten in place.
fn slot_starts(disk: &Disk, tracks: &Tracks, block: u64) -> Vec<u64> {
    let (mut starts, mut run, mut destroyed) = (Vec::new(), Extent::new(imbrex_disk::Pba(0), Sectors(0)), Vec::new());
    let mut cut = |run: Extent| starts.extend((0..run.sectors.0 / block).map(|slot| run.start.0 + slot * block));
    for track in tracks.iter() {
        destroyed.clear();
        disk.recording.destroys(&disk.geometry, track, &mut destroyed);
        if !destroyed.is_empty() || track.start != run.end() {
            cut(run);
            run = Extent::new(track.start, Sectors(0));
        }
        if destroyed.is_empty() {
            run = Extent::new(run.start, run.sectors + track.sectors);
        }
    }
    cut(run);
    starts
}

impl Shape {
    /// The block that `lba` lies in: its first LBA and its sectors. Blocks are counted from the beginning of each band.
    pub(super) fn block(&self, lba: Lba, block_sectors: u64) -> (Lba, Sectors) {
        let at = self.bands.locate(lba);
        let within = at.offset.0 / block_sectors * block_sectors;
        let first = self.bands.first_lba(at.region) + Sectors(within);
        (first, Sectors(block_sectors.min(self.bands.sectors(at.region).0 - within)))
    }

    /// The LBAs of band `index`.
    #[inline]
    pub(super) fn band(&self, index: usize) -> (Lba, Sectors) {
        (self.bands.first_lba(index), self.bands.sectors(index))
    }
}
