//! What a host gives to a plan and wants from it, by logical sector.

use imbrex_layer::{GroupKind, Kind, Plan, Step, StepOp};

use crate::image::transfer::Given;

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
    pub(super) fn given(&self) -> Option<Given<'a>> {
        match self {
            Data::Write(from) => Some((*from).into()),
            Data::Summed(given) => Some(*given),
            Data::Read(_) | Data::Trim(_) => None,
        }
    }

    /// How many sectors it changes: those it gives, and those it trims if `keeps_trims`.
    pub(super) fn changed(&self, keeps_trims: bool, sector_bytes: u64) -> Option<u64> {
        match self {
            Data::Trim(sectors) => keeps_trims.then_some(*sectors),
            other => other.given().map(|given| given.bytes.len() as u64 / sector_bytes),
        }
    }
}

/// Puts into `pieces` the bytes of a write that transfers give whole, one behind the other, and says whether they do: such
/// bytes need no copy.
pub(super) fn whole_from_host<'t>(
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
pub(super) fn gives_whole(plan: &Plan, transfers: &[Transfer<'_>], sector_bytes: u64) -> bool {
    let ([Transfer { lba, data: Data::Read(into) }], [step], [phase]) = (transfers, &plan.steps[..], &plan.phases[..])
    else {
        return false;
    };
    let end = lba + into.len() as u64 / sector_bytes;
    let is_read = step.op == StepOp::Read && step.kind == Kind::Data && phase.kind == GroupKind::Host;
    is_read && phase.opens_group && step.lba.0 <= *lba && step.lba.0 + u64::from(step.sectors) >= end
}
