//! Load on the core: its operations are those of [`Fs`], and its time is that of the file system's executor.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::page_cache::PageCache;
use super::{Files, LoadError, Worker};
use crate::core::{Caller, Fs};
use crate::device::BLOCK_BYTES;
use crate::error::FsError;
use crate::format::change::Inode;
use crate::format::file_type::REGULAR;
use crate::namespace::ROOT;

const BYTES: u64 = BLOCK_BYTES as u64;

/// A directory of an Imbrex file system, on which a load runs through the core, without the kernel. A clone is another
/// handle of one directory.
#[derive(Clone)]
pub struct OnCore {
    fs: Fs,
    base: Inode,
    /// Page cache in front of the file system, if there is one.
    cache: Option<Rc<RefCell<PageCache>>>,
    /// Whether a file is read whole when it is opened.
    stages_files: bool,
}

/// Handle of a file that is open in an [`OnCore`].
pub struct OpenOnCore {
    inode: Inode,
    path: String,
    /// Offset behind the last byte that was read. A read from here continues the last one.
    read_to: Cell<u64>,
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
    /// Creates directory `name` in the root directory of `fs`, and returns it as the directory of a load, without a
    /// page cache.
    ///
    /// # Errors
    /// The name exists already, or the directory could not be created.
    pub async fn new(fs: &Fs, name: &str) -> Result<OnCore, LoadError> {
        let made = fs.make_directory(ROOT, name.as_bytes(), 0o755, Caller::default()).await;
        let base = made.map_err(failed("mkdir", name))?.inode;
        Ok(OnCore { fs: fs.clone(), base, cache: None, stages_files: false })
    }

    /// Adds an empty model of the kernel's page cache, with space for `bytes` bytes, rounded down to whole blocks of 4
    /// KiB. Written and read blocks enter it, and reads of cached blocks do not reach the file system. Reads of other
    /// blocks read ahead as Linux does.
    pub fn with_page_cache(self, bytes: u64) -> OnCore {
        OnCore { cache: Some(Rc::new(RefCell::new(PageCache::new(bytes / BYTES)))), ..self }
    }

    /// Makes every open of a file read the whole file, as SMRfs copies a file to memory before any read or write (Jin
    /// 2014 §I.C, Singh 2014 §2.2.2). Blocks that the page cache has are not read again.
    pub fn with_staged_files(self) -> OnCore {
        OnCore { stages_files: true, ..self }
    }

    /// Returns the file system on which the load runs.
    pub fn fs(&self) -> &Fs {
        &self.fs
    }

    /// Returns the parent directory of `path`, and the last name of `path`.
    fn parent<'a>(&self, operation: &'static str, path: &'a str) -> Result<(Inode, &'a [u8]), LoadError> {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut names = above.split('/').filter(|name| !name.is_empty());
        let inode = names.try_fold(self.base, |inode, name| Ok(self.fs.lookup(inode, name.as_bytes())?.inode));
        Ok((inode.map_err(failed(operation, path))?, name.as_bytes()))
    }

    fn inode_of(&self, operation: &'static str, path: &str) -> Result<Inode, LoadError> {
        let (directory, name) = self.parent(operation, path)?;
        Ok(self.fs.lookup(directory, name).map_err(failed(operation, path))?.inode)
    }

    fn opened(&self, inode: Inode, operation: &'static str, path: &str) -> Result<OpenOnCore, LoadError> {
        self.fs.open(inode).map_err(failed(operation, path))?;
        Ok(OpenOnCore { inode, path: path.into(), read_to: Cell::new(0) })
    }

    /// Reads the blocks that are not in the cache, and more for read-ahead.
    async fn fill(&self, cache: &RefCell<PageCache>, file: &OpenOnCore, offset: u64, end: u64) -> Result<(), FsError> {
        let size = self.fs.attr(file.inode)?.attributes.size;
        let blocks = offset / BYTES..end.div_ceil(BYTES);
        let goes_on = offset == file.read_to.get();
        let missing = cache.borrow().missing(file.inode, blocks.clone());
        for mut run in missing {
            let reach = cache.borrow().reach(file.inode, run.start, run.end - run.start, goes_on);
            let ahead = run.start..(run.start + reach).min(size.div_ceil(BYTES));
            run = cache.borrow().missing(file.inode, ahead).first().cloned().unwrap_or(run);
            let length = (run.end - run.start) * BYTES;
            self.fs.read(file.inode, run.start * BYTES, length as usize).await?;
            cache.borrow_mut().use_blocks(file.inode, run);
        }
        cache.borrow_mut().use_blocks(file.inode, blocks);
        Ok(())
    }
}

impl Files for OnCore {
    type Open = OpenOnCore;

    fn now_ns(&self) -> u64 {
        self.fs.executor().now_ns()
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
        self.opened(inode, "create", path)
    }

    async fn open(&self, path: &str) -> Result<OpenOnCore, LoadError> {
        let file = self.opened(self.inode_of("open", path)?, "open", path)?;
        if self.stages_files
            && let Err(error) = self.read(&file, 0, usize::MAX).await
        {
            self.close(file).await?;
            return Err(error);
        }
        Ok(file)
    }

    async fn write(&self, file: &OpenOnCore, offset: u64, bytes: &[u8]) -> Result<(), LoadError> {
        self.fs.write(file.inode, offset, bytes).await.map_err(failed("write", &file.path))?;
        if let Some(cache) = &self.cache {
            let end = offset + bytes.len() as u64;
            cache.borrow_mut().use_blocks(file.inode, offset / BYTES..end.div_ceil(BYTES));
        }
        Ok(())
    }

    async fn read(&self, file: &OpenOnCore, offset: u64, length: usize) -> Result<usize, LoadError> {
        let size = self.fs.attr(file.inode).map_err(failed("read", &file.path))?.attributes.size;
        let end = offset.saturating_add(length as u64).min(size);
        if offset >= end {
            return Ok(0);
        }
        let filled = match &self.cache {
            Some(cache) => self.fill(cache, file, offset, end).await,
            None => self.fs.read(file.inode, offset, length).await.map(drop),
        };
        filled.map_err(failed("read", &file.path))?;
        file.read_to.set(end);
        Ok((end - offset) as usize)
    }

    async fn sync(&self, file: &OpenOnCore) -> Result<(), LoadError> {
        self.fs.fsync(file.inode).await.map_err(failed("fsync", &file.path))
    }

    async fn sync_all(&self) -> Result<(), LoadError> {
        self.fs.sync().await.map_err(failed("syncfs", ""))
    }

    fn forget(&self, file: &OpenOnCore) -> Result<(), LoadError> {
        if let Some(cache) = &self.cache {
            cache.borrow_mut().forget(file.inode);
        }
        Ok(())
    }

    async fn close(&self, file: OpenOnCore) -> Result<(), LoadError> {
        self.fs.close(file.inode).await.map_err(failed("close", &file.path))
    }

    async fn size(&self, path: &str) -> Result<u64, LoadError> {
        let inode = self.inode_of("stat", path)?;
        Ok(self.fs.attr(inode).map_err(failed("stat", path))?.attributes.size)
    }

    async fn remove(&self, path: &str) -> Result<(), LoadError> {
        let (directory, name) = self.parent("remove", path)?;
        if let Some(cache) = &self.cache {
            cache.borrow_mut().forget(self.inode_of("remove", path)?);
        }
        self.fs.unlink(directory, name).await.map_err(failed("remove", path))
    }

    async fn together<W: Worker>(&self, workers: Vec<W>) -> Result<Vec<W::Outcome>, LoadError> {
        let executor = self.fs.executor();
        let tasks: Vec<_> = workers.into_iter().map(|worker| executor.spawn(worker.run(self.clone()))).collect();
        let mut outcomes = Vec::with_capacity(tasks.len());
        for task in tasks {
            outcomes.push(task.await);
        }
        outcomes.into_iter().collect()
    }
}
