//! Golden plans on toy sections, worked out by hand; random runs and power cuts against a naive map on a naive medium;
//! the paper's sizes; the costs of the destage policies.

mod golden;
mod medium;
mod paper;
mod random;

use super::{Direct, Policy, RingStarts, SBlocks, Shape};
use crate::layer::Layer;
use crate::plan::Plan;
use imbrex_disk::{Command, Pba};

/// Two sections of three S-blocks of four sectors, with two spare S-blocks and a cache of six sectors. A write destroys
/// the sector after it; the guard Λ is 1 + 4 sectors. Section 0 has its S-blocks in a ring of 25 sectors from PBA 0,
/// and its cache in a ring of 11 from PBA 26.
pub(super) const TOY: Shape = Shape {
    sections: 2,
    sblock_sectors: 4,
    native_sblocks: 3,
    spare_sblocks: 2,
    cache_sectors: 6,
    guard_sectors: 5,
    interference_sectors: 1,
};

/// Returns a layer of `shape` with the default policy.
pub(super) fn layer(shape: Shape, direct: Direct) -> SBlocks {
    built(shape, Policy::ClosestToTail, direct, 0)
}

/// Returns a layer whose sections follow each other from PBA 0 on.
pub(super) fn built(shape: Shape, policy: Policy, direct: Direct, extra_destages: u64) -> SBlocks {
    let guards = shape.guard_sectors + shape.interference_sectors;
    let starts = |section| {
        let start = section * shape.physical_sectors();
        RingStarts { sblocks: Pba(start), cache: Pba(start + shape.sblock_payload() + guards) }
    };
    let starts: Vec<_> = (0..shape.sections).map(starts).collect();
    SBlocks::new(shape, &starts, policy, direct, extra_destages)
}

/// Returns a plan for one command, and checks the invariants after it.
pub(super) fn planned(layer: &mut SBlocks, command: Command) -> Plan {
    let mut plan = Plan::new();
    layer.plan(&[command], &mut plan);
    layer.self_check().expect("invariants hold");
    plan
}

/// Returns a plan for one command without checking the invariants, where the check would take too long.
pub(super) fn planned_unchecked(layer: &mut SBlocks, command: Command) -> Plan {
    let mut plan = Plan::new();
    layer.plan(&[command], &mut plan);
    plan
}
