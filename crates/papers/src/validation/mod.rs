//! Comparisons of our drives with real drives: the tables of the page `validation.md`.
//!
//! The measurements are not part of Imbrex. The first experiment looks for them in the folder that
//! `IMBREX_REAL_DRIVES` names, else in `../shared/real-drives`. Without measurements its report says so.

mod disksim;
mod sequential;
mod sheets;
mod two_speeds;

use super::Experiment;

/// The experiments, in the page's order.
pub(crate) const ALL: &[&Experiment] =
    &[&disksim::EXPERIMENT, &two_speeds::EXPERIMENT, &sequential::EXPERIMENT, &sheets::EXPERIMENT];
