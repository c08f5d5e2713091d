//! The paper's words as numbers. Each predicate is the sentence that reports print beside it. Where the paper itself
//! gives a word a number, the predicate uses that number.

/// Returns whether a count of the fifteen workloads is "about half": 6 to 9.
pub(super) fn is_about_half(count: usize) -> bool {
    (6..=9).contains(&count)
}

/// Returns whether a count of the fifteen workloads is "over half", "most" or "the majority".
pub(super) fn is_over_half(count: usize) -> bool {
    count >= 8
}

/// Returns whether a number of workloads is "several": at least 3.
pub(super) fn is_several(count: usize) -> bool {
    count >= 3
}

/// Returns whether a measure falls "by a factor of 2 or more".
pub(super) fn is_halved(before_over_after: f64) -> bool {
    before_over_after >= 2.0
}

/// Returns whether a ratio is "significant": "more than 2x" (§4).
pub(super) fn is_significant(ratio: f64) -> bool {
    ratio > 2.0
}

/// Returns whether a ratio is a "modest" gain: over 1, and below the paper's "significant".
pub(super) fn is_modest(ratio: f64) -> bool {
    ratio > 1.0 && !is_significant(ratio)
}

/// Returns whether a ratio is "about twice": 1.5 to 2.5.
pub(super) fn is_about_twice(ratio: f64) -> bool {
    (1.5..=2.5).contains(&ratio)
}

/// Returns whether a ratio is "noticeably higher": at least 1.25.
pub(super) fn is_noticeable(ratio: f64) -> bool {
    ratio >= 1.25
}

/// Returns whether a ratio means "not affected": neither noticeably higher nor noticeably lower.
pub(super) fn is_unaffected(ratio: f64) -> bool {
    !is_noticeable(ratio) && !is_noticeable(1.0 / ratio)
}

/// Returns whether a ratio means "similar": not noticeably higher.
pub(super) fn is_similar(ratio: f64) -> bool {
    !is_noticeable(ratio)
}

/// Returns whether an excess is "nearly eliminated" or "virtually eliminated": at most a tenth of the excess is left.
pub(super) fn is_eliminated(share_left: f64) -> bool {
    share_left <= 0.1
}

/// Returns whether a ratio is "a factor of tens of thousands".
pub(super) fn is_tens_of_thousands(ratio: f64) -> bool {
    (10_000.0..100_000.0).contains(&ratio)
}

/// Returns whether a ratio has "double digits".
pub(super) fn is_double_digits(ratio: f64) -> bool {
    (10.0..100.0).contains(&ratio)
}

/// Returns whether a mean is "about 0.1 ms": that of the conventional drive in §4, on which the paper's worst cases
/// are based.
pub(super) fn is_about_a_tenth_of_a_millisecond(ms: f64) -> bool {
    (0.05..=0.15).contains(&ms)
}

/// Returns whether a time is "about 2.4 s": 1.8 to 3 s.
pub(super) fn is_about_2_4_seconds(seconds: f64) -> bool {
    (1.8..=3.0).contains(&seconds)
}

/// Returns whether a share is "roughly 2/3", to within 0.1.
pub(super) fn is_roughly_two_thirds(share: f64) -> bool {
    (share - 2.0 / 3.0).abs() <= 0.1
}

/// Returns whether a share is "roughly 25 %", to within 0.1.
pub(super) fn is_roughly_a_quarter(share: f64) -> bool {
    (share - 0.25).abs() <= 0.1
}

/// Returns whether a share is "roughly 10 %", to within 0.05.
pub(super) fn is_roughly_a_tenth(share: f64) -> bool {
    (share - 0.1).abs() <= 0.05
}

/// Returns whether `part` is "considerably" less than `whole`: at most a half.
pub(super) fn is_considerably_less(part: f64, whole: f64) -> bool {
    part <= 0.5 * whole
}

#[cfg(test)]
mod tests {
    //! Goal: each predicate agrees with its sentence. Method: numbers on both sides of each bound.

    use super::*;

    #[test]
    fn counts_of_fifteen() {
        assert!([6, 7, 8, 9].into_iter().all(is_about_half) && ![4, 5, 10, 11].into_iter().any(is_about_half));
        assert!(is_over_half(8) && !is_over_half(7));
        assert!(is_several(3) && !is_several(2));
    }

    #[test]
    fn ratios() {
        assert!(is_halved(2.0) && !is_halved(1.99));
        assert!(is_significant(2.01) && !is_significant(2.0));
        assert!(is_modest(1.5) && !is_modest(1.0) && !is_modest(4.14), "a gain of four times is not modest");
        assert!(is_about_twice(2.0) && !is_about_twice(1.05) && !is_about_twice(38.0));
        assert!(is_noticeable(1.25) && !is_noticeable(1.06));
        assert!(is_unaffected(1.06) && !is_unaffected(1.3) && !is_unaffected(0.7));
        assert!(is_similar(0.9) && !is_similar(1.5));
        assert!(is_tens_of_thousands(11_136.0) && !is_tens_of_thousands(47.8) && !is_tens_of_thousands(1e5));
        assert!(is_double_digits(42.0) && !is_double_digits(1.0) && !is_double_digits(9_747.0));
    }

    #[test]
    fn shares_and_times() {
        assert!(is_eliminated(0.083) && !is_eliminated(0.182));
        assert!(is_about_a_tenth_of_a_millisecond(0.1) && !is_about_a_tenth_of_a_millisecond(0.4));
        assert!(is_about_2_4_seconds(2.4) && !is_about_2_4_seconds(0.2));
        assert!(is_roughly_two_thirds(0.7) && !is_roughly_two_thirds(0.9) && !is_roughly_two_thirds(0.32));
        assert!(is_roughly_a_quarter(0.19) && !is_roughly_a_quarter(0.72));
        assert!(is_roughly_a_tenth(0.12) && !is_roughly_a_tenth(0.3));
        assert!(is_considerably_less(0.3, 0.66) && !is_considerably_less(0.6, 0.66));
    }
}
