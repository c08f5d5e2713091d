//! Positions of random requests: fio's `random_distribution` over the blocks of a region.
//!
//! A seeded bijection scatters the ranks of `zipf` and `pareto` over the region, so that hot blocks are not adjacent.
//! (fio scatters them by a hash, which may put two ranks on one block.) `normal` and `zoned` are not scattered: they
//! localise a workload in space (Cassuto 2010 §III.A).
//!
//! Invariants:
//! 1. Every sample lies in `0..blocks`.
//! 2. Memory is constant: no table grows with the region.
//! 3. The hot set depends on the workload's seed, not on the phase: a later phase of equal region and block size has
//!    the same hot blocks.

use super::permutation::Permutation;
use super::quantity::Share;
use super::random::Stream;

/// The value of `random_distribution`.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Distribution {
    /// `random`: every block is equally likely.
    Uniform,
    /// `zipf:θ`: the probability of the block of rank k is proportional to k^-θ.
    Zipf {
        /// The exponent θ.
        theta: f64,
    },
    /// `pareto:h`: a share h of the blocks gets a share 1 − h of the requests. This holds again within that share.
    Pareto {
        /// The share h.
        power: f64,
    },
    /// `normal:dev`: a normal distribution around the middle of the region. The standard deviation is a share of the
    /// region. Positions outside the region are drawn again.
    Normal {
        /// The standard deviation as a share of the region.
        deviation: Share,
    },
    /// `zoned:60/10:30/20:…`: a list of zones from the start of the region, each with its shares of the requests and of
    /// the region.
    Zoned(Vec<AccessZone>),
}

/// A zone of a `zoned` distribution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct AccessZone {
    /// Fraction of the requests whose positions are drawn from this zone.
    pub requests: Share,
    /// Fraction of the region of the phase that this zone occupies.
    pub region: Share,
}

/// Draws random blocks of a region.
#[derive(Clone, Debug)]
pub(super) enum Sampler {
    Uniform { blocks: u64 },
    Zipf { ranks: Zipf, scatter: Permutation },
    Pareto { exponent: f64, scatter: Permutation },
    Normal { blocks: u64, deviation_blocks: f64 },
    Zoned(Vec<ZoneBlocks>),
}

/// A zone in blocks. `requests_end` is the sum of the shares of this and all earlier zones, in millionths.
#[derive(Clone, Copy, Debug)]
pub(super) struct ZoneBlocks {
    requests_end: u64,
    first: u64,
    blocks: u64,
}

impl Sampler {
    /// Returns a sampler of `distribution` over `blocks` blocks. `scatter_seed` determines which blocks are hot.
    pub(super) fn new(distribution: &Distribution, blocks: u64, scatter_seed: u64) -> Sampler {
        assert!(blocks > 0, "a region of no blocks");
        match distribution {
            Distribution::Uniform => Sampler::Uniform { blocks },
            Distribution::Zipf { theta } => {
                Sampler::Zipf { ranks: Zipf::new(blocks, *theta), scatter: Permutation::new(blocks, scatter_seed) }
            }
            Distribution::Pareto { power } => Sampler::Pareto {
                exponent: power.ln() / (1.0 - power).ln(),
                scatter: Permutation::new(blocks, scatter_seed),
            },
            Distribution::Normal { deviation } => {
                Sampler::Normal { blocks, deviation_blocks: deviation.as_f64() * blocks as f64 }
            }
            Distribution::Zoned(zones) => Sampler::Zoned(zones_in_blocks(zones, blocks)),
        }
    }

    /// Draws a block.
    #[inline]
    pub(super) fn sample(&self, stream: &mut Stream) -> u64 {
        match self {
            Sampler::Uniform { blocks } => stream.below(*blocks),
            Sampler::Zipf { ranks, scatter } => scatter.apply(ranks.sample(stream) - 1),
            Sampler::Pareto { exponent, scatter } => {
                let rank = (stream.unit().powf(*exponent) * scatter.count() as f64) as u64;
                scatter.apply(rank.min(scatter.count() - 1))
            }
            Sampler::Normal { blocks, deviation_blocks } => sample_normal(stream, *blocks, *deviation_blocks),
            Sampler::Zoned(zones) => sample_zoned(stream, zones),
        }
    }
}

fn sample_normal(stream: &mut Stream, blocks: u64, deviation_blocks: f64) -> u64 {
    let middle = blocks as f64 / 2.0;
    loop {
        let place = middle + stream.normal() * deviation_blocks;
        // The test is on floating-point numbers: the cast below would turn positions before the region into its first
        // block.
        if place >= 0.0 && place < blocks as f64 {
            return (place as u64).min(blocks - 1);
        }
    }
}

fn sample_zoned(stream: &mut Stream, zones: &[ZoneBlocks]) -> u64 {
    let draw = stream.below(Share::MILLIONTHS as u64);
    let zone = zones.iter().find(|zone| draw < zone.requests_end).expect("the zones' shares add up to the whole");
    zone.first + stream.below(zone.blocks)
}

/// Returns the zones over `blocks` blocks. Each zone has at least one block, so that each request has a position.
fn zones_in_blocks(zones: &[AccessZone], blocks: u64) -> Vec<ZoneBlocks> {
    let mut requests_end = 0;
    let mut region_end = 0;
    let mut placed = Vec::with_capacity(zones.len());
    for zone in zones {
        let first = Share::from_millionths(region_end).of(blocks).min(blocks - 1);
        region_end += zone.region.millionths();
        requests_end += zone.requests.millionths() as u64;
        let end = Share::from_millionths(region_end).of(blocks);
        placed.push(ZoneBlocks { requests_end, first, blocks: end.saturating_sub(first).max(1) });
    }
    assert_eq!(requests_end, Share::MILLIONTHS as u64, "zones were checked to add up when parsed");
    placed
}

/// Zipf's law over the ranks `1..=count`: exact, in constant memory, for any exponent above 0. The method is
/// rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions", 1996).
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    count: u64,
    theta: f64,
    integral_first: f64,
    integral_last: f64,
    shortcut: f64,
}

impl Zipf {
    fn new(count: u64, theta: f64) -> Zipf {
        let mut zipf = Zipf { count, theta, integral_first: 0.0, integral_last: 0.0, shortcut: 0.0 };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(count as f64 + 0.5);
        zipf.shortcut = 2.0 - zipf.integral_inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    fn sample(&self, stream: &mut Stream) -> u64 {
        loop {
            let area = self.integral_last + stream.unit() * (self.integral_first - self.integral_last);
            let place = self.integral_inverse(area);
            let rank = (place + 0.5).clamp(1.0, self.count as f64).floor();
            if rank - place <= self.shortcut || area >= self.integral(rank + 0.5) - self.weight(rank) {
                return rank as u64;
            }
        }
    }

    /// Returns the weight x^-θ.
    fn weight(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// Returns an integral of the weight: (x^(1-θ) - 1) / (1-θ), and ln x at θ = 1.
    fn integral(&self, x: f64) -> f64 {
        let logarithm = x.ln();
        let scaled = (1.0 - self.theta) * logarithm;
        let slope = if scaled.abs() > 1e-8 { scaled.exp_m1() / scaled } else { 1.0 + scaled / 2.0 };
        slope * logarithm
    }

    fn integral_inverse(&self, area: f64) -> f64 {
        // Rounding may give a product below -1, where the logarithm is undefined.
        let scaled = (area * (1.0 - self.theta)).max(-1.0);
        let slope = if scaled.abs() > 1e-8 { scaled.ln_1p() / scaled } else { 1.0 - scaled / 2.0 };
        (slope * area).exp()
    }
}

#[cfg(test)]
mod tests {
    //! Goal: each distribution has the shape that its name promises. Method: frequencies under fixed seeds against
    //! closed forms, within five standard deviations of the binomial.

    use super::*;

    const DRAWS: u64 = 200_000;

    fn stream() -> Stream {
        Stream::new(7, 0)
    }

    /// Asserts that the share of `hits` among [`DRAWS`] matches the probability within five standard deviations.
    fn assert_share(hits: u64, probability: f64, what: &str) {
        let expected = probability * DRAWS as f64;
        let sigma = (expected * (1.0 - probability)).sqrt();
        assert!((hits as f64 - expected).abs() <= 5.0 * sigma, "{what}: {hits} of {DRAWS}, expected {expected:.0}");
    }

    fn count(sampler: &Sampler, hit: impl Fn(u64) -> bool) -> u64 {
        let mut stream = stream();
        (0..DRAWS).filter(|_| hit(sampler.sample(&mut stream))).count() as u64
    }

    #[test]
    fn zipf_ranks_follow_the_law() {
        for theta in [0.5, 0.99, 1.0, 1.1, 2.5] {
            let blocks = 1000u64;
            let zeta: f64 = (1..=blocks).map(|rank| (rank as f64).powf(-theta)).sum();
            let zipf = Zipf::new(blocks, theta);
            let mut stream = stream();
            let mut hits = vec![0u64; blocks as usize + 1];
            (0..DRAWS).for_each(|_| hits[zipf.sample(&mut stream) as usize] += 1);
            assert_eq!(hits[0], 0, "ranks count from 1");
            for rank in [1usize, 2, 3, 10, 1000] {
                let probability = (rank as f64).powf(-theta) / zeta;
                assert_share(hits[rank], probability, &format!("zipf:{theta} rank {rank}"));
            }
        }
    }

    #[test]
    fn zipf_reaches_both_ends_of_tiny_and_huge_regions() {
        let mut stream = stream();
        let one = Zipf::new(1, 1.1);
        assert!((0..100).all(|_| one.sample(&mut stream) == 1));
        let huge = Zipf::new(1 << 45, 0.2);
        assert!((0..10_000).all(|_| (1..=1 << 45).contains(&huge.sample(&mut stream))));
    }

    #[test]
    fn scattering_keeps_the_frequency_of_the_hottest_block() {
        let blocks = 1000u64;
        let zeta: f64 = (1..=blocks).map(|rank| (rank as f64).powf(-1.2)).sum();
        let sampler = Sampler::new(&Distribution::Zipf { theta: 1.2 }, blocks, 99);
        let hottest = Permutation::new(blocks, 99).apply(0);
        assert_share(count(&sampler, |block| block == hottest), 1.0 / zeta, "hottest block");
    }

    #[test]
    fn pareto_gives_the_share_h_of_blocks_the_rest_of_requests() {
        for power in [0.1, 0.2, 0.4] {
            let blocks = 10_000u64;
            let sampler = Sampler::new(&Distribution::Pareto { power }, blocks, 5);
            let scatter = Permutation::new(blocks, 5);
            let mut hot = vec![false; blocks as usize];
            (0..(power * blocks as f64) as u64).for_each(|rank| hot[scatter.apply(rank) as usize] = true);
            assert_share(count(&sampler, |block| hot[block as usize]), 1.0 - power, &format!("pareto:{power}"));
        }
    }

    #[test]
    fn normal_has_its_mean_and_deviation() {
        let blocks = 1_000_000u64;
        let deviation = Share::from_millionths(50_000);
        let sampler = Sampler::new(&Distribution::Normal { deviation }, blocks, 0);
        let mut stream = stream();
        let samples: Vec<f64> = (0..DRAWS).map(|_| sampler.sample(&mut stream) as f64).collect();
        let mean = samples.iter().sum::<f64>() / DRAWS as f64;
        let variance = samples.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / DRAWS as f64;
        let (sigma, root) = (0.05 * blocks as f64, (DRAWS as f64).sqrt());
        assert!((mean - blocks as f64 / 2.0).abs() <= 5.0 * sigma / root, "mean {mean}");
        // The standard error of a normal sample's deviation is sigma / sqrt(2 n).
        assert!((variance.sqrt() - sigma).abs() <= 5.0 * sigma / (root * 2f64.sqrt()), "deviation {}", variance.sqrt());
        let within = samples.iter().filter(|x| (**x - blocks as f64 / 2.0).abs() < sigma).count() as u64;
        assert_share(within, 0.682_689_492, "within one sigma");
    }

    #[test]
    fn a_wide_normal_stays_inside() {
        let sampler = Sampler::new(&Distribution::Normal { deviation: Share::ALL }, 100, 0);
        assert_eq!(count(&sampler, |block| block < 100), DRAWS);
        // Truncated at half a deviation on either side, both halves have equal probability.
        assert_share(count(&sampler, |block| block < 50), 0.5, "left half");
    }

    #[test]
    fn zones_get_their_shares() {
        let percent = |requests: u32, region: u32| AccessZone {
            requests: Share::from_millionths(requests * 10_000),
            region: Share::from_millionths(region * 10_000),
        };
        let zones = vec![percent(60, 10), percent(30, 20), percent(8, 30), percent(2, 40)];
        let sampler = Sampler::new(&Distribution::Zoned(zones), 1000, 0);
        for (range, share) in [(0..100, 0.6), (100..300, 0.3), (300..600, 0.08), (600..1000, 0.02), (0..50, 0.3)] {
            assert_share(count(&sampler, |block| range.contains(&block)), share, &format!("blocks {range:?}"));
        }
    }

    #[test]
    fn uniform_blocks_pass_a_chi_square() {
        let sampler = Sampler::new(&Distribution::Uniform, 100, 0);
        let mut hits = [0u64; 100];
        let mut stream = stream();
        (0..DRAWS).for_each(|_| hits[sampler.sample(&mut stream) as usize] += 1);
        let expected = DRAWS as f64 / 100.0;
        let chi_square: f64 = hits.iter().map(|&hit| (hit as f64 - expected).powi(2) / expected).sum();
        // 99 degrees of freedom: mean 99, deviation sqrt(2 · 99) = 14.07; five of them to either side.
        assert!((28.6..169.4).contains(&chi_square), "chi-square {chi_square}");
    }
}
