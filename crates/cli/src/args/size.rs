//! Sizes as values of options.

/// Returns the number of bytes that `text`, such as 64MiB, stands for.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    imbrex_units::quantity::bytes(text).ok_or_else(|| format!("expected a size such as 64MiB, not '{text}'"))
}
