//! Who is connected: places, who has to go when they run out, and the time that each client has.
//!
//! ```text
//!   admitted ──► finished (its handshake) ──► served (one request, answered without an error)
//!       │               │                        │
//!       └───────────────┴────────────────────────┴──► cut off: late, or its place is needed, or its memory
//! ```
//!
//! Where places run out, who came for nothing goes first: connections that never finished the handshake, of the peer with
//! most of them; then those of the peer that holds most. Nobody makes room for a peer that holds as much as itself.
//!
//! Invariants:
//! 1. There are never more clients than [`crate::Limits::connections`], and [`crate::Limits::leaving_max`] that have been cut off.
//! 2. A connection with a served request, of a peer that holds no more than its share, loses its place to nobody. The share
//!    is the number of places divided by the number of peers.
//! 3. A client that has been cut off stays so, and its socket is shut down.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Whose connection it is, as far as one can tell: bounds per address count by this.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Peer {
    /// A user of this machine, by number.
    User(u32),
    /// An address of IPv4.
    V4([u8; 4]),
    /// A network of IPv6: a single customer has 2⁶⁴ addresses.
    V6([u8; 8]),
    /// Nobody can tell.
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

/// One connection.
pub struct Client {
    number: u64,
    peer: Peer,
    begun: Instant,
    has_finished: AtomicBool,
    has_served: AtomicBool,
    is_cut: AtomicBool,
    /// Milliseconds since `begun`, here and below; when it was last heard of.
    heard_ms: AtomicU64,
    /// By when what it is to send must be there; 0 for no such time.
    receive_by_ms: AtomicU64,
    /// By when it must have taken some of what it is sent.
    send_by_ms: AtomicU64,
    /// Since when it sends one payload, or takes one reply; 0 if it does not.
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

    /// Its number; none is used twice.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whose it is.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// Whether it has been cut off.
    pub fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::SeqCst)
    }

    /// Ends its connection; says whether this call did.
    pub fn cut(&self) -> bool {
        let is_first = !self.is_cut.swap(true, Ordering::SeqCst);
        if is_first {
            (self.shut_down)();
        }
        is_first
    }

    fn now_ms(&self) -> u64 {
        // 0 means "no such time".
        self.begun.elapsed().as_millis() as u64 + 1
    }

    /// What it has begun to send must be there after `time`.
    pub fn receive_within(&self, time: Duration) {
        let now_ms = self.now_ms();
        self.heard_ms.store(now_ms, Ordering::Relaxed);
        self.receive_by_ms.store(now_ms + time.as_millis() as u64, Ordering::Relaxed);
        // Only the first piece of a payload begins it.
        let _ = self.receiving_since_ms.compare_exchange(0, now_ms, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// It waits for us now, and may stop sending meanwhile.
    pub fn need_not_send(&self) {
        self.receive_by_ms.store(0, Ordering::Relaxed);
    }

    /// Nothing is expected of it: it may be idle.
    pub fn received(&self) {
        self.receive_by_ms.store(0, Ordering::Relaxed);
        self.receiving_since_ms.store(0, Ordering::Relaxed);
    }

    /// It must take some of what it is being sent within `time`.
    pub fn send_within(&self, time: Duration) {
        let now_ms = self.now_ms();
        self.send_by_ms.store(now_ms + time.as_millis() as u64, Ordering::Relaxed);
        let _ = self.sending_since_ms.compare_exchange(0, now_ms, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// It took some: the next piece has its own time.
    pub fn progressed(&self) {
        self.send_by_ms.store(0, Ordering::Relaxed);
    }

    /// It has taken all that it was sent.
    pub fn sent(&self) {
        self.progressed();
        self.sending_since_ms.store(0, Ordering::Relaxed);
    }

    /// How long it has been busy with the payload that it sends, or the reply that it takes.
    pub fn busy_for(&self) -> Option<Duration> {
        let since = [&self.receiving_since_ms, &self.sending_since_ms].map(|since| since.load(Ordering::Relaxed));
        let earliest = since.into_iter().filter(|&since| since > 0).min()?;
        Some(Duration::from_millis(self.now_ms().saturating_sub(earliest)))
    }

    /// It has come to requests: it may take its time from now on.
    pub fn finished_handshake(&self) {
        self.has_finished.store(true, Ordering::SeqCst);
        self.received();
    }

    /// A request of it has been answered without an error.
    pub fn served(&self) {
        self.has_served.store(true, Ordering::Relaxed);
    }

    fn is_late(&self) -> bool {
        let now_ms = self.now_ms();
        let is_past = |by: &AtomicU64| (1..now_ms).contains(&by.load(Ordering::Relaxed));
        is_past(&self.receive_by_ms) || is_past(&self.send_by_ms)
    }

    /// Whether a request of it was answered without an error.
    pub fn has_served(&self) -> bool {
        self.has_served.load(Ordering::Relaxed)
    }

    fn has_finished(&self) -> bool {
        self.has_finished.load(Ordering::SeqCst)
    }

    /// How long nothing was heard of it.
    fn quiet_for(&self) -> Duration {
        self.begun.elapsed().saturating_sub(Duration::from_millis(self.heard_ms.load(Ordering::Relaxed)))
    }
}

/// What came of all who connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Connections there are.
    pub connections: u64,
    /// Who connected so far.
    pub came: u64,
    /// Of them, turned away because there was no place.
    pub turned_away: u64,
    /// Cut off for another's place.
    pub cut_for_place: u64,
    /// Of them, such as had a request served: of a peer that held more than its share.
    pub cut_though_served: u64,
    /// Cut off because they were late.
    pub cut_late: u64,
    /// Cut off because others waited for the memory that their payload held.
    pub cut_for_memory: u64,
}

#[derive(Default)]
struct List {
    /// Oldest first; those that have been cut off stay until their threads end.
    clients: Vec<Arc<Client>>,
    counts: Counts,
    next_number: u64,
}

/// All connections to one door.
pub struct Clients {
    list: Mutex<List>,
    places: usize,
    places_per_peer: usize,
    leaving_max: usize,
}

impl Clients {
    /// No clients yet, and places for `places` of them, `places_per_peer` for one peer; besides, `leaving_max` may be
    /// on their way out.
    pub fn new(places: usize, places_per_peer: usize, leaving_max: usize) -> Clients {
        Clients { list: Mutex::default(), places, places_per_peer, leaving_max }
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().expect("no thread panics while it holds the list")
    }

    /// What came of all who connected.
    pub fn counts(&self) -> Counts {
        let list = self.lock();
        Counts { connections: list.clients.iter().filter(|client| !client.is_cut()).count() as u64, ..list.counts }
    }

    /// Gives a newcomer a place, for which somebody else may be cut off; `None` if nobody has to go. It must finish its
    /// handshake within `time`; `shut_down` ends its connection.
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

    /// Whether there is a place for one more of `peer`, with somebody sent away for it if need be.
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

    /// Who leaves for a newcomer of `peer`, where all places are taken.
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

    /// Cuts off everyone whose time has come.
    pub fn cut_late(&self) {
        let mut list = self.lock();
        let cut = list.clients.iter().filter(|client| client.is_late() && client.cut()).count();
        list.counts.cut_late += cut as u64;
    }

    /// Cuts off one whose payload's memory others wait for.
    pub fn cut_for_memory(&self, client: &Client) {
        let mut list = self.lock();
        list.counts.cut_for_memory += u64::from(client.cut());
    }

    /// Ends all connections.
    pub fn cut_all(&self) {
        for client in &self.lock().clients {
            client.cut();
        }
    }

    /// `client` is gone, with its threads.
    pub fn left(&self, client: &Client) {
        self.lock().clients.retain(|other| other.number != client.number);
    }

    /// Whether as many are on their way out as may be, so that nobody is admitted.
    pub fn is_crowded(&self) -> bool {
        self.lock().clients.len() >= self.places + self.leaving_max
    }

    /// Whether everyone is gone.
    pub fn is_empty(&self) -> bool {
        self.lock().clients.is_empty()
    }
}

/// The oldest that has not finished its handshake.
fn unfinished<'a>(clients: &[&'a Arc<Client>]) -> Option<&'a Arc<Client>> {
    clients.iter().find(|client| !client.has_finished()).copied()
}

/// The one without a served request of which nothing was heard for longest.
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
        // Shares are of one place now: four peers.
        assert!(come(&clients, Peer::User(4)).is_some(), "two are more than the share of four peers");
        assert!(come(&clients, Peer::User(5)).is_some(), "who came last has not finished its handshake");
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
