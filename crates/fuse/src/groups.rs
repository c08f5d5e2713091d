//! The groups of a process: a request of the kernel has only one of them.

use fuser::Request;

const ROOT: u32 = 0;

/// The process that sent a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    uid: u32,
    gid: u32,
    process: u32,
}

impl Asker {
    /// Returns the sender of `request`.
    pub(crate) fn of(request: &Request) -> Asker {
        Asker { uid: request.uid(), gid: request.gid(), process: request.pid() }
    }

    /// Returns whether the asker is a user other than root.
    pub(crate) fn is_stranger(&self) -> bool {
        self.uid != ROOT
    }

    /// Returns whether the asker may keep the set-group-id bit of its own file of group `gid`: true for root and for
    /// members of the group.
    ///
    /// Supplementary groups are read from `/proc`; if that fails, they count as none.
    pub(crate) fn keeps_group_id(&self, gid: u32) -> bool {
        self.uid == ROOT || self.gid == gid || supplementary(self.process).is_some_and(|all| all.contains(&gid))
    }
}

fn supplementary(process: u32) -> Option<Vec<u32>> {
    groups(&std::fs::read_to_string(format!("/proc/{process}/status")).ok()?)
}

fn groups(status: &str) -> Option<Vec<u32>> {
    let line = status.lines().find_map(|line| line.strip_prefix("Groups:"))?;
    line.split_whitespace().map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the format in proc_pid_status(5).
    #[test]
    fn groups_are_read_of_a_status() {
        assert_eq!(groups("Name:\tsh\nGid:\t5\t5\t5\t5\nGroups:\t4 27 1000 \nNStgid:\t1\n"), Some(vec![4, 27, 1000]));
        assert_eq!((groups("Groups:\t \n"), groups("Name:\tsh\n")), (Some(Vec::new()), None));
        assert!(supplementary(std::process::id()).is_some());
    }
}
