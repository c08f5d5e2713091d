//! Memory for payloads: one budget for all clients, with a maximum share for each peer. Memory for a write is taken as
//! its bytes arrive; memory for a read is taken before the drive is called.
//!
//! A client that cannot have its memory waits. The client whose peer holds least is next, and within a peer the one
//! that waits longest. No client behind it gets the memory kept for the next one. Clients of a peer that holds its full
//! share wait for memory of their own peer only.
//!
//! While a client waits, a client that is slow to send its payload or take its reply is cut off. It is a client of the
//! waiting client's own peer if that peer's share is short, and otherwise of the peer that holds most. Clients that
//! never had a request served share a limit in bytes per second, because the work that they cause may be for nothing.
//!
//! Invariants:
//! 1. The memory held beyond each connection's free bytes is at most the budget and [`OVERDRAFT_BYTES`].
//! 2. A waiting client always progresses. If all clients hold a part and wait for more, one of them may exceed the
//!    budget, and comes first until it no longer exceeds it.
//! 3. A [`Claim`] returns its memory when it is dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crate::clients::{Client, Clients, Peer};
use crate::limits::Limits;
use crate::spares::Spares;

/// Number of bytes by which the payload memory of all clients together may exceed [`Limits::payload_bytes`]: 32 MiB,
/// the largest payload of one request. Only one client at a time may use it, so that clients that wait for each other
/// progress.
pub const OVERDRAFT_BYTES: u64 = imbrex_nbd::PAYLOAD_BYTES_MAX as u64;
/// Interval at which a waiting client checks whether it was cut off, and whether newcomers may have more.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Memory of one connection.
struct Held {
    client: Arc<Client>,
    bytes: u64,
}

/// A client that waits for memory.
struct Waiting {
    client: Arc<Client>,
    bytes: u64,
    thread: Thread,
}

struct State {
    held: BTreeMap<u64, Held>,
    by_peer: BTreeMap<Peer, u64>,
    /// Bytes held by all connections beyond their free bytes.
    used: u64,
    used_max: u64,
    /// Waiting clients by ticket, which is the order of arrival.
    waiting: BTreeMap<u64, Waiting>,
    /// Tickets whose memory was booked, and whose threads have not noticed yet.
    granted: BTreeSet<u64>,
    next_ticket: u64,
    /// Number of the client that may exceed the budget.
    overdrawn: Option<u64>,
    /// Bytes that newcomers may have at once, as of `newcomers_at`. Negative after a newcomer got more bytes than were
    /// left.
    newcomer_bytes: i64,
    newcomers_at: Instant,
}

/// The reason why a client does not get memory yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Short {
    /// Its peer holds its maximum share.
    Share,
    /// The budget is used up, or kept for clients before this one.
    All,
    /// The rate limit of newcomers is used up.
    Newcomers,
}

/// The memory budget for the payloads of all clients of a server. Clients take memory from it with [`Claim`]s.
pub struct Payloads {
    state: Mutex<State>,
    limits: Limits,
    clients: Arc<Clients>,
    spares: Spares,
}

impl Payloads {
    /// Creates an unused budget with `limits`, for the clients in `clients`.
    pub fn new(limits: Limits, clients: Arc<Clients>) -> Payloads {
        let state = State {
            held: BTreeMap::new(),
            by_peer: BTreeMap::new(),
            used: 0,
            used_max: 0,
            waiting: BTreeMap::new(),
            granted: BTreeSet::new(),
            next_ticket: 0,
            overdrawn: None,
            newcomer_bytes: limits.newcomer_bytes_per_s as i64,
            newcomers_at: Instant::now(),
        };
        Payloads { state: Mutex::new(state), limits, clients, spares: Spares::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the books")
    }

    /// Returns the bytes of payload memory held now by all clients, and the maximum of this number since the budget was
    /// created. The first [`Limits::payload_bytes_free`] bytes of each connection do not count.
    pub fn used_bytes(&self) -> (u64, u64) {
        let state = self.lock();
        (state.used, state.used_max)
    }

    /// Returns the limits with which the budget was created.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Takes `bytes` for `client`. Returns whether the client had to wait.
    ///
    /// # Errors
    ///
    /// `ConnectionAborted` if the client was cut off while it waited.
    fn take(&self, client: &Arc<Client>, bytes: u64) -> io::Result<bool> {
        let mut state = self.lock();
        if self.beyond(&state, client, bytes) == 0 {
            self.book(&mut state, client, bytes);
            return Ok(false);
        }
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.waiting.insert(ticket, Waiting { client: client.clone(), bytes, thread: std::thread::current() });
        let mut has_waited = false;
        loop {
            self.grant(&mut state);
            if state.granted.remove(&ticket) {
                return Ok(has_waited);
            }
            if client.is_cut() {
                state.waiting.remove(&ticket);
                self.grant(&mut state);
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            drop(state);
            has_waited = true;
            std::thread::park_timeout(LOOK_EVERY);
            state = self.lock();
        }
    }

    /// Returns how many of `bytes` more bytes for `client` lie beyond its free bytes.
    fn beyond(&self, state: &State, client: &Client, bytes: u64) -> u64 {
        let held = state.held.get(&client.number()).map_or(0, |held| held.bytes);
        let counted = |bytes: u64| bytes.saturating_sub(self.limits.payload_bytes_free);
        counted(held + bytes) - counted(held)
    }

    fn book(&self, state: &mut State, client: &Arc<Client>, bytes: u64) {
        let beyond = self.beyond(state, client, bytes);
        let held = state.held.entry(client.number());
        held.or_insert_with(|| Held { client: client.clone(), bytes: 0 }).bytes += bytes;
        if beyond > 0 {
            *state.by_peer.entry(client.peer()).or_default() += beyond;
        }
        state.used += beyond;
        state.used_max = state.used_max.max(state.used);
        let most = self.limits.payload_bytes + OVERDRAFT_BYTES;
        assert!(state.used <= most, "invariant 1: {} bytes held of {most}", state.used);
    }

    /// Books memory for waiting clients, in their order, as long as there is enough.
    fn grant(&self, state: &mut State) {
        if state.waiting.is_empty() {
            return;
        }
        let elapsed = std::mem::replace(&mut state.newcomers_at, Instant::now()).elapsed();
        let rate = self.limits.newcomer_bytes_per_s;
        let more = (u128::from(rate) * elapsed.as_nanos() / 1_000_000_000) as i64;
        state.newcomer_bytes = state.newcomer_bytes.saturating_add(more).min(rate as i64);
        while let Some(ticket) = self.next(state) {
            let waiting = state.waiting.remove(&ticket).expect("it was just found there");
            if !waiting.client.has_served() {
                state.newcomer_bytes -= waiting.bytes as i64;
            }
            self.book(state, &waiting.client, waiting.bytes);
            state.granted.insert(ticket);
            waiting.thread.unpark();
        }
    }

    /// Returns the waiting tickets in the order of their turns, each with the reason why it must wait, if there is one.
    fn line(&self, state: &State) -> Vec<(u64, Option<Short>)> {
        let held = |peer: Peer| state.by_peer.get(&peer).copied().unwrap_or(0);
        let mut line: Vec<(u64, &Waiting)> = state.waiting.iter().map(|(&ticket, waiting)| (ticket, waiting)).collect();
        line.sort_by_key(|(ticket, waiting)| (held(waiting.client.peer()), *ticket));
        let short = |waiting: &Waiting| {
            let beyond = self.beyond(state, &waiting.client, waiting.bytes);
            if !waiting.client.has_served() && state.newcomer_bytes <= 0 {
                Some(Short::Newcomers)
            } else if held(waiting.client.peer()) + beyond > self.limits.payload_bytes_per_peer {
                Some(Short::Share)
            } else {
                (state.used + beyond > self.limits.payload_bytes).then_some(Short::All)
            }
        };
        line.into_iter().map(|(ticket, waiting)| (ticket, short(waiting))).collect()
    }

    /// Returns the ticket that gets its memory next.
    fn next(&self, state: &mut State) -> Option<u64> {
        if state.waiting.is_empty() {
            return None;
        }
        let line = self.line(state);
        let may_overdraw = |ticket: u64| {
            let waiting = &state.waiting[&ticket];
            let used = state.used + self.beyond(state, &waiting.client, waiting.bytes);
            used <= self.limits.payload_bytes + OVERDRAFT_BYTES
        };
        if let Some(number) = state.overdrawn {
            let holder = line.iter().find(|(ticket, _)| state.waiting[ticket].client.number() == number);
            return match holder {
                Some(&(ticket, _)) if may_overdraw(ticket) => Some(ticket),
                _ => before_all_is_short(&line),
            };
        }
        if let Some(ticket) = before_all_is_short(&line) {
            return Some(ticket);
        }
        let first = line.iter().find(|(_, short)| *short != Some(Short::Newcomers))?.0;
        let number = state.waiting[&first].client.number();
        if !may_overdraw(first) {
            return None;
        }
        state.overdrawn = Some(number);
        Some(first)
    }

    /// Grants memory to waiting clients as far as the limits now permit. Then wakes the waiting clients that were cut
    /// off. Of each peer (user or address) whose memory others wait for, cuts off the slowest client, if it has been
    /// sending a payload or taking a reply for [`Limits::shortage_time`], and clients cut off before will not return
    /// enough. Must be called a few times a second.
    pub fn look_after(&self) {
        let mut state = self.lock();
        self.grant(&mut state);
        state.waiting.values().filter(|waiting| waiting.client.is_cut()).for_each(|waiting| waiting.thread.unpark());
        let mut looked_at = BTreeSet::new();
        for (ticket, short) in self.line(&state) {
            let waiting = &state.waiting[&ticket];
            let heaviest = || state.by_peer.iter().max_by_key(|&(_, &bytes)| bytes).map(|(&peer, _)| peer);
            let peer = match short {
                Some(Short::Share) => Some(waiting.client.peer()),
                Some(Short::All) => heaviest(),
                Some(Short::Newcomers) | None => None,
            };
            let Some(peer) = peer else { continue };
            if looked_at.insert(peer) {
                self.cut_slowest(&state, peer, waiting);
            }
        }
    }

    /// Cuts off the slowest client of `peer`, if it is slow and clients that were cut off will not return enough memory
    /// anyway.
    fn cut_slowest(&self, state: &State, peer: Peer, waiting: &Waiting) {
        let holds = |held: &&Held| held.client.peer() == peer && held.bytes > self.limits.payload_bytes_free;
        let holders = || state.held.values().filter(holds);
        // Clients that were cut off return their memory as soon as their threads end.
        let coming: u64 = holders().filter(|held| held.client.is_cut()).map(|held| held.bytes).sum();
        if coming >= waiting.bytes {
            return;
        }
        let slow = holders().filter(|held| !held.client.is_cut() && held.client.number() != waiting.client.number());
        let slow = slow.filter_map(|held| Some((held.client.busy_for()?, held)));
        if let Some((busy, held)) = slow.max_by_key(|(busy, _)| *busy)
            && busy >= self.limits.shortage_time
        {
            self.clients.cut_for_memory(&held.client);
        }
    }

    fn give(&self, client: &Client, bytes: u64) {
        let mut state = self.lock();
        let held = state.held.get_mut(&client.number()).expect("memory is returned after it was taken");
        let counted = |bytes: u64| bytes.saturating_sub(self.limits.payload_bytes_free);
        let beyond = counted(held.bytes) - counted(held.bytes - bytes);
        held.bytes -= bytes;
        if held.bytes == 0 {
            state.held.remove(&client.number());
        }
        state.used -= beyond;
        if beyond > 0 {
            let of_peer = state.by_peer.get_mut(&client.peer()).expect("memory is returned after it was taken");
            *of_peer -= beyond;
            if *of_peer == 0 {
                state.by_peer.remove(&client.peer());
            }
        }
        if state.overdrawn == Some(client.number()) {
            let of_peer = state.by_peer.get(&client.peer()).copied().unwrap_or(0);
            let is_even = state.used <= self.limits.payload_bytes && of_peer <= self.limits.payload_bytes_per_peer;
            if is_even || !state.held.contains_key(&client.number()) {
                state.overdrawn = None;
            }
        }
        // Small requests hold no memory that others wait for, so they need not search the line.
        if beyond > 0 {
            self.grant(&mut state);
        }
    }
}

/// Returns the first ticket in line that has no reason to wait, unless a ticket before it waits for the shared budget.
fn before_all_is_short(line: &[(u64, Option<Short>)]) -> Option<u64> {
    let before = line.iter().take_while(|(_, short)| *short != Some(Short::All));
    before.into_iter().find(|(_, short)| short.is_none()).map(|&(ticket, _)| ticket)
}

/// A client, and the memory budget from which it takes memory for its payloads.
pub struct Account {
    client: Arc<Client>,
    payloads: Arc<Payloads>,
}

impl Account {
    /// Creates an account with which `client` takes memory from `payloads`.
    pub fn new(client: Arc<Client>, payloads: Arc<Payloads>) -> Account {
        Account { client, payloads }
    }

    /// Creates an account for the only client of a budget of its own, with the default limits. No server sees this
    /// client, so it is never cut off.
    pub fn alone() -> Account {
        let limits = Limits::default();
        let clients = Arc::new(Clients::new(1, 1, 1));
        let client = clients.admit(Peer::Unknown, limits.handshake_time, || {}).expect("there is one place");
        client.finished_handshake();
        Account { client, payloads: Arc::new(Payloads::new(limits, clients)) }
    }

    /// Returns the client of this account.
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Returns the limits of the memory budget.
    pub fn limits(&self) -> &Limits {
        self.payloads.limits()
    }

    /// Returns the large buffers that all clients of the budget share for reuse.
    pub fn spares(&self) -> &Spares {
        &self.payloads.spares
    }

    /// Returns a claim of this client that holds no memory yet.
    pub fn claim(self: &Arc<Account>) -> Claim {
        Claim { account: self.clone(), bytes: 0 }
    }
}

/// The payload memory of one request, as counted in the budget of all clients. Dropping this value returns the memory
/// to the budget. Only the number is kept here: the bytes themselves are allocated elsewhere.
pub struct Claim {
    account: Arc<Account>,
    bytes: u64,
}

impl Claim {
    /// Takes `bytes` more from the budget, and blocks until they are available. Clears the client's deadline for input,
    /// which the caller must set again. The wait does not count as time in which the client sends: if there was one,
    /// that time begins anew.
    ///
    /// # Errors
    ///
    /// `ConnectionAborted` if the client was cut off while it waited.
    pub fn grow(&mut self, bytes: u64) -> io::Result<()> {
        self.account.client.need_not_send();
        if self.account.payloads.take(&self.account.client, bytes)? {
            self.account.client.received();
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Returns the account of the client for which memory is claimed.
    pub fn account(&self) -> &Arc<Account> {
        &self.account
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.account.payloads.give(&self.account.client, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;

    struct Bench {
        clients: Arc<Clients>,
        payloads: Arc<Payloads>,
    }

    /// Returns a budget of 4 KiB, with 3 KiB for a peer and 1 KiB free. A client that is busy for 50 ms is slow.
    fn bench() -> Bench {
        let limits = Limits {
            payload_bytes: 4 * KIB,
            payload_bytes_per_peer: 3 * KIB,
            payload_bytes_free: KIB,
            shortage_time: Duration::from_millis(50),
            ..Limits::default()
        };
        let clients = Arc::new(Clients::new(64, 64, 1));
        Bench { payloads: Arc::new(Payloads::new(limits, clients.clone())), clients }
    }

    impl Bench {
        fn account(&self, user: u32) -> Arc<Account> {
            let client = self.clients.admit(Peer::User(user), Duration::from_secs(1000), || {}).expect("a place");
            client.finished_handshake();
            Arc::new(Account::new(client, self.payloads.clone()))
        }

        fn overdraw(&self) -> Claim {
            let mut claim = self.account(99).claim();
            claim.grow(KIB + 4 * KIB + 1).expect("the first in line may");
            claim
        }
    }

    #[test]
    fn small_requests_ask_nobody() {
        let bench = bench();
        let _all = bench.overdraw();
        let account = bench.account(1);
        let mut claim = account.claim();
        claim.grow(KIB).expect("it is free");
        assert_eq!(bench.payloads.used_bytes().0, 4 * KIB + 1);
    }

    #[test]
    fn what_was_taken_is_given_back() {
        let bench = bench();
        let account = bench.account(1);
        let mut claims: Vec<Claim> = (0..3).map(|_| account.claim()).collect();
        for claim in &mut claims {
            claim.grow(KIB).expect("there is enough");
        }
        assert_eq!(bench.payloads.used_bytes().0, 2 * KIB);
        claims.remove(1);
        assert_eq!(bench.payloads.used_bytes().0, KIB);
        claims.clear();
        assert_eq!(bench.payloads.used_bytes(), (0, 2 * KIB));
        assert!(bench.payloads.lock().held.is_empty() && bench.payloads.lock().by_peer.is_empty());
    }

    #[test]
    fn a_peer_at_its_share_leaves_the_rest_to_others() {
        let bench = bench();
        let hog = bench.account(1);
        let mut held = hog.claim();
        held.grow(KIB + 3 * KIB).expect("its share");
        // One client of the same peer may overdraw. The next has to wait, and does not delay other peers.
        let mut over = bench.account(1).claim();
        over.grow(2 * KIB).expect("one at a time");
        drop(over);
        let mut fellow = bench.account(1).claim();
        fellow.grow(KIB + 1).expect("one at a time");
        let waiting = bench.account(1);
        let thread = std::thread::spawn(move || waiting.claim().grow(2 * KIB));
        while bench.payloads.lock().waiting.is_empty() {
            std::thread::yield_now();
        }
        let mut other = bench.account(2).claim();
        other.grow(KIB + KIB - 1).expect("another peer passes the line");
        drop(held);
        thread.join().expect("no panic").expect("it gets its turn");
    }

    #[test]
    fn who_is_slow_is_cut_while_others_wait() {
        let bench = bench();
        let (slow, quick) = (bench.account(1), bench.account(1));
        let mut held = [slow.claim(), quick.claim()];
        held.iter_mut().for_each(|claim| claim.grow(2 * KIB).expect("there is enough"));
        let _over = bench.overdraw_by(1, 2 * KIB);
        slow.client().receive_within(Duration::from_secs(1000));
        let waiting = bench.account(1);
        let thread = std::thread::spawn(move || waiting.claim().grow(KIB + 2 * KIB));
        while !slow.client().is_cut() {
            bench.payloads.look_after();
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!quick.client().is_cut(), "it waits for the drive, not the drive for it");
        drop(held);
        drop(_over);
        thread.join().expect("no panic").expect("it gets its turn");
        assert_eq!(bench.clients.counts().cut_for_memory, 1);
    }

    impl Bench {
        fn overdraw_by(&self, user: u32, beyond: u64) -> Claim {
            let mut claim = self.account(user).claim();
            claim.grow(KIB + beyond).expect("the first in line may");
            claim
        }
    }

    #[test]
    fn all_that_hold_a_part_get_on() {
        let bench = bench();
        let threads: Vec<_> = (0..16)
            .map(|number| {
                let account = bench.account(number % 2);
                std::thread::spawn(move || {
                    for _ in 0..20 {
                        let mut claim = account.claim();
                        for _ in 0..4 {
                            claim.grow(KIB).expect("nobody is cut off");
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no deadlock, no panic"));
        let (used, most) = bench.payloads.used_bytes();
        assert_eq!(used, 0);
        assert!(most > 3 * KIB && most <= 4 * KIB + OVERDRAFT_BYTES, "{most}");
    }

    #[test]
    fn whose_peer_holds_least_comes_first() {
        let bench = bench();
        let mut all = bench.account(1).claim();
        all.grow(KIB + 3 * KIB).expect("its share");
        let mut rest = bench.account(2).claim();
        rest.grow(KIB + KIB).expect("the rest");
        let _over = bench.overdraw_by(3, 1);
        let wait = |user: u32| {
            let (account, payloads) = (bench.account(user), bench.payloads.clone());
            let before = payloads.lock().waiting.len();
            let thread = std::thread::spawn(move || {
                let mut claim = account.claim();
                claim.grow(KIB + 2 * KIB).map(|()| claim)
            });
            while payloads.lock().waiting.len() == before {
                std::thread::yield_now();
            }
            thread
        };
        let (early, late) = (wait(2), wait(4));
        drop(all);
        let held = late.join().expect("no panic").expect("its peer holds nothing");
        assert!(!early.is_finished(), "there is not enough for both");
        drop((held, rest, _over));
        drop(early.join().expect("no panic").expect("it gets its turn"));
        assert_eq!(bench.payloads.used_bytes().0, 0);
    }

    #[test]
    fn newcomers_have_a_rate() {
        let bench = bench();
        let newcomer = bench.payloads.limits().newcomer_bytes_per_s;
        bench.payloads.lock().newcomer_bytes = -(newcomer as i64) * 3600;
        let (stranger, known) = (bench.account(1), bench.account(1));
        known.client().served();
        let thread = std::thread::spawn(move || stranger.claim().grow(KIB + KIB));
        while bench.payloads.lock().waiting.is_empty() {
            std::thread::yield_now();
        }
        known.claim().grow(KIB + KIB).expect("it is no newcomer");
        assert!(!thread.is_finished(), "an hour's worth is owed");
        bench.payloads.lock().newcomer_bytes = 1;
        thread.join().expect("no panic").expect("it gets its turn");
    }

    #[test]
    fn who_is_cut_off_waits_no_longer() {
        let bench = bench();
        let _all = bench.overdraw();
        let account = bench.account(1);
        account.client().cut();
        let error = account.claim().grow(2 * KIB).expect_err("it is gone");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
    }
}
