//! Names in directories, and their cookies: the positions from which `readdir` continues.

/// Maximum length of a file name in bytes, as in `NAME_MAX` of Linux.
pub const NAME_BYTES_MAX: usize = 255;
/// Smallest cookie of a name. A cookie is the position in a directory from which `readdir` continues; smaller ones are
/// for `.` and `..`.
pub const FIRST_COOKIE: u64 = 16;
/// Number of consecutive cookies that a name may get: the hash of the name, and the 63 numbers after it if another name
/// has that cookie.
pub const COOKIES_TRIED: u64 = 64;
/// Exclusive upper bound of the cookies of names. The hash has 62 bits, and a cookie is less than [`COOKIES_TRIED`]
/// above it.
pub const COOKIES_END: u64 = (1 << 62) + COOKIES_TRIED;

/// Returns whether these bytes are a valid name in a directory: 1 to 255 bytes without `/` and NUL, and neither `.` nor
/// `..`.
pub fn is_name(name: &[u8]) -> bool {
    let is_long = name.len() > NAME_BYTES_MAX;
    !name.is_empty() && !is_long && name != b"." && name != b".." && !name.iter().any(|byte| matches!(byte, b'/' | 0))
}
