//! Memory for payloads: one budget for all clients, a share of it for each peer. Memory is taken as bytes come in, and for
//! a read before the drive is asked.
//!
//! Who cannot have what it asks for waits in line. The line is passed only by those whose peer has memory left, while the
//! peer of those before them has none. While somebody waits, whoever is slow over its payload or its reply is cut off:
//! of the waiting client's own peer if that is short, else of the peer that holds most.
//!
//! Invariants:
//! 1. What is held beyond each connection's free bytes is at most the budget and [`OVERDRAFT_BYTES`].
//! 2. Somebody in the line always gets on: if all hold a part and wait for more, the first of them may go over the budget,
//!    one at a time.
//! 3. A [`Claim`] gives back what it took when it is dropped.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::clients::{Client, Clients, Peer};
use crate::limits::Limits;

/// What one client at a time may have beyond the budget: the largest payload of a request.
pub const OVERDRAFT_BYTES: u64 = imbrex_nbd::PAYLOAD_BYTES_MAX as u64;
/// How often who waits looks whether somebody is slow.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What one connection holds.
struct Held {
    client: Arc<Client>,
    bytes: u64,
}

/// Somebody in the line.
#[derive(Clone, Copy)]
struct Waiting {
    ticket: u64,
    client: u64,
    peer: Peer,
    bytes: u64,
}

#[derive(Default)]
struct State {
    held: BTreeMap<u64, Held>,
    by_peer: BTreeMap<Peer, u64>,
    /// Beyond the free bytes, by all.
    used: u64,
    used_max: u64,
    line: VecDeque<Waiting>,
    next_ticket: u64,
    /// Who may go over the budget.
    overdrawn: Option<u64>,
}

/// Why somebody does not get memory yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Short {
    /// Its peer holds its share.
    Share,
    /// All is taken, or promised to those before it.
    All,
}

/// The budget.
pub struct Payloads {
    state: Mutex<State>,
    changed: Condvar,
    limits: Limits,
    clients: Arc<Clients>,
}

impl Payloads {
    /// A budget as `limits` say, for `clients`.
    pub fn new(limits: Limits, clients: Arc<Clients>) -> Payloads {
        Payloads { state: Mutex::default(), changed: Condvar::new(), limits, clients }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the books")
    }

    /// Bytes held beyond the free ones, and the most that ever were.
    pub fn used_bytes(&self) -> (u64, u64) {
        let state = self.lock();
        (state.used, state.used_max)
    }

    /// The bounds.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    fn take(&self, client: &Arc<Client>, bytes: u64) -> io::Result<()> {
        let mut state = self.lock();
        let beyond = self.beyond(&state, client.number(), bytes);
        if beyond == 0 {
            self.book(&mut state, client, bytes, 0);
            return Ok(());
        }
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        let waiting = Waiting { ticket, client: client.number(), peer: client.peer(), bytes: beyond };
        state.line.push_back(waiting);
        let outcome = loop {
            if client.is_cut() {
                break Err(io::ErrorKind::ConnectionAborted.into());
            }
            match self.shortage(&mut state, waiting) {
                None => break Ok(()),
                Some(short) => self.cut_slow(&state, waiting, short),
            }
            let waited = self.changed.wait_timeout(state, LOOK_EVERY);
            state = waited.expect("no thread panics while it holds the books").0;
        };
        state.line.retain(|other| other.ticket != ticket);
        if outcome.is_ok() {
            self.book(&mut state, client, bytes, beyond);
        }
        let others_wait = !state.line.is_empty();
        drop(state);
        if others_wait {
            self.changed.notify_all();
        }
        outcome
    }

    /// Books `bytes` more for `client`, `beyond` of them beyond what it has free.
    fn book(&self, state: &mut State, client: &Arc<Client>, bytes: u64, beyond: u64) {
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

    /// How much of `bytes` more is beyond what `client` has free.
    fn beyond(&self, state: &State, client: u64, bytes: u64) -> u64 {
        let held = state.held.get(&client).map_or(0, |held| held.bytes);
        let counted = |bytes: u64| bytes.saturating_sub(self.limits.payload_bytes_free);
        counted(held + bytes) - counted(held)
    }

    /// Why `waiting` has to wait; nothing, if it need not.
    fn shortage(&self, state: &mut State, waiting: Waiting) -> Option<Short> {
        let held = |peer: Peer| state.by_peer.get(&peer).copied().unwrap_or(0);
        let is_over_share =
            |other: &Waiting, more: u64| held(other.peer) + more + other.bytes > self.limits.payload_bytes_per_peer;
        let (mut promised, mut promised_to_peer) = (0, 0);
        for before in state.line.iter().take_while(|before| before.ticket != waiting.ticket) {
            if !is_over_share(before, 0) {
                promised += before.bytes;
                promised_to_peer += if before.peer == waiting.peer { before.bytes } else { 0 };
            }
        }
        let short = if is_over_share(&waiting, promised_to_peer) {
            Short::Share
        } else if state.used + promised + waiting.bytes > self.limits.payload_bytes {
            Short::All
        } else {
            return None;
        };
        let is_first = state.line.front().is_some_and(|first| first.ticket == waiting.ticket);
        let may_overdraw = state.overdrawn == Some(waiting.client) || (state.overdrawn.is_none() && is_first);
        if may_overdraw && state.used + waiting.bytes <= self.limits.payload_bytes + OVERDRAFT_BYTES {
            state.overdrawn = Some(waiting.client);
            return None;
        }
        Some(short)
    }

    /// Cuts off who is slowest, if it is slow, among those whose memory would help.
    fn cut_slow(&self, state: &State, waiting: Waiting, short: Short) {
        let heaviest = || state.by_peer.iter().max_by_key(|(_, &bytes)| bytes).map(|(&peer, _)| peer);
        let Some(peer) = (if short == Short::Share { Some(waiting.peer) } else { heaviest() }) else { return };
        let holders = || {
            let is_candidate = |held: &&Held| held.client.peer() == peer && held.bytes > self.limits.payload_bytes_free;
            state.held.values().filter(is_candidate)
        };
        // Those that were cut off give back theirs as soon as their threads end.
        let coming: u64 = holders().filter(|held| held.client.is_cut()).map(|held| held.bytes).sum();
        if coming >= waiting.bytes {
            return;
        }
        let slow = holders().filter(|held| !held.client.is_cut() && held.client.number() != waiting.client);
        let slow = slow.filter_map(|held| Some((held.client.busy_for()?, held)));
        if let Some((busy, held)) = slow.max_by_key(|(busy, _)| *busy) {
            if busy >= self.limits.shortage_time {
                self.clients.cut_for_memory(&held.client);
            }
        }
    }

    fn give(&self, client: &Client, bytes: u64) {
        let mut state = self.lock();
        let held = state.held.get_mut(&client.number()).expect("who gives has taken");
        let counted = |bytes: u64| bytes.saturating_sub(self.limits.payload_bytes_free);
        let beyond = counted(held.bytes) - counted(held.bytes - bytes);
        held.bytes -= bytes;
        if held.bytes == 0 {
            state.held.remove(&client.number());
        }
        state.used -= beyond;
        if beyond > 0 {
            let of_peer = state.by_peer.get_mut(&client.peer()).expect("who gives has taken");
            *of_peer -= beyond;
            if *of_peer == 0 {
                state.by_peer.remove(&client.peer());
            }
        }
        if state.overdrawn == Some(client.number()) {
            let is_even = state.used <= self.limits.payload_bytes
                && state.by_peer.get(&client.peer()).is_none_or(|&bytes| bytes <= self.limits.payload_bytes_per_peer);
            if is_even || !state.held.contains_key(&client.number()) {
                state.overdrawn = None;
            }
        }
        let others_wait = !state.line.is_empty();
        drop(state);
        if others_wait {
            self.changed.notify_all();
        }
    }
}

/// A client and the budget that it draws on.
pub struct Account {
    client: Arc<Client>,
    payloads: Arc<Payloads>,
}

impl Account {
    /// The account of `client`.
    pub fn new(client: Arc<Client>, payloads: Arc<Payloads>) -> Account {
        Account { client, payloads }
    }

    /// An account for one who is alone: with the usual bounds, and nobody to cut it off.
    pub fn alone() -> Account {
        let limits = Limits::default();
        let clients = Arc::new(Clients::new(1, 1, 1));
        let client = clients.admit(Peer::Unknown, limits.handshake_time, || {}).expect("there is one place");
        client.finished_handshake();
        Account { client, payloads: Arc::new(Payloads::new(limits, clients)) }
    }

    /// Whose it is.
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// The bounds.
    pub fn limits(&self) -> &Limits {
        self.payloads.limits()
    }

    /// A claim on nothing yet.
    pub fn claim(self: &Arc<Account>) -> Claim {
        Claim { account: self.clone(), bytes: 0 }
    }
}

/// Memory that one request holds.
pub struct Claim {
    account: Arc<Account>,
    bytes: u64,
}

impl Claim {
    /// Takes `bytes` more, and waits for them if need be; an error if the client is cut off meanwhile. What the client
    /// sends is not waited for as long.
    pub fn grow(&mut self, bytes: u64) -> io::Result<()> {
        self.account.client.received();
        self.account.payloads.take(&self.account.client, bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Whose it is.
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

    /// A budget of 4 KiB, 3 KiB for a peer, 1 KiB free; whoever is busy for 50 ms is slow.
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
        // One of its fellows may overdraw; the next has to wait, and holds up no other peer.
        let mut over = bench.account(1).claim();
        over.grow(2 * KIB).expect("one at a time");
        drop(over);
        let mut fellow = bench.account(1).claim();
        fellow.grow(KIB + 1).expect("one at a time");
        let waiting = bench.account(1);
        let thread = std::thread::spawn(move || waiting.claim().grow(2 * KIB));
        while bench.payloads.lock().line.is_empty() {
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
        let _over = bench.overdraw_by(1);
        slow.client().receive_within(Duration::from_secs(1000));
        let waiting = bench.account(1);
        let thread = std::thread::spawn(move || waiting.claim().grow(KIB + 2 * KIB));
        while !slow.client().is_cut() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!quick.client().is_cut(), "it waits for the drive, not the drive for it");
        drop(held);
        drop(_over);
        thread.join().expect("no panic").expect("it gets its turn");
        assert_eq!(bench.clients.counts().cut_for_memory, 1);
    }

    impl Bench {
        fn overdraw_by(&self, user: u32) -> Claim {
            let mut claim = self.account(user).claim();
            claim.grow(KIB + 2 * KIB).expect("the first in line may");
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
    fn who_is_cut_off_waits_no_longer() {
        let bench = bench();
        let _all = bench.overdraw();
        let account = bench.account(1);
        account.client().cut();
        let error = account.claim().grow(2 * KIB).expect_err("it is gone");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
    }
}
