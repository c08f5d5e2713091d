//! Translation layers: a layer turns a logical command into a physical [`Plan`].
//!
//! A layer knows neither time nor bytes: it plans the steps on the medium. The same plan is timed by the simulator,
//! executed on bytes by the emulated drive, checked for destroyed sectors, and cut short by the crash tests. Layers
//! live in [`layers`], one file each; [`registry`] lists them.

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
pub use layer::{Background, Cache, Layer, MapMemory, Piece, PrefetchHint, StoreExtent};
pub use parameters::{ConfigError, Parameters};
pub use plan::note::{Note, ReplayError};
pub use plan::reason::{Area, AreaKind, Due, Reason};
pub use plan::{Cause, GroupKind, Kind, Medium, Phase, Plan, Step, StepOp};
pub use violation::Violation;
pub use zones::{Condition, Zone, ZoneError, Zones};
