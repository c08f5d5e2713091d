//! A bound on a program's memory, including its page cache and inodes: a control group within the group of this
//! process. Needs root and a kernel with the memory controller.

use std::io::Write;
use std::path::{Path, PathBuf};

use imbrex::Failure;

/// Folder of the memory controller in version 1 of control groups.
const VERSION_1: &str = "/sys/fs/cgroup/memory";
/// Folder of control groups of version 2.
const VERSION_2: &str = "/sys/fs/cgroup";

/// Control group with bounded memory. Dropping the value removes the group.
pub(super) struct MemoryBound {
    folder: PathBuf,
}

impl MemoryBound {
    /// Makes a group that is bounded to `bytes`.
    pub(super) fn new(bytes: u64) -> Result<MemoryBound, Failure> {
        let own = std::fs::read_to_string("/proc/self/cgroup").map_err(Failure::failed)?;
        let (above, key) = place(&own, Path::new(VERSION_1).is_dir());
        let folder = above.join(format!("imbrex-{}", std::process::id()));
        let lacking = |error: std::io::Error| {
            Failure::failed(format!("memory cannot be bounded at {}: {error}", folder.display()))
                .or_try("root, on a kernel with the memory controller of control groups")
        };
        std::fs::create_dir(&folder).map_err(lacking)?;
        let bound = MemoryBound { folder: folder.clone() };
        std::fs::write(folder.join(key), bytes.to_string()).map_err(lacking)?;
        Ok(bound)
    }

    /// Returns the path of the file to which a process writes its process ID to join the group.
    pub(super) fn door(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }
}

impl Drop for MemoryBound {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir(&self.folder) {
            // `eprintln!` would panic if nobody reads standard error any more.
            let _ = writeln!(std::io::stderr(), "taking down {}: {error}", self.folder.display());
        }
    }
}

/// Returns the folder in which the group can be made, and the name of the file that sets its bound. `own` is the text
/// of `/proc/self/cgroup`. In version 2 a group with processes cannot have bounded groups within it, so the group is
/// made at the top.
fn place(own: &str, is_version_1: bool) -> (PathBuf, &'static str) {
    let group = own.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|controller| controller == "memory").then_some(path)
    });
    match group.filter(|_| is_version_1) {
        Some(path) => (Path::new(VERSION_1).join(path.trim_start_matches('/')), "memory.limit_in_bytes"),
        None => (PathBuf::from(VERSION_2), "memory.max"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_have_their_place() {
        let mixed = "5:devices:/\n4:cpuset,memory:/user/7\n0::/\n";
        assert_eq!(place(mixed, true), ("/sys/fs/cgroup/memory/user/7".into(), "memory.limit_in_bytes"));
        assert_eq!(place("0::/user.slice\n", false), ("/sys/fs/cgroup".into(), "memory.max"));
    }
}
