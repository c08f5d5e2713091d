//! A drive that has stopped: it takes nothing more, and goes on to read.
//!
//! What stopped it has left the layer in memory ahead of the image. So the image is opened once more, as after a power cut, with
//! all that mending writes kept in memory; reads are answered from that, and from what the volatile cache holds. They take no time.
//!
//! Invariants:
//! 1. Nothing is written to the medium once the drive has stopped, and the engine plans nothing more.
//! 2. A read brings what was acknowledged as durable, or something newer, or is an error.

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

/// What a stopped drive reads from.
#[derive(Default)]
pub(super) struct Halted {
    /// The medium, once somebody has read.
    medium: Option<Below>,
    /// The image as it is, once it was opened, or why it does not open.
    view: Option<Result<Box<View>, String>>,
}

impl EmulatedDrive {
    /// Whether it has stopped. Once it has, what was on its way is answered: reads by what there is, the others by an error.
    pub(super) fn has_halted(&mut self) -> bool {
        if self.stopped().is_none() {
            return false;
        }
        for io in self.engine.carrier_mut().requests.take_all() {
            self.complete_halted(io);
        }
        true
    }

    /// Answers `io` at once.
    pub(super) fn complete_halted(&mut self, mut io: Io) {
        let outcome = if io.kind == IoKind::Read { self.read_halted(&mut io) } else { self.check_running() };
        let now = self.now();
        self.engine.carrier_mut().completions.push(Completion::of(io, now, now, outcome));
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
        view.execute(&plan, &mut [Transfer { lba: first.0, data: Data::Read(&mut io.buffer) }])?;
        volatile.overlay(first.0, &mut io.buffer);
        Ok(())
    }

    /// Opens the image for reads, unless that was done; the layer is from now on that of the image. A medium that fails meanwhile
    /// may do better at the next read.
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
                Err(DeviceError::Stopped(format!("{stopped}; nor can it be read: {reason}")))
            }
            _ => Ok(()),
        }
    }

    /// The medium of the store, which keeps it: whoever cuts the power gets it from there.
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
