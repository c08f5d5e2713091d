//! Pages with words of their own around tables that experiments make: the guide "what shingling costs"
//! (`imbrex reproduce costs`) and "validation" (`imbrex reproduce validation`).
//!
//! Invariants:
//! 1. Only what stands between the marks of an experiment is ever replaced; every mark of a page is an experiment's,
//!    and every experiment of `costs` and `validation` has its marks.

use std::fmt::Write as _;
use std::path::Path;

use super::{Experiment, Report, Table};
use imbrex::error::Failure;
use imbrex::files::replace;

/// A page: the first word of its experiments, its file, and its text as it was built in, for a folder that has none.
struct Page {
    experiments: &'static str,
    file: &'static str,
    text: &'static str,
}

const PAGES: [Page; 2] = [
    Page {
        experiments: "costs/",
        file: "what-shingling-costs.md",
        text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/what-shingling-costs.md")),
    },
    Page {
        experiments: "validation/",
        file: "validation.md",
        text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/validation.md")),
    },
];

fn page_of(experiment: &Experiment) -> Option<&'static Page> {
    PAGES.iter().find(|page| experiment.name.starts_with(page.experiments))
}

/// Whether the experiment is one of these pages'.
pub fn has(experiment: &Experiment) -> bool {
    page_of(experiment).is_some()
}

/// Puts the tables of `report` into its page in `folder`. One that came to no table leaves the page as it is.
pub fn renew(folder: &Path, experiment: &Experiment, report: &Report) -> Result<(), Failure> {
    let page = page_of(experiment).expect("called only for experiments of a page");
    if report.tables.is_empty() && report.claims.is_empty() {
        return Ok(());
    }
    let path = folder.join(page.file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|_| page.text.to_string());
    let renewed = with_part(&text, experiment.name, &as_markdown(report)).ok_or_else(|| {
        Failure::failed(format!("{} has no part marked <!-- {} -->", path.display(), experiment.name))
            .or_try("--out with another folder, or put the marks back")
    })?;
    Ok(replace(&path, renewed.as_bytes())?)
}

/// `text` with what stands between the marks of `name` replaced by `part`; `None` without the marks.
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
        let holds = claim.verdict.name();
        let _ = writeln!(text, "| {} | {} | {} | {holds} |", claim.claim, claim.theirs, claim.ours);
    }
    for table in &report.tables {
        text.push_str(&as_markdown_table(table));
    }
    for (name, _) in &report.figures {
        let _ = write!(text, "\n![{}](figures/{name})\n", name.trim_end_matches(".svg"));
    }
    for remark in &report.remarks {
        let _ = write!(text, "\n{remark}\n");
    }
    text
}

/// A table as Markdown.
pub fn as_markdown_table(table: &Table) -> String {
    let mut text = format!("\n**{}**\n\n| {} |\n|{}\n", table.heading, table.columns.join(" | "), rule(table));
    for row in &table.rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}

/// The first column to the left, numbers to the right.
fn rule(table: &Table) -> String {
    let rest = "---:|".repeat(table.columns.len().saturating_sub(1));
    format!("---|{rest}")
}

/// A table for the terminal.
pub fn as_text(table: &Table) -> String {
    let width = |column: usize| {
        let cells = table.rows.iter().filter_map(|row| row.get(column)).chain(&table.columns[column..=column]);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..table.columns.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| match column {
            0 => format!("{cell:width$}"),
            _ => format!("{cell:>width$}"),
        });
        format!("  {}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
    };
    let rows: String = table.rows.iter().map(|row| line(row)).collect();
    format!("\n  {}\n{}{rows}", table.heading, line(&table.columns))
}

#[cfg(test)]
mod tests {
    //! Goal: invariant 1. Method: a small guide by hand, and the marks of the one that is built in.

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
