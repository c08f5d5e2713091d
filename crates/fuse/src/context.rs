//! The data with which operations work, and the extended attributes through which a served directory answers about
//! itself.

use std::rc::Rc;

use imbrex_fs::{Fs, FsError};

/// Extended attribute of the root directory that returns the status of the file system; not listed.
pub const STATUS_ATTRIBUTE: &str = "user.imbrex.status";
/// Extended attribute of the root directory that makes all data durable when it is read; not listed.
pub const SYNC_ATTRIBUTE: &str = "user.imbrex.sync";
/// Extended attribute of the root directory for commands to the server by root or the user who runs it. A value written
/// to the attribute is passed to [`Answers::order`].
pub const ORDER_ATTRIBUTE: &str = "user.imbrex.order";

/// Answers of a served directory about itself.
pub trait Answers {
    /// Returns the value of [`STATUS_ATTRIBUTE`].
    fn status(&self, fs: &Fs) -> String;

    /// Starts a command written to [`ORDER_ATTRIBUTE`], as a task of the core, and does not wait for its end.
    fn order(&self, fs: &Fs, words: &[u8]) -> Result<(), FsError>;
}

/// The data with which a task of the core works.
pub(crate) struct Context {
    /// The file system.
    pub(crate) fs: Fs,
    /// Answers about the file system.
    pub(crate) answers: Rc<dyn Answers>,
    /// Whether every change is durable before it is answered.
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
