//! A bounded series of samples: every n-th item of a stream, where n doubles when the buffer is full.
//!
//! Invariants:
//! 1. The samples are the items whose number is a multiple of the stride; two streams of equal length keep the same
//!    numbers.

/// Samples of a stream of items: those whose number, counted from 0, is a multiple of the stride. The stride is 1 at
/// first and doubles whenever the series is full, so memory is bounded.
#[derive(Clone, Debug)]
pub struct Series<T> {
    samples: Vec<T>,
    stride: u64,
    seen: u64,
    capacity: usize,
}

impl<T: Copy> Series<T> {
    /// Creates an empty series of at most `capacity` samples, or two if `capacity` is less.
    pub fn new(capacity: usize) -> Series<T> {
        Series { samples: Vec::new(), stride: 1, seen: 0, capacity: capacity.max(2) }
    }

    /// Receives the next item of the stream, and keeps it if its number is a multiple of the stride. If the series is
    /// full, every other sample is dropped and the stride doubles first.
    pub fn see(&mut self, item: T) {
        // The stride is a power of two.
        if self.seen & (self.stride - 1) == 0 {
            if self.samples.len() == self.capacity {
                self.thin();
            }
            if self.seen & (self.stride - 1) == 0 {
                self.samples.push(item);
            }
        }
        self.seen += 1;
    }

    fn thin(&mut self) {
        let mut number = 0;
        self.samples.retain(|_| {
            number += 1;
            number % 2 == 1
        });
        self.stride *= 2;
    }

    /// Returns an iterator over the samples kept, oldest first, each with the number of the item in the stream, counted
    /// from 0.
    pub fn iter(&self) -> impl Iterator<Item = (u64, T)> + '_ {
        self.samples.iter().enumerate().map(|(index, &sample)| (index as u64 * self.stride, sample))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_every_nth_with_n_a_power_of_two() {
        let mut series = Series::new(8);
        for i in 0..1000u64 {
            series.see(i);
        }
        let kept: Vec<_> = series.iter().collect();
        assert!(kept.len() <= 8 && kept.len() >= 4);
        assert!(kept.iter().all(|&(number, sample)| number == sample));
        assert_eq!(kept[1].0, 128);
    }
}
