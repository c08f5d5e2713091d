//! `imbrex drive dump` (Singh 2014 §4.2.6): prints the contents of an image, row by row. Each row is printed as soon as
//! it is found, since a large drive has millions of rows.
//!
//! Invariants:
//! 1. Text and JSON have the same rows with the same fields.
//! 2. The file is not written to: unfinished changes are shown unfinished.

use std::path::Path;

use imbrex_device::Store;
use imbrex_device::faults::Known;
use imbrex_device::image::Journal;
use imbrex_device::lost::Lost;
use imbrex_device::media::file::{FileMedium, Mode};
use imbrex_disk::{Extent, Lba, Pba, Sectors};
use imbrex_layer::region::{RegionSize, Regions};
use imbrex_layer::zones::ZoneRecord;
use imbrex_layer::{Layer, Medium, Note, Piece, registry};
use imbrex_sim::Drive;
use serde_json::{Value, json};

use crate::args::DumpParts;
use crate::error::ExitCode;
use crate::output;
use imbrex::Failure;

/// Number of logical sectors looked up at once.
const WINDOW_SECTORS: u64 = 1 << 20;

/// Prints the requested parts.
pub(super) fn run(image: &Path, parts: DumpParts, as_json: bool) -> Result<ExitCode, Failure> {
    let place = image.display().to_string();
    let media = FileMedium::open(image, Mode::Read, false)?;
    let (drive, mut store) = Store::open_to_look(media, &place)?;
    let all = !(parts.bands || parts.map || parts.cache || parts.journal || parts.damage || parts.regions);
    let mut rows = Rows::begin(as_json, &place)?;
    if all || parts.bands {
        rows.section("bands", |rows| bands(&drive, &mut store, rows))?;
    }
    if all || parts.map {
        rows.section("map", |rows| for_each_run(drive.layer.as_ref(), |run| rows.row(&fields_of(&run))))?;
    }
    if all || parts.cache {
        rows.section("cache", |rows| moved(&drive, &store, rows))?;
    }
    if all || parts.journal {
        rows.section("journal", |rows| journal(&drive, &mut store, &place, rows))?;
    }
    if all || parts.damage {
        rows.section("damage", |rows| damage(&mut store, rows))?;
    }
    if parts.regions {
        rows.section("regions", |rows| regions(&mut store, rows))?;
    }
    rows.end()?;
    Ok(ExitCode::Done)
}

/// Prints the used ranges of the image file as rows.
fn regions(store: &mut Store<FileMedium>, rows: &mut Rows) -> Result<(), Failure> {
    let mut outcome = Ok(());
    store.for_each_used(&mut |used| {
        if outcome.is_ok() {
            let fields =
                [("region", json!(used.what.name())), ("offset", json!(used.offset)), ("bytes", json!(used.bytes))];
            outcome = rows.row(&fields);
        }
    })?;
    outcome
}

type Field = (&'static str, Value);

/// Destination of the rows: standard output, as text or as JSON.
struct Rows {
    as_json: bool,
    sections: u32,
    count: u64,
}

impl Rows {
    fn begin(as_json: bool, image: &str) -> Result<Rows, Failure> {
        if as_json {
            output::line(&format!("{{\n  \"schema\": \"imbrex.drive-dump/1\",\n  \"image\": {},", json!(image)));
        }
        Ok(Rows { as_json, sections: 0, count: 0 })
    }

    fn section(&mut self, name: &str, fill: impl FnOnce(&mut Rows) -> Result<(), Failure>) -> Result<(), Failure> {
        if self.as_json {
            let comma = if self.sections > 0 { ",\n" } else { "" };
            output::part(&format!("{comma}  \"{name}\": ["));
        } else {
            output::line(&format!("{}{name}", if self.sections > 0 { "\n" } else { "" }));
        }
        (self.sections, self.count) = (self.sections + 1, 0);
        fill(self)?;
        if self.as_json {
            output::part(if self.count > 0 { "\n  ]" } else { "]" });
        } else if self.count == 0 {
            output::line("  none");
        }
        Ok(())
    }

    fn row(&mut self, fields: &[Field]) -> Result<(), Failure> {
        self.count += 1;
        if self.as_json {
            let words: Vec<_> = fields.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
            let comma = if self.count > 1 { "," } else { "" };
            output::part(&format!("{comma}\n    {{ {} }}", words.join(", ")));
            return output::check();
        }
        let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
        let words: Vec<_> = fields.iter().map(|(key, value)| format!("{key} {}", word(value))).collect();
        output::line(&format!("  {}", words.join("  ")));
        output::check()
    }

    fn end(&mut self) -> Result<(), Failure> {
        if self.as_json {
            output::line("\n}");
        }
        Ok(())
    }
}

/// Returns the number of destroyed sectors in `extent`.
fn destroyed(store: &mut Store<FileMedium>, extent: Extent) -> Result<u64, Failure> {
    let mut sectors = 0;
    store.for_each_damage(extent, |run| sectors += run.sectors.0)?;
    Ok(sectors)
}

/// Prints the zones of the layer as rows, or else the bands of the drive's format. Prints nothing if the drive has
/// neither.
fn bands(drive: &Drive, store: &mut Store<FileMedium>, rows: &mut Rows) -> Result<(), Failure> {
    if let Some(zones) = drive.layer.zones() {
        for index in 0..zones.len() {
            let zone = zones.zone(index).map_err(Failure::failed)?;
            let extent = zones.places().extent(index as usize);
            rows.row(&[
                ("zone", json!(index)),
                ("lba", json!(zone.start.0)),
                ("pba", json!(extent.start.0)),
                ("sectors", json!(zone.sectors.0)),
                ("condition", json!(zone.condition.name())),
                ("pointer_sectors", json!(zone.pointer.0)),
                ("destroyed_sectors", json!(destroyed(store, extent)?)),
            ])?;
        }
        return Ok(());
    }
    let Some(tracks) = drive.disk.recording.band_tracks() else { return Ok(()) };
    let bands = Regions::carve(&drive.disk, RegionSize::Tracks(tracks));
    for index in 0..bands.len() {
        let extent = bands.extent(index);
        rows.row(&[
            ("band", json!(index)),
            ("pba", json!(extent.start.0)),
            ("sectors", json!(extent.sectors.0)),
            ("destroyed_sectors", json!(destroyed(store, extent)?)),
        ])?;
    }
    Ok(())
}

fn fields_of(run: &Piece) -> [Field; 4] {
    let medium = match run.at {
        Some((Medium::Disk, _)) => "disk",
        Some((Medium::Flash, _)) => "flash",
        None => "nowhere",
    };
    [
        ("lba", json!(run.lba.0)),
        ("sectors", json!(run.sectors.0)),
        ("medium", json!(medium)),
        ("pba", json!(run.at.map(|(_, pba)| pba.0))),
    ]
}

/// Returns whether `next` follows `run` directly, in LBAs and on the medium.
fn continues(run: &Piece, next: &Piece) -> bool {
    let place = match (run.at, next.at) {
        (Some((medium, pba)), Some((next_medium, next_pba))) => medium == next_medium && pba + run.sectors == next_pba,
        (None, None) => true,
        _ => false,
    };
    place && run.lba + run.sectors == next.lba
}

/// Calls `each` with the runs of the map, adjacent runs merged.
fn for_each_run(layer: &dyn Layer, mut each: impl FnMut(Piece) -> Result<(), Failure>) -> Result<(), Failure> {
    let (mut pieces, mut start, mut open): (Vec<Piece>, u64, Option<Piece>) = (Vec::new(), 0, None);
    while start < layer.capacity().0 {
        let sectors = WINDOW_SECTORS.min(layer.capacity().0 - start);
        pieces.clear();
        layer.lookup(Lba(start), Sectors(sectors), &mut pieces);
        for piece in &pieces {
            match &mut open {
                Some(run) if continues(run, piece) => run.sectors += piece.sectors,
                _ => open.replace(*piece).map_or(Ok(()), &mut each)?,
            }
        }
        start += sectors;
    }
    open.map_or(Ok(()), each)
}

/// Prints the runs of the map that lie elsewhere than on a new drive.
fn moved(drive: &Drive, store: &Store<FileMedium>, rows: &mut Rows) -> Result<(), Failure> {
    let fresh = store.header().drive()?;
    let mut before = Vec::new();
    for_each_run(drive.layer.as_ref(), |run| {
        before.clear();
        fresh.layer.lookup(run.lba, run.sectors, &mut before);
        let mut open: Option<Piece> = None;
        for piece in &before {
            let skipped = piece.lba - run.lba;
            let at = run.at.map(|(medium, pba)| (medium, pba + skipped));
            if at == piece.at {
                continue;
            }
            let part = Piece { at, ..*piece };
            match &mut open {
                Some(last) if continues(last, &part) => last.sectors += part.sectors,
                _ => open.replace(part).map_or(Ok(()), |whole| rows.row(&fields_of(&whole)))?,
            }
        }
        open.map_or(Ok(()), |whole| rows.row(&fields_of(&whole)))
    })
}

/// Prints the journal records as rows, in order.
fn journal(drive: &Drive, store: &mut Store<FileMedium>, place: &str, rows: &mut Rows) -> Result<(), Failure> {
    let journal_bytes = store.header().journal_bytes;
    let (mut number, mut outcome) = (0u64, Ok(()));
    Journal::replay(store.space_mut(), journal_bytes, place, |note| {
        if outcome.is_ok() {
            outcome = rows.row(&record(drive, number, note));
        }
        number += 1;
        Ok(())
    })?;
    outcome
}

/// Returns a journal record as a row with named fields. A record that the layer does not know has numbered fields.
fn record(drive: &Drive, number: u64, note: &Note) -> Vec<Field> {
    let mut row = vec![("record", json!(number)), ("tag", json!(note.tag))];
    if let Some((what, names)) = Known::words(note) {
        row.push(("what", json!(what)));
        row.extend(names.into_iter().zip(note.fields).map(|(name, value)| (name, json!(value))));
        return row;
    }
    if let Some((what, names)) = Lost::words(note) {
        row.push(("what", json!(what)));
        row.extend(names.into_iter().zip(note.fields).map(|(name, value)| (name, json!(value))));
        return row;
    }
    let Some(info) = registry::named(drive.layer.name()).and_then(|layer| layer.record(note.tag)) else {
        row.push(("fields", json!(note.fields)));
        return row;
    };
    row.push(("what", json!(info.what)));
    let zone = drive.layer.zones().and_then(|_| ZoneRecord::decode(note).ok());
    row.extend(info.fields.iter().zip(note.fields).map(|(&name, value)| match (name, zone) {
        ("state", Some(ZoneRecord::Zone { state, .. })) => (name, json!(state.words())),
        _ => (name, json!(value)),
    }));
    row
}

/// Prints the runs of destroyed physical sectors as rows.
fn damage(store: &mut Store<FileMedium>, rows: &mut Rows) -> Result<(), Failure> {
    let all = Extent::between(Pba(0), Pba(store.header().disk_sectors));
    let mut outcome = Ok(());
    store.for_each_damage(all, |run| {
        if outcome.is_ok() {
            outcome = rows.row(&[("pba", json!(run.start.0)), ("sectors", json!(run.sectors.0))]);
        }
    })?;
    outcome
}
