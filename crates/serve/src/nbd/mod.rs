//! The network block device protocol, server side: fixed newstyle handshake, structured replies, several connections to
//! one drive. Source: the protocol's own document, `doc/proto.md` of the NBD project.
//!
//! - [`protocol`]: the numbers of the protocol, and its messages as bytes;
//! - [`handshake`]: options, until a client asks to go;
//! - [`incoming`]: what a client sends, read with few calls;
//! - [`transmission`]: requests and replies;
//! - [`paced`]: the same to a drive that answers in its own time.

pub mod handshake;
mod incoming;
mod paced;
pub mod protocol;
pub mod transmission;
