//! Sizes as values of options.

/// Returns the number of bytes that `text`, such as 64MiB, stands for.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    imbrex_units::quantity::bytes(text).ok_or_else(|| format!("expected a size such as 64MiB, not '{text}'"))
}

/// Parses a size of at least `LEAST` bytes.
pub(crate) fn size_from<const LEAST: u64>(text: &str) -> Result<u64, String> {
    match size(text)? {
        bytes if bytes < LEAST => Err(format!("at least {}", imbrex_units::quantity::rough_bytes(LEAST))),
        bytes => Ok(bytes),
    }
}
