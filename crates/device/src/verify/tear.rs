//! A write torn as on platters: of its sectors the first few are written, what those destroy is destroyed, and the rest
//! of what it was to write is as it was, or destroyed by the part that was written.
//!
//! The store marks what a whole write destroys in one act with its data, and takes what is written as whole. So of a
//! write in place that is torn the marks must be made anew.

use imbrex_disk::{Extent, Pba, SharedDisk};

use crate::error::DeviceError;
use crate::image::{Damage, Header, Region, Space};
use crate::media::memory::Memory;
use crate::media::Media;

/// A run of the platters' contents on the medium.
#[derive(Clone, Copy, Debug)]
struct Mapped {
    at: u64,
    bytes: u64,
    offset: u64,
}

/// Where the platters' contents lie on a medium.
#[derive(Debug, Default)]
pub(super) struct Places(Vec<Mapped>);

impl Places {
    /// As `space` has them.
    pub(super) fn of<M: Media>(space: &mut Space<M>, disk: &SharedDisk) -> Result<Places, DeviceError> {
        let (mut runs, mut mapped, mut offset) = (Vec::new(), Vec::new(), 0);
        let bytes = disk.geometry.sectors().0 * u64::from(disk.sector_bytes);
        space.runs(Region::Disk, 0, bytes, false, &mut runs)?;
        for run in runs {
            mapped.extend(run.at.map(|at| Mapped { at, bytes: run.bytes, offset }));
            offset += run.bytes;
        }
        Ok(Places(mapped))
    }

    /// The byte of the platters that lies at `at` on the medium.
    fn offset(&self, at: u64) -> Option<u64> {
        let found = self.0.iter().find(|run| (run.at..run.at + run.bytes).contains(&at));
        found.map(|run| run.offset + at - run.at)
    }

    /// Sectors of the platters that `act` writes.
    pub(super) fn sectors(&self, act: &[(u64, Vec<u8>)], sector_bytes: u32) -> u64 {
        self.data(act).map(|(_, bytes)| bytes.len() as u64 / u64::from(sector_bytes)).sum()
    }

    fn data<'a>(&'a self, act: &'a [(u64, Vec<u8>)]) -> impl Iterator<Item = (u64, &'a [u8])> + 'a {
        act.iter().filter_map(|(at, bytes)| self.offset(*at).map(|_| (*at, &bytes[..])))
    }

    /// `image` after the first `sectors` of `act` were written to it as on platters.
    pub(super) fn torn(
        &self,
        image: Memory,
        header: &Header,
        disk: &SharedDisk,
        act: &[(u64, Vec<u8>)],
        sectors: u64,
    ) -> Result<Memory, DeviceError> {
        let mut space = Space::open(image, header, "torn image")?;
        let mut damage = Damage::new(disk.recording.leaves_damage_to_host());
        let sector_bytes = u64::from(disk.sector_bytes);
        let mut left = sectors * sector_bytes;
        let mut written: Option<Extent> = None;
        for (at, bytes) in self.data(act) {
            let kept = left.min(bytes.len() as u64);
            left -= kept;
            if kept > 0 {
                let failed = |cause| DeviceError::medium("tearing", cause);
                space.media_mut().write_at(at, &bytes[..kept as usize]).map_err(failed)?;
                let first = self.offset(at).expect("it is data") / sector_bytes;
                let start = written.map_or(Pba(first), |extent| extent.start);
                written = Some(Extent::between(start, Pba(first + kept / sector_bytes)));
            }
        }
        let (mut destroyed, mut changes) = (Vec::new(), Vec::new());
        if let Some(extent) = written {
            disk.recording.destroys(&disk.geometry, extent, &mut destroyed);
            damage.mark(&mut space, extent, false, &mut changes)?;
            for extent in destroyed {
                damage.mark(&mut space, extent, true, &mut changes)?;
            }
        }
        for change in &changes {
            space.write_together(&[(Region::Damage, change.offset, &change.bytes)])?;
        }
        Ok(space.into_media())
    }
}
