//! `zoned`: the identity mapping within zones, for a host-managed drive. Zones are equal runs of sectors, separated by
//! the guards that the recording requires. LBAs run through the zones in order. The first zones may be conventional.
//!
//! The host must write a zone at its write pointer, from its start to its end. [`crate::zones`] keeps the write
//! pointers and says which commands break this rule; a server of the host (`device::zoned`) asks it first. Commands
//! that reach this layer unchecked, such as those of a simulated host, are executed as they are, even if they destroy
//! other sectors.
//!
//! The write pointers are recorded at a flush and with each write that has FUA. A server of a drive without a volatile
//! cache gives every write FUA.
//!
//! Does not model: zone domains, zones of several sizes. A TRIM is accepted and ignored; a host resets a zone instead.
//!
//! Invariants:
//! 1. LBA n lies in zone n / zone size, at sector n mod zone size of that zone.
//! 2. Write pointers and conditions agree, as the header of [`crate::zones`] describes.

use imbrex_disk::{Command, Disk, Extent, Lba, Operation, Sectors};

use crate::context::Context;
use crate::info::LayerInfo;
use crate::layer::{Layer, MapMemory, Piece};
use crate::parameters::{ConfigError, ParameterInfo, ParameterKind};
use crate::plan::note::{Note, ReplayError};
use crate::plan::{Cause, GroupKind, Medium, Plan};
use crate::region::{RegionSize, Regions, check_count};
use crate::violation::Violation;
use crate::zones::Zones;

/// Description of the layer `zoned` for the registry: an identity mapping within zones, which the host writes at their
/// write pointers.
pub const INFO: LayerInfo = LayerInfo {
    name: "zoned",
    summary: "identity mapping within zones: the host writes each at its pointer",
    recordings: &["shingled", "block-interference", "conventional"],
    host_managed: true,
    mapping_unit: "none",
    source: "Singh 2014 §2.2",
    parameters: &[
        ParameterInfo {
            key: "zone_size",
            kind: ParameterKind::Bytes,
            default: "256MiB",
            help: "size of a zone, its guard not counted; rounded down to whole sectors",
        },
        ParameterInfo {
            key: "conventional_zones",
            kind: ParameterKind::Count,
            default: "0",
            help: "how many zones, from the first, have no write pointer; writes there must destroy nothing",
        },
        ParameterInfo {
            key: "open_zones",
            kind: ParameterKind::Count,
            default: "0",
            help: "how many zones may be open at a time; 0: any number",
        },
        ParameterInfo {
            key: "active_zones",
            kind: ParameterKind::Count,
            default: "0",
            help: "how many zones may be open or closed at a time; 0: any number",
        },
    ],
    records: &[crate::zones::ZoneRecord::INFO],
    toys: &["zone_size=20000", "zone_size=8192,open_zones=2,active_zones=4", "zone_size=10000,conventional_zones=3"],
    build,
};

/// The `zoned` layer.
struct Zoned {
    zones: Zones,
}

fn build(context: &Context) -> Result<Box<dyn Layer>, ConfigError> {
    let parameters = &context.parameters;
    let sectors = Sectors(parameters.bytes("zone_size") / context.disk.sector_bytes as u64);
    check_count(&context.disk, "zone_size", sectors)?;
    let places = places(&context.disk, sectors);
    let too_many = |key: &str| ConfigError(format!("{key}={}: expected less than 2³²", parameters.count(key)));
    let count = |key| u32::try_from(parameters.count(key)).map_err(|_| too_many(key));
    let (conventional, open, active) = (count("conventional_zones")?, count("open_zones")?, count("active_zones")?);
    if places.len() < 2 || places.len() as u64 > u64::from(u32::MAX) || conventional as usize >= places.len() {
        let bytes = parameters.bytes("zone_size");
        let reason = format!(
            "zone_size={bytes}, conventional_zones={conventional}: {} zones fit on a disk of {} sectors; expected two or \
             more, not all of them conventional",
            places.len(),
            context.disk.geometry.sectors().0
        );
        return Err(ConfigError(reason));
    }
    if active > 0 && open > active {
        return Err(ConfigError(format!("open_zones={open}: expected no more than active_zones={active}")));
    }
    for extent in (0..conventional as usize).map(|index| places.extent(index)) {
        if let Some(lost) = harm(&context.disk, extent) {
            let reason = format!(
                "conventional_zones={conventional}: a write in the zone at sector {} destroys sector {}; expected zones on \
                 tracks that do not overlap",
                extent.start.0, lost.start.0
            );
            return Err(ConfigError(reason));
        }
    }
    Ok(Box::new(Zoned { zones: Zones::new(places, conventional, open, active) }))
}

/// Returns zones of `sectors` each. Omits zones whose writing would destroy sectors of the same zone. This happens
/// where two strokes meet (stretches of tracks that the arm passes in one direction).
fn places(disk: &Disk, sectors: Sectors) -> Regions {
    Regions::carve(disk, RegionSize::Sectors(sectors)).whole(disk)
}

/// Returns the first extent that a write of some track within `extent` destroys, or `None` if such writes destroy
/// nothing.
fn harm(disk: &Disk, extent: Extent) -> Option<Extent> {
    let (mut destroyed, mut next) = (Vec::new(), extent.start);
    while next < extent.end() && destroyed.is_empty() {
        let end = disk.geometry.track_of(next).end().min(extent.end());
        disk.recording.destroys(&disk.geometry, Extent::between(next, end), &mut destroyed);
        next = end;
    }
    destroyed.first().copied()
}

impl Zoned {
    /// Calls `visit` with the parts of a run that lie in one zone each.
    fn split(&self, lba: Lba, sectors: Sectors, mut visit: impl FnMut(Lba, Sectors)) {
        self.zones.places().split(lba, sectors, |_, lba, sectors| visit(lba, sectors));
    }
}

impl Layer for Zoned {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn capacity(&self) -> Sectors {
        self.zones.capacity()
    }

    fn plan(&mut self, commands: &[Command], plan: &mut Plan) {
        plan.open(GroupKind::Host);
        for command in commands {
            let sectors = Sectors(command.sectors as u64);
            match command.operation {
                Operation::Read => self.split(command.lba, sectors, |lba, sectors| {
                    plan.read(Cause::Host, self.zones.native(lba), lba, sectors);
                }),
                Operation::Write => {
                    self.split(command.lba, sectors, |lba, sectors| {
                        plan.write(Cause::Host, self.zones.native(lba), lba, sectors);
                    });
                    self.zones.wrote(command.lba, sectors);
                    if command.fua {
                        self.zones.note_moved(plan);
                    }
                }
                Operation::Flush => self.zones.note_moved(plan),
                Operation::Trim => {}
            }
        }
    }

    fn lookup(&self, lba: Lba, sectors: Sectors, pieces: &mut Vec<Piece>) {
        self.split(lba, sectors, |lba, sectors| {
            pieces.push(Piece { lba, sectors, at: Some((Medium::Disk, self.zones.native(lba))) });
        });
    }

    fn is_host_managed(&self) -> bool {
        true
    }

    fn zones(&self) -> Option<&Zones> {
        Some(&self.zones)
    }

    fn zones_mut(&mut self) -> Option<&mut Zones> {
        Some(&mut self.zones)
    }

    fn keeps_trims(&self) -> bool {
        false
    }

    fn self_check(&self) -> Result<(), Violation> {
        self.zones.self_check(INFO.name)
    }

    fn memory(&self) -> MapMemory {
        // A controller needs a write pointer and a condition for each zone.
        MapMemory { formula_bytes: u64::from(self.zones.len()) * 8, measured_bytes: self.zones.measured_bytes() }
    }

    fn checkpoint(&self, notes: &mut Vec<Note>) {
        self.zones.checkpoint(notes);
    }

    fn replay(&mut self, note: &Note) -> Result<(), ReplayError> {
        self.zones.replay(note)
    }
}
