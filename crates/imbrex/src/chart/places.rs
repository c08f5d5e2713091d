//! Places for labels within a frame, so that no label covers another label, a line or the edge of the frame.
//!
//! Invariants:
//! 1. Labels for which [`Places::first_free`] found a place do not overlap, and lie within the frame.

use super::draw::Frame;
use super::svg::text_width;

/// Space between two labels, in pixels.
const GAP: f64 = 3.0;
/// Room for a label, as a multiple of its approximate width: fonts of some systems are wider.
const ROOM: f64 = 1.1;

/// A place of a label: its position and its alignment there (`start`, `middle` or `end`).
pub(super) type Place = ((f64, f64), &'static str);

#[derive(Clone, Copy)]
struct Box {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Box {
    /// Returns the box of a text whose baseline is at the place.
    fn of(text: &str, size: f64, ((x, y), anchor): Place) -> Box {
        let width = ROOM * text_width(text, size);
        let left = match anchor {
            "start" => x,
            "middle" => x - width / 2.0,
            _ => x - width,
        };
        Box { left, top: y - 0.85 * size, right: left + width, bottom: y + 0.25 * size }
    }

    fn overlaps(&self, other: &Box) -> bool {
        self.left < other.right + GAP
            && other.left < self.right + GAP
            && self.top < other.bottom
            && other.top < self.bottom
    }

    /// Returns whether the straight line from `a` to `b` has a part within the box. Clips the line at the four edges.
    fn is_crossed(&self, (ax, ay): (f64, f64), (bx, by): (f64, f64)) -> bool {
        let (mut from, mut until) = (0.0f64, 1.0f64);
        for (start, step, low, high) in [(ax, bx - ax, self.left, self.right), (ay, by - ay, self.top, self.bottom)] {
            if step == 0.0 {
                if start < low || start > high {
                    return false;
                }
                continue;
            }
            let (one, other) = ((low - start) / step, (high - start) / step);
            (from, until) = (from.max(one.min(other)), until.min(one.max(other)));
        }
        from <= until
    }
}

/// The labels of one drawing so far, and the lines that labels must not cover.
pub(super) struct Places {
    frame: Box,
    labels: Vec<Box>,
    lines: Vec<Vec<(f64, f64)>>,
}

impl Places {
    pub(super) fn new(frame: Frame) -> Places {
        let frame = Box { left: frame.left, top: frame.top, right: frame.right(), bottom: frame.bottom() };
        Places { frame, labels: Vec::new(), lines: Vec::new() }
    }

    /// Adds a line, as its corners, that no label found from now on covers.
    pub(super) fn avoid(&mut self, corners: Vec<(f64, f64)>) {
        self.lines.push(corners);
    }

    /// Returns the first of the places at which a text in a font of `size` pixels is free, and takes it.
    pub(super) fn first_free(
        &mut self,
        text: &str,
        size: f64,
        places: impl IntoIterator<Item = Place>,
    ) -> Option<Place> {
        let place = places.into_iter().find(|place| {
            let label = Box::of(text, size, *place);
            self.is_beside_labels(&label) && !self.covers_a_line(&label)
        })?;
        self.labels.push(Box::of(text, size, place));
        Some(place)
    }

    /// Returns the first of the places at which the text covers no other label, and takes it. The text may cover a line.
    pub(super) fn first_beside_labels(&mut self, text: &str, size: f64, places: &[Place]) -> Option<Place> {
        let place = places.iter().copied().find(|place| self.is_beside_labels(&Box::of(text, size, *place)))?;
        self.labels.push(Box::of(text, size, place));
        Some(place)
    }

    fn is_beside_labels(&self, label: &Box) -> bool {
        let frame = &self.frame;
        let is_inside = label.left >= frame.left && label.right <= frame.right;
        is_inside
            && label.top >= frame.top
            && label.bottom <= frame.bottom
            && !self.labels.iter().any(|other| other.overlaps(label))
    }

    fn covers_a_line(&self, label: &Box) -> bool {
        self.lines.iter().any(|line| line.windows(2).any(|pair| label.is_crossed(pair[0], pair[1])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Frame = Frame { left: 0.0, top: 0.0, width: 200.0, height: 100.0 };

    #[test]
    fn a_label_takes_the_first_place_that_no_other_has() {
        let mut places = Places::new(FRAME);
        let above = [((100.0, 50.0), "middle"), ((100.0, 70.0), "middle")];
        assert_eq!(places.first_free("one", 12.0, above), Some(above[0]));
        assert_eq!(places.first_free("two", 12.0, above), Some(above[1]));
        assert_eq!(places.first_free("three", 12.0, above), None);
        assert_eq!(
            places.first_free("a text that is too long for this frame", 12.0, [((100.0, 20.0), "middle")]),
            None
        );
    }

    #[test]
    fn no_label_covers_a_line() {
        let mut places = Places::new(FRAME);
        places.avoid(vec![(0.0, 100.0), (200.0, 0.0)]);
        assert_eq!(places.first_free("here", 12.0, [((100.0, 54.0), "middle")]), None);
        let corner = ((4.0, 20.0), "start");
        assert_eq!(places.first_free("here", 12.0, [((100.0, 54.0), "middle"), corner]), Some(corner));
    }
}
