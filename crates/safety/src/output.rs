//! Outputs: reports, tables and traces that the user names. An output replaces a regular file of its name, as with
//! other tools, and only when the output is complete. A path that must not be replaced is refused before anything is
//! written.

use std::fs::{File, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::usage;

/// The reason why an output may not be written to a path.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OutputError {
    /// The path is the same regular file as one of the inputs, under this name or another.
    #[error("{} is the input {} itself; give the output another name", path.display(), input.display())]
    IsInput {
        /// Path of the output.
        path: PathBuf,
        /// Path of the input that is the same file.
        input: PathBuf,
    },
    /// The path is a block device.
    #[error("{} is a block device, not a file; give the output another name", path.display())]
    IsBlockDevice {
        /// Path of the output.
        path: PathBuf,
    },
    /// The path is a regular file that is in use: as swap, behind a loop device, or locked by another process.
    #[error("{} is in use: {}; give the output another name", path.display(), users.join("; "))]
    InUse {
        /// Path of the output.
        path: PathBuf,
        /// Uses of the file, one clause each, such as "it is in use as swap".
        users: Vec<String>,
    },
}

/// Checks that an output may be written to `path`, and that `path` is not one of `inputs`. Links are followed, and
/// files are compared by device and inode number. A path that does not exist may be written. So may any path that is
/// neither a regular file nor a block device, such as a pipe or a terminal, even if it is an input. An unreadable file
/// counts as not in use.
///
/// # Errors
///
/// The first that applies: [`OutputError::IsInput`], [`OutputError::IsBlockDevice`], [`OutputError::InUse`].
pub fn check_output(path: &Path, inputs: &[PathBuf]) -> Result<(), OutputError> {
    let Ok(facts) = path.metadata() else { return Ok(()) };
    let path = path.to_path_buf();
    let is_it = |input: &&PathBuf| input.metadata().is_ok_and(|other| are_same(&facts, &other));
    // A terminal or a pipe may be an input and an output at once.
    if let Some(input) = inputs.iter().find(is_it).filter(|_| facts.is_file()) {
        return Err(OutputError::IsInput { path, input: input.clone() });
    }
    if facts.file_type().is_block_device() {
        return Err(OutputError::IsBlockDevice { path });
    }
    if !facts.is_file() {
        // A pipe must not be opened: that may wait for its other end.
        return Ok(());
    }
    // A file that cannot be read counts as unused: the later write fails, or replaces it like any other file.
    let users = File::open(&path).and_then(|file| usage::users(&file, &[])).unwrap_or_default();
    if users.is_empty() { Ok(()) } else { Err(OutputError::InUse { path, users }) }
}

fn are_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_refused_under_each_of_its_names() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let place = |name: &str| folder.path().join(name);
        std::fs::write(place("t.csv"), "1,R,0,8\n").expect("written");
        std::fs::write(place("other.csv"), "1,R,0,8\n").expect("written");
        std::os::unix::fs::symlink("t.csv", place("link.csv")).expect("linked");
        std::fs::hard_link(place("t.csv"), place("hard.csv")).expect("linked");
        std::fs::create_dir(place("sub")).expect("made");
        let inputs = [place("other.csv"), place("t.csv")];
        for name in ["t.csv", "link.csv", "hard.csv", "sub/../t.csv"] {
            let error = check_output(&place(name), &inputs).expect_err(name);
            assert_eq!(error, OutputError::IsInput { path: place(name), input: place("t.csv") });
        }
        assert_eq!(check_output(&place("new.csv"), &inputs), Ok(()));
        assert_eq!(check_output(&place("t.csv"), &[place("other.csv")]), Ok(()), "a file that is no input is replaced");
        assert_eq!(check_output(Path::new("/dev/null"), &[PathBuf::from("/dev/null")]), Ok(()));
        let pipe = place("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is part of coreutils");
        assert!(made.success());
        assert_eq!(check_output(&pipe, &inputs), Ok(()), "without waiting for its reader");
    }

    #[test]
    fn a_block_device_is_no_output() {
        let loop_device = Path::new("/dev/loop0");
        if !loop_device.metadata().is_ok_and(|facts| facts.file_type().is_block_device()) {
            println!("skipped: this machine has no /dev/loop0");
            return;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let link = folder.path().join("report.html");
        std::os::unix::fs::symlink(loop_device, &link).expect("linked");
        assert_eq!(check_output(&link, &[]), Err(OutputError::IsBlockDevice { path: link.clone() }));
    }
}
