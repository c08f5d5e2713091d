//! Names of extended attributes, by Linux's rules (xattr(7)).
//!
//! The kernel decides which users may use `user.*` and `trusted.*`, and its security modules decide about `security.*`.
//! All other names it leaves to the file system: for any user it passes on every `system.*`, and names without a
//! namespace. Of `system.*` only the two access lists are supported, which the kernel checks when they are set.

use imbrex_fs::FsError;

use crate::access_list::{ACCESS, DEFAULT};

const FORMAT: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;

/// Checks whether a file can have an attribute of this name.
///
/// # Errors
/// `EOPNOTSUPP` for a name outside the supported namespaces; `EINVAL` for a namespace without a name after it.
pub(crate) fn check(name: &[u8]) -> Result<(), FsError> {
    if name == ACCESS || name == DEFAULT {
        return Ok(());
    }
    let kept = [&b"user."[..], b"trusted.", b"security."];
    let namespace = kept.into_iter().find(|namespace| name.starts_with(namespace));
    match namespace {
        Some(namespace) if name.len() == namespace.len() => Err(FsError::Invalid("an attribute without a name")),
        Some(_) => Ok(()),
        None => Err(FsError::NotSupported("attributes of this namespace")),
    }
}

/// Checks the name of an attribute that is set or removed, on a file of this mode. `user.*` is for regular files and
/// directories.
///
/// # Errors
/// `EOPNOTSUPP` for a name outside the supported namespaces; `EINVAL` for a namespace without a name after it; `EPERM`
/// for `user.*` on a file of another type; `EACCES` for a default access list on a file other than a directory.
pub(crate) fn check_change(name: &[u8], mode: u32) -> Result<(), FsError> {
    check(name)?;
    let kind = mode & FORMAT;
    if name.starts_with(b"user.") && kind != DIRECTORY && kind != REGULAR {
        return Err(FsError::NotPermitted("user attributes are for files and directories"));
    }
    if name == DEFAULT && kind != DIRECTORY {
        return Err(FsError::Access("a default access list is for a directory"));
    }
    Ok(())
}

/// Returns whether a listing for user `uid` contains this name: names outside the supported namespaces are left out,
/// and `trusted.*` is for root.
pub(crate) fn is_listed(name: &[u8], uid: u32) -> bool {
    check(name).is_ok() && (uid == 0 || !name.starts_with(b"trusted."))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks names against xattr(7) and setxattr(2), with the error numbers of Linux.
    #[test]
    fn namespaces_are_those_of_linux() {
        let outcome = |name: &str, mode| check_change(name.as_bytes(), mode).map_err(|error| error.errno());
        for name in ["user.a", "trusted.overlay.opaque", "security.selinux", "system.posix_acl_access"] {
            assert_eq!(outcome(name, REGULAR), Ok(()), "{name}");
        }
        for name in ["system.nfs4_acl", "system.", "plain", "users.a", "", "btrfs.compression", "User.a"] {
            assert_eq!(outcome(name, REGULAR), Err(libc::EOPNOTSUPP), "{name}");
        }
        for name in ["user.", "trusted.", "security."] {
            assert_eq!(outcome(name, REGULAR), Err(libc::EINVAL), "{name}");
        }
        assert_eq!(outcome("user.a", 0o120_777), Err(libc::EPERM), "of a symbolic link");
        assert_eq!(outcome("trusted.a", 0o120_777), Ok(()));
        assert_eq!(outcome("system.posix_acl_default", REGULAR), Err(libc::EACCES));
        assert_eq!(outcome("system.posix_acl_default", DIRECTORY), Ok(()));
        let listed = |uid| ["user.a", "trusted.a", "plain"].map(|name| is_listed(name.as_bytes(), uid));
        assert_eq!((listed(0), listed(5)), ([true, true, false], [true, false, false]));
    }
}
