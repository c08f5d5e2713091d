//! A file system of ours in front of the kernel's FUSE.
//!
//! ```text
//!   kernel ─► session thread ─► requests (a queue, and the clock's bell) ─► a task of the core ─► reply
//!                                        [`requests`]                        [`front`]
//! ```
//!
//! The core runs on one thread, with its clock; the session's thread only copies requests and hands them over.
//!
//! Invariants:
//! 1. Requests become tasks in the order in which the kernel sent them. Each is answered once, from the core's thread.
//! 2. Nobody else changes the file system, so what the kernel keeps of it (names, attributes, contents) stays true; what the
//!    core alone changes (set-id bits taken by a write) is kept for no time.
//! 3. When the kernel lets go of the directory, or the end is asked for, everything is written before the program ends.

mod access_list;
mod front;
mod operations;
mod requests;
mod words;

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use fuser::{Config, MountOption, Session, SessionACL, SessionUnmounter};
use imbrex_fs::clock::Clock;
use imbrex_fs::{Fs, FsError};

use self::front::Front;
use self::requests::{Context, Requests};

/// How often somebody who wants an end is looked for.
const LOOK_NS: u64 = 50_000_000;

/// The extended attribute of the uppermost directory that tells how the file system is doing; it is not listed.
pub const STATUS_ATTRIBUTE: &str = "user.imbrex.status";
/// The extended attribute of the uppermost directory that writes everything when it is read; it is not listed.
pub const SYNC_ATTRIBUTE: &str = "user.imbrex.sync";
/// The extended attribute of the uppermost directory by which whoever serves it, or root, is told to do something: what is
/// written to it is handed to [`Answers::order`].
pub const ORDER_ATTRIBUTE: &str = "user.imbrex.order";

/// What a served directory answers of itself.
pub trait Answers {
    /// What [`STATUS_ATTRIBUTE`] holds.
    fn status(&self, fs: &Fs) -> String;

    /// What is written to [`ORDER_ATTRIBUTE`]: it is begun, as a task of the core, and not waited for.
    fn order(&self, fs: &Fs, words: &[u8]) -> Result<(), FsError>;
}

/// How a directory is served.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MountWords {
    /// What is shown as the source of the mount.
    pub source: String,
    /// Nothing is changed.
    pub read_only: bool,
    /// Other users than the one who mounts may look.
    pub allow_other: bool,
    /// Other options of mount(8), such as `dev`, `suid`, `noexec`.
    pub flags: Vec<String>,
}

/// A directory that is being served.
pub struct Mount {
    clock: Clock,
    fs: Fs,
    requests: Rc<Requests>,
    unmounter: SessionUnmounter,
    directory: PathBuf,
}

/// The options of mount(8) that are handed on, beside those that have a meaning of their own.
pub const FLAGS: &[&str] =
    &["dev", "nodev", "suid", "nosuid", "exec", "noexec", "atime", "noatime", "sync", "async", "dirsync"];

fn flag(word: &str) -> Option<MountOption> {
    Some(match word {
        "dev" => MountOption::Dev,
        "nodev" => MountOption::NoDev,
        "suid" => MountOption::Suid,
        "nosuid" => MountOption::NoSuid,
        "exec" => MountOption::Exec,
        "noexec" => MountOption::NoExec,
        "atime" => MountOption::Atime,
        "noatime" => MountOption::NoAtime,
        "sync" => MountOption::Sync,
        "async" => MountOption::Async,
        "dirsync" => MountOption::DirSync,
        _ => return None,
    })
}

fn config(words: &MountWords) -> Config {
    let mut config = Config::default();
    config.acl = if words.allow_other { SessionACL::All } else { SessionACL::Owner };
    config.mount_options = vec![
        MountOption::FSName(words.source.clone()),
        MountOption::CUSTOM("subtype=imbrex".into()),
        MountOption::DefaultPermissions,
    ];
    if words.read_only {
        config.mount_options.push(MountOption::RO);
    }
    config.mount_options.extend(words.flags.iter().filter_map(|word| flag(word)));
    config
}

impl Mount {
    /// Puts `fs` at `directory`. `answers` are those to questions about it.
    pub fn new(
        clock: &Clock,
        fs: &Fs,
        directory: &Path,
        words: &MountWords,
        answers: Rc<dyn Answers>,
    ) -> io::Result<Mount> {
        let context = Rc::new(Context { fs: fs.clone(), answers });
        let (requests, sender) = Requests::new(clock, context);
        clock.add_source(requests.clone());
        let mut session = Session::new(Front::new(sender), directory, &config(words))?;
        let unmounter = session.unmount_callable();
        std::thread::Builder::new().name("fuse".into()).spawn(move || session.run())?;
        Ok(Mount { clock: clock.clone(), fs: fs.clone(), requests, unmounter, directory: directory.into() })
    }

    /// Serves until the kernel lets go of the directory, or `is_over` says so; then everything is written.
    pub fn serve(mut self, is_over: impl Fn() -> bool + 'static) -> io::Result<()> {
        let (clock, requests) = (self.clock.clone(), self.requests.clone());
        let watch = async move {
            while !requests.has_ended() && !is_over() {
                clock.sleep(LOOK_NS).await;
            }
        };
        let stalled = |error| io::Error::other(error);
        self.clock.run(watch).map_err(stalled)?;
        let detached = if self.requests.has_ended() { Ok(()) } else { self.let_go() };
        let fs = self.fs.clone();
        let unmounted = self.clock.run(async move { fs.unmount().await }).map_err(stalled)?;
        unmounted.map_err(io::Error::other)?;
        detached
    }

    /// Takes the directory from the kernel; where somebody is still in it, it is gone for everybody else.
    fn let_go(&mut self) -> io::Result<()> {
        let Err(busy) = self.unmounter.unmount() else { return self.drain() };
        rustix::mount::unmount(&self.directory, rustix::mount::UnmountFlags::DETACH).map_err(|_| busy)?;
        Ok(())
    }

    /// Answers what the kernel sent before it let go.
    fn drain(&self) -> io::Result<()> {
        let (clock, requests) = (self.clock.clone(), self.requests.clone());
        let until_ns = clock.now_ns() + Duration::from_secs(5).as_nanos() as u64;
        let ended = async move {
            while !requests.has_ended() && clock.now_ns() < until_ns {
                clock.sleep(1_000_000).await;
            }
        };
        self.clock.run(ended).map_err(io::Error::other)
    }
}
