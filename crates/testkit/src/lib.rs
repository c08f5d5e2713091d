//! Independent judges of emulated drives, for tests. Nothing here uses another crate of Imbrex: the tests use a drive
//! as its users do, through the program, the NBD protocol and the output of `imbrex drive check`.
//!
//! ```text
//!   Writer ── requests ──► Client ── NBD ──► imbrex serve (Server: started, killed, stopped)
//!     │                                          │
//!     └── Record: what every sector may hold ◄───┘ what is read back
//! ```

#![allow(clippy::unwrap_used)] // this crate is only linked into tests, where a panic is the report

pub mod browser;
pub mod contents;
pub mod drawings;
pub mod fill;
pub mod history;
pub mod loop_device;
pub mod nbd_client;
pub mod patience;
pub mod program;
pub mod random;
pub mod record;
pub mod server;
pub mod tmpfs;
pub mod writer;
pub mod zones;

pub use contents::{Contents, Value};
pub use history::{Act, History};
pub use nbd_client::Client;
pub use program::Program;
pub use random::Random;
pub use record::Record;
pub use server::Server;
pub use writer::{Ended, Work, Writer};
pub use zones::{Zone, ZoneWriter};
