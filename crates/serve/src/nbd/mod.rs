//! The server side of the network block device protocol: fixed newstyle handshake, structured replies, several
//! connections to one drive. Source: the protocol's own document, `doc/proto.md` of the NBD project.
//!
//! - [`protocol`]: the numbers of the protocol, and its messages as bytes;
//! - [`handshake`]: options, until a client ends them with GO;
//! - [`incoming`]: the bytes that a client sends, read with few system calls;
//! - [`requests`]: conversion of requests to drive operations, and the bytes of replies;
//! - [`transmission`]: requests and replies, to a drive that answers at once ([`inline`]) or at its own pace ([`paced`]).

pub mod handshake;
mod incoming;
mod inline;
mod paced;
pub mod protocol;
mod requests;
pub mod transmission;
