//! The guest: a kernel in user mode, its arguments, its files, and the shell scripts that prepare it.
//!
//! The guest sees the files of the host, and changes none: the process may write only in the folder of the run, by rules
//! of Landlock, and the guest's changes stay in memory. It has no network. All that differs from run to run is fixed:
//! arguments, environment, layout of addresses, time of day, and, from the seed, random numbers.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus,
};

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use crate::LabError;
use crate::kernel::Kernel;
use crate::world::mark;

/// Names of files in the folder of a run.
pub(crate) const CALENDAR: &str = "calendar";
pub(crate) const CONSOLE: &str = "console.txt";
pub(crate) const OUTPUT: &str = "output.txt";
pub(crate) const ERRORS: &str = "errors.txt";
/// Folder of the scripts, as the host names it, and as the guest does after its preparation.
const SCRIPTS: &str = "scripts";
const SCRIPTS_IN_GUEST: &str = "/run/lab";

/// A file system that the guest makes and mounts on each drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileSystem {
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// Btrfs.
    Btrfs,
    /// F2FS.
    F2fs,
    /// NILFS2.
    Nilfs2,
}

impl FileSystem {
    /// All file systems, by the names of the command line.
    pub const ALL: [(&'static str, FileSystem); 5] = [
        ("ext4", FileSystem::Ext4),
        ("xfs", FileSystem::Xfs),
        ("btrfs", FileSystem::Btrfs),
        ("f2fs", FileSystem::F2fs),
        ("nilfs2", FileSystem::Nilfs2),
    ];

    /// Returns the name, as `mount -t` has it.
    pub fn name(self) -> &'static str {
        FileSystem::ALL.iter().find(|(_, each)| *each == self).expect("all are listed").0
    }

    /// Returns the command that makes the file system, with its options.
    pub fn maker(self) -> &'static [&'static str] {
        match self {
            FileSystem::Ext4 => &["mkfs.ext4", "-q", "-F"],
            FileSystem::Xfs => &["mkfs.xfs", "-q", "-f"],
            FileSystem::Btrfs => &["mkfs.btrfs", "-q", "-f"],
            FileSystem::F2fs => &["mkfs.f2fs", "-q", "-f"],
            FileSystem::Nilfs2 => &["mkfs.nilfs2", "-q", "-f"],
        }
    }

    /// Returns the Debian package that has the command.
    pub fn package(self) -> &'static str {
        match self {
            FileSystem::Ext4 => "e2fsprogs",
            FileSystem::Xfs => "xfsprogs",
            FileSystem::Btrfs => "btrfs-progs",
            FileSystem::F2fs => "f2fs-tools",
            FileSystem::Nilfs2 => "nilfs-tools",
        }
    }
}

/// A source of differences between runs that the lab otherwise fixes. Tests show with it that a difference is noticed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disturbance {
    /// The layout of the kernel's addresses is random.
    Addresses,
    /// The command line of the kernel has the path of the run's folder.
    Paths,
    /// The time of day at the start is that of the machine.
    TimeOfDay,
}

/// The work of a guest.
#[derive(Clone, Debug)]
pub struct Task {
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// File system that is mounted from each drive at `/mnt/vda`, `/mnt/vdb` and so on.
    pub file_system: Option<FileSystem>,
    /// Whether the file systems are made first; otherwise the drives have them.
    pub makes_file_systems: bool,
    /// Folder in which the command begins.
    pub folder: PathBuf,
    /// Seed of the guest's random numbers.
    pub seed: u64,
    /// Memory of the guest in bytes.
    pub memory_bytes: u64,
    /// Time of day at the start, in nanoseconds since 1970: [`TIME_OF_DAY_NS`](crate::TIME_OF_DAY_NS), or later if the drives
    /// have files from an earlier run.
    pub time_of_day_ns: u64,
    /// A source of differences that is not fixed; `None` except in tests.
    pub disturbance: Option<Disturbance>,
}

/// Returns the name of drive number `index` in the guest: `vda`, `vdb` and so on.
pub fn drive_name(index: usize) -> String {
    format!("vd{}", char::from(b'a' + index as u8))
}

/// Writes the scripts of the guest into the folder of the run.
pub(crate) fn write_scripts(run: &Path, task: &Task, drives: usize) -> io::Result<()> {
    let scripts = run.join(SCRIPTS);
    std::fs::create_dir(&scripts)?;
    std::fs::write(scripts.join("first"), FIRST)?;
    std::fs::write(scripts.join("second"), second(task, drives))?;
    // A script of its own, since the name of a folder need not be UTF-8.
    let mut folder = OsString::from("cd -- ");
    folder.push(quoted(task.folder.as_os_str()));
    folder.push("\n");
    std::fs::write(scripts.join("folder"), folder.as_bytes())?;
    let mut command = OsString::from("exec");
    for word in &task.command {
        command.push(" ");
        command.push(quoted(word));
    }
    let mut bytes = command.as_bytes().to_vec();
    bytes.push(b'\n');
    std::fs::write(scripts.join("command"), bytes)
}

/// Removes the files of a finished run that are of no use afterwards: sockets, scripts, links to the kernel.
pub(crate) fn remove_scratch(run: &Path, drives: usize) {
    let names = (0..drives).map(drive_name).chain([CALENDAR, "linux", "preload.so"].map(str::to_string));
    for name in names {
        // The results are complete without this.
        let _ = std::fs::remove_file(run.join(name));
    }
    for name in [SCRIPTS, "uml"] {
        let _ = std::fs::remove_dir_all(run.join(name));
    }
}

/// Returns the folder for the file that is the guest's memory: one in memory if it has room, and otherwise that of the run.
fn folder_of_memory(bytes: u64) -> &'static str {
    const IN_MEMORY: &str = "/dev/shm";
    let room = rustix::fs::statvfs(IN_MEMORY).map_or(0, |facts| facts.f_bavail * facts.f_frsize);
    if room >= bytes { IN_MEMORY } else { "." }
}

/// The first program of the guest: makes a root whose changes stay in memory, and goes on there.
const FIRST: &str = r#"export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TZ=UTC
set -e
mount -t tmpfs -o size=75% none /tmp
mkdir /tmp/upper /tmp/work /tmp/root
mount -t overlay -o lowerdir=/,upperdir=/tmp/upper,workdir=/tmp/work none /tmp/root
cd /tmp/root
mount -t proc none proc
mount -t sysfs none sys
mount -t devtmpfs none dev
mkdir -p dev/shm dev/pts
mount -t tmpfs none dev/shm
mount -t tmpfs none run
mkdir run/lab
mount --bind /mnt run/lab
exec chroot . /bin/sh /run/lab/second
"#;

/// Returns the second script: file systems, the command, its status.
fn second(task: &Task, drives: usize) -> String {
    let marked = |mark: u64, status: &str| {
        // Sleeping brings the clock of the drives up to date.
        format!("sleep 0.00001; echo $(({mark} + {status})) > /sys/kernel/um-ext-time/bc-message\n")
    };
    let mut script = String::from("exec < /dev/null\n");
    script += &format!("fail() {{ {}sleep 1000; }}\n", marked(mark::FAILED, "$1"));
    script += "stty -F /dev/ttyS0 raw && stty -F /dev/ttyS1 raw || fail $?\n";
    // The messages of a program that fails belong to the errors that the user sees.
    script += "try() { \"$@\" > /run/said 2>&1 || { status=$?; cat /run/said > /dev/ttyS1; fail $status; }; }\n";
    let names: Vec<String> = (0..drives).map(drive_name).collect();
    if let Some(file_system) = task.file_system {
        for name in &names {
            script += &format!("mkdir -p /mnt/{name}\n");
            if task.makes_file_systems {
                script += &format!("try {} /dev/{name}\n", file_system.maker().join(" "));
            }
            script += &format!("try mount -t {} /dev/{name} /mnt/{name}\n", file_system.name());
        }
    }
    script += &format!(". {SCRIPTS_IN_GUEST}/folder 2> /run/said || {{ cat /run/said > /dev/ttyS1; fail 1; }}\n");
    script += &marked(mark::BEGIN, "0");
    script += &format!("/bin/sh {SCRIPTS_IN_GUEST}/command > /dev/ttyS0 2> /dev/ttyS1\nstatus=$?\n");
    script += &marked(mark::COMMAND_END, "status");
    script += "cd /\n";
    if task.file_system.is_some() {
        for name in &names {
            script += &format!("umount /mnt/{name}\n");
        }
    }
    script += "sync\n";
    script + &marked(mark::END, "0") + "sleep 1000\n"
}

/// Returns a word of a shell.
fn quoted(word: &OsStr) -> OsString {
    let mut bytes = vec![b'\''];
    for &byte in word.as_bytes() {
        match byte {
            b'\'' => bytes.extend_from_slice(b"'\\''"),
            _ => bytes.push(byte),
        }
    }
    bytes.push(b'\'');
    OsStr::from_bytes(&bytes).into()
}

/// Starts the kernel in the folder of the run, in a process group of its own. It ends with this process, however this
/// process ends.
///
/// # Errors
///
/// The kernel cannot be started, or this machine has no Landlock.
pub(crate) fn start(run: &Path, kernel: &Kernel, task: &Task, drives: usize) -> Result<Running, LabError> {
    let failed = |what: &str| {
        let what = what.to_string();
        move |cause: io::Error| LabError::System { what, cause }
    };
    // Names that are equal in each run: they are in the memory of the kernel.
    let link =
        |to: &Path, name: &str| std::os::unix::fs::symlink(to, run.join(name)).map_err(failed("linking the kernel"));
    link(kernel.program(), "linux")?;
    link(kernel.preload(), "preload.so")?;
    let file = |name: &str| File::create(run.join(name)).map_err(failed("making the files of the console"));
    let (console, output, errors) = (file(CONSOLE)?, file(OUTPUT)?, file(ERRORS)?);
    let mut command = Command::new("./linux");
    command.current_dir(run).env_clear().process_group(0);
    command
        .env("LD_PRELOAD", "./preload.so")
        .env("IMBREX_LAB_SEED", task.seed.to_string())
        .env("TMPDIR", folder_of_memory(task.memory_bytes));
    command.arg(format!("mem={}M", task.memory_bytes >> 20));
    command.arg(format!("time-travel=ext:{CALENDAR}"));
    for index in 0..drives {
        const BLOCK_DEVICE: u32 = 2;
        command.arg(format!("virtio_uml.device={}:{BLOCK_DEVICE}", drive_name(index)));
    }
    // The descriptors 0, 1 and 2 of the kernel: nothing, the console and the command's output, the command's errors.
    command.args(["con0=null,fd:1", "con=null", "ssl0=null,fd:200", "ssl1=null,fd:201", "ssl=null"]);
    command.args(["uml_dir=uml", "umid=lab", "root=none", "rootflags=/", "rootfstype=hostfs", "ro"]);
    command.args(["random.trust_cpu=off", "quiet", "panic=-1"]);
    // The guest names the folder as the kernel's process does.
    if task.disturbance == Some(Disturbance::Paths) {
        command.arg(format!("lab.folder={}", run.display()));
    }
    let mount = format!("mount -t hostfs -o /proc/self/cwd/{SCRIPTS} none /mnt && exec /bin/sh /mnt/first");
    command.args(["init=/bin/sh", "--", "-c"]).arg(format!("\"{mount}\""));
    command.stdin(Stdio::null()).stdout(console.try_clone().map_err(failed("the console"))?).stderr(console);
    prepare_child(&mut command, [&output, &errors]);
    let program = kernel.program().to_path_buf();
    let (run, has_fixed_addresses) = (run.to_path_buf(), task.disturbance != Some(Disturbance::Addresses));
    let (sender, started) = channel();
    let (end, ended) = channel::<()>();
    // Landlock and the layout of addresses are properties of a thread, which the processes that it starts inherit. The
    // child is killed when the thread that started it ends, so the thread waits until the child is gone.
    let parent = std::thread::spawn(move || {
        let mut start = || {
            confine(&run)?;
            if has_fixed_addresses {
                fix_addresses().map_err(failed("fixing the layout of addresses"))?;
            }
            command.spawn().map_err(failed(&format!("starting the kernel {}", program.display())))
        };
        // The other ends of the channels are in the function that waits, and in `Running`.
        let _ = sender.send(start());
        drop((output, errors));
        let _ = ended.recv();
    });
    let child = started.recv().expect("the thread sends before it ends")?;
    Ok(Running { child, parent: Some((end, parent)) })
}

/// Gives the started process these files as the descriptors 200 and 201 (the standard library has its own descriptors
/// below), and has the process killed when the thread that starts it ends.
fn prepare_child(command: &mut Command, files: [&File; 2]) {
    use std::os::fd::AsRawFd;
    let numbers = files.map(AsRawFd::as_raw_fd);
    let this_process = std::process::id();
    #[expect(unsafe_code, reason = "descriptors and the signal of a child are set between fork and exec")]
    // SAFETY: the closure calls only dup2, prctl and getppid, which may be called between fork and exec. The files are
    // open until the child has started.
    unsafe {
        command.pre_exec(move || {
            for (index, number) in numbers.iter().enumerate() {
                if libc::dup2(*number, 200 + index as i32) < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0 {
                return Err(io::Error::last_os_error());
            }
            // A process that ended before the call sends no signal.
            if libc::getppid() as u32 != this_process {
                return Err(io::ErrorKind::Interrupted.into());
            }
            Ok(())
        });
    }
}

/// Lets this thread, and the processes that it starts, write only in the folder of the run and to memory.
fn confine(run: &Path) -> Result<(), LabError> {
    let abi = ABI::V5;
    let rules = || {
        Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(abi))?
            .create()?
            .add_rules(landlock::path_beneath_rules(["/"], AccessFs::from_read(abi)))?
            .add_rules(landlock::path_beneath_rules([run, Path::new("/dev/shm")], AccessFs::from_all(abi)))?
            .add_rules(landlock::path_beneath_rules(["/dev/null"], AccessFs::from_file(abi)))?
            .restrict_self()
    };
    let status = rules().map_err(|error| LabError::Confinement(error.to_string()))?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err(LabError::Confinement("this kernel has none (Linux 5.13, enabled)".into())),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

/// Lets the processes that this thread starts have the same addresses in each run.
fn fix_addresses() -> io::Result<()> {
    #[expect(unsafe_code, reason = "a call of the C library")]
    // SAFETY: the call has no pointers.
    let before = unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) };
    if before < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Keeps this thread on the processor on which it runs, until this value is dropped, with the processes that it starts
/// meanwhile. The guest and its drives take turns: on two processors each turn would wait until a processor wakes.
pub(crate) struct OneProcessor {
    before: Option<CpuSet>,
}

impl OneProcessor {
    pub(crate) fn new() -> OneProcessor {
        let before = sched_getaffinity(None).ok();
        let mut here = CpuSet::new();
        here.set(sched_getcpu());
        // Where it is not permitted, a run takes longer.
        let _ = sched_setaffinity(None, &here);
        OneProcessor { before }
    }
}

impl Drop for OneProcessor {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = sched_setaffinity(None, before);
        }
    }
}

/// A started program. Dropping this value ends it, with all processes that it started.
pub(crate) struct Running {
    pub(crate) child: Child,
    /// The thread whose end kills the program, and the channel whose end ends the thread.
    parent: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Running {
    /// Starts a program in a process group of its own.
    pub(crate) fn of(command: &mut Command) -> io::Result<Running> {
        Ok(Running { child: command.process_group(0).spawn()?, parent: None })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.child);
        // The process may have ended already.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.child.wait();
        if let Some((end, thread)) = self.parent.take() {
            drop(end);
            // The thread has nothing that could panic.
            let _ = thread.join();
        }
    }
}
