//! The index of the reproduction: how many claims hold by kind, and a table for each paper that links its figures to
//! our pages.

use std::fmt::Write as _;

use super::report::{ClaimKind, Verdict};
use super::results::Results;

/// A figure or table of a paper: its number, its subject, and the experiment that repeats it, or the reason why none
/// does.
type Figure = (&'static str, &'static str, Result<&'static str, &'static str>);

/// A paper: the first word of its experiments' names, its title, its figures.
type Paper = (&'static str, &'static str, &'static [Figure]);

const NO_VALUES: &str = "a drawing";

const PAPERS: &[Paper] = &[
    (
        "cassuto",
        "Cassuto 2010",
        &[
            ("figs 1–4, 10, 11", "interference, simulator, layouts", Err(NO_VALUES)),
            ("definition 4, table I", "counters, write overloading, slowdown", Ok("cassuto/definition4")),
            ("fig. 5", "overloading and slowdown by cache size", Ok("cassuto/fig05")),
            ("figs 6–8", "random writes on the set-associative cache", Ok("cassuto/fig06-08")),
            ("fig. 9", "sequential reads by fill of the cache", Ok("cassuto/fig09")),
            ("figs 12–14", "random writes on S-blocks", Ok("cassuto/fig12-14")),
        ],
    ),
    (
        "singh",
        "Singh 2014",
        &[
            ("figs 2.1, 4.1–4.4", "workflows, lists", Err(NO_VALUES)),
            ("§3.2, fig. 3.1", "which sectors a write may damage", Ok("singh/section3.2")),
            ("table 5.1, figs 5.8, 5.9", "over-allocation by allocator at DID 16", Ok("singh/table5-1")),
            ("table 5.2, figs 5.10, 5.11", "over-allocation by allocator at DID 512", Ok("singh/table5-2")),
            ("figs 5.1–5.7", "files read and written beside ext4 and NILFS2", Ok("singh/fig5-1")),
            ("ch. 6", "cost of cleaning on caveat and strict-append disks", Ok("singh/chapter6")),
        ],
    ),
    (
        "jin",
        "Jin 2014",
        &[
            ("figs 1, 3–5, 8, tables I, II", "architecture, configurations", Err(NO_VALUES)),
            ("fig. 2", "metadata I/O per file read on ext4", Ok("jin/fig02")),
            ("§II.D", "reads with and without a hot zone", Ok("jin/hot-zone")),
            ("§II.D", "size of the metadata over that of the data", Ok("jin/metadata")),
            ("§II.D.2", "garbage collection by files and by bands", Ok("jin/collection")),
            ("§II.D.3", "rebuild of a drive by files and by blocks", Ok("jin/rebuild")),
            ("figs 6, 7", "HiSMRfs against SMRfs", Ok("jin/fig06-07")),
            ("fig. 7", "HiSMRfs against SMRfs by the number of threads", Ok("jin/fig07-threads")),
            ("fig. 9", "HiSMRfs against ext4 with a flash cache", Ok("jin/fig09")),
            ("§III.B", "flash that HiSMRfs uses", Ok("jin/flash")),
        ],
    ),
    (
        "aghayev",
        "Aghayev 2015",
        &[
            ("figs 1–3, 6", "tracks, a platter, the window", Err(NO_VALUES)),
            ("table 1", "configurations of the emulated drives", Err("parameters of the profiles")),
            ("table 2", "writes until cleaning starts", Ok("aghayev/table2")),
            ("table 3", "what the probe finds", Ok("aghayev/table3")),
            ("figs 4, 5, §4.3", "latency of random writes", Ok("aghayev/fig04-05")),
            ("fig. 7", "latency by size of write", Ok("aghayev/fig07")),
            ("figs 8, 9", "fragmented reads", Ok("aghayev/fig08-09")),
            ("figs 10, 11", "cleaning after a pause", Ok("aghayev/fig10-11")),
            ("figs 12, 13", "order of cleaning", Ok("aghayev/fig12-13")),
            ("fig. 14", "the toy drive", Ok("aghayev/fig14")),
            ("figs 15, 16", "size of a band", Ok("aghayev/fig15-16")),
            ("fig. 17", "mapping", Ok("aghayev/fig17")),
            ("figs 18, 19", "zones", Ok("aghayev/fig18-19")),
            ("§6", "sequential and random writes without the volatile cache", Ok("aghayev/section6")),
        ],
    ),
    (
        "hajkazemi",
        "Hajkazemi 2019",
        &[
            ("fig. 1, 3", "tracks, a flip", Err(NO_VALUES)),
            ("§2", "costs in seeks and rotations, memory", Ok("hajkazemi/section2")),
            ("table 1, figs 5–7", "the workloads: size, changes, gaps, time dilation", Ok("hajkazemi/table1")),
            (
                "table 2",
                "specifications and configurations",
                Err("its text is lost; the profile has the values of the prose"),
            ),
            ("figs 2, 4, 10, 11", "hot tracks and their neighbours", Ok("hajkazemi/fig10-11")),
            ("figs 8, 9", "write amplification, mean and tail latency", Ok("hajkazemi/fig08-09")),
            ("figs 12, 13", "distribution of latencies, issue time disparity", Ok("hajkazemi/fig12-13")),
            ("§6", "conventional latency, left open", Ok("hajkazemi/section6")),
        ],
    ),
    (
        "later-drives",
        "measurements of 2026, unrefereed",
        &[
            ("–", "effective size of the cache", Ok("later-drives/cache-size")),
            ("–", "draining", Ok("later-drives/draining")),
            ("–", "stalled writes released", Ok("later-drives/releasing")),
            ("–", "skew", Ok("later-drives/skew")),
            ("–", "speed into the cache", Ok("later-drives/speed")),
        ],
    ),
];

/// Returns the number of claims of a paper that have this kind and this verdict.
fn count(results: &[Results], paper: &str, kind: ClaimKind, verdict: Verdict) -> usize {
    let of_paper = results.iter().filter(|results| results.experiment.starts_with(&format!("{paper}/")));
    of_paper.flat_map(|results| &results.claims).filter(|claim| claim.kind == kind && claim.verdict == verdict).count()
}

const VERDICTS: [Verdict; 6] = [
    Verdict::Yes,
    Verdict::No,
    Verdict::HangsOnArrival,
    Verdict::BaselineNotMet,
    Verdict::NotJudged,
    Verdict::DependsOnSeed,
];

/// Returns the table of counts: a row for each paper, a column for each kind.
pub(crate) fn counts(results: &[Results]) -> String {
    let mut text = String::from(
        "\n## How many claims hold\n\nFor kinds that count: the claims that hold, of all. For the other kinds: the number of claims.\n\n\
         | | derived | predicted | shape | fitted | by construction | not reproducible |\n|---|---|---|---|---|---|---|\n",
    );
    let mut sums = [[0usize; VERDICTS.len()]; ClaimKind::ALL.len()];
    for (paper, title, _) in PAPERS {
        let rows = ClaimKind::ALL.map(|kind| VERDICTS.map(|verdict| count(results, paper, kind, verdict)));
        for (sum, row) in sums.iter_mut().flatten().zip(rows.iter().flatten()) {
            *sum += row;
        }
        let _ = writeln!(text, "| {title} | {} |", cells(&rows).join(" | "));
    }
    let _ = writeln!(text, "| **all** | {} |", cells(&sums).join(" | "));
    let total = |verdict: usize| (0..3).map(|kind| sums[kind][verdict]).sum::<usize>();
    // Pages of runs with one seed have no count of claims that depend on the seed.
    let depend = match total(5) {
        0 => String::new(),
        1 => "1 depends on the seed, ".into(),
        count => format!("{count} depend on the seed, "),
    };
    let _ = writeln!(
        text,
        "\nOf the {} claims that count {} hold, {} do not, {} hang on arrival, {depend}of {} the baseline is not met, and {} \
         are not judged.",
        (0..VERDICTS.len()).map(total).sum::<usize>(),
        total(0),
        total(1),
        total(2),
        total(3),
        total(4)
    );
    text
}

fn cells(rows: &[[usize; VERDICTS.len()]; ClaimKind::ALL.len()]) -> Vec<String> {
    let cell = |(kind, row): (&ClaimKind, &[usize; VERDICTS.len()])| {
        let all: usize = row.iter().sum();
        match (all, kind.is_counted()) {
            (0, _) => "–".to_string(),
            (_, true) => format!("{} of {all}", row[0]),
            (_, false) => all.to_string(),
        }
    };
    ClaimKind::ALL.iter().zip(rows).map(cell).collect()
}

/// Returns a table for each paper: each figure with a link to our page and the claims that hold there.
pub(crate) fn papers(results: &[Results]) -> String {
    let mut text = String::from("\n## Figures and tables of each paper\n");
    for (_, title, figures) in PAPERS {
        let _ = write!(
            text,
            "\n**{title}**\n\n| figure, table or section | subject | our page | claims that hold |\n|---|---|---|---|\n"
        );
        for (figure, what, ours) in *figures {
            let (place, holds) = match ours {
                Err(reason) => (reason.to_string(), "–".to_string()),
                Ok(name) => {
                    let found = results.iter().find(|results| results.experiment == *name);
                    (
                        format!("[{name}](reproduction/{}.md)", name.replace('/', "-")),
                        found.map_or("not run yet".to_string(), held),
                    )
                }
            };
            let _ = writeln!(text, "| {figure} | {what} | {place} | {holds} |");
        }
    }
    text
}

/// Returns, for example, `7 of 9`: the claims that hold, of those that count.
fn held(results: &Results) -> String {
    let counted: Vec<_> = results.claims.iter().filter(|claim| claim.kind.is_counted()).collect();
    match counted.len() {
        0 => "none counts".into(),
        all => format!("{} of {all}", counted.iter().filter(|claim| claim.verdict == Verdict::Yes).count()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Report;
    use super::*;

    /// Returns the results of an experiment of a paper with a claim for each of `verdicts`.
    fn results(verdicts: &[Verdict]) -> Vec<Results> {
        let mut report = Report::default();
        verdicts.iter().for_each(|verdict| report.judged(ClaimKind::Shape, "a claim", "theirs", "ours", *verdict));
        vec![Results::of(super::super::all()[0], &report)]
    }

    #[test]
    fn claims_that_depend_on_the_seed_are_counted_apart() {
        let text = counts(&results(&[Verdict::Yes, Verdict::No, Verdict::DependsOnSeed]));
        assert!(text.contains("| **all** | – | – | 1 of 3 |"), "{text}");
        assert!(
            text.contains(
                "Of the 3 claims that count 1 hold, 1 do not, 0 hang on arrival, 1 depends on the seed, of 0"
            )
        );
        assert!(counts(&results(&[Verdict::DependsOnSeed; 2])).contains(", 2 depend on the seed, of 0"));
        assert!(!counts(&results(&[Verdict::Yes])).contains("seed"), "pages of one seed do not change");
        assert_eq!(held(&results(&[Verdict::Yes, Verdict::DependsOnSeed])[0]), "1 of 2");
    }

    #[test]
    fn every_experiment_of_a_paper_is_in_its_table_and_no_other() {
        let listed: Vec<&str> = PAPERS.iter().flat_map(|paper| paper.2).filter_map(|figure| figure.2.ok()).collect();
        for experiment in super::super::all() {
            let is_paper = !["costs/", "validation/", "lab/"].iter().any(|page| experiment.name.starts_with(page));
            assert_eq!(listed.contains(&experiment.name), is_paper, "{}", experiment.name);
        }
        for name in listed {
            assert!(super::super::all().iter().any(|experiment| experiment.name == name), "{name} is no experiment");
        }
    }
}
