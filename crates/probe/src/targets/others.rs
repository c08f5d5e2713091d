//! Requests of others to a drive, by the kernel's counters (`/sys/block/*/stat`), and the temperature of the drive.

use std::fs;
use std::path::{Path, PathBuf};

/// Sectors per second that do not count as a load: records of the file system, and the clocks of idle programs.
const IDLE_SECTORS_PER_S: u64 = 256;
/// Share of the target's own sectors that does not count either: blocks of the file system beside the data.
const BESIDE_SHARE: u64 = 32;
/// Temperatures in thousandths of a degree Celsius: from the first one on, the probe waits for the second.
const HOT: i64 = 58_000;
const COOL: i64 = 52_000;

/// The counters of a drive.
pub(super) struct Others {
    stat: PathBuf,
    sensors: Vec<PathBuf>,
    /// Sectors that the drive had read and written at the last look.
    before: Option<u64>,
}

impl Others {
    /// Returns the counters of the drive with this folder in sysfs.
    pub(super) fn of(folder: &Path) -> Others {
        let hwmon = fs::read_dir(folder.join("device/hwmon")).into_iter().flatten().flatten();
        let sensors = hwmon.map(|entry| entry.path().join("temp1_input")).collect();
        let mut others = Others { stat: folder.join("stat"), sensors, before: None };
        others.before = others.sectors();
        others
    }

    /// Returns the number of sectors read and written since the machine started; `None` if the kernel does not count.
    fn sectors(&self) -> Option<u64> {
        let text = fs::read_to_string(&self.stat).ok()?;
        let numbers: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        Some(numbers.get(2)? + numbers.get(6)?)
    }

    /// Returns whether others used the drive since the last look, `ns` nanoseconds ago, in which the caller moved `own_bytes`.
    fn are_at_work(&mut self, own_bytes: u64, ns: u64) -> bool {
        let Some(now) = self.sectors() else { return false };
        let own = own_bytes / 512;
        let others = now.saturating_sub(self.before.unwrap_or(now)).saturating_sub(own);
        self.before = Some(now);
        let idle = (u128::from(IDLE_SECTORS_PER_S) * u128::from(ns) / 1_000_000_000) as u64;
        others > idle.max(64) + own / BESIDE_SHARE
    }

    /// Calls `pause` until nobody else uses the drive and it is cool, or `pause` returns `false`. The drive was last looked at
    /// `ns` nanoseconds ago; the caller moved `own_bytes` since then. A pause takes `pause_ns`. Returns whether others used the
    /// drive before the first pause.
    pub(super) fn wait(&mut self, own_bytes: u64, ns: u64, pause_ns: u64, pause: &mut dyn FnMut() -> bool) -> bool {
        let were_at_work = self.are_at_work(own_bytes, ns);
        let (mut is_busy, mut is_hot) = (were_at_work, self.is_hot(false));
        while (is_busy || is_hot) && pause() {
            is_busy = self.are_at_work(0, pause_ns);
            is_hot = self.is_hot(is_hot);
        }
        were_at_work
    }

    /// Returns whether the drive is too hot to be worked. With `was_hot`, it is until it is cool.
    fn is_hot(&self, was_hot: bool) -> bool {
        let limit = if was_hot { COOL } else { HOT };
        let temperature = |file: &PathBuf| fs::read_to_string(file).ok()?.trim().parse::<i64>().ok();
        self.sensors.iter().filter_map(temperature).any(|thousandths| thousandths >= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sectors_of_others_are_those_that_the_caller_did_not_move() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let count = |read: u64, written: u64| {
            let text = format!("   10 0 {read} 5 20 0 {written} 9 0 0 0 0 0 0 0 0 0\n");
            fs::write(folder.path().join("stat"), text).expect("a file");
        };
        count(1000, 2000);
        let mut others = Others::of(folder.path());
        let second = 1_000_000_000;
        assert!(!others.are_at_work(0, second));
        // 1 MiB of its own, and some sectors of the file system.
        count(1000, 2000 + 2048 + 40);
        assert!(!others.are_at_work(1 << 20, second));
        // The same by somebody else.
        count(1000, 2000 + 2 * (2048 + 40));
        assert!(others.are_at_work(0, second));
        assert!(!others.are_at_work(0, second), "each sector counts once");
        count(3000, 2000 + 2 * (2048 + 40));
        assert!(others.are_at_work(4096, second), "reads count, too");
        fs::remove_file(folder.path().join("stat")).expect("it is there");
        assert!(!others.are_at_work(0, second), "nothing is known");
    }

    #[test]
    fn a_wait_lasts_until_the_drive_is_quiet_or_the_caller_ends_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let count =
            |sectors: u64| fs::write(folder.path().join("stat"), format!("0 0 {sectors} 0 0 0 0 0")).expect("a file");
        count(0);
        let mut others = Others::of(folder.path());
        let mut never = || panic!("nobody is at work");
        assert!(!others.wait(0, 1_000_000_000, 1_000_000_000, &mut never));
        // Others are at work before the wait and in its first two pauses.
        count(100_000);
        let mut pauses = 0;
        let mut quiet_later = || {
            pauses += 1;
            count(100_000 * (pauses + 1).min(3));
            true
        };
        assert!(others.wait(0, 1_000_000_000, 1_000_000_000, &mut quiet_later));
        assert_eq!(pauses, 3);
        // They go on for ever, and the caller has enough.
        count(900_000);
        let mut left = 5;
        let mut ended = || {
            left -= 1;
            count(900_000 + 100_000 * (5 - left));
            left > 0
        };
        assert!(others.wait(0, 1_000_000_000, 1_000_000_000, &mut ended));
        assert_eq!(left, 0);
    }

    #[test]
    fn a_hot_drive_is_hot_until_it_is_cool() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let sensor = folder.path().join("device/hwmon/hwmon3");
        fs::create_dir_all(&sensor).expect("a folder");
        let is_hot = |thousandths: &str, was_hot: bool| {
            fs::write(sensor.join("temp1_input"), thousandths).expect("a file");
            Others::of(folder.path()).is_hot(was_hot)
        };
        assert!(is_hot("58000\n", false) && is_hot("55000\n", true));
        assert!(!is_hot("57900\n", false) && !is_hot("51900\n", true));
        assert!(!Others::of(Path::new("/nowhere")).is_hot(true));
    }
}
