//! Targets of the probe, one file each. Targets with a virtual clock share `virtual_time`; those with the wall clock
//! share `real_time`.
//!
//! ```text
//!  Simulated ─┬─ VirtualTime<Machine>      Nbd ───┬─ RealTime over a Channel
//!  Image ─────┘                            Block ─┤
//!                                       NewFile ─┘
//! ```

mod block;
mod fiemap;
mod filler;
mod image;
mod nbd;
mod nbd_handshake;
mod nbd_url;
mod new_file;
mod others;
mod real_time;
mod ring;
mod settings;
mod simulated;
mod stack;
mod virtual_time;
mod window;

pub use block::{Access, Block};
pub use image::Image;
pub use nbd::Nbd;
pub use new_file::{NewFile, Place};
pub use settings::restore_all;
pub use simulated::Simulated;
pub use window::Window;
