//! Tables 5.1 and 5.2 with other orders of deletes than the one that we read in §5.3: shown, and not counted.

use imbrex::error::Failure;
use imbrex_fs::load::age::DeleteOrder;
use imbrex_fs::load::capacity::Capacity;
use rayon::prelude::*;

use super::super::report::Table;
use super::super::{ClaimKind, Replication, Report};
use super::tables::{PERCENT, Test, listed, smallest};

/// Orders of deletes that are shown, each with its meaning.
const ORDERS: [(&str, &str); 5] = [
    ("weighted", "a size by the weights, then a file of it by chance: the paper's, as we read it"),
    ("random", "every file has an equal chance"),
    ("oldest", "the file created first"),
    ("directory", "whole directories by chance, of 1,000 files"),
    (RUNS, "500 neighbours in the order of creation, from a file by chance"),
];
/// The order whose results are near the paper's: a reader of the paper found it by its numbers.
const RUNS: &str = "runs=500";
/// Allocation algorithms. Last accessed position fit gives the results of next fit here.
const FITS: [&str; 4] = ["best", "first", "next", "worst"];
/// Number of seeds of each order.
const SEEDS: u64 = 5;
/// Largest over-allocation that is tried, in percent.
const MOST: u64 = 400;

/// The over-allocation that an order of deletes needs with one allocation algorithm, in percent, with each seed.
struct Needed(Vec<u64>);

impl Needed {
    fn mean(&self) -> f64 {
        self.0.iter().sum::<u64>() as f64 / self.0.len() as f64
    }

    /// Returns the mean, and in brackets the least and the most.
    fn text(&self) -> String {
        let (least, most) = (self.0.iter().min(), self.0.iter().max());
        format!("{:.1} ({}–{})", self.mean(), least.unwrap_or(&0), most.unwrap_or(&0))
    }
}

/// Adds a table of all orders to the report, with five seeds from that of the replication on, a claim on the order that
/// was found by the paper's numbers, and the question that the table raises.
pub(super) fn add(report: &mut Report, test: &Test, replication: &Replication) -> Result<(), Failure> {
    let mut rows = vec![theirs(test)];
    for (name, meaning) in ORDERS {
        let order: DeleteOrder = name.parse().expect("the words are right: a test reads them");
        let needed = FITS.map(|fit| (fit, order));
        let needed: Result<Vec<Needed>, Failure> =
            needed.into_par_iter().map(|(fit, order)| needed_with(fit, order, test, replication)).collect();
        let needed = needed?;
        if name == RUNS {
            claim(report, test, &needed);
        }
        rows.push([format!("`{name}`: {meaning}")].into_iter().chain(needed.iter().map(Needed::text)).collect());
    }
    report.tables.push(Table {
        heading: format!(
            "Table {}, over-allocation in percent by order of deletes: mean of {SEEDS} seeds (least–most)",
            test.table
        ),
        columns: ["order of deletes"].iter().chain(&FITS).map(|word| (*word).to_string()).collect(),
        rows,
    });
    report.remarks.push(
        "Singh 2014 does not say more about the order of deletes than \"randomly\" and \"in a similar manner\" (§5.3). \
         The table of orders shows that the over-allocation depends on it. Files that are created one after the other \
         lie side by side. So deleting neighbours frees long runs, and deleting by chance does not. The question is \
         whether the paper's tool deleted neighbours, such as the files of whole directories, and called this random. \
         The order of runs was found by comparing with the paper's numbers, so it is not counted."
            .into(),
    );
    Ok(())
}

/// Returns the row of the paper's numbers.
fn theirs(test: &Test) -> Vec<String> {
    let of = |fit: &str| test.theirs.iter().find(|column| column.fit == fit).map_or(0, |column| column.extra_percent);
    ["Singh 2014".to_string()].into_iter().chain(FITS.iter().map(|fit| of(fit).to_string())).collect()
}

fn needed_with(fit: &str, order: DeleteOrder, test: &Test, replication: &Replication) -> Result<Needed, Failure> {
    let mut needed = Vec::new();
    for number in 0..SEEDS {
        let mut asked = Capacity::of_the_paper(fit, test.isolation);
        asked.age.seed = replication.seed(asked.age.seed) + number;
        asked.age.deletes = order;
        asked.most = MOST * PERCENT;
        needed.push(smallest(&asked, replication)? / PERCENT);
    }
    Ok(Needed(needed))
}

fn claim(report: &mut Report, test: &Test, needed: &[Needed]) {
    let theirs = theirs(test);
    let means: Vec<f64> = needed.iter().map(Needed::mean).collect();
    report.claim(
        ClaimKind::Fitted,
        "over-allocation with deletes in runs of 500 neighbours: next fit the least",
        &listed(FITS.into_iter().zip(theirs[1..].iter().map(|percent| format!("{percent} %")))),
        listed(FITS.into_iter().zip(means.iter().map(|mean| format!("{mean:.1} %")))),
        Some(is_least(&means, 2)),
    );
}

/// Returns whether value `index` is less than all others.
fn is_least(values: &[f64], index: usize) -> bool {
    values.iter().enumerate().all(|(other, value)| other == index || values[index] < *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_less_than_all_others() {
        assert!(is_least(&[3.0, 4.0, 2.0, 4.0], 2));
        assert!(!is_least(&[3.0, 4.0, 3.0, 4.0], 2) && !is_least(&[3.0, 4.0, 3.5, 4.0], 2));
    }

    #[test]
    fn the_words_of_the_orders_are_read() {
        for (name, _) in ORDERS {
            assert_eq!(name.parse::<DeleteOrder>().map(|order| order.to_string()), Ok(name.to_string()));
        }
    }

    #[test]
    fn needs_are_printed_with_their_range() {
        assert_eq!(Needed(vec![3, 4, 4]).text(), "3.7 (3–4)");
    }
}
