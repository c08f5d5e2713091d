//! The rim: an emulated drive as a block device. Protocols, threads and sockets; no policy and no address arithmetic.
//!
//! ```text
//!  NBD connection ─┐                   ┌─ Mutex<EmulatedDrive>
//!  NBD connection ─┼─► Front ──────────┤
//!  ublk queue ─────┘    ▲              └─ pacer thread: lets the drive work, answers when the drive would
//!                       └── statistics, live page
//! ```

pub mod front;
pub mod http;
pub mod listen;
pub mod nbd;
pub mod observe;
mod picture;
pub mod statistics;
pub mod tls;
pub mod ublk;
pub mod verify;

pub use front::{Answer, Front, Target};
pub use listen::{Address, Server};
