//! The place of the control socket of an image: a private folder of the user, under the device and inode number of the
//! image's file, so that every program that can open the image finds the socket.
//!
//! ```text
//!  $XDG_RUNTIME_DIR/imbrex/control-DEVICE-INODE     the socket, or a link to where `--control` has it
//! ```
//!
//! Without that variable the folder is `/run/user/UID/imbrex`, or `imbrex-UID` in the folder for temporary files.
//!
//! Invariants:
//! 1. No file is created or searched in a folder that other users can write to.
//! 2. A process that works on an image has locked the image's file. So an existing entry for that image was left by a
//!    dead server.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use imbrex_device::media::host_file::FileIdentity;
use rustix::process::geteuid;

use crate::socket::{Access, Socket, is_answered};

/// Minimum age of an entry that is removed because no server answers.
const DEAD_AFTER: Duration = Duration::from_secs(60);

/// Returns the folder of the user's control sockets. It may not exist.
fn folder() -> PathBuf {
    let user = geteuid().as_raw();
    let told = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|told| told.is_absolute());
    let usual = || Some(PathBuf::from(format!("/run/user/{user}"))).filter(|usual| usual.is_dir());
    match told.or_else(usual) {
        Some(runtime) => runtime.join("imbrex"),
        None => std::env::temp_dir().join(format!("imbrex-{user}")),
    }
}

/// Refuses a folder that other users can write to, or that another user owns.
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

/// Returns the path at which clients find the control socket of the server of an image. The path follows from the
/// user, and from the device and inode number of the image's file. Whether a file exists there is not checked.
///
/// # Errors
///
/// `PermissionDenied` if the folder of the sockets belongs to another user, can be written to by others, or is no
/// folder. Other errors if it cannot be examined; a missing folder is no error.
pub fn of_image(identity: &FileIdentity) -> io::Result<PathBuf> {
    let entry = entry(identity);
    match check_folder(&folder()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(entry),
    }
}

/// A symbolic link to a control socket, at the path where clients look for the socket of an image. Dropping this value
/// removes the link, unless another file has replaced it.
#[derive(Debug)]
pub struct Link {
    entry: PathBuf,
    socket: PathBuf,
}

impl Drop for Link {
    fn drop(&mut self) {
        if fs::read_link(&self.entry).is_ok_and(|found| found == self.socket) {
            // If another process has just removed the link, nothing is left to do.
            let _ = fs::remove_file(&self.entry);
        }
    }
}

/// Prepares the folder, and removes an old entry, for an image that this process has locked. Returns the path of the
/// entry.
fn prepare(identity: &FileIdentity) -> io::Result<PathBuf> {
    let folder = folder();
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => check_folder(&folder)?,
    }
    remove_dead(&folder);
    let entry = entry(identity);
    match fs::remove_file(&entry) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(entry),
    }
}

/// Removes entries that killed servers left in the folder. Recent entries are kept: their servers may be about to
/// listen.
fn remove_dead(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let made = fs::symlink_metadata(&path).and_then(|facts| facts.modified()).ok();
        let is_old = made.and_then(|made| made.elapsed().ok()).is_some_and(|age| age >= DEAD_AFTER);
        if is_old && !is_answered(&path) {
            // Another server may remove the same entry.
            let _ = fs::remove_file(path);
        }
    }
}

/// Listens at the path where clients look for the control socket of an image ([`of_image`]). Only the user and root can
/// connect. The caller has locked the image, so a file that is there already is one of a dead server, and is removed.
/// Also removes the sockets of other images in that folder that are at least a minute old and that no server answers.
///
/// # Errors
///
/// The folder of the sockets cannot be created or is not private to the user, the old file cannot be removed, or the
/// socket cannot be created.
pub fn bind(identity: &FileIdentity) -> io::Result<Socket> {
    Socket::bind(&prepare(identity)?, Access::Owner)
}

/// Creates a symbolic link to `socket`, at the path where clients look for the control socket of an image
/// ([`of_image`]). The caller has locked the image, so a file that is there already is one of a dead server, and is
/// removed. Also removes the sockets of other images in that folder that are at least a minute old and that no server
/// answers.
///
/// # Errors
///
/// The folder of the sockets cannot be created or is not private to the user, the old file cannot be removed, or the
/// link cannot be created.
pub fn link(identity: &FileIdentity, socket: &Path) -> io::Result<Link> {
    let (entry, socket) = (prepare(identity)?, std::path::absolute(socket)?);
    std::os::unix::fs::symlink(&socket, &entry)?;
    Ok(Link { entry, socket })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn what_killed_servers_left_is_removed_once_it_is_old() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name);
        let _living = UnixListener::bind(at("living")).expect("it can be bound");
        for name in ["dead", "new"] {
            drop(UnixListener::bind(at(name)).expect("it can be bound"));
        }
        std::os::unix::fs::symlink("nowhere", at("link")).expect("it is made");
        let old = rustix::fs::Timespec { tv_sec: 1000, tv_nsec: 0 };
        let times = rustix::fs::Timestamps { last_access: old, last_modification: old };
        for name in ["living", "dead", "link"] {
            let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::utimensat(rustix::fs::CWD, at(name), &times, flags).expect("they are ours");
        }
        remove_dead(folder.path());
        let is_left = |name: &str| fs::symlink_metadata(at(name)).is_ok();
        assert_eq!(["living", "dead", "new", "link"].map(is_left), [true, false, true, false]);
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a temporary folder");
        check_folder(folder.path()).expect("it is ours alone");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("it is ours");
        assert_eq!(check_folder(folder.path()).expect_err("others can").kind(), io::ErrorKind::PermissionDenied);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/", &link).expect("it is made");
        assert!(check_folder(&link).is_err(), "a link is somebody else's choice");
    }
}
