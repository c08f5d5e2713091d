//! Translation layers: a logical command in, a physical [`Plan`] out.
//!
//! A layer knows neither time nor bytes: it says what has to happen on the medium, and the same plan is timed by the
//! simulator, executed on bytes by the emulated drive, checked against what writes destroy, and cut short by the
//! crash tests. Layers live in [`layers`], one file each; [`registry`] lists them.

pub mod context;
pub mod info;
pub mod layer;
pub mod layers;
pub mod map;
pub mod parameters;
pub mod plan;
pub mod region;
pub mod registry;
pub mod verify;
pub mod violation;
pub mod zones;

pub use context::Context;
pub use info::LayerInfo;
pub use layer::{Background, Cache, Coming, Layer, MapMemory, Piece};
pub use parameters::{ConfigError, Parameters};
pub use plan::note::{Note, ReplayError};
pub use plan::{Cause, GroupKind, Kind, Medium, Phase, Plan, Step, StepOp};
pub use violation::Violation;
pub use zones::{Condition, Zone, ZoneError, Zones};
