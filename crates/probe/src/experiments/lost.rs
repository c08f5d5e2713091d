//! Detects blocks that cannot be read although they were just written. Neighbouring writes destroyed them, so the host
//! must write in order.

use crate::bench::Bench;
use crate::marks::{Marks, Times};
use crate::target::TargetError;
use crate::verdict::{Confidence, Value};

/// Explanation for a drive that destroys data or refuses writes: it may be host-managed.
pub(super) const HOST_MANAGED: &str = "the drive may be host-managed, which it reports itself: ask the machine it is \
                                       in (lsblk -o NAME,ZONED)";
/// Name of the series of scattered writes, in the evidence.
pub(super) const WIDE: &str = "random writes in 1 GiB";
/// Name of the series of writes in a narrow range, in the evidence.
pub(super) const NARROW: &str = "random writes in 8 MiB";

/// Reads marks that were just written. If a read fails, checks each mark with [`take_back_if_lost`], and returns the
/// error.
pub(super) fn read_after_writing(bench: &mut Bench<'_>, marks: &Marks) -> Result<Times, TargetError> {
    let outcome = marks.read(bench);
    if matches!(outcome, Err(TargetError::Failed { .. })) {
        take_back_if_lost(bench, &marks.blocks)?;
    }
    outcome
}

/// Withdraws the drive's type if some of the `written` blocks cannot be read: writes beside them destroyed them.
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
            "of {} blocks just written, {lost} are unreadable: writes destroy neighbouring blocks; {HOST_MANAGED}",
            written.len()
        );
        bench.verdict.conclude("type", Value::CannotTell, "", Confidence::Low, because, &[WIDE, NARROW]);
    }
    Ok(())
}
