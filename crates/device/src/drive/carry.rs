//! The carrier of an emulated drive: moves bytes between requests, the volatile cache and the store, as the engine
//! directs.
//!
//! Invariants:
//! 1. Every sector that is dirty in the engine's cache has its bytes here, and no other sector has.
//! 2. A failure that leaves the layer ahead of the image stops the store. Every later request except a read then
//!    completes with an error, because the data that the volatile cache accepted for it may be lost.
//! 3. A failed read affects no other read of its batch. A failure of the whole plan fails all requests of the batch.
//! 4. On a caveat disk, the sectors that a write destroys are durably marked before the write is answered. Sectors in
//!    the volatile cache are readable, whatever the marks.
//! 5. A read of a zone returns the written data below the write pointer and zeros past it, whatever the medium
//!    contains there.

use imbrex_disk::{Command, Extent, Lba, Operation, Pba, Sectors, SimTime};
use imbrex_layer::{Cause, GroupKind, Layer, Plan, ZoneError, Zones};
use imbrex_sim::queue::Waiting;
use imbrex_sim::{Carrier, Drive};

use super::requests::{Completion, IoKind, Requests};
use crate::error::DeviceError;
use crate::media::Media;
use crate::store::{Data, Store, Transfer};
use crate::volatile::{Dirty, Volatile};

/// Most bytes of buffers kept for reuse. Reuse pays because allocating a buffer costs more than copying the data into
/// it.
const SPARE_BYTES_MAX: usize = 32 << 20;

/// Unused buffers, the most recently used one last.
#[derive(Debug, Default)]
struct Spare {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl Spare {
    /// Returns an unused buffer, or a new one.
    fn take(&mut self) -> Vec<u8> {
        let buffer = self.buffers.pop().unwrap_or_default();
        self.bytes -= buffer.capacity();
        buffer
    }

    /// Keeps a buffer for reuse, or frees it if more than [`SPARE_BYTES_MAX`] bytes would be kept.
    fn keep(&mut self, buffer: Vec<u8>) {
        if self.bytes + buffer.capacity() <= SPARE_BYTES_MAX {
            self.bytes += buffer.capacity();
            self.buffers.push(buffer);
        }
    }
}

/// The carrier of a drive: its store, its requests, and the bytes of its volatile cache.
pub(super) struct StoreCarrier {
    pub(super) store: Store<Box<dyn Media>>,
    pub(super) requests: Requests,
    pub(super) completions: Vec<Completion>,
    /// Whether there is no volatile cache, so that every write and every TRIM is durable when it completes.
    pub(super) is_written_through: bool,
    /// Whether writes destroy sectors that the host wrote, and are marked when they are accepted.
    is_caveat: bool,
    volatile: Volatile,
    pieces: Vec<(u64, Dirty)>,
    /// Requests of the last batch that failed individually, by number, until they are completed.
    failed: Vec<(u64, DeviceError)>,
    /// Buffers of the batch that is being served.
    buffers: Vec<Vec<u8>>,
    /// Buffers released by the volatile cache, to replace the buffers of requests that it keeps.
    spare: Spare,
    /// Plan of zone reads, without the sectors that were not written.
    zone_reads: Plan,
    sector_bytes: u64,
}

impl StoreCarrier {
    pub(super) fn new(store: Store<Box<dyn Media>>, drive: &Drive) -> StoreCarrier {
        let sector_bytes = drive.disk.sector_bytes;
        StoreCarrier {
            store,
            requests: Requests::default(),
            completions: Vec::new(),
            is_written_through: drive.host.write_cache_bytes == 0,
            is_caveat: drive.caveat_distances().is_some(),
            volatile: Volatile::new(sector_bytes),
            pieces: Vec::new(),
            failed: Vec::new(),
            buffers: Vec::new(),
            spare: Spare::default(),
            zone_reads: Plan::new(),
            sector_bytes: u64::from(sector_bytes),
        }
    }

    /// Returns the bytes of the volatile cache.
    pub(super) fn volatile(&self) -> &Volatile {
        &self.volatile
    }

    /// Stops the store because of `error`: the bytes of a plan could not be moved.
    pub(super) fn stop(&mut self, error: &DeviceError) {
        self.store.stop(&error.to_string());
    }

    /// Marks durably the sectors that a write of `command` destroys on a caveat disk, before the write itself.
    fn mark_ahead(&mut self, command: &Command) -> Result<(), DeviceError> {
        if !self.is_caveat {
            return Ok(());
        }
        let written = Extent::new(Pba(command.lba.0), Sectors(u64::from(command.sectors)));
        if self.store.mark_destroyed_by(written)? {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.store.flush().inspect_err(|error| self.store.stop(&error.to_string()))
    }

    /// Records the reads of a batch that touch lost or unreadable sectors, except sectors that the cache holds.
    fn check_readable(&mut self, batch: &[Waiting]) {
        for Waiting { command, sequence, .. } in batch {
            if command.operation != Operation::Read {
                continue;
            }
            let is_dirty = |start, end| self.volatile.covers(start, end);
            if let Err(error) = self.store.check_readable(command.lba, Sectors(u64::from(command.sectors)), is_dirty) {
                self.failed.push((*sequence, error));
            }
        }
    }

    /// Records the requests of a batch for which the store could not read.
    fn keep_unserved(&mut self, batch: &[Waiting]) {
        for (number, error) in self.store.take_unserved() {
            let mut with_transfer = batch.iter().filter(|waiting| waiting.command.operation != Operation::Flush);
            let waiting = with_transfer.nth(number).expect("each request but a flush has its transfer");
            self.failed.push((waiting.sequence, error));
        }
    }

    /// Executes `plan` for `batch`, whose bytes are in `buffers`. Failures of single requests are added to `failed`.
    fn execute(
        &mut self,
        batch: &[Waiting],
        plan: &Plan,
        layer: &dyn Layer,
        buffers: &mut [Vec<u8>],
    ) -> Result<(), DeviceError> {
        let mut transfers: Vec<Transfer<'_>> = Vec::with_capacity(batch.len());
        let mut wants_barrier = false;
        for (Waiting { command, .. }, buffer) in batch.iter().zip(buffers) {
            let data = match command.operation {
                Operation::Read => {
                    buffer.resize(command.sectors as usize * self.sector_bytes as usize, 0);
                    Data::Read(buffer)
                }
                Operation::Write => {
                    wants_barrier |= command.fua || self.is_written_through || self.is_caveat;
                    Data::Write(buffer)
                }
                Operation::Trim => {
                    wants_barrier |= self.is_written_through;
                    Data::Trim(u64::from(command.sectors))
                }
                Operation::Flush => {
                    wants_barrier = true;
                    continue;
                }
            };
            transfers.push(Transfer { lba: command.lba.0, data });
        }
        match layer.zones() {
            Some(zones) if batch[0].command.operation == Operation::Read => {
                read_what_was_written(zones, batch, &mut self.zone_reads)?;
                self.store.execute_each(&self.zone_reads, &mut transfers, &self.volatile)?;
            }
            zones => {
                if let Some(zones) = zones {
                    check_order(zones, batch.iter().map(|waiting| &waiting.command));
                }
                self.store.execute_each(plan, &mut transfers, &self.volatile)?;
            }
        }
        self.keep_unserved(batch);
        if wants_barrier { self.flush() } else { Ok(()) }
    }
}

/// Fills `plan` with the reads of `batch`, each limited to the written part of its zones.
fn read_what_was_written(zones: &Zones, batch: &[Waiting], plan: &mut Plan) -> Result<(), ZoneError> {
    plan.clear();
    plan.open(GroupKind::Host);
    for Waiting { command, .. } in batch {
        assert_eq!(command.operation, Operation::Read, "reads of zones are joined by reads alone");
        let (mut next, end) = (command.lba, command.end());
        while next < end {
            let zone = zones.zone(zones.index_of(next)?)?;
            let part_end = (zone.start + zone.sectors).min(end);
            let written_end = (zone.start + zones.written(zone.index)?).min(part_end);
            if next < written_end {
                plan.read(Cause::Host, zones.native(next), next, written_end - next);
            }
            next = part_end;
        }
    }
    Ok(())
}

/// Checks that each write of `commands` ends at the write pointer of its zone, which the layer has already moved.
///
/// # Panics
///
/// A zone was not written in order.
fn check_order<'c>(zones: &Zones, commands: impl Iterator<Item = &'c Command>) {
    for command in commands.filter(|command| command.operation == Operation::Write) {
        let end = command.end();
        let last = zones.index_of(Lba(end.0 - 1)).expect("a write that was accepted lies in zones");
        if last >= zones.conventional() {
            let start = zones.zone(last).expect("it has this zone").start;
            let written = zones.written(last).expect("a zone that takes writes can be read");
            assert_eq!(start + written, end, "zone {last} was not written in order: invariant 4 of the engine");
        }
    }
}

/// Returns a copy of `error`, for each of the requests that share it.
fn again(error: &DeviceError) -> DeviceError {
    match error {
        DeviceError::Destroyed { lba, pba, medium } => DeviceError::Destroyed { lba: *lba, pba: *pba, medium: *medium },
        DeviceError::Corrupt { lba, pba, medium } => DeviceError::Corrupt { lba: *lba, pba: *pba, medium: *medium },
        DeviceError::Lost { lba } => DeviceError::Lost { lba: *lba },
        DeviceError::Unreadable { lba } => DeviceError::Unreadable { lba: *lba },
        DeviceError::Zone(error) => DeviceError::Zone(*error),
        DeviceError::Stopped(reason) => DeviceError::Stopped(reason.clone()),
        DeviceError::Medium { what, cause } => {
            let cause = match cause.raw_os_error() {
                Some(number) => std::io::Error::from_raw_os_error(number),
                None => std::io::Error::new(cause.kind(), cause.to_string()),
            };
            DeviceError::Medium { what: what.clone(), cause }
        }
        other => DeviceError::Refused(other.to_string()),
    }
}

impl Carrier for StoreCarrier {
    type Error = DeviceError;

    fn entered(&mut self, number: u64, command: &Command) {
        self.requests.enter(number, command, self.sector_bytes);
    }

    fn rejected(&mut self, number: u64, at: SimTime, reason: &'static str) {
        let io = self.requests.reject(number);
        let outcome = Err(DeviceError::Refused(reason.into()));
        self.completions.push(Completion::of(number, io, at, at, outcome));
    }

    fn absorb(&mut self, number: u64, command: &Command) -> Result<(), DeviceError> {
        self.mark_ahead(command)?;
        let instead = self.spare.take();
        let bytes = std::mem::replace(&mut self.requests.entered(number).buffer, instead);
        let expected = command.sectors as usize * self.sector_bytes as usize;
        assert_eq!(bytes.len(), expected, "a write into the cache has other bytes than its command: invariant 1");
        self.volatile.insert(command.lba.0, bytes);
        Ok(())
    }

    fn read_from_cache(&mut self, number: u64, command: &Command) {
        let buffer = &mut self.requests.entered(number).buffer;
        buffer.resize(command.sectors as usize * self.sector_bytes as usize, 0);
        let held = self.volatile.overlay(command.lba.0, buffer);
        assert_eq!(held, u64::from(command.sectors), "the cache lacks sectors of a read that it answers: invariant 1");
    }

    fn discard(&mut self, command: &Command) {
        self.volatile.remove(command.lba.0, command.end().0);
    }

    fn serve(&mut self, batch: &[Waiting], plan: &Plan, layer: &dyn Layer) -> Result<(), DeviceError> {
        let mut buffers = std::mem::take(&mut self.buffers);
        buffers.extend(batch.iter().map(|waiting| std::mem::take(&mut self.requests.entered(waiting.sequence).buffer)));
        self.check_readable(batch);
        let outcome = self.execute(batch, plan, layer, &mut buffers);
        for (Waiting { command, sequence, .. }, mut buffer) in batch.iter().zip(buffers.drain(..)) {
            if command.operation == Operation::Read && outcome.is_ok() {
                self.volatile.overlay(command.lba.0, &mut buffer);
            }
            self.requests.entered(*sequence).buffer = buffer;
        }
        self.buffers = buffers;
        outcome
    }

    fn destage(&mut self, commands: &[Command], plan: &Plan, layer: &dyn Layer) -> Result<(), DeviceError> {
        if let Some(zones) = layer.zones() {
            check_order(zones, commands.iter());
        }
        self.pieces.clear();
        for command in commands {
            self.volatile.take(command.lba.0, command.end().0, &mut self.pieces);
        }
        let taken: usize = self.pieces.iter().map(|(_, dirty)| dirty.bytes().len()).sum();
        let sectors: u64 = commands.iter().map(|command| u64::from(command.sectors)).sum();
        assert_eq!(taken as u64, sectors * self.sector_bytes, "dirty sectors have no bytes: invariant 1");
        let mut transfers: Vec<_> =
            self.pieces.iter().map(|(lba, dirty)| Transfer { lba: *lba, data: Data::Summed(dirty.given()) }).collect();
        self.store.lend(&mut self.pieces.iter().map(|(_, dirty)| dirty.block()));
        let outcome = self.store.write_back(plan, &mut transfers);
        while let Some(buffer) = self.store.reclaim() {
            self.spare.keep(buffer);
        }
        self.store.lend(&mut std::iter::empty());
        if outcome.is_err() {
            // The host must still be able to read acknowledged data while the drive runs.
            self.pieces.iter().for_each(|(lba, dirty)| self.volatile.insert(*lba, dirty.bytes().to_vec()));
        }
        for buffer in self.pieces.drain(..).filter_map(|(_, dirty)| dirty.into_buffer()) {
            self.spare.keep(buffer);
        }
        outcome
    }

    fn background(&mut self, plan: &Plan) -> Result<(), DeviceError> {
        self.store.execute(plan, &mut [])
    }

    fn complete(&mut self, number: u64, entry: SimTime, end: SimTime, outcome: Result<(), &DeviceError>) {
        let io = self.requests.complete(number);
        let own = self.failed.iter().position(|&(failed, _)| failed == number);
        let own = own.map(|index| self.failed.swap_remove(index).1);
        let outcome = match (outcome, own, self.store.stopped()) {
            (Err(error), ..) => Err(again(error)),
            (Ok(()), Some(error), _) => Err(error),
            (Ok(()), None, Some(reason)) if io.kind != IoKind::Read => Err(DeviceError::Stopped(reason.into())),
            (Ok(()), None, _) => Ok(()),
        };
        self.completions.push(Completion::of(number, io, entry, end, outcome));
    }
}

#[cfg(test)]
mod tests {
    use imbrex_disk::{Profile, SimDuration};
    use imbrex_sim::DriveSpec;

    use super::*;
    use crate::drive::requests::{Io, IoKind};
    use crate::drive::{Making, header_of};
    use crate::media::memory::Memory;
    use imbrex_layer::registry;
    use imbrex_layer::verify::toy;

    #[test]
    fn spare_buffers_are_bounded_in_bytes() {
        let mut spare = Spare::default();
        assert_eq!(spare.take().capacity(), 0, "there is none yet");
        for mebibytes in [20, 20, 8, 8, 4] {
            spare.keep(Vec::with_capacity(mebibytes << 20));
        }
        // The second buffer of 20 MiB and the second of 8 MiB would exceed the limit.
        let taken: Vec<usize> = (0..4).map(|_| spare.take().capacity() >> 20).collect();
        assert_eq!((taken, spare.bytes), (vec![4, 8, 20, 0], 0));
    }

    /// Checks that of reads served together only those of unreadable sectors fail. Method: four adjacent reads, one of a
    /// lost sector and one of a damaged one. No layer joins reads by itself, so the test builds the batch.
    #[test]
    fn of_joined_reads_those_that_meet_a_bad_sector_fail() {
        const SECTORS: u64 = 8;
        let spec = DriveSpec::parse("cmr-7200:geometry.tracks=2000").expect("right words");
        let profile = Profile::named(&spec.profile).expect("it is built in");
        let drive = imbrex_sim::Drive::build(&spec, &profile).expect("it can be built");
        let header = header_of(&drive, &spec, &Making::default()).expect("it may hold data");
        let media: Box<dyn Media> = Box::new(Memory::new());
        let (mut drive, mut store) = Store::create_of(media, header, drive).expect("memory takes it");
        let (contents, mut plan): (Vec<u8>, _) =
            ((0..32u8).flat_map(|sector| [sector + 1; 512]).collect(), Plan::new());
        drive.layer.plan(&[Command::write(0, 32)], &mut plan);
        store.execute(&plan, &mut [Transfer { lba: 0, data: Data::Write(&contents) }]).expect("memory takes it");
        store.lose(Lba(9), Sectors(1)).expect("memory takes it");
        let mut sector = [0; 512];
        let media = store.space_mut().media_mut();
        let at = (0..media.len()).step_by(512).find(|&at| {
            media.read_at(at, &mut sector).expect("it is memory");
            sector == [21; 512]
        });
        media.write_at(at.expect("sector 20 was written"), &[99; 512]).expect("it is memory");

        let mut bytes = StoreCarrier::new(store, &drive);
        let mut batch = Vec::new();
        plan.clear();
        for number in 0..4 {
            let command = Command::read(number * SECTORS, SECTORS as u32);
            let (offset, length) = (number * SECTORS * 512, SECTORS * 512);
            bytes.requests.submit(number, Io { kind: IoKind::Read, offset, length, buffer: Vec::new() });
            bytes.entered(number, &command);
            let (entry, cleaning_before) = (SimTime::ZERO, SimDuration::ZERO);
            batch.push(Waiting {
                command,
                arrival: None,
                due: entry,
                entry,
                sequence: number,
                cleaning_before,
                target: None,
            });
            drive.layer.plan(&[command], &mut plan);
        }
        bytes.serve(&batch, &plan, drive.layer.as_ref()).expect("the plan itself can be carried out");
        (0..4).for_each(|number| bytes.complete(number, SimTime::ZERO, SimTime::ZERO, Ok(())));
        let [first, lost, damaged, last] = &bytes.completions[..] else { panic!("four were served") };
        for (completion, number) in [(first, 0), (last, 3)] {
            assert!(completion.outcome.is_ok(), "{:?}", completion.outcome);
            assert!(completion.buffer == contents[number * 4096..][..4096], "read {number} brings other bytes");
        }
        assert!(matches!(lost.outcome, Err(DeviceError::Lost { lba: Lba(9) })), "{:?}", lost.outcome);
        assert!(matches!(damaged.outcome, Err(DeviceError::Corrupt { lba: Lba(20), .. })), "{:?}", damaged.outcome);
        assert!(bytes.failed.is_empty() && bytes.store.stopped().is_none());
    }

    /// Returns a zoned toy whose first zone is conventional; 5 sectors of zone 1 and 3 of zone 2 are written.
    fn zoned() -> Box<dyn Layer> {
        let disk = toy::disks("conventional").next().expect("there is one").disk;
        let words =
            [("zone_size", "10000"), ("conventional_zones", "1")].map(|(key, value)| (key.into(), value.into()));
        let mut layer = registry::build("zoned", &disk, &words).expect("it takes the toy");
        let zone = zone_sectors(layer.as_ref());
        layer.plan(&[Command::write(zone, 5)], &mut Plan::new());
        layer.plan(&[Command::write(2 * zone, 3)], &mut Plan::new());
        layer
    }

    fn zone_sectors(layer: &dyn Layer) -> u64 {
        layer.zones().expect("it has zones").zone_sectors().0
    }

    #[test]
    fn a_read_of_zones_goes_as_far_as_they_are_written() {
        let layer = zoned();
        let (zones, zone) = (layer.zones().expect("it has zones"), zone_sectors(layer.as_ref()));
        let reads = |commands: &[(u64, u32)]| {
            let waiting = |&(lba, sectors): &(u64, u32)| Waiting {
                command: Command::read(lba, sectors),
                arrival: None,
                due: SimTime::ZERO,
                entry: SimTime::ZERO,
                sequence: 0,
                cleaning_before: SimDuration(0),
                target: None,
            };
            let batch: Vec<Waiting> = commands.iter().map(waiting).collect();
            let mut plan = Plan::new();
            read_what_was_written(zones, &batch, &mut plan).expect("all zones can be read");
            let is_right = |step: &imbrex_layer::Step| step.pba == zones.native(step.lba);
            assert!(plan.phases.len() == 1 && plan.steps.iter().all(is_right), "{plan:?}");
            plan.steps.iter().map(|step| (step.lba.0, u64::from(step.sectors))).collect::<Vec<_>>()
        };
        assert_eq!(reads(&[(zone, 5)]), [(zone, 5)]);
        assert_eq!(reads(&[(zone + 1, 3)]), [(zone + 1, 3)]);
        assert_eq!(reads(&[(zone + 3, 9)]), [(zone + 3, 2)], "over the pointer");
        assert_eq!(reads(&[(zone + 5, 9)]), [], "from the pointer on");
        assert_eq!(reads(&[(zone + 7, 2), (2 * zone + 2, 4)]), [(2 * zone + 2, 1)], "of each command its own");
        let across = reads(&[(zone + 4, 2 * zone as u32)]);
        assert_eq!(across, [(zone + 4, 1), (2 * zone, 3)], "over three zones, the last of them empty");
        assert_eq!(reads(&[(zone - 2, 4)]), [(zone - 2, 2), (zone, 2)], "a conventional zone is read whole");
    }

    #[test]
    fn zones_end_where_their_latest_write_does() {
        let layer = zoned();
        let (zones, zone) = (layer.zones().expect("it has zones"), zone_sectors(layer.as_ref()));
        check_order(zones, [Command::write(zone, 5), Command::write(2 * zone, 3)].iter());
        // No other command moves a pointer, and a conventional zone has none.
        check_order(zones, [Command::read(zone, 4), Command::trim(zone, 4), Command::write(7, 2)].iter());
        let breach = || check_order(zones, [Command::write(zone, 4)].iter());
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(breach)).is_err(), "zone 1 ends behind it");
    }

    #[test]
    fn an_error_is_the_same_for_all_who_share_it() {
        let full = DeviceError::medium("writing 512 bytes", std::io::Error::from_raw_os_error(28));
        assert_eq!(again(&full).to_string(), full.to_string());
        let zone = DeviceError::Zone(ZoneError::NoSuchZone { zone: 3, zones: 2 });
        assert!(matches!(again(&zone), DeviceError::Zone(ZoneError::NoSuchZone { zone: 3, .. })));
    }
}
