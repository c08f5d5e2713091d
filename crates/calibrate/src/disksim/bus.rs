//! The path from a disk to its host in a `.parv`: the bus of the disk, and the controllers above it.
//!
//! A block takes the longest of the times that bus, controllers and disk need for it (reference manual §3.4).

use super::ImportError;
use super::controller::Bus;
use super::fields::Fields;
use super::syntax::{Block, Item};

/// Returns the bus of the disk of kind `disk`, if the description has one.
pub(super) fn of(items: &[Item], disk: &str) -> Result<Option<Bus>, ImportError> {
    let Some(topology) = items.iter().find_map(|item| match item {
        Item::Topology(words) => Some(words),
        _ => None,
    }) else {
        return Ok(None);
    };
    let Some(above) = above(topology, items, disk) else { return Ok(None) };
    let mut bus = Bus::default();
    let nearest = above.iter().rev().find(|(kind, _)| kind == "disksim_bus");
    if let Some(block) = nearest.and_then(|(_, name)| block_of(items, name)) {
        let fields = Fields::new(block);
        bus.read_ms = fields.number("Read block transfer time")?.unwrap_or(0.0);
        bus.write_ms = fields.number("Write block transfer time")?.unwrap_or(0.0);
    }
    for (_, name) in above.iter().filter(|(kind, _)| kind == "disksim_ctlr") {
        if let Some(block) = block_of(items, name) {
            let bulk_ms = Fields::new(block).number("Bulk sector transfer time")?.unwrap_or(0.0);
            bus.read_ms = bus.read_ms.max(bulk_ms);
            bus.write_ms = bus.write_ms.max(bulk_ms);
        }
    }
    Ok(Some(bus))
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
