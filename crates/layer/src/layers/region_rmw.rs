//! `region-rmw`: shingled regions, rewritten in place (Cassuto 2010 §II.B). Every logical sector has a fixed place in a
//! region. A write reads its region from the first modified sector to the end (`rmw=tail`) or all of it (`rmw=whole`),
//! modifies the data in memory and writes them back.
//!
//! With `safety=power` the new content goes to a spare region first ([`crate::region::rewrite`]). `safety=paper` keeps
//! to the paper's steps, which lose data in a power cut.
//!
//! Does not model: angular locality (§II.A says why it is not worth it), TRIM (a trimmed sector keeps its old contents
//! in its fixed place).
//!
//! Records: #1 lba sectors pba: the spare holds this run, whose place begins at that PBA. #2: the run is rewritten in
//! its place.
//!
//! Invariants:
//! 1. LBA n lies in region n ÷ region size, at the remainder.
//! 2. No rewrite is open between plans.

use imbrex_disk::{Command, Lba, Operation, Pba, Sectors};

use crate::context::Context;
use crate::info::LayerInfo;
use crate::journal_records;
use crate::layer::{Layer, MapMemory, Piece};
use crate::parameters::{ConfigError, ParameterInfo, ParameterKind};
use crate::plan::note::{Note, ReplayError};
use crate::plan::{Cause, GroupKind, Medium, Plan};
use crate::region::Regions;
use crate::region::rewrite::{Rewrite, Rewriter};
use crate::violation::Violation;

/// Description of the layer `region-rmw` for the registry: shingled regions in which a write rewrites the rest of its
/// region in place.
pub const INFO: LayerInfo = LayerInfo {
    name: "region-rmw",
    summary: "static mapping; a write rewrites the rest of its region in place",
    recordings: &["shingled", "block-interference", "conventional"],
    host_managed: false,
    mapping_unit: "none",
    source: "Cassuto 2010 §II.B",
    parameters: &[
        crate::region::REGION_SIZE,
        crate::region::REGION_TRACKS,
        ParameterInfo {
            key: "rmw",
            kind: ParameterKind::Choice(&["tail", "whole"]),
            default: "tail",
            help: "range that a write reads and rewrites: from the first modified sector on, or the whole region",
        },
        crate::region::rewrite::SAFETY,
    ],
    records: &[Record::INFO],
    toys: &["region_size=16k", "region_size=9k,rmw=whole", "region_tracks=2"],
    build,
};

journal_records! {
    /// The journal of a rewrite.
    enum Record of "region-rmw" {
        1 => Begin { lba: Lba, sectors: Sectors, pba: Pba } "the spare holds this run",
        2 => End {} "the run is in its place again",
    }
}

fn begin(target: Rewrite) -> Note {
    Record::Begin { lba: target.lba, sectors: target.sectors, pba: target.home }.encode()
}

/// The `region-rmw` layer.
struct RegionRmw {
    regions: Regions,
    rewriter: Rewriter,
    whole: bool,
}

fn build(context: &Context) -> Result<Box<dyn Layer>, ConfigError> {
    let (mut regions, mut spare) = (Regions::carve_for(context)?, None);
    if context.parameters.choice("safety") == "power" {
        (spare, regions) = regions.take_spare(&context.disk)?;
    }
    if regions.is_empty() {
        return Err(ConfigError("no region is left beside the spare: make region_size smaller".into()));
    }
    let whole = context.parameters.choice("rmw") == "whole";
    Ok(Box::new(RegionRmw { regions, rewriter: Rewriter::new(spare, begin), whole }))
}

impl RegionRmw {
    /// Plans a write of `sectors` from `lba` on, all in `region`: reads and rewrites the region's tail, or all of it.
    fn write_in_region(&self, region: usize, lba: Lba, sectors: Sectors, plan: &mut Plan) {
        let extent = self.regions.extent(region);
        let first = self.regions.first_lba(region);
        let end = first + extent.sectors;
        let from = if self.whole { first } else { lba };
        let target = Rewrite { lba: from, sectors: end - from, home: extent.start + (from - first) };
        let is_covered = from == lba && lba + sectors == end;
        if !is_covered {
            plan.read(Cause::Cleaning, target.home, target.lba, target.sectors);
        }
        self.rewriter.rewrite(plan, target, lba, sectors, Record::End {}.encode());
    }
}

impl Layer for RegionRmw {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn is_power_safe(&self) -> bool {
        self.rewriter.has_spare()
    }

    fn capacity(&self) -> Sectors {
        self.regions.capacity()
    }

    fn plan(&mut self, commands: &[Command], plan: &mut Plan) {
        plan.open(GroupKind::Host);
        for command in commands {
            let sectors = Sectors(command.sectors as u64);
            match command.operation {
                Operation::Read => self.regions.split(command.lba, sectors, |_, lba, sectors| {
                    plan.read(Cause::Host, self.regions.native(lba), lba, sectors);
                }),
                Operation::Write => self.regions.split(command.lba, sectors, |region, lba, sectors| {
                    self.write_in_region(region, lba, sectors, plan);
                }),
                Operation::Flush => plan.barrier(),
                Operation::Trim => {}
            }
        }
    }

    fn lookup(&self, lba: Lba, sectors: Sectors, pieces: &mut Vec<Piece>) {
        self.regions.split(lba, sectors, |_, lba, sectors| {
            pieces.push(Piece { lba, sectors, at: Some((Medium::Disk, self.regions.native(lba))) });
        });
    }

    fn keeps_trims(&self) -> bool {
        false
    }

    fn self_check(&self) -> Result<(), Violation> {
        match self.rewriter.open() {
            Some(target) => Err(Violation { layer: INFO.name, invariant: 2, detail: format!("open: {target:?}") }),
            None => Ok(()),
        }
    }

    fn memory(&self) -> MapMemory {
        MapMemory { formula_bytes: 0, measured_bytes: self.regions.measured_bytes() }
    }

    fn checkpoint(&self, notes: &mut Vec<Note>) {
        notes.extend(self.rewriter.open_note());
    }

    fn replay(&mut self, note: &Note) -> Result<(), ReplayError> {
        match Record::decode(note)? {
            Record::Begin { lba, sectors, pba: home } => {
                let target = Rewrite { lba, sectors, home };
                self.rewriter.replay_begin(target, self.regions.capacity()).map_err(|reason| note.refuse(reason))
            }
            Record::End {} => {
                self.rewriter.ended();
                Ok(())
            }
        }
    }

    fn repair(&mut self, plan: &mut Plan) {
        self.rewriter.repair(plan, |_| Record::End {}.encode());
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the paper's steps, and the safe steps around them. Method: golden plans on the toy with an interference of
    //! six blocks: 32 regions of 32 sectors at multiples of 37; the spare is the first region at the middle diameter,
    //! at 666.

    use super::*;
    use crate::plan::record;
    use crate::registry;
    use crate::verify::toy;

    fn layer(given: &[(&str, &str)]) -> Box<dyn Layer> {
        let disk = toy::disks("block-interference").next().expect("there is one").disk;
        let given: Vec<_> = given.iter().map(|&(key, value)| (key.to_string(), value.to_string())).collect();
        registry::build(INFO.name, &disk, &given).expect("it builds")
    }

    fn assert_plan(layer: &mut dyn Layer, command: Command, golden: &str) {
        let mut plan = Plan::new();
        layer.plan(&[command], &mut plan);
        let lines: Vec<_> = golden.lines().map(str::trim).collect();
        let text = format!("{plan:?}");
        assert_eq!(text.lines().map(str::trim).collect::<Vec<_>>(), lines, "{command:?}:\n{plan:?}");
    }

    #[test]
    fn records_come_back_as_they_were() {
        record::testing::assert_round_trips(Record::INFO, |note| Record::decode(note).map(Record::encode));
    }

    #[test]
    fn a_write_rewrites_the_tail_of_its_region_after_saving_it() {
        let mut layer = layer(&[("region_size", "16k")]);
        assert_eq!(layer.capacity(), Sectors(31 * 32));
        assert_plan(
            layer.as_mut(),
            Command::write(36, 2),
            "group Host
             read cleaning pba 41+28 lba 36
             barrier
             write backup pba 666+28 lba 36
             barrier
             note #1 36 28 41 0
             barrier
             write host pba 41+2 lba 36
             write cleaning pba 43+26 lba 38
             barrier
             note #2 0 0 0 0",
        );
    }

    #[test]
    fn whole_and_on_paper_it_reads_modifies_and_writes_its_region() {
        let mut layer = layer(&[("region_size", "16k"), ("rmw", "whole"), ("safety", "paper")]);
        assert_eq!(layer.capacity(), Sectors(32 * 32));
        assert_plan(
            layer.as_mut(),
            Command::write(36, 2),
            "group Host
             read cleaning pba 37+32 lba 32
             write cleaning pba 37+4 lba 32
             write host pba 41+2 lba 36
             write cleaning pba 43+26 lba 38
             barrier
             note #2 0 0 0 0",
        );
        assert_plan(
            layer.as_mut(),
            Command::write(0, 32),
            "group Host
             write host pba 0+32 lba 0
             barrier
             note #2 0 0 0 0",
        );
    }

    #[test]
    fn requests_are_split_where_regions_meet() {
        let mut layer = layer(&[("region_size", "16k"), ("safety", "paper")]);
        assert_plan(
            layer.as_mut(),
            Command::read(30, 4),
            "group Host
             read host pba 30+2 lba 30
             read host pba 37+2 lba 32",
        );
    }
}
