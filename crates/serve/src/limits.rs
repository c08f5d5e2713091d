//! What strangers may cost: every bound on memory, threads and time of clients, with its default. Tests pass smaller ones.
//!
//! Threads: an NBD client has one of its own without a pace and two with one, and two more with TLS. The live page has one
//! thread for all of its clients, the statistics socket another. So [`Limits::threads_max`] bounds them all.

use std::time::Duration;

const MIB: u64 = 1 << 20;

/// Bounds on NBD clients.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// Of them, from one address (IPv4), one /64 network (IPv6) or one user (Unix sockets).
    pub connections_per_peer: usize,
    /// A client has this long for its handshake, TLS included.
    pub handshake_time: Duration,
    /// A request that has begun must arrive in this time; each further [`PAYLOAD_STEP_BYTES`] of a payload has as long again.
    pub request_time: Duration,
    /// A client that takes none of its replies for this long is cut off.
    pub reply_time: Duration,
    /// Bytes of payload held for all clients together, beyond [`Limits::payload_bytes_free`] of each.
    pub payload_bytes: u64,
    /// Of them, for clients of one address, network or user.
    pub payload_bytes_per_peer: u64,
    /// Payload that every connection may have without asking: what small requests need.
    pub payload_bytes_free: u64,
    /// While others wait for payload memory, a client may be busy so long with sending one payload or taking one reply.
    pub shortage_time: Duration,
    /// Bytes of payload a second that clients which never had a request served may have, all together, beyond their free ones.
    pub newcomer_bytes_per_s: u64,
}

/// Payload memory is taken in steps of this many bytes, as they come.
pub const PAYLOAD_STEP_BYTES: usize = 1 << 20;

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 256,
            connections_per_peer: 128,
            handshake_time: Duration::from_secs(10),
            request_time: Duration::from_secs(30),
            reply_time: Duration::from_secs(60),
            payload_bytes: 256 * MIB,
            payload_bytes_per_peer: 128 * MIB,
            payload_bytes_free: 256 << 10,
            shortage_time: Duration::from_secs(2),
            newcomer_bytes_per_s: 64 * MIB,
        }
    }
}

impl Limits {
    /// Connections that have been cut off and whose threads have not ended yet: more clients wait to be taken.
    pub fn leaving_max(&self) -> usize {
        self.connections / 8 + 1
    }

    /// The most threads that NBD clients have at once.
    pub fn threads_max(&self, is_paced: bool, has_tls: bool) -> usize {
        (self.connections + self.leaving_max()) * (1 + usize::from(is_paced) + 2 * usize::from(has_tls))
    }
}

/// Bounds on clients of the live page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageLimits {
    /// Connections at once.
    pub connections: usize,
    /// Of them, from one address or network.
    pub connections_per_peer: usize,
    /// Bytes of a request's head, and of what is read at once; hyper takes no less than 8 KiB.
    pub header_bytes: usize,
    /// A request's head must arrive in this time, counted from the connection or from the answer before it.
    pub header_time: Duration,
    /// A connection ends after this time, whatever it does.
    pub connection_time: Duration,
}

impl Default for PageLimits {
    fn default() -> PageLimits {
        PageLimits {
            connections: 64,
            connections_per_peer: 32,
            header_bytes: 16 << 10,
            header_time: Duration::from_secs(5),
            connection_time: Duration::from_secs(60),
        }
    }
}
