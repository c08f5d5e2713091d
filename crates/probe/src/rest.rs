//! Waits until a drive has finished the work that it does while the host is idle. To find out whether the head moves
//! while the host is idle, a block is read, and read again after a pause. A head that stayed in place reads the block
//! at its next pass; one that moved away is late.
//!
//! Invariants:
//! 1. Waiting ends after the given time limit, whatever the drive does.

use crate::bench::Bench;
use crate::target::TargetError;

/// Rotations beyond the pause after which the second read of a block counts as late.
const LATE: f64 = 1.08;
/// Number of checks before the drive counts as idle: a head that moved away can return in time by chance, but not so
/// often in a row.
const LOOKS: usize = 4;
/// The pause ends this share of a rotation before the block passes the head: too short for a head to arrive from
/// elsewhere.
const BEFORE_PASS: f64 = 0.25;

/// Longest time to clean one band, seconds, if nothing was measured.
const CLEAN_S_MAX: f64 = 10.0;
/// Factor on the time limit of a wait in virtual time, which costs the user nothing.
const VIRTUAL_TIMES: u64 = 40;
/// Number of bands whose cleaning time a wait allows before it checks the drive for the first time.
const BANDS_FIRST: u64 = 32;

/// Returns whether the head leaves the block at `offset` during a pause.
pub(crate) fn has_moved(bench: &mut Bench<'_>, offset: u64, pause_ns: f64) -> Result<bool, TargetError> {
    let before = bench.read_blocks(&[offset; 2])?[1];
    bench.target.sleep(pause_ns as u64)?;
    let after = bench.read_blocks(&[offset])?[0];
    Ok((after.end_ns - before.end_ns) as f64 > pause_ns + LATE * bench.rotation_ns())
}

/// Returns whether the drive has finished its background work. The pauses of the check are longer than the idle time
/// after which the drive begins such work.
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

/// Leaves the drive idle for `first_ns`, and then longer, until it has finished its background work or `most_ns` have
/// passed.
fn wait(bench: &mut Bench<'_>, first_ns: u64, most_ns: u64) -> Result<(), TargetError> {
    let (begun, mut rest_ns) = (bench.target.now_ns(), first_ns);
    loop {
        let spent_ns = bench.target.now_ns() - begun;
        bench.target.sleep(rest_ns.min(most_ns.saturating_sub(spent_ns)))?;
        // If the idle time before cleaning is unknown, the drive cannot be checked for background work.
        if bench.target.now_ns() - begun >= most_ns || bench.trigger_ns() == 0.0 || is_at_rest(bench)? {
            return Ok(());
        }
        rest_ns = (bench.target.now_ns() - begun) / 2;
    }
}

impl Bench<'_> {
    /// Leaves the drive idle until its background cleaning seems finished, or until a time limit has passed. The limit
    /// is about 10 s for each of `bands` bands, the number that may need cleaning, and 40 times as long in virtual
    /// time. Returns at once if the drive is not known to clean when idle, or begins to clean only after ten minutes or
    /// more of real time.
    ///
    /// # Errors
    ///
    /// The target fails, or the user or the time budget ends the probe.
    pub fn drain(&mut self, bands: u64) -> Result<(), TargetError> {
        if !self.can_wait_for_cleaning() {
            return Ok(());
        }
        let most_ns = (self.trigger_ns() * 1.1 + (bands as f64 * CLEAN_S_MAX + 10.0) * 1e9) as u64;
        if self.target.is_virtual() {
            return wait(self, most_ns, VIRTUAL_TIMES * most_ns);
        }
        // In real time, the wait ends as soon as the drive has finished its background work.
        let about_s = self.verdict.number("cleaning_time").unwrap_or(0.0) * bands.min(BANDS_FIRST) as f64;
        wait(self, (self.trigger_ns() * 1.1 + about_s * 1e9) as u64, most_ns)
    }
}
