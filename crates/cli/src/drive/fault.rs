//! `imbrex drive fault`: injects faults into a drive in an image, lists them, and removes them.

use std::path::Path;

use imbrex_device::Store;
use imbrex_device::drive::medium_to_work;
use imbrex_device::faults::{self, FaultKind, Schedule};
use imbrex_device::media::file::{FileMedium, Mode};
use imbrex_device::store::Opened;
use imbrex_disk::{Lba, Sectors};
use imbrex_layer::Condition;
use serde_json::{Value, json};

use crate::args::{FaultWords, ZoneState};
use crate::error::ExitCode;
use crate::json;
use crate::output;
use imbrex::Failure;
use imbrex_units::names::suggestion;

/// Remedy for a command line that names no fault.
const REMEDY: &str = "unreadable, slow, zone, pointer, list or clear after the image, or --schedule FILE; \
                      `imbrex drive fault --help` has them all";

/// Injects, lists or removes faults, and prints the change; with `as_json` prints all faults that the drive then has.
pub(crate) fn run(
    image: &Path,
    words: Option<&FaultWords>,
    schedule: Option<&Path>,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    let asked = match (words, schedule) {
        (Some(FaultWords::List), None) => return list(image, as_json),
        (Some(FaultWords::Clear), None) => return clear(image, as_json),
        (Some(FaultWords::Unknown(words)), _) => {
            let named = words.first().map_or("", String::as_str);
            let meant = suggestion(named, ["unreadable", "slow", "zone", "pointer", "list", "clear"]);
            return Err(Failure::usage(format!("no fault is called '{named}'{meant}")).or_try(REMEDY));
        }
        (Some(words), None) => Asked::Words(kind_of(words)),
        (None, Some(path)) => Asked::File(read(path)?),
        (Some(_), Some(_)) => {
            return Err(
                Failure::usage("--schedule and a fault in words exclude each other").or_try("one after the other")
            );
        }
        (None, None) => {
            return Err(Failure::usage("no fault is given").or_try(REMEDY));
        }
    };
    let (mut drive, mut store) = open(image)?;
    let kinds = match &asked {
        Asked::Words(kind) => {
            let kinds = vec![*kind];
            faults::check_all(&kinds, &drive)
                .map_err(|(_, reason)| Failure::usage(format!("{}: {reason}", image.display())))?;
            kinds
        }
        Asked::File(schedule) => {
            schedule.check(&drive).map_err(Failure::failed)?;
            schedule.at_once().map_err(Failure::failed)?
        }
    };
    for kind in &kinds {
        kind.apply(&mut drive, &mut store)?;
        if !as_json {
            output::line(&format!("{}: {kind}", image.display()));
        }
    }
    store.seal()?;
    told(image, &(drive, store), as_json)
}

enum Asked {
    Words(FaultKind),
    File(Schedule),
}

/// Reads the fault schedule in the file at `path`.
pub(crate) fn read(path: &Path) -> Result<Schedule, Failure> {
    let place = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::failed(format!("cannot read the schedule {place}: {error}")))
        .map_err(|failure| failure.or_try("a file in TOML; docs/drive.md has an example"))?;
    Schedule::parse(&place, &text).map_err(Failure::failed)
}

fn kind_of(words: &FaultWords) -> FaultKind {
    match *words {
        FaultWords::Unreadable { lba, sectors } => FaultKind::Unreadable { lba: Lba(lba), sectors: Sectors(sectors) },
        FaultWords::Slow { lba, sectors, by } => FaultKind::Slow { lba: Lba(lba), sectors: Sectors(sectors), by },
        FaultWords::Zone { zone, state: ZoneState::ReadOnly } => {
            FaultKind::Zone { zone, condition: Condition::ReadOnly }
        }
        FaultWords::Zone { zone, state: ZoneState::Offline } => FaultKind::Zone { zone, condition: Condition::Offline },
        FaultWords::Pointer { zone, to } => FaultKind::Pointer { zone, to: Sectors(to) },
        FaultWords::List | FaultWords::Clear | FaultWords::Unknown(_) => unreachable!("they ask for no fault"),
    }
}

fn open(image: &Path) -> Result<Opened<FileMedium>, Failure> {
    let media = medium_to_work(image, true)?;
    Ok(Store::open(media, &image.display().to_string())?)
}

fn clear(image: &Path, as_json: bool) -> Result<ExitCode, Failure> {
    let (mut drive, mut store) = open(image)?;
    faults::clear(&mut drive, &mut store)?;
    store.seal()?;
    if !as_json {
        output::line(&format!("{}: all faults are cleared", image.display()));
    }
    told(image, &(drive, store), as_json)
}

fn list(image: &Path, as_json: bool) -> Result<ExitCode, Failure> {
    let media = FileMedium::open(image, Mode::Read, false)?;
    let opened = Store::open_to_look(media, &image.display().to_string())?;
    if !as_json {
        let lines = lines(&opened);
        for line in &lines {
            output::line(line);
        }
        if lines.is_empty() {
            output::line("no faults");
        }
    }
    told(image, &opened, as_json)
}

fn lines((drive, store): &Opened<FileMedium>) -> Vec<String> {
    let known = store.faults();
    let unreadable = known.unreadable().map(|(lba, sectors)| FaultKind::Unreadable { lba, sectors });
    let slow = known.slow().iter().map(|(lba, sectors, by)| FaultKind::Slow { lba, sectors, by });
    let zones = faults::failed_zones(drive).into_iter().map(|(zone, condition)| FaultKind::Zone { zone, condition });
    unreadable.chain(slow).chain(zones).map(|kind| kind.to_string()).collect()
}

fn told(image: &Path, (drive, store): &Opened<FileMedium>, as_json: bool) -> Result<ExitCode, Failure> {
    if as_json {
        let known = store.faults();
        let unreadable: Vec<Value> =
            known.unreadable().map(|(lba, sectors)| json!({ "lba": lba.0, "sectors": sectors.0 })).collect();
        let slow = known.slow().iter();
        let slow: Vec<Value> =
            slow.map(|(lba, sectors, by)| json!({ "lba": lba.0, "sectors": sectors.0, "by_ns": by.0 })).collect();
        let zones = faults::failed_zones(drive).into_iter();
        let zones: Vec<Value> =
            zones.map(|(zone, condition)| json!({ "zone": zone, "condition": condition.name() })).collect();
        let document = json!({
            "schema": "imbrex.drive-fault/1",
            "image": json::path(image),
            "unreadable": unreadable,
            "slow": slow,
            "zones": zones,
        });
        output::json(&document)?;
    }
    Ok(ExitCode::Done)
}
