//! The store: carries plans out on an image. It moves bytes, marks what writes destroy, appends the journal and keeps the
//! order that barriers demand; it knows no time and no queue.
//!
//! Invariants:
//! 1. A step is done before the next begins. What a write destroys is durably marked before its bytes are written, so that a
//!    power cut leaves what was destroyed destroyed, never old bytes.
//! 2. Reading a destroyed sector of data is an error. So is reading what does not match its checksum: the host is told;
//!    a background plan that comes upon such sectors makes them [`Lost`] ones, and goes on.
//! 3. After a failed write the store takes no further plan: the layer in memory is ahead of the image, which alone
//!    counts. Opening the image again recovers what was acknowledged.
//! 4. Only data steps move bytes. Padding, maps and packets' own records are made from the journal, so their places are
//!    marked as written and hold nothing.

use imbrex_disk::{Extent, Lba, Pba, Sectors, SharedDisk};
use imbrex_layer::{GroupKind, Kind, Layer, Medium, Note, Phase, Plan, ReplayError, Step, StepOp};
use imbrex_sim::Drive;

use crate::error::DeviceError;
use crate::faults::known::Known;
use crate::image::journal::STORE_TAGS;
use crate::image::regions::Used;
use crate::image::space::Blank;
use crate::image::transfer::{Class, Fault, FaultKind, Given, Write};
use crate::image::{Bounds, Header, Journal, Region, Space};
use crate::lost::{Lost, NOTE_FOUND, NOTE_LOST};
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
    /// The same, which was summed when it came.
    Summed(Given<'a>),
    /// To the host.
    Read(&'a mut [u8]),
    /// So many sectors become absent.
    Trim(u64),
}

impl<'a> Data<'a> {
    /// The bytes from the host, if it gives some.
    fn given(&self) -> Option<Given<'a>> {
        match self {
            Data::Write(from) => Some((*from).into()),
            Data::Summed(given) => Some(*given),
            Data::Read(_) | Data::Trim(_) => None,
        }
    }

    /// How many sectors it changes: those it gives, and those it trims if `keeps_trims`.
    fn changed(&self, keeps_trims: bool, sector_bytes: u64) -> Option<u64> {
        match self {
            Data::Trim(sectors) => keeps_trims.then_some(*sectors),
            other => other.given().map(|given| given.bytes.len() as u64 / sector_bytes),
        }
    }
}

/// An image at work.
#[derive(Debug)]
pub struct Store<M> {
    header: Header,
    disk: SharedDisk,
    keeps_trims: bool,
    pub(crate) space: Space<M>,
    pub(crate) journal: Journal,
    faults: Faults,
    /// What the host sees.
    capacity: Sectors,
    /// Staging of host groups and of the others, whose phases may be apart.
    staging: [Staging; 2],
    destroyed: Vec<Extent>,
    /// What the latest read came upon.
    unread: Vec<Fault>,
    /// Which of the host's reads of the plan that is carried out fail, by number of their transfer, and why.
    unserved: Vec<(usize, DeviceError)>,
    scratch: Vec<u8>,
    stopped: Option<String>,
    /// Whether no write destroys anything, so that there is no damage to look for.
    is_harmless: bool,
}

/// What keeps sectors from being read, or slows them, until something ends it: kept in the journal beside the layer's map.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// Lost by damage.
    lost: Lost,
    /// Asked for.
    known: Known,
}

impl Faults {
    fn is_empty(&self) -> bool {
        self.lost.is_empty() && self.known.unreadable().next().is_none()
    }

    fn replay(&mut self, note: &Note, capacity: Sectors) -> Result<(), ReplayError> {
        if Known::owns(note) {
            self.known.replay(note, capacity)
        } else {
            self.lost.replay(note)
        }
    }
}

/// A drive and the store that holds its contents.
pub type Opened<M> = (Drive, Store<M>);

impl<M: Media> Store<M> {
    /// Makes an image on `media`, which must be empty, and opens it.
    pub fn create(media: M, header: Header) -> Result<Opened<M>, DeviceError> {
        let drive = header.drive()?;
        Store::create_of(media, header, drive)
    }

    /// The same for `drive`, which is as new and as `header` says: to lay out a large drive takes time, and once is enough.
    pub fn create_of(media: M, header: Header, drive: Drive) -> Result<Opened<M>, DeviceError> {
        Store::create_bounded(media, header, drive, Bounds::default())
    }

    /// The same within `bounds`.
    pub fn create_bounded(
        mut media: M,
        header: Header,
        drive: Drive,
        bounds: Bounds,
    ) -> Result<Opened<M>, DeviceError> {
        assert_eq!(drive.disk.geometry.sectors().0, header.disk_sectors, "the header is of another drive");
        header.write(&mut media)?;
        let mut space = Space::create(media, &header, bounds)?;
        let journal = Journal::replay(&mut space, header.journal_bytes, &header.label, |_| {
            unreachable!("a new journal is empty")
        })?;
        let store = Store::over(header, &drive, space, journal, Faults::default());
        Ok((drive, store))
    }

    /// Opens an image to work on: replays its journal, mends what was half done. `place` names it in errors.
    pub fn open(media: M, place: &str) -> Result<Opened<M>, DeviceError> {
        Store::open_prepared(media, place, |_| {})
    }

    /// The same, with a drive that `prepare` may alter before its journal is replayed: so that what altered layers lose
    /// can be seen.
    pub fn open_prepared(media: M, place: &str, prepare: impl FnOnce(&mut Drive)) -> Result<Opened<M>, DeviceError> {
        Store::open_bounded(media, place, Bounds::default(), prepare)
    }

    /// The same within `bounds`.
    pub fn open_bounded(
        media: M,
        place: &str,
        bounds: Bounds,
        prepare: impl FnOnce(&mut Drive),
    ) -> Result<Opened<M>, DeviceError> {
        let (mut drive, mut store) = Store::replayed(media, place, bounds, prepare)?;
        store.begin_work(drive.layer.as_mut())?;
        Ok((drive, store))
    }

    /// Settles of the sectors written last, after a power cut, whether they are old or new.
    pub(crate) fn settle(&mut self) -> Result<(), DeviceError> {
        self.space.settle()
    }

    /// Settles what a power cut left, and has `layer` mend what was half done.
    pub(crate) fn begin_work(&mut self, layer: &mut dyn Layer) -> Result<(), DeviceError> {
        self.settle()?;
        self.journal.begin_epoch(&mut self.space)?;
        let mut plan = Plan::new();
        layer.repair(&mut plan);
        self.execute(&plan, &mut [])?;
        self.barrier()
    }

    /// Opens an image without changing it: what was half done stays so, and contents may be neither old nor new.
    pub fn open_to_look(media: M, place: &str) -> Result<Opened<M>, DeviceError> {
        Store::replayed(media, place, Bounds::default(), |_| {})
    }

    fn replayed(
        mut media: M,
        place: &str,
        bounds: Bounds,
        prepare: impl FnOnce(&mut Drive),
    ) -> Result<Opened<M>, DeviceError> {
        let header = Header::read(&mut media, place)?;
        let mut drive = header.drive()?;
        prepare(&mut drive);
        let mut space = Space::open(media, &header, place, bounds)?;
        let (journal, faults) = replay(&mut space, &header, drive.layer.as_mut(), place)?;
        let store = Store::over(header, &drive, space, journal, faults);
        Ok((drive, store))
    }

    pub(crate) fn over(
        header: Header,
        drive: &Drive,
        mut space: Space<M>,
        journal: Journal,
        faults: Faults,
    ) -> Store<M> {
        let disk = drive.disk.clone();
        let sector_bytes = disk.sector_bytes;
        let is_damaged = disk.recording.leaves_damage_to_host();
        space.set_blank(Blank { is_damaged, remembers_zeros: drive.layer.is_host_managed() });
        Store {
            keeps_trims: drive.layer.keeps_trims(),
            is_harmless: disk.recording.is_harmless() && !is_damaged,
            staging: [Staging::new(sector_bytes), Staging::new(sector_bytes)],
            destroyed: Vec::new(),
            unread: Vec::new(),
            unserved: Vec::new(),
            scratch: Vec::new(),
            stopped: None,
            header,
            disk,
            space,
            journal,
            faults,
            capacity: drive.layer.capacity(),
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

    /// The logical sectors that damage has taken until they are written.
    pub fn lost(&self) -> &Lost {
        &self.faults.lost
    }

    /// The faults that were asked for, but for those of zones.
    pub fn faults(&self) -> &Known {
        &self.faults.known
    }

    /// Makes logical sectors unreadable, durably, until they are written: damage has taken them.
    pub fn lose(&mut self, lba: Lba, sectors: Sectors) -> Result<(), DeviceError> {
        self.record(&Note::new(NOTE_LOST, &[lba.0, sectors.0]))
    }

    /// Takes the record of a fault, or of the end of one, durably.
    pub(crate) fn record(&mut self, note: &Note) -> Result<(), DeviceError> {
        if let Some(reason) = &self.stopped {
            return Err(DeviceError::Stopped(reason.clone()));
        }
        self.faults.replay(note, self.capacity)?;
        self.journal.append(&mut self.space, note)?;
        self.barrier()
    }

    /// Refuses to read sectors that are lost or unreadable, but for those that `is_spared(start, end)`, as those are whose
    /// contents a cache holds.
    pub fn check_readable(
        &self,
        lba: Lba,
        sectors: Sectors,
        is_spared: impl Fn(u64, u64) -> bool,
    ) -> Result<(), DeviceError> {
        if self.faults.is_empty() {
            return Ok(());
        }
        if let Some(lba) = self.faults.lost.first_unspared(lba, sectors, &is_spared) {
            return Err(DeviceError::Lost { lba });
        }
        match self.faults.known.first_unreadable(lba, sectors, &is_spared) {
            Some(lba) => Err(DeviceError::Unreadable { lba }),
            None => Ok(()),
        }
    }

    /// Calls `each` with every piece of the image that is in use.
    pub fn for_each_used(&mut self, each: &mut dyn FnMut(Used)) -> Result<(), DeviceError> {
        self.space.for_each_used(&self.header, &self.journal, each)
    }

    /// What the opening found amiss in the image and could do without, in words.
    pub fn notices(&self) -> &[String] {
        self.space.notices()
    }

    /// Calls `each` with every run of physical sectors of `extent` that cannot be read, in order: destroyed, lost by damage
    /// to the image, and on a caveat disk never written.
    pub fn for_each_damage(&mut self, extent: Extent, mut each: impl FnMut(Extent)) -> Result<(), DeviceError> {
        let absent_is_damage = self.disk.recording.leaves_damage_to_host();
        let mut run: Option<Extent> = None;
        self.space.for_each_class(Region::Disk, extent, |part, class| {
            let is_damaged = match class {
                Class::Destroyed | Class::Spoilt => true,
                Class::Absent => absent_is_damage,
                Class::Zero | Class::Stored => false,
            };
            match &mut run {
                Some(run) if is_damaged && run.end() == part.start => run.sectors += part.sectors,
                _ if is_damaged => run.replace(part).into_iter().for_each(&mut each),
                _ => {}
            }
        })?;
        run.into_iter().for_each(each);
        Ok(())
    }

    /// The first physical sector of `extent` that cannot be read, if any.
    pub fn first_damaged(&mut self, extent: Extent) -> Result<Option<Pba>, DeviceError> {
        let mut first = None;
        self.for_each_damage(extent, |run| {
            first.get_or_insert(run.start);
        })?;
        Ok(first)
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

    /// Carries `plan` out. Sectors of the host's own reads that cannot be read are the error of it all, and the rest of the
    /// plan is carried out. So is a failed read in a plan that changes nothing; any other failure stops the store.
    pub fn execute(&mut self, plan: &Plan, transfers: &mut [Transfer<'_>]) -> Result<(), DeviceError> {
        self.execute_each(plan, transfers)?;
        self.unserved.drain(..).next().map_or(Ok(()), |(_, error)| Err(error))
    }

    /// The same for several commands: a read that fails fails alone, and [`Store::take_unserved`] says which did.
    pub(crate) fn execute_each(&mut self, plan: &Plan, transfers: &mut [Transfer<'_>]) -> Result<(), DeviceError> {
        self.unserved.clear();
        if let Some(reason) = &self.stopped {
            return Err(DeviceError::Stopped(reason.clone()));
        }
        let outcome = self.execute_groups(plan, transfers).and_then(|()| self.end_faults(transfers));
        if let Err(error) = &outcome {
            let only_reads = plan.steps.iter().all(|step| matches!(step.op, StepOp::Read | StepOp::Barrier));
            if !only_reads || plan.phases.iter().any(|phase| phase.kind != GroupKind::Host) {
                self.stop(&error.to_string());
            }
        }
        outcome
    }

    /// The transfers of the latest plan that could not be given what they wanted to read, by number, and why.
    pub(crate) fn take_unserved(&mut self) -> std::vec::Drain<'_, (usize, DeviceError)> {
        self.unserved.drain(..)
    }

    /// Takes down that transfer `number` fails; its first failure counts.
    fn leave_unserved(&mut self, number: usize, error: DeviceError) {
        if self.unserved.iter().all(|&(known, _)| known != number) {
            self.unserved.push((number, error));
        }
    }

    /// What `transfers` have written can be read again, once it is durable.
    fn end_faults(&mut self, transfers: &[Transfer<'_>]) -> Result<(), DeviceError> {
        if self.faults.is_empty() {
            return Ok(());
        }
        let sector_bytes = u64::from(self.disk.sector_bytes);
        for transfer in transfers {
            let Some(sectors) = transfer.data.changed(self.keeps_trims, sector_bytes).map(Sectors) else { continue };
            let lba = Lba(transfer.lba);
            let is_lost = self.faults.lost.first(lba, sectors).is_some();
            let found = is_lost.then(|| Note::new(NOTE_FOUND, &[lba.0, sectors.0]));
            for note in found.into_iter().chain(self.faults.known.written(lba, sectors)) {
                self.barrier()?;
                self.faults.replay(&note, self.capacity)?;
                self.journal.append(&mut self.space, &note)?;
            }
        }
        Ok(())
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
                self.give_staged(transfers);
            }
        }
        Ok(())
    }

    /// Gives the reads of a host group what is staged.
    fn give_staged(&mut self, transfers: &mut [Transfer<'_>]) {
        let sector_bytes = u64::from(self.disk.sector_bytes);
        for (number, transfer) in transfers.iter_mut().enumerate() {
            let Data::Read(into) = &mut transfer.data else { continue };
            let sectors = into.len() as u64 / sector_bytes;
            if let Some(&(lba, _)) = self.staging[0].spoilt(transfer.lba, sectors).first() {
                self.leave_unserved(number, DeviceError::Lost { lba: Lba(lba) });
            }
            self.staging[0].overlay(transfer.lba, into);
        }
    }

    /// All so far is durable before anything that follows.
    pub fn barrier(&mut self) -> Result<(), DeviceError> {
        self.space.barrier(self.journal.records())?;
        self.journal.flushed();
        Ok(())
    }

    /// Begins the journal anew, for a drive whose map is lost: `drive` is as new. For repair alone.
    pub(crate) fn start_anew(&mut self, drive: &Drive) -> Result<(), DeviceError> {
        self.journal = Journal::begin_anew(&mut self.space, self.header.journal_bytes)?;
        self.space.forget_sectors()?;
        self.faults.lost = Lost::default();
        self.stopped = None;
        assert_eq!(drive.disk.geometry.sectors().0, self.header.disk_sectors, "the drive is another");
        let mut notes = Vec::new();
        drive.layer.checkpoint(&mut notes);
        notes.iter().try_for_each(|note| self.journal.append(&mut self.space, note))?;
        self.barrier()
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
        let mut notes = Vec::new();
        layer.checkpoint(&mut notes);
        assert!(notes.iter().all(|note| note.tag < STORE_TAGS), "a layer's tag is one of the store's own");
        self.faults.lost.checkpoint(&mut notes);
        self.faults.known.checkpoint(&mut notes);
        let outcome = self.journal.checkpoint(&mut self.space, &notes);
        if let Err(error) = &outcome {
            self.stop(&error.to_string());
        }
        outcome
    }

    /// Stages what `step` reads. What was destroyed is an error: no layer reads what it let be destroyed. What is damaged in
    /// the image is staged as spoilt.
    fn read_into_staging(&mut self, step: &Step, staging: usize) -> Result<(), DeviceError> {
        self.unread.clear();
        let into = self.staging[staging].stage(step.lba.0, step.sectors as u64);
        self.space.read(region_of(step.medium), step.pba, into, &mut self.unread)?;
        if let Some(fault) = self.unread.iter().find(|fault| fault.kind == FaultKind::Destroyed) {
            return Err(error_of(step, fault));
        }
        for fault in &self.unread {
            let lba = step.lba + (fault.extent.start - step.pba);
            self.staging[staging].stage_spoilt(lba.0, fault.extent.sectors.0);
        }
        Ok(())
    }

    /// Reads what of `step` the transfers want, straight into them.
    fn read_for_host(&mut self, step: &Step, transfers: &mut [Transfer<'_>]) -> Result<(), DeviceError> {
        let sector_bytes = self.disk.sector_bytes as u64;
        for (number, transfer) in transfers.iter_mut().enumerate() {
            let Data::Read(into) = &mut transfer.data else { continue };
            let wanted_end = transfer.lba + into.len() as u64 / sector_bytes;
            let start = transfer.lba.max(step.lba.0);
            let end = wanted_end.min(step.lba.0 + step.sectors as u64);
            if start < end {
                let range = (start - transfer.lba) * sector_bytes..(end - transfer.lba) * sector_bytes;
                let part = &mut into[range.start as usize..range.end as usize];
                let first = step.pba + Sectors(start - step.lba.0);
                self.unread.clear();
                let outcome = self.space.read(region_of(step.medium), first, part, &mut self.unread);
                let fault = self.unread.first().map(|fault| error_of(step, fault));
                if let Some(error) = outcome.err().or(fault) {
                    self.leave_unserved(number, error);
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, step: &Step, is_host: bool, transfers: &[Transfer<'_>]) -> Result<(), DeviceError> {
        let spoilt = if step.kind == Kind::Data { self.spoilt_of(step, is_host, transfers) } else { Vec::new() };
        self.destroyed.clear();
        if !self.is_harmless && step.medium == Medium::Disk {
            self.disk.recording.destroys(&self.disk.geometry, step.extent(), &mut self.destroyed);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut pieces: Vec<Given<'_>> = Vec::new();
        if step.kind == Kind::Data {
            let host = if is_host { transfers } else { &[] };
            if !whole_from_host(step, host, self.disk.sector_bytes as u64, &mut pieces) {
                pieces = vec![self.composed(step, is_host, host, &mut scratch).into()];
            }
        }
        let (region, extent) = (region_of(step.medium), step.extent());
        let contents = (step.kind == Kind::Data).then_some(&pieces[..]);
        let outcome =
            self.space.write(&Write { region, extent, contents, spoilt: &spoilt, destroyed: &self.destroyed });
        self.scratch = scratch;
        outcome
    }

    /// What `step` would write of sectors that could not be read, unless the host gives them anew. They stay unreadable
    /// where they are written: a copy that nobody needs any more does no harm, and one that is needed cannot be read there.
    fn spoilt_of(&self, step: &Step, is_host: bool, transfers: &[Transfer<'_>]) -> Vec<Extent> {
        let spoilt = self.staging[usize::from(!is_host)].spoilt(step.lba.0, u64::from(step.sectors));
        if spoilt.is_empty() {
            return Vec::new();
        }
        let mut left = Lost::default();
        spoilt.iter().for_each(|&(lba, sectors)| left.insert(Lba(lba), Sectors(sectors)));
        for transfer in transfers.iter().filter(|_| is_host) {
            let sector_bytes = u64::from(self.disk.sector_bytes);
            let Some(sectors) = transfer.data.changed(self.keeps_trims, sector_bytes) else { continue };
            left.remove(Lba(transfer.lba), Sectors(sectors));
        }
        left.runs().map(|(lba, sectors)| Extent::new(step.pba + (lba - step.lba), sectors)).collect()
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
            let Some(sectors) = transfer.data.changed(self.keeps_trims, sector_bytes) else { continue };
            let start = transfer.lba.max(step.lba.0);
            let end = (transfer.lba + sectors).min(step.lba.0 + step.sectors as u64);
            if start >= end {
                continue;
            }
            let bytes = |from: u64, to: u64| (from * sector_bytes) as usize..(to * sector_bytes) as usize;
            let part = &mut scratch[bytes(start - step.lba.0, end - step.lba.0)];
            match transfer.data.given() {
                Some(given) => part.copy_from_slice(&given.bytes[bytes(start - transfer.lba, end - transfer.lba)]),
                None => part.fill(0),
            }
        }
        scratch
    }

    /// Calls `each` with the runs of bytes that make up `sectors` from `pba`, and whether something other than zeros may
    /// stand there: contents, or damage.
    pub fn for_each_stored(
        &mut self,
        medium: Medium,
        pba: Pba,
        sectors: Sectors,
        each: &mut impl FnMut(u64, bool),
    ) -> Result<(), DeviceError> {
        let region = region_of(medium);
        let absent_is_damage = self.disk.recording.leaves_damage_to_host() && region == Region::Disk;
        let sector_bytes = u64::from(self.disk.sector_bytes);
        self.space.for_each_class(region, Extent::new(pba, sectors), |extent, class| {
            let is_stored = match class {
                Class::Absent => absent_is_damage,
                Class::Zero => false,
                Class::Stored | Class::Destroyed | Class::Spoilt => true,
            };
            each(extent.sectors.0 * sector_bytes, is_stored);
        })
    }

    /// The bytes of sectors that `medium` holds from `pba` on, for whoever inspects an image; what cannot be read is zeros.
    pub fn peek(&mut self, medium: Medium, pba: Pba, into: &mut [u8]) -> Result<(), DeviceError> {
        let mut faults = Vec::new();
        self.space.read(region_of(medium), pba, into, &mut faults)
    }
}

/// Reads the journal of `space` into `layer`, and the store's own records out of it.
pub(crate) fn replay<M: Media>(
    space: &mut Space<M>,
    header: &Header,
    layer: &mut dyn Layer,
    place: &str,
) -> Result<(Journal, Faults), DeviceError> {
    let (mut faults, capacity) = (Faults::default(), layer.capacity());
    let journal = Journal::replay(space, header.journal_bytes, place, |note| {
        let taken = if note.tag >= STORE_TAGS { faults.replay(note, capacity) } else { layer.replay(note) };
        taken.map_err(Into::into)
    })?;
    Ok((journal, faults))
}

/// What a host is told of a sector that `step` cannot read.
fn error_of(step: &Step, fault: &Fault) -> DeviceError {
    let (pba, medium) = (fault.extent.start, step.medium);
    let lba = step.lba + (pba - step.pba);
    match fault.kind {
        FaultKind::Destroyed => DeviceError::Destroyed { lba, pba, medium },
        FaultKind::Damaged => DeviceError::Spoilt { lba, pba, medium },
    }
}

/// Puts into `pieces` the bytes of a write that transfers give whole, one behind the other, and says whether they do: such
/// bytes need no copy.
fn whole_from_host<'t>(
    step: &Step,
    transfers: &'t [Transfer<'_>],
    sector_bytes: u64,
    pieces: &mut Vec<Given<'t>>,
) -> bool {
    let (mut next, end) = (step.lba.0, step.lba.0 + u64::from(step.sectors));
    for transfer in transfers {
        let Some(sectors) = transfer.data.changed(true, sector_bytes) else { continue };
        let transfer_end = transfer.lba + sectors;
        if transfer_end <= step.lba.0 || transfer.lba >= end {
            continue;
        }
        // One that begins elsewhere overlaps another, or leaves something out.
        let begins = transfer.lba == next || next == step.lba.0 && transfer.lba < next;
        let Some(given) = transfer.data.given().filter(|_| begins) else { return false };
        let part = next - transfer.lba..transfer_end.min(end) - transfer.lba;
        pieces.push(given.part(part.start as usize..part.end as usize, sector_bytes as usize));
        next = transfer.lba + part.end;
    }
    next == end
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

#[cfg(test)]
pub(crate) mod tests;
