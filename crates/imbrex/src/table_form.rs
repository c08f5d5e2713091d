//! Tables for terminals and for other programs: text, CSV, Markdown and LaTeX.
//!
//! Invariants:
//! 1. In CSV, a cell with a number has it without a unit. The name of the column, or of the row, ends in the unit.
//! 2. Tables of Markdown and LaTeX have the cells of the terminal.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use imbrex_sim::Estimate;
use serde_json::Value;

/// A form of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableForm {
    /// Comma-separated values (RFC 4180): numbers in base units, for programs.
    Csv,
    /// A table of Markdown, for pages.
    Markdown,
    /// An environment `tabular` of LaTeX with the rules of the package `booktabs`, for papers.
    Latex,
}

impl TableForm {
    /// All forms, in the order of the help text.
    pub const ALL: [TableForm; 3] = [TableForm::Csv, TableForm::Markdown, TableForm::Latex];

    /// Returns the name of the form on the command line: `csv`, `markdown` or `latex`.
    pub const fn name(self) -> &'static str {
        match self {
            TableForm::Csv => "csv",
            TableForm::Markdown => "markdown",
            TableForm::Latex => "latex",
        }
    }
}

/// A column: its name in CSV, which ends in the unit of its numbers, and its heading elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Name in CSV.
    pub name: String,
    /// Heading in Markdown and LaTeX.
    pub heading: String,
    /// Whether the column contains numbers, which are aligned to the right.
    pub is_numeric: bool,
}

impl Column {
    /// Creates a column of texts.
    pub fn text(name: &str, heading: &str) -> Column {
        Column { name: name.into(), heading: heading.into(), is_numeric: false }
    }

    /// Creates a column of numbers.
    pub fn numeric(name: &str, heading: &str) -> Column {
        Column { name: name.into(), heading: heading.into(), is_numeric: true }
    }
}

/// A cell: its text, and its number in the unit of its column, if it has one.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// Text in Markdown and LaTeX, and in CSV if there is no number.
    pub shown: String,
    /// Number in CSV.
    pub number: Option<f64>,
    /// Half of the 95 % interval of the number, in its unit, if it is a mean over seeds. In CSV, a column with such cells
    /// has another column after it, whose name ends in `_half_width_95`.
    pub half_width_95: Option<f64>,
}

impl Cell {
    /// Creates a cell of text.
    pub fn text(text: impl Into<String>) -> Cell {
        Cell { shown: text.into(), number: None, half_width_95: None }
    }

    /// Creates a cell with a number and its text.
    pub fn number(number: f64, shown: impl Into<String>) -> Cell {
        Cell { shown: shown.into(), number: Some(number), half_width_95: None }
    }

    /// Creates a cell with a mean over seeds and its interval. `shown` is the text of both.
    pub fn estimate(over: &Estimate, shown: impl Into<String>) -> Cell {
        Cell { half_width_95: Some(over.half_width_95), ..Cell::number(over.mean, shown) }
    }

    /// Creates a cell without a value: empty in CSV, a dash elsewhere.
    pub fn none() -> Cell {
        Cell::text("–")
    }
}

/// A table of cells.
#[derive(Clone, PartialEq, Debug)]
pub struct Cells {
    /// The columns, from left to right.
    pub columns: Vec<Column>,
    /// The rows, each with one cell per column.
    pub rows: Vec<Vec<Cell>>,
}

impl Cells {
    /// Creates a table of texts. The names of the columns in CSV are their headings, with underscores for spaces.
    pub fn of_texts(headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Cells {
        let columns = headings.iter().map(|heading| Column::text(&heading.replace(' ', "_"), heading)).collect();
        let rows = rows.into_iter().map(|row| row.into_iter().map(Cell::text).collect()).collect();
        Cells { columns, rows }
    }

    /// Creates a table of the figures of a document of JSON: one row per number, text or truth value, under its path, such
    /// as `read_size_bytes.p95`. The last word of a path has the unit. The version of the document's fields is left out.
    pub fn of_document(document: &Value) -> Cells {
        let mut rows = Vec::new();
        add_figures(document, "", &mut rows);
        rows.retain(|row: &Vec<Cell>| row[0].shown != "schema");
        Cells { columns: vec![Column::text("figure", "figure"), Column::numeric("value", "value")], rows }
    }

    /// Returns the table in a form, with a line feed after each line.
    pub fn in_form(&self, form: TableForm) -> String {
        match form {
            TableForm::Csv => self.csv(),
            TableForm::Markdown => self.markdown(),
            TableForm::Latex => self.latex(),
        }
    }

    /// Returns the table as text for a terminal that is `columns` characters wide: a line of headings, and a line per row. If
    /// the longest line is wider, returns one block of lines per row instead, with the headings in it. `None` sets no limit.
    pub fn within(&self, columns: Option<usize>) -> String {
        let lines = self.lines();
        let longest = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
        match columns {
            Some(columns) if longest > columns => self.blocks(columns),
            _ => lines.join("\n"),
        }
    }

    fn lines(&self) -> Vec<String> {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(self.columns.iter().map(|column| &column.heading));
        table.add_rows(self.rows.iter().map(|row| row.iter().map(|cell| &cell.shown)));
        for (column, of) in table.column_iter_mut().zip(&self.columns) {
            if of.is_numeric {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.lines().map(|line| line.trim_end().to_string()).collect()
    }

    /// Returns one block per row: its first cell, and below it as many further cells per line as fit in `columns`. Empty cells
    /// are left out.
    fn blocks(&self, columns: usize) -> String {
        let mut text = String::new();
        for row in &self.rows {
            if !row[0].shown.is_empty() {
                let _ = writeln!(text, "{}", row[0].shown);
            }
            let mut line = String::new();
            for (column, cell) in self.columns.iter().zip(row).skip(1).filter(|(_, cell)| !cell.shown.is_empty()) {
                let part = format!("  {} {}", column.heading, cell.shown);
                if !line.is_empty() && line.chars().count() + part.chars().count() > columns {
                    let _ = writeln!(text, "{}", std::mem::take(&mut line));
                }
                line += &part;
                // A long text goes on below.
                while let Some(end) = last_blank(&line, columns) {
                    let rest = format!("    {}", &line[end + 1..]);
                    let _ = writeln!(text, "{}", &line[..end]);
                    line = rest;
                }
            }
            let _ = writeln!(text, "{line}");
        }
        text.trim_end().to_string()
    }

    fn csv(&self) -> String {
        let has_half = |index: usize| self.rows.iter().any(|row| row[index].half_width_95.is_some());
        let halves: Vec<bool> = (0..self.columns.len()).map(has_half).collect();
        let names = self.columns.iter().zip(&halves).flat_map(|(column, has_half)| {
            let half = has_half.then(|| quoted(&format!("{}_half_width_95", column.name)));
            std::iter::once(quoted(&column.name)).chain(half)
        });
        let mut text = joined(names, ",");
        for row in &self.rows {
            let cells = row.iter().zip(&halves).flat_map(|(cell, has_half)| {
                let value = match (cell.number, cell.shown.as_str()) {
                    (Some(number), _) => number.to_string(),
                    (None, "–") => String::new(),
                    (None, shown) => quoted(shown),
                };
                let half = has_half.then(|| cell.half_width_95.map_or(String::new(), |half| half.to_string()));
                std::iter::once(value).chain(half)
            });
            text += &joined(cells, ",");
        }
        text
    }

    fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let escaped = |text: &str| text.replace('|', "\\|");
        let mut text = line(self.columns.iter().map(|column| escaped(&column.heading)).collect());
        let rule = |column: &Column| if column.is_numeric { "---:" } else { "---" }.to_string();
        text += &line(self.columns.iter().map(rule).collect());
        for row in &self.rows {
            text += &line(row.iter().map(|cell| escaped(&cell.shown)).collect());
        }
        text
    }

    fn latex(&self) -> String {
        let alignment: String = self.columns.iter().map(|column| if column.is_numeric { 'r' } else { 'l' }).collect();
        let mut text = format!("% \\usepackage{{booktabs}}\n\\begin{{tabular}}{{{alignment}}}\n\\toprule\n");
        let line = |cells: Vec<String>| format!("{} \\\\\n", cells.join(" & "));
        text += &line(self.columns.iter().map(|column| latex(&column.heading)).collect());
        text += "\\midrule\n";
        for row in &self.rows {
            text += &line(row.iter().map(|cell| latex(&cell.shown)).collect());
        }
        text + "\\bottomrule\n\\end{tabular}\n"
    }
}

/// Returns the position in bytes of the last blank within the first `columns` characters after the indentation of `line`, if the
/// line is longer.
fn last_blank(line: &str, columns: usize) -> Option<usize> {
    let (limit, beyond) = line.char_indices().nth(columns)?;
    line[..limit + beyond.len_utf8()].rfind(' ').filter(|&at| at > 4)
}

fn add_figures(value: &Value, path: &str, rows: &mut Vec<Vec<Cell>>) {
    let below = |name: &str| if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
    let cell = match value {
        Value::Object(fields) => return fields.iter().for_each(|(name, field)| add_figures(field, &below(name), rows)),
        Value::Array(items) => {
            let numbered = items.iter().enumerate();
            return numbered.for_each(|(index, item)| add_figures(item, &below(&index.to_string()), rows));
        }
        Value::Null => Cell::none(),
        // As text: a whole number beyond 2^53 has no exact value as a float.
        Value::Number(number) => Cell::text(number.to_string()),
        Value::String(text) => Cell::text(text),
        Value::Bool(truth) => Cell::text(truth.to_string()),
    };
    rows.push(vec![Cell::text(path), cell]);
}

fn joined(cells: impl Iterator<Item = String>, by: &str) -> String {
    cells.collect::<Vec<_>>().join(by) + "\n"
}

/// Returns a cell of CSV: in quotation marks if it contains a comma, a quotation mark or a line feed.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_string() }
}

/// Returns a text with the characters of LaTeX that have a meaning replaced.
fn latex(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                let _ = write!(out, "\\{character}");
            }
            '\\' => out += "\\textbackslash{}",
            '~' => out += "\\textasciitilde{}",
            '^' => out += "\\textasciicircum{}",
            '×' => out += "$\\times$",
            '±' => out += "$\\pm$",
            '−' => out += "$-$",
            'µ' => out += "\\textmu{}",
            '–' => out += "--",
            '…' => out += "\\dots{}",
            '\u{a0}' | '\u{202f}' => out += "~",
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Cells {
        Cells {
            columns: vec![Column::text("drive", "drive"), Column::numeric("mean_ns", "mean latency")],
            rows: vec![
                vec![Cell::text("a|b, \"c\"_1"), Cell::number(12_500_000.0, "12.50 ms (3.2×)")],
                vec![Cell::text("d"), Cell::none()],
            ],
        }
    }

    #[test]
    fn csv_has_numbers_in_base_units_and_quotes_where_they_are_needed() {
        assert_eq!(sample().in_form(TableForm::Csv), "drive,mean_ns\n\"a|b, \"\"c\"\"_1\",12500000\nd,\n");
    }

    #[test]
    fn a_mean_over_seeds_has_its_interval_in_csv_in_a_column_of_its_own() {
        let over = Estimate::of(&[10.0, 14.0]).expect("two runs");
        let mut cells = sample();
        cells.rows[0][1] = Cell::estimate(&over, "12 ns ±25 ns");
        // Student's t for one degree of freedom is 12.706; the standard error of the mean is 2.
        let csv = cells.in_form(TableForm::Csv);
        assert!(csv.starts_with("drive,mean_ns,mean_ns_half_width_95\n\"a|b, \"\"c\"\"_1\",12,25.4"), "{csv}");
        assert!(csv.ends_with("\nd,,\n"), "{csv}");
        assert!(cells.in_form(TableForm::Markdown).contains("| 12 ns ±25 ns |"));
    }

    #[test]
    fn a_document_has_one_row_per_figure_under_its_path() {
        let document = serde_json::json!({
            "schema": "imbrex.x/1", "size_bytes": {"p50": 4096, "p99": null}, "drives": [{"name": "a"}, 2.5], "closed": true, "seed": u64::MAX,
        });
        let text = "figure,value\nclosed,true\ndrives.0.name,a\ndrives.1,2.5\nseed,18446744073709551615\nsize_bytes.p50,4096\nsize_bytes.p99,\n";
        let mut lines: Vec<_> = Cells::of_document(&document).csv().lines().map(str::to_string).collect();
        lines[1..].sort();
        assert_eq!(lines.join("\n") + "\n", text);
    }

    #[test]
    fn a_table_wider_than_the_terminal_becomes_blocks() {
        let wide = " drive          mean latency\n a|b, \"c\"_1  12.50 ms (3.2×)\n d                         –";
        assert_eq!(sample().within(None), wide);
        assert_eq!(sample().within(Some(28)), wide, "the longest line has 28 characters");
        let blocks = "a|b, \"c\"_1\n  mean latency 12.50 ms\n    (3.2×)\nd\n  mean latency –";
        assert_eq!(sample().within(Some(27)), blocks);
        let narrow = "a|b, \"c\"_1\n  mean latency 12.50\n    ms (3.2×)\nd\n  mean latency –";
        assert_eq!(sample().within(Some(20)), narrow);
    }

    #[test]
    fn markdown_escapes_bars_and_aligns_numbers() {
        let text = sample().in_form(TableForm::Markdown);
        assert_eq!(text, "| drive | mean latency |\n| --- | ---: |\n| a\\|b, \"c\"_1 | 12.50 ms (3.2×) |\n| d | – |\n");
    }

    #[test]
    fn latex_escapes_what_has_a_meaning() {
        let text = sample().in_form(TableForm::Latex);
        assert!(text.contains("\\begin{tabular}{lr}") && text.ends_with("\\bottomrule\n\\end{tabular}\n"), "{text}");
        assert!(text.contains("a|b, \"c\"\\_1 & 12.50 ms (3.2$\\times$) \\\\\n"), "{text}");
        assert!(text.contains("d & -- \\\\\n"), "{text}");
    }
}
