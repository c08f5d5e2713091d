//! A mounted directory: its options, and serving it until it is unmounted.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fuser::{Config, MountOption, Session, SessionACL, SessionUnmounter};
use imbrex_fs::Fs;
use imbrex_fs::executor::Executor;

use crate::adapter::FuseAdapter;
use crate::context::{Answers, Context};
use crate::read_ahead;
use crate::requests::Core;

/// Interval at which a stop request is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// Time that the kernel may take to unmount the directory.
const LET_GO: Duration = Duration::from_secs(5);

/// Settings of a mount over FUSE: its source, write access, the access of other users, durability, and further options
/// of mount(8).
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MountWords {
    /// Source of the mount, as `/proc/mounts` and `df` show it.
    pub source: String,
    /// Whether the kernel mounts the directory read-only.
    pub read_only: bool,
    /// Whether users other than the one who mounts, root included, have access to the directory.
    pub allow_other: bool,
    /// Whether every change is durable before the kernel gets the answer.
    pub sync: bool,
    /// Further options of mount(8), such as `nodev` or `noexec`. Those that are not in [`FLAGS`] are ignored.
    pub flags: Vec<String>,
}

/// A directory at which a file system is mounted over FUSE.
pub struct Mount {
    executor: Executor,
    context: Rc<Context>,
    core: Arc<Core<Context>>,
    session: Session<FuseAdapter>,
    unmounter: SessionUnmounter,
    directory: PathBuf,
    below: Option<u64>,
}

/// Options of mount(8) that can be passed to the kernel by [`MountWords::flags`].
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
    /// Mounts `fs`, whose tasks run on `executor`, at `directory`. Requests wait until [`Mount::serve`] is called.
    /// `answers` answers queries and commands about the file system.
    ///
    /// # Errors
    /// The kernel or `fusermount3` refused the mount.
    pub fn new(
        executor: &Executor,
        fs: &Fs,
        directory: &Path,
        words: &MountWords,
        answers: Rc<dyn Answers>,
    ) -> io::Result<Mount> {
        let context = Rc::new(Context { fs: fs.clone(), answers, is_sync: words.sync });
        let core = Arc::new(Core::<Context>::new(executor));
        let below = read_ahead::device(directory);
        let mut session = Session::new(FuseAdapter::new(core.clone()), directory, &config(words))?;
        let unmounter = session.unmount_callable();
        Ok(Mount { executor: executor.clone(), context, core, session, unmounter, directory: directory.into(), below })
    }

    /// Serves requests until the kernel unmounts the directory or `is_over` returns true. `is_over` is called at least
    /// every 50 ms. Then unmounts the directory, writes all data to the devices, and unmounts the file system. A
    /// directory that is still in use is detached, as by `umount --lazy`.
    ///
    /// # Errors
    /// A thread could not be started, the data could not be written, or the directory could not be unmounted.
    pub fn serve(self, is_over: impl Fn() -> bool + Send) -> io::Result<()> {
        let Mount { executor, context, core, session, unmounter, directory, below } = self;
        let told = core.clone();
        std::thread::Builder::new().name("fuse".into()).spawn(move || {
            let ended = session.run();
            told.end();
            ended
        })?;
        read_ahead::set(&directory, below, context.fs.drives());
        let told = core.clone();
        core.work(&executor, &context, LOOK, move || told.has_ended() || is_over());
        let let_go = if core.has_ended() { Ok(Parting::Whole) } else { let_go(unmounter, &directory) };
        if matches!(let_go, Ok(Parting::Whole)) {
            // Answer the requests that the kernel sent before it unmounted.
            let until = Instant::now() + LET_GO;
            core.work(&executor, &context, LOOK / 50, || core.has_ended() || Instant::now() >= until);
        }
        core.close();
        let fs = context.fs.clone();
        let unmounted = executor.run(async move { fs.unmount().await }).map_err(io::Error::other)?;
        unmounted.map_err(io::Error::other)?;
        let_go.map(drop)
    }
}

/// Makes all threads of the process allocate from one heap of the C library, which returns little memory to the system.
/// One thread reuses the memory that another frees, and the separate heaps of glibc would cost a system call per page.
/// Must be called before a second thread starts. Does nothing with a C library other than glibc.
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
