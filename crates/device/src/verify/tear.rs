//! A write torn as on platters: of its sectors the first few are written, what those destroy is destroyed, and the rest
//! of what it was to write is as it was, or destroyed by the part that was written.
//!
//! The store's tables allow for a write that is made or not, sector by sector. That the part made destroys some of the part
//! not made, as where a track is written and the next, which was to be rewritten, is not, must be added here.

use imbrex_disk::{Extent, Pba, Sectors, SharedDisk};

use crate::error::DeviceError;
use crate::image::transfer::Write;
use crate::image::{Bounds, Header, Region, Space};
use crate::media::Media;
use crate::media::memory::Memory;

/// A run of the platters' sectors that an act writes, and what it writes there.
#[derive(Clone, Debug)]
pub(super) struct Run {
    start: Pba,
    bytes: Vec<u8>,
}

/// The platters' sectors that `act` writes on the medium of `space`, in order.
pub(super) fn runs<M: Media>(space: &Space<M>, act: &[(u64, Vec<u8>)]) -> Vec<Run> {
    let of_platters = act.iter().filter_map(|(at, bytes)| match space.sector_at(*at) {
        Some((Region::Disk, sector)) => Some(Run { start: Pba(sector), bytes: bytes.clone() }),
        _ => None,
    });
    of_platters.collect()
}

/// Sectors in `runs`.
pub(super) fn sectors(runs: &[Run], sector_bytes: u32) -> u64 {
    runs.iter().map(|run| run.bytes.len() as u64 / u64::from(sector_bytes)).sum()
}

/// `image`, which has nothing of `runs`, after the first `count` of their sectors were written to it as on platters.
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
