//! Limits on the memory, threads and time that clients may use, with their defaults. Tests use smaller ones.
//!
//! Threads: an NBD client has one thread without a pace and two threads with one, and two more with TLS. The live page
//! has one thread for all clients, and the statistics socket has another. So [`Limits::threads_max`] limits all NBD
//! threads.

use std::time::Duration;

const MIB: u64 = 1 << 20;

/// Limits for NBD clients.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum number of connections, not counting those that were cut off ([`Limits::leaving_max`]).
    pub connections: usize,
    /// Maximum number of connections from one address (IPv4), one /64 network (IPv6) or one user (Unix sockets).
    pub connections_per_peer: usize,
    /// Time for the handshake of a client, TLS included.
    pub handshake_time: Duration,
    /// Time for a request to arrive after its first byte. Each further [`PAYLOAD_STEP_BYTES`] of a payload has the full
    /// time again.
    pub request_time: Duration,
    /// A client that takes no part of its replies for this time is cut off.
    pub reply_time: Duration,
    /// Bytes of payload in memory for all clients together, without [`Limits::payload_bytes_free`] of each connection.
    pub payload_bytes: u64,
    /// Bytes of payload in memory for the clients of one address, network or user; part of [`Limits::payload_bytes`].
    pub payload_bytes_per_peer: u64,
    /// Bytes of payload that each connection may have without a reservation: enough for small requests.
    pub payload_bytes_free: u64,
    /// While other clients wait for payload memory, a client may take this time to send one payload or to take one reply.
    pub shortage_time: Duration,
    /// Bytes of payload per second for all clients that never had a request served, together, without their free bytes.
    pub newcomer_bytes_per_s: u64,
}

/// Step in bytes in which payload memory is reserved, as the bytes arrive.
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
    /// Returns the number of places beyond [`Limits::connections`] for connections that were cut off and whose threads
    /// have not ended yet. While all places together are taken, a new client waits, for a second at most. Then the
    /// server turns it away.
    pub fn leaving_max(&self) -> usize {
        self.connections / 8 + 1
    }

    /// Returns the maximum number of threads of NBD clients.
    pub fn threads_max(&self, is_paced: bool, has_tls: bool) -> usize {
        (self.connections + self.leaving_max()) * (1 + usize::from(is_paced) + 2 * usize::from(has_tls))
    }
}

/// Limits for clients of the live page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageLimits {
    /// Maximum number of connections.
    pub connections: usize,
    /// Maximum number of connections from one address or network.
    pub connections_per_peer: usize,
    /// Maximum size in bytes of the head of a request, and of one read; hyper takes no less than 8 KiB.
    pub header_bytes: usize,
    /// Time for the head of a request to arrive, counted from the connection or from the previous answer.
    pub header_time: Duration,
    /// Time from the beginning of a connection until its end, whether busy or idle. A request in progress at the end is
    /// still answered, if that takes no longer than [`PageLimits::header_time`].
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
