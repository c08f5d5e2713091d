//! Translation layers: a logical command in, a physical [`Plan`] out.
//!
//! A layer knows neither time nor bytes: it says what has to happen on the medium, and the same plan is timed by the
//! simulator, executed on bytes by the emulated drive, checked against what writes destroy, and cut short by the
//! crash tests. Layers live in [`layers`], one file each; [`registry`] lists them.

pub mod extent_map;
pub mod layer;
pub mod layers;
pub mod note;
pub mod parameters;
pub mod plan;
pub mod registry;
pub mod rewrite;
pub mod run_list;
pub mod run_map;
pub mod space;
pub mod verify;
pub mod zones;

pub use layer::{Background, Cache, Layer, MapMemory, Piece, Violation};
pub use note::{Note, ReplayError};
pub use parameters::{ConfigError, Parameters};
pub use plan::{Cause, GroupKind, Kind, Medium, Phase, Plan, Step, StepOp};
pub use registry::{Context, LayerInfo};
pub use zones::{Condition, Zone, ZoneError, Zones};
