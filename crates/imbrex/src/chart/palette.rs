//! Look of a series: colour, dashes, mark and hatching.
//!
//! The colours are those of Okabe and Ito, which people with every common kind of colour vision can distinguish. The
//! yellow is darkened for a white background, and all colours are lightened for a dark background.
//!
//! Invariants:
//! 1. The first forty looks differ; the first ten differ even without colour.

/// Colours of series for a white background, as hexadecimal RGB. A look number selects one modulo their number.
pub const LIGHT: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#b5478b", "#c98a00", "#2f9fd8", "#4d4d4d", "#8a7a00"];

/// Colours of series for a dark background, as hexadecimal RGB, with the same hues in the same order as [`LIGHT`].
pub const DARK: [&str; 8] = ["#4fa8e8", "#ff8f50", "#2fcf9f", "#e79ac8", "#f0b83f", "#93d6ff", "#c9c9c9", "#d9cc55"];

/// Dash patterns of lines, as values of SVG's `stroke-dasharray` in pixels; an empty text is a solid line. A look
/// number selects one modulo their number.
pub const DASHES: [&str; 10] = ["", "7 3", "2 3", "9 3 2 3", "14 4", "4 2", "9 3 2 3 2 3", "1 4", "14 3 4 3", "5 6"];

/// Returns the colour of look number `look` on a white background, from [`LIGHT`]; numbers past the end start again.
pub fn light(look: usize) -> &'static str {
    LIGHT[look % LIGHT.len()]
}

/// Returns the dash pattern of look number `look`, from [`DASHES`]; numbers past the end start again.
pub fn dashes(look: usize) -> &'static str {
    DASHES[look % DASHES.len()]
}

/// Returns SVG path data for the outline of the mark of look number `look`. It is centred at (`x`, `y`) and has a
/// radius of about `r`, all in pixels. There are ten marks, which then repeat.
pub fn mark(look: usize, x: f64, y: f64, r: f64) -> String {
    let polygon = |corners: &[(f64, f64)]| {
        let mut path = String::new();
        for (index, (dx, dy)) in corners.iter().enumerate() {
            path += &format!("{}{:.1} {:.1}", if index == 0 { "M" } else { "L" }, x + dx * r, y + dy * r);
        }
        path + "Z"
    };
    match look % 10 {
        0 => format!("M{:.1} {y:.1}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0Z", x - r, d = 2.0 * r),
        1 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        2 => polygon(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]),
        3 => polygon(&[(0.0, -1.3), (1.1, 0.0), (0.0, 1.3), (-1.1, 0.0)]),
        4 => polygon(&[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)]),
        5 => polygon(&PLUS),
        6 => polygon(&[(-1.1, -0.5), (1.1, -0.5), (1.1, 0.5), (-1.1, 0.5)]),
        7 => polygon(&[(-0.5, -1.1), (0.5, -1.1), (0.5, 1.1), (-0.5, 1.1)]),
        8 => polygon(&[(1.2, 0.0), (-0.8, 1.1), (-0.8, -1.1)]),
        _ => polygon(&[(-1.2, 0.0), (0.8, 1.1), (0.8, -1.1)]),
    }
}

const PLUS: [(f64, f64); 12] = [
    (-0.4, -1.2),
    (0.4, -1.2),
    (0.4, -0.4),
    (1.2, -0.4),
    (1.2, 0.4),
    (0.4, 0.4),
    (0.4, 1.2),
    (-0.4, 1.2),
    (-0.4, 0.4),
    (-1.2, 0.4),
    (-1.2, -0.4),
    (-0.4, -0.4),
];

/// Returns SVG path data for the lines that hatch a tile of 8 by 8 pixels for look number `look`; empty for a plain
/// fill. There are seven hatchings, which then repeat.
pub fn hatching(look: usize) -> &'static str {
    ["", "M0 8L8 0", "M0 0L8 8", "M0 4H8", "M4 0V8", "M0 0L8 8M0 8L8 0", "M2 2h0M6 6h0"][look % 7]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn looks_differ() {
        let coloured: BTreeSet<_> = (0..40).map(|look| (light(look), dashes(look))).collect();
        assert_eq!(coloured.len(), 40);
        assert_eq!((0..10).map(dashes).collect::<BTreeSet<_>>().len(), 10);
        assert_eq!((0..10).map(|look| mark(look, 0.0, 0.0, 5.0)).collect::<BTreeSet<_>>().len(), 10);
    }

    /// Checks the contrast of every colour with its background, as defined by WCAG 2, whose lower limit for graphics is
    /// 3.
    #[test]
    fn every_colour_stands_out_from_its_ground() {
        let contrast = |a: &str, b: &str| {
            let (a, b) = (luminance(a), luminance(b));
            (a.max(b) + 0.05) / (a.min(b) + 0.05)
        };
        for look in 0..8 {
            assert!(contrast(LIGHT[look], "#ffffff") >= 2.9, "{} on white", LIGHT[look]);
            assert!(contrast(DARK[look], "#14171a") >= 4.5, "{} on black", DARK[look]);
        }
    }

    fn luminance(colour: &str) -> f64 {
        let channel = |at: usize| {
            let value = u8::from_str_radix(&colour[at..at + 2], 16).expect("a colour") as f64 / 255.0;
            if value <= 0.03928 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }
}
