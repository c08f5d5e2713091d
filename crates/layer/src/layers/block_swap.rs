//! `block-swap`: hot blocks of bottom tracks change places with cold blocks of top tracks of the same track group (the
//! Block Swapping of Wu et al., as Hajkazemi 2019 §5 describes it). The layer is [`track_map`] with blocks in place of
//! pseudo-tracks. Blocks are finer, so a swap moves no cold data along with the hot data; the map and the number of
//! moves grow as blocks shrink.
//!
//! A group has up to 128 bottom tracks and as many top tracks. Every block has `block_size` bytes, so the last block of
//! a track may reach into the next track. The table has 16 bits per block: with blocks of 64 KiB that is 30.5 MB for
//! each TB, far beyond a controller's memory.
//!
//! Records: those of `track-map`, with blocks for pseudo-tracks.
//!
//! Invariants: those of `track-map`.

use super::interlaced::backup::BackupLog;
use super::interlaced::driver::Interlaced;
use super::interlaced::home::Planner;
use super::interlaced::host::Host;
use super::interlaced::map_zones::MapZones;
use super::interlaced::options::{HOT_TRACKS, MoveOptions, joined, of_moves};
use super::interlaced::record;
use super::track_map::{self, Map};
use crate::context::Context;
use crate::info::LayerInfo;
use crate::layer::Layer;
use crate::parameters::{ConfigError, ParameterInfo, ParameterKind};

/// Size of a block, the unit that a move swaps, in bytes.
const BLOCK_SIZE: ParameterInfo = ParameterInfo {
    key: "block_size",
    kind: ParameterKind::Bytes,
    default: "64k",
    help: "size of a block; a group must not have more than 65,536",
};

/// Number of blocks that are considered for a move at the end of an interval: the blocks on bottoms to which the most
/// sectors were written. This parameter replaces [`HOT_TRACKS`] of the other layers.
const HOT_BLOCKS: ParameterInfo = ParameterInfo {
    default: "1000",
    help: "hottest blocks on bottoms considered at the end of an interval",
    ..HOT_TRACKS
};

/// Description of the layer `block-swap` for the registry: on an interlaced disk, hot blocks of bottom tracks change
/// places with cold blocks of top tracks.
pub const INFO: LayerInfo = LayerInfo {
    name: "block-swap",
    summary: "interlaced disk: hot blocks of bottoms change places with cold blocks of tops in their track group",
    recordings: &["interlaced"],
    host_managed: false,
    mapping_unit: "block",
    source: "Wu et al. 2018, in Hajkazemi 2019 §5",
    parameters: &joined::<1, 11, 12>([BLOCK_SIZE], of_moves(HOT_BLOCKS)),
    records: &[record::Record::INFO, track_map::Record::INFO],
    toys: &[
        "block_size=1536,interval=12,background_every=3,payback=0,hotness=reset,watch=0",
        "block_size=2k,interval=7,background_every=1,backup_regions=1,hot_tracks=4,hotness=reset,payback=0,watch=0",
    ],
    build,
};

/// Number of zones that a heat key can distinguish, and of blocks in a zone.
const KEY_PARTS_MAX: usize = 1 << 16;

fn build(context: &Context) -> Result<Box<dyn Layer>, ConfigError> {
    let (disk, parameters) = (&context.disk, &context.parameters);
    let options = MoveOptions::new(parameters)?;
    let block_bytes = parameters.bytes("block_size");
    let block_sectors = block_bytes / disk.sector_bytes as u64;
    if block_sectors == 0 || block_bytes % disk.sector_bytes as u64 != 0 {
        return Err(ConfigError(format!(
            "block_size={block_bytes}: expected whole sectors of {} B",
            disk.sector_bytes
        )));
    }
    let mut planner = Planner::new(disk)?;
    let (tracks, surfaces) = (disk.geometry.radial_tracks(), disk.geometry.surfaces());
    let log = BackupLog::set_aside(&mut planner, tracks, surfaces, parameters.count("backup_regions"))?;
    let home = planner.finish();
    let longest = home.disk().geometry.zones().iter().map(|zone| zone.track_sectors as u64).max().unwrap_or(1);
    // A zone has up to 256 tracks, whose blocks must be numbered in 16 bits.
    if 256 * longest.div_ceil(block_sectors) >= KEY_PARTS_MAX as u64 {
        return Err(ConfigError(format!(
            "block_size={block_bytes}: a group of 256 tracks would have more than 65,535 blocks"
        )));
    }
    let zones = MapZones::of_pieces(&home, block_sectors.min(u32::MAX as u64) as u32);
    if zones.count() >= KEY_PARTS_MAX {
        return Err(ConfigError(format!("the disk has {} track groups; block-swap takes 65,535", zones.count())));
    }
    Ok(Box::new(Interlaced::new(Host::new(home, log, false), Map::<u16>::new(INFO.name, zones, options), options)))
}

#[cfg(test)]
mod tests {
    //! Goal: blocks are swapped as pseudo-tracks are, and runs of blocks that lie together are one access. The toy is
    //! that of `track-map`, with two blocks per track: block 2 is at PBAs 10–14, between the blocks at PBAs 110–114 and
    //! 100–104.

    use imbrex_disk::Command;

    use crate::layers::interlaced::testing::{assert_plan, disk, idle_phases, layer, plan, write_each};

    const TOY: &str = "backup_regions=1,interval=8,block_size=20k,payback=0,hotness=reset,watch=0";

    #[test]
    fn a_hot_block_changes_places_with_a_cold_one() {
        let mut layer = layer("block-swap", &disk(64, 10, 1.0), TOY);
        write_each(layer.as_mut(), &[12, 12, 12, 12, 12, 100, 110, 400]);
        let phases = idle_phases(layer.as_mut());
        assert_eq!(phases.len(), 3);
        assert_plan(
            &phases[0],
            "group Migration
               barrier
               note #7 0 0 0 0
               barrier
               read migration pba 110+5 lba 110
               read migration pba 10+5 lba 10
               read migration pba 100+5 lba 100
               write backup pba 270+5 lba 110
               write backup pba 275+5 lba 10
               write backup pba 280+5 lba 100
               barrier
               note #1 270 110 10 21474836485
               note #6 280 100 0 21474836480
               barrier",
        );
        assert_plan(
            &phases[1],
            "phase Migration
               read migration pba 60+5 lba 60
               write migration pba 10+5 lba 60
               write migration pba 100+5 lba 100
               write migration pba 110+5 lba 110
               barrier
               note #17 0 131084 786434 275
               barrier",
        );
        assert_plan(
            &phases[2],
            "phase Migration
               write migration pba 60+5 lba 10
               barrier
               note #18 0 0 0 0
               barrier",
        );
        assert_plan(
            &plan(layer.as_mut(), &[Command::read(8, 9)]),
            "group Host
               read host pba 8+2 lba 8
               read host pba 60+5 lba 10
               read host pba 15+2 lba 15",
        );
        assert_plan(
            &plan(layer.as_mut(), &[Command::read(0, 10)]),
            "group Host
               read host pba 0+10 lba 0",
        );
    }

    /// Checks 16 bits per block: 30.5 MB per TB with blocks of 64 KiB, 488 MB with blocks of 4 KiB, as in the
    /// documentation.
    #[test]
    fn memory_is_two_bytes_a_block() {
        let layer = layer("block-swap", &disk(64, 10, 1.0), TOY);
        assert_eq!(layer.memory().formula_bytes, 64 * 2 * 2);
        assert_eq!(1_000_000_000_000_u64 / 65_536 * 2, 30_517_578);
        assert_eq!(1_000_000_000_000_u64 / 4_096 * 2, 488_281_250);
    }
}
