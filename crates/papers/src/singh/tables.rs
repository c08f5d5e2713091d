//! Tables 5.1 and 5.2 with figs 5.8 to 5.11: by how much a caveat disk must exceed 1 GB for the ageing run, and how
//! many of its blocks are unusable in the end, for five allocation algorithms.

use std::collections::BTreeMap;

use imbrex::chart::{Axis, BarArrangement, BarChart, Chart, Series, Shape, Unit};
use imbrex::error::Failure;
use imbrex_fs::load::LoadError;
use imbrex_fs::load::age::{Step, Steps};
use imbrex_fs::load::capacity::{Capacity, Found, PARTS, Trial, run as age, search_by};
use rayon::prelude::*;

use super::super::{ClaimKind, Experiment, Replication, Report};
use super::paper::{Column, FAR as TABLE_5_2, NEAR as TABLE_5_1};

/// Experiment for table 5.1, with a DID of 16 blocks.
pub(super) const NEAR: Experiment = Experiment {
    name: "singh/table5-1",
    title: "over-allocation for 1 GB at DID 16, and what is unusable",
    run: |replication| {
        run(&Test { id: "5.8", other: "5.9", table: "5.1", isolation: 16, theirs: &TABLE_5_1 }, replication)
    },
};

/// Experiment for table 5.2, with a DID of 512 blocks.
pub(super) const FAR: Experiment = Experiment {
    name: "singh/table5-2",
    title: "over-allocation for 1 GB at DID 512, and what is unusable",
    run: |replication| {
        run(&Test { id: "5.10", other: "5.11", table: "5.2", isolation: 512, theirs: &TABLE_5_2 }, replication)
    },
};

/// One percent, in the unit of over-allocation, of which the whole has [`PARTS`].
const PERCENT: u64 = PARTS / 100;

/// One of the two tests: its figures, its table, its DID in blocks, and the paper's columns.
struct Test {
    id: &'static str,
    other: &'static str,
    table: &'static str,
    isolation: u64,
    theirs: &'static [Column; 5],
}

/// Result of a search for the over-allocation, with the paper's column.
struct Row {
    theirs: &'static Column,
    trial: Trial,
}

impl Row {
    fn percent(&self) -> u64 {
        self.trial.extra / PERCENT
    }

    fn unusable_share(&self) -> f64 {
        self.trial.usage.unusable as f64 / self.trial.usage.blocks as f64
    }
}

fn run(test: &Test, replication: &Replication) -> Result<Report, Failure> {
    let found: Result<Vec<Row>, Failure> =
        test.theirs.par_iter().map(|theirs| row(test, theirs, replication)).collect();
    let rows = found?;
    let mut report = Report { method: method(test), ..Report::default() };
    allocated(&mut report, &rows);
    orders(&mut report, test, &rows);
    unusable(&mut report, &rows);
    report.remarks.push(beside(test, &rows));
    report.remarks.push(contradictions(test));
    report.remarks.push(
        "In this experiment, next fit and last accessed position fit choose the same place for every block of a \
         caveat disk: ageing reads nothing, so the head is always where the last file was written. In Singh 2014 the \
         results of the two are nearly equal."
            .into(),
    );
    report.figure(unusable_chart(test, &rows));
    report.figure(cleaning_chart(test, &rows, replication));
    Ok(report)
}

/// Returns the paper's run with the allocation algorithm `fit`, with the seed of the replication.
fn asked(fit: &str, test: &Test, replication: &Replication) -> Capacity {
    let mut asked = Capacity::of_the_paper(fit, test.isolation);
    asked.age.seed = replication.seed(asked.age.seed);
    asked
}

fn row(test: &Test, theirs: &'static Column, replication: &Replication) -> Result<Row, Failure> {
    let asked = asked(theirs.fit, test, replication);
    let bar = replication.progress.requests(&format!("{}, {}", test.table, theirs.fit), Some(asked.age.operations));
    let found = search_by(asked.step, asked.most, |extra| {
        if replication.progress.should_stop() {
            return Ok(Trial::interrupted(extra));
        }
        let own = bar.clone();
        own.set_prefix(format!("{}, {}, {} %", test.table, theirs.fit, extra / PERCENT));
        age(&asked, extra, move |done| {
            own.set_position(done);
            true
        })
    });
    bar.finish_and_clear();
    match found.map_err(|error: LoadError| Failure::failed(error))? {
        Found::At(trial) => Ok(Row { theirs, trial }),
        Found::Never(_) => {
            Err(Failure::failed(format!("{} fit: twice the over-allocation of the whole is too little", theirs.fit)))
        }
        Found::Interrupted => Err(Failure::interrupted()),
    }
}

fn method(test: &Test) -> String {
    format!(
        "The experiment runs `imbrex fs capacity --did {}`: the allocation algorithm of Caveat SMRfs alone, with DID {}. \
         Ageing, which is 100,000 creates and deletes of files with seed 1, keeps 262,144 blocks of each disk filled \
         with files. The disk is enlarged by whole percents of these blocks until ageing never finds it full. The \
         weights of file sizes of Singh 2014 are lost. We chose ours before the first run, by the paper's words and \
         by its 2.5 GB of data that ageing writes.",
        test.isolation, test.isolation
    )
}

fn allocated(report: &mut Report, rows: &[Row]) {
    let usable = 262_144.0;
    let times = rows[0].trial.aged.blocks_created as f64 / usable;
    let freed = rows[0].trial.aged.blocks_deleted as f64 / usable;
    report.claim(
        ClaimKind::ByConstruction,
        "blocks allocated, and freed by implicit cleaning, over the usable capacity",
        "2.5 and 1.5",
        format!("{times:.2} and {freed:.2}"),
        Some((times - 2.5).abs() < 0.1 && (freed - 1.5).abs() < 0.1),
    );
}

/// Returns values as text: `best 4 %, first 5 %, …`.
fn listed(values: impl Iterator<Item = (&'static str, String)>) -> String {
    values.map(|(fit, value)| format!("{fit} {value}")).collect::<Vec<_>>().join(", ")
}

fn of<'a>(rows: &'a [Row], fits: &'a [&str]) -> impl Iterator<Item = &'a Row> {
    rows.iter().filter(|row| fits.contains(&row.theirs.fit))
}

fn orders(report: &mut Report, test: &Test, rows: &[Row]) {
    let theirs = listed(rows.iter().map(|row| (row.theirs.fit, format!("{} %", row.theirs.extra_percent))));
    let ours = listed(rows.iter().map(|row| (row.theirs.fit, format!("{} %", row.percent()))));
    let lowest_of_others = of(rows, &["best", "first", "worst"]).map(Row::percent).min();
    let highest_of_two = of(rows, &["next", "last-accessed"]).map(Row::percent).max();
    report.claim(
        ClaimKind::Shape,
        "over-allocation that is needed: next and last accessed position fit the least",
        &theirs,
        ours.clone(),
        Some(highest_of_two < lowest_of_others),
    );
    let highest = rows.iter().map(Row::percent).max();
    let (words, named): (&str, &[&str]) = match test.isolation {
        16 => ("worst and best fit need the most (5 %)", &["worst", "best"]),
        _ => ("worst fit needs the most (30 %)", &["worst"]),
    };
    let holds = of(rows, named).all(|row| Some(row.percent()) == highest);
    report.claim(ClaimKind::Shape, "which needs the most", words, ours, Some(holds));
}

fn unusable(report: &mut Report, rows: &[Row]) {
    let share = |unusable: u64, blocks: u64| format!("{:.2} %", 100.0 * unusable as f64 / blocks as f64);
    let theirs = listed(rows.iter().map(|row| (row.theirs.fit, format!("{:.2} %", row.theirs.unusable_percent))));
    let ours = rows.iter().map(|row| (row.theirs.fit, share(row.trial.usage.unusable, row.trial.usage.blocks)));
    let most = of(rows, &["next", "last-accessed"]).map(Row::unusable_share).fold(0.0, f64::max);
    let least = of(rows, &["best", "first"]).map(Row::unusable_share).fold(f64::INFINITY, f64::min);
    report.claim(
        ClaimKind::Shape,
        "unusable blocks over all: next and last accessed position fit below best and first fit",
        &theirs,
        listed(ours),
        Some(most < least),
    );
}

/// Returns a table of the paper's numbers beside ours.
fn beside(test: &Test, rows: &[Row]) -> String {
    let mut text = format!("Table {}, theirs / ours:\n\n| |", test.table);
    let line = |name: &str, cell: &dyn Fn(&Row) -> String| {
        let cells: Vec<String> = rows.iter().map(cell).collect();
        format!("\n| {name} | {} |", cells.join(" | "))
    };
    text += &rows.iter().map(|row| format!(" {} |", row.theirs.fit)).collect::<String>();
    text += &format!("\n|---|{}", "---|".repeat(rows.len()));
    text += &line("over-allocation, %", &|row| format!("{} / {}", row.theirs.extra_percent, row.percent()));
    text += &line("blocks of the disk", &|row| format!("{} / {}", row.theirs.blocks, row.trial.usage.blocks));
    text += &line("free blocks", &|row| {
        let usage = row.trial.usage;
        format!("{} / {}", row.theirs.blocks - 262_144, usage.blocks - usage.live)
    });
    text += &line("unusable blocks", &|row| format!("{} / {}", row.theirs.unusable, row.trial.usage.unusable));
    text
}

fn contradictions(test: &Test) -> String {
    match test.isolation {
        16 => "Table 5.1 of Singh 2014 contradicts the text. Best fit has an over-allocation of 4 % in the table; \
               the text has 5 % for worst and best fit. First fit has 5 % in the table too, but the text does not \
               name it. The table's percentages of free blocks \"over total blocks\" are shares of 262,144 blocks, \
               not of all blocks of the disk."
            .into(),
        _ => "Table 5.2 of Singh 2014 contradicts itself: first fit has 65,549 free blocks, of which it gives 65,891 \
              as unusable and 12,765 as usable. The columns of first and worst fit are exchanged in the rows of \
              unusable and usable blocks: 65,891 of the 340,800 blocks of worst fit are the 19.33 % that the table \
              prints, and with 12,765 they are its 78,656 free blocks. The table's percentages of free blocks \"over \
              total blocks\" are shares of 262,144 blocks, not of all blocks of the disk."
            .to_string(),
    }
}

fn unusable_chart(test: &Test, rows: &[Row]) -> BarChart {
    let title = format!("Unusable free blocks over all blocks, DID {}", test.isolation);
    let groups = rows.iter().map(|row| row.theirs.fit.to_string()).collect();
    let axis = Axis::linear("share of all blocks", Unit::Share);
    let theirs = rows.iter().map(|row| row.theirs.unusable_percent / 100.0).collect();
    let ours = rows.iter().map(Row::unusable_share).collect();
    BarChart::new(format!("singh-fig{}", test.id), title, axis, groups, BarArrangement::Grouped)
        .with("Singh 2014", 0, theirs)
        .with("ours", 1, ours)
}

/// Returns a chart of the blocks allocated and freed, with the sizes of the disks as marks.
fn cleaning_chart(test: &Test, rows: &[Row], replication: &Replication) -> Chart {
    let (mut allocated, mut freed) = (0.0, 0.0);
    let (mut up, mut down) = (Vec::new(), Vec::new());
    let asked = asked("best", test, replication);
    for (number, step) in Steps::new(&asked.age).enumerate() {
        match step {
            Step::Create { blocks, .. } => allocated += blocks as f64,
            Step::Delete { blocks, .. } => freed += blocks as f64,
        }
        if (number + 1) % 500 == 0 {
            up.push((number as f64 + 1.0, allocated));
            down.push((number as f64 + 1.0, freed));
        }
    }
    let title = format!("Blocks allocated and freed, and the disks that this takes, DID {}", test.isolation);
    let (x, y) = (Axis::linear("operations", Unit::Count), Axis::linear("blocks", Unit::Count));
    let mut chart = Chart::new(format!("singh-fig{}", test.other), title, x, y)
        .with(Series::new("allocated", Shape::Line, 0, up))
        .with(Series::new("freed", Shape::Line, 1, down));
    // Policies with disks of one size share a mark.
    let mut marked: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.theirs.fit != "last-accessed") {
        marked.entry(row.trial.usage.blocks).or_default().push(row.theirs.fit);
    }
    for (blocks, fits) in marked {
        chart = chart.mark_y(blocks as f64, format!("{} fit", fits.join(", ")));
    }
    chart
}
