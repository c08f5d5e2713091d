//! A target looked at before it is written, and the rule of consent.
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

/// What is known of a target before it is written.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Survey {
    /// Its name, as the user gave it.
    pub name: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Whether it is a block device.
    pub is_block_device: bool,
    /// Model, serial number and caches of a block device, as pairs of name and value.
    pub facts: Vec<(&'static str, String)>,
    /// Who uses it, one clause for each.
    pub users: Vec<String>,
    /// What it holds.
    pub contents: Vec<Contents>,
}

/// Why a target must not be written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// Somebody uses it.
    #[error(
        "{name} is in use: {}. Unmount it, or take it out of what uses it, first; --force does not help. Nothing was written",
        users.join("; ")
    )]
    InUse {
        /// The target.
        name: String,
        /// Who uses it.
        users: Vec<String>,
    },
    /// It holds something, and nobody said that it may be replaced.
    #[error("{name} ({size}) holds {}. Nothing was written", listed(contents))]
    Holds {
        /// The target.
        name: String,
        /// Its size, for people.
        size: String,
        /// What it holds.
        contents: Vec<Contents>,
    },
}

impl Refusal {
    /// Returns what the user can do, where the message does not say it.
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
    /// Looks at the file or block device behind `file`; `name` is what the user called it.
    pub fn of(name: &str, file: &File) -> io::Result<Survey> {
        Survey::with_contents(name, file, contents::found_in_file(file)?)
    }

    /// Looks at the file or block device behind `file`, of which the caller has found what it holds: a drive in zones refuses
    /// reads past a write pointer.
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

    /// Returns why the target must not be written. `force`: what it holds may be lost.
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

    /// Returns whether a person is asked before the target is written: it is a block device, or it holds something.
    pub fn needs_question(&self) -> bool {
        self.is_block_device || !self.contents.is_empty()
    }
}

/// Opens `path` to read and write it, with `flags` besides. A block device is opened exclusively: the kernel refuses that while
/// it is mounted, swapped on, part of another device, or opened so by another process, and refuses those while we have it.
///
/// # Errors
///
/// `EBUSY` where somebody else has the block device; [`busy`] says who.
pub fn open_for_writing(path: &Path, flags: i32) -> io::Result<File> {
    // O_EXCL without O_CREAT has no meaning for a regular file, so the kind is asked first; it is asked again of the
    // descriptor.
    let is_block_device = path.metadata()?.file_type().is_block_device();
    let exclusive = if is_block_device { libc::O_EXCL } else { 0 };
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags | exclusive).open(path)?;
    if file.metadata()?.file_type().is_block_device() != is_block_device {
        return Err(io::Error::other("another file came in its place while it was opened"));
    }
    Ok(file)
}

/// Returns the refusal of a target that could not be opened because somebody has it exclusively.
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
