//! Unix sockets at which this program listens: created, and removed at its end.
//!
//! Invariants:
//! 1. The socket of a dead process is replaced. The socket of a listening process, and any other file, stays untouched.
//! 2. At the end only the socket that this process created is removed, not another that replaced it.

use std::io;
use std::ops::Deref;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, RenameFlags, fchmod, renameat_with};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with};

/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// The users who may connect to a Unix socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// All users whom the process's `umask` permits, as for any new file.
    Usual,
    /// Only root and the user of this process: the socket has mode 0600.
    Owner,
}

/// A listening Unix socket at a path. Dropping this value removes the socket file, unless another file has replaced it.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
    identity: (u64, u64),
}

impl Socket {
    /// Creates a Unix socket at `path` and listens there. A socket that a dead process left at `path` is replaced.
    ///
    /// # Errors
    ///
    /// `AddrInUse` if another process listens at `path`, or a file is there that is not a socket. Other errors if the
    /// socket cannot be created.
    pub fn bind(path: &Path, access: Access) -> io::Result<Socket> {
        let listener = match listen_at(path, access) {
            Err(Errno::ADDRINUSE) => {
                remove_dead(path)?;
                listen_at(path, access)
            }
            other => other,
        }?;
        Ok(Socket { listener, path: path.into(), identity: identity(path)? })
    }

    /// Returns the path of the socket, as it was given to [`Socket::bind`].
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Deref for Socket {
    type Target = UnixListener;

    fn deref(&self) -> &UnixListener {
        &self.listener
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|found| found == self.identity) {
            // If another process has just removed the socket, nothing is left to do.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let facts = std::fs::symlink_metadata(path)?;
    Ok((facts.dev(), facts.ino()))
}

fn listen_at(path: &Path, access: Access) -> Result<UnixListener, Errno> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    if access == Access::Owner {
        // Set before the socket has a name, so that other users can never connect.
        fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    }
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Returns whether a process may be listening at the Unix socket `path`, by trying to connect. False only if the
/// connection is refused or the path does not exist; true after any other error.
pub fn is_answered(path: &Path) -> bool {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let connected = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .and_then(|socket| connect(&socket, &SocketAddrUnix::new(path)?));
    // A socket with a full queue is alive, too; after any other error the state is unknown.
    !matches!(connected, Err(Errno::CONNREFUSED | Errno::NOENT))
}

/// Removes the socket at `path`, at which no process listens.
fn remove_dead(path: &Path) -> io::Result<()> {
    let in_use = || io::Error::from(io::ErrorKind::AddrInUse);
    let is_socket = std::fs::symlink_metadata(path)?.file_type().is_socket();
    let found = identity(path)?;
    if !is_socket || is_answered(path) {
        return Err(in_use());
    }
    // Another server may replace the socket at this moment: the renamed file must be the one that was found dead.
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let aside = path.with_file_name(format!(".{name}.{}.dead", std::process::id()));
    std::fs::rename(path, &aside)?;
    if identity(&aside)? != found {
        renameat_with(CWD, &aside, CWD, path, RenameFlags::NOREPLACE)?;
        return Err(in_use());
    }
    std::fs::remove_file(&aside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_dead_socket_is_replaced_and_a_living_one_is_not() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("socket");
        // The standard library leaves the file when it closes the socket, as a killed process does.
        drop(UnixListener::bind(&path).expect("it can be bound"));
        let socket = Socket::bind(&path, Access::Usual).expect("nobody listens");
        let second = Socket::bind(&path, Access::Usual).expect_err("somebody listens");
        assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
        drop(socket);
        assert!(!path.exists());
        std::fs::write(&path, "no socket").expect("it is written");
        let third = Socket::bind(&path, Access::Usual).expect_err("it is no socket");
        assert_eq!(third.kind(), io::ErrorKind::AddrInUse);
        assert_eq!(std::fs::read_dir(folder.path()).expect("it can be read").count(), 1);
    }

    #[test]
    fn a_socket_with_a_full_queue_is_alive() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("socket");
        let socket = Socket::bind(&path, Access::Usual).expect("it can be bound");
        listen(&*socket, 0).expect("its queue can be short");
        let _waiting = UnixStream::connect(&path).expect("one has room");
        assert!(is_answered(&path));
    }

    #[test]
    fn only_the_socket_that_was_made_is_removed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("socket");
        let socket = Socket::bind(&path, Access::Owner).expect("it can be bound");
        assert_eq!(path.metadata().expect("it is there").permissions().mode() & 0o777, 0o600);
        std::fs::remove_file(&path).expect("it is ours");
        let _other = UnixListener::bind(&path).expect("it can be bound");
        drop(socket);
        assert!(path.exists(), "it is of somebody else");
    }
}
