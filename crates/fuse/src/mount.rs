//! An Imbrex file system served to the kernel over FUSE.
//!
//! ```text
//!   kernel ─► session's thread ─► a task of the core ─► reply
//!              [`front`]           run there where the core is free, otherwise by the thread that mounted: [`requests`]
//! ```
//!
//! Invariants:
//! 1. Requests become tasks in the order in which the kernel sent them. Each is answered once.
//! 2. Only this server changes the file system, so the kernel's caches (names, attributes, contents) stay valid.
//!    Attributes that the core changes by itself are excluded: the kernel must not cache them (set-id bits removed by a
//!    write).
//! 3. When the kernel unmounts the directory, or a stop is requested, all data are written before the program ends.

mod access_list;
mod adapter;
mod attribute_name;
mod convert;
mod groups;
mod operations;
mod read_ahead;
mod requests;

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fuser::{Config, MountOption, Session, SessionACL, SessionUnmounter};
use imbrex_fs::executor::Executor;
use imbrex_fs::{Fs, FsError};

use self::adapter::FuseAdapter;
use self::requests::Core;

/// Interval at which a stop request is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// Time that the kernel may take to unmount the directory.
const LET_GO: Duration = Duration::from_secs(5);

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

/// Options of a mount.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MountWords {
    /// Source of the mount that the system shows.
    pub source: String,
    /// Whether the mount is read-only.
    pub read_only: bool,
    /// Whether users other than the one who mounts have access.
    pub allow_other: bool,
    /// Whether every change is durable before it is answered.
    pub sync: bool,
    /// Other options of mount(8), such as `dev`, `suid`, `noexec`.
    pub flags: Vec<String>,
}

/// The data with which a task of the core works.
struct Context {
    /// The file system.
    fs: Fs,
    /// Answers about the file system.
    answers: Rc<dyn Answers>,
    /// Whether every change is durable before it is answered.
    is_sync: bool,
}

impl Context {
    /// Makes all changes durable after a successful operation, if mounted with `-o sync`.
    async fn settle<T>(&self, done: Result<T, FsError>) -> Result<T, FsError> {
        if done.is_ok() && self.is_sync {
            self.fs.sync().await?;
        }
        done
    }
}

/// A mounted directory.
pub struct Mount {
    clock: Executor,
    context: Rc<Context>,
    core: Arc<Core<Context>>,
    session: Session<FuseAdapter>,
    unmounter: SessionUnmounter,
    directory: PathBuf,
    below: Option<u64>,
}

/// Options of mount(8) that are passed on, besides those with a meaning of their own.
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
    /// Mounts `fs` at `directory`. `answers` answers requests about the file system.
    pub fn new(
        clock: &Executor,
        fs: &Fs,
        directory: &Path,
        words: &MountWords,
        answers: Rc<dyn Answers>,
    ) -> io::Result<Mount> {
        let context = Rc::new(Context { fs: fs.clone(), answers, is_sync: words.sync });
        let core = Arc::new(Core::<Context>::new(clock));
        let below = read_ahead::device(directory);
        let mut session = Session::new(FuseAdapter::new(core.clone()), directory, &config(words))?;
        let unmounter = session.unmount_callable();
        Ok(Mount { clock: clock.clone(), context, core, session, unmounter, directory: directory.into(), below })
    }

    /// Serves until the kernel unmounts the directory, or `is_over` returns true; then writes all data.
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
            // Answer the requests that the kernel sent before it unmounted.
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

/// Makes all threads allocate from one heap, which returns little memory to the system. One thread reuses the memory
/// that another frees, and glibc's heaps of single threads would grow by a system call per page. Must be called before
/// a second thread starts.
pub fn share_memory() {
    #[cfg(target_env = "gnu")]
    #[allow(unsafe_code)]
    // SAFETY: the call sets numbers under the allocator's own lock.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 4 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 64 << 20);
    }
}

/// The result of an unmount.
enum Parting {
    /// No process used the directory.
    Whole,
    /// A process still uses the directory; all others no longer see the mount.
    Detached,
}

fn let_go(mut unmounter: SessionUnmounter, directory: &Path) -> io::Result<Parting> {
    let Err(busy) = unmounter.unmount() else { return Ok(Parting::Whole) };
    rustix::mount::unmount(directory, rustix::mount::UnmountFlags::DETACH).map_err(|_| busy)?;
    Ok(Parting::Detached)
}
