//! Emulated drives that store data. Translation layers, plans and timing come from the simulator; this crate adds the
//! stored bytes.
//!
//! ```text
//!  host I/O ─► EmulatedDrive ─► sim::Engine (queue, volatile cache, layer, timing, idle work)
//!                   │                 │ what moves where
//!                   │                 ▼
//!                   └──────────► Store: executor ─► Space (sector tables, contents), Journal ─► Media
//! ```
//!
//! A [`media`] is a flat run of bytes that may lose writes or fail them; an [`image`] gives these bytes structure;
//! the [`Store`] executes plans on an image; the [`EmulatedDrive`] is the drive that a protocol server serves. This
//! crate implements no protocol.

pub mod activity;
pub mod bands;
pub mod caveat;
pub mod check;
pub mod drive;
pub mod error;
pub mod faults;
pub mod image;
pub mod lost;
pub mod media;
pub mod pacing;
pub mod repair;
pub mod snapshot;
mod staging;
pub mod store;
pub mod upgrade;
pub mod verify;
mod volatile;
pub mod zoned;

pub use caveat::{CaveatDevice, EmulatedCaveat};
pub use drive::{Completion, EmulatedDrive, Io, IoKind};
pub use error::DeviceError;
pub use media::Media;
pub use store::Store;
pub use zoned::{EmulatedZoned, ZonedDevice};
