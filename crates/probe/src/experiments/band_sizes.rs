//! Computes the confidence in a band size from all places where it was measured. The blocks that left the cache at one
//! time are one band, or several neighbouring bands that left together by chance.

use crate::bench::MIB;
use crate::statistics::is_near;
use crate::verdict::Confidence;

/// Size below which a band that was seen once may be two neighbouring ones, bytes: it covers few blocks.
const FEW_BLOCKS_BYTES: u64 = 21 * MIB / 2;
/// Largest ratio of the sizes of two bands with equally many tracks. Bands are larger at the outer edge, where a track
/// holds at most this many times the bytes of one at the inner edge: radii differ by little more than a factor of 2.
const OUTER_TIMES: f64 = 3.0;
/// Relative error within which one size counts as a multiple of another, or as equal to it.
const MULTIPLE: f64 = 0.04;

/// The band size measured at one place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Size of a band (the unit of cleaning) at this place of the drive, in bytes.
    pub bytes: u64,
    /// Number of whole bands that were seen to leave the cache at this place.
    pub bands: usize,
}

/// Returns the confidence in `size`, measured at one of `places` places; `told` holds the results of the places
/// measured so far.
pub(super) fn confidence(size: Size, told: &[Option<Size>], places: usize) -> Confidence {
    let sizes: Vec<f64> = told.iter().flatten().map(|size| size.bytes as f64).collect();
    let (bytes, is_single) = (size.bytes as f64, size.bands < 2);
    let (least, most) = sizes.iter().fold((bytes, bytes), |(least, most), &size| (size.min(least), size.max(most)));
    // Each place had other bands: they would not join in equal numbers everywhere by chance.
    if sizes.len() == places && is_near(least, most, MULTIPLE) {
        return Confidence::High;
    }
    let times = bytes / least;
    let is_multiple = times > 1.5 && (times - times.round()).abs() < MULTIPLE;
    // If no other place has a result, the number of bands in the run is unknown.
    let is_alone = sizes.len() < 2;
    let is_in_doubt = is_single && (size.bytes < FEW_BLOCKS_BYTES || is_multiple);
    if is_alone || is_in_doubt || times > OUTER_TIMES { Confidence::Medium } else { Confidence::High }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Confidence::{High, Medium};

    /// Returns the confidence in each of three results, given as KiB and number of bands.
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
        // Results of two drives with bands of 1.64 and 1.87 MiB: the ratio is larger than the tracks of one drive
        // explain.
        assert_eq!(sure([None, Some((1_696, 2)), Some((35_312, 4))]), [High, Medium]);
        assert_eq!(sure([Some((17_216, 2)), None, Some((1_920, 8))]), [Medium, High]);
    }
}
