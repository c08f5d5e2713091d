//! An emulated drive that this process serves over NBD at a Unix socket, so that its statistics can be read here.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use imbrex::Failure;
use imbrex::drives::emulated;
use imbrex_serve::{Address, DriveServer, Limits, Server};

/// A drive that is being served.
pub(crate) struct Served {
    front: Arc<DriveServer>,
    should_stop: Arc<AtomicBool>,
    server: JoinHandle<std::io::Result<()>>,
    pacer: JoinHandle<()>,
}

impl Served {
    /// Serves a new drive, described by `words`, at `socket`. `pace` is a value of `imbrex serve --time`.
    pub(crate) fn start(words: &str, pace: &str, socket: &Path) -> Result<Served, Failure> {
        let (front, pacer) = DriveServer::start(emulated(words)?, pace.parse().map_err(Failure::usage)?, false);
        let address: Address = format!("unix:{}", socket.display()).parse().map_err(Failure::failed)?;
        let server = Server::bind(&address, front.clone(), None, Limits::default()).map_err(Failure::failed)?;
        let should_stop = Arc::new(AtomicBool::new(false));
        let stops = should_stop.clone();
        let server = std::thread::spawn(move || server.run(&|| stops.load(Ordering::Relaxed)));
        Ok(Served { front, should_stop, server, pacer })
    }

    /// Returns the served drive.
    pub(crate) fn front(&self) -> &Arc<DriveServer> {
        &self.front
    }

    /// Stops the server and writes the dirty data of the drive's volatile cache back.
    pub(crate) fn stop(self) -> Result<(), Failure> {
        self.should_stop.store(true, Ordering::Relaxed);
        let served = self.server.join().expect("a server does not panic");
        self.front.stop(self.pacer)?;
        served.map_err(Failure::failed)
    }
}
