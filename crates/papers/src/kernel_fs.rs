//! A kernel file system on an emulated drive. The drive is served over NBD, `nbdfuse` presents the drive as a file, a
//! loop device makes a block device of the file, and the file system is made and mounted there. Needs root and these
//! programs.
//!
//! The drive answers at once and keeps its own simulated time, which advances only while the drive has work. So the
//! drive's time is the time that a real drive would take for the same requests.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use imbrex::Failure;
use imbrex_serve::DriveServer;

use crate::served::Served;

/// How long to wait for the file of `nbdfuse`, in tenths of a second.
const TENTHS_MAX: u32 = 100;

/// Programs that are needed, each with the package of the distribution that has it.
const PROGRAMS: [(&str, &str); 4] =
    [("nbdfuse", "nbdfuse"), ("losetup", "mount"), ("mkfs.ext4", "e2fsprogs"), ("fusermount3", "fuse3")];

/// A mounted kernel file system.
pub(crate) struct KernelFs {
    front: Arc<DriveServer>,
    /// Steps to undo when the file system is taken down, the latest last.
    undo: Vec<Undo>,
}

/// A step of the setup that is to be undone.
enum Undo {
    Folder(tempfile::TempDir),
    Server(Served),
    Fused { child: Child, folder: PathBuf },
    Loop(String),
    Mounted(PathBuf),
}

impl KernelFs {
    /// Makes and mounts a new ext4 on a new drive, described by `words`. Inode tables and journal are not initialised
    /// in the background, since those writes would count as the application's.
    pub(crate) fn ext4(words: &str) -> Result<KernelFs, Failure> {
        KernelFs::ext4_in_part(words, None)
    }

    /// Like [`KernelFs::ext4`], on the first `bytes` of the drive, as if on a partition.
    pub(crate) fn ext4_in_part(words: &str, bytes: Option<u64>) -> Result<KernelFs, Failure> {
        require()?;
        let folder = tempfile::tempdir().map_err(Failure::failed)?;
        let (socket, fused) = (folder.path().join("drive.sock"), folder.path().join("fused"));
        let mount_point = folder.path().join("mounted");
        std::fs::create_dir(&fused).and_then(|()| std::fs::create_dir(&mount_point)).map_err(Failure::failed)?;
        let served = Served::start(words, "none", &socket)?;
        let front = served.front().clone();
        let mut made = KernelFs { front, undo: vec![Undo::Folder(folder), Undo::Server(served)] };
        let file = made.fuse(&socket, fused)?;
        let device = made.looped(&file)?;
        let size = bytes.map(|bytes| format!("{}k", bytes >> 10));
        let making = ["-q", "-E", "lazy_itable_init=1,lazy_journal_init=1", &device];
        run("mkfs.ext4", making.into_iter().chain(size.as_deref()))?;
        made.mount(mount_point)?;
        Ok(made)
    }

    fn mount(&mut self, place: PathBuf) -> Result<(), Failure> {
        run("mount", ["-o".as_ref(), "noinit_itable".as_ref(), self.device().as_os_str(), place.as_os_str()])?;
        self.undo.push(Undo::Mounted(place));
        Ok(())
    }

    /// Unmounts the file system and mounts it again, so that the kernel caches nothing of it.
    pub(crate) fn remount(&mut self) -> Result<(), Failure> {
        let place = self.directory().to_path_buf();
        self.undo.pop().expect("it is mounted as long as it is there").take_down()?;
        self.mount(place)
    }

    /// Returns the path of the block device.
    pub(crate) fn device(&self) -> PathBuf {
        let device = self.undo.iter().find_map(|undo| match undo {
            Undo::Loop(device) => Some(PathBuf::from(device)),
            _ => None,
        });
        device.expect("it has a device as long as it is there")
    }

    /// Returns the mount point.
    pub(crate) fn directory(&self) -> &Path {
        let mounted = self.undo.iter().find_map(|undo| match undo {
            Undo::Mounted(place) => Some(place.as_path()),
            _ => None,
        });
        mounted.expect("it is mounted as long as it is there")
    }

    /// Returns the drive's own simulated time, in nanoseconds.
    pub(crate) fn drive_ns(&self) -> u64 {
        self.front.with(|drive, _| drive.now().0)
    }

    fn fuse(&mut self, socket: &Path, folder: PathBuf) -> Result<PathBuf, Failure> {
        let file = folder.join("nbd");
        let mut command = Command::new("nbdfuse");
        command.arg(&file).arg("--unix").arg(socket).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().map_err(|error| Failure::failed(format!("nbdfuse: {error}")))?;
        self.undo.push(Undo::Fused { child, folder });
        for _ in 0..TENTHS_MAX {
            if std::fs::metadata(&file).is_ok_and(|found| found.len() > 0) {
                return Ok(file);
            }
            sleep(Duration::from_millis(100));
        }
        Err(Failure::failed("nbdfuse: its file is not there after ten seconds"))
    }

    fn looped(&mut self, file: &Path) -> Result<String, Failure> {
        let sector_bytes = self.front.facts().sector_bytes.to_string();
        let file = file.display().to_string();
        let device = run("losetup", ["-f", "--show", "-b", &sector_bytes, "--direct-io=on", &file])?;
        self.undo.push(Undo::Loop(device.clone()));
        Ok(device)
    }
}

impl Drop for KernelFs {
    fn drop(&mut self) {
        while let Some(undo) = self.undo.pop() {
            if let Err(failure) = undo.take_down() {
                // `eprintln!` would panic if nobody reads standard error any more.
                let _ = writeln!(std::io::stderr(), "taking down a file system of the kernel's: {failure}");
            }
        }
    }
}

impl Undo {
    fn take_down(self) -> Result<(), Failure> {
        match self {
            Undo::Folder(folder) => folder.close().map_err(Failure::failed),
            Undo::Server(served) => served.stop(),
            Undo::Fused { mut child, folder } => {
                let ended = run("fusermount3", [OsStr::new("-u"), folder.as_os_str()]).map(drop);
                let killed = if ended.is_err() { child.kill().map_err(Failure::failed) } else { Ok(()) };
                child.wait().map_err(Failure::failed)?;
                killed.and(ended)
            }
            Undo::Loop(device) => run("losetup", ["-d", &device]).map(drop),
            Undo::Mounted(place) => run("umount", [place]).map(drop),
        }
    }
}

/// Checks that the process is root and that the programs are installed.
fn require() -> Result<(), Failure> {
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::failed("a file system of the kernel's is mounted by root alone"));
    }
    for (program, package) in PROGRAMS {
        let found = std::env::var_os("PATH")
            .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()));
        if !found {
            return Err(Failure::failed(format!("{program} is not here")).or_try(format!("apt-get install {package}")));
        }
    }
    Ok(())
}

/// Calls a program and returns its standard output. An error carries its standard error.
fn run<A: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = A>) -> Result<String, Failure> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| Failure::failed(format!("{program}: {error}")))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    Err(Failure::failed(format!("{program}: {}", text(&output.stderr))))
}
