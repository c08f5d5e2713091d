//! Sockets: where clients connect, and a thread for each connection.
//!
//! Invariants:
//! 1. A client costs a few threads and bounded memory and time, as [`Limits`] say, and only its own connection when it
//!    misbehaves.
//! 2. Who is admitted, and who leaves for it, is for [`Clients`] to say.
//! 3. A Unix socket is removed when the server ends, and never taken over from one that still listens.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::clients::{Client, Clients};
use crate::front::Front;
use crate::limits::Limits;
use crate::nbd::handshake::{self, Ended, Tls};
use crate::nbd::transmission;
use crate::payload::{Account, Payloads};
use crate::socket::{Access, Socket};
use crate::stream::Stream;
use crate::tls::TlsServer;

/// How often the server looks for new clients where none came, and for late ones.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const LATE_EVERY: Duration = Duration::from_millis(100);
/// How long newcomers wait for those that have been cut off to be gone.
const LEAVING_TIME: Duration = Duration::from_secs(1);
/// Stack of a thread that serves a client: address space, of which it uses some kilobytes.
const STACK_BYTES: usize = 512 << 10;

/// Where to listen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// Host and port; without a host, this machine alone.
    Tcp(String),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Address::Unix(path.into()));
        }
        if let Some(rest) = text.strip_prefix("tcp:") {
            let (host, port) = rest.rsplit_once(':').unwrap_or(("", rest));
            if port.parse::<u16>().is_ok() {
                let host = if host.is_empty() { "127.0.0.1" } else { host };
                return Ok(Address::Tcp(format!("{host}:{port}")));
            }
        }
        Err(format!("'{text}': expected unix:PATH, tcp:PORT or tcp:HOST:PORT"))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "nbd+unix:///?socket={}", path.display()),
            Address::Tcp(host) => write!(f, "nbd://{host}"),
        }
    }
}

enum Listener {
    Unix(Socket),
    Tcp(TcpListener),
}

/// Tells the server that a client's thread ends, however it does.
struct Leaving {
    client: Arc<Client>,
    gone: Sender<Arc<Client>>,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        // A server that has ended keeps no list.
        let _ = self.gone.send(self.client.clone());
    }
}

/// The clients of a server, and the memory that their payloads hold.
#[derive(Clone)]
pub struct Visitors {
    /// The connected clients.
    pub clients: Arc<Clients>,
    /// Memory held by payloads of requests.
    pub payloads: Arc<Payloads>,
}

impl Visitors {
    /// Returns an empty set of clients, bounded by `limits`.
    pub fn new(limits: Limits) -> Visitors {
        let clients = Clients::new(limits.connections, limits.connections_per_peer, limits.leaving_max());
        let clients = Arc::new(clients);
        let payloads = Arc::new(Payloads::new(limits, clients.clone()));
        Visitors { clients, payloads }
    }
}

/// A listening server.
pub struct Server {
    listener: Listener,
    front: Arc<Front>,
    tls: Option<Arc<TlsServer>>,
    clients: Arc<Clients>,
    payloads: Arc<Payloads>,
}

impl Server {
    /// Listens at `address` for clients of `front`, within `limits`; with `tls`, for such as speak it.
    pub fn bind(address: &Address, front: Arc<Front>, tls: Option<TlsServer>, limits: Limits) -> io::Result<Server> {
        Server::bind_for(address, front, tls, Visitors::new(limits))
    }

    /// Listens like [`Server::bind`]. The caller keeps a clone of `visitors` to report on clients.
    pub fn bind_for(
        address: &Address,
        front: Arc<Front>,
        tls: Option<TlsServer>,
        visitors: Visitors,
    ) -> io::Result<Server> {
        let listener = match address {
            Address::Unix(path) => Listener::Unix(Socket::bind(path, Access::Usual)?),
            Address::Tcp(host) => Listener::Tcp(TcpListener::bind(host)?),
        };
        let Visitors { clients, payloads } = visitors;
        Ok(Server { listener, front, tls: tls.map(Arc::new), clients, payloads })
    }

    /// The port, where there is one: for a listener at port 0.
    pub fn port(&self) -> Option<u16> {
        match &self.listener {
            Listener::Tcp(listener) => listener.local_addr().ok().map(|address| address.port()),
            Listener::Unix(_) => None,
        }
    }

    /// Takes clients until `should_stop`, which is asked a few times a second; then ends all connections.
    pub fn run(&self, should_stop: &dyn Fn() -> bool) -> io::Result<()> {
        match &self.listener {
            Listener::Unix(listener) => listener.set_nonblocking(true)?,
            Listener::Tcp(listener) => listener.set_nonblocking(true)?,
        }
        let mut looked = Instant::now();
        let (gone, leaving) = std::sync::mpsc::channel::<Arc<Client>>();
        let mut threads = BTreeMap::new();
        while !should_stop() {
            leaving.try_iter().for_each(|client| self.farewell(&client, &mut threads));
            // One client's failure, such as one that is gone already, is not the server's.
            match self.accept() {
                Ok(stream) => {
                    self.wait_for_leaving(&leaving, &mut threads);
                    threads.extend(self.welcome(stream, &gone));
                }
                Err(_) => std::thread::sleep(LOOK_EVERY),
            }
            if looked.elapsed() >= LATE_EVERY {
                self.clients.cut_late();
                self.payloads.look_after();
                looked = Instant::now();
            }
        }
        self.clients.cut_all();
        while !self.clients.is_empty() {
            let client = leaving.recv().expect("a sender is here");
            self.farewell(&client, &mut threads);
        }
        Ok(())
    }

    /// Where as many are on their way out as may be, newcomers wait for one of them: no thread is long about its end.
    fn wait_for_leaving(&self, leaving: &Receiver<Arc<Client>>, threads: &mut BTreeMap<u64, JoinHandle<()>>) {
        let begun = Instant::now();
        while self.clients.is_crowded() && begun.elapsed() < LEAVING_TIME {
            self.payloads.look_after();
            if let Ok(client) = leaving.recv_timeout(LOOK_EVERY) {
                self.farewell(&client, threads);
            }
        }
    }

    /// A client's place is free when its thread is no more.
    fn farewell(&self, client: &Client, threads: &mut BTreeMap<u64, JoinHandle<()>>) {
        if let Some(thread) = threads.remove(&client.number()) {
            // A thread that panicked has said so itself, and has ended one connection.
            let _ = thread.join();
        }
        self.clients.left(client);
    }

    fn accept(&self) -> io::Result<Stream> {
        let stream = match &self.listener {
            Listener::Unix(listener) => Stream::Unix(listener.accept()?.0),
            Listener::Tcp(listener) => Stream::Tcp(listener.accept()?.0),
        };
        match &stream {
            Stream::Unix(unix) => unix.set_nonblocking(false)?,
            Stream::Tcp(tcp) => {
                tcp.set_nonblocking(false)?;
                tcp.set_nodelay(true)?;
            }
        }
        Ok(stream)
    }

    /// Takes in a client, if there is a place: its number, and its thread.
    fn welcome(&self, stream: Stream, gone: &Sender<Arc<Client>>) -> Option<(u64, JoinHandle<()>)> {
        let kept = stream.try_clone().ok()?;
        let time = self.payloads.limits().handshake_time;
        let client = self.clients.admit(stream.peer(), time, move || kept.shut_down())?;
        let number = client.number();
        let leaving = Leaving { client: client.clone(), gone: gone.clone() };
        let account = Arc::new(Account::new(client, self.payloads.clone()));
        let (front, tls) = (self.front.clone(), self.tls.clone());
        let builder = std::thread::Builder::new().name(format!("nbd {number}")).stack_size(STACK_BYTES);
        // Without a thread for it, the connection ends with what was to be moved there.
        let thread = builder.spawn(move || {
            let _leaving = leaving;
            // How one client's connection ended is its own affair.
            let _ = converse(&front, &account, tls.as_deref(), stream);
        });
        Some((number, thread.ok()?))
    }
}

/// Handshake and requests of one client. Whoever is late is cut off by the server, which ends what is waited for here.
fn converse(front: &Arc<Front>, account: &Arc<Account>, tls: Option<&TlsServer>, mut stream: Stream) -> io::Result<()> {
    let Some(no_zeroes) = handshake::greet(&mut stream)? else { return Ok(()) };
    let state = if tls.is_some() { Tls::Required } else { Tls::None };
    let mut ended = handshake::options(&mut stream, front.facts(), no_zeroes, state)?;
    if let (Ended::StartTls, Some(tls)) = (ended, tls) {
        stream = tls.wrap(stream)?;
        ended = handshake::options(&mut stream, front.facts(), no_zeroes, Tls::On)?;
    }
    let Ended::Go(session) = ended else { return Ok(()) };
    account.client().finished_handshake();
    let writer = stream.try_clone()?;
    transmission::run(front, account, session, stream, writer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        assert_eq!("unix:/tmp/a".parse(), Ok(Address::Unix("/tmp/a".into())));
        assert_eq!("tcp:10809".parse(), Ok(Address::Tcp("127.0.0.1:10809".into())));
        assert_eq!("tcp:0.0.0.0:10809".parse(), Ok(Address::Tcp("0.0.0.0:10809".into())));
        for text in ["unix:", "tcp:", "tcp:host:port", "10809"] {
            assert!(text.parse::<Address>().unwrap_err().contains("expected unix:PATH"), "{text}");
        }
    }
}
