//! The head's path over time, in bounded memory: the simulator's counterpart of the high-speed camera of Aghayev 2015.
//!
//! Invariants:
//! 1. Sample k is record number k · stride, counted from 0; stride is a power of two.
//! 2. There are never more samples than the limit: when the log is full, every other sample is dropped and the stride
//!    doubles.

use crate::Direction;
use crate::geometry::Place;
use crate::units::SimTime;

/// Position of the head at the beginning of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeadSample {
    /// Simulated time at which the transfer begins.
    pub time: SimTime,
    /// Radial position of the track under the head, counted from 0 at the outer diameter.
    pub radial_track: u32,
    /// Surface of the head, counted from 0.
    pub surface: u8,
    /// Whether the transfer reads or writes.
    pub direction: Direction,
}

/// A log of the positions of the head at the beginnings of transfers, in bounded memory. When the log is full, every
/// other sample is dropped, and from then on half as many transfers are sampled.
#[derive(Clone, Debug)]
pub struct HeadLog {
    samples: Vec<HeadSample>,
    samples_max: usize,
    recorded: u64,
    stride: u64,
}

impl HeadLog {
    /// Returns an empty log that keeps at most `samples_max` samples, or two if `samples_max` is less.
    pub fn new(samples_max: usize) -> HeadLog {
        let samples_max = samples_max.max(2);
        HeadLog { samples: Vec::with_capacity(samples_max), samples_max, recorded: 0, stride: 1 }
    }

    /// Drops all samples, and samples every transfer again from now on.
    pub fn restart(&mut self) {
        self.samples.clear();
        (self.recorded, self.stride) = (0, 1);
    }

    /// Records that a transfer begins.
    pub(crate) fn record(&mut self, time: SimTime, place: &Place, direction: Direction) {
        let number = self.recorded;
        self.recorded += 1;
        if number & (self.stride - 1) != 0 {
            return;
        }
        if self.samples.len() == self.samples_max {
            self.thin();
            if number & (self.stride - 1) != 0 {
                return;
            }
        }
        let (radial_track, surface) = (place.radial_track, place.surface);
        self.samples.push(HeadSample { time, radial_track, surface, direction });
    }

    fn thin(&mut self) {
        let mut index = 0;
        self.samples.retain(|_| {
            index += 1;
            index % 2 == 1
        });
        self.stride *= 2;
    }

    /// Returns the samples kept so far, in the order of the transfers.
    pub fn samples(&self) -> &[HeadSample] {
        &self.samples
    }

    /// Returns the number of transfers for each sample: 1 at first, doubled each time the log was full.
    pub fn stride(&self) -> u64 {
        self.stride
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Pba;

    #[test]
    fn a_restarted_log_begins_anew() {
        let mut log = HeadLog::new(4);
        let place =
            Place { radial_track: 7, surface: 0, sector: 0, track_sectors: 1, angle_ns: 0, track_start: Pba(0) };
        (0..100).for_each(|time| log.record(SimTime(time), &place, Direction::Read));
        log.restart();
        assert_eq!((log.samples().len(), log.stride()), (0, 1));
        (100..103).for_each(|time| log.record(SimTime(time), &place, Direction::Read));
        assert_eq!(log.samples().iter().map(|sample| sample.time.0).collect::<Vec<_>>(), [100, 101, 102]);
    }

    /// Checks both invariants, for logs of even and odd size. Method: record the number of the record as its track.
    #[test]
    fn a_full_log_keeps_every_other_sample() {
        for samples_max in [2, 5, 8] {
            let mut log = HeadLog::new(samples_max);
            for number in 0..1000u32 {
                let place = Place {
                    radial_track: number,
                    surface: 0,
                    sector: 0,
                    track_sectors: 1,
                    angle_ns: 0,
                    track_start: Pba(0),
                };
                log.record(SimTime(number as u64), &place, Direction::Read);
                assert!(log.samples().len() <= samples_max);
                for (index, sample) in log.samples().iter().enumerate() {
                    assert_eq!(sample.radial_track as u64, index as u64 * log.stride(), "invariant 1");
                }
                let kept = number as u64 / log.stride() + 1;
                assert_eq!(log.samples().len() as u64, kept, "nothing within the stride is missing");
            }
        }
    }
}
