//! The report of an experiment: claims with the paper's figure beside ours, measurements, charts and remarks.

use imbrex::chart::{BarChart, Chart, Style};
use serde::{Deserialize, Serialize};

/// The kind of a claim: how the number in the paper relates to our run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// The number follows from the algorithm in the paper, and the code under test computes it. Our number must be
    /// equal, or within the stated tolerance. Counted in the summary.
    Derived,
    /// The authors measured the number. No parameter of our run was set by this number, or by one that determines it.
    /// Counted in the summary.
    Predicted,
    /// The paper does not give the drive or the workload. Its sentence (an order, a jump, a factor) must hold as
    /// written. Counted in the summary.
    Shape,
    /// A parameter of our run was set by this number, or by one that determines it. So its agreement proves nothing.
    Fitted,
    /// The workload of our run was made to give this number. So its agreement proves nothing.
    ByConstruction,
    /// The claim needs a trace or hardware of the authors that is not available. Our run is the closest possible.
    NotReproducible,
}

impl ClaimKind {
    /// All kinds of claims. The three that are counted in the summary (derived, predicted, shape) come first.
    pub const ALL: [ClaimKind; 6] = [
        ClaimKind::Derived,
        ClaimKind::Predicted,
        ClaimKind::Shape,
        ClaimKind::Fitted,
        ClaimKind::ByConstruction,
        ClaimKind::NotReproducible,
    ];

    /// Returns the name of this kind of claim, as reports print it, such as `by construction`.
    pub fn name(self) -> &'static str {
        match self {
            ClaimKind::Derived => "derived",
            ClaimKind::Predicted => "predicted",
            ClaimKind::Shape => "shape",
            ClaimKind::Fitted => "fitted",
            ClaimKind::ByConstruction => "by construction",
            ClaimKind::NotReproducible => "not reproducible",
        }
    }

    /// Returns whether claims of this kind are counted in the summary, because they test the code: derived, predicted
    /// and shape. Claims of the other kinds are only shown.
    pub fn is_counted(self) -> bool {
        matches!(self, ClaimKind::Derived | ClaimKind::Predicted | ClaimKind::Shape)
    }
}

/// The verdict on a claim of a paper: whether it holds in our run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The claim holds in our run.
    Yes,
    /// The claim does not hold in our run.
    No,
    /// The result depends on the arrival times of requests, which the paper's traces do not give. The claim holds with
    /// some of our sources of arrival times, and not with others.
    HangsOnArrival,
    /// The claim compares with a conventional drive, and ours differs from the one in the paper. So the claim is not
    /// judged.
    BaselineNotMet,
    /// The claim cannot be judged by our run.
    NotJudged,
    /// The result depends on the seed of a random choice of our run, such as a generated workload: the verdicts with
    /// several seeds differ.
    DependsOnSeed,
}

impl Verdict {
    /// Returns the name of the verdict, as reports print it, such as `hangs on arrival`.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Yes => "yes",
            Verdict::No => "no",
            Verdict::HangsOnArrival => "hangs on arrival",
            Verdict::BaselineNotMet => "baseline not met",
            Verdict::NotJudged => "not judged",
            Verdict::DependsOnSeed => "depends on the seed",
        }
    }

    /// Returns the verdict for a claim that holds (`Some(true)`, [`Verdict::Yes`]), does not hold (`Some(false)`,
    /// [`Verdict::No`]) or was not judged (`None`, [`Verdict::NotJudged`]).
    pub fn of(holds: Option<bool>) -> Verdict {
        match holds {
            Some(true) => Verdict::Yes,
            Some(false) => Verdict::No,
            None => Verdict::NotJudged,
        }
    }
}

/// One claim of a paper, with the number in the paper beside the number of our run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Claim {
    /// Text of the claim: the quantity or statement that is compared.
    pub claim: String,
    /// Kind of the claim: how the number in the paper relates to our run, for example predicted or fitted.
    pub kind: ClaimKind,
    /// Number or sentence in the paper, as text with its unit.
    pub theirs: String,
    /// Number or finding of our run, as text with its unit.
    pub ours: String,
    /// Verdict: whether the claim holds in our run.
    pub verdict: Verdict,
    /// For a fitted claim, each parameter that was set, as `PARAMETER = VALUE (SOURCE)`, separated by semicolons;
    /// otherwise `None`. SOURCE is the figure, table or section from which the value was taken, mostly with the number
    /// found there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fitted_by: Option<String>,
    /// Verdict with each seed, if the experiment ran with several; otherwise empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<Verdict>,
    /// Number or finding of our run with each seed, if the experiment ran with several; otherwise empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ours_by_seed: Vec<String>,
}

impl Claim {
    /// Returns whether the verdict depends on the seed: whether the verdicts with several seeds differ.
    pub fn depends_on_seed(&self) -> bool {
        self.verdicts.iter().any(|verdict| *verdict != self.verdicts[0])
    }

    /// Returns the verdict as reports print it. A claim of a kind that does not count has the verdict of the first
    /// seed, and a note if the verdict depends on the seed.
    pub(crate) fn verdict_text(&self) -> String {
        let name = self.verdict.name();
        if self.depends_on_seed() && self.verdict != Verdict::DependsOnSeed {
            return format!("{name}; {}", Verdict::DependsOnSeed.name());
        }
        name.into()
    }
}

/// A table of measurements of an experiment, with all cells as text.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// Heading above the table: the measured quantity.
    pub heading: String,
    /// Titles of the columns, from left to right.
    pub columns: Vec<String>,
    /// The rows of the table, each with one cell of text for each column.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns a table with these titles of columns.
    pub(crate) fn new(heading: impl Into<String>, columns: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Table {
        let columns = columns.iter().map(|column| column.to_string()).collect();
        Table { heading: heading.into(), columns, rows: rows.collect() }
    }
}

/// A figure of a report: a chart, which is drawn when the figure is written.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// A chart of series of points over two axes.
    Chart(Chart),
    /// A bar chart.
    Bars(BarChart),
}

impl Figure {
    /// Returns the name of the figure's file: the id of its chart, with the ending `.svg`.
    pub fn file_name(&self) -> String {
        format!("{}.svg", self.id())
    }

    /// Returns the contents of the figure's file, an SVG drawing.
    pub fn svg(&self) -> String {
        match self {
            Figure::Chart(chart) => chart.svg(Style::Standalone),
            Figure::Bars(chart) => chart.svg(Style::Standalone),
        }
    }

    /// Returns the id of the chart, which is also the id of the first element of the drawing.
    pub(crate) fn id(&self) -> &str {
        match self {
            Figure::Chart(chart) => &chart.id,
            Figure::Bars(chart) => &chart.id,
        }
    }
}

impl From<Chart> for Figure {
    fn from(chart: Chart) -> Figure {
        Figure::Chart(chart)
    }
}

impl From<BarChart> for Figure {
    fn from(chart: BarChart) -> Figure {
        Figure::Bars(chart)
    }
}

/// The report of an experiment: of one run, or of several that differ in their seeds.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// Method of the experiment: the facts that a reader needs to judge the claims, in Markdown.
    pub method: String,
    /// The claims of the paper that the experiment judges, in the order of the report.
    pub claims: Vec<Claim>,
    /// Tables of measurements of our run that are compared with no paper.
    pub tables: Vec<Table>,
    /// The figures (charts). Empty if there are none.
    pub figures: Vec<Figure>,
    /// Further remarks, one paragraph each, such as deviations from the paper and reasons for differences.
    pub remarks: Vec<String>,
    /// Number of seeds with which the experiment ran, if there are several; otherwise `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeds: Option<u32>,
}

impl Report {
    /// Adds a claim of a paper to the report. `theirs` is the paper's number or sentence, `ours` that of our run.
    /// `holds` is whether the claim holds in our run, or `None` if it cannot be judged.
    pub fn claim(&mut self, kind: ClaimKind, claim: &str, theirs: &str, ours: impl Into<String>, holds: Option<bool>) {
        self.judged(kind, claim, theirs, ours, Verdict::of(holds));
    }

    /// Adds a figure to the report. Its file has the id of the chart as its name.
    pub fn figure(&mut self, chart: impl Into<Figure>) {
        self.figures.push(chart.into());
    }

    /// Adds a claim of a paper with any verdict to the report. `theirs` is the paper's number or sentence, `ours` that
    /// of our run.
    pub fn judged(&mut self, kind: ClaimKind, claim: &str, theirs: &str, ours: impl Into<String>, verdict: Verdict) {
        let (claim, theirs, ours) = (claim.into(), theirs.into(), ours.into());
        self.claims.push(Claim {
            claim,
            kind,
            theirs,
            ours,
            verdict,
            fitted_by: None,
            verdicts: Vec::new(),
            ours_by_seed: Vec::new(),
        });
    }
}
