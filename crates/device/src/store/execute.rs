//! Executes plans step by step: reads into staging or directly to the host, writes composed of staged data and host
//! data, notes to the journal, barriers. The invariants are those of [`super`].

use imbrex_disk::{Extent, Lba, Sectors};
use imbrex_layer::{GroupKind, Kind, Medium, Phase, Plan, Step, StepOp};

use super::transfer::{Data, Transfer, gives_whole, whole_from_host};
use super::{Store, region_of};
use crate::error::DeviceError;
use crate::image::Region;
use crate::image::transfer::{Class, Fault, FaultKind, Given, Write};
use crate::lost::Lost;
use crate::media::Media;

impl<M: Media> Store<M> {
    /// Executes the steps of `plan` in order. `transfers` holds the data that the host writes in the plan, and the
    /// buffers for its reads.
    ///
    /// # Errors
    /// If sectors of the host's own reads are unreadable, the rest of the plan is executed, and the first of these
    /// errors is returned. Neither this nor a failed read in a plan that only reads for the host stops the store. Any
    /// other failure stops the store, including that of a barrier. A store that has stopped executes nothing.
    pub fn execute(&mut self, plan: &Plan, transfers: &mut [Transfer<'_>]) -> Result<(), DeviceError> {
        self.execute_each(plan, transfers, &NothingHeld)?;
        self.unserved.drain(..).next().map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Executes `plan`, which writes ranges of the volatile cache back. A range may combine several writes. On a caveat
    /// disk with DNOR = DID, the paper's formula gives sectors behind a range that none of its writes destroyed (Singh
    /// 2014 §3.2), so nothing is marked there.
    pub(crate) fn write_back(&mut self, plan: &Plan, transfers: &mut [Transfer<'_>]) -> Result<(), DeviceError> {
        let distances = self.disk.recording.caveat_distances();
        let is_harmless = self.is_harmless;
        self.is_harmless |= distances.is_some_and(|distances| distances.no_overlap == distances.isolation);
        let outcome = self.execute(plan, transfers);
        self.is_harmless = is_harmless;
        outcome
    }

    /// Marks the sectors that a write of `written` destroys, before the write itself. Returns whether there were
    /// readable ones among them. The marks are not durable until the next flush.
    pub(crate) fn mark_destroyed_by(&mut self, written: Extent) -> Result<bool, DeviceError> {
        self.check_running()?;
        self.destroyed.clear();
        self.disk.recording.destroys(&self.disk.geometry, written, &mut self.destroyed);
        let mut is_news = false;
        for extent in &self.destroyed {
            let see = |_, class| is_news |= matches!(class, Class::Zero | Class::Stored);
            self.space.for_each_class(Region::Disk, *extent, see)?;
        }
        if is_news {
            let nothing = Extent::new(written.start, Sectors(0));
            let (region, destroyed) = (Region::Disk, &self.destroyed[..]);
            let marked = self.space.write(&Write { region, extent: nothing, contents: None, spoilt: &[], destroyed });
            self.stop_if_failed(marked)?;
        }
        Ok(is_news)
    }

    /// Like [`Store::execute`], for several commands: a failed read of one transfer does not affect the others, and
    /// [`Store::take_unserved`] returns the failed ones. Sectors that `held` has need not be readable.
    pub(crate) fn execute_each(
        &mut self,
        plan: &Plan,
        transfers: &mut [Transfer<'_>],
        held: &dyn Held,
    ) -> Result<(), DeviceError> {
        self.unserved.clear();
        self.check_running()?;
        let outcome = self.execute_groups(plan, transfers, held).and_then(|()| self.end_faults(transfers));
        if let Err(error) = &outcome {
            let only_reads = plan.steps.iter().all(|step| matches!(step.op, StepOp::Read | StepOp::Barrier));
            if !only_reads || plan.phases.iter().any(|phase| phase.kind != GroupKind::Host) {
                self.stop(&error.to_string());
            }
        }
        outcome
    }

    /// Returns the failed reads of the latest plan: the number of the transfer and the error. Clears the list.
    pub(crate) fn take_unserved(&mut self) -> std::vec::Drain<'_, (usize, DeviceError)> {
        self.unserved.drain(..)
    }

    /// Records that transfer `number` failed. Only the first failure of a transfer counts.
    fn record_failed_read(&mut self, number: usize, error: DeviceError) {
        if self.unserved.iter().all(|&(known, _)| known != number) {
            self.unserved.push((number, error));
        }
    }

    fn execute_groups(
        &mut self,
        plan: &Plan,
        transfers: &mut [Transfer<'_>],
        held: &dyn Held,
    ) -> Result<(), DeviceError> {
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
                    StepOp::Read if is_host && is_direct => self.read_for_host(step, transfers, held)?,
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
                self.give_staged(transfers, held);
            }
        }
        Ok(())
    }

    /// Copies staged data to the reads of a host group.
    fn give_staged(&mut self, transfers: &mut [Transfer<'_>], held: &dyn Held) {
        let sector_bytes = u64::from(self.disk.sector_bytes);
        for (number, transfer) in transfers.iter_mut().enumerate() {
            let Data::Read(into) = &mut transfer.data else { continue };
            let sectors = into.len() as u64 / sector_bytes;
            let spoilt = self.staging[0].spoilt(transfer.lba, sectors);
            let needed = spoilt.iter().find_map(|&(lba, sectors)| held.first_missing(lba, lba + sectors));
            if let Some(lba) = needed {
                self.record_failed_read(number, DeviceError::Lost { lba: Lba(lba) });
            }
            self.staging[0].overlay(transfer.lba, into);
        }
    }

    /// Reads the sectors of `step` into staging. Sectors that are damaged in the image are staged as unreadable.
    ///
    /// # Errors
    /// A sector was destroyed: no layer reads sectors that it allowed to be destroyed.
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

    /// Reads the sectors of `step` that the transfers ask for, directly into their buffers.
    fn read_for_host(
        &mut self,
        step: &Step,
        transfers: &mut [Transfer<'_>],
        held: &dyn Held,
    ) -> Result<(), DeviceError> {
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
                let fault = self.unread.iter().find_map(|fault| {
                    let lba = step.lba + (fault.extent.start - step.pba);
                    let needed = held.first_missing(lba.0, (lba + fault.extent.sectors).0)?;
                    Some(error_at(step, fault.kind, Lba(needed)))
                });
                if let Some(error) = outcome.err().or(fault) {
                    self.record_failed_read(number, error);
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

    /// Returns the extents that `step` would write with contents that could not be read, unless the host writes them.
    /// The written sectors become unreadable. That does no harm if the copy is not needed any more, and reports the
    /// loss if it is.
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

    /// Returns the bytes to write: zeros, overwritten by staged data, and in a host group by the host's own data.
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
}

/// Sectors that are held elsewhere in a newer version, such as in the volatile cache.
pub(crate) trait Held {
    /// Returns the first of the sectors `start..end` that is not held.
    fn first_missing(&self, start: u64, end: u64) -> Option<u64>;
}

/// No sector is held elsewhere.
struct NothingHeld;

impl Held for NothingHeld {
    fn first_missing(&self, start: u64, end: u64) -> Option<u64> {
        (start < end).then_some(start)
    }
}

/// Returns the error that a host gets for a run of sectors that `step` cannot read.
fn error_of(step: &Step, fault: &Fault) -> DeviceError {
    error_at(step, fault.kind, step.lba + (fault.extent.start - step.pba))
}

/// Returns the error that a host gets for sector `lba`, which `step` cannot read.
fn error_at(step: &Step, kind: FaultKind, lba: Lba) -> DeviceError {
    let (pba, medium) = (step.pba + (lba - step.lba), step.medium);
    match kind {
        FaultKind::Destroyed => DeviceError::Destroyed { lba, pba, medium },
        FaultKind::Damaged => DeviceError::Corrupt { lba, pba, medium },
    }
}

/// Returns the index of the phase after the host group of phase `index`. A phase of another kind ends the group:
/// without `opens_group` it continues a group of an earlier plan.
fn host_group_end(plan: &Plan, index: usize) -> usize {
    let ends = |phase: &Phase| phase.opens_group || phase.kind != GroupKind::Host;
    (index + 1..plan.phases.len()).find(|&next| ends(&plan.phases[next])).unwrap_or(plan.phases.len())
}

fn only_reads(plan: &Plan, first: usize) -> bool {
    (first..host_group_end(plan, first))
        .all(|index| plan.steps_of(index).iter().all(|step| matches!(step.op, StepOp::Read | StepOp::Barrier)))
}
