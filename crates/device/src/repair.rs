//! The repair of a damaged image. Data with a valid second copy is rewritten from that copy. Data without one becomes
//! lost logical sectors, which the result lists. A lost sector can be read again after it is written.
//!
//! ```text
//!   header, state, directory, journal ── another copy ──► written anew
//!   contents, sector tables ──────────── no copy ───────► live sectors lost, the others forgotten
//!   both copies of a journal record ──── no copy ───────► a new drive with every sector lost: the map cannot be known
//! ```
//!
//! Invariants:
//! 1. A repaired image opens, and its check finds nothing.
//! 2. Sectors that are not listed as lost keep their contents.

use imbrex_disk::{Extent, Lba, Sectors};
use imbrex_layer::Medium;

use crate::check::{Finding, Progress, is_damage};
use crate::drive::refuse_older;
use crate::error::DeviceError;
use crate::image::{Bounds, Header, Journal, Region, Space};
use crate::lost::Lost;
use crate::media::Media;
use crate::store::{Faults, Opened, Store, replay};

/// Result of the repair of an image.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Repaired {
    /// Faults found by the repair and corrected, or turned into lost sectors.
    pub findings: Vec<Finding>,
    /// Runs of logical sectors that this repair marked as lost, in order: first LBA and length. Sectors that were lost
    /// before are not listed, unless `is_emptied` is true.
    pub lost: Vec<(Lba, Sectors)>,
    /// Whether the map from logical to physical sectors could not be recovered. Then the image holds a new drive on
    /// which every sector is lost.
    pub is_emptied: bool,
    /// Faults found by a check after the repair: errors of the translation layer, which the repair cannot correct.
    pub left: Vec<Finding>,
}

/// Repairs the image on `media` in place, and returns the result and the medium. `place` names the image in errors;
/// `progress` receives the bytes checked and the total. Writes to the medium even if the image is undamaged, but then
/// keeps all contents.
///
/// # Errors
/// The image has no readable header, has an older version, is a copy of an image in use, or has an unreadable state; or
/// the medium fails.
pub fn repair_image<M: Media>(media: M, place: &str, progress: Progress<'_>) -> Result<(Repaired, M), DeviceError> {
    let mut repaired = Repaired::default();
    let (mut drive, mut store) = open_ruined(media, place, &mut repaired)?;
    let before = if repaired.is_emptied { Lost::default() } else { store.lost().clone() };
    store.settle()?;
    // The check must come before a new state is written, because that state no longer records how many slots were
    // assigned.
    store.check_space(place, progress, &mut repaired.findings)?;
    store.journal.begin_epoch(&mut store.space)?;
    store.journal.heal(&mut store.space)?;
    let header = store.header().clone();
    store.space.heal(&header)?;
    // Recovery may rewrite damaged sectors. So only destroyed sectors become lost here, because recovery cannot read
    // those.
    lose_unreadable(&drive, &mut store, &mut repaired, |finding| matches!(finding, Finding::Destroyed { .. }))?;
    if let Err(error) = store.begin_work(drive.layer.as_mut()) {
        if !is_damage(&error) {
            return Err(error);
        }
        repaired.findings.push(Finding::Unopenable(error.to_string()));
        drive = empty(&mut store, &mut repaired)?;
    }
    lose_unreadable(&drive, &mut store, &mut repaired, |_| true)?;
    store.space.forget_orphans();
    repaired.left = store.check(drive.layer.as_ref(), place, &mut |_, _| {})?;
    store.seal()?;
    // Recovery reads sectors, too, and marks unreadable ones as lost.
    let before = if repaired.is_emptied { Lost::default() } else { before };
    repaired.lost = store.lost().less(&before).runs().collect();
    Ok((repaired, store.space.into_media()))
}

/// Opens the image as far as possible. If its journal cannot be read, opens it as a new drive with every sector lost.
fn open_ruined<M: Media>(mut media: M, place: &str, repaired: &mut Repaired) -> Result<Opened<M>, DeviceError> {
    let header = Header::read(&mut media, place)?;
    refuse_older(&header, place)?;
    let mut drive = header.drive()?;
    let mut space = Space::open_ruined(media, &header, place, Bounds::default())?;
    space.refuse_copied_at_work(place)?;
    match replay(&mut space, &header, drive.layer.as_mut(), place) {
        Ok((journal, faults)) => {
            let store = Store::over(header, &drive, space, journal, faults);
            Ok((drive, store))
        }
        Err(error) if is_damage(&error) => {
            repaired.findings.push(Finding::Unopenable(error.to_string()));
            let journal = Journal::begin_anew(&mut space, header.journal_bytes)?;
            let mut store = Store::over(header, &drive, space, journal, Faults::default());
            drive = empty(&mut store, repaired)?;
            Ok((drive, store))
        }
        Err(error) => Err(error),
    }
}

/// Turns the image into a new drive with every sector lost.
fn empty<M: Media>(store: &mut Store<M>, repaired: &mut Repaired) -> Result<imbrex_sim::Drive, DeviceError> {
    let header = store.header().clone();
    let drive = header.drive()?;
    store.space.forget_orphans();
    store.start_anew(&drive)?;
    repaired.is_emptied = true;
    store.lose(Lba(0), drive.layer.capacity())?;
    Ok(drive)
}

/// Marks every unreadable live sector for which `is_chosen` returns true as lost. The physical sector reads as zeros
/// afterwards, so that cleaning can move it.
fn lose_unreadable<M: Media>(
    drive: &imbrex_sim::Drive,
    store: &mut Store<M>,
    repaired: &mut Repaired,
    is_chosen: impl Fn(&Finding) -> bool,
) -> Result<(), DeviceError> {
    let mut unreadable = Vec::new();
    store.for_each_unreadable(drive.layer.as_ref(), |finding| unreadable.push(finding))?;
    for finding in unreadable.into_iter().filter(is_chosen) {
        let (medium, pba) = match finding {
            Finding::Destroyed { pba, .. } => (Medium::Disk, pba),
            Finding::Unreadable { medium, pba, .. } => (medium, pba),
            _ => continue,
        };
        let Some((lba, sectors)) = finding.lbas() else { continue };
        repaired.findings.push(finding);
        store.lose(lba, sectors)?;
        let region = if medium == Medium::Disk { Region::Disk } else { Region::Flash };
        store.space.blank(region, Extent::new(pba, sectors))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::image::regions::Use;
    use crate::media::memory::Memory;
    use crate::store::tests::made;

    /// A medium with one byte that temporarily cannot be read.
    #[derive(Debug)]
    struct Failing {
        inner: Memory,
        at: u64,
        is_written: bool,
    }

    impl Media for &mut Failing {
        fn len(&self) -> u64 {
            self.inner.len()
        }
        fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
            if (offset..offset + into.len() as u64).contains(&self.at) {
                return Err(io::Error::other("try again"));
            }
            self.inner.read_at(offset, into)
        }
        fn write_at(&mut self, offset: u64, from: &[u8]) -> io::Result<()> {
            self.is_written = true;
            self.inner.write_at(offset, from)
        }
        fn flush(&mut self) -> io::Result<()> {
            self.inner.flush()
        }
    }

    /// Checks that a read error, which may be temporary, does not empty the drive.
    #[test]
    fn a_journal_that_cannot_be_read_just_now_is_left_alone() {
        let (_, mut store) = made("conventional", "conventional");
        store.lose(Lba(5), Sectors(3)).expect("memory fails nobody");
        let mut journal = None;
        store
            .for_each_used(&mut |used| {
                if used.what == Use::Journal {
                    journal.get_or_insert(used.offset);
                }
            })
            .expect("memory fails nobody");
        let at = journal.expect("it has a record");
        let mut medium = Failing { inner: store.into_media(), at, is_written: false };
        let error = repair_image(&mut medium, "image", &mut |_, _| {}).expect_err("the medium fails");
        assert!(matches!(error, DeviceError::Medium { .. }), "{error}");
        assert!(!medium.is_written);
        medium.at = u64::MAX;
        let (repaired, _) = repair_image(&mut medium, "image", &mut |_, _| {}).expect("now it can be read");
        assert!(!repaired.is_emptied && repaired.lost.is_empty(), "{repaired:?}");
        let (_, store) = Store::open_to_look(&mut medium, "image").expect("it is whole");
        assert_eq!(store.lost().runs().collect::<Vec<_>>(), [(Lba(5), Sectors(3))]);
    }
}
