//! What an experiment came to: claims with the figure of the paper beside ours, measurements, charts and remarks.

/// What sort of claim it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// Equal, or within the stated tolerance.
    Exact,
    /// The ordering, the cliff, the side of a ratio.
    Shape,
    /// Needs what the paper had and we have not.
    NotReproducible,
}

/// One claim: theirs beside ours.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Claim {
    /// What is claimed.
    pub claim: String,
    /// What sort of claim it is.
    pub kind: ClaimKind,
    /// The paper's figure.
    pub theirs: String,
    /// Ours.
    pub ours: String,
    /// Whether it holds; `None` for what cannot be judged.
    pub holds: Option<bool>,
}

/// Measurements, as text.
#[derive(Clone, Debug, Default, serde::Serialize)]
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
    /// Adds a claim.
    pub fn claim(&mut self, kind: ClaimKind, claim: &str, theirs: &str, ours: impl Into<String>, holds: Option<bool>) {
        self.claims.push(Claim { claim: claim.into(), kind, theirs: theirs.into(), ours: ours.into(), holds });
    }
}
