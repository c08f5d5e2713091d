//! Names in directories, and their cookies: the positions from which `readdir` continues.

/// Maximum length of a name in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// First cookie of a name; `.` and `..` use those below.
pub const FIRST_COOKIE: u64 = 16;
/// Number of cookies that a name may have: its hash, and those that follow.
pub const COOKIES_TRIED: u64 = 64;
/// Exclusive upper bound of cookies: hashes have 62 bits.
pub const COOKIES_END: u64 = (1 << 62) + COOKIES_TRIED;

/// Returns whether these bytes are a valid name in a directory.
pub fn is_name(name: &[u8]) -> bool {
    let is_long = name.len() > NAME_BYTES_MAX;
    !name.is_empty() && !is_long && name != b"." && name != b".." && !name.iter().any(|byte| matches!(byte, b'/' | 0))
}
