//! TLS, by rustls. The unencrypted side of a connection is one end of a pair of Unix sockets. Two threads copy bytes
//! between the pair and the client, so that the protocol's reader and writer need not share a lock.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};

use crate::stream::Stream;

/// The TLS configuration of a server: its certificate and key, and whether clients must present a certificate.
#[derive(Debug)]
pub struct TlsServer {
    config: Arc<ServerConfig>,
}

/// A file with a certificate or key that cannot be used, and the reason.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct TlsError {
    /// Path of the certificate or key file.
    pub place: String,
    /// Reason why the file cannot be used.
    pub reason: String,
}

fn wrong(path: &Path, reason: impl ToString) -> TlsError {
    TlsError { place: path.display().to_string(), reason: reason.to_string() }
}

impl TlsServer {
    /// Reads a certificate chain and its private key, both in PEM. With `client_ca`, a file of CA certificates in PEM,
    /// clients must present a certificate signed by one of these CAs.
    ///
    /// # Errors
    ///
    /// A file cannot be read, holds no certificate or key in PEM, or the key does not fit the certificate.
    pub fn load(certificate: &Path, key: &Path, client_ca: Option<&Path>) -> Result<TlsServer, TlsError> {
        let chain = certificates(certificate)?;
        let private = PrivateKeyDer::from_pem_file(key).map_err(|error| match error {
            pem::Error::NoItemsFound => wrong(key, "holds no private key in PEM"),
            error => wrong(key, error),
        })?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(certificate, error))?;
        let builder = match client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = rustls::RootCertStore::empty();
                for root in certificates(path)? {
                    roots.add(root).map_err(|error| wrong(path, error))?;
                }
                let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .build()
                    .map_err(|error| wrong(path, error))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let config = builder.with_single_cert(chain, private).map_err(|error| wrong(certificate, error))?;
        Ok(TlsServer { config: Arc::new(config) })
    }

    /// Performs the TLS handshake with the client at `stream`, and returns a stream of the unencrypted data: one end of
    /// a pair of Unix sockets, whose peer is this process. Two new threads encrypt and decrypt until the connection
    /// ends. There is no timeout here: the server shuts the connection down when the client misses its deadline.
    ///
    /// # Errors
    ///
    /// The handshake fails, or the threads cannot be started.
    pub fn wrap(&self, mut stream: Stream) -> io::Result<Stream> {
        let mut connection = ServerConnection::new(self.config.clone()).map_err(io::Error::other)?;
        connection.complete_io(&mut stream)?;
        let (ours, theirs) = UnixStream::pair()?;
        let connection = Arc::new(Mutex::new(connection));
        let (inward, outward) = (connection.clone(), connection);
        let (reader, mut writer) = (stream.try_clone()?, stream);
        let (plain_in, mut plain_out) = (theirs.try_clone()?, theirs);
        let ending = writer.try_clone()?;
        std::thread::Builder::new().name("tls in".into()).spawn(move || {
            // On any end, the unencrypted side must see the end of the stream.
            let _ = carry_in(reader, &inward, &plain_in);
            let _ = plain_in.shutdown(std::net::Shutdown::Both);
        })?;
        std::thread::Builder::new().name("tls out".into()).spawn(move || {
            let _ = carry_out(&mut plain_out, &outward, &mut writer);
            ending.shut_down();
        })?;
        Ok(Stream::Unix(ours))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let read = read.map_err(|error| wrong(path, error))?;
    if read.is_empty() {
        return Err(wrong(path, "holds no certificate in PEM"));
    }
    Ok(read)
}

fn carry_in(mut from: Stream, connection: &Mutex<ServerConnection>, mut to: &UnixStream) -> io::Result<()> {
    let (mut sealed, mut plain) = (vec![0; 64 << 10], Vec::new());
    // Bytes that arrived with the end of the handshake are in the connection already.
    let mut rest: &[u8] = &[];
    loop {
        let mut locked = connection.lock().expect("no thread panics while it holds the connection");
        if !rest.is_empty() {
            locked.read_tls(&mut rest)?;
        }
        let state = locked.process_new_packets().map_err(io::Error::other)?;
        plain.resize(state.plaintext_bytes_to_read(), 0);
        locked.reader().read_exact(&mut plain)?;
        drop(locked);
        to.write_all(&plain)?;
        if rest.is_empty() {
            let count = from.read(&mut sealed)?;
            if count == 0 {
                return Ok(());
            }
            rest = &sealed[..count];
        }
    }
}

fn carry_out(from: &mut UnixStream, connection: &Mutex<ServerConnection>, to: &mut Stream) -> io::Result<()> {
    let (mut plain, mut sealed) = (vec![0; 64 << 10], Vec::new());
    loop {
        let count = from.read(&mut plain)?;
        let mut connection = connection.lock().expect("no thread panics while it holds the connection");
        if count == 0 {
            connection.send_close_notify();
        } else {
            connection.writer().write_all(&plain[..count])?;
        }
        sealed.clear();
        while connection.wants_write() {
            connection.write_tls(&mut sealed)?;
        }
        // Without the lock: a client that does not read its replies then blocks only this thread.
        drop(connection);
        to.write_all(&sealed)?;
        if count == 0 {
            return Ok(());
        }
    }
}
