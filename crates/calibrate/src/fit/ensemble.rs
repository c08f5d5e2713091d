//! Draws samples from a probability density with an ensemble of walkers (Goodman and Weare 2010, the stretch move).
//!
//! A walker moves along the line through another walker, so the ensemble adapts to densities of any scale and
//! correlation, and has no step size to tune.
//!
//! Invariants:
//! 1. Equal densities, starts and seeds give equal samples.

/// Largest factor by which a move stretches the distance between two walkers.
const STRETCH_MAX: f64 = 2.0;

/// Random numbers of SplitMix64 (Steele, Lea and Flood 2014).
pub(super) struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number of at least 0 and less than 1.
    pub(super) fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a number of the standard normal distribution (Box and Muller 1958).
    pub(super) fn normal(&mut self) -> f64 {
        let (radius, angle) = (1.0 - self.uniform(), self.uniform());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// Returns an index below `count`.
    fn index(&mut self, count: usize) -> usize {
        ((self.uniform() * count as f64) as usize).min(count - 1)
    }
}

/// A point and the logarithm of the density there.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub point: Vec<f64>,
    pub density: f64,
}

/// Moves `walkers` for `steps` steps and returns their positions in the second half of the steps, every fourth of them.
/// `density` returns the logarithm of the density at a point, and negative infinity outside its range. In the first
/// half, walkers far below the best one are moved beside a better one.
pub(super) fn samples(
    walkers: &[Vec<f64>],
    steps: usize,
    random: &mut Random,
    density: &dyn Fn(&[f64]) -> f64,
) -> Vec<Sample> {
    let place = |point: &Vec<f64>| Sample { point: point.clone(), density: density(point) };
    let mut walkers: Vec<Sample> = walkers.iter().map(place).collect();
    let mut drawn = Vec::new();
    for step in 0..steps {
        for index in 0..walkers.len() {
            stretch(&mut walkers, index, random, density);
        }
        if step < steps / 2 && step % 50 == 49 {
            gather(&mut walkers, random, density);
        } else if step >= steps / 2 && step % 4 == 0 {
            drawn.extend(walkers.iter().cloned());
        }
    }
    drawn
}

fn stretch(walkers: &mut [Sample], index: usize, random: &mut Random, density: &dyn Fn(&[f64]) -> f64) {
    let other = (index + 1 + random.index(walkers.len() - 1)) % walkers.len();
    let root = STRETCH_MAX.sqrt();
    let factor = (1.0 / root + random.uniform() * (root - 1.0 / root)).powi(2);
    let pairs = walkers[index].point.iter().zip(&walkers[other].point);
    let point: Vec<f64> = pairs.map(|(here, there)| there + factor * (here - there)).collect();
    let moved = density(&point);
    let ratio = (point.len() as f64 - 1.0) * factor.ln() + moved - walkers[index].density;
    if random.uniform().ln() < ratio {
        walkers[index] = Sample { point, density: moved };
    }
}

/// Moves walkers that are far less probable than the best one to points near walkers that are not.
fn gather(walkers: &mut [Sample], random: &mut Random, density: &dyn Fn(&[f64]) -> f64) {
    let best = walkers.iter().map(|walker| walker.density).fold(f64::NEG_INFINITY, f64::max);
    let lost = best - 20.0 - 2.0 * walkers[0].point.len() as f64;
    let kept: Vec<usize> = (0..walkers.len()).filter(|&index| walkers[index].density >= lost).collect();
    for index in 0..walkers.len() {
        if walkers[index].density >= lost {
            continue;
        }
        let near = &walkers[kept[random.index(kept.len())]].point;
        let pairs = near.iter().zip(&walkers[index].point);
        let share = 0.1 * random.uniform();
        let point: Vec<f64> = pairs.map(|(near, far)| near + share * (far - near)).collect();
        let density = density(&point);
        walkers[index] = Sample { point, density };
    }
}
