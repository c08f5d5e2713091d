//! A load on the core: its operations are those of [`Fs`], its time is the clock of the file system.

use super::{Files, LoadError};
use crate::core::{Caller, Fs};
use crate::error::FsError;
use crate::format::change::Inode;
use crate::namespace::{REGULAR, ROOT};

/// A directory of a file system whose core this is.
#[derive(Clone)]
pub struct OnCore {
    fs: Fs,
    base: Inode,
}

/// A file of it that is open.
pub struct OpenOnCore {
    inode: Inode,
    path: String,
}

fn failed(operation: &'static str, path: &str) -> impl FnOnce(FsError) -> LoadError {
    let path = path.to_string();
    move |error| LoadError {
        operation,
        path,
        reason: error.to_string(),
        is_no_space: matches!(error, FsError::NoSpace | FsError::NoMetadataSpace),
    }
}

impl OnCore {
    /// In a new directory `name` of the uppermost one.
    pub async fn new(fs: &Fs, name: &str) -> Result<OnCore, LoadError> {
        let made = fs.make_directory(ROOT, name.as_bytes(), 0o755, Caller::default()).await;
        let base = made.map_err(failed("mkdir", name))?.inode;
        Ok(OnCore { fs: fs.clone(), base })
    }

    /// The file system.
    pub fn fs(&self) -> &Fs {
        &self.fs
    }

    /// The directory that the last name of `path` is in, and that name.
    fn parent<'a>(&self, operation: &'static str, path: &'a str) -> Result<(Inode, &'a [u8]), LoadError> {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut names = above.split('/').filter(|name| !name.is_empty());
        let inode = names.try_fold(self.base, |inode, name| Ok(self.fs.lookup(inode, name.as_bytes())?.inode));
        Ok((inode.map_err(failed(operation, path))?, name.as_bytes()))
    }
}

impl Files for OnCore {
    type Open = OpenOnCore;

    fn now_ns(&self) -> u64 {
        self.fs.clock().now_ns()
    }

    async fn make_directory(&self, path: &str) -> Result<(), LoadError> {
        let (directory, name) = self.parent("mkdir", path)?;
        let made = self.fs.make_directory(directory, name, 0o755, Caller::default()).await;
        made.map(drop).map_err(failed("mkdir", path))
    }

    async fn create(&self, path: &str) -> Result<OpenOnCore, LoadError> {
        let (directory, name) = self.parent("create", path)?;
        let made = self.fs.make_node(directory, name, REGULAR | 0o644, 0, Caller::default()).await;
        let inode = made.map_err(failed("create", path))?.inode;
        self.fs.open(inode).map_err(failed("create", path))?;
        Ok(OpenOnCore { inode, path: path.into() })
    }

    async fn write(&self, file: &OpenOnCore, offset: u64, bytes: &[u8]) -> Result<(), LoadError> {
        self.fs.write(file.inode, offset, bytes).await.map_err(failed("write", &file.path))
    }

    async fn close(&self, file: OpenOnCore) -> Result<(), LoadError> {
        self.fs.close(file.inode).await.map_err(failed("close", &file.path))
    }

    async fn remove(&self, path: &str) -> Result<(), LoadError> {
        let (directory, name) = self.parent("remove", path)?;
        self.fs.unlink(directory, name).await.map_err(failed("remove", path))
    }
}
