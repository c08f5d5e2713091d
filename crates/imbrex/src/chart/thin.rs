//! Thinning of a series to the points that a chart can show.
//!
//! Invariants:
//! 1. The first and the last point are kept, and the lowest and the highest point of every interval. The order is kept.

/// Keeps at most `limit` of `points`, which must be in order of x. The intervals have equal lengths on the axis whose
/// positions `place` returns.
pub(super) fn extremes(points: &mut Vec<(f64, f64)>, limit: usize, place: impl Fn(f64) -> Option<f64>) {
    if points.len() <= limit.max(4) {
        return;
    }
    let stretches = (limit / 4).max(1);
    let stretch_of = |x: f64| ((place(x).unwrap_or(0.0) * stretches as f64) as usize).min(stretches - 1);
    let mut keep = vec![false; points.len()];
    let mut begin = 0;
    while begin < points.len() {
        let stretch = stretch_of(points[begin].0);
        let mut end = begin + 1;
        while end < points.len() && stretch_of(points[end].0) == stretch {
            end += 1;
        }
        keep_extremes(points, begin, end, &mut keep);
        begin = end;
    }
    let mut kept = keep.iter();
    points.retain(|_| *kept.next().expect("one flag a point"));
}

fn keep_extremes(points: &[(f64, f64)], begin: usize, end: usize, keep: &mut [bool]) {
    let (mut lowest, mut highest) = (begin, begin);
    for index in begin..end {
        if points[index].1 < points[lowest].1 {
            lowest = index;
        }
        if points[index].1 > points[highest].1 {
            highest = index;
        }
    }
    for index in [begin, lowest, highest, end - 1] {
        keep[index] = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_and_peaks_stay() {
        let mut points: Vec<(f64, f64)> = (0..10_000).map(|i| (i as f64, (i % 7) as f64)).collect();
        points[5_432].1 = 99.0;
        points[2_345].1 = -99.0;
        let all = points.clone();
        extremes(&mut points, 200, |x| Some(x / 10_000.0));
        assert!(points.len() <= 200 && points.len() > 100, "{}", points.len());
        assert_eq!((points[0], points[points.len() - 1]), (all[0], all[9_999]));
        assert!(points.contains(&(5_432.0, 99.0)) && points.contains(&(2_345.0, -99.0)));
        assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0), "order is kept");
    }

    #[test]
    fn few_points_are_left_alone() {
        let mut points = vec![(1.0, 1.0), (2.0, 0.0), (3.0, 5.0)];
        extremes(&mut points, 2, |_| Some(0.5));
        assert_eq!(points.len(), 3);
    }
}
