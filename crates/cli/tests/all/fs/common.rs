//! Helpers of the tests of this folder: a file system on a new image, mounted until the value is dropped.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use imbrex_testkit::patience::until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The stores, each with the drive it is for.
pub(crate) const STORES: [(&str, &str); 2] = [("strict-append", "strict-append"), ("caveat", "caveat-1g")];

/// Returns whether FUSE is available; prints a message if not.
pub(crate) fn has_fuse() -> bool {
    let is_here = File::options().read(true).write(true).open("/dev/fuse").is_ok();
    if !is_here {
        eprintln!("skipped: /dev/fuse is not there, or not for this user");
    }
    is_here
}

/// Runs the program.
pub(crate) fn imbrex(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_imbrex")).args(words).stdin(Stdio::null()).output().expect("the program starts")
}

/// Runs a program as a user without any privileges.
pub(crate) fn nobody(words: &[&str]) -> Output {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).args(words);
    command.output().expect("setpriv is part of util-linux")
}

/// Runs `task` in a thread with this user and these groups, without further privileges; the tests run as root.
pub(crate) fn as_user<T: Send>(uid: u32, gid: u32, groups: &[u32], task: impl FnOnce() -> T + Send) -> T {
    #[allow(unsafe_code)]
    let become_user = || {
        // SAFETY: the kernel changes the calling thread alone and reads as many groups as there are.
        unsafe {
            assert_eq!(libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()), 0, "setgroups");
            assert_eq!(libc::syscall(libc::SYS_setresgid, gid, gid, gid), 0, "setresgid");
            assert_eq!(libc::syscall(libc::SYS_setresuid, uid, uid, uid), 0, "setresuid");
        }
    };
    let in_thread = || {
        become_user();
        task()
    };
    std::thread::scope(|scope| scope.spawn(in_thread).join().expect("the task does not panic"))
}

/// Runs the program, which must succeed, and returns its standard output.
pub(crate) fn text(words: &[&str]) -> String {
    let output = imbrex(words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Runs the program like [`text`], and parses its output as JSON.
pub(crate) fn json(words: &[&str]) -> Value {
    serde_json::from_str(&text(words)).expect("JSON")
}

/// Runs the program and returns the exit code and standard error.
pub(crate) fn failure(words: &[&str]) -> (Option<i32>, String) {
    let output = imbrex(words);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Runs a shell script in `folder`; every command of the script must succeed.
pub(crate) fn shell(folder: &Path, script: &str) {
    let output = Command::new("sh").args(["-eu", "-c", script]).current_dir(folder).output().expect("a shell");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {words}{}", String::from_utf8_lossy(&output.stdout));
}

/// Returns a path as an argument of the command line.
pub(crate) fn word(path: &Path) -> &str {
    path.to_str().expect("the paths of these tests are text")
}

/// An image with a file system, and a directory to mount it on.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
    pub image: PathBuf,
    pub directory: PathBuf,
}

impl Bench {
    /// Creates a new drive without a file system.
    pub(crate) fn blank(drive: &str) -> Bench {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (image, directory) = (folder.path().join("drive.img"), folder.path().join("mnt"));
        std::fs::create_dir(&directory).expect("a directory");
        text(&["drive", "create", word(&image), "--drive", drive]);
        Bench { folder, image, directory }
    }

    /// Creates a new drive with a file system.
    pub(crate) fn new(drive: &str) -> Bench {
        let bench = Bench::blank(drive);
        text(&["fs", "mkfs", word(&bench.image)]);
        bench
    }

    /// Returns the folder of the image.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Mounts the file system with further arguments.
    pub(crate) fn mount(&self, more: &[&str]) -> Mounted<'_> {
        let mut words = vec!["fs", "mount", word(&self.image), word(&self.directory)];
        words.extend(more);
        text(&words);
        Mounted { bench: self }
    }

    /// Checks the file system, which must not be mounted.
    pub(crate) fn check(&self) {
        let checked = json(&["fs", "check", word(&self.image), "--json"]);
        assert_eq!(checked["is_whole"], true, "{checked}");
    }
}

/// A mounted file system.
pub(crate) struct Mounted<'a> {
    bench: &'a Bench,
}

impl Mounted<'_> {
    /// Returns the path of a file in the mounted directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.bench.directory.join(name)
    }

    /// Returns the mounted directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.bench.directory
    }

    /// Returns the process that serves the directory.
    pub(crate) fn process(&self) -> i32 {
        let status = json(&["fs", "stat", word(self.directory()), "--json"]);
        status["process"].as_i64().and_then(|pid| i32::try_from(pid).ok()).expect("a mounted one has a process")
    }

    /// Kills the process that serves the directory, and waits until it has no file open any more.
    pub(crate) fn kill(&self) {
        let process = self.process();
        kill_process(Pid::from_raw(process).expect("a process"), Signal::KILL).expect("it is ours");
        let open = || std::fs::read_dir(format!("/proc/{process}/fd")).map_or(0, Iterator::count);
        until("the end of the server", || (open() == 0).then_some(()));
    }

    /// Unmounts the file system cleanly.
    pub(crate) fn unmount(self) {
        text(&["fs", "umount", word(self.directory())]);
        assert!(!is_mounted(self.directory()), "it is still there");
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        if is_mounted(self.directory()) {
            let _ = rustix::mount::unmount(self.directory(), rustix::mount::UnmountFlags::DETACH);
        }
    }
}

/// Returns whether something is mounted on `directory`.
pub(crate) fn is_mounted(directory: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("the kernel tells of mounts");
    mounts.lines().any(|line| line.split(' ').nth(1) == Some(word(directory)))
}
