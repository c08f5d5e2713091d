//! The path from a disk to its host in a `.parv`: the bus of the disk, and the controllers above it.
//!
//! A block takes the longest of the times that bus, controllers and disk need for it (reference manual §3.4).

use super::controller::Bus;
use super::fields::Fields;
use super::syntax::{Block, Item};
use super::{ImportError, unread};

/// Parameters of a bus that make no difference, and the reason.
const BUS_UNUSED: &[(&str, &str)] =
    &[("Arbitration type", "the drive shares its bus with no other"), ("Print stats", "it says what DiskSim prints")];

/// Parameters of a controller above the bus that make no difference, and the reason.
const CONTROLLER_UNUSED: &[(&str, &str)] = &[
    ("type", "every controller above the bus passes messages and data on at once"),
    ("Scale for delays", "every controller above the bus passes messages and data on at once"),
    ("Maximum queue length", "measured requests came one by one"),
    ("Print stats", "it says what DiskSim prints"),
];

/// The type of a bus that one component owns at a time.
const EXCLUSIVE: u64 = 1;

/// Returns the bus of the disk of kind `disk`, if the description has one. Adds notes on parameters that are not used.
pub(super) fn of(items: &[Item], disk: &str, notes: &mut Vec<String>) -> Result<Option<Bus>, ImportError> {
    let Some(topology) = items.iter().find_map(|item| match item {
        Item::Topology(words) => Some(words),
        _ => None,
    }) else {
        return Ok(None);
    };
    let Some(above) = above(topology, items, disk) else { return Ok(None) };
    let mut bus = Bus::default();
    let nearest = above.iter().rposition(|(kind, _)| kind == "disksim_bus");
    for (index, (kind, name)) in above.iter().enumerate() {
        if !["disksim_bus", "disksim_ctlr"].contains(&kind.as_str()) {
            continue;
        }
        let Some(block) = block_of(items, name) else {
            notes.push(format!("'{name}' of the topology is not described: it is taken to need no time"));
            continue;
        };
        let fields = Fields::new(block);
        match kind.as_str() {
            "disksim_bus" if nearest == Some(index) => read_bus(&fields, &mut bus)?,
            "disksim_bus" => read_upper_bus(&fields, &mut bus, notes)?,
            _ => read_controller(&fields, &mut bus)?,
        }
        let unused = if kind == "disksim_bus" { BUS_UNUSED } else { CONTROLLER_UNUSED };
        let mut unused_here = Vec::new();
        fields.note_unused(unused, &mut unused_here);
        notes.extend(unused_here.into_iter().chain(unread(&fields)).map(|note| format!("{}: {note}", block.name)));
    }
    Ok(Some(bus))
}

/// Reads the bus at the drive.
fn read_bus(fields: &Fields<'_>, bus: &mut Bus) -> Result<(), ImportError> {
    bus.arbitration_ns += arbitration_ns(fields)?;
    bus.read_ms = bus.read_ms.max(fields.number("Read block transfer time")?.unwrap_or(0.0));
    bus.write_ms = bus.write_ms.max(fields.number("Write block transfer time")?.unwrap_or(0.0));
    Ok(())
}

/// Reads a bus between controllers and the host, of which only the arbitration counts.
fn read_upper_bus(fields: &Fields<'_>, bus: &mut Bus, notes: &mut Vec<String>) -> Result<(), ImportError> {
    bus.arbitration_ns += arbitration_ns(fields)?;
    for name in ["Read block transfer time", "Write block transfer time"] {
        if fields.number(name)?.is_some_and(|ms| ms != 0.0) {
            notes.push(format!("'{name}' of a bus above a controller is not used: the bus at the drive counts"));
        }
    }
    Ok(())
}

/// Returns the time to win the bus; 0 for a bus that its components share.
fn arbitration_ns(fields: &Fields<'_>) -> Result<u64, ImportError> {
    let is_exclusive = fields.whole("type")?.unwrap_or(EXCLUSIVE) == EXCLUSIVE;
    let arbitration_ns = fields.ns("Arbitration time")?;
    Ok(if is_exclusive { arbitration_ns } else { 0 })
}

fn read_controller(fields: &Fields<'_>, bus: &mut Bus) -> Result<(), ImportError> {
    let bulk_ms = fields.number("Bulk sector transfer time")?.unwrap_or(0.0);
    bus.read_ms = bus.read_ms.max(bulk_ms);
    bus.write_ms = bus.write_ms.max(bulk_ms);
    Ok(())
}

/// Returns the kinds and names of the components above the disk, from the driver down.
fn above(topology: &[String], items: &[Item], disk: &str) -> Option<Vec<(String, String)>> {
    let mut path: Vec<(String, String)> = Vec::new();
    for (index, word) in topology.iter().enumerate() {
        match word.as_str() {
            "[" => {
                let head = topology.get(index.checked_sub(2)?..index)?;
                path.push((head[0].clone(), head[1].clone()));
            }
            "]" => {
                path.pop();
            }
            "disksim_disk" => {
                let name = topology.get(index + 1)?;
                if kind_of(items, name).is_none_or(|kind| kind == disk) {
                    return Some(path);
                }
            }
            _ => {}
        }
    }
    None
}

fn kind_of<'a>(items: &'a [Item], name: &str) -> Option<&'a str> {
    items.iter().find_map(|item| match item {
        Item::Instance { names, kind } if names.iter().any(|known| known == name) => Some(kind.as_str()),
        _ => None,
    })
}

fn block_of<'a>(items: &'a [Item], instance: &str) -> Option<&'a Block> {
    let kind = kind_of(items, instance)?;
    items.iter().find_map(|item| match item {
        Item::Block(block) if block.name == kind => Some(block),
        _ => None,
    })
}
