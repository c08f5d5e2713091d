//! Replaced drives that are given again: zones of theirs that must be ignored.
//!
//! When a drive is replaced, each of its columns is copied to another drive, and nothing more is written to the
//! replaced drive. Headers of zones that are written from then on list the drive as removed. So its columns of groups
//! that still exist are valid, and are needed if the replacing drive is missing. Its columns of all other groups are
//! outdated.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::zone::Zone;

/// Returns the numbers of the drives that were replaced, according to the headers of zones.
pub(super) fn gone(zones: &[Zone]) -> BTreeSet<u8> {
    zones.iter().flat_map(|zone| zone.header.gone.iter().copied()).collect()
}

/// Removes the zones to be ignored from `zones`, and returns the replaced drives among those given. The value of a
/// drive is true if some of its zones are needed.
pub(super) fn leave_out(
    zones: &mut Vec<Zone>,
    gone: &BTreeSet<u8>,
    numbers: &BTreeMap<Uuid, u8>,
    made_with: usize,
) -> BTreeMap<Uuid, bool> {
    let given: BTreeSet<Uuid> = zones.iter().map(|zone| zone.uuid).collect();
    let is_gone = |uuid: &Uuid| numbers.get(uuid).is_some_and(|number| gone.contains(number));
    // If all drives that joined later are given, the replacing drive is among them.
    let mut later = numbers.iter().filter(|(uuid, number)| usize::from(**number) >= made_with && !is_gone(uuid));
    let are_all_there = later.all(|(uuid, _)| given.contains(uuid));
    let mut replaced: BTreeMap<Uuid, bool> = BTreeMap::new();
    let mut keep = Vec::with_capacity(zones.len());
    for zone in zones.iter() {
        let others = || zones.iter().filter(|other| other.uuid != zone.uuid && is_of_one_group(other, zone));
        let is_left_out = if is_gone(&zone.uuid) {
            are_all_there
                || others().next().is_none()
                || others().any(|other| other.header.column == zone.header.column)
        } else {
            false
        };
        if is_gone(&zone.uuid) {
            *replaced.entry(zone.uuid).or_default() |= !is_left_out;
        }
        keep.push(!is_left_out);
    }
    for uuid in given.iter().filter(|uuid| !is_gone(uuid) && is_copied(**uuid, zones, numbers)) {
        replaced.insert(*uuid, false);
        zones.iter().zip(&mut keep).filter(|(zone, _)| zone.uuid == *uuid).for_each(|(_, keep)| *keep = false);
    }
    let mut keep = keep.into_iter();
    zones.retain(|_| keep.next().expect("there is one for each"));
    replaced
}

fn is_of_one_group(one: &Zone, other: &Zone) -> bool {
    one.header.group == other.header.group && one.header.layout.sequence == other.header.layout.sequence
}

/// Returns whether a drive was replaced and no group was opened since. In that case every zone of the drive has a copy
/// on a drive that joined later, as the write pointers of the copies show.
fn is_copied(uuid: Uuid, zones: &[Zone], numbers: &BTreeMap<Uuid, u8>) -> bool {
    let is_copy = |own: &Zone, other: &Zone| {
        is_of_one_group(own, other)
            && own.header.column == other.header.column
            && numbers.get(&own.uuid) < numbers.get(&other.uuid)
            && other.has_pointer
            && other.written >= own.written
    };
    let mut own = zones.iter().filter(|zone| zone.uuid == uuid);
    own.all(|own| zones.iter().any(|other| is_copy(own, other)))
}
