//! The report of an experiment: claims with the paper's figure beside ours, measurements, charts and remarks.

use serde::{Deserialize, Serialize};

/// Kind of a claim: how the paper's number relates to our run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// The number follows from the algorithm, and the code under test computes it: equal, or within the stated
    /// tolerance.
    Derived,
    /// The paper measured the number, and no parameter of our run was set by this number or by one that determines it.
    Predicted,
    /// The paper does not give the drive or the workload: its sentence must hold as written.
    Shape,
    /// A parameter of our run was set by this very number, or by one that determines it.
    Fitted,
    /// The workload was made to give this number.
    ByConstruction,
    /// The claim needs the authors' trace or hardware, which we do not have.
    NotReproducible,
}

impl ClaimKind {
    /// All kinds, those that count first.
    pub const ALL: [ClaimKind; 6] = [
        ClaimKind::Derived,
        ClaimKind::Predicted,
        ClaimKind::Shape,
        ClaimKind::Fitted,
        ClaimKind::ByConstruction,
        ClaimKind::NotReproducible,
    ];

    /// Returns the name of this kind of claim, as reports print it.
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

    /// Returns whether claims of this kind test the code. Claims of other kinds are shown, but not counted.
    pub fn is_counted(self) -> bool {
        matches!(self, ClaimKind::Derived | ClaimKind::Predicted | ClaimKind::Shape)
    }
}

/// Whether a claim holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The claim holds.
    Yes,
    /// The claim does not hold.
    No,
    /// The claim holds with arrivals from some sources, and not with arrivals from the others.
    HangsOnArrival,
    /// The conventional drive, the base of the comparison, differs from the paper's, so the claim is not reproduced.
    BaselineNotMet,
    /// The claim cannot be judged.
    NotJudged,
}

impl Verdict {
    /// Returns the name of the verdict, as reports print it.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Yes => "yes",
            Verdict::No => "no",
            Verdict::HangsOnArrival => "hangs on arrival",
            Verdict::BaselineNotMet => "baseline not met",
            Verdict::NotJudged => "not judged",
        }
    }

    /// Returns [`Verdict::Yes`] or [`Verdict::No`], and [`Verdict::NotJudged`] for `None`.
    pub fn of(holds: Option<bool>) -> Verdict {
        match holds {
            Some(true) => Verdict::Yes,
            Some(false) => Verdict::No,
            None => Verdict::NotJudged,
        }
    }
}

/// One claim: the paper's number beside ours.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Claim {
    /// Text of the claim.
    pub claim: String,
    /// Kind of the claim.
    pub kind: ClaimKind,
    /// Number or sentence of the paper.
    pub theirs: String,
    /// Our number.
    pub ours: String,
    /// Whether the claim holds.
    pub verdict: Verdict,
    /// For a fitted claim, the parameter that was set, its value, and the paper's figure that set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fitted_by: Option<String>,
}

/// Table of measurements, as text.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// Heading of the table: the measured quantity.
    pub heading: String,
    /// Heads of the columns.
    pub columns: Vec<String>,
    /// Cells, row by row.
    pub rows: Vec<Vec<String>>,
}

/// Report of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How the experiment was run: the facts that a reader needs to judge the claims.
    pub method: String,
    /// The claims.
    pub claims: Vec<Claim>,
    /// Measurements that no paper has.
    pub tables: Vec<Table>,
    /// (file name, SVG) of the figures.
    pub figures: Vec<(String, String)>,
    /// Further remarks: deviations from the paper, reasons for differences.
    pub remarks: Vec<String>,
}

impl Report {
    /// Adds a claim that holds or does not, or cannot be judged.
    pub fn claim(&mut self, kind: ClaimKind, claim: &str, theirs: &str, ours: impl Into<String>, holds: Option<bool>) {
        self.judged(kind, claim, theirs, ours, Verdict::of(holds));
    }

    /// Adds a claim with its verdict.
    pub fn judged(&mut self, kind: ClaimKind, claim: &str, theirs: &str, ours: impl Into<String>, verdict: Verdict) {
        let (claim, theirs, ours) = (claim.into(), theirs.into(), ours.into());
        self.claims.push(Claim { claim, kind, theirs, ours, verdict, fitted_by: None });
    }
}
