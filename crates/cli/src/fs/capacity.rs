//! `imbrex fs capacity` (Singh 2014 §5.3, tables 5.1 and 5.2): finds out how much larger than its contents a caveat
//! disk must be.

use imbrex::table_form::{Cell, Cells, Column};
use imbrex::{Failure, Progress};
use imbrex_fs::device::BLOCK_BYTES;
use imbrex_fs::load::age::Age;
use imbrex_fs::load::capacity::{Capacity, Found, PARTS, Trial, search};
use imbrex_fs::store::caveat::fit;
use serde_json::{Value, json};

use super::args::CapacityArgs;
use crate::error::ExitCode;
use crate::interrupt;
use crate::output;

/// Searches the over-allocation for each DID and each allocation algorithm, and prints the results.
pub(super) fn run(args: &CapacityArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let fits = fits(args)?;
    let progress = Progress::on_terminal(quiet || args.json);
    let mut rows = Vec::new();
    for isolation in &args.did {
        for fit in &fits {
            let asked = asked(args, fit, *isolation)?;
            let bar = progress.requests(&format!("DID {isolation}, {fit}"), Some(asked.age.operations));
            let (own, of) = (bar.clone(), format!("DID {isolation}, {fit}"));
            let found = search(&asked, move |extra, done| {
                own.set_prefix(format!("{of}, {} %", percent(extra)));
                own.set_position(done);
                !interrupt::requested()
            });
            bar.finish_and_clear();
            match found.map_err(Failure::failed)? {
                Found::Interrupted => return Err(Failure::failed("interrupted: the search is not done")),
                found => rows.push((asked, found)),
            }
        }
    }
    tell(args, &rows)?;
    Ok(ExitCode::Done)
}

fn fits(args: &CapacityArgs) -> Result<Vec<String>, Failure> {
    if args.fit.is_empty() {
        return Ok(fit::ALL.iter().map(|(name, ..)| (*name).to_string()).collect());
    }
    for name in &args.fit {
        fit::named(name).map_err(|reason| Failure::usage(format!("--{reason}")))?;
    }
    Ok(args.fit.clone())
}

fn asked(args: &CapacityArgs, fit: &str, isolation: u64) -> Result<Capacity, Failure> {
    let fill_blocks = args.size / BLOCK_BYTES as u64;
    if fill_blocks == 0 || args.step == 0 {
        return Err(Failure::usage(format!(
            "--size is at least a block of {BLOCK_BYTES} bytes, and --step more than 0"
        )));
    }
    if args.step > args.most {
        let (step, most) = (percent(args.step), percent(args.most));
        return Err(Failure::usage(format!("--step {step}: the first step is more than --most {most}, in percent"))
            .or_try("a smaller --step or a larger --most"));
    }
    let age =
        Age { fill_blocks, operations: args.ageing.operations, seed: args.ageing.seed, deletes: args.ageing.deletes };
    let (no_overlap, step, most) = (args.dnor, args.step, args.most);
    Ok(Capacity { isolation, no_overlap, fit: fit.into(), in_pieces: args.extents, age, step, most })
}

/// Converts parts of the size ([`PARTS`] are the whole) to percent.
fn percent(extra: u64) -> f64 {
    extra as f64 * 100.0 / PARTS as f64
}

fn tell(args: &CapacityArgs, rows: &[(Capacity, Found)]) -> Result<(), Failure> {
    if args.json {
        return output::json(&json!({
            "schema": "imbrex.fs-capacity/1",
            "seed": args.ageing.seed,
            "order_of_deletes": args.ageing.deletes.to_string(),
            "usable_blocks": args.size / BLOCK_BYTES as u64,
            "operations": args.ageing.operations,
            "searches": rows.iter().map(|(asked, found)| row_as_json(asked, found)).collect::<Vec<_>>(),
        }));
    }
    let cells = cells(rows);
    match args.table.table {
        Some(form) => output::part(&cells.in_form(form)),
        None => output::line(&cells.within(output::terminal_columns())),
    }
    Ok(())
}

/// Returns the searches as a table. An over-allocation that was not enough is that of the last trial.
fn cells(rows: &[(Capacity, Found)]) -> Cells {
    let columns = vec![
        Column::numeric("did_blocks", "DID"),
        Column::text("fit", "fit"),
        Column::numeric("over_allocation_percent", "over-allocation"),
        Column::text("is_found", "is enough"),
        Column::numeric("blocks", "blocks"),
        Column::numeric("free_blocks", "free"),
        Column::numeric("unusable_blocks", "unusable"),
        Column::numeric("unusable_share", "of all"),
        Column::numeric("allocated_ratio", "allocated"),
    ];
    Cells { columns, rows: rows.iter().filter_map(|(asked, found)| row(asked, found)).collect() }
}

fn trial(found: &Found) -> Option<&Trial> {
    match found {
        Found::At(trial) | Found::Never(trial) => Some(trial),
        Found::Interrupted => None,
    }
}

fn row_as_json(asked: &Capacity, found: &Found) -> Value {
    let trial = trial(found);
    json!({
        "did_blocks": asked.isolation,
        "dnor_blocks": asked.no_overlap,
        "fit": asked.fit,
        "is_found": matches!(found, Found::At(_)),
        "over_allocation_percent": trial.map(|trial| percent(trial.extra)),
        "blocks": trial.map(|trial| trial.usage.blocks),
        "live_blocks": trial.map(|trial| trial.usage.live),
        "unusable_blocks": trial.map(|trial| trial.usage.unusable),
        "free_runs": trial.map(|trial| trial.usage.free_runs),
        "blocks_created": trial.map(|trial| trial.aged.blocks_created),
        "blocks_deleted": trial.map(|trial| trial.aged.blocks_deleted),
        "full_at": trial.and_then(|trial| trial.aged.full_at),
    })
}

fn row(asked: &Capacity, found: &Found) -> Option<Vec<Cell>> {
    let trial = trial(found)?;
    let (usage, more, is_found) = (trial.usage, percent(trial.extra), matches!(found, Found::At(_)));
    let count = |count: u64| Cell::number(count as f64, count.to_string());
    let share = usage.unusable as f64 / usage.blocks as f64;
    let allocated = trial.aged.blocks_created as f64 / asked.age.fill_blocks as f64;
    Some(vec![
        count(asked.isolation),
        Cell::text(&asked.fit),
        Cell::number(more, if is_found { format!("{more} %") } else { format!("over {more} %") }),
        Cell::text(if is_found { "yes" } else { "no" }),
        count(usage.blocks),
        count(usage.blocks - usage.live),
        count(usage.unusable),
        Cell::number(share, format!("{:.2} %", 100.0 * share)),
        Cell::number(allocated, format!("{allocated:.2} times")),
    ])
}
