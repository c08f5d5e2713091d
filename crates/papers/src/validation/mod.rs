//! What was held against real drives, how near it came: the tables of the page "validation".
//!
//! The measurements are not part of Imbrex: the first experiment looks for them in the folder that `IMBREX_REAL_DRIVES` names,
//! else in `../shared/real-drives`, and says so where there is none.

mod disksim;
mod sequential;
mod two_speeds;

use super::Experiment;

/// The experiments, in the page's order.
pub const ALL: &[&Experiment] = &[&disksim::EXPERIMENT, &two_speeds::EXPERIMENT, &sequential::EXPERIMENT];
