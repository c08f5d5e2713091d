//! Transfers: the data that a host writes in a plan, and the buffers that it reads into, by logical sector.

use imbrex_layer::{GroupKind, Kind, Plan, Step, StepOp};

use crate::image::transfer::Given;

/// The host's side of one command in a plan: a run of logical sectors to write, to read or to trim.
#[derive(Debug)]
pub struct Transfer<'a> {
    /// LBA of the first logical sector of the run.
    pub lba: u64,
    /// Bytes to write, buffer to fill, or number of sectors to trim.
    pub data: Data<'a>,
}

/// Bytes, buffer or length of a transfer. Bytes and buffers are whole sectors.
#[derive(Debug)]
pub enum Data<'a> {
    /// Bytes to write for the host.
    Write(&'a [u8]),
    /// Bytes to write for the host, with the content-dependent parts of their checksums computed in advance.
    Summed(Given<'a>),
    /// Buffer to fill with the sectors that the host reads.
    Read(&'a mut [u8]),
    /// Number of sectors that the host trims.
    Trim(u64),
}

impl<'a> Data<'a> {
    /// Returns the bytes that the host writes, if it writes any.
    pub(super) fn given(&self) -> Option<Given<'a>> {
        match self {
            Data::Write(from) => Some((*from).into()),
            Data::Summed(given) => Some(*given),
            Data::Read(_) | Data::Trim(_) => None,
        }
    }

    /// Returns the number of sectors that the transfer changes: those it writes, and, if `keeps_trims`, those it trims.
    /// Returns `None` for others.
    pub(super) fn changed(&self, keeps_trims: bool, sector_bytes: u64) -> Option<u64> {
        match self {
            Data::Trim(sectors) => keeps_trims.then_some(*sectors),
            other => other.given().map(|given| given.bytes.len() as u64 / sector_bytes),
        }
    }
}

/// Appends the host's data for the write `step` to `pieces`, in order, if transfers provide all of it. Returns whether
/// they do; if so, the bytes need not be copied. If not, `pieces` may hold a part.
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
        // A transfer that begins elsewhere overlaps another, or leaves a gap.
        let begins = transfer.lba == next || next == step.lba.0 && transfer.lba < next;
        let Some(given) = transfer.data.given().filter(|_| begins) else { return false };
        let part = next - transfer.lba..transfer_end.min(end) - transfer.lba;
        pieces.push(given.part(part.start as usize..part.end as usize, sector_bytes as usize));
        next = transfer.lba + part.end;
    }
    next == end
}

/// Returns whether the plan is a single host read that fills its only transfer completely, so the buffer need not be
/// zeroed first.
pub(super) fn gives_whole(plan: &Plan, transfers: &[Transfer<'_>], sector_bytes: u64) -> bool {
    let ([Transfer { lba, data: Data::Read(into) }], [step], [phase]) = (transfers, &plan.steps[..], &plan.phases[..])
    else {
        return false;
    };
    let end = lba + into.len() as u64 / sector_bytes;
    let is_read = step.op == StepOp::Read && step.kind == Kind::Data && phase.kind == GroupKind::Host;
    is_read && phase.opens_group && step.lba.0 <= *lba && step.lba.0 + u64::from(step.sectors) >= end
}
