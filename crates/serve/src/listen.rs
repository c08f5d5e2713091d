//! Sockets: where clients connect, and a thread for each connection.
//!
//! Invariants:
//! 1. A client costs one thread and bounded memory, and only its own connection when it misbehaves.
//! 2. A Unix socket is removed when the server ends, and never taken over from one that still listens.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::front::Front;
use crate::nbd::handshake::{self, Ended, Tls};
use crate::nbd::transmission;
use crate::tls::TlsServer;

/// How long a client may take over its options.
const HANDSHAKE_TIME: Duration = Duration::from_secs(30);
/// Connections at once.
const CONNECTIONS_MAX: usize = 256;

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

/// A connected socket of either kind.
#[derive(Debug)]
pub enum Stream {
    /// Of a Unix socket.
    Unix(UnixStream),
    /// Of TCP.
    Tcp(TcpStream),
}

impl Stream {
    /// Another handle to the same connection.
    pub fn try_clone(&self) -> io::Result<Stream> {
        Ok(match self {
            Stream::Unix(stream) => Stream::Unix(stream.try_clone()?),
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone()?),
        })
    }

    fn set_read_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_read_timeout(time),
            Stream::Tcp(stream) => stream.set_read_timeout(time),
        }
    }

    /// Ends the connection: whoever reads from it sees its end.
    pub fn shut_down(&self) {
        // It may have ended by itself.
        let _ = match self {
            Stream::Unix(stream) => stream.shutdown(std::net::Shutdown::Both),
            Stream::Tcp(stream) => stream.shutdown(std::net::Shutdown::Both),
        };
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(into),
            Stream::Tcp(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(from),
            Stream::Tcp(stream) => stream.write(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Listener {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
}

/// A listening server.
pub struct Server {
    listener: Listener,
    front: Arc<Front>,
    tls: Option<Arc<TlsServer>>,
    connections: Arc<Mutex<Vec<(usize, Stream)>>>,
    open: Arc<AtomicUsize>,
}

impl Server {
    /// Listens at `address` for clients of `front`; with `tls`, for such as speak it.
    pub fn bind(address: &Address, front: Arc<Front>, tls: Option<TlsServer>) -> io::Result<Server> {
        let listener = match address {
            Address::Unix(path) => Listener::Unix(bind_unix(path)?, path.clone()),
            Address::Tcp(host) => Listener::Tcp(TcpListener::bind(host)?),
        };
        Ok(Server {
            listener,
            front,
            tls: tls.map(Arc::new),
            connections: Arc::default(),
            open: Arc::new(AtomicUsize::new(0)),
        })
    }

    /// The port, where there is one: for a listener at port 0.
    pub fn port(&self) -> Option<u16> {
        match &self.listener {
            Listener::Tcp(listener) => listener.local_addr().ok().map(|address| address.port()),
            Listener::Unix(..) => None,
        }
    }

    /// Takes clients until `should_stop`, which is asked a few times a second; then ends all connections.
    pub fn run(&self, should_stop: &dyn Fn() -> bool) -> io::Result<()> {
        match &self.listener {
            Listener::Unix(listener, _) => listener.set_nonblocking(true)?,
            Listener::Tcp(listener) => listener.set_nonblocking(true)?,
        }
        let mut number = 0;
        while !should_stop() {
            match self.accept() {
                Ok(stream) => {
                    number += 1;
                    self.welcome(number, stream);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::sleep(Duration::from_millis(20))
                }
                // One client's failure, such as one that is gone already, is not the server's.
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        for (_, stream) in self.connections.lock().expect("no thread panics while it holds the list").iter() {
            stream.shut_down();
        }
        while self.open.load(Ordering::SeqCst) > 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn accept(&self) -> io::Result<Stream> {
        let stream = match &self.listener {
            Listener::Unix(listener, _) => Stream::Unix(listener.accept()?.0),
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

    fn welcome(&self, number: usize, stream: Stream) {
        if self.open.load(Ordering::SeqCst) >= CONNECTIONS_MAX {
            return;
        }
        let Ok(kept) = stream.try_clone() else { return };
        self.connections.lock().expect("no thread panics while it holds the list").push((number, kept));
        self.open.fetch_add(1, Ordering::SeqCst);
        let (front, tls, connections, open) =
            (self.front.clone(), self.tls.clone(), self.connections.clone(), self.open.clone());
        let spawned = std::thread::Builder::new().name(format!("nbd {number}")).spawn(move || {
            // How one client's connection ended is its own affair.
            let _ = converse(&front, tls.as_deref(), stream);
            connections.lock().expect("no thread panics while it holds the list").retain(|(other, _)| *other != number);
            open.fetch_sub(1, Ordering::SeqCst);
        });
        if spawned.is_err() {
            self.open.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = &self.listener {
            // Whoever removed it before us did what we would have done.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Binds `path`; a socket that nobody listens at any more is replaced.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let is_socket = std::os::unix::fs::FileTypeExt::is_socket(&std::fs::symlink_metadata(path)?.file_type());
            if !is_socket || UnixStream::connect(path).is_ok() {
                return Err(error);
            }
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        bound => bound,
    }
}

/// Handshake and requests of one client.
fn converse(front: &Arc<Front>, tls: Option<&TlsServer>, mut stream: Stream) -> io::Result<()> {
    stream.set_read_timeout(Some(HANDSHAKE_TIME))?;
    let Some(no_zeroes) = handshake::greet(&mut stream)? else { return Ok(()) };
    let state = if tls.is_some() { Tls::Required } else { Tls::None };
    match (handshake::options(&mut stream, front.facts(), no_zeroes, state)?, tls) {
        (Ended::Go(session), _) => {
            stream.set_read_timeout(None)?;
            let writer = stream.try_clone()?;
            transmission::run(front, session, stream, writer)
        }
        (Ended::StartTls, Some(tls)) => {
            let mut plain = tls.wrap(stream)?;
            match handshake::options(&mut plain, front.facts(), no_zeroes, Tls::On)? {
                Ended::Go(session) => {
                    let writer = plain.try_clone()?;
                    transmission::run(front, session, plain, writer)
                }
                Ended::StartTls | Ended::Closed => Ok(()),
            }
        }
        (Ended::StartTls | Ended::Closed, _) => Ok(()),
    }
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
