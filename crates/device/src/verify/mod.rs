//! Proof that what a drive acknowledged survives, on bytes: the twin of `imbrex_layer::verify`, which knows no bytes.
//!
//! - [`power_loss`]: random work on an image that is cut after every act on its medium;
//! - [`workload`]: the work, drawn so that parts of it can be left out;
//! - [`recorder`]: the medium that remembers what was done to it;
//! - [`subsets`]: what a cut may leave of a medium;
//! - [`values`]: what a sector may read as;
//! - [`hostile`]: images that no program of ours wrote, from [`mutation`]s of good ones; [`allocation`] counts what they cost.

pub mod allocation;
pub mod hostile;
pub mod mutation;
pub mod power_loss;
pub mod recorder;
pub mod subsets;
mod tear;
pub mod values;
pub mod workload;

pub use power_loss::{Loss, Tally, Trial};
