//! The network block device protocol, server side: fixed newstyle handshake, structured replies, several connections to
//! one drive. Source: the protocol's own document, `doc/proto.md` of the NBD project.
//!
//! - [`protocol`]: the numbers of the protocol, and its messages as bytes;
//! - [`handshake`]: options, until a client asks to go;
//! - [`incoming`]: what a client sends, read with few calls;
//! - [`requests`]: what a request asks for, and the words of its reply;
//! - [`transmission`]: requests and replies, to a drive that answers at once ([`inline`]) or in its own time ([`paced`]).

pub mod handshake;
mod incoming;
mod inline;
mod paced;
pub mod protocol;
mod requests;
pub mod transmission;
