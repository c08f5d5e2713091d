//! Gaps: the sectors of a measured geometry that hold no user data. PBAs number the user's sectors only. *Addresses*
//! count every sector of the platters. This table converts one into the other.
//!
//! Invariants:
//! 1. Stretches rise both in PBAs and in addresses; between two of them lies a gap.
//! 2. A remapped PBA has an address outside its stretch; it is a piece of its own.

use super::finder::Finder;

/// The stretches of addresses that hold user data, and the remapped sectors.
#[derive(Clone, Debug)]
pub(super) struct Gaps {
    by_pba: Finder,
    /// First PBA of each stretch, and one past the last PBA of the disk.
    pbas: Vec<u64>,
    /// First address of each stretch.
    addresses: Vec<u64>,
    /// PBA and new address of each remapped sector, rising in PBA.
    remaps: Vec<(u64, u64)>,
}

/// Position of a PBA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Found {
    pub(super) address: u64,
    /// Number of sectors from the PBA on whose addresses follow each other without a gap.
    pub(super) together: u64,
    pub(super) is_remapped: bool,
}

impl Gaps {
    /// Creates the table of `stretches` (address and length, rising) and `remaps` (address and the address used in its
    /// place).
    pub(super) fn new(stretches: &[(u64, u64)], remaps: &[(u64, u64)]) -> Gaps {
        let (mut pbas, mut addresses, mut pba) = (Vec::new(), Vec::new(), 0);
        for &(address, sectors) in stretches {
            pbas.push(pba);
            addresses.push(address);
            pba += sectors;
        }
        let by_pba = Finder::new(pbas.clone(), pba);
        pbas.push(pba);
        let mut gaps = Gaps { by_pba, pbas, addresses, remaps: Vec::new() };
        let moved = remaps.iter().filter(|(from, _)| gaps.holds(*from)).map(|&(from, to)| (gaps.rank(from), to));
        let mut moved: Vec<_> = moved.collect();
        moved.sort_unstable();
        gaps.remaps = moved;
        gaps
    }

    /// Returns the number of the user's sectors.
    pub(super) fn sectors(&self) -> u64 {
        self.pbas[self.pbas.len() - 1]
    }

    /// Returns the position of `pba`.
    #[inline]
    pub(super) fn find(&self, pba: u64) -> Found {
        let index = self.by_pba.find(pba);
        let (mut end, address) = (self.pbas[index + 1], self.addresses[index] + (pba - self.pbas[index]));
        if !self.remaps.is_empty() {
            let next = self.remaps.partition_point(|&(moved, _)| moved < pba);
            match self.remaps.get(next) {
                Some(&(moved, address)) if moved == pba => return Found { address, together: 1, is_remapped: true },
                Some(&(moved, _)) => end = end.min(moved),
                None => {}
            }
        }
        Found { address, together: end - pba, is_remapped: false }
    }

    /// Returns the number of PBAs whose addresses lie before `address`, without regard to remaps.
    pub(super) fn rank(&self, address: u64) -> u64 {
        match self.addresses.partition_point(|&start| start <= address) {
            0 => 0,
            after => (self.pbas[after - 1] + (address - self.addresses[after - 1])).min(self.pbas[after]),
        }
    }

    fn holds(&self, address: u64) -> bool {
        self.rank(address + 1) > self.rank(address)
    }
}
