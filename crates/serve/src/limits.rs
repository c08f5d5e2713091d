//! Limits on the memory, threads and time that clients may use, with their defaults. Tests use smaller ones.
//!
//! Threads: an NBD client has one thread without a pace and two threads with one, and two more with TLS. The live page
//! has one thread for all clients, and the statistics socket has another. So [`Limits::threads_max`] limits all NBD
//! threads.

use std::time::Duration;

const MIB: u64 = 1 << 20;

/// Limits on the connections, memory and time of the NBD clients of one server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum number of connections of all NBD clients, without those that were cut off. A further connection
    /// displaces another, or is turned away.
    pub connections: usize,
    /// Maximum number of NBD connections from one IPv4 address, one IPv6 /64 network or one user (over Unix sockets),
    /// without those that were cut off.
    pub connections_per_peer: usize,
    /// Time for the whole handshake of an NBD client, TLS included, from the start of the connection. Then the client
    /// is cut off.
    pub handshake_time: Duration,
    /// Time for a request of an NBD client to arrive after its first byte. For a write, each MiB of the payload has the
    /// full time again. A client that misses this deadline is cut off.
    pub request_time: Duration,
    /// Time for an NBD client to take the next part of its reply. A client that takes nothing for this time is cut off.
    pub reply_time: Duration,
    /// Maximum number of bytes of payload in memory for all NBD clients together; one client at a time may exceed it,
    /// by at most 32 MiB. The first [`Limits::payload_bytes_free`] bytes of each connection do not count.
    pub payload_bytes: u64,
    /// Maximum number of bytes of payload in memory for the clients of one address, network or user; one client at a
    /// time may exceed it. The first [`Limits::payload_bytes_free`] bytes of each connection do not count.
    pub payload_bytes_per_peer: u64,
    /// Number of bytes of payload that each connection may have in memory without counting against the limits on
    /// payload memory: enough for small requests.
    pub payload_bytes_free: u64,
    /// Time that an NBD client may take to send one payload or to take one reply while other clients wait for payload
    /// memory. Then the client may be cut off. At other times this limit does not apply.
    pub shortage_time: Duration,
    /// Bytes of payload memory per second that are granted to all clients together that never had a request answered
    /// without an error. At most a second's bytes are saved up. Payload within the free bytes of a connection does not
    /// count.
    pub newcomer_bytes_per_s: u64,
}

/// Size in bytes of the steps in which memory for the payload of a write is reserved and allocated, as its bytes
/// arrive.
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
    /// Returns the number of connections that were cut off, and whose threads have not ended yet, that may exist
    /// besides the [`Limits::connections`] others: an eighth of that number, rounded down, plus one. While all these
    /// places are taken, a new client waits for at most a second. Then the server turns it away.
    pub fn leaving_max(&self) -> usize {
        self.connections / 8 + 1
    }

    /// Returns the maximum number of threads of all NBD clients, including those that were cut off. A connection has
    /// one thread, one more if the drive is paced, and two more with TLS.
    pub fn threads_max(&self, is_paced: bool, has_tls: bool) -> usize {
        (self.connections + self.leaving_max()) * (1 + usize::from(is_paced) + 2 * usize::from(has_tls))
    }
}

/// Limits on the connections, memory and time of the HTTP clients of the live page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageLimits {
    /// Maximum number of simultaneous HTTP connections to the live page. A further one displaces another, or is closed.
    pub connections: usize,
    /// Maximum number of simultaneous HTTP connections to the live page from one IPv4 address or one IPv6 /64 network.
    /// A further one displaces another of that address or network, or is closed.
    pub connections_per_peer: usize,
    /// Size in bytes of the buffer for the requests of a connection, and thus the maximum size of a request's header.
    /// Values below 8 KiB count as 8 KiB, the minimum of hyper.
    pub header_bytes: usize,
    /// Time for the header of an HTTP request to arrive, from the start of the connection or from the previous answer.
    /// Then the connection is closed.
    pub header_time: Duration,
    /// Time from the start of an HTTP connection until the server closes it, busy or idle. A request in progress then
    /// is still answered, if that takes no longer than [`PageLimits::header_time`].
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
