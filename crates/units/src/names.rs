//! Suggestions for misspelt names.

/// Returns ` (did you mean 'NAME'?)`, where NAME is the name in `known` most similar to `name`. The measure is the
/// Jaro-Winkler similarity (1 for equal names), ignoring case. Returns an empty string if no name reaches 0.8.
pub fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    /// Least likeness of a suggestion: 1 is the same name.
    const LIKENESS_MIN: f64 = 0.8;
    let lower = name.to_lowercase();
    let like = |other: &str| strsim::jaro_winkler(&lower, &other.to_lowercase());
    let nearest = known.into_iter().map(|other| (like(other), other)).max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((likeness, other)) if likeness >= LIKENESS_MIN => format!(" (did you mean '{other}'?)"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_like_name_is_suggested() {
        let known = ["set-associative", "fully-associative", "s-blocks", "media-cache"];
        assert_eq!(suggestion("set-asociative", known), " (did you mean 'set-associative'?)");
        assert_eq!(suggestion("MediaCache", known), " (did you mean 'media-cache'?)");
        assert_eq!(suggestion("zzz", known), "");
        assert_eq!(suggestion("zzz", []), "");
    }
}
