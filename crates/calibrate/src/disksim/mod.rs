//! Converts DiskSim's descriptions of drives (`.parv`, `.diskspecs`, `.model`, `.seek`) to profiles.
//!
//! The parameters are defined in the DiskSim 4.0 reference manual (Bucy, Schindler, Schlosser, Ganger 2008,
//! CMU-PDL-08-101): §3.4.5 the controller, appendix B the layout and the mechanics. Of the layout models, only the
//! first (`g1`) is supported; all drives of the validation set use it.
//!
//! Invariants:
//! 1. No parameter is dropped silently: each one that is not used is in the notes, with the reason.
//! 2. The resulting text is a valid profile: it has been parsed and built.

mod bus;
mod controller;
mod fields;
mod layout;
mod mechanics;
mod syntax;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use imbrex_disk::Profile;
use imbrex_disk::geometry::{GeometryConfig, LayoutName};
use imbrex_disk::mechanics::MechanicsConfig;
use imbrex_disk::profile::Host;
use serde::Serialize;

use self::fields::Fields;
use self::syntax::{Block, Item, Read};

/// The reason why a DiskSim description of a drive was refused, with its place.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct ImportError {
    /// Place of the error in the DiskSim description: a file, or `FILE, line NUMBER`.
    pub place: String,
    /// Text that states the error and, where there is one, the expected form.
    pub reason: String,
}

impl ImportError {
    fn new(place: &str, reason: String) -> ImportError {
        ImportError { place: place.into(), reason }
    }
}

/// A drive that was converted from a DiskSim description to a profile.
#[derive(Clone, Debug)]
pub struct Imported {
    /// Text of the profile in TOML, with a comment that names the DiskSim file.
    pub toml: String,
    /// The profile, parsed from `toml` and checked.
    pub profile: Profile,
    /// Notes for people, one line each, about parameters of the description that are not used and decisions that were
    /// made. Empty if there are none.
    pub notes: Vec<String>,
}

/// The profile, in the form in which it is written.
#[derive(Serialize)]
struct Written<'a> {
    name: &'a str,
    summary: &'a str,
    default_layer: &'a str,
    geometry: GeometryConfig,
    mechanics: MechanicsConfig,
    recording: Conventional,
    host: Host,
}

#[derive(Serialize)]
struct Conventional {
    kind: &'static str,
}

/// Converts the drive that the DiskSim file `file` describes to a profile. `read` returns the text of a file by its
/// name, or the reason why it cannot; it is called for `file` and for the files that these name. If several disks are
/// described, the first is taken.
///
/// # Errors
///
/// A file cannot be read, its syntax is wrong, it describes no disk, or the disk cannot be expressed as a profile.
pub fn import(file: &str, read: Read<'_>) -> Result<Imported, ImportError> {
    let items = syntax::parse(file, read)?;
    let mut notes = Vec::new();
    let disk = disk_of(&items).ok_or_else(|| {
        ImportError::new(
            file,
            "describes no disk: expected a block of kind disksim_disk, or 'source FILE.diskspecs'".into(),
        )
    })?;
    let bus = bus::of(&items, &disk.name, &mut notes)?;
    if bus.is_none() {
        notes.push(format!(
            "{file} describes no bus: transfers take what the drive's own 'Bulk sector transfer time' says; \
             import the .parv to have the bus"
        ));
    }
    let fields = Fields::new(disk);
    let model = fields.block("Model")?.ok_or_else(|| fields.missing("Model"))?;
    let controller = controller::read(&fields, bus.unwrap_or_default(), &mut notes)?;
    let (geometry, mechanics) = read_model(model, read, &mut notes)?;
    notes.extend(unread(&fields));
    note_other_blocks(&items, &mut notes);
    let host = Host { overhead_ns: 0, controller: Some(controller), ..Host::default() };
    let summary = format!("{}, as extracted from the drive and described for DiskSim", disk.name);
    let written = Written {
        name: &disk.name,
        summary: &summary,
        default_layer: "conventional",
        geometry,
        mechanics,
        recording: Conventional { kind: "conventional" },
        host,
    };
    let toml = text(file, &written);
    let profile = Profile::parse(&format!("{}.toml", disk.name), &toml, &[])
        .map_err(|error| ImportError::new(file, format!("describes no drive that can be: {error}")))?;
    compare_count(model, &profile, &mut notes)?;
    Ok(Imported { toml, profile, notes })
}

fn text(file: &str, written: &Written<'_>) -> String {
    let body = toml::to_string(written).expect("a profile is tables of numbers and words");
    format!(
        "# Imported by `imbrex drive import` from {file}.\n# What the values mean: DiskSim 4.0 reference manual, \
         CMU-PDL-08-101.\n{body}"
    )
}

/// Adds a note that names the kinds of blocks that describe neither the drive nor its bus.
fn note_other_blocks(items: &[Item], notes: &mut Vec<String>) {
    const OF_THE_DRIVE: [&str; 4] = ["disksim_disk", "disksim_bus", "disksim_ctlr", "dm_disk"];
    let kinds: BTreeSet<&str> = items
        .iter()
        .filter_map(|item| match item {
            Item::Block(block) if !OF_THE_DRIVE.contains(&block.kind.as_str()) => Some(block.kind.as_str()),
            _ => None,
        })
        .collect();
    if !kinds.is_empty() {
        let kinds = Vec::from_iter(kinds).join(", ");
        notes.push(format!(
            "blocks of these kinds are not used, since they describe DiskSim's host and its output: {kinds}"
        ));
    }
}

fn disk_of(items: &[Item]) -> Option<&Block> {
    items.iter().find_map(|item| match item {
        Item::Block(block) if block.kind == "disksim_disk" => Some(block),
        _ => None,
    })
}

fn read_model(
    model: &Block,
    read: Read<'_>,
    notes: &mut Vec<String>,
) -> Result<(GeometryConfig, MechanicsConfig), ImportError> {
    let fields = Fields::new(model);
    let surfaces = fields.needed_whole("Number of data surfaces")?;
    let cylinders = fields.needed_whole("Number of cylinders")?;
    let layout = fields.block("Layout Model")?.ok_or_else(|| fields.missing("Layout Model"))?;
    let mechanical = fields.block("Mechanical Model")?.ok_or_else(|| fields.missing("Mechanical Model"))?;
    if layout.kind != "dm_layout_g1" {
        let reason = format!("layout model {} is not read: expected dm_layout_g1", layout.kind);
        return Err(ImportError { place: layout.place.clone(), reason });
    }
    let (Ok(surfaces), Ok(cylinders)) = (u8::try_from(surfaces), u32::try_from(cylinders)) else {
        let reason = format!("{surfaces} surfaces of {cylinders} cylinders are beyond any drive");
        return Err(ImportError { place: model.place.clone(), reason });
    };
    let mechanical = Fields::new(mechanical);
    let mechanics = mechanics::read(&mechanical, cylinders, read, notes)?;
    let layout = Fields::new(layout);
    let measured = layout::read(&layout, mechanics.rotation_ns, notes)?;
    // Compared with the geometry at the end.
    fields.parameter("Block count");
    note_other_seeks(&mechanical, notes);
    notes.extend(unread(&fields).into_iter().chain(unread(&layout)).chain(unread(&mechanical)));
    let plain = GeometryConfig::listed(surfaces, LayoutName::Cylinder, mechanics.rotation_ns, &[]);
    Ok((GeometryConfig { measured: Some(measured), ..plain }, mechanics.config))
}

/// Parameters of other kinds of seek or access time than the one that the block states.
const OTHER_SEEKS: [&str; 8] = [
    "Single cylinder seek time",
    "Average seek time",
    "Full strobe seek time",
    "Full seek curve",
    "First ten seek times",
    "HPL seek equation values",
    "Constant seek time",
    "Constant access time",
];

/// Adds a note for the parameters that belong to another kind of seek or access time than the stated one.
fn note_other_seeks(mechanical: &Fields<'_>, notes: &mut Vec<String>) {
    let rest = mechanical.rest();
    let others: Vec<String> = rest
        .iter()
        .map(|parameter| parameter.name.as_str())
        .filter(|name| OTHER_SEEKS.contains(name))
        .map(|name| format!("'{name}'"))
        .collect();
    for name in OTHER_SEEKS {
        mechanical.parameter(name);
    }
    if !others.is_empty() {
        let (list, are) = (others.join(", "), if others.len() == 1 { "is" } else { "are" });
        notes
            .push(format!("{list} {are} not used: 'Seek type' and its own parameters give the time of every distance"));
    }
}

/// Returns a note for each unknown parameter.
fn unread(fields: &Fields<'_>) -> Vec<String> {
    let note = |parameter: &&syntax::Parameter| format!("{}: '{}' is not known here", parameter.place, parameter.name);
    fields.rest().iter().map(note).collect()
}

fn compare_count(model: &Block, profile: &Profile, notes: &mut Vec<String>) -> Result<(), ImportError> {
    let stated = Fields::new(model).whole("Block count")?;
    let built = profile.disk().geometry.sectors().0;
    if let Some(stated) = stated.filter(|&stated| stated != built) {
        notes.push(format!(
            "'Block count' is {stated}, zones, spares and defects make {built} sectors: these are taken"
        ));
    }
    Ok(())
}
