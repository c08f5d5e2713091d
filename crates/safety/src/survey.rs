//! The survey of a target before it is written, and the rules for the user's consent.
//!
//! | | no option | `--force` | `--yes` |
//! |---|---|---|---|
//! | in use | refused | refused | refused |
//! | holds something | refused | may be replaced | refused |
//! | a block device, or contents that may be replaced, on a terminal | asked | asked | not asked |

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::usage::{self, Device};
use super::{Contents, Peek, contents};

/// Facts about a target (file or block device), gathered before anything is written to it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Survey {
    /// Name of the target, as the user gave it.
    pub name: String,
    /// Size of the target in bytes; 0 if it is unknown.
    pub size_bytes: u64,
    /// Whether the target is a block device.
    pub is_block_device: bool,
    /// Model, serial number, caches and the like of a block device, as pairs of name and value; empty for a file.
    pub facts: Vec<(&'static str, String)>,
    /// Uses of the target, one clause each, such as "sda1 is mounted at /home"; empty if the target is not in use.
    pub users: Vec<String>,
    /// Signatures and data found on the target; empty if there are none.
    pub contents: Vec<Contents>,
}

/// The reason why a target must not be written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The target is in use.
    #[error(
        "{name} is in use: {}. Unmount it, or take it out of what uses it, first; --force does not help. Nothing was written",
        users.join("; ")
    )]
    InUse {
        /// Name of the target, as the user gave it.
        name: String,
        /// Uses of the target, one clause each, such as "sda1 is mounted at /home".
        users: Vec<String>,
    },
    /// The target has contents, and the user did not allow to replace them.
    #[error("{name} ({size}) holds {}. Nothing was written", listed(contents))]
    Holds {
        /// Name of the target, as the user gave it.
        name: String,
        /// Size of the target as text with at most four digits, such as `1 TiB`.
        size: String,
        /// Signatures and data found on the target; never empty.
        contents: Vec<Contents>,
    },
}

impl Refusal {
    /// Returns advice for the user that the message lacks; `None` for [`Refusal::InUse`], whose message has advice.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Refusal::InUse { .. } => None,
            Refusal::Holds { .. } => Some("another target; or --force, if all of it may be lost"),
        }
    }
}

fn listed(contents: &[Contents]) -> String {
    let words: Vec<String> = contents.iter().map(ToString::to_string).collect();
    words.join(", ")
}

impl Survey {
    /// Surveys the file or block device open as `file`: its size, facts, uses and contents. `name` is the user's name
    /// for the target, which messages show.
    ///
    /// # Errors
    ///
    /// A failed read of the target, or a block device that `/sys` does not list.
    pub fn of(name: &str, file: &File) -> io::Result<Survey> {
        Survey::with_contents(name, file, contents::found_in_file(file)?)
    }

    /// Surveys the file or block device open as `file`, like [`Survey::of`], but with `contents` in place of a search
    /// for them. This serves zoned drives, which refuse reads past a write pointer.
    ///
    /// # Errors
    ///
    /// A failed `fstat`, or a block device that `/sys` does not list.
    pub fn with_contents(name: &str, file: &File, contents: Vec<Contents>) -> io::Result<Survey> {
        let facts = file.metadata()?;
        let is_block_device = facts.file_type().is_block_device();
        Ok(Survey {
            name: name.to_string(),
            size_bytes: Peek::len(file),
            is_block_device,
            facts: if is_block_device { Device::of(facts.rdev())?.facts() } else { Vec::new() },
            users: usage::users(file, &contents)?,
            contents,
        })
    }

    /// Returns the reason why the target must not be written, or `None` if it may be. Use is always a reason, and comes
    /// first. Contents are a reason unless `force` is set.
    pub fn refusal(&self, force: bool) -> Option<Refusal> {
        if !self.users.is_empty() {
            return Some(Refusal::InUse { name: self.name.clone(), users: self.users.clone() });
        }
        let may_be_lost = force || self.contents.is_empty();
        (!may_be_lost).then(|| Refusal::Holds {
            name: self.name.clone(),
            size: imbrex_units::quantity::said_bytes(self.size_bytes, imbrex_units::quantity::Rounding::Nearest),
            contents: self.contents.clone(),
        })
    }

    /// Returns whether the user must be asked before the target is written: it is a block device, or has contents.
    pub fn needs_question(&self) -> bool {
        self.is_block_device || !self.contents.is_empty()
    }
}

/// Opens the existing `path` for reading and writing, with the additional `open(2)` flags `flags`. A block device is
/// opened exclusively (`O_EXCL`). The kernel refuses that while the device is mounted, swapped on, part of another
/// device, or opened exclusively by another process. It also refuses each of these uses while the descriptor is open.
///
/// # Errors
///
/// `EBUSY` if the block device is in use; [`busy`] names its users. Other errors are those of `stat` and `open`, and
/// one of kind `Other` if a block device and another kind of file were exchanged under `path` meanwhile.
pub fn open_for_writing(path: &Path, flags: i32) -> io::Result<File> {
    // O_EXCL without O_CREAT is undefined for a regular file, so the type is checked first. It is checked again on the
    // descriptor.
    let is_block_device = path.metadata()?.file_type().is_block_device();
    let exclusive = if is_block_device { libc::O_EXCL } else { 0 };
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags | exclusive).open(path)?;
    if file.metadata()?.file_type().is_block_device() != is_block_device {
        return Err(io::Error::other("another file took its place while it was being opened"));
    }
    Ok(file)
}

/// Returns [`Refusal::InUse`] for a target whose opening failed with `EBUSY`, with the users that `/proc` and `/sys`
/// show. If they show none, a general clause stands in their place.
pub fn busy(path: &Path) -> Refusal {
    let name = path.display().to_string();
    let users = File::open(path).and_then(|file| usage::users(&file, &[])).unwrap_or_default();
    let unknown = || vec!["another process, or the kernel, has it exclusively".to_string()];
    Refusal::InUse { name, users: if users.is_empty() { unknown() } else { users } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(users: &[&str], contents: &[&str]) -> Survey {
        let one = |what: &&str| Contents { what: what.to_string(), label: Some("home".into()), place: (0, 1) };
        Survey {
            name: "/dev/sdx".into(),
            size_bytes: 1 << 40,
            users: users.iter().map(ToString::to_string).collect(),
            contents: contents.iter().map(one).collect(),
            ..Survey::default()
        }
    }

    #[test]
    fn nothing_overrides_use_and_force_alone_replaces_contents() {
        let users = &["sdx is mounted at /home"];
        for force in [false, true] {
            let refusal = survey(users, &["an XFS file system"]).refusal(force).expect("it is in use");
            let says = refusal.to_string();
            for part in ["/dev/sdx is in use: sdx is mounted at /home. Unmount it", "--force does not help"] {
                assert!(says.contains(part), "{says}");
            }
        }
        let held = survey(&[], &["an XFS file system", "a PC partition table"]);
        let refusal = held.refusal(false).expect("it holds something");
        assert_eq!(
            refusal.to_string(),
            "/dev/sdx (1 TiB) holds an XFS file system (\"home\"), a PC partition table (\"home\"). Nothing was written"
        );
        assert!(refusal.remedy().is_some_and(|remedy| remedy.contains("--force")));
        assert_eq!(held.refusal(true), None);
        assert_eq!(survey(&[], &[]).refusal(false), None);
    }

    #[test]
    fn a_file_is_surveyed_through_its_descriptor() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("notes.txt");
        std::fs::write(&path, "my notes").expect("written");
        let file = open_for_writing(&path, 0).expect("it opens");
        std::fs::rename(&path, folder.path().join("elsewhere")).expect("renamed");
        let survey = Survey::of("notes.txt", &file).expect("it is looked at");
        assert_eq!((survey.size_bytes, survey.is_block_device, survey.users.len()), (8, false, 0));
        assert_eq!(
            survey.refusal(false).expect("it holds data").to_string(),
            "notes.txt (8 B) holds data. Nothing was written"
        );
    }
}
