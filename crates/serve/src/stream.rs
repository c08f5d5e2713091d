//! A connected socket, of Unix or TCP.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use crate::clients::Peer;

/// A connected stream socket, of Unix or TCP.
#[derive(Debug)]
pub enum Stream {
    /// A connected Unix socket.
    Unix(UnixStream),
    /// A connected TCP socket.
    Tcp(TcpStream),
}

impl Stream {
    /// Returns another handle to the same connection.
    ///
    /// # Errors
    ///
    /// The file descriptor cannot be duplicated.
    pub fn try_clone(&self) -> io::Result<Stream> {
        Ok(match self {
            Stream::Unix(stream) => Stream::Unix(stream.try_clone()?),
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone()?),
        })
    }

    /// Returns the remote side of the connection: the user of a Unix socket, or the address of a TCP socket. Returns
    /// [`Peer::Unknown`] if the kernel does not report it.
    pub fn peer(&self) -> Peer {
        match self {
            Stream::Unix(stream) => rustix::net::sockopt::socket_peercred(stream)
                .map_or(Peer::Unknown, |credentials| Peer::User(credentials.uid.as_raw())),
            Stream::Tcp(stream) => stream.peer_addr().map_or(Peer::Unknown, |address| address.ip().into()),
        }
    }

    /// Shuts both directions of the connection down, for all of its handles. Readers on both sides then see the end of
    /// the stream. Errors are ignored: the connection may have ended already.
    pub fn shut_down(&self) {
        // The connection may have ended already.
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

    fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read_vectored(into),
            Stream::Tcp(stream) => stream.read_vectored(into),
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

    fn write_vectored(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write_vectored(from),
            Stream::Tcp(stream) => stream.write_vectored(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
