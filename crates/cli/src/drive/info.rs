//! `imbrex drive info`: prints the properties of a drive (Singh 2014 §2.2.1 and §4.2.1 call the operation *modesense*)
//! and a summary of its contents.

use std::path::Path;

use imbrex_device::Store;
use imbrex_device::image::Header;
use imbrex_device::media::file::{FileMedium, Mode};
use imbrex_disk::profile::Host;
use imbrex_disk::recording::distances::CaveatDistances;
use imbrex_disk::{Extent, Lba, Pba};
use imbrex_layer::{Condition, Piece, Zones};
use imbrex_sim::Drive;
use serde_json::{Map, Value, json};

use super::facts::{Fact, print};
use crate::error::ExitCode;
use imbrex::Failure;
use imbrex::human;
use imbrex::table_form::TableForm;

/// Prints the facts about the drive.
pub(super) fn run(image: &Path, as_json: bool, table: Option<TableForm>) -> Result<ExitCode, Failure> {
    let media = FileMedium::open(image, Mode::Read, false)?;
    let (drive, mut store) = Store::open_to_look(media, &image.display().to_string())?;
    let facts = facts(&drive, &mut store)?;
    print("imbrex.drive-info/1", &facts, as_json, table)?;
    Ok(ExitCode::Done)
}

fn fact(key: &'static str, name: &'static str, value: impl Into<Value>, words: impl ToString) -> Fact {
    Fact::new(key, name, value, words)
}

fn size(key: &'static str, name: &'static str, bytes: u64) -> Fact {
    Fact::size(key, name, bytes)
}

fn facts(drive: &Drive, store: &mut Store<FileMedium>) -> Result<Vec<Fact>, Failure> {
    let header: Header = store.header().clone();
    let sector = u64::from(header.sector_bytes);
    let recording = &drive.disk.recording;
    let parameters: Vec<_> = drive.parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let mut facts = vec![
        fact("drive", "drive", header.label.clone(), &header.label),
        fact("uuid", "uuid", header.uuid.to_string(), header.uuid),
        size("capacity_bytes", "capacity", drive.capacity_bytes()),
        size("sector_bytes", "sector", sector),
        size("physical_bytes", "physical", header.disk_sectors * sector),
        fact("recording", "recording", recording.name(), recording.name()),
        fact("layer", "layer", drive.layer.name(), drive.layer.name()),
        fact("parameters", "parameters", parameters.clone(), parameters.join(", ")),
    ];
    facts.extend(host_facts(&drive.host));
    if let Some(snapshot) = header.snapshot {
        facts.insert(2, fact("snapshot_uuid", "snapshot", snapshot.to_string(), snapshot));
    }
    if store.space_mut().is_copied_unclosed()? {
        facts.push(fact(
            "is_copied_unclosed",
            "copied",
            true,
            "while it was not closed; see `imbrex drive adopt --help`",
        ));
    }
    if let Some(tracks) = recording.band_tracks() {
        facts.push(fact("band_tracks", "tracks of a band", tracks, tracks));
    }
    if let Some(CaveatDistances { no_overlap, isolation }) = recording.caveat_distances() {
        let (no_overlap, isolation) = (no_overlap.0, isolation.0);
        facts.push(fact("dnor_sectors", "DNOR", no_overlap, format!("{no_overlap} sectors")));
        facts.push(fact("did_sectors", "DID", isolation, format!("{isolation} sectors")));
    }
    if let Some(zones) = drive.layer.zones() {
        facts.extend(zone_facts(zones, sector)?);
    }
    facts.push(size("stored_bytes", "stored", stored_sectors(drive) * sector));
    facts.push(size("image_bytes", "image", store.space().allocated_bytes()));
    facts.push(fact(
        "journal_records",
        "journal",
        store.journal().records(),
        format!("{} records", store.journal().records()),
    ));
    let mut damaged = 0;
    store.for_each_damage(Extent::between(Pba(0), Pba(header.disk_sectors)), |run| damaged += run.sectors.0)?;
    facts.push(fact(
        "destroyed_sectors",
        "destroyed",
        damaged,
        format!("{damaged} sectors (of any kind; `drive check` says whether live ones)"),
    ));
    let lost: u64 = store.lost().runs().map(|(_, sectors)| sectors.0).sum();
    facts.push(fact("lost_sectors", "lost", lost, format!("{lost} sectors, to damage, until they are written")));
    Ok(facts)
}

/// Returns the facts about the drive's side of the interface.
fn host_facts(host: &Host) -> Vec<Fact> {
    let cache =
        |key, name, bytes: u64| fact(key, name, bytes, if bytes == 0 { "off".into() } else { human::bytes(bytes) });
    let time = |key, name, ns: u64| fact(key, name, ns, human::duration_ns(ns));
    let age_limit = match host.age_limit_ns {
        0 => "none".to_string(),
        ns => human::duration_ns(ns),
    };
    let controller = if host.controller.is_some() { "in detail" } else { "one overhead for each command" };
    vec![
        fact("queue", "queue", host.queue, format!("{} commands", host.queue)),
        fact("schedule", "schedule", host.schedule.clone(), &host.schedule),
        fact("age_limit_ns", "age limit", host.age_limit_ns, age_limit),
        cache("write_cache_bytes", "write cache", host.write_cache_bytes),
        time("write_cache_acknowledge_ns", "write cache answers in", host.write_cache_acknowledge_ns),
        cache("read_ahead_bytes", "read-ahead", host.read_ahead_bytes),
        time("overhead_ns", "command overhead", host.overhead_ns),
        time("idle_threshold_ns", "idle after", host.idle_threshold_ns),
        fact("controller", "controller", json!(host.controller), controller),
    ]
}

/// Returns the facts about the zones of a host-managed drive, with the number of zones in each condition.
fn zone_facts(zones: &Zones, sector_bytes: u64) -> Result<Vec<Fact>, Failure> {
    let (mut conditions, mut written) = (Map::new(), 0);
    for index in 0..zones.len() {
        let zone = zones.zone(index).map_err(Failure::failed)?;
        let count = conditions.entry(zone.condition.name()).or_insert(json!(0));
        *count = json!(count.as_u64().unwrap_or(0) + 1);
        written += if zone.condition == Condition::Conventional { 0 } else { zone.pointer.0 };
    }
    let words: Vec<_> = conditions.iter().map(|(condition, count)| format!("{count} {condition}")).collect();
    let (open_max, active_max) = zones.limits();
    let limit = |limit: Option<u32>| limit.map_or("any number".to_string(), |limit| limit.to_string());
    Ok(vec![
        fact("zones", "zones", zones.len(), zones.len()),
        size("zone_bytes", "zone", zones.zone_sectors().0 * sector_bytes),
        fact("zone_conditions", "conditions", conditions, words.join(", ")),
        fact("open_zones_max", "open at a time", open_max, limit(open_max)),
        fact("active_zones_max", "active at a time", active_max, limit(active_max)),
        size("pointed_bytes", "below pointers", written * sector_bytes),
    ])
}

/// Returns the number of logical sectors that are mapped to a medium.
fn stored_sectors(drive: &Drive) -> u64 {
    let mut pieces: Vec<Piece> = Vec::new();
    drive.layer.lookup(Lba(0), drive.layer.capacity(), &mut pieces);
    pieces.iter().filter(|piece| piece.at.is_some()).map(|piece| piece.sectors.0).sum()
}
