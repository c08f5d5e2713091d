//! An emulated drive that is served over NBD at a Unix socket, in this process: so what it did is at hand.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use imbrex::Failure;
use imbrex::drives::emulated;
use imbrex_serve::{Address, Front, Limits, Server};

/// One that is served.
pub struct Served {
    front: Arc<Front>,
    should_stop: Arc<AtomicBool>,
    server: JoinHandle<std::io::Result<()>>,
    pacer: JoinHandle<()>,
}

impl Served {
    /// The drive that `words` name, as new, at `pace` as `imbrex serve --time` has it.
    pub fn start(words: &str, pace: &str, socket: &Path) -> Result<Served, Failure> {
        let (front, pacer) = Front::start(emulated(words)?, pace.parse().map_err(Failure::usage)?, false);
        let address: Address = format!("unix:{}", socket.display()).parse().map_err(Failure::failed)?;
        let server = Server::bind(&address, front.clone(), None, Limits::default()).map_err(Failure::failed)?;
        let should_stop = Arc::new(AtomicBool::new(false));
        let stops = should_stop.clone();
        let server = std::thread::spawn(move || server.run(&|| stops.load(Ordering::Relaxed)));
        Ok(Served { front, should_stop, server, pacer })
    }

    /// The drive.
    pub fn front(&self) -> &Arc<Front> {
        &self.front
    }

    /// No more is served; what the drive's volatile cache holds is written back.
    pub fn stop(self) -> Result<(), Failure> {
        self.should_stop.store(true, Ordering::Relaxed);
        let served = self.server.join().expect("a server does not panic");
        self.front.stop(self.pacer)?;
        served.map_err(Failure::failed)
    }
}
