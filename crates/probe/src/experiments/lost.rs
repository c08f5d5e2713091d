//! Blocks that were just written and cannot be read: writes beside them destroyed them, so it is for the host to keep order.

use crate::bench::Bench;
use crate::marks::{Marks, Times};
use crate::target::TargetError;
use crate::verdict::{Confidence, Value};

/// What a drive may be that destroys, or refuses.
pub(super) const HOST_MANAGED: &str = "it may be a host-managed drive, which says itself what it is: ask the machine it is in (lsblk -o \
                            NAME,ZONED)";
/// The writes, as the evidence names them.
pub(super) const WIDE: &str = "random writes in 1 GiB";
/// The same.
pub(super) const NARROW: &str = "random writes in 8 MiB";

/// Reads marks that were just written; where that fails the drive is host-managed, as far as can be told.
pub(super) fn read_after_writing(bench: &mut Bench<'_>, marks: &Marks) -> Result<Times, TargetError> {
    let outcome = marks.read(bench);
    if matches!(outcome, Err(TargetError::Failed { .. })) {
        take_back_if_lost(bench, &marks.blocks)?;
    }
    outcome
}

/// Blocks that were written and cannot be read were destroyed by the writes beside them.
pub(super) fn take_back_if_lost(bench: &mut Bench<'_>, written: &[u64]) -> Result<(), TargetError> {
    let mut lost = 0;
    for &offset in written {
        match bench.read_blocks(&[offset]) {
            Err(TargetError::Failed { .. }) => lost += 1,
            outcome => drop(outcome?),
        }
    }
    if lost > 0 {
        let because = format!(
            "of {} blocks just written {lost} cannot be read any more: writes destroy what lies beside them; {HOST_MANAGED}",
            written.len()
        );
        bench.verdict.conclude("type", Value::CannotTell, "", Confidence::Low, because, &[WIDE, NARROW]);
    }
    Ok(())
}
