//! The control socket of `imbrex serve`: where it is, and its end.

use std::path::PathBuf;

use imbrex_device::DeviceError;
use imbrex_device::media::host_file::HostFile;
use imbrex_serve::Front;
use imbrex_serve::control::place::{self, Link};
use imbrex_serve::control::{Control, Served};
use imbrex_serve::observe::Observed;
use imbrex_serve::socket::{Access, Socket};

use super::cannot_listen;
use crate::args::ServeArgs;
use crate::interrupt;
use imbrex::Failure;

/// The control socket, where there is one.
#[derive(Default)]
pub struct Controlled {
    control: Option<Control>,
    path: Option<PathBuf>,
    /// Gone with the server.
    _link: Option<Link>,
}

impl Controlled {
    /// Listens where the user says; else, for an image that this process alone has open, where it is looked for.
    pub fn start(args: &ServeArgs, observed: &Observed, quiet: bool) -> Result<Controlled, Failure> {
        let own = observed.front.host_file().filter(|_| !args.read_only);
        let told = |error: std::io::Error| {
            if !quiet {
                eprintln!("`imbrex drive snapshot` will not find this server by itself: {error}");
            }
        };
        let (socket, link) = match (&args.control, own) {
            (Some(path), own) => {
                let socket = Socket::bind(path, Access::Owner)
                    .map_err(|error| cannot_listen(path.display(), "--control", "another path", &error))?;
                let link = own.and_then(|file| place::link(&file.identity(), path).map_err(told).ok());
                (socket, link)
            }
            (None, Some(file)) => match place::bind(&file.identity()) {
                Ok(socket) => (socket, None),
                Err(error) => {
                    told(error);
                    return Ok(Controlled::default());
                }
            },
            (None, None) => return Ok(Controlled::default()),
        };
        let path = Some(socket.path().to_path_buf());
        let served = Served::new(observed.clone(), interrupt::request);
        let control = Control::start(socket, served)
            .map_err(|error| Failure::failed(format!("cannot answer at the control socket: {error}")))?;
        Ok(Controlled { control: Some(control), path, _link: link })
    }

    /// How an image that lost its path is saved, behind a sentence on that.
    pub fn advice(&self, image: &HostFile) -> String {
        let (image, path) = (image.path().display(), self.path.iter());
        let words = path.map(|path| {
            let path = path.display();
            format!("; `imbrex drive snapshot {image} COPY --control {path}` copies it as it is now")
        });
        words.collect()
    }

    /// The drive is about to be closed.
    pub fn begin_end(&self) {
        self.control.iter().for_each(Control::begin_end);
    }

    /// The drive is closed, or why it could not be. Who waits for that may open the image at once.
    pub fn end(self, front: &Front, outcome: &Result<(), DeviceError>) {
        if let (Some(file), Ok(())) = (front.host_file(), outcome) {
            // If it fails, the end of this process unlocks it.
            let _ = file.unlock();
        }
        if let Some(control) = self.control {
            control.end(outcome.as_ref().copied().map_err(ToString::to_string));
        }
    }
}
