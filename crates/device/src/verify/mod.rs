//! Tests on bytes that acknowledged data survives power cuts. The counterpart without bytes is
//! `imbrex_layer::verify`.
//!
//! - [`power_loss`]: random work on an image, with a cut after every act on its medium;
//! - [`workload`]: the random work, drawn so that parts of it can be left out;
//! - [`recorder`]: a medium that records the acts on it;
//! - [`subsets`]: the subsets of blocks that may survive a cut;
//! - [`values`]: the values that a sector may have after a cut;
//! - [`hostile`]: images that no Imbrex program wrote, from [`mutation`]s of valid ones; [`allocation`] counts the
//!   memory that readers use for them.

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
