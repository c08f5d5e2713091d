//! The connected clients of a server: admission, the choice of a client to disconnect when all places are taken, and
//! deadlines.
//!
//! ```text
//!   admitted ──► finished (its handshake) ──► served (one request, answered without an error)
//!       │               │                        │
//!       └───────────────┴────────────────────────┴──► cut off: late, or its place is needed, or its memory
//! ```
//!
//! When all places are taken, a newcomer replaces the least useful connection. Connections with an unfinished handshake
//! go first, from the peer that has most of them. Connections without a served request are next, from the peer with
//! most connections. The replaced connection belongs to the newcomer's peer, or to a peer with more connections than
//! the newcomer's peer.
//!
//! Invariants:
//! 1. There are never more clients than [`crate::Limits::connections`]; up to [`crate::Limits::leaving_max`] clients
//!    that were cut off may remain besides.
//! 2. A connection with a served request keeps its place if its peer holds no more than its share. The share is the
//!    number of places divided by the number of peers.
//! 3. A client that was cut off stays so, and its socket is shut down.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The remote side of a connection: a user, an IPv4 address or an IPv6 network. Each limit per peer applies to all
/// connections with equal values of this type together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Peer {
    /// A client over a Unix socket: its user ID on this machine.
    User(u32),
    /// An IPv4 address, also one that arrived as an IPv4-mapped IPv6 address.
    V4([u8; 4]),
    /// An IPv6 /64 network: the first 8 bytes of the address. The host part is ignored, because a single customer has
    /// 2⁶⁴ addresses.
    V6([u8; 8]),
    /// A remote side whose user or address the kernel does not report. All such connections count as one peer.
    Unknown,
}

impl From<IpAddr> for Peer {
    fn from(address: IpAddr) -> Peer {
        match address.to_canonical() {
            IpAddr::V4(address) => Peer::V4(address.octets()),
            IpAddr::V6(address) => {
                let network = *address.octets().first_chunk().expect("16 bytes have a first 8");
                Peer::V6(network)
            }
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::User(number) => write!(f, "user {number}"),
            Peer::V4([a, b, c, d]) => write!(f, "{a}.{b}.{c}.{d}"),
            Peer::V6(network) => {
                network.chunks(2).try_for_each(|pair| write!(f, "{:02x}{:02x}:", pair[0], pair[1]))?;
                f.write_str(":/64")
            }
            Peer::Unknown => f.write_str("unknown"),
        }
    }
}

/// One client of the server, which is one connection: its remote side, its progress and its deadlines.
pub struct Client {
    number: u64,
    peer: Peer,
    begun: Instant,
    has_finished: AtomicBool,
    has_served: AtomicBool,
    is_cut: AtomicBool,
    /// Time of the client's latest input. This time and those below are in milliseconds since `begun`.
    heard_ms: AtomicU64,
    /// Deadline for the input that the client has begun to send; 0 without a deadline.
    receive_by_ms: AtomicU64,
    /// Deadline by which the client must have taken some of its reply; 0 without a deadline.
    send_by_ms: AtomicU64,
    /// Time since when the client has been sending one payload, or taking one reply; 0 if it is not.
    receiving_since_ms: AtomicU64,
    sending_since_ms: AtomicU64,
    shut_down: Box<dyn Fn() + Send + Sync>,
}

impl Client {
    fn new(number: u64, peer: Peer, shut_down: Box<dyn Fn() + Send + Sync>) -> Client {
        Client {
            number,
            peer,
            begun: Instant::now(),
            has_finished: AtomicBool::new(false),
            has_served: AtomicBool::new(false),
            is_cut: AtomicBool::new(false),
            heard_ms: AtomicU64::new(0),
            receive_by_ms: AtomicU64::new(0),
            send_by_ms: AtomicU64::new(0),
            receiving_since_ms: AtomicU64::new(0),
            sending_since_ms: AtomicU64::new(0),
            shut_down,
        }
    }

    /// Returns the number of the client: 0 for the first client that the server admitted, then counted up. No number is
    /// used twice.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the remote side of the connection, to which the limits per peer apply: the user of a Unix socket, or the
    /// network address.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// Returns whether the client was cut off, that is, whether [`Client::cut`] was called.
    pub fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::SeqCst)
    }

    /// Cuts the client off: marks it for good, and shuts its connection down with the function given to
    /// [`Clients::admit`]. Returns whether this call was the first; a later call has no effect.
    pub fn cut(&self) -> bool {
        let is_first = !self.is_cut.swap(true, Ordering::SeqCst);
        if is_first {
            (self.shut_down)();
        }
        is_first
    }

    fn now_ms(&self) -> u64 {
        // 0 is reserved for "no such time".
        self.begun.elapsed().as_millis() as u64 + 1
    }

    /// Sets the deadline for the client's input, such as the next part of a payload, to `time` from now; a client that
    /// misses it can be cut off. Records now as the time of its latest input. The first call for a request also starts
    /// the time that [`Client::busy_for`] returns.
    pub fn receive_within(&self, time: Duration) {
        let now_ms = self.now_ms();
        self.heard_ms.store(now_ms, Ordering::Relaxed);
        self.receive_by_ms.store(now_ms + time.as_millis() as u64, Ordering::Relaxed);
        // Only the first piece of a payload sets the start time.
        let _ = self.receiving_since_ms.compare_exchange(0, now_ms, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Clears the deadline for input. Called when the server makes the client wait, for example for memory. The client
    /// still counts as sending in [`Client::busy_for`].
    pub fn need_not_send(&self) {
        self.receive_by_ms.store(0, Ordering::Relaxed);
    }

    /// Clears the deadline for input, and ends the time of [`Client::busy_for`] for input. Called when a whole request
    /// has arrived: the client may be idle now.
    pub fn received(&self) {
        self.receive_by_ms.store(0, Ordering::Relaxed);
        self.receiving_since_ms.store(0, Ordering::Relaxed);
    }

    /// Sets the deadline for the client to take the next part of its reply to `time` from now. The first call for a
    /// reply also starts the time that [`Client::busy_for`] returns.
    pub fn send_within(&self, time: Duration) {
        let now_ms = self.now_ms();
        self.send_by_ms.store(now_ms + time.as_millis() as u64, Ordering::Relaxed);
        let _ = self.sending_since_ms.compare_exchange(0, now_ms, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Clears the deadline for output after the client took a part of its reply. The client still counts as taking a
    /// reply in [`Client::busy_for`]; the next part gets its own deadline.
    pub fn progressed(&self) {
        self.send_by_ms.store(0, Ordering::Relaxed);
    }

    /// Clears the deadline for output, and ends the time of [`Client::busy_for`] for output. Called when the client has
    /// taken its whole reply.
    pub fn sent(&self) {
        self.progressed();
        self.sending_since_ms.store(0, Ordering::Relaxed);
    }

    /// Returns how long the client has been sending its current request or taking its current reply: the longer of the
    /// two times, if it does both. Returns `None` if it does neither.
    pub fn busy_for(&self) -> Option<Duration> {
        let since = [&self.receiving_since_ms, &self.sending_since_ms].map(|since| since.load(Ordering::Relaxed));
        let earliest = since.into_iter().filter(|&since| since > 0).min()?;
        Some(Duration::from_millis(self.now_ms().saturating_sub(earliest)))
    }

    /// Marks the handshake of the client as finished, and clears the deadline for input. The client no longer counts as
    /// sending in [`Client::busy_for`], and may be idle from now on.
    pub fn finished_handshake(&self) {
        self.has_finished.store(true, Ordering::SeqCst);
        self.received();
    }

    /// Marks that the server answered a request of the client without an error. The mark stays.
    pub fn served(&self) {
        self.has_served.store(true, Ordering::Relaxed);
    }

    fn is_late(&self) -> bool {
        let now_ms = self.now_ms();
        let is_past = |by: &AtomicU64| (1..now_ms).contains(&by.load(Ordering::Relaxed));
        is_past(&self.receive_by_ms) || is_past(&self.send_by_ms)
    }

    /// Returns whether the server has answered at least one request of the client without an error. Answers to
    /// BLOCK_STATUS, which moves no data, do not count.
    pub fn has_served(&self) -> bool {
        self.has_served.load(Ordering::Relaxed)
    }

    fn has_finished(&self) -> bool {
        self.has_finished.load(Ordering::SeqCst)
    }

    /// Returns the time since the client's latest input.
    fn quiet_for(&self) -> Duration {
        self.begun.elapsed().saturating_sub(Duration::from_millis(self.heard_ms.load(Ordering::Relaxed)))
    }
}

/// Counts of the connections to a server. All but `connections` count from the creation of the list of clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Number of connections open now, without those that were cut off and have not ended yet.
    pub connections: u64,
    /// Number of connections that clients have opened since the list of clients was created, both admitted and turned
    /// away.
    pub came: u64,
    /// Number of connections, since the list of clients was created, that were not admitted. Either all places, or all
    /// places of the connection's peer (an address or user), were taken and none could be freed. Or too many
    /// connections that were cut off had not ended yet.
    pub turned_away: u64,
    /// Number of connections cut off, since the list of clients was created, so that another connection could be
    /// admitted in their place.
    pub cut_for_place: u64,
    /// Number of the connections of `cut_for_place` (cut off for another connection) on which a request had been
    /// answered without an error. Their peer (an address or user) held more than its share of the places.
    pub cut_though_served: u64,
    /// Number of connections cut off, since the list of clients was created, because the client missed a deadline for
    /// sending input or for taking output.
    pub cut_late: u64,
    /// Number of connections cut off, since the list of clients was created, because the client was slow to send or
    /// take a payload while other clients waited for the memory of that payload.
    pub cut_for_memory: u64,
}

#[derive(Default)]
struct List {
    /// Clients, oldest first. Those that were cut off stay in the list until their threads end.
    clients: Vec<Arc<Client>>,
    counts: Counts,
    next_number: u64,
}

/// The list of all connections to one server, with the limits for admission. A connection that was cut off stays in the
/// list until [`Clients::left`] is called for it.
pub struct Clients {
    list: Mutex<List>,
    places: usize,
    places_per_peer: usize,
    leaving_max: usize,
}

impl Clients {
    /// Creates an empty list with at most `places` connections in total, and `places_per_peer` for each peer (an
    /// address or user). With connections that were cut off and have not ended yet, it holds at most `places` +
    /// `leaving_max`.
    pub fn new(places: usize, places_per_peer: usize, leaving_max: usize) -> Clients {
        Clients { list: Mutex::default(), places, places_per_peer, leaving_max }
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().expect("no thread panics while it holds the list")
    }

    /// Returns the number of connections open now, and the counts of all connections since the list was created.
    pub fn counts(&self) -> Counts {
        let list = self.lock();
        Counts { connections: list.clients.iter().filter(|client| !client.is_cut()).count() as u64, ..list.counts }
    }

    /// Admits a client of `peer`, for which one other client may be cut off. Returns `None` if the client must be
    /// turned away: there is no place for it and no client may be cut off for it, or the list is full, with clients
    /// that were cut off and have not left yet.
    ///
    /// The new client has `time` to finish its handshake. `shut_down` is called once if the client is cut off, and must
    /// end its connection.
    pub fn admit(
        &self,
        peer: Peer,
        time: Duration,
        shut_down: impl Fn() + Send + Sync + 'static,
    ) -> Option<Arc<Client>> {
        let mut list = self.lock();
        list.counts.came += 1;
        let has_place = list.clients.len() < self.places + self.leaving_max && self.make_room(&mut list, peer);
        if !has_place {
            list.counts.turned_away += 1;
            return None;
        }
        let client = Arc::new(Client::new(list.next_number, peer, Box::new(shut_down)));
        client.receive_within(time);
        list.next_number += 1;
        list.clients.push(client.clone());
        Some(client)
    }

    /// Returns whether there is a place for another client of `peer`. Cuts off a client if that is necessary and
    /// possible.
    fn make_room(&self, list: &mut List, peer: Peer) -> bool {
        let staying: Vec<&Arc<Client>> = list.clients.iter().filter(|client| !client.is_cut()).collect();
        let own = staying.iter().filter(|client| client.peer == peer).count();
        let victim = if own >= self.places_per_peer {
            let of_peer: Vec<&Arc<Client>> = staying.into_iter().filter(|client| client.peer == peer).collect();
            unfinished(&of_peer).or_else(|| unserved(&of_peer))
        } else if staying.len() >= self.places {
            self.victim(&staying, peer)
        } else {
            return true;
        };
        let Some(victim) = victim.cloned() else { return false };
        list.counts.cut_for_place += 1;
        list.counts.cut_though_served += u64::from(victim.has_served());
        victim.cut()
    }

    /// Returns the client to cut off for a newcomer of `peer` when all places are taken.
    fn victim<'a>(&self, staying: &[&'a Arc<Client>], peer: Peer) -> Option<&'a Arc<Client>> {
        let mut held: BTreeMap<Peer, Vec<&'a Arc<Client>>> = BTreeMap::from([(peer, Vec::new())]);
        staying.iter().for_each(|client| held.entry(client.peer).or_default().push(client));
        let (own, share) = (held[&peer].len(), (self.places / held.len()).max(1));
        let yields = |&(&other, of): &(&Peer, &Vec<&'a Arc<Client>>)| other == peer || of.len() > own;
        let waiting = |of: &[&Arc<Client>]| of.iter().filter(|client| !client.has_finished()).count();
        let most_waiting = held.iter().filter(yields).max_by_key(|(_, of)| waiting(of))?.1;
        if let Some(oldest) = unfinished(most_waiting) {
            return Some(oldest);
        }
        let mut heaviest: Vec<_> = held.iter().filter(yields).collect();
        heaviest.sort_by_key(|(_, of)| std::cmp::Reverse(of.len()));
        heaviest.into_iter().find_map(|(&other, of)| {
            let is_over = other != peer && of.len() > share;
            unserved(of).or_else(|| if is_over { quietest(of) } else { None })
        })
    }

    /// Cuts off every client whose deadline for input or output has passed, and counts those clients.
    pub fn cut_late(&self) {
        let mut list = self.lock();
        let cut = list.clients.iter().filter(|client| client.is_late() && client.cut()).count();
        list.counts.cut_late += cut as u64;
    }

    /// Cuts off `client`, because other clients wait for the memory of its payload, and counts it in
    /// [`Counts::cut_for_memory`]. A client that was cut off already is not counted again.
    pub fn cut_for_memory(&self, client: &Client) {
        let mut list = self.lock();
        list.counts.cut_for_memory += u64::from(client.cut());
    }

    /// Cuts off all clients, at the end of the server. They are not counted as cut off in [`Counts`], and stay in the
    /// list until [`Clients::left`] is called for them.
    pub fn cut_all(&self) {
        for client in &self.lock().clients {
            client.cut();
        }
    }

    /// Removes `client` from the list, which frees its place. Called after the client's threads have ended.
    pub fn left(&self, client: &Client) {
        self.lock().clients.retain(|other| other.number != client.number);
    }

    /// Returns whether the list is full: all places, and the extra places for clients that were cut off, are taken. All
    /// clients that have not left count, cut off or not. Then no client can be admitted.
    pub fn is_crowded(&self) -> bool {
        self.lock().clients.len() >= self.places + self.leaving_max
    }

    /// Returns whether the list is empty: no client is connected, and all that were cut off have ended.
    pub fn is_empty(&self) -> bool {
        self.lock().clients.is_empty()
    }
}

/// Returns the oldest client with an unfinished handshake.
fn unfinished<'a>(clients: &[&'a Arc<Client>]) -> Option<&'a Arc<Client>> {
    clients.iter().find(|client| !client.has_finished()).copied()
}

/// Returns the client without a served request that has been silent for the longest time.
fn unserved<'a>(clients: &[&'a Arc<Client>]) -> Option<&'a Arc<Client>> {
    clients.iter().filter(|client| !client.has_served()).max_by_key(|client| client.quiet_for()).copied()
}

fn quietest<'a>(clients: &[&'a Arc<Client>]) -> Option<&'a Arc<Client>> {
    clients.iter().max_by_key(|client| client.quiet_for()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(1000);
    const A: Peer = Peer::User(1);
    const B: Peer = Peer::User(2);
    const C: Peer = Peer::User(3);

    fn come(clients: &Clients, peer: Peer) -> Option<Arc<Client>> {
        clients.admit(peer, LONG, || {})
    }

    fn finished(clients: &Clients, peer: Peer) -> Arc<Client> {
        let client = come(clients, peer).expect("there is a place");
        client.finished_handshake();
        client
    }

    fn served(clients: &Clients, peer: Peer) -> Arc<Client> {
        let client = finished(clients, peer);
        client.served();
        client
    }

    #[test]
    fn who_never_finished_goes_first_and_of_the_peer_with_most_of_them() {
        let clients = Clients::new(4, 4, 4);
        let (idle, lone) = (finished(&clients, A), come(&clients, B).expect("a place"));
        let crowd = [come(&clients, A), come(&clients, A)].map(|client| client.expect("a place"));
        let late = come(&clients, C).expect("a place is made");
        assert_eq!([idle.is_cut(), lone.is_cut(), late.is_cut()], [false; 3]);
        assert_eq!(crowd.map(|client| client.is_cut()), [true, false], "the oldest of them");
        assert_eq!(clients.counts().connections, 4);
    }

    #[test]
    fn then_who_was_never_served_of_the_peer_that_holds_most() {
        let clients = Clients::new(4, 4, 4);
        let (good, crowd) = (finished(&clients, B), [(); 3].map(|()| finished(&clients, A)));
        let late = come(&clients, C).expect("a place is made");
        assert!(!good.is_cut() && !late.is_cut());
        assert_eq!(crowd.iter().filter(|client| client.is_cut()).count(), 1);
    }

    #[test]
    fn who_was_served_stays_unless_its_peer_holds_more_than_its_share() {
        let clients = Clients::new(4, 4, 4);
        let (good, crowd) = (served(&clients, B), [(); 3].map(|()| served(&clients, A)));
        assert!(come(&clients, A).is_none(), "nobody leaves for one of the peer that holds most");
        let newcomer = served(&clients, C);
        assert_eq!(crowd.iter().filter(|client| client.is_cut()).count(), 1, "three of four places are no fair share");
        assert!(!good.is_cut() && !newcomer.is_cut());
        let counts = clients.counts();
        assert_eq!((counts.cut_for_place, counts.cut_though_served, counts.turned_away), (1, 1, 1));
        // With four peers, the share is one place.
        assert!(come(&clients, Peer::User(4)).is_some(), "two are more than the share of four peers");
        assert!(come(&clients, Peer::User(5)).is_some(), "the last newcomer has not finished its handshake");
    }

    #[test]
    fn a_peer_has_a_bound_of_its_own() {
        let clients = Clients::new(8, 2, 4);
        let first = served(&clients, A);
        let second = finished(&clients, A);
        let third = served(&clients, A);
        assert!(second.is_cut() && !first.is_cut());
        assert!(come(&clients, A).is_none(), "both of its places are in use");
        assert!(come(&clients, B).is_some());
        assert!(!third.is_cut());
    }

    #[test]
    fn those_that_leave_slowly_are_bounded_too() {
        let clients = Clients::new(2, 2, 1);
        let crowd: Vec<_> = (0..10).filter_map(|_| come(&clients, A)).collect();
        assert_eq!(crowd.len(), 3, "two places, and one that is leaving");
        crowd.iter().for_each(|client| clients.left(client));
        assert!(clients.is_empty() && come(&clients, A).is_some());
    }

    #[test]
    fn who_is_late_is_cut_and_who_is_idle_is_not() {
        let clients = Clients::new(4, 4, 4);
        let [hanging, slow, deaf] = [(); 3].map(|()| clients.admit(A, Duration::ZERO, || {}).expect("a place"));
        let idle = served(&clients, A);
        [&slow, &deaf].iter().for_each(|client| client.finished_handshake());
        slow.receive_within(Duration::ZERO);
        deaf.send_within(Duration::ZERO);
        std::thread::sleep(Duration::from_millis(5));
        clients.cut_late();
        assert_eq!([&hanging, &slow, &deaf, &idle].map(|client| client.is_cut()), [true, true, true, false]);
        assert_eq!(clients.counts().cut_late, 3);
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer() {
        let peer = |text: &str| Peer::from(text.parse::<IpAddr>().expect("an address"));
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff:1"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
        assert_eq!(peer("::ffff:10.0.0.1"), peer("10.0.0.1"));
        assert_ne!(peer("10.0.0.1"), peer("10.0.0.2"));
    }
}
