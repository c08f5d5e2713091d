//! Pages with text of their own around tables that experiments make: the guide `what-shingling-costs.md`
//! (`imbrex reproduce costs`), `validation.md` (`imbrex reproduce validation`) and `lab-file-systems.md` (`imbrex reproduce
//! lab`).
//!
//! Invariants:
//! 1. An experiment replaces only the text between its two marks. Every mark of a page belongs to an experiment, and
//!    every experiment of `costs`, `validation` and `lab` has its marks.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::{Experiment, Report, Table};
use imbrex::error::Failure;
use imbrex::files::replace;

/// A page: the first word of its experiments' names, its file name, and the text built into the program, used if the
/// folder has no such file.
struct Page {
    experiments: &'static str,
    file: &'static str,
    text: &'static str,
}

// The files in `pages` are links to those in `docs`, since a published crate contains only files of its own folder.
const PAGES: [Page; 3] = [
    Page {
        experiments: "costs/",
        file: "what-shingling-costs.md",
        text: include_str!("../pages/what-shingling-costs.md"),
    },
    Page { experiments: "lab/", file: "lab-file-systems.md", text: include_str!("../pages/lab-file-systems.md") },
    Page { experiments: "validation/", file: "validation.md", text: include_str!("../pages/validation.md") },
];

fn page_of(experiment: &Experiment) -> Option<&'static Page> {
    PAGES.iter().find(|page| experiment.name.starts_with(page.experiments))
}

/// Returns whether the experiment makes a part of one of these pages.
pub(crate) fn has(experiment: &Experiment) -> bool {
    page_of(experiment).is_some()
}

/// Puts the tables and claims of `report` into the page in `folder`. A report without tables and claims leaves the
/// page as it is.
///
/// # Errors
///
/// The page has no marks of the experiment, or the file cannot be written.
pub(crate) fn renew(folder: &Path, experiment: &Experiment, report: &Report) -> Result<(), Failure> {
    if report.tables.is_empty() && report.claims.is_empty() {
        return Ok(());
    }
    let (path, renewed) = renewed(folder, experiment, &as_markdown(report))?;
    Ok(replace(&path, renewed.as_bytes())?)
}

/// Checks that the page of `experiment` in `folder` has the marks of the experiment, or is missing.
///
/// # Errors
///
/// The page has no marks of the experiment.
pub(crate) fn check(folder: &Path, experiment: &Experiment) -> Result<(), Failure> {
    renewed(folder, experiment, "").map(drop)
}

/// Returns the path of the page, and the page with `part` between the marks of the experiment.
fn renewed(folder: &Path, experiment: &Experiment, part: &str) -> Result<(PathBuf, String), Failure> {
    let page = page_of(experiment).expect("called only for experiments of a page");
    let path = folder.join(page.file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|_| page.text.to_string());
    let renewed = with_part(&text, experiment.name, part).ok_or_else(|| {
        Failure::failed(format!("{} has no part marked <!-- {} -->", path.display(), experiment.name))
            .or_try("--out with another folder, or put the marks back")
    })?;
    Ok((path, renewed))
}

/// Returns `text` with the part between the marks of `name` replaced by `part`, or `None` without the marks.
fn with_part(text: &str, name: &str, part: &str) -> Option<String> {
    let (opening, closing) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let from = text.find(&opening)? + opening.len();
    let to = from + text[from..].find(&closing)?;
    Some(format!("{}\n{part}\n{}", &text[..from], &text[to..]))
}

fn as_markdown(report: &Report) -> String {
    let mut text = format!("{}\n", report.method);
    if !report.claims.is_empty() {
        text.push_str("\n| claim | theirs | ours | holds |\n|---|---:|---:|---|\n");
    }
    for claim in &report.claims {
        let holds = claim.verdict_text();
        let _ = writeln!(text, "| {} | {} | {} | {holds} |", claim.claim, claim.theirs, claim.ours);
    }
    for table in &report.tables {
        text.push_str(&as_markdown_table(table));
    }
    for figure in &report.figures {
        let _ = write!(text, "\n![{}](figures/{})\n", figure.id(), figure.file_name());
    }
    for remark in &report.remarks {
        let _ = write!(text, "\n{remark}\n");
    }
    text
}

/// Returns a table as Markdown.
pub(crate) fn as_markdown_table(table: &Table) -> String {
    let mut text = format!("\n**{}**\n\n| {} |\n|{}|\n", table.heading, table.columns.join(" | "), rule(table));
    for row in &table.rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}

/// Returns the Markdown ruler below the heads: columns of text are aligned to the left, those of numbers to the right.
fn rule(table: &Table) -> String {
    let marks = (0..table.columns.len()).map(|column| if is_numeric(table, column) { "---:" } else { "---" });
    marks.collect::<Vec<_>>().join("|")
}

/// Returns whether column `column` of a table holds numbers: not the first column, which has the names of the rows, and
/// no column with a cell that starts with a letter.
fn is_numeric(table: &Table, column: usize) -> bool {
    let is_text = |cell: &String| cell.starts_with(|character: char| character.is_alphabetic());
    column > 0 && !table.rows.iter().filter_map(|row| row.get(column)).any(is_text)
}

/// Returns a table as text for the terminal.
pub(crate) fn as_text(table: &Table) -> String {
    let width = |column: usize| {
        let cells = table.rows.iter().filter_map(|row| row.get(column)).chain(&table.columns[column..=column]);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let columns: Vec<_> = (0..table.columns.len()).map(|column| (width(column), is_numeric(table, column))).collect();
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&columns).map(|(cell, &(width, is_numeric))| match is_numeric {
            false => format!("{cell:width$}"),
            true => format!("{cell:>width$}"),
        });
        format!("  {}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
    };
    let rows: String = table.rows.iter().map(|row| line(row)).collect();
    format!("\n  {}\n{}{rows}", table.heading, line(&table.columns))
}

#[cfg(test)]
mod tests {
    //! Goal: invariant 1. Method: a small page written here, and the marks of the built-in pages.

    use super::super::all;
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let text = "a\n<!-- costs/x -->\nold\n<!-- /costs/x -->\nb\n<!-- costs/y -->\nkept\n<!-- /costs/y -->\n";
        let renewed = with_part(text, "costs/x", "new").expect("has the marks");
        assert_eq!(renewed, text.replace("old", "\nnew"));
        assert_eq!(with_part(&renewed, "costs/x", "new").as_ref(), Some(&renewed));
        assert_eq!(with_part(text, "costs/z", "new"), None);
    }

    #[test]
    fn the_pages_have_the_marks_of_every_experiment_and_no_others() {
        for page in &PAGES {
            let names: Vec<_> =
                all().into_iter().map(|one| one.name).filter(|name| name.starts_with(page.experiments)).collect();
            for name in &names {
                assert!(with_part(page.text, name, "").is_some(), "{name} has no marks in {}", page.file);
            }
            assert_eq!(page.text.matches(&format!("<!-- {}", page.experiments)).count(), names.len());
        }
    }
}
