//! How often pages are written: the written pages in six tiers, from cold to hot, plus the single page that is written
//! most.
//!
//! The pages of one tier are written equally often. The lower tiers are written as often as the published percentiles
//! say, and the hottest tier takes the remaining writes. If too few remain, tiers are shifted to higher ranks. A
//! percentile holds as long as its rank lies within its tier, and the coldest tier grows.
//!
//! Invariants:
//! 1. The pages and the page writes of all tiers add up to the machine's.
//! 2. The page at each published percentile is in the tier that is written as often as the percentile says.

use super::facts::Machine;
use super::sizes::PAGE_BYTES;

pub(super) const TIERS: usize = 6;

/// A set of pages that are written equally often.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tier {
    pub pages: f64,
    /// Number of times that each page of 4 KiB of this tier is written in the whole workload.
    pub writes_each: f64,
}

/// The tiers of a machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiers {
    /// The sets of pages that are written equally often, from the set written least often to that written most often.
    pub tiers: [Tier; TIERS],
}

/// Shares of the pages by tier if each tier extends as far down as its percentile allows. In `HIGH`, each extends as
/// far up as possible.
const WIDE: [f64; TIERS] = [0.0, 0.52, 0.24, 0.15, 0.045, 0.045];
const HIGH: [f64; TIERS] = [0.49, 0.255, 0.15, 0.05, 0.045, 0.01];

/// Minimum ratio between the writes to a page of the hottest tier and the writes to a page of the next tier.
const HOTTEST_RATIO: f64 = 1.5;

impl Tiers {
    /// Returns the tiers of a machine. At a `spread` of 1, the pages of the lower tiers may be written as often as the
    /// percentile above them says. With a smaller spread, more writes remain for the hottest tier.
    pub(super) fn of(machine: &Machine, spread: f64) -> Tiers {
        let pages = (machine.write_set_bytes / PAGE_BYTES) as f64;
        let page_writes = (machine.write_bytes + machine.unaligned_bytes) as f64 / PAGE_BYTES as f64;
        let [half, three_quarters, nine_tenths, most_but_5, hottest_page_writes] = machine.page_writes;
        let lowest = (half as f64 / 2.0).max(1.0);
        let lower = [lowest, half as f64, three_quarters as f64, nine_tenths as f64, most_but_5 as f64];
        let share = |tier: usize, wide: f64| WIDE[tier] * wide + HIGH[tier] * (1.0 - wide);
        let left = |wide: f64| {
            let taken: f64 = lower.iter().enumerate().map(|(tier, writes)| share(tier, wide) * writes).sum();
            page_writes - hottest_page_writes as f64 - pages * taken
        };
        // The writes remaining beyond the minimum of the hottest tier decrease linearly as the tiers widen.
        let beyond = |wide: f64| left(wide) - pages * share(TIERS - 1, wide) * HOTTEST_RATIO * lower[TIERS - 2];
        let wide = if beyond(spread) >= 0.0 { spread } else { (beyond(0.0) / (beyond(0.0) - beyond(1.0))).max(0.0) };
        let tiers = std::array::from_fn(|tier| {
            let pages = pages * share(tier, wide);
            let writes_each = lower.get(tier).copied().unwrap_or_else(|| left(wide) / pages);
            Tier { pages, writes_each }
        });
        Tiers { tiers }
    }
}
