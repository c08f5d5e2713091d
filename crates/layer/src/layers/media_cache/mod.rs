//! `media-cache`: drives with a persistent cache on the medium, in front of bands that are mapped statically (Aghayev
//! 2015 §4 and tables 2, 3).
//!
//! The cache has two placements: `journal`, a ring of packets at the outer diameter ([`journal`]), and `in-place`,
//! zones in which a cached sector is overwritten in place ([`zones`]). Both share the rest:
//!
//! - Writes go to the cache, and the extent map records their places. When the space or the map is full, a band is
//!   cleaned before the host goes on. After some time without commands, cleaning starts by itself ([`cleaning`]).
//! - A band that is covered by one write, or by joined commands, is written in its own place ([`streams`]).
//! - TRIM marks sectors as absent in the map, and reaches the medium when their band is cleaned.
//!
//! Does not model: the place where a drive parks its heads (Aghayev 2015 §4.5); the cost of writing the map if the cache
//! is overwritten in place, which has not been measured.
//!
//! Journal records: [`record`].
//!
//! Invariants:
//! 1. Cached runs lie where the store has them, and share no sector: in a packet between tail and head, or in a zone.
//! 2. Every entry that is live in the map belongs to a packet of the ring.
//! 3. While a band is being rewritten, the spare holds all sectors that are rewritten, and no read of them goes to the
//!    band's own place.
//! 4. The cache overwrites only data that is dead according to records that a barrier has made durable.
//! 5. A cache overwritten in place holds no more runs than `map_entries`. (Absent runs count too when room is sought,
//!    but recovery may add some of them: the record `Bare`.)

mod cleaning;
mod free_runs;
mod host;
mod journal;
mod record;
mod recovery;
mod rewritable;
mod shape;
mod stage;
mod state;
mod store;
mod streams;
#[cfg(test)]
mod tests;
mod tracks;
mod zones;

use std::ops::Range;

use imbrex_disk::{Command, Lba, Operation, Sectors, SimDuration};

use crate::context::Context;
use crate::info::LayerInfo;
use crate::layer::{Background, Cache, Layer, MapMemory, Piece, PrefetchHint, StoreExtent};
use crate::parameters::{ConfigError, ParameterInfo, ParameterKind};
use crate::plan::Plan;
use crate::plan::note::{Note, ReplayError};
use crate::plan::reason::{Area, AreaKind};
use crate::region::Position;
use crate::violation::Violation;
use cleaning::VISIT_AFTER;
use record::Record;
use state::MediaCache;
use store::Store;

const fn parameter(key: &'static str, kind: ParameterKind, default: &'static str, help: &'static str) -> ParameterInfo {
    ParameterInfo { key, kind, default, help }
}

/// Description of the layer `media-cache` for the registry: a persistent cache on the disk takes writes before they are
/// merged into bands that stay in their places.
pub const INFO: LayerInfo = LayerInfo {
    name: state::NAME,
    summary: "a persistent cache on the medium, journal or overwritten in place, before bands that stay in their place",
    recordings: &["shingled", "conventional"],
    host_managed: false,
    mapping_unit: "extent of cached sectors",
    source: "Aghayev 2015 §4",
    parameters: &[
        parameter(
            "placement",
            ParameterKind::Choice(&["journal", "in-place"]),
            "journal",
            "how the cache is written: as a ring of packets, or in place",
        ),
        parameter("cache_size", ParameterKind::Bytes, "100GiB", "raw size of the cache"),
        parameter("cache_position", ParameterKind::Choice(Position::WORDS), "od", "where on the disk the cache lies"),
        parameter(
            "map_entries",
            ParameterKind::CountFrom(2),
            "182270",
            "extents that the map holds before cleaning starts",
        ),
        parameter("map_position", ParameterKind::Choice(Position::WORDS), "md", "where on the disk the map lies"),
        parameter(
            "map_merge_every",
            ParameterKind::Count,
            "240",
            "packets from one merge of the map to the next; 0: none",
        ),
        parameter("map_merge_tracks", ParameterKind::Count, "26", "tracks that a merge of the map writes"),
        parameter("map_update_tracks", ParameterKind::Count, "1", "tracks of the map that cleaning a band writes"),
        parameter("band_tracks", ParameterKind::Count, "0", "tracks of a band; 0: as the recording has it, or 20"),
        parameter("idle", ParameterKind::Duration, "1.2s", "time without commands before cleaning starts by itself"),
        parameter("idle_rest", ParameterKind::Duration, "0s", "how long it rests after each band it cleans by itself"),
        parameter(
            "idle_visits",
            ParameterKind::Count,
            "0",
            "seeks to the inner diameter and back before it cleans by itself",
        ),
        parameter("out_of_band", ParameterKind::Count, "4", "half tracks of out-of-band data in a packet"),
        parameter(
            "half_track_payload",
            ParameterKind::Bytes,
            "856KiB",
            "host writes that a half track of a packet takes",
        ),
        parameter("packet_writes", ParameterKind::Count, "31", "host writes that a packet takes"),
        parameter(
            "large_write",
            ParameterKind::Bytes,
            "128KiB",
            "a write of this size holds its packet to large_payload",
        ),
        parameter("large_payload", ParameterKind::Bytes, "768KiB", "payload of a packet with a large write in it"),
        parameter(
            "collect_per_block",
            ParameterKind::Bytes,
            "320KiB",
            "bytes of the journal that cleaning reads to find one cached block of a band",
        ),
        parameter(
            "rmw",
            ParameterKind::Choice(&["whole", "partial"]),
            "whole",
            "cleaning rewrites the whole band, or only from the track of the first cached or trimmed sector on",
        ),
        parameter("cache_block", ParameterKind::Bytes, "1MiB", "in place: largest run of an entry of the map"),
        parameter(
            "cache_entry",
            ParameterKind::Choice(&["band", "block"]),
            "band",
            "in place: entries of the map end at bands and blocks, or only at blocks",
        ),
        parameter("cache_zone", ParameterKind::Bytes, "256MiB", "in place: cache zone; eviction goes round by zone"),
        parameter(
            "stream_size",
            ParameterKind::Bytes,
            "1MiB",
            "commands of this size are joined until they cover bands",
        ),
        crate::region::rewrite::SAFETY,
    ],
    records: &[Record::INFO],
    toys: &[
        "cache_size=24k,map_entries=24,band_tracks=2,out_of_band=1,half_track_payload=2k,packet_writes=3,\
         large_write=4k,large_payload=6k,map_merge_every=3,map_merge_tracks=1,collect_per_block=1k,stream_size=4k",
        "cache_size=60k,map_entries=7,band_tracks=3,out_of_band=2,half_track_payload=3k,map_merge_every=4,\
         map_merge_tracks=2,collect_per_block=0,idle_visits=2,cache_position=id,map_position=od,stream_size=100k,rmw=partial",
        "placement=in-place,cache_size=40k,map_entries=30,band_tracks=2,cache_block=3k,cache_zone=9k,\
         stream_size=4k,map_merge_tracks=1,cache_position=id",
        "placement=in-place,cache_size=20k,map_entries=5,band_tracks=3,cache_block=2k,cache_zone=4k,\
         map_merge_tracks=1",
        "placement=in-place,cache_size=30k,map_entries=12,band_tracks=1,cache_block=3k,cache_zone=9k,\
         cache_entry=block,idle_rest=1ms,map_update_tracks=0,map_merge_tracks=1",
        "placement=in-place,cache_size=20k,map_entries=9,band_tracks=3,cache_block=2k,cache_zone=4k,\
         map_merge_tracks=1,rmw=partial",
    ],
    build,
};

fn build(context: &Context) -> Result<Box<dyn Layer>, ConfigError> {
    Ok(Box::new(MediaCache::new(context)?))
}

impl Layer for MediaCache {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn is_power_safe(&self) -> bool {
        self.settings.power_safe
    }

    fn capacity(&self) -> Sectors {
        self.shape.bands.capacity()
    }

    fn plan(&mut self, commands: &[Command], plan: &mut Plan) {
        self.serve(commands, plan);
    }

    fn joins(&self, chosen: &[Command], candidate: &Command) -> bool {
        let is_write = |command: &Command| command.operation == Operation::Write && command.sectors > 0;
        // Every chosen write has joined the first, so if the first is a write, all are.
        is_write(candidate)
            && is_write(&chosen[0])
            && (self.joins_stream(chosen, candidate) || self.joins_packet(chosen, candidate))
    }

    fn joinable(&self, first: &Command) -> Range<Lba> {
        match (first.operation, &self.store) {
            (Operation::Write, Store::Journal(_)) => Lba(0)..Lba(u64::MAX),
            (Operation::Write, Store::InPlace(_)) => self.reach_of_stream(first),
            _ => Lba(0)..Lba(0),
        }
    }

    fn stream_cut(&self, first: Lba, end: Lba) -> Option<Lba> {
        self.cut_of_stream(first, end)
    }

    fn background(&self) -> Option<Background> {
        if self.cleaning.is_visiting(self.settings.idle_visits) {
            return Some(Background { idle_after: VISIT_AFTER, rest: VISIT_AFTER });
        }
        let rest = if self.cleaning.is_resting() { self.settings.idle_rest } else { SimDuration::ZERO };
        Some(Background { idle_after: self.settings.idle_after, rest })
    }

    fn idle(&mut self, plan: &mut Plan) -> bool {
        self.clean_in_background(plan)
    }

    fn prefetch(&self, lba: Lba, coming: PrefetchHint) {
        if coming == PrefetchHint::Next {
            self.map.prefetch(lba);
        }
    }

    fn lookup(&self, lba: Lba, sectors: Sectors, pieces: &mut Vec<Piece>) {
        self.for_each_piece(lba, sectors, |piece| pieces.push(piece));
    }

    fn keeps_trims(&self) -> bool {
        true
    }

    fn self_check(&self) -> Result<(), Violation> {
        match &self.store {
            Store::Journal(journal) => self.check_journal(journal),
            Store::InPlace(zones) => self.check_zones(zones),
        }
    }

    /// Returns the size of the map in bytes. The paper gives no formula; ours has, for each entry, its LBA, its place
    /// in the cache, and its length in blocks of 4 KiB as one byte.
    fn memory(&self) -> MapMemory {
        let bits_for = |count: u64| (64 - count.saturating_sub(1).leading_zeros()) as u64;
        let (cache_sectors, store_bytes) = match &self.store {
            Store::Journal(journal) => (journal.tracks.sectors(), journal.measured_bytes()),
            Store::InPlace(zones) => (zones.sectors(), zones.measured_bytes()),
        };
        let entry_bits = bits_for(self.capacity().0) + bits_for(cache_sectors) + 8;
        let fixed =
            self.shape.bands.measured_bytes() + self.shape.spare.measured_bytes() + self.written.len() as u64 * 8;
        MapMemory {
            formula_bytes: (self.settings.map_entries as u64 * entry_bits).div_ceil(8),
            measured_bytes: self.map.measured_bytes() + store_bytes + fixed,
        }
    }

    fn checkpoint(&self, notes: &mut Vec<Note>) {
        self.write_checkpoint(notes);
    }

    fn stores(&self, each: &mut dyn FnMut(StoreExtent)) {
        self.caches(&mut |Cache { medium, start, end, .. }| {
            each(StoreExtent { area: Area::new(AreaKind::Cache, 0), medium, start, end });
        });
    }

    fn caches(&self, each: &mut dyn FnMut(Cache)) {
        match &self.store {
            Store::Journal(journal) => journal.caches(each),
            Store::InPlace(zones) => zones.caches(each),
        }
    }

    fn replay(&mut self, note: &Note) -> Result<(), ReplayError> {
        self.take_record(note)
    }

    fn repair(&mut self, plan: &mut Plan) {
        self.finish_rewrite(plan);
    }
}
