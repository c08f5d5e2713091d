//! A list of what there is, before it is printed.

/// One list: its name, its columns, its rows.
pub struct Listing {
    /// What is listed.
    pub name: &'static str,
    /// Column heads.
    pub columns: &'static [&'static str],
    /// Rows.
    pub rows: Vec<Vec<String>>,
    /// Lines shown when this list alone is asked for.
    pub details: Vec<String>,
}
