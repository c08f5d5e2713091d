//! The control socket of `imbrex serve`: its path, its start and its end.

use std::path::PathBuf;

use imbrex_device::DeviceError;
use imbrex_device::media::host_file::HostFile;
use imbrex_serve::DriveServer;
use imbrex_serve::control::place::{self, Link};
use imbrex_serve::control::{Control, Served};
use imbrex_serve::observe::Observed;
use imbrex_serve::socket::{Access, Socket};

use super::cannot_listen;
use crate::args::ServeArgs;
use crate::interrupt;
use imbrex::Failure;

/// The control socket of a server; empty if it has none.
#[derive(Default)]
pub(super) struct Controlled {
    control: Option<Control>,
    path: Option<PathBuf>,
    /// Link from the image's default control path to the socket of `--control`; dropping it removes the link.
    _link: Option<Link>,
}

impl Controlled {
    /// Starts the control socket: at the path of `--control`, or else, for an image that this process has open for
    /// writing, at the image's default path, where `imbrex drive snapshot` looks for it.
    pub(super) fn start(args: &ServeArgs, observed: &Observed, quiet: bool) -> Result<Controlled, Failure> {
        let own = observed.front.host_file().filter(|_| !args.read_only);
        let told = |error: std::io::Error| {
            if !quiet {
                message!("`imbrex drive snapshot` will not find this server by itself: {error}");
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

    /// Returns the end of a warning about an image that lost its path: a command that saves the image. Empty if there
    /// is no control socket.
    pub(super) fn advice(&self, image: &HostFile) -> String {
        let (image, path) = (image.path().display(), self.path.iter());
        let words = path.map(|path| {
            let path = path.display();
            format!("; `imbrex drive snapshot {image} COPY --control {path}` copies it as it is now")
        });
        words.collect()
    }

    /// Announces to the control socket that the drive is about to be closed.
    pub(super) fn begin_end(&self) {
        self.control.iter().for_each(Control::begin_end);
    }

    /// Unlocks the image if the drive was closed, and sends `outcome` to the clients that wait for the end of the
    /// server. Those clients may open the image at once.
    pub(super) fn end(self, front: &DriveServer, outcome: &Result<(), DeviceError>) {
        if let (Some(file), Ok(())) = (front.host_file(), outcome) {
            // After a failure the end of this process unlocks the file.
            let _ = file.unlock();
        }
        if let Some(control) = self.control {
            control.end(outcome.as_ref().copied().map_err(ToString::to_string));
        }
    }
}
