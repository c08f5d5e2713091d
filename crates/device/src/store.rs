//! The store: carries plans out on an image. It moves bytes, marks what writes destroy, appends the journal and keeps the
//! order that barriers demand; it knows no time and no queue.
//!
//! Invariants:
//! 1. A step is done before the next begins. What a write destroys is marked in the same act as the write, before its bytes;
//!    what it makes whole is marked after them. So a torn write leaves what was destroyed destroyed, never old bytes.
//! 2. Reading a destroyed sector of data is an error.
//! 3. After a failed write the store takes no further plan: the layer in memory is ahead of the image, which alone
//!    counts. Opening the image again recovers what was acknowledged.
//! 4. Only data steps move bytes. Padding, maps and packets' own records are made from the journal, so their places are
//!    marked as written and hold nothing.

use imbrex_disk::{Extent, Pba, Sectors, SharedDisk};
use imbrex_layer::{GroupKind, Kind, Layer, Medium, Note, Phase, Plan, Step, StepOp};
use imbrex_sim::Drive;

use crate::error::DeviceError;
use crate::image::damage::Change;
use crate::image::{Damage, Header, Journal, Region, Space};
use crate::media::Media;
use crate::staging::Staging;

/// Host data for a plan: a run of sectors given, wanted, or to be forgotten.
#[derive(Debug)]
pub struct Transfer<'a> {
    /// The first logical sector.
    pub lba: u64,
    /// The bytes.
    pub data: Data<'a>,
}

/// What a transfer carries.
#[derive(Debug)]
pub enum Data<'a> {
    /// From the host.
    Write(&'a [u8]),
    /// To the host.
    Read(&'a mut [u8]),
    /// So many sectors become absent.
    Trim(u64),
}

/// An image at work.
#[derive(Debug)]
pub struct Store<M> {
    header: Header,
    disk: SharedDisk,
    keeps_trims: bool,
    /// Whether hosts are told of damage: then the bytes of a whole sector must be there, even after a power cut.
    is_host_managed: bool,
    space: Space<M>,
    damage: Damage,
    journal: Journal,
    /// Staging of host groups and of the others, whose phases may be apart.
    staging: [Staging; 2],
    destroyed: Vec<Extent>,
    changes: Vec<Change>,
    /// Changes of the damage bitmap that follow the bytes of a write.
    mended: Vec<Change>,
    scratch: Vec<u8>,
    stopped: Option<String>,
    /// Whether no write destroys anything, so that there is no damage to look for.
    is_harmless: bool,
}

/// What a store is made of, for its check.
pub(crate) struct Parts<'a, M> {
    pub(crate) disk: &'a SharedDisk,
    pub(crate) space: &'a mut Space<M>,
    pub(crate) damage: &'a mut Damage,
    pub(crate) journal: &'a Journal,
}

/// A drive and the store that holds its contents.
pub type Opened<M> = (Drive, Store<M>);

impl<M: Media> Store<M> {
    /// Makes an image on `media`, which must be empty, and opens it.
    pub fn create(media: M, header: Header) -> Result<Opened<M>, DeviceError> {
        let drive = header.drive()?;
        Store::create_of(media, header, drive)
    }

    /// The same for `drive`, which is as new and as `header` says: to lay out a large drive takes seconds, and once is enough.
    pub fn create_of(mut media: M, header: Header, drive: Drive) -> Result<Opened<M>, DeviceError> {
        assert_eq!(drive.disk.geometry.sectors().0, header.disk_sectors, "the header is of another drive");
        header.write(&mut media)?;
        let mut space = Space::create(media, &header)?;
        let journal = Journal::replay(&mut space, header.journal_bytes, &header.label, |_| {
            unreachable!("a new journal is empty")
        })?;
        let store = Store::over(header, &drive, space, journal);
        Ok((drive, store))
    }

    /// Opens an image to work on: replays its journal, mends what was half done. `place` names it in errors.
    pub fn open(media: M, place: &str) -> Result<Opened<M>, DeviceError> {
        Store::open_prepared(media, place, |_| {})
    }

    /// The same, with a drive that `prepare` may alter before its journal is replayed: so that what altered layers lose
    /// can be seen.
    pub fn open_prepared(media: M, place: &str, prepare: impl FnOnce(&mut Drive)) -> Result<Opened<M>, DeviceError> {
        let (mut drive, mut store) = Store::replayed(media, place, prepare)?;
        store.journal.begin_epoch(&mut store.space)?;
        let mut plan = Plan::new();
        drive.layer.repair(&mut plan);
        store.execute(&plan, &mut [])?;
        store.barrier()?;
        Ok((drive, store))
    }

    /// Opens an image without changing it: what was half done stays so.
    pub fn open_to_look(media: M, place: &str) -> Result<Opened<M>, DeviceError> {
        Store::replayed(media, place, |_| {})
    }

    fn replayed(mut media: M, place: &str, prepare: impl FnOnce(&mut Drive)) -> Result<Opened<M>, DeviceError> {
        let header = Header::read(&mut media, place)?;
        let mut drive = header.drive()?;
        prepare(&mut drive);
        let mut space = Space::open(media, &header, place)?;
        let layer = &mut drive.layer;
        let replay = |note: &Note| layer.replay(note).map_err(Into::into);
        let journal = Journal::replay(&mut space, header.journal_bytes, place, replay)?;
        let store = Store::over(header, &drive, space, journal);
        Ok((drive, store))
    }

    fn over(header: Header, drive: &Drive, space: Space<M>, journal: Journal) -> Store<M> {
        let disk = drive.disk.clone();
        let sector_bytes = disk.sector_bytes;
        let damaged_when_new = disk.recording.leaves_damage_to_host();
        Store {
            keeps_trims: drive.layer.keeps_trims(),
            is_host_managed: drive.layer.is_host_managed(),
            is_harmless: disk.recording.is_harmless() && !damaged_when_new,
            damage: Damage::new(damaged_when_new),
            staging: [Staging::new(sector_bytes), Staging::new(sector_bytes)],
            destroyed: Vec::new(),
            changes: Vec::new(),
            mended: Vec::new(),
            scratch: Vec::new(),
            stopped: None,
            header,
            disk,
            space,
            journal,
        }
    }

    /// What the drive is.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The space of the image.
    pub fn space(&self) -> &Space<M> {
        &self.space
    }

    /// The space of the image, for whoever cuts or inspects it.
    pub fn space_mut(&mut self) -> &mut Space<M> {
        &mut self.space
    }

    /// The journal.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    pub(crate) fn parts(&mut self) -> Parts<'_, M> {
        Parts { disk: &self.disk, space: &mut self.space, damage: &mut self.damage, journal: &self.journal }
    }

    /// Calls `each` with every run of destroyed sectors of `extent`.
    pub fn for_each_damage(&mut self, extent: Extent, each: impl FnMut(Extent)) -> Result<(), DeviceError> {
        self.damage.for_each(&mut self.space, extent, each)
    }

    /// The first destroyed sector of `extent`, if any is.
    pub fn first_damaged(&mut self, extent: Extent) -> Result<Option<Pba>, DeviceError> {
        self.damage.first(&mut self.space, extent)
    }

    /// Takes it apart; what is not durable on the medium may be lost with the power.
    pub fn into_media(self) -> M {
        self.space.into_media()
    }

    /// Why it has stopped, if it has.
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// Stops it: the layer planned what was not carried out.
    pub fn stop(&mut self, reason: &str) {
        self.stopped.get_or_insert_with(|| reason.into());
    }

    /// Carries `plan` out. A failed read in a plan that changes nothing is that command's error alone; any other failure
    /// stops the store.
    pub fn execute(&mut self, plan: &Plan, transfers: &mut [Transfer<'_>]) -> Result<(), DeviceError> {
        if let Some(reason) = &self.stopped {
            return Err(DeviceError::Stopped(reason.clone()));
        }
        let outcome = self.execute_groups(plan, transfers);
        if let Err(error) = &outcome {
            let only_reads = plan.steps.iter().all(|step| matches!(step.op, StepOp::Read | StepOp::Barrier));
            if !only_reads || plan.phases.iter().any(|phase| phase.kind != GroupKind::Host) {
                self.stop(&error.to_string());
            }
        }
        outcome
    }

    fn execute_groups(&mut self, plan: &Plan, transfers: &mut [Transfer<'_>]) -> Result<(), DeviceError> {
        let is_given_whole = gives_whole(plan, transfers, self.disk.sector_bytes as u64);
        for transfer in transfers.iter_mut().filter(|_| !is_given_whole) {
            if let Data::Read(into) = &mut transfer.data {
                into.fill(0);
            }
        }
        let mut is_direct = false;
        for (index, phase) in plan.phases.iter().enumerate() {
            let is_host = phase.kind == GroupKind::Host;
            if phase.opens_group {
                self.staging[usize::from(!is_host)].clear();
                is_direct = is_host && only_reads(plan, index);
            }
            for step in plan.steps_of(index) {
                match step.op {
                    StepOp::Read if step.kind != Kind::Data => {}
                    StepOp::Read if is_host && is_direct => self.read_for_host(step, transfers)?,
                    StepOp::Read => self.read_into_staging(step, usize::from(!is_host))?,
                    StepOp::Write => self.write(step, is_host, transfers)?,
                    StepOp::Drop => {
                        self.staging[usize::from(!is_host)].stage_absence(step.lba.0, step.sectors as u64);
                    }
                    StepOp::Note => self.journal.append(&mut self.space, plan.note_of(step))?,
                    StepOp::Barrier => self.barrier()?,
                }
            }
            if is_host && !is_direct && index + 1 == host_group_end(plan, index) {
                for transfer in transfers.iter_mut() {
                    if let Data::Read(into) = &mut transfer.data {
                        self.staging[0].overlay(transfer.lba, into);
                    }
                }
            }
        }
        Ok(())
    }

    /// All so far is durable before anything that follows.
    pub fn barrier(&mut self) -> Result<(), DeviceError> {
        self.space.flush()?;
        self.journal.flushed();
        Ok(())
    }

    /// Closes the books, for a drive that is switched off: what is lost of its journal from now on will show.
    pub fn seal(&mut self) -> Result<(), DeviceError> {
        if let Some(reason) = &self.stopped {
            return Err(DeviceError::Stopped(reason.clone()));
        }
        self.journal.seal(&mut self.space).inspect_err(|error| {
            self.stopped.get_or_insert_with(|| error.to_string());
        })
    }

    /// Replaces the journal by a checkpoint of `layer` once it has grown long. Between plans only.
    pub fn checkpoint_if_due(&mut self, layer: &dyn Layer) -> Result<(), DeviceError> {
        if self.stopped.is_some() || !self.journal.wants_checkpoint() {
            return Ok(());
        }
        self.checkpoint(layer)
    }

    /// Replaces the journal by a checkpoint of `layer`. Between plans only.
    pub fn checkpoint(&mut self, layer: &dyn Layer) -> Result<(), DeviceError> {
        let outcome = self.journal.checkpoint(&mut self.space, layer);
        if let Err(error) = &outcome {
            self.stop(&error.to_string());
        }
        outcome
    }

    fn offset(&self, sector: u64) -> u64 {
        sector * self.disk.sector_bytes as u64
    }

    /// Refuses to read what was destroyed.
    fn check_whole(&mut self, step: &Step) -> Result<(), DeviceError> {
        if self.is_harmless || step.medium == Medium::Flash {
            return Ok(());
        }
        match self.damage.first(&mut self.space, step.extent())? {
            Some(pba) => Err(DeviceError::Destroyed { lba: step.lba + (pba - step.pba), pba, medium: step.medium }),
            None => Ok(()),
        }
    }

    fn read_into_staging(&mut self, step: &Step, staging: usize) -> Result<(), DeviceError> {
        self.check_whole(step)?;
        let offset = self.offset(step.pba.0);
        let into = self.staging[staging].stage(step.lba.0, step.sectors as u64);
        self.space.read(region_of(step.medium), offset, into)
    }

    /// Reads what of `step` the transfers want, straight into them.
    fn read_for_host(&mut self, step: &Step, transfers: &mut [Transfer<'_>]) -> Result<(), DeviceError> {
        self.check_whole(step)?;
        let sector_bytes = self.disk.sector_bytes as u64;
        for transfer in transfers {
            let Data::Read(into) = &mut transfer.data else { continue };
            let wanted_end = transfer.lba + into.len() as u64 / sector_bytes;
            let start = transfer.lba.max(step.lba.0);
            let end = wanted_end.min(step.lba.0 + step.sectors as u64);
            if start < end {
                let range = (start - transfer.lba) * sector_bytes..(end - transfer.lba) * sector_bytes;
                let offset = (step.pba.0 + start - step.lba.0) * sector_bytes;
                let part = &mut into[range.start as usize..range.end as usize];
                self.space.read(region_of(step.medium), offset, part)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, step: &Step, is_host: bool, transfers: &[Transfer<'_>]) -> Result<(), DeviceError> {
        self.mark_damage(step)?;
        let mut scratch = std::mem::take(&mut self.scratch);
        let data = match (step.kind, is_host) {
            (Kind::Data, true) => match whole_from_host(step, transfers, self.disk.sector_bytes as u64) {
                Some(bytes) => Some(bytes),
                None => Some(self.composed(step, true, transfers, &mut scratch)),
            },
            (Kind::Data, false) => Some(self.composed(step, false, &[], &mut scratch)),
            _ => None,
        };
        let region = region_of(step.medium);
        let offset = self.offset(step.pba.0);
        let mut pieces: Vec<(Region, u64, &[u8])> = Vec::with_capacity(self.changes.len() + self.mended.len() + 1);
        let of_bitmap = |change| -> (Region, u64, &[u8]) {
            let Change { offset, bytes }: &Change = change;
            (Region::Damage, *offset, bytes)
        };
        pieces.extend(self.changes.iter().map(of_bitmap));
        pieces.extend(data.map(|bytes| (region, offset, bytes)));
        pieces.extend(self.mended.iter().map(of_bitmap));
        let space = &mut self.space;
        // A power cut may lose the table's entry of a new chunk and keep what was written to it: the bitmap would then call
        // whole what reads as zeros.
        let readied = if self.is_host_managed { space.ready(&pieces) } else { Ok(()) };
        let outcome = readied.and_then(|()| if pieces.is_empty() { Ok(()) } else { space.write_together(&pieces) });
        self.scratch = scratch;
        outcome
    }

    /// Puts into `self.changes` and `self.mended` what a write does to the damage bitmap, before its bytes and after them.
    fn mark_damage(&mut self, step: &Step) -> Result<(), DeviceError> {
        self.changes.clear();
        self.mended.clear();
        if self.is_harmless || step.medium == Medium::Flash {
            return Ok(());
        }
        self.destroyed.clear();
        self.disk.recording.destroys(&self.disk.geometry, step.extent(), &mut self.destroyed);
        for lost in &self.destroyed {
            self.damage.mark(&mut self.space, *lost, true, &mut self.changes)?;
        }
        // A write may destroy, further on, what it has itself written: that does not become whole.
        let (mut next, end) = (step.pba, step.extent().end());
        for lost in self.destroyed.iter().chain([&Extent::between(end, end)]) {
            let whole = Extent::between(next, lost.start.clamp(next, end));
            self.damage.mark(&mut self.space, whole, false, &mut self.mended)?;
            next = next.max(lost.end()).min(end);
        }
        Ok(())
    }

    /// The bytes of a write: zeros, what is staged over them, and in a host group the host's own data over both.
    fn composed<'s>(
        &self,
        step: &Step,
        is_host: bool,
        transfers: &[Transfer<'_>],
        scratch: &'s mut Vec<u8>,
    ) -> &'s [u8] {
        let sector_bytes = self.disk.sector_bytes as u64;
        scratch.clear();
        scratch.resize(step.sectors as usize * sector_bytes as usize, 0);
        self.staging[usize::from(!is_host)].overlay(step.lba.0, scratch);
        for transfer in transfers {
            let sectors = match &transfer.data {
                Data::Write(from) => from.len() as u64 / sector_bytes,
                Data::Trim(sectors) if self.keeps_trims => *sectors,
                Data::Trim(_) | Data::Read(_) => continue,
            };
            let start = transfer.lba.max(step.lba.0);
            let end = (transfer.lba + sectors).min(step.lba.0 + step.sectors as u64);
            if start >= end {
                continue;
            }
            let bytes = |from: u64, to: u64| (from * sector_bytes) as usize..(to * sector_bytes) as usize;
            let part = &mut scratch[bytes(start - step.lba.0, end - step.lba.0)];
            match &transfer.data {
                Data::Write(from) => part.copy_from_slice(&from[bytes(start - transfer.lba, end - transfer.lba)]),
                _ => part.fill(0),
            }
        }
        scratch
    }

    /// Calls `each` with the runs of bytes that make up `sectors` from `pba`, and whether anything was ever stored there.
    pub fn for_each_stored(
        &mut self,
        medium: Medium,
        pba: Pba,
        sectors: Sectors,
        each: &mut impl FnMut(u64, bool),
    ) -> Result<(), DeviceError> {
        let mut runs = Vec::new();
        let (offset, bytes) = (self.offset(pba.0), self.offset(sectors.0));
        self.space.runs(region_of(medium), offset, bytes, false, &mut runs)?;
        runs.iter().for_each(|run| each(run.bytes, run.at.is_some()));
        Ok(())
    }

    /// The bytes of a sector that `medium` holds at `pba`, for whoever inspects an image.
    pub fn peek(&mut self, medium: Medium, pba: Pba, into: &mut [u8]) -> Result<(), DeviceError> {
        let offset = self.offset(pba.0);
        self.space.read(region_of(medium), offset, into)
    }
}

/// The bytes of a write that one transfer gives whole and no other touches: they need no copy.
fn whole_from_host<'t>(step: &Step, transfers: &'t [Transfer<'_>], sector_bytes: u64) -> Option<&'t [u8]> {
    let [Transfer { lba, data: Data::Write(from) }] = transfers else { return None };
    let skipped = step.lba.0.checked_sub(*lba)? * sector_bytes;
    from.get(skipped as usize..(skipped + step.sectors as u64 * sector_bytes) as usize)
}

/// Whether a plan is the one read that gives its one transfer every byte, so that none need be zeroed first.
fn gives_whole(plan: &Plan, transfers: &[Transfer<'_>], sector_bytes: u64) -> bool {
    let ([Transfer { lba, data: Data::Read(into) }], [step], [phase]) = (transfers, &plan.steps[..], &plan.phases[..])
    else {
        return false;
    };
    let end = lba + into.len() as u64 / sector_bytes;
    let is_read = step.op == StepOp::Read && step.kind == Kind::Data && phase.kind == GroupKind::Host;
    is_read && phase.opens_group && step.lba.0 <= *lba && step.lba.0 + u64::from(step.sectors) >= end
}

/// One past the last phase of the host group that phase `index` belongs to. A phase of another kind that opens no group
/// goes on with one of an earlier plan.
fn host_group_end(plan: &Plan, index: usize) -> usize {
    let ends = |phase: &Phase| phase.opens_group || phase.kind != GroupKind::Host;
    (index + 1..plan.phases.len()).find(|&next| ends(&plan.phases[next])).unwrap_or(plan.phases.len())
}

fn only_reads(plan: &Plan, first: usize) -> bool {
    (first..host_group_end(plan, first))
        .all(|index| plan.steps_of(index).iter().all(|step| matches!(step.op, StepOp::Read | StepOp::Barrier)))
}

fn region_of(medium: Medium) -> Region {
    match medium {
        Medium::Disk => Region::Disk,
        Medium::Flash => Region::Flash,
    }
}
