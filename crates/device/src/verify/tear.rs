//! A write torn as on platters: its first few sectors are written, and the sectors that these overlap are destroyed.
//! The remaining sectors of the write are unchanged, or destroyed by the written part.
//!
//! The store's tables already allow for a write that is done or not, sector by sector. This module adds the
//! destruction of the unwritten part by the written part. For example, a track is written, and the next track, which
//! was to be rewritten, is not.

use imbrex_disk::{Extent, Pba, Sectors, SharedDisk};

use crate::error::DeviceError;
use crate::image::transfer::Write;
use crate::image::{Bounds, Header, Region, Space};
use crate::media::Media;
use crate::media::memory::Memory;

/// A run of sectors of the platters that an act writes, with the bytes written.
#[derive(Clone, Debug)]
pub(super) struct Run {
    start: Pba,
    bytes: Vec<u8>,
}

/// Returns the sectors of the platters that `act` writes on the medium of `space`, in order.
pub(super) fn runs<M: Media>(space: &Space<M>, act: &[(u64, Vec<u8>)]) -> Vec<Run> {
    let of_platters = act.iter().filter_map(|(at, bytes)| match space.sector_at(*at) {
        Some((Region::Disk, sector)) => Some(Run { start: Pba(sector), bytes: bytes.clone() }),
        _ => None,
    });
    of_platters.collect()
}

/// Returns the number of sectors in `runs`.
pub(super) fn sectors(runs: &[Run], sector_bytes: u32) -> u64 {
    runs.iter().map(|run| run.bytes.len() as u64 / u64::from(sector_bytes)).sum()
}

/// Returns `image`, which must contain nothing of `runs`, after the first `count` sectors of `runs` were written as
/// on platters.
pub(super) fn torn(
    image: Memory,
    header: &Header,
    disk: &SharedDisk,
    runs: &[Run],
    count: u64,
) -> Result<Memory, DeviceError> {
    let mut space = Space::open(image, header, "torn image", Bounds::default())?;
    space.settle()?;
    let sector_bytes = u64::from(disk.sector_bytes);
    let (mut left, mut destroyed) = (count, Vec::new());
    for run in runs {
        let kept = left.min(run.bytes.len() as u64 / sector_bytes);
        left -= kept;
        if kept == 0 {
            break;
        }
        let extent = Extent::new(run.start, Sectors(kept));
        destroyed.clear();
        disk.recording.destroys(&disk.geometry, extent, &mut destroyed);
        let contents = [run.bytes[..(kept * sector_bytes) as usize].into()];
        let contents = Some(&contents[..]);
        space.write(&Write { region: Region::Disk, extent, contents, spoilt: &[], destroyed: &destroyed })?;
    }
    let records = space.state().journal_records;
    space.barrier(records)?;
    Ok(space.into_media())
}
