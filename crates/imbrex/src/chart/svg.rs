//! Writer of SVG: elements, text and colours in one of two styles.
//!
//! Invariants:
//! 1. The output is well-formed, whatever text it contains.
//! 2. Coordinates have one decimal: a tenth of a pixel.

use std::fmt::Write as _;

use super::palette;

/// Destination of a drawing, which decides its colours and whether it has a title and a legend.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// A file of its own: white background, fixed colours, title and legend inside.
    Standalone,
    /// A file for a column of a paper: as `Standalone`, [`COLUMN_MM`] wide, without a title, which the paper has in its
    /// caption.
    Column,
    /// Part of an HTML page, which shows title and legend itself. The page's style sheet defines the colours as
    /// `--ink`, `--muted`, `--grid`, `--ground` and `--series-0` to `--series-7`.
    Embedded,
}

/// Width in millimetres of a drawing for a column of a paper.
pub const COLUMN_MM: f64 = 88.0;

impl Style {
    /// Returns whether the drawing is a file of its own.
    pub fn is_file(self) -> bool {
        self != Style::Embedded
    }

    /// Returns the colour of a series with look number `look`, as a CSS value: a hexadecimal colour or a `var()`.
    /// Colours repeat after 8 numbers.
    pub fn series(self, look: usize) -> String {
        match self {
            Style::Standalone | Style::Column => palette::light(look).to_string(),
            Style::Embedded => format!("var(--series-{})", look % palette::LIGHT.len()),
        }
    }

    /// Returns the colour called `name` as a CSS value. The names are `ink` for text, `muted` for secondary text,
    /// `grid` for grid lines and `ground` for the background. Another name gives white in a standalone drawing, and
    /// `var(--NAME)` in an embedded one.
    pub fn colour(self, name: &str) -> String {
        match (self, name) {
            (Style::Embedded, name) => format!("var(--{name})"),
            (_, "ink") => "#1b1f23".to_string(),
            (_, "muted") => "#57606a".to_string(),
            (_, "grid") => "#dfe3e8".to_string(),
            (_, _) => "#ffffff".to_string(),
        }
    }
}

/// Escapes the characters `&`, `<`, `>`, `"` and `'` in `text` for XML and HTML. Replaces tabs and line feeds by
/// blanks, and removes other control characters.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(' '),
            other if other.is_control() => {}
            other => out.push(other),
        }
    }
    out
}

/// Formats a coordinate to a tenth of a pixel, as short as possible.
pub(super) fn pixel(value: f64) -> String {
    let tenths = (value * 10.0).round() as i64;
    if tenths % 10 == 0 { (tenths / 10).to_string() } else { format!("{}", tenths as f64 / 10.0) }
}

/// Returns the approximate width of `text` in a sans-serif font of `size` pixels.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(|c| if "il.,:;|'()[] \u{a0}\u{202f}".contains(c) { 0.32 } else { 0.58 }).sum::<f64>() * size
}

/// Size, alignment, colour and weight of text.
#[derive(Clone, Copy)]
pub(super) struct Font<'a> {
    pub size: f64,
    /// Alignment of the text at its position: `start`, `middle` or `end`, as SVG's `text-anchor`.
    pub anchor: &'a str,
    /// Name of the text's colour, for [`Style::colour`].
    pub colour: &'a str,
    pub is_bold: bool,
}

/// Font of the title of a standalone drawing.
pub(super) const TITLE: Font<'static> = Font { size: 15.0, anchor: "start", colour: "ink", is_bold: true };
/// Space on either side of the title, in pixels.
const TITLE_MARGIN: f64 = 16.0;
/// Width of a bold text, as a multiple of the approximate width of a text.
const BOLD: f64 = 1.1;

/// Returns `title` with `words` after it, or `title` alone if both do not fit into a drawing of this width.
pub(super) fn lengthened_title(title: String, words: &str, width: f64) -> String {
    let longer = format!("{title}{words}");
    let is_shown = BOLD * text_width(&longer, TITLE.size) <= width - 2.0 * TITLE_MARGIN;
    if is_shown { longer } else { title }
}

/// An SVG element that is being written.
pub(super) struct Canvas {
    pub style: Style,
    out: String,
}

impl Canvas {
    /// Starts a drawing of `size`, with a title and a description for readers who cannot see it. `extra` holds further
    /// attributes.
    pub(super) fn open(
        style: Style,
        id: &str,
        size: (f64, f64),
        title: &str,
        description: &str,
        extra: &str,
    ) -> Canvas {
        let mut out = String::new();
        let (width, height) = (pixel(size.0), pixel(size.1));
        let printed = match style {
            Style::Column => (format!("{COLUMN_MM}mm"), format!("{}mm", pixel(size.1 * COLUMN_MM / size.0))),
            _ => (width.clone(), height.clone()),
        };
        let described = if description.is_empty() { String::new() } else { format!(" {id}-description") };
        let _ = write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"{id}\" viewBox=\"0 0 {width} {height}\" \
             width=\"{}\" height=\"{}\" role=\"img\" aria-labelledby=\"{id}-title{described}\" \
             font-family=\"system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif\" font-size=\"12\"{extra}>\
             <title id=\"{id}-title\">{}</title>",
            printed.0,
            printed.1,
            escape(title)
        );
        if !description.is_empty() {
            let _ = write!(out, "<desc id=\"{id}-description\">{}</desc>", escape(description));
        }
        if style.is_file() {
            let _ = write!(out, "<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>");
        }
        Canvas { style, out }
    }

    /// Writes markup without escaping.
    pub(super) fn raw(&mut self, markup: &str) {
        self.out.push_str(markup);
    }

    /// Begins a group of elements, which the script of a page finds by its class. Standalone drawings have no groups.
    pub(super) fn group(&mut self, class: &str) {
        if self.style == Style::Embedded {
            let _ = write!(self.out, "<g class=\"{class}\">");
        }
    }

    /// Ends the group that was begun last.
    pub(super) fn end_group(&mut self) {
        if self.style == Style::Embedded {
            self.out.push_str("</g>");
        }
    }

    /// Draws a straight line.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, width: f64, dashes: &str) {
        let colour = self.style.colour(colour);
        let dashes = if dashes.is_empty() { String::new() } else { format!(";stroke-dasharray:{dashes}") };
        let _ = write!(
            self.out,
            "<path d=\"M{} {}L{} {}\" fill=\"none\" style=\"stroke:{colour};stroke-width:{width}{dashes}\"/>",
            pixel(from.0),
            pixel(from.1),
            pixel(to.0),
            pixel(to.1)
        );
    }

    /// Draws a line of text.
    pub(super) fn text(&mut self, at: (f64, f64), text: &str, font: Font<'_>) {
        self.text_with(at, text, font, ("", ""));
    }

    /// Draws a line of text with a border in the colour of the ground, which keeps it legible over lines.
    pub(super) fn text_on_ground(&mut self, at: (f64, f64), text: &str, font: Font<'_>) {
        let ground = self.style.colour("ground");
        let border = format!(";paint-order:stroke;stroke:{ground};stroke-width:3px;stroke-linejoin:round");
        self.text_with(at, text, font, (&border, ""));
    }

    /// Draws a line of text that reads upwards.
    pub(super) fn text_upwards(&mut self, at: (f64, f64), text: &str, font: Font<'_>) {
        let turn = format!(" transform=\"rotate(-90 {} {})\"", pixel(at.0), pixel(at.1));
        self.text_with(at, text, font, ("", &turn));
    }

    /// Draws a line of text with a further part of its style and further attributes.
    fn text_with(&mut self, at: (f64, f64), text: &str, font: Font<'_>, (style, extra): (&str, &str)) {
        let Font { size, anchor, colour, is_bold } = font;
        let weight = if is_bold { ";font-weight:600" } else { "" };
        let _ = write!(
            self.out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\" style=\"fill:{};font-size:{size}px{weight}{style}\"{extra}>{}\
             </text>",
            pixel(at.0),
            pixel(at.1),
            self.style.colour(colour),
            escape(text)
        );
    }

    /// Ends the drawing and returns it.
    pub(super) fn close(mut self) -> String {
        self.out.push_str("</svg>");
        self.out
    }
}
