//! A file system of ours in front of the kernel's FUSE.
//!
//! ```text
//!   kernel ─► session's thread ─► a task of the core ─► reply
//!              [`front`]           run there where the core is free, otherwise by the thread that mounted: [`requests`]
//! ```
//!
//! Invariants:
//! 1. Requests become tasks in the order in which the kernel sent them. Each is answered once.
//! 2. Nobody else changes the file system, so what the kernel keeps of it (names, attributes, contents) stays true.
//!    What the core changes by itself (set-id bits taken by a write) the kernel is told not to keep.
//! 3. When the kernel lets go of the directory, or the end is asked for, everything is written before the program ends.

mod access_list;
mod attribute_name;
mod front;
mod groups;
mod operations;
mod read_ahead;
mod requests;
mod words;

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fuser::{Config, MountOption, Session, SessionACL, SessionUnmounter};
use imbrex_fs::clock::Clock;
use imbrex_fs::{Fs, FsError};

use self::front::Front;
use self::requests::Core;

/// How often somebody who wants an end is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// How long the kernel may take to let go of the directory.
const LET_GO: Duration = Duration::from_secs(5);

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
    /// Nothing that changes is answered before it is durable.
    pub sync: bool,
    /// Other options of mount(8), such as `dev`, `suid`, `noexec`.
    pub flags: Vec<String>,
}

/// What a task of the core works with.
struct Context {
    /// The file system.
    fs: Fs,
    /// What is answered for it.
    answers: Rc<dyn Answers>,
    /// Whether nothing is answered before it is durable.
    is_sync: bool,
}

impl Context {
    /// Makes what was done durable where everything is to be: with `-o sync`.
    async fn settle<T>(&self, done: Result<T, FsError>) -> Result<T, FsError> {
        if done.is_ok() && self.is_sync {
            self.fs.sync().await?;
        }
        done
    }
}

/// A directory that is being served.
pub struct Mount {
    clock: Clock,
    context: Rc<Context>,
    core: Arc<Core<Context>>,
    session: Session<Front>,
    unmounter: SessionUnmounter,
    directory: PathBuf,
    below: Option<u64>,
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
        let context = Rc::new(Context { fs: fs.clone(), answers, is_sync: words.sync });
        let core = Arc::new(Core::<Context>::new(clock));
        let below = read_ahead::device(directory);
        let mut session = Session::new(Front::new(core.clone()), directory, &config(words))?;
        let unmounter = session.unmount_callable();
        Ok(Mount { clock: clock.clone(), context, core, session, unmounter, directory: directory.into(), below })
    }

    /// Serves until the kernel lets go of the directory, or `is_over` says so; then everything is written.
    pub fn serve(self, is_over: impl Fn() -> bool + Send) -> io::Result<()> {
        let Mount { clock, context, core, session, unmounter, directory, below } = self;
        let told = core.clone();
        std::thread::Builder::new().name("fuse".into()).spawn(move || {
            let ended = session.run();
            told.end();
            ended
        })?;
        read_ahead::set(&directory, below, context.fs.drives());
        let told = core.clone();
        core.work(&clock, &context, LOOK, move || told.has_ended() || is_over());
        let let_go = if core.has_ended() { Ok(Parting::Whole) } else { let_go(unmounter, &directory) };
        if matches!(let_go, Ok(Parting::Whole)) {
            // What the kernel sent before it let go is answered.
            let until = Instant::now() + LET_GO;
            core.work(&clock, &context, LOOK / 50, || core.has_ended() || Instant::now() >= until);
        }
        core.close();
        let fs = context.fs.clone();
        let unmounted = clock.run(async move { fs.unmount().await }).map_err(io::Error::other)?;
        unmounted.map_err(io::Error::other)?;
        let_go.map(drop)
    }
}

/// Lets all threads take memory from one heap, which returns little to the system: one takes what another frees, and the heaps that
/// glibc makes for threads grow by a system call a page. It is called before a second thread begins.
pub fn share_memory() {
    #[cfg(target_env = "gnu")]
    #[allow(unsafe_code)]
    // SAFETY: it sets numbers under the allocator's own lock.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 4 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 64 << 20);
    }
}

/// How the kernel let go of a directory.
enum Parting {
    /// Nobody is in it.
    Whole,
    /// Somebody is; it is gone for everybody else.
    Detached,
}

fn let_go(mut unmounter: SessionUnmounter, directory: &Path) -> io::Result<Parting> {
    let Err(busy) = unmounter.unmount() else { return Ok(Parting::Whole) };
    rustix::mount::unmount(directory, rustix::mount::UnmountFlags::DETACH).map_err(|_| busy)?;
    Ok(Parting::Detached)
}
