//! The server: exports an emulated drive as a block device. Protocols, threads and sockets; no policy and no address arithmetic.
//!
//! ```text
//!  NBD connection ─┐                   ┌─ Mutex<EmulatedDrive>
//!  NBD connection ─┼─► DriveServer ────┤
//!  ublk queue ─────┤    ▲              └─ pacer thread: lets the drive work, answers when the drive would
//!  vhost-user ─────┘    └── statistics, live page
//! ```
//!
//! A drive in memory, served until a stop is requested:
//!
//! ```
//! use imbrex_serve::{Address, DriveServer, Limits, Server};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let address = format!("unix:{}", folder.path().join("drive.sock").display());
//! let drive = imbrex::drives::emulated("imr-1t+track-map")?;
//! let (front, pacer) = DriveServer::start(drive, "none".parse()?, false);
//! let server = Server::bind(&address.parse::<Address>()?, front.clone(), None, Limits::default())?;
//! let should_stop = || true; // a program asks whether Ctrl-C was pressed
//! server.run(&should_stop)?;
//! front.stop(pacer)?;
//! # Ok(())
//! # }
//! ```

mod answers;
pub mod busy;
pub mod clients;
pub mod control;
pub mod drive_server;
pub mod http;
pub mod limits;
pub mod listen;
pub mod nbd;
pub mod observe;
pub mod payload;
mod picture;
pub mod socket;
pub mod spares;
pub mod statistics;
pub mod stream;
pub mod tls;
pub mod ublk;
pub mod verify;
pub mod vhost_user;
mod zones;

pub use drive_server::{Answer, DriveServer, Facts, Target};
pub use limits::{Limits, PageLimits};
pub use listen::{Address, Server, Visitors};
