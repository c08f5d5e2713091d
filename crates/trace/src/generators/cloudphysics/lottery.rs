//! Draws without replacement among a few kinds, so that each kind is drawn exactly a given number of times.
//!
//! The counts form a binary tree. A draw descends from the root and decrements every count on its path.
//!
//! Invariants:
//! 1. Every kind is drawn exactly as often as its initial count, for any random numbers.
//! 2. A node holds the sum of its two children.

use super::super::random::Stream;

/// Number of remaining draws of each kind.
#[derive(Clone, Debug)]
pub(super) struct Lottery {
    /// Sums of the counts: node k has the children 2k and 2k + 1. The root is 1; the leaves are the second half.
    nodes: Vec<u64>,
}

impl Lottery {
    pub(super) fn new(counts: impl ExactSizeIterator<Item = u64>) -> Lottery {
        let leaves = counts.len().next_power_of_two();
        let mut nodes = vec![0; 2 * leaves];
        counts.enumerate().for_each(|(kind, count)| nodes[leaves + kind] = count);
        (1..leaves).rev().for_each(|node| nodes[node] = nodes[2 * node] + nodes[2 * node + 1]);
        Lottery { nodes }
    }

    /// Draws one of the remaining kinds and decrements its count. Returns `None` if no draws remain.
    #[inline]
    pub(super) fn draw(&mut self, stream: &mut Stream) -> Option<usize> {
        let leaves = self.nodes.len() / 2;
        let mut ticket = stream.below(self.nodes[1]);
        if self.nodes[1] == 0 {
            return None;
        }
        let mut node = 1;
        self.nodes[node] -= 1;
        while node < leaves {
            node *= 2;
            if ticket >= self.nodes[node] {
                ticket -= self.nodes[node];
                node += 1;
            }
            self.nodes[node] -= 1;
        }
        Some(node - leaves)
    }
}
