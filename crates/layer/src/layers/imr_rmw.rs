//! `imr-rmw`: sectors stay where they are. A write to a bottom track reads the sectors of both neighbours that it would
//! destroy, copies them to a backup region, writes the bottom track, and rewrites the neighbours (Hajkazemi 2019 §2.1).
//! Comparisons of interlaced layers use this layer as the baseline.
//!
//! Cost of a random write to a bottom track: t_seek + 5.5 t_rot, where the trip to the backup region and back counts as
//! two rotations. A write that follows another costs 6 t_rot. A write to a top track costs t_seek + 0.5 t_rot.
//!
//! Waiting writes to one track share one operation, unless `join=off`. The journal holds only the records of the backup
//! log, and with `skip_dead=on` also records of the live sectors.
//!
//! Does not model: several operations at once. The log holds one record, because there is one actuator.
//!
//! Invariants:
//! 1. LBA n lies at home. With `skip_dead=on`, a sector that holds no data lies nowhere.

use imbrex_disk::Lba;

use super::interlaced::backup::BackupLog;
use super::interlaced::driver::Interlaced;
use super::interlaced::home::{Home, Planner};
use super::interlaced::host::Host;
use super::interlaced::options::{BACKUP_REGIONS, MoveOptions, SAFETY};
use super::interlaced::record;
use super::interlaced::{Track, TrackRun, Translation};
use crate::context::Context;
use crate::info::LayerInfo;
use crate::layer::Layer;
use crate::parameters::{ConfigError, ParameterInfo, ParameterKind};

/// Description of the layer `imr-rmw` for the registry: on an interlaced disk, data stay in their places, and bottom
/// tracks are written by read-modify-write of their neighbours.
pub const INFO: LayerInfo = LayerInfo {
    name: "imr-rmw",
    summary: "interlaced disk: bottom tracks are written by read-modify-write of both neighbours",
    recordings: &["interlaced"],
    host_managed: false,
    mapping_unit: "none",
    source: "Hajkazemi 2019 §2.1",
    parameters: &[
        BACKUP_REGIONS,
        SAFETY,
        ParameterInfo {
            key: "skip_dead",
            kind: ParameterKind::Switch,
            default: "off",
            help: "do not rewrite neighbours that were never written or are trimmed; needs a map of live sectors",
        },
        ParameterInfo {
            key: "join",
            kind: ParameterKind::Switch,
            default: "on",
            help: "waiting writes to one track share one operation",
        },
    ],
    records: &[record::Record::INFO],
    toys: &["", "backup_regions=1", "skip_dead=on", "join=off"],
    build,
};

/// The map of `imr-rmw`: every sector is at home.
struct InPlace {
    joins_writes: bool,
}

fn build(context: &Context) -> Result<Box<dyn Layer>, ConfigError> {
    let (disk, parameters) = (&context.disk, &context.parameters);
    let mut planner = Planner::new(disk)?;
    let (tracks, surfaces) = (disk.geometry.radial_tracks(), disk.geometry.surfaces());
    let log = BackupLog::set_aside(&mut planner, tracks, surfaces, parameters.count("backup_regions"))?;
    let host = Host::new(planner.finish(), log, parameters.switch("skip_dead"));
    let map = InPlace { joins_writes: parameters.switch("join") };
    Ok(Box::new(Interlaced::new(host, map, MoveOptions::NONE)))
}

impl Translation for InPlace {
    type Move = ();

    fn name(&self) -> &'static str {
        INFO.name
    }

    #[inline]
    fn run_of(&self, home: &Home, lba: Lba) -> TrackRun {
        Home::track_run(&home.locate(home.pba(lba)), lba)
    }

    #[inline]
    fn run_at(&self, home: &Home, track: &Track, _sector: u32) -> Option<TrackRun> {
        home.lba(track.start).map(|lba| TrackRun::on(track, 0, track.sectors, lba))
    }

    fn joins_writes(&self) -> bool {
        self.joins_writes
    }

    fn moves(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the steps are those of Hajkazemi 2019 §2.1, at its cost. The toy has groups of six bottoms (PBAs 0–59),
    //! then six tops in serpentine order (PBAs 60–119). The track of PBA 10 lies between those of PBAs 110 and 100. The
    //! one backup region lies at 270–299; LBAs skip the region and the tops beside it (300–339).

    use imbrex_disk::{Command, Sectors};

    use crate::layers::interlaced::testing::{Clock, assert_cost, assert_plan, disk, layer, plan};

    #[test]
    fn a_bottom_write_backs_up_both_neighbours_and_rewrites_them() {
        let mut layer = layer("imr-rmw", &disk(64, 10, 1.0), "backup_regions=1");
        assert_eq!(layer.capacity(), Sectors(640 - 70));
        assert_plan(
            &plan(layer.as_mut(), &[Command::write(12, 2)]),
            "group Host
               read cleaning pba 112+2 lba 112
               read cleaning pba 102+2 lba 102
               write backup pba 270+2 lba 112
               write backup pba 272+2 lba 102
               barrier
               note #3 270 112 102 8589934594
               barrier
             phase Host
               write host pba 12+2 lba 12
               write cleaning pba 112+2 lba 112
               write cleaning pba 102+2 lba 102",
        );
    }

    #[test]
    fn a_stale_record_is_cleared_before_a_top_is_written_and_only_then() {
        let mut layer = layer("imr-rmw", &disk(64, 10, 1.0), "backup_regions=1");
        plan(layer.as_mut(), &[Command::write(12, 2)]);
        assert_plan(
            &plan(layer.as_mut(), &[Command::write(114, 2)]),
            "group Host
               write host pba 114+2 lba 114",
        );
        assert_plan(
            &plan(layer.as_mut(), &[Command::write(103, 2)]),
            "group Host
               barrier
               note #7 0 0 0 0
               barrier
               write host pba 103+2 lba 103",
        );
        assert_plan(
            &plan(layer.as_mut(), &[Command::write(113, 1)]),
            "group Host
               write host pba 113+1 lba 113",
        );
    }

    /// Checks that waiting writes to one top are served in a single pass of the head.
    #[test]
    fn waiting_writes_to_one_top_share_an_operation() {
        let mut layer = layer("imr-rmw", &disk(64, 10, 1.0), "backup_regions=1");
        let chosen = [Command::write(117, 1)];
        assert!(layer.joins(&chosen, &Command::write(112, 2)) && !layer.joins(&chosen, &Command::write(12, 1)));
        assert_plan(
            &plan(layer.as_mut(), &[Command::write(117, 1), Command::write(112, 2)]),
            "group Host
               write host pba 112+2 lba 112
               write host pba 117+1 lba 117",
        );
    }

    #[test]
    fn waiting_writes_to_one_bottom_share_an_operation() {
        let mut layer = layer("imr-rmw", &disk(64, 10, 1.0), "backup_regions=1");
        let chosen = [Command::write(12, 2)];
        let joins = |lba, sectors| layer.joins(&chosen, &Command::write(lba, sectors));
        assert!(joins(10, 1) && joins(16, 4) && joins(12, 2));
        assert!(!joins(9, 2) && !joins(19, 2) && !joins(22, 1) && !joins(112, 1), "another track");
        assert!(!layer.joins(&chosen, &Command::read(12, 1)));
        assert_plan(
            &plan(layer.as_mut(), &[Command::write(12, 2), Command::write(17, 1), Command::write(13, 2)]),
            "group Host
               read cleaning pba 102+3 lba 102
               read cleaning pba 107+1 lba 107
               read cleaning pba 112+3 lba 112
               read cleaning pba 117+1 lba 117
               write backup pba 270+3 lba 102
               write backup pba 273+1 lba 107
               write backup pba 274+3 lba 112
               write backup pba 277+1 lba 117
               barrier
               note #1 270 102 107 12884901889
               note #4 274 112 117 12884901889
               barrier
             phase Host
               write host pba 12+3 lba 12
               write host pba 17+1 lba 17
               write cleaning pba 102+3 lba 102
               write cleaning pba 107+1 lba 107
               write cleaning pba 112+3 lba 112
               write cleaning pba 117+1 lba 117",
        );
    }

    #[test]
    fn dead_neighbours_are_left_alone_if_asked() {
        let mut layer = layer("imr-rmw", &disk(64, 10, 1.0), "backup_regions=1,skip_dead=on");
        assert_plan(
            &plan(layer.as_mut(), &[Command::write(12, 2)]),
            "group Host
               write host pba 12+2 lba 12
               barrier
               note #9 12 14 0 0",
        );
        plan(layer.as_mut(), &[Command::write(112, 1)]);
        assert_plan(
            &plan(layer.as_mut(), &[Command::write(12, 2)]),
            "group Host
               read cleaning pba 112+1 lba 112
               write backup pba 270+1 lba 112
               barrier
               note #3 270 112 0 4294967296
               barrier
             phase Host
               write host pba 12+2 lba 12
               write cleaning pba 112+1 lba 112",
        );
        assert_plan(
            &plan(layer.as_mut(), &[Command::trim(110, 5)]),
            "group Host
               barrier
               note #7 0 0 0 0
               barrier
               note #10 110 115 0 0
               barrier",
        );
        assert_plan(
            &plan(layer.as_mut(), &[Command::write(12, 2)]),
            "group Host
               write host pba 12+2 lba 12",
        );
    }

    /// Checks the costs of Hajkazemi 2019 §2.1: t_seek + 5.5 t_rot at random, 6 t_rot in sequence; a top costs as much
    /// as a track of a conventional disk.
    #[test]
    fn costs_are_the_papers() {
        let disk = disk(64, 4096, 1.0);
        let mut layer = layer("imr-rmw", &disk, "backup_regions=1");
        let mut clock = Clock::at(&disk, 0);
        let (a_sector, few_sectors) = (1.0 / 4096.0, 8.0 / 4096.0);
        let (bottom, top) = (30 * 4096, 48 * 4096);
        let mut cost = |lba| clock.cost(&plan(layer.as_mut(), &[Command::write(lba, 1)]));
        assert_cost(cost(bottom), 1, 5.5, few_sectors);
        assert_cost(cost(bottom + 1), 0, 6.0, few_sectors);
        assert_cost(cost(top), 1, 0.5, a_sector);
    }
}
