//! Operations by path, for tests: short to write, to print and to choose at random.

use rand_core::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::core::{Allocate, Caller, Fs, Rename, SetAttr, SetAttribute};
use crate::error::FsError;
use crate::format::change::Inode;
use crate::format::file_type::{FORMAT, REGULAR};
use crate::namespace::ROOT;

/// An operation on a file system. Paths are relative to the root directory; their names are joined with `/`. The empty
/// path is the root directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Creates an empty regular file.
    Create(String),
    /// Creates a directory.
    MakeDirectory(String),
    /// Creates a symbolic link at the first path, with the second string as its target.
    Symlink(String, String),
    /// Writes to a file the [`pattern`] of a seed. The fields are the path, the byte offset, the number of bytes and
    /// the seed.
    Write(String, u64, usize, u8),
    /// Writes to a file the [`pattern`] of a seed, and then closes the file, which writes its cached data to the store.
    /// The fields are the path, the byte offset, the number of bytes and the seed.
    WriteOut(String, u64, usize, u8),
    /// Sets the length of a file to a number of bytes, shorter or longer than before.
    Truncate(String, u64),
    /// Calls `fallocate` on a file with a byte offset, a number of bytes and a mode.
    Allocate(String, u64, u64, Allocate),
    /// Opens and closes a file, which writes its cached data to the store.
    Close(String),
    /// Reads all bytes of a regular file. Does nothing if the path is of another kind of file.
    Read(String),
    /// Makes a file or directory durable, with `fsync`.
    Fsync(String),
    /// Makes everything in the file system durable.
    Sync,
    /// Renames the first path to the second, whose file is replaced if it exists.
    Rename(String, String),
    /// Exchanges the files of two existing paths, like `RENAME_EXCHANGE`.
    Exchange(String, String),
    /// Adds the second path as a hard link to the file of the first.
    Link(String, String),
    /// Removes a name of a file that is not a directory.
    Unlink(String),
    /// Removes an empty directory.
    RemoveDirectory(String),
    /// Sets extended attribute `user.a` of a file to five bytes of the given value.
    SetAttribute(String, u8),
    /// Sets the permission bits of a file, with set-user-ID, set-group-ID and sticky.
    Mode(String, u32),
    /// Writes a checkpoint of the metadata.
    Checkpoint,
    /// Lets the cleaner empty up to one zone.
    Clean,
    /// Waits the given number of seconds of the executor's time.
    Wait(u64),
    /// Unmounts the file system and mounts it again. Only the owner of the mount can do so; [`perform`] returns an
    /// error.
    Remount,
    /// Performs several operations concurrently. None of them may change the result of another, and none may be a
    /// `Together` or a `Remount`.
    Together(Vec<Operation>),
}

/// Returns the bytes that [`Operation::Write`] writes: `length` bytes with `seed` at byte `offset`. Each byte depends
/// only on the seed and on its position in the file, and is never 0.
pub fn pattern(seed: u8, offset: u64, length: usize) -> Vec<u8> {
    (offset..offset + length as u64)
        .map(|at| seed ^ (at as u8).wrapping_mul(31) ^ ((at >> 8) as u8).wrapping_mul(17) | 1)
        .collect()
}

/// Returns the directory of a path, and its last name.
async fn parent<'a>(fs: &Fs, path: &'a str) -> Result<(Inode, &'a [u8]), FsError> {
    let (above, name) = path.rsplit_once('/').map_or(("", path), |(above, name)| (above, name));
    let directory = find(fs, above)?;
    // The kernel checks both directories before its first request; so does this function.
    fs.list(directory, 0, 1)?;
    Ok((directory, name.as_bytes()))
}

/// Returns the inode of the file at a path relative to the root directory. Symbolic links are not followed.
///
/// # Errors
/// [`FsError::NotFound`] if a name does not exist, [`FsError::NotDirectory`] if a name before the last is not a
/// directory.
pub fn find(fs: &Fs, path: &str) -> Result<Inode, FsError> {
    let names = path.split('/').filter(|name| !name.is_empty());
    names.into_iter().try_fold(ROOT, |directory, name| fs.lookup(directory, name.as_bytes()).map(|attr| attr.inode))
}

/// Performs `operation` on `fs`. The operations of [`Operation::Together`] run concurrently, and those on absent files
/// are skipped.
///
/// # Errors
/// The error of the operation, or of the last one that failed of [`Operation::Together`]. [`FsError::NotSupported`] for
/// [`Operation::Remount`].
pub async fn perform(fs: &Fs, operation: &Operation) -> Result<(), FsError> {
    let Operation::Together(operations) = operation else { return perform_one(fs, operation).await };
    let begin = |operation: &Operation| {
        let (fs, operation) = (fs.clone(), operation.clone());
        fs.executor().clone().spawn(async move { perform_one(&fs, &operation).await })
    };
    let tasks: Vec<_> = operations.iter().map(begin).collect();
    let mut outcome = Ok(());
    for task in tasks {
        // An operation on an absent file was not performed; the naive file system behaves alike.
        match task.await {
            Err(FsError::NotFound | FsError::NotDirectory) | Ok(()) => {}
            error => outcome = error,
        }
    }
    outcome
}

async fn perform_one(fs: &Fs, operation: &Operation) -> Result<(), FsError> {
    let caller = Caller::default();
    match operation {
        Operation::Together(_) => Err(FsError::NotSupported("operations at once within operations at once")),
        Operation::Remount => Err(FsError::NotSupported("a mount in the midst of another")),
        Operation::Create(path) => {
            let (directory, name) = parent(fs, path).await?;
            fs.make_node(directory, name, REGULAR | 0o644, 0, caller).await.map(drop)
        }
        Operation::MakeDirectory(path) => {
            let (directory, name) = parent(fs, path).await?;
            fs.make_directory(directory, name, 0o755, caller).await.map(drop)
        }
        Operation::Symlink(path, target) => {
            let (directory, name) = parent(fs, path).await?;
            fs.make_symlink(directory, name, target.as_bytes(), caller).await.map(drop)
        }
        Operation::Write(path, offset, length, seed) => {
            fs.write(find(fs, path)?, *offset, &pattern(*seed, *offset, *length)).await
        }
        Operation::WriteOut(path, offset, length, seed) => {
            let inode = find(fs, path)?;
            fs.open(inode)?;
            fs.write(inode, *offset, &pattern(*seed, *offset, *length)).await?;
            fs.close(inode).await
        }
        Operation::Truncate(path, size) => {
            let set = SetAttr { size: Some(*size), ..SetAttr::default() };
            fs.set_attr(find(fs, path)?, &set).await.map(drop)
        }
        Operation::Allocate(path, offset, length, what) => fs.allocate(find(fs, path)?, *offset, *length, *what).await,
        Operation::Close(path) => {
            let inode = find(fs, path)?;
            fs.open(inode)?;
            fs.close(inode).await
        }
        Operation::Read(path) => {
            let attr = fs.attr(find(fs, path)?)?;
            if attr.attributes.mode & FORMAT != REGULAR {
                return Ok(());
            }
            fs.read(attr.inode, 0, attr.attributes.size as usize).await.map(drop)
        }
        Operation::Fsync(path) => fs.fsync(find(fs, path)?).await,
        Operation::Sync => fs.sync().await,
        Operation::Rename(from, to) | Operation::Exchange(from, to) => {
            let ((from, name), (to, new_name)) = (parent(fs, from).await?, parent(fs, to).await?);
            let is_exchange = matches!(operation, Operation::Exchange(..));
            let how = if is_exchange { Rename::Exchange } else { Rename::Replace };
            fs.rename(from, name, to, new_name, how).await
        }
        Operation::Link(from, to) => {
            let inode = find(fs, from)?;
            let (directory, name) = parent(fs, to).await?;
            fs.link(inode, directory, name).await.map(drop)
        }
        Operation::Unlink(path) => {
            let (directory, name) = parent(fs, path).await?;
            fs.unlink(directory, name).await
        }
        Operation::RemoveDirectory(path) => {
            let (directory, name) = parent(fs, path).await?;
            fs.remove_directory(directory, name).await
        }
        Operation::SetAttribute(path, value) => {
            fs.set_attribute(find(fs, path)?, b"user.a", &[*value; 5], SetAttribute::Any).await
        }
        Operation::Mode(path, mode) => {
            let set = SetAttr { mode: Some(*mode), ..SetAttr::default() };
            fs.set_attr(find(fs, path)?, &set).await.map(drop)
        }
        Operation::Checkpoint => fs.checkpoint().await,
        Operation::Clean => fs.clean(1).await.map(drop),
        Operation::Wait(seconds) => {
            fs.executor().sleep(seconds * 1_000_000_000).await;
            Ok(())
        }
    }
}

/// Generator of random operations on few names, so that operations often concern the same file.
pub struct Chooser {
    random: Xoshiro256PlusPlus,
    size_max: u64,
}

impl Chooser {
    /// Creates a generator with the given seed. Offsets and new lengths of files are below `size_max` bytes, and a
    /// write has at most half as many bytes. `size_max` must be at least 2.
    pub fn new(seed: u64, size_max: u64) -> Chooser {
        Chooser { random: rand_core::SeedableRng::seed_from_u64(seed), size_max }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random.next_u64() % end
    }

    fn path(&mut self) -> String {
        const PATHS: [&str; 7] = ["a", "b", "c", "d", "d/a", "d/b", "d/d"];
        PATHS[self.below(PATHS.len() as u64) as usize].into()
    }

    /// Returns a read of a random path, which need not exist.
    pub fn choose_read(&mut self) -> Operation {
        Operation::Read(self.path())
    }

    /// Returns a random operation on paths that need not exist. It is never a read, a remount or a `WriteOut`.
    pub fn choose(&mut self) -> Operation {
        let (path, other) = (self.path(), self.path());
        let (offset, seed) = (self.below(self.size_max), self.below(250) as u8);
        let length = 1 + self.below(self.size_max / 2);
        match self.below(36) {
            0..=3 => Operation::Create(path),
            4..=5 => Operation::MakeDirectory(path),
            6 => Operation::Symlink(path, other),
            7..=13 => Operation::Write(path, offset, length as usize, seed),
            14..=15 => Operation::Truncate(path, offset),
            16 => Operation::Allocate(path, offset, length, Allocate::Room),
            17 => Operation::Allocate(path, offset, length, Allocate::PunchHole),
            18 => Operation::Allocate(path, offset, length, Allocate::ZerosWithin),
            19..=20 => Operation::Close(path),
            21..=22 => Operation::Fsync(path),
            23 => Operation::Sync,
            24..=25 => Operation::Rename(path, other),
            26 => Operation::Exchange(path, other),
            27 => Operation::Link(path, other),
            28..=29 => Operation::Unlink(path),
            30 => Operation::RemoveDirectory(path),
            31 => Operation::SetAttribute(path, seed),
            32 => [Operation::Checkpoint, Operation::Clean, Operation::Wait(40)][self.below(3) as usize].clone(),
            33..=34 => {
                let paths = [path, other, self.path()];
                Operation::Together(
                    paths
                        .map(|path| if seed % 2 == 0 { Operation::Close(path) } else { Operation::Fsync(path) })
                        .into(),
                )
            }
            _ => Operation::Mode(path, 0o600 + self.below(0o100) as u32),
        }
    }
}
