//! Units. Every number that has a unit carries it in its type; bare integers appear only at the program's input and
//! output.
//!
//! Invariants:
//! 1. An index ([`Lba`], [`Pba`]), a count ([`Sectors`]) and a time are never mixed: only the operators below exist.
//! 2. Time is integer nanoseconds ([`SimTime`] since the start of the run, [`SimDuration`] between two times).
//! 3. An [`Extent`] is half-open. An extent that stands for work to do is never empty.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Rem, Sub, SubAssign};

/// Logical block address (LBA): the number of a sector as the host sees the drive, counted from 0. A sector has 512
/// bytes in a trace or workload, and the drive's size (512 or 4096 bytes) in a drive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Lba(pub u64);

/// Physical block address (PBA): the number of a sector of the medium, counted from 0 in the order in which the drive's
/// layout runs over surfaces and tracks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Pba(pub u64);

/// A number of sectors. A sector has 512 bytes in a trace or workload, and the drive's size (512 or 4096 bytes) in a
/// drive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Sectors(pub u64);

/// A point in simulated time, in nanoseconds since the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct SimTime(pub u64);

/// A span of simulated time, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct SimDuration(pub u64);

macro_rules! index_and_count {
    ($index:ident, $count:ident) => {
        impl Add<$count> for $index {
            type Output = $index;
            fn add(self, count: $count) -> $index {
                $index(self.0 + count.0)
            }
        }
        impl AddAssign<$count> for $index {
            fn add_assign(&mut self, count: $count) {
                self.0 += count.0;
            }
        }
        impl Sub<$count> for $index {
            type Output = $index;
            fn sub(self, count: $count) -> $index {
                $index(self.0 - count.0)
            }
        }
        impl Sub for $index {
            type Output = $count;
            fn sub(self, earlier: $index) -> $count {
                $count(self.0 - earlier.0)
            }
        }
    };
}

macro_rules! count {
    ($count:ident) => {
        impl $count {
            /// The value 0.
            pub const ZERO: $count = $count(0);

            /// Returns whether the value is 0.
            pub fn is_zero(self) -> bool {
                self.0 == 0
            }

            /// Returns `self - other`, or 0 if `other` is larger.
            pub fn saturating_sub(self, other: $count) -> $count {
                $count(self.0.saturating_sub(other.0))
            }
        }
        impl Add for $count {
            type Output = $count;
            fn add(self, other: $count) -> $count {
                $count(self.0 + other.0)
            }
        }
        impl AddAssign for $count {
            fn add_assign(&mut self, other: $count) {
                self.0 += other.0;
            }
        }
        impl Sub for $count {
            type Output = $count;
            fn sub(self, other: $count) -> $count {
                $count(self.0 - other.0)
            }
        }
        impl SubAssign for $count {
            fn sub_assign(&mut self, other: $count) {
                self.0 -= other.0;
            }
        }
        impl Mul<u64> for $count {
            type Output = $count;
            fn mul(self, factor: u64) -> $count {
                $count(self.0 * factor)
            }
        }
        impl Div<$count> for $count {
            type Output = u64;
            fn div(self, unit: $count) -> u64 {
                self.0 / unit.0
            }
        }
        impl Rem<$count> for $count {
            type Output = $count;
            fn rem(self, unit: $count) -> $count {
                $count(self.0 % unit.0)
            }
        }
        impl Sum for $count {
            fn sum<I: Iterator<Item = $count>>(parts: I) -> $count {
                $count(parts.map(|part| part.0).sum())
            }
        }
    };
}

count!(Sectors);
count!(SimDuration);
index_and_count!(Lba, Sectors);
index_and_count!(Pba, Sectors);
index_and_count!(SimTime, SimDuration);

impl SimTime {
    /// The start of the simulated run.
    pub const ZERO: SimTime = SimTime(0);

    /// Returns the time from `earlier` to `self`, or zero if `earlier` is later than `self`.
    pub fn since(self, earlier: SimTime) -> SimDuration {
        SimDuration(self.0.saturating_sub(earlier.0))
    }
}

impl SimDuration {
    /// Returns a span of `count` milliseconds.
    pub const fn from_millis(count: u64) -> SimDuration {
        SimDuration(count * 1_000_000)
    }

    /// Returns a span of `count` seconds.
    pub const fn from_secs(count: u64) -> SimDuration {
        SimDuration(count * 1_000_000_000)
    }

    /// Returns the span in seconds, with its fraction.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the span in milliseconds, with its fraction.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

/// A run of physical sectors: `sectors` sectors from `start` on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Extent {
    /// First sector of the run.
    pub start: Pba,
    /// Number of sectors of the run.
    pub sectors: Sectors,
}

impl Extent {
    /// Returns the run of `sectors` sectors whose first sector is `start`.
    pub const fn new(start: Pba, sectors: Sectors) -> Extent {
        Extent { start, sectors }
    }

    /// Returns the run from `start` up to, not including, `end`. `end` must not be below `start`.
    pub fn between(start: Pba, end: Pba) -> Extent {
        Extent { start, sectors: end - start }
    }

    /// Returns the address of the sector after the last one; of an empty extent, `start`.
    pub fn end(self) -> Pba {
        self.start + self.sectors
    }

    /// Returns whether the extent has no sectors.
    pub fn is_empty(self) -> bool {
        self.sectors.is_zero()
    }

    /// Returns whether `pba` lies in the extent.
    pub fn contains(self, pba: Pba) -> bool {
        self.start <= pba && pba < self.end()
    }

    /// Returns the sectors that both extents have in common, or `None` if they share no sector.
    pub fn intersection(self, other: Extent) -> Option<Extent> {
        let start = self.start.max(other.start);
        let end = self.end().min(other.end());
        (start < end).then(|| Extent::between(start, end))
    }
}

impl fmt::Debug for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}..{})", self.start.0, self.end().0)
    }
}

impl fmt::Display for Lba {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LBA {}", self.0)
    }
}

impl fmt::Display for Pba {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PBA {}", self.0)
    }
}

impl fmt::Display for SimDuration {
    /// Writes the span in a unit that suits its length: `850 ns`, `12.50 ms`, `3.20 s`, `2.5 h`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        match self.0 {
            0..=999 => write!(f, "{} ns", self.0),
            1_000..=999_999 => write!(f, "{:.1} µs", ns / 1e3),
            1_000_000..=999_999_999 => write!(f, "{:.2} ms", ns / 1e6),
            1_000_000_000..=599_999_999_999 => write!(f, "{:.2} s", ns / 1e9),
            600_000_000_000..=7_199_999_999_999 => write!(f, "{:.1} min", ns / 60e9),
            _ => write!(f, "{:.1} h", ns / 3600e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_intersect_half_open() {
        let a = Extent::new(Pba(10), Sectors(5));
        assert_eq!(a.intersection(Extent::new(Pba(15), Sectors(1))), None);
        assert_eq!(a.intersection(Extent::new(Pba(14), Sectors(9))), Some(Extent::new(Pba(14), Sectors(1))));
    }

    #[test]
    fn durations_print_in_a_fitting_unit() {
        assert_eq!(SimDuration(850).to_string(), "850 ns");
        assert_eq!(SimDuration::from_millis(25).to_string(), "25.00 ms");
        assert_eq!(SimDuration::from_secs(9000).to_string(), "2.5 h");
    }
}
