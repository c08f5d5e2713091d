//! How sure the size of a band is, by what all places where it was measured tell together. What left the cache at one time is a
//! band, or some bands that lie side by side and left together by chance.

use crate::bench::MIB;
use crate::statistics::is_near;
use crate::verdict::Confidence;

/// A single band of few blocks may be two that lie side by side.
const FEW_BLOCKS_BYTES: u64 = 21 * MIB / 2;
/// Bands of as many tracks are larger at the outer edge, where a track holds no more than so many times what one at the inner
/// edge does: radii differ by little more than two times.
const OUTER_TIMES: f64 = 3.0;
/// A size is a multiple of another if no more than this is left, and the same if they differ by no more.
const MULTIPLE: f64 = 0.04;

/// What a place tells.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub bytes: u64,
    /// Bands that were seen to leave.
    pub bands: usize,
}

/// How sure `size` is, which one of so many places told, where `told` is what those tell that were looked at.
pub fn confidence(size: Size, told: &[Option<Size>], places: usize) -> Confidence {
    let sizes: Vec<f64> = told.iter().flatten().map(|size| size.bytes as f64).collect();
    let (bytes, is_single) = (size.bytes as f64, size.bands < 2);
    let (least, most) = sizes.iter().fold((bytes, bytes), |(least, most), &size| (size.min(least), size.max(most)));
    // At each place it was other bands that left: by chance it would not be as many of them everywhere.
    if sizes.len() == places && is_near(least, most, MULTIPLE) {
        return Confidence::High;
    }
    let times = bytes / least;
    let is_multiple = times > 1.5 && (times - times.round()).abs() < MULTIPLE;
    // Of how many bands it is nobody can say where no other place tells anything.
    let is_alone = sizes.len() < 2;
    let is_in_doubt = is_single && (size.bytes < FEW_BLOCKS_BYTES || is_multiple);
    if is_alone || is_in_doubt || times > OUTER_TIMES { Confidence::Medium } else { Confidence::High }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Confidence::{High, Medium};

    /// How sure three places are of what they tell in KiB, and of how many bands they saw.
    fn sure(told: [Option<(u64, usize)>; 3]) -> Vec<Confidence> {
        let told = told.map(|told| told.map(|(kib, bands)| Size { bytes: kib << 10, bands }));
        told.iter().flatten().map(|size| confidence(*size, &told, 3)).collect()
    }

    #[test]
    fn small_bands_seen_once_are_sure_where_all_places_agree() {
        assert_eq!(sure([Some((5_000, 1)), Some((5_100, 1)), Some((5_050, 1))]), [High; 3]);
        assert_eq!(sure([Some((5_000, 1)), Some((5_100, 1)), None]), [Medium; 2], "two may agree by chance");
        assert_eq!(sure([Some((5_000, 1)), Some((5_100, 1)), Some((5_300, 1))]), [Medium; 3]);
        assert_eq!(sure([Some((5_000, 2)), Some((5_100, 1)), Some((5_300, 3))]), [High, Medium, High]);
    }

    #[test]
    fn what_may_be_several_bands_is_less_sure() {
        assert_eq!(sure([None, Some((14_480, 5)), None]), [Medium], "one place alone");
        assert_eq!(sure([Some((30_000, 1)), Some((15_000, 2)), None]), [Medium, High], "as large as two");
        assert_eq!(
            sure([Some((26_000, 1)), Some((15_000, 2)), Some((12_500, 3))]),
            [High; 3],
            "of tracks of other lengths"
        );
        // Of two drives whose bands take 1.64 and 1.87 MiB: larger than any track of one drive makes a band.
        assert_eq!(sure([None, Some((1_696, 2)), Some((35_312, 4))]), [High, Medium]);
        assert_eq!(sure([Some((17_216, 2)), None, Some((1_920, 8))]), [Medium, High]);
    }
}
