//! The division of the disk into bands, the cache, the spare to which merged bands are written for safety, and the map.
//!
//! The disk is carved into bands. The bands nearest to the requested positions become the map, the spare and the cache,
//! in this order, and their tracks are used without guards ([`Tracks`]). The spare lies at the cache, which is where
//! these drives persist a merged band (Aghayev 2015 §4.5).

use std::ops::Range;

use imbrex_disk::{Disk, Extent, Lba, Sectors};

use super::journal::{Journal, PacketRules};
use super::rewritable;
use super::store::Store;
use super::tracks::{Others, Tracks};
use super::zones::CacheZones;
use crate::context::Context;
use crate::map::run_map::RunMap;
use crate::parameters::{ConfigError, Parameters};
use crate::region::{Position, RegionSize, Regions};

/// Number of tracks in a band if neither the parameter nor the recording gives it (Aghayev 2015 §4.7 has bands of 36
/// MiB with tracks of 1.8 MiB).
const BAND_TRACKS: u64 = 20;

/// The places of the bands, the spare and the mapping table on the disk.
#[derive(Debug)]
pub(super) struct Shape {
    /// The bands, which are the own places of the LBAs, in order.
    pub(super) bands: Regions,
    /// The spare: tracks that hold a merged band while the band is rewritten in its own place.
    pub(super) spare: Tracks,
    /// Tracks to which the mapping table is written.
    pub(super) map: Tracks,
}

/// Divides the regions of a disk among map, spare, cache and bands.
struct Parting<'a> {
    disk: &'a Disk,
    rest: Regions,
    /// Tracks already given to the map, the spare or the cache.
    used: RunMap<()>,
}

/// All sectors in use, other than the regions `taken`, while those are examined as a part: the other regions of `rest`,
/// and `used`.
struct NotTaken<'a> {
    rest: &'a Regions,
    taken: Range<usize>,
    used: &'a RunMap<()>,
}

impl Others for NotTaken<'_> {
    fn touch(&self, extent: Extent) -> bool {
        let regions = self.rest.overlapping(extent);
        let is_of_rest = !regions.is_empty() && (regions.start < self.taken.start || regions.end > self.taken.end);
        is_of_rest || self.used.touch(extent)
    }
}

impl Parting<'_> {
    /// Takes the tracks of as many regions at `position` as `suffices` asks for, and removes the regions from the rest.
    /// `what` names the part in an error. `looks_enough` guesses from the area of the regions whether they suffice; a
    /// wrong guess costs time but does not change the result.
    ///
    /// # Errors
    ///
    /// Fails if no number of regions suffices.
    fn part(
        &mut self,
        position: Position,
        what: &str,
        looks_enough: impl Fn(Extent) -> bool,
        suffices: impl Fn(&Tracks) -> bool,
    ) -> Result<Tracks, ConfigError> {
        let make = |disk: &Disk, taken: &Regions, others: &NotTaken<'_>| Tracks::between(disk, taken, others);
        let tracks = self.part_as(position, what, looks_enough, make, suffices)?;
        tracks.runs(0, tracks.sectors(), |_, run| self.used.insert(run.start.0, run.sectors.0, ()));
        Ok(tracks)
    }

    /// Like [`Parting::part`], but returns the result of `make` for the regions and the sectors that others use,
    /// instead of tracks.
    fn part_as<T>(
        &mut self,
        position: Position,
        what: &str,
        looks_enough: impl Fn(Extent) -> bool,
        make: impl Fn(&Disk, &Regions, &NotTaken<'_>) -> T,
        suffices: impl Fn(&T) -> bool,
    ) -> Result<T, ConfigError> {
        let counts = counts_below(self.rest.len());
        let guess = counts.partition_point(|&count| !looks_enough(self.area(count, position)));
        // Of the counts tried, the last that suffices is the smallest.
        let mut found = None;
        partition_point_near(counts.len(), guess, |index| {
            let made = self.made(counts[index], position, &make);
            let is_enough = suffices(&made);
            if is_enough {
                found = Some((counts[index], made));
            }
            !is_enough
        });
        let Some((count, made)) = found else {
            let remedy = "make it or the bands smaller";
            return Err(ConfigError(format!("the {what} does not fit on this disk beside its bands: {remedy}")));
        };
        self.rest = self.rest.without(self.rest.block(self.disk, count, position));
        Ok(made)
    }

    /// Returns the extent from the first to the last of the `count` regions at `position`.
    fn area(&self, count: usize, position: Position) -> Extent {
        let block = self.rest.block(self.disk, count, position);
        Extent::between(self.rest.extent(block.start).start, self.rest.extent(block.end - 1).end())
    }

    /// Returns the result of `make` for the `count` regions at `position`.
    fn made<T>(&self, count: usize, position: Position, make: impl Fn(&Disk, &Regions, &NotTaken<'_>) -> T) -> T {
        let block = self.rest.block(self.disk, count, position);
        let taken = self.rest.slice(block.clone());
        make(self.disk, &taken, &NotTaken { rest: &self.rest, taken: block, used: &self.used })
    }
}

/// Returns the counts of regions to try, out of `regions`: consecutive counts at first, later a few per cent apart.
fn counts_below(regions: usize) -> Vec<usize> {
    std::iter::successors(Some(1), |&count: &usize| Some(count + (count / 32).max(1)))
        .take_while(|&count| count < regions)
        .collect()
}

/// Returns the first index below `length` for which `is_before` is false, as it is for all after it; `length` if there
/// is none. Searches outwards from `guess`, because indices far beyond the result take long to try.
fn partition_point_near(length: usize, guess: usize, mut is_before: impl FnMut(usize) -> bool) -> usize {
    // `is_before` is true for all indices below `low`, and false for `high` and all above.
    let (mut low, mut high, mut reach) = (0, length, 1);
    let mut next = guess.min(length.saturating_sub(1));
    while low < high {
        if is_before(next) {
            low = next + 1;
            next = if high == length { (next + reach).min(length - 1) } else { low + (high - low) / 2 };
        } else {
            high = next;
            next = if low == 0 { next.saturating_sub(reach) } else { low + (high - low) / 2 };
        }
        reach *= 2;
    }
    low
}

/// Divides the disk by the parameters of `context`. Returns the places of bands, spare and map, and the empty cache.
///
/// # Errors
///
/// The parameters are not possible on the disk.
pub(super) fn build(context: &Context) -> Result<(Shape, Store), ConfigError> {
    let (disk, parameters) = (&*context.disk, &context.parameters);
    let bands = Regions::carve(disk, RegionSize::Tracks(band_tracks(context)?));
    if bands.is_empty() {
        return Err(ConfigError("band_tracks: no band fits on this disk".into()));
    }
    let mut parting = Parting { disk, rest: bands, used: RunMap::default() };
    let position = |key| Position::named(parameters.choice(key)).expect("one of the words");
    let map_tracks = parameters.count("map_merge_tracks").max(1);
    let track_sectors = disk.geometry.track_of(parting.rest.extent(parting.rest.len() / 2).start).sectors.0;
    let of = |sectors: u64| move |area: Extent| area.sectors.0 >= sectors;
    let map = parting.part(position("map_position"), "map", of(map_tracks * track_sectors), |tracks| {
        tracks.len() as u64 >= map_tracks
    })?;
    let cache_position = position("cache_position");
    let band_sectors = parting.rest.sectors_max().0;
    let spare = parting.part(cache_position, "spare", of(band_sectors), |tracks| tracks.sectors() >= band_sectors)?;
    let store = match parameters.choice("placement") {
        "journal" => Store::Journal(journal(&mut parting, parameters, cache_position)?),
        _ => Store::InPlace(zones(&mut parting, parameters, cache_position)?),
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

/// Takes the tracks of the journal and returns the journal. The raw size is converted into half tracks as large as the
/// first one, because tracks shrink inwards. A size in bytes would not give the number of packets that the journal
/// takes, which is the measured figure.
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
    let raw_sectors = in_sectors("cache_size");
    let looks_enough = |area: Extent| area.sectors.0 >= raw_sectors;
    let mut tracks = parting.part(position, "cache", looks_enough, |tracks| ring(tracks).is_some())?;
    let ring = ring(&tracks).expect("it fitted a moment ago");
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
    tracks.truncate(*ring.offsets.last().expect("begins with zero"));
    Ok(Journal::new(tracks, ring.offsets, raw, rules))
}

/// The half tracks of a journal.
struct Ring {
    /// Number of sectors before each half track, and of all at the end.
    offsets: Vec<u64>,
    /// Number of half tracks that packets may take.
    raw: u64,
}

impl Ring {
    /// Returns a ring for `cache_sectors` on `tracks`, if there are enough tracks.
    fn on(disk: &Disk, tracks: &Tracks, cache_sectors: u64) -> Option<Ring> {
        if tracks.len() == 0 {
            return None;
        }
        let rotation_ns = disk.geometry.rotation_ns() as u64;
        let passing_ns = rotation_ns + skew_ns(disk, tracks);
        let raw = cache_sectors / (tracks.track_sectors(0) / 2).max(1);
        // The tracks that a write reaches, and the track on which the write lies.
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

/// Returns the skew from one track to the next, in nanoseconds, as the first two tracks have it. A quarter of a
/// rotation or more is not skew but a consequence of the tracks' layout, and counts as 0.
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

fn zones(parting: &mut Parting<'_>, parameters: &Parameters, position: Position) -> Result<CacheZones, ConfigError> {
    let disk = parting.disk;
    let in_sectors = |key| sectors(disk, parameters, key);
    let (entry, zone, cache) = (in_sectors("cache_block"), in_sectors("cache_zone"), in_sectors("cache_size"));
    if entry == 0 || zone == 0 || cache == 0 {
        let reason = "a block, a zone and the cache are of one sector at least";
        return Err(ConfigError(format!("cache_block, cache_zone, cache_size: {reason}")));
    }
    let usable = |runs: &Vec<Extent>| runs.iter().map(|run| run.sectors.0).sum::<u64>();
    let what = "cache on tracks that can be overwritten";
    let looks_enough = |area: Extent| conventional_sectors(disk, area) >= cache;
    let make = |disk: &Disk, taken: &Regions, others: &NotTaken<'_>| rewritable::between(disk, taken, others);
    let runs = parting.part_as(position, what, looks_enough, make, |runs| usable(runs) >= cache)?;
    Ok(CacheZones::new(cut(&runs, zone, cache), entry.min(u32::MAX as u64)))
}

/// Returns the number of sectors in the conventional part of `area`, where a write destroys nothing except at the ends
/// of strokes.
fn conventional_sectors(disk: &Disk, area: Extent) -> u64 {
    let is_harmless = disk.recording.is_harmless();
    let zones = disk.geometry.zones().iter().filter(|zone| is_harmless || zone.conventional);
    zones.filter_map(|zone| zone.extent.intersection(area)).map(|part| part.sectors.0).sum()
}

/// Returns the first `cache` sectors of `runs`, as zones of at most `zone` sectors.
fn cut(runs: &[Extent], zone: u64, cache: u64) -> Vec<Extent> {
    let (mut zones, mut left) = (Vec::new(), cache);
    for run in runs {
        let mut next = run.start;
        while next < run.end() && left > 0 {
            let length = (run.end() - next).0.min(zone).min(left);
            zones.push(Extent::new(next, Sectors(length)));
            next += Sectors(length);
            left -= length;
        }
    }
    zones
}

impl Shape {
    /// Returns the first LBA and the number of sectors of the band with the number `index`, counted from 0.
    #[inline]
    pub(super) fn band(&self, index: usize) -> (Lba, Sectors) {
        (self.bands.first_lba(index), self.bands.sectors(index))
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the search finds the same result as trying one count after the other. Method: a naive search, on every
    //! toy, for sizes from nothing to more than there is.

    use super::*;
    use crate::verify::toy;

    fn each_of(regions: &Regions, visit: impl FnMut(Extent)) {
        (0..regions.len()).map(|index| regions.extent(index)).for_each(visit);
    }

    fn stupid(parting: &Parting<'_>, position: Position, suffices: impl Fn(&Tracks) -> bool) -> Option<Vec<Extent>> {
        let mut count = 1;
        while count < parting.rest.len() {
            let (taken, rest) = parting.rest.take(parting.disk, count, position);
            let mut others = parting.used.clone();
            each_of(&rest, |extent| others.insert(extent.start.0, extent.sectors.0, ()));
            let tracks = Tracks::between(parting.disk, &taken, &others);
            if suffices(&tracks) {
                return Some(tracks.iter().collect());
            }
            count += (count / 32).max(1);
        }
        None
    }

    #[test]
    fn the_search_finds_what_trying_every_count_finds() {
        let mut found = 0;
        for toy in ["shingled", "conventional"].into_iter().flat_map(toy::disks) {
            for (position, tracks) in ["od", "md", "id"].into_iter().flat_map(|word| (1..40).map(move |n| (word, n))) {
                let position = Position::named(position).expect("one of the words");
                let rest = Regions::carve(&toy.disk, RegionSize::Tracks(2));
                let mut parting = Parting { disk: &toy.disk, rest, used: RunMap::default() };
                // Three users, one after the other, as in the layer; the guess may be anything.
                for (size, guess) in [(1, 0), (tracks / 2 + 1, 1_000_000), (tracks, tracks as u64 * 17)] {
                    let expected = stupid(&parting, position, |tracks| tracks.len() >= size);
                    let got =
                        parting.part(position, "test", |area| area.sectors.0 >= guess, |tracks| tracks.len() >= size);
                    assert_eq!(got.ok().map(|tracks| tracks.iter().collect::<Vec<_>>()), expected);
                    found += expected.is_some() as u32;
                }
            }
        }
        assert!(found > 100, "{found} fitted");
    }
}
