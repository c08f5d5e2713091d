//! The rim: an emulated drive as a block device. Protocols, threads and sockets; no policy and no address arithmetic.
//!
//! ```text
//!  NBD connection ─┐                   ┌─ Mutex<EmulatedDrive>
//!  NBD connection ─┼─► Front ──────────┤
//!  ublk queue ─────┘    ▲              └─ pacer thread: lets the drive work, answers when the drive would
//!                       └── statistics, live page
//! ```

pub mod clients;
pub mod front;
pub mod http;
pub mod limits;
pub mod listen;
pub mod nbd;
pub mod observe;
pub mod payload;
mod picture;
pub mod spares;
pub mod statistics;
pub mod tls;
pub mod ublk;
pub mod verify;

pub use front::{Answer, Facts, Front, Target};
pub use limits::{Limits, PageLimits};
pub use listen::{Address, Server};
