//! Where the control socket of an image is: in a folder of the user's, under the number of the image's file, so that whoever
//! has the image finds it.
//!
//! ```text
//!  $XDG_RUNTIME_DIR/imbrex/control-DEVICE-INODE     the socket, or a link to where `--control` has it
//! ```
//!
//! Without that variable it is `/run/user/UID/imbrex`, or `imbrex-UID` in the folder for temporary files.
//!
//! Invariants:
//! 1. Nothing is put into, or looked for in, a folder that others can write to.
//! 2. Whoever works on an image has its file locked, so what stands under its number was left by a dead server.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use imbrex_device::media::host_file::FileIdentity;
use rustix::process::geteuid;

use crate::socket::{Access, Socket};

/// The folder of the user's control sockets; it need not be there.
fn folder() -> PathBuf {
    let user = geteuid().as_raw();
    let told = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|told| told.is_absolute());
    let usual = || Some(PathBuf::from(format!("/run/user/{user}"))).filter(|usual| usual.is_dir());
    match told.or_else(usual) {
        Some(runtime) => runtime.join("imbrex"),
        None => std::env::temp_dir().join(format!("imbrex-{user}")),
    }
}

/// Refuses a folder that is not the user's alone.
fn check_folder(folder: &Path) -> io::Result<()> {
    let facts = fs::symlink_metadata(folder)?;
    if !facts.is_dir() || facts.uid() != geteuid().as_raw() || facts.mode() & 0o022 != 0 {
        let words = format!("{} is not a folder that you alone can write to", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, words));
    }
    Ok(())
}

fn entry(identity: &FileIdentity) -> PathBuf {
    folder().join(format!("control-{:x}-{}", identity.device, identity.inode))
}

/// Where the control socket of the server that has the image open is looked for. It need not be there.
pub fn of_image(identity: &FileIdentity) -> io::Result<PathBuf> {
    let entry = entry(identity);
    match check_folder(&folder()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(entry),
    }
}

/// The entry of an image whose socket is elsewhere; it goes when it is dropped.
#[derive(Debug)]
pub struct Link {
    entry: PathBuf,
    socket: PathBuf,
}

impl Drop for Link {
    fn drop(&mut self) {
        if fs::read_link(&self.entry).is_ok_and(|found| found == self.socket) {
            // Whoever removed it just now did what was to be done.
            let _ = fs::remove_file(&self.entry);
        }
    }
}

/// Makes room for the entry of an image that this process has locked.
fn prepare(identity: &FileIdentity) -> io::Result<PathBuf> {
    let folder = folder();
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => check_folder(&folder)?,
    }
    let entry = entry(identity);
    match fs::remove_file(&entry) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(entry),
    }
}

/// Listens where the socket of an image is looked for, which this process has locked.
pub fn bind(identity: &FileIdentity) -> io::Result<Socket> {
    Socket::bind(&prepare(identity)?, Access::Owner)
}

/// Leaves word that the socket of an image, which this process has locked, is at `socket`.
pub fn link(identity: &FileIdentity, socket: &Path) -> io::Result<Link> {
    let (entry, socket) = (prepare(identity)?, std::path::absolute(socket)?);
    std::os::unix::fs::symlink(&socket, &entry)?;
    Ok(Link { entry, socket })
}
