//! The data with which operations work, and the extended attributes through which a served directory answers about
//! itself.

use std::rc::Rc;

use imbrex_fs::{Fs, FsError};

/// Extended attribute of the root directory whose value is the status of the file system. `listxattr` does not list it.
pub const STATUS_ATTRIBUTE: &str = "user.imbrex.status";
/// Extended attribute of the root directory: reading it makes all data durable, and returns `done`. `listxattr` does
/// not list it.
pub const SYNC_ATTRIBUTE: &str = "user.imbrex.sync";
/// Extended attribute of the root directory for commands to the server. A value written to it is passed to
/// [`Answers::order`]. Only root and the user who runs the server may write it.
pub const ORDER_ATTRIBUTE: &str = "user.imbrex.order";
/// Start of the names of the extended attributes of the root directory that hold the outcome of a task. The rest of the
/// name is passed to [`Answers::outcome`]. `listxattr` does not list these attributes.
pub const OUTCOME_ATTRIBUTE: &str = "user.imbrex.outcome.";

/// Answers of a mounted file system to queries and commands about itself.
pub trait Answers {
    /// Returns the status of `fs` as text: the value of the extended attribute `user.imbrex.status` of the root
    /// directory.
    ///
    /// Linux limits the value of an attribute to 64 KiB. A longer status cannot be read.
    fn status(&self, fs: &Fs) -> String;

    /// Returns the part of the outcome of a task that `which` names: the value of the extended attribute
    /// `user.imbrex.outcome.` + `which` of the root directory, at most 64 KiB. `None` if there is no such outcome.
    fn outcome(&self, which: &[u8]) -> Option<Vec<u8>>;

    /// Starts the command `words`, the value written to the extended attribute `user.imbrex.order`, as a task of `fs`.
    /// Does not wait for its end.
    ///
    /// # Errors
    /// The command is not understood or cannot start now. The writer of the attribute gets the error number.
    fn order(&self, fs: &Fs, words: &[u8]) -> Result<(), FsError>;
}

/// The data with which a task of the core works.
pub(crate) struct Context {
    /// File system on which the requests of the kernel operate.
    pub(crate) fs: Fs,
    /// Functions that answer queries and commands to the file system about itself.
    pub(crate) answers: Rc<dyn Answers>,
    /// Whether every change is durable before the kernel gets the answer (`-o sync`).
    pub(crate) is_sync: bool,
}

impl Context {
    /// Makes all changes durable after a successful operation, if mounted with `-o sync`.
    pub(crate) async fn settle<T>(&self, done: Result<T, FsError>) -> Result<T, FsError> {
        if done.is_ok() && self.is_sync {
            self.fs.sync().await?;
        }
        done
    }
}
