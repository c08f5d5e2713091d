//! Division by a number that is known in advance: a multiplication and a correction in place of a hardware division.
//!
//! Invariants:
//! 1. [`Divider::divide`] is exact for every dividend a: with divisor d and r = ⌊(2⁶⁴ − 1) / d⌋, the estimate ⌊a·r /
//!    2⁶⁴⌋ is the quotient or one less, because a·(2⁶⁴/d − r) / 2⁶⁴ < 1.

/// A divisor and its reciprocal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Divider {
    divisor: u64,
    reciprocal: u64,
}

impl Divider {
    /// Prepares division by `divisor`, which is not zero.
    pub(crate) fn new(divisor: u64) -> Divider {
        assert!(divisor > 0, "a divisor is not zero");
        Divider { divisor, reciprocal: u64::MAX / divisor }
    }

    /// Returns the divisor.
    #[inline]
    pub(crate) fn divisor(self) -> u64 {
        self.divisor
    }

    /// Returns quotient and remainder.
    #[inline]
    pub(crate) fn divide(self, dividend: u64) -> (u64, u64) {
        // The product is one machine multiplication of which only the upper half is kept.
        let estimate = ((dividend as u128 * self.reciprocal as u128) >> 64) as u64;
        let rest = dividend - estimate * self.divisor;
        if rest >= self.divisor { (estimate + 1, rest - self.divisor) } else { (estimate, rest) }
    }

    /// Returns the quotient.
    #[inline]
    pub(crate) fn quotient(self, dividend: u64) -> u64 {
        self.divide(dividend).0
    }

    /// Returns the remainder.
    #[inline]
    pub(crate) fn remainder(self, dividend: u64) -> u64 {
        self.divide(dividend).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Checks invariant 1. Method: compare with the hardware's division, small and huge divisors alike.
        #[test]
        fn divides_as_the_hardware_does(dividend: u64, divisor in 1u64.., shift in 0u32..64) {
            let divisor = (divisor >> shift).max(1);
            prop_assert_eq!(Divider::new(divisor).divide(dividend), (dividend / divisor, dividend % divisor));
        }
    }

    #[test]
    fn divides_at_the_edges() {
        for divisor in [1, 2, 3, 1 << 32, 1 << 63, u64::MAX - 1, u64::MAX] {
            for dividend in [0, 1, divisor - 1, divisor, u64::MAX - 1, u64::MAX] {
                assert_eq!(Divider::new(divisor).divide(dividend), (dividend / divisor, dividend % divisor));
            }
        }
    }
}
