//! Rest: whether the head moves while nothing is asked of the drive, and waiting until it no longer does. A block is read,
//! and after a pause read again: a head that has rested catches its next pass, and one that is elsewhere comes too late.
//!
//! Invariants:
//! 1. Waiting ends after the time given, whatever the drive does.

use crate::bench::Bench;
use crate::target::TargetError;

/// A block read again after a pause is late if it takes longer than this many rotations.
const LATE: f64 = 1.08;
/// A head that has gone comes back in time now and then; so many times in a row it does not.
const LOOKS: usize = 4;
/// The block that is looked for comes by so much of a rotation after the pause: less than a head needs from elsewhere.
const BEFORE_PASS: f64 = 0.25;

/// What cleaning a band takes at most, where nothing is known.
const CLEAN_S_MAX: f64 = 10.0;
/// Time that costs nobody anything is given so many times as much.
const VIRTUAL_TIMES: u64 = 40;
/// Bands for which a drive is given time before it is looked at whether it is at rest.
const BANDS_FIRST: u64 = 32;

/// Whether the head has left the block at `offset` in a pause.
pub(crate) fn has_moved(bench: &mut Bench<'_>, offset: u64, pause_ns: f64) -> Result<bool, TargetError> {
    let before = bench.read_blocks(&[offset; 2])?[1];
    bench.target.sleep(pause_ns as u64)?;
    let after = bench.read_blocks(&[offset])?[0];
    Ok((after.end_ns - before.end_ns) as f64 > pause_ns + LATE * bench.rotation_ns())
}

/// Whether nothing is left to be done behind the host's back: the head rests for longer than the drive waits before it
/// begins.
fn is_at_rest(bench: &mut Bench<'_>) -> Result<bool, TargetError> {
    let rotation = bench.rotation_ns();
    let pause = ((1.15 * bench.trigger_ns() / rotation).ceil() + 4.0 - BEFORE_PASS) * rotation;
    for look in 0..LOOKS {
        let offset = bench.at_share(if look % 2 == 0 { 0.05 } else { 0.93 });
        if has_moved(bench, offset, pause)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Leaves the drive alone for `first_ns`, and then for longer until it is at rest, or `most_ns` have passed.
fn wait(bench: &mut Bench<'_>, first_ns: u64, most_ns: u64) -> Result<(), TargetError> {
    let (begun, mut rest_ns) = (bench.target.now_ns(), first_ns);
    loop {
        let spent_ns = bench.target.now_ns() - begun;
        bench.target.sleep(rest_ns.min(most_ns.saturating_sub(spent_ns)))?;
        // Where it is not known how long it waits, there is no telling.
        if bench.target.now_ns() - begun >= most_ns || bench.trigger_ns() == 0.0 || is_at_rest(bench)? {
            return Ok(());
        }
        rest_ns = (bench.target.now_ns() - begun) / 2;
    }
}

impl Bench<'_> {
    /// Leaves the drive alone until it has cleaned `bands` bands, if it does so by itself.
    pub fn drain(&mut self, bands: u64) -> Result<(), TargetError> {
        if !self.can_wait_for_cleaning() {
            return Ok(());
        }
        let most_ns = (self.trigger_ns() * 1.1 + (bands as f64 * CLEAN_S_MAX + 10.0) * 1e9) as u64;
        if self.target.is_virtual() {
            return wait(self, most_ns, VIRTUAL_TIMES * most_ns);
        }
        // An owner's time is spared: the drive is left as soon as it is at rest.
        let about_s = self.verdict.number("cleaning_time").unwrap_or(0.0) * bands.min(BANDS_FIRST) as f64;
        wait(self, (self.trigger_ns() * 1.1 + about_s * 1e9) as u64, most_ns)
    }
}
