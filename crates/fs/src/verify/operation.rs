//! Operations by path, for tests: short to write, to print and to choose at random.

use rand_core::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::core::{Allocate, Caller, Fs, Rename, SetAttr, SetAttribute};
use crate::error::FsError;
use crate::format::change::Inode;
use crate::namespace::{FORMAT, REGULAR, ROOT};

/// An operation. Paths are names joined with `/`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Makes an empty file.
    Create(String),
    /// Makes a directory.
    MakeDirectory(String),
    /// Makes a symbolic link with this target.
    Symlink(String, String),
    /// Writes so many bytes made of a seed at an offset.
    Write(String, u64, usize, u8),
    /// The same, and closes the file: then it is written out.
    WriteOut(String, u64, usize, u8),
    /// Makes it so long.
    Truncate(String, u64),
    /// `fallocate` of bytes from an offset on.
    Allocate(String, u64, u64, Allocate),
    /// Opens and closes it: then what it holds is written.
    Close(String),
    /// Reads all of it, if it is a regular file.
    Read(String),
    /// Makes file or directory durable.
    Fsync(String),
    /// Makes all durable.
    Sync,
    /// Renames.
    Rename(String, String),
    /// Lets two change names.
    Exchange(String, String),
    /// Gives a second name.
    Link(String, String),
    /// Takes a name.
    Unlink(String),
    /// Removes a directory.
    RemoveDirectory(String),
    /// Sets extended attribute `user.a`.
    SetAttribute(String, u8),
    /// Changes the permissions.
    Mode(String, u32),
    /// Takes a checkpoint.
    Checkpoint,
    /// Empties a zone.
    Clean,
    /// Lets so many seconds pass.
    Wait(u64),
    /// Unmounts, and mounts again: whoever has the file system mounted does that, and not [`perform`].
    Remount,
    /// Several at once, none of which changes what the others see.
    Together(Vec<Operation>),
}

/// The bytes that a write of `length` with `seed` at `offset` writes: each tells where it belongs.
pub fn pattern(seed: u8, offset: u64, length: usize) -> Vec<u8> {
    (offset..offset + length as u64)
        .map(|at| seed ^ (at as u8).wrapping_mul(31) ^ ((at >> 8) as u8).wrapping_mul(17) | 1)
        .collect()
}

/// The directory that a path is in, and its last name.
async fn parent<'a>(fs: &Fs, path: &'a str) -> Result<(Inode, &'a [u8]), FsError> {
    let (above, name) = path.rsplit_once('/').map_or(("", path), |(above, name)| (above, name));
    let directory = find(fs, above)?;
    // As the kernel does, which looks at both directories before it asks for anything.
    fs.list(directory, 0, 1)?;
    Ok((directory, name.as_bytes()))
}

/// The file at a path.
pub fn find(fs: &Fs, path: &str) -> Result<Inode, FsError> {
    let names = path.split('/').filter(|name| !name.is_empty());
    names.into_iter().try_fold(ROOT, |directory, name| fs.lookup(directory, name.as_bytes()).map(|attr| attr.inode))
}

/// Does `operation` on `fs`.
pub async fn perform(fs: &Fs, operation: &Operation) -> Result<(), FsError> {
    let Operation::Together(operations) = operation else { return perform_one(fs, operation).await };
    let begin = |operation: &Operation| {
        let (fs, operation) = (fs.clone(), operation.clone());
        fs.clock().clone().spawn(async move { perform_one(&fs, &operation).await })
    };
    let tasks: Vec<_> = operations.iter().map(begin).collect();
    let mut outcome = Ok(());
    for task in tasks {
        // One that is not there was not done: the naive file system sees the same.
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
            fs.clock().sleep(seconds * 1_000_000_000).await;
            Ok(())
        }
    }
}

/// Chooses operations at random, on few names, so that they meet.
pub struct Chooser {
    random: Xoshiro256PlusPlus,
    size_max: u64,
}

impl Chooser {
    /// With this seed, on files of up to `size_max` bytes.
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

    /// A read of some file.
    pub fn choose_read(&mut self) -> Operation {
        Operation::Read(self.path())
    }

    /// The next one.
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
