//! The file type in the mode of a file, in the encoding of `st_mode` (inode(7)).

/// Mask of the bits of a mode that hold the file type (`S_IFMT`).
pub const FORMAT: u32 = 0o170_000;
/// File type of a regular file (`S_IFREG`).
pub const REGULAR: u32 = 0o100_000;
/// File type of a directory (`S_IFDIR`).
pub(crate) const DIRECTORY: u32 = 0o040_000;
/// File type of a symbolic link (`S_IFLNK`).
pub(crate) const SYMLINK: u32 = 0o120_000;

/// Returns whether the file type in `mode` is one of the seven of Linux: regular file, directory, symbolic link, FIFO,
/// socket, character device or block device. The permission bits are ignored.
pub fn is_file_type(mode: u32) -> bool {
    const OTHERS: [u32; 4] = [0o010_000, 0o020_000, 0o060_000, 0o140_000];
    let kind = mode & FORMAT;
    matches!(kind, REGULAR | DIRECTORY | SYMLINK) || OTHERS.contains(&kind)
}
