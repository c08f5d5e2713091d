//! Sockets: where clients connect, and a thread for each connection.
//!
//! Invariants:
//! 1. A client costs a few threads and bounded memory, and only its own connection when it misbehaves.
//! 2. Clients that do not finish their handshake keep no other out: the oldest of them makes room.
//! 3. A Unix socket is removed when the server ends, and never taken over from one that still listens.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
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

    pub(crate) fn set_read_timeout(&self, time: Option<Duration>) -> io::Result<()> {
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

/// A connection, as the server knows it.
struct Connection {
    number: usize,
    stream: Stream,
    /// Whether it has come to requests.
    is_serving: Arc<AtomicBool>,
}

/// The connections there are, oldest first; each leaves when its thread ends.
#[derive(Default)]
struct Connections(Mutex<Vec<Connection>>);

impl Connections {
    fn lock(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.0.lock().expect("no thread panics while it holds the list")
    }

    /// Whether there is room for one more; the oldest that has not finished its handshake is sent away to make some.
    fn make_room(&self) -> bool {
        let list = self.lock();
        if list.len() < CONNECTIONS_MAX {
            return true;
        }
        let is_waiting = |connection: &&Connection| !connection.is_serving.swap(true, Ordering::SeqCst);
        let Some(oldest) = list.iter().find(is_waiting) else { return false };
        oldest.stream.shut_down();
        // Those sent away leave at once; a flood that outruns them is turned away itself.
        list.len() < 2 * CONNECTIONS_MAX
    }
}

/// Takes a connection off the list when its thread ends, however it does.
struct Leaving {
    number: usize,
    connections: Arc<Connections>,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.connections.lock().retain(|connection| connection.number != self.number);
    }
}

/// A listening server.
pub struct Server {
    listener: Listener,
    front: Arc<Front>,
    tls: Option<Arc<TlsServer>>,
    connections: Arc<Connections>,
}

impl Server {
    /// Listens at `address` for clients of `front`; with `tls`, for such as speak it.
    pub fn bind(address: &Address, front: Arc<Front>, tls: Option<TlsServer>) -> io::Result<Server> {
        let listener = match address {
            Address::Unix(path) => Listener::Unix(bind_unix(path)?, path.clone()),
            Address::Tcp(host) => Listener::Tcp(TcpListener::bind(host)?),
        };
        Ok(Server { listener, front, tls: tls.map(Arc::new), connections: Arc::default() })
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
        self.connections.lock().iter().for_each(|connection| connection.stream.shut_down());
        while !self.connections.lock().is_empty() {
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
        if !self.connections.make_room() {
            return;
        }
        let Ok(kept) = stream.try_clone() else { return };
        let is_serving = Arc::new(AtomicBool::new(false));
        self.connections.lock().push(Connection { number, stream: kept, is_serving: is_serving.clone() });
        let leaving = Leaving { number, connections: self.connections.clone() };
        let (front, tls) = (self.front.clone(), self.tls.clone());
        // Without a thread for it, the connection ends with what was to be moved there.
        let _ = std::thread::Builder::new().name(format!("nbd {number}")).spawn(move || {
            let _leaving = leaving;
            // How one client's connection ended is its own affair.
            let _ = converse(&front, tls.as_deref(), stream, &is_serving);
        });
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
fn converse(
    front: &Arc<Front>,
    tls: Option<&TlsServer>,
    mut stream: Stream,
    is_serving: &AtomicBool,
) -> io::Result<()> {
    stream.set_read_timeout(Some(HANDSHAKE_TIME))?;
    let Some(no_zeroes) = handshake::greet(&mut stream)? else { return Ok(()) };
    let state = if tls.is_some() { Tls::Required } else { Tls::None };
    let mut ended = handshake::options(&mut stream, front.facts(), no_zeroes, state)?;
    if let (Ended::StartTls, Some(tls)) = (ended, tls) {
        stream = tls.wrap(stream)?;
        stream.set_read_timeout(Some(HANDSHAKE_TIME))?;
        ended = handshake::options(&mut stream, front.facts(), no_zeroes, Tls::On)?;
    }
    let Ended::Go(session) = ended else { return Ok(()) };
    // Already set: the server has just sent this connection away.
    if is_serving.swap(true, Ordering::SeqCst) {
        return Ok(());
    }
    stream.set_read_timeout(None)?;
    let writer = stream.try_clone()?;
    transmission::run(front, session, stream, writer)
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
