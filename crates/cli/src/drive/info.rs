//! `imbrex drive info`: what a drive is (Singh 2014 §2.2.1 and §4.2.1 call it *modesense*), and what is in it.

use std::path::Path;

use imbrex_device::image::Header;
use imbrex_device::media::file::{FileMedium, Mode};
use imbrex_device::Store;
use imbrex_disk::{Extent, Lba, Pba};
use imbrex_layer::Piece;
use imbrex_sim::Drive;
use serde_json::{json, Map, Value};

use crate::error::{ExitCode, Failure};
use crate::{human, output};

/// Prints it.
pub fn run(image: &Path, as_json: bool) -> Result<ExitCode, Failure> {
    let media = FileMedium::open(image, Mode::Read, false)?;
    let (drive, mut store) = Store::open_to_look(media, &image.display().to_string())?;
    let facts = facts(&drive, &mut store)?;
    if as_json {
        let mut document = Map::new();
        document.insert("schema".into(), json!("imbrex.drive-info/1"));
        document.extend(facts.iter().map(|fact| (fact.key.to_string(), fact.value.clone())));
        output::line(&serde_json::to_string_pretty(&document).map_err(Failure::failed)?)?;
        return Ok(ExitCode::Done);
    }
    let width = facts.iter().map(|fact| fact.name.len()).max().unwrap_or(0);
    for fact in &facts {
        output::line(&format!("{:width$}  {}", fact.name, fact.words))?;
    }
    Ok(ExitCode::Done)
}

struct Fact {
    key: &'static str,
    name: &'static str,
    value: Value,
    words: String,
}

fn fact(key: &'static str, name: &'static str, value: impl Into<Value>, words: impl ToString) -> Fact {
    Fact { key, name, value: value.into(), words: words.to_string() }
}

fn size(key: &'static str, name: &'static str, bytes: u64) -> Fact {
    fact(key, name, bytes, human::bytes(bytes))
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
    if let Some(tracks) = recording.band_tracks() {
        facts.push(fact("band_tracks", "tracks of a band", tracks, tracks));
    }
    if let Some((no_overlap, isolation)) = recording.caveat_distances() {
        facts.push(fact("dnor_sectors", "DNOR", no_overlap, format!("{no_overlap} sectors")));
        facts.push(fact("did_sectors", "DID", isolation, format!("{isolation} sectors")));
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
    Ok(facts)
}

/// Logical sectors that lie somewhere.
fn stored_sectors(drive: &Drive) -> u64 {
    let mut pieces: Vec<Piece> = Vec::new();
    drive.layer.lookup(Lba(0), drive.layer.capacity(), &mut pieces);
    pieces.iter().filter(|piece| piece.at.is_some()).map(|piece| piece.sectors.0).sum()
}
