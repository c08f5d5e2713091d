//! The program as mount(8) calls it: `mount -t fuse.imbrex SOURCE DIR -o OPTIONS`, a line of fstab, or `-o remount,ro`.
//!
//! mount(8) runs `mount.fuse`, which runs `imbrex SOURCE DIR -o OPTIONS`; or it runs `/sbin/mount.fuse.imbrex`, if that
//! is a link to this program. Both command lines are read as `imbrex fs mount SOURCE DIR -o OPTIONS`.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::CommandFactory;
use imbrex::Failure;
use rustix::mount::{MountFlags, mount_remount};

use super::options::Options;
use super::stat;
use crate::args::Cli;
use crate::error::ExitCode;

/// Returns the arguments of this process. The arguments of a mount helper are translated to those of `imbrex fs mount`.
pub(crate) fn arguments() -> Vec<OsString> {
    as_command(std::env::args_os().collect())
}

fn as_command(words: Vec<OsString>) -> Vec<OsString> {
    let by_link = words.first().is_some_and(|name| is_helper(name));
    let by_shape = words.get(3).is_some_and(|word| word == "-o") && !words.get(1).is_some_and(|word| is_command(word));
    if !by_link && !by_shape {
        return words;
    }
    let mut words = words.into_iter();
    let mut command: Vec<OsString> = words.next().into_iter().collect();
    command.extend(["fs", "mount"].map(OsString::from));
    command.extend(words);
    command
}

fn is_command(word: &OsStr) -> bool {
    Cli::command().get_subcommands().any(|command| command.get_name() == word)
}

fn is_helper(program: &OsStr) -> bool {
    let name = Path::new(program).file_name().and_then(OsStr::to_str).unwrap_or_default();
    matches!(name, "mount.imbrex" | "mount.fuse.imbrex" | "mount.fuse3.imbrex")
}

/// Changes the flags of a directory that is mounted already: `-o remount,ro` and `-o remount,rw`.
pub(crate) fn remount(directory: &Path, options: &Options) -> Result<ExitCode, Failure> {
    let place = directory.display();
    let status = stat::ask(directory)?;
    if !options.read_only && status["read_only"] == true {
        return Err(Failure::failed(format!("{place} was mounted read-only, and is served so"))
            .or_try(format!("`imbrex fs umount {place}`, then mount it without ro")));
    }
    super::sync::everything(directory, "it is mounted as it was")?;
    let unchanged = options.of_a_new_mount();
    if !unchanged.is_empty() {
        notice!("{place}: a remount leaves {} as before: they need a new mount", unchanged.join(", "));
    }
    mount_remount(directory, flags(options), "").map_err(|error| Failure::failed(format!("{place}: {error}")))?;
    Ok(ExitCode::Done)
}

fn flags(options: &Options) -> MountFlags {
    let has = |name: &str| options.flags.iter().any(|flag| flag == name);
    let mut flags = MountFlags::empty();
    for (name, flag) in
        [("noexec", MountFlags::NOEXEC), ("noatime", MountFlags::NOATIME), ("dirsync", MountFlags::DIRSYNC)]
    {
        flags.set(flag, has(name));
    }
    flags.set(MountFlags::NODEV, !has("dev"));
    flags.set(MountFlags::NOSUID, !has("suid"));
    flags.set(MountFlags::RDONLY, options.read_only);
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> String {
        let words = as_command(words.split(' ').map(OsString::from).collect());
        words.join(OsStr::new(" ")).into_string().expect("they are text")
    }

    #[test]
    fn what_mount_calls_is_the_command_that_mounts() {
        assert_eq!(read("imbrex a.img /mnt -o rw,dev"), "imbrex fs mount a.img /mnt -o rw,dev");
        assert_eq!(read("/sbin/mount.fuse.imbrex a.img /mnt"), "/sbin/mount.fuse.imbrex fs mount a.img /mnt");
        for words in ["imbrex", "imbrex fs mount -o ro a.img /mnt", "imbrex fs mount -o ro", "imbrex simulate x -o y"] {
            assert_eq!(read(words), words);
        }
    }
}
