//! Pacing: the relation of simulated time to the wall clock.
//!
//! Invariants:
//! 1. The simulated clock that requests see never goes back.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use imbrex_disk::SimTime;

/// Speed of simulated time relative to the wall clock.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pace {
    /// Simulated seconds per second of real time; 1 is real time, 2 is twice as fast.
    Times(f64),
    /// No relation to real time: requests are answered as fast as possible; simulated time is still counted.
    None,
}

impl FromStr for Pace {
    type Err = String;

    fn from_str(text: &str) -> Result<Pace, String> {
        match text {
            "real" => Ok(Pace::Times(1.0)),
            "none" => Ok(Pace::None),
            _ => text
                .strip_suffix('x')
                .and_then(|factor| factor.parse().ok())
                .filter(|factor: &f64| factor.is_finite() && *factor > 0.0)
                .map(Pace::Times)
                .ok_or_else(|| format!("'{text}': expected real, none, or a factor such as 10x or 0.5x")),
        }
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pace::Times(1.0) => write!(f, "real"),
            Pace::Times(factor) => write!(f, "{factor}x"),
            Pace::None => write!(f, "none"),
        }
    }
}

/// A clock that converts between wall-clock time and simulated time.
#[derive(Clone, Copy, Debug)]
pub struct PacedClock {
    begun: Instant,
    pace: Pace,
}

impl PacedClock {
    /// Starts a clock now, at simulated time zero.
    pub fn start(pace: Pace) -> PacedClock {
        PacedClock { begun: Instant::now(), pace }
    }

    /// Returns the pace given to [`PacedClock::start`].
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// Returns the simulated time at the wall-clock time `wall`; zero if `wall` lies before the start. With
    /// [`Pace::None`], simulated time passes as real time does.
    pub fn at(&self, wall: Instant) -> SimTime {
        let factor = match self.pace {
            Pace::Times(factor) => factor,
            Pace::None => 1.0,
        };
        SimTime((wall.saturating_duration_since(self.begun).as_nanos() as f64 * factor) as u64)
    }

    /// Returns the wall-clock time at which the simulated time is `time`, or `None` with [`Pace::None`].
    pub fn wall(&self, time: SimTime) -> Option<Instant> {
        match self.pace {
            Pace::Times(factor) => Some(self.begun + Duration::from_nanos((time.0 as f64 / factor) as u64)),
            Pace::None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paces_are_read_and_printed() {
        for text in ["real", "none", "10x", "0.5x"] {
            assert_eq!(text.parse::<Pace>().expect("is right").to_string(), text);
        }
        for text in ["fast", "0x", "-1x", "x", "10"] {
            assert!(text.parse::<Pace>().unwrap_err().contains("expected real"), "{text}");
        }
    }

    #[test]
    fn ten_times_as_fast_is_a_tenth_of_the_wait() {
        let clock = PacedClock::start(Pace::Times(10.0));
        let later = clock.begun + Duration::from_millis(5);
        assert_eq!(clock.at(later), SimTime(50_000_000));
        assert_eq!(clock.wall(SimTime(50_000_000)), Some(later));
    }
}
