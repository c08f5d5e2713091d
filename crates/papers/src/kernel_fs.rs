//! A file system of the kernel's on an emulated drive: the drive is served over NBD, `nbdfuse` makes a file of it, a loop
//! device makes a disk of that, and the file system is made and mounted on it. It needs root and these programs.
//!
//! The drive answers at once and keeps its own time, which goes on while it has something to do: so the time it tells is
//! what the same requests would have taken a real one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use imbrex::Failure;
use imbrex_serve::Front;

use crate::served::Served;

/// How long `nbdfuse` may take until its file is there, in tenths of a second.
const TENTHS_MAX: u32 = 100;

/// Programs that come with distributions' packages of the same names, or these.
const PROGRAMS: [(&str, &str); 4] =
    [("nbdfuse", "nbdfuse"), ("losetup", "mount"), ("mkfs.ext4", "e2fsprogs"), ("fusermount3", "fuse3")];

/// One that is mounted.
pub struct KernelFs {
    front: Arc<Front>,
    /// What there is to undo, the newest last.
    undo: Vec<Undo>,
}

/// What was set up, and is to be taken down.
enum Undo {
    Folder(tempfile::TempDir),
    Server(Served),
    Fused { child: Child, folder: PathBuf },
    Loop(String),
    Mounted(PathBuf),
}

impl KernelFs {
    /// ext4, new, on the drive that `words` name, as new. Nothing of it is made later than it is used: neither the tables
    /// of inodes nor the journal, whose making in the background would count as the application's.
    pub fn ext4(words: &str) -> Result<KernelFs, Failure> {
        KernelFs::ext4_in_part(words, None)
    }

    /// The same on the first `bytes` of the drive, as on a partition of its.
    pub fn ext4_in_part(words: &str, bytes: Option<u64>) -> Result<KernelFs, Failure> {
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

    /// Unmounts it and mounts it again: the kernel keeps nothing of it in memory.
    pub fn remount(&mut self) -> Result<(), Failure> {
        let place = self.directory().to_path_buf();
        self.undo.pop().expect("it is mounted as long as it is there").take_down()?;
        self.mount(place)
    }

    /// Its block device.
    pub fn device(&self) -> PathBuf {
        let device = self.undo.iter().find_map(|undo| match undo {
            Undo::Loop(device) => Some(PathBuf::from(device)),
            _ => None,
        });
        device.expect("it has a device as long as it is there")
    }

    /// Where it is mounted.
    pub fn directory(&self) -> &Path {
        let mounted = self.undo.iter().find_map(|undo| match undo {
            Undo::Mounted(place) => Some(place.as_path()),
            _ => None,
        });
        mounted.expect("it is mounted as long as it is there")
    }

    /// The drive's own time.
    pub fn drive_ns(&self) -> u64 {
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
                eprintln!("taking down a file system of the kernel's: {failure}");
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

/// That everything is there that it takes.
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

/// What a program prints; an error has what it complains of.
fn run<A: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = A>) -> Result<String, Failure> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| Failure::failed(format!("{program}: {error}")))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    Err(Failure::failed(format!("{program}: {}", text(&output.stderr))))
}
