//! Listening sockets, and a thread for each connection.
//!
//! Invariants:
//! 1. A client costs a few threads and bounded memory and time ([`Limits`]). A misbehaving client loses only its own connection.
//! 2. [`Clients`] decides which client is admitted, and which is cut off for it.
//! 3. A Unix socket is removed when the server ends, and never taken over from a process that still listens.

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
use crate::drive_server::DriveServer;
use crate::limits::Limits;
use crate::nbd::handshake::{self, Ended, Tls};
use crate::nbd::transmission;
use crate::payload::{Account, Payloads};
use crate::socket::{Access, Socket};
use crate::stream::Stream;
use crate::tls::TlsServer;

/// Intervals at which the server looks for new clients when none arrived, and for clients that missed a deadline.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const LATE_EVERY: Duration = Duration::from_millis(100);
/// Maximum time for which newcomers wait for clients that were cut off to end.
const LEAVING_TIME: Duration = Duration::from_secs(1);
/// Bytes of stack of a client's thread: address space, of which a few kilobytes are used.
const STACK_BYTES: usize = 512 << 10;

/// An address at which the server listens. It is parsed from `unix:PATH`, `tcp:PORT` or `tcp:HOST:PORT`, and displayed
/// as an NBD URI.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// A Unix socket, by its path.
    Unix(PathBuf),
    /// A TCP socket, as `HOST:PORT`. `tcp:PORT` is parsed with the host 127.0.0.1, which only this machine reaches.
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

/// Reports to the server that a client's thread ends, even by a panic.
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

/// The list of a server's clients, and the memory budget of their payloads. A clone refers to the same list and budget.
#[derive(Clone)]
pub struct Visitors {
    /// The list of the clients that are connected to the server.
    pub clients: Arc<Clients>,
    /// The memory budget for the payloads of all clients. It also holds the limits on their connections, memory and
    /// time.
    pub payloads: Arc<Payloads>,
}

impl Visitors {
    /// Creates an empty list of clients and an unused memory budget, both bounded by `limits`.
    pub fn new(limits: Limits) -> Visitors {
        let clients = Clients::new(limits.connections, limits.connections_per_peer, limits.leaving_max());
        let clients = Arc::new(clients);
        let payloads = Arc::new(Payloads::new(limits, clients.clone()));
        Visitors { clients, payloads }
    }
}

/// An NBD server that listens at an address. [`Server::run`] serves its clients.
pub struct Server {
    listener: Listener,
    front: Arc<DriveServer>,
    tls: Option<Arc<TlsServer>>,
    clients: Arc<Clients>,
    payloads: Arc<Payloads>,
}

impl Server {
    /// Listens at `address` for NBD clients of the drive `front`, within `limits`. With `tls`, clients must use TLS;
    /// with `None` TLS is refused. Clients are served only by [`Server::run`].
    ///
    /// # Errors
    ///
    /// The address cannot be bound; `AddrInUse` if another process listens there.
    pub fn bind(
        address: &Address,
        front: Arc<DriveServer>,
        tls: Option<TlsServer>,
        limits: Limits,
    ) -> io::Result<Server> {
        Server::bind_for(address, front, tls, Visitors::new(limits))
    }

    /// Listens at `address` for NBD clients of the drive `front`, like [`Server::bind`]. Uses the list of clients, the
    /// memory budget and the limits of `visitors`; a caller can keep a clone of it to report on the clients. With
    /// `tls`, clients must use TLS. Clients are served only by [`Server::run`].
    ///
    /// # Errors
    ///
    /// The address cannot be bound; `AddrInUse` if another process listens there.
    pub fn bind_for(
        address: &Address,
        front: Arc<DriveServer>,
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

    /// Returns the TCP port at which the server listens: the one that the system chose, if port 0 was requested.
    /// Returns `None` for a Unix socket, or if the port cannot be found out.
    pub fn port(&self) -> Option<u16> {
        match &self.listener {
            Listener::Tcp(listener) => listener.local_addr().ok().map(|address| address.port()),
            Listener::Unix(_) => None,
        }
    }

    /// Serves clients, each in threads of its own, until `should_stop` returns true. `should_stop` is called many times
    /// a second. Then cuts off all clients, and waits until their threads have ended. An error of one client ends only
    /// its connection.
    ///
    /// # Errors
    ///
    /// The listening socket cannot be made non-blocking.
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
            // The failure of one client, such as one that has disconnected already, must not end the server.
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

    /// Waits while too many clients that were cut off have not ended yet: each of their threads ends soon.
    fn wait_for_leaving(&self, leaving: &Receiver<Arc<Client>>, threads: &mut BTreeMap<u64, JoinHandle<()>>) {
        let begun = Instant::now();
        while self.clients.is_crowded() && begun.elapsed() < LEAVING_TIME {
            self.payloads.look_after();
            if let Ok(client) = leaving.recv_timeout(LOOK_EVERY) {
                self.farewell(&client, threads);
            }
        }
    }

    /// Frees the place of a client whose thread ends, and joins the thread.
    fn farewell(&self, client: &Client, threads: &mut BTreeMap<u64, JoinHandle<()>>) {
        if let Some(thread) = threads.remove(&client.number()) {
            // A thread that panicked has reported that itself, and has ended one connection.
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

    /// Admits a client, if there is a place. Returns the client's number and thread.
    fn welcome(&self, stream: Stream, gone: &Sender<Arc<Client>>) -> Option<(u64, JoinHandle<()>)> {
        let kept = stream.try_clone().ok()?;
        let time = self.payloads.limits().handshake_time;
        let client = self.clients.admit(stream.peer(), time, move || kept.shut_down())?;
        let number = client.number();
        let leaving = Leaving { client: client.clone(), gone: gone.clone() };
        let account = Arc::new(Account::new(client, self.payloads.clone()));
        let (front, tls) = (self.front.clone(), self.tls.clone());
        let builder = std::thread::Builder::new().name(format!("nbd {number}")).stack_size(STACK_BYTES);
        // If the thread cannot be started, the connection ends when the closure and its stream are dropped.
        let thread = builder.spawn(move || {
            let _leaving = leaving;
            // An error ends only this client's connection.
            let _ = converse(&front, &account, tls.as_deref(), stream);
        });
        Some((number, thread.ok()?))
    }
}

/// Performs the handshake and the requests of one client. If the client misses a deadline, the server shuts its socket
/// down, which ends the reads and writes here.
fn converse(
    front: &Arc<DriveServer>,
    account: &Arc<Account>,
    tls: Option<&TlsServer>,
    mut stream: Stream,
) -> io::Result<()> {
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
