//! What an experiment came to: claims with the figure of the paper beside ours, measurements, charts and remarks.

use serde::{Deserialize, Serialize};

/// What sort of claim it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// Follows from the algorithm and is computed by the code under test: equal, or within the stated tolerance.
    Derived,
    /// The paper measured it, and nothing that feeds our run was set by it or by a number that determines it.
    Predicted,
    /// Drive or workload are not given: the sentence of the paper must hold as written.
    Shape,
    /// A parameter of the run was set by this very number, or by one that determines it.
    Fitted,
    /// The workload was made to it.
    ByConstruction,
    /// Needs what the paper had and we have not.
    NotReproducible,
}

impl ClaimKind {
    /// All of them, those that count first.
    pub const ALL: [ClaimKind; 6] = [
        ClaimKind::Derived,
        ClaimKind::Predicted,
        ClaimKind::Shape,
        ClaimKind::Fitted,
        ClaimKind::ByConstruction,
        ClaimKind::NotReproducible,
    ];

    /// Its name.
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

    /// Whether a claim of this kind says something of the code: the others are shown and not counted.
    pub fn is_counted(self) -> bool {
        matches!(self, ClaimKind::Derived | ClaimKind::Predicted | ClaimKind::Shape)
    }
}

/// Whether a claim holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It holds.
    Yes,
    /// It does not.
    No,
    /// It holds with arrivals from one source and not with those from another.
    HangsOnArrival,
    /// The drive that it is compared with is not what the paper's was, so it is not reproduced.
    BaselineNotMet,
    /// It cannot be judged.
    NotJudged,
}

impl Verdict {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Yes => "yes",
            Verdict::No => "no",
            Verdict::HangsOnArrival => "hangs on arrival",
            Verdict::BaselineNotMet => "baseline not met",
            Verdict::NotJudged => "not judged",
        }
    }

    /// `yes` or `no`; not judged where there is no answer.
    pub fn of(holds: Option<bool>) -> Verdict {
        match holds {
            Some(true) => Verdict::Yes,
            Some(false) => Verdict::No,
            None => Verdict::NotJudged,
        }
    }
}

/// One claim: theirs beside ours.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Claim {
    /// What is claimed.
    pub claim: String,
    /// What sort of claim it is.
    pub kind: ClaimKind,
    /// The paper's figure.
    pub theirs: String,
    /// Ours.
    pub ours: String,
    /// Whether it holds.
    pub verdict: Verdict,
    /// For one that is fitted, the parameter and where the paper has its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fitted_by: Option<String>,
}

/// Measurements, as text.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// What is measured.
    pub heading: String,
    /// Heads of the columns.
    pub columns: Vec<String>,
    /// Cells, row by row.
    pub rows: Vec<Vec<String>>,
}

/// What an experiment came to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How it was run: what a reader needs to judge it.
    pub method: String,
    /// The claims.
    pub claims: Vec<Claim>,
    /// Measurements that no paper has.
    pub tables: Vec<Table>,
    /// (file name, SVG) of the figures.
    pub figures: Vec<(String, String)>,
    /// What else is to be said: deviations, reasons.
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
