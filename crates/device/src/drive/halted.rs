//! A drive that has stopped after a failure: it refuses all requests except reads.
//!
//! The failure has left the layer in memory ahead of the image. So the image is opened again, as after a power cut,
//! with all writes of the recovery kept in memory. Reads are answered from this view and from the volatile cache, in
//! no simulated time.
//!
//! Invariants:
//! 1. Nothing is written to the medium once the drive has stopped, and the engine makes no more plans.
//! 2. A read returns durable acknowledged data or newer data, or fails.

use imbrex_disk::{Lba, Sectors};
use imbrex_layer::{Cause, GroupKind, Kind, Plan, StepOp};

use super::{Completion, EmulatedDrive, Io, IoKind};
use crate::check::below_pointer;
use crate::error::DeviceError;
use crate::media::Media;
use crate::media::memory::Memory;
use crate::media::overlay::Overlay;
use crate::media::shared::Shared;
use crate::store::{Data, Store, Transfer};

type Below = Shared<Box<dyn Media>>;
type View = Store<Overlay<Below>>;

/// Source of reads of a stopped drive.
#[derive(Default)]
pub(super) struct Halted {
    /// The medium, once the first read has come.
    medium: Option<Below>,
    /// The image as opened for reads, or the reason why it does not open; `None` before the first read.
    view: Option<Result<Box<View>, String>>,
}

impl EmulatedDrive {
    /// Returns whether the drive has stopped. If so, answers all requests in flight: reads from the image and the
    /// cache, others with an error.
    pub(super) fn has_halted(&mut self) -> bool {
        if self.stopped().is_none() {
            return false;
        }
        for (number, io) in self.engine.carrier_mut().requests.take_all() {
            self.complete_halted(number, io);
        }
        true
    }

    /// Answers request `number`, `io`, at once.
    pub(super) fn complete_halted(&mut self, number: u64, mut io: Io) {
        let outcome = if io.kind == IoKind::Read { self.read_halted(&mut io) } else { self.check_running() };
        let now = self.now();
        self.engine.carrier_mut().completions.push(Completion::of(number, io, now, now, outcome));
    }

    fn read_halted(&mut self, io: &mut Io) -> Result<(), DeviceError> {
        self.open_view()?;
        let sector = u64::from(self.sector_bytes());
        let (first, sectors) = (Lba(io.offset / sector), Sectors(io.length / sector));
        let layer = &self.engine.drive().layer;
        let (mut pieces, mut plan) = (Vec::new(), Plan::new());
        layer.lookup(first, sectors, &mut pieces);
        plan.open(GroupKind::Host);
        for piece in pieces.iter().map(|piece| below_pointer(layer.as_ref(), piece)) {
            let Some((medium, pba)) = piece.at.filter(|_| !piece.sectors.is_zero()) else { continue };
            plan.access(StepOp::Read, medium, Kind::Data, Cause::Host, pba, piece.lba, piece.sectors);
        }
        io.buffer.resize(io.length as usize, 0);
        let Some(Ok(view)) = &mut self.halted.view else { unreachable!("it was opened just now") };
        let volatile = self.engine.carrier().volatile();
        view.check_readable(first, sectors, |start, end| volatile.covers(start, end))?;
        let mut transfer = [Transfer { lba: first.0, data: Data::Read(&mut io.buffer) }];
        view.execute_each(&plan, &mut transfer, volatile)?;
        if let Some((_, error)) = view.take_unserved().next() {
            return Err(error);
        }
        volatile.overlay(first.0, &mut io.buffer);
        Ok(())
    }

    /// Opens the image for reads, if that has not been done, and replaces the layer by that of the image. If the
    /// medium fails, the next read tries again.
    pub(super) fn open_view(&mut self) -> Result<(), DeviceError> {
        if self.halted.view.is_none() {
            let medium = self.shared_medium();
            let place = self.drive().label.clone();
            self.halted.view = match Store::open(Overlay::new(medium), &place) {
                Ok((opened, view)) => {
                    self.engine.drive_and_carrier().0.layer = opened.layer;
                    Some(Ok(Box::new(view)))
                }
                Err(error @ DeviceError::Medium { .. }) => return Err(error),
                Err(error) => Some(Err(error.to_string())),
            };
        }
        match &self.halted.view {
            Some(Err(reason)) => {
                let stopped = self.stopped().unwrap_or_default();
                Err(DeviceError::Stopped(format!("{stopped}; the image cannot be read either: {reason}")))
            }
            _ => Ok(()),
        }
    }

    /// Returns shared access to the medium. The store keeps its own access, so [`EmulatedDrive::power_cut`] can still
    /// return the medium.
    fn shared_medium(&mut self) -> Below {
        let media = self.engine.carrier_mut().store.space_mut().media_mut();
        let shared = self.halted.medium.get_or_insert_with(|| {
            let shared = Shared::new(std::mem::replace(media, Box::new(Memory::new())));
            *media = Box::new(shared.clone());
            shared
        });
        shared.clone()
    }
}
