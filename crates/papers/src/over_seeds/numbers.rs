//! Numbers in texts of reports: texts of several runs that differ only in numbers become one text with means and 95 %
//! intervals.
//!
//! A *number* is a run of digits, with or without a sign, groups of thousands and a fraction. Digits of a word that
//! begins with a letter, such as `w39`, are no number.

use imbrex_sim::Estimate;

/// A number in a text.
struct Number<'a> {
    text: &'a str,
    value: f64,
    /// Number of digits after the point.
    decimals: usize,
}

/// A text, taken apart: the parts between the numbers, one more than there are numbers, and the numbers.
struct Parts<'a> {
    between: Vec<&'a str>,
    numbers: Vec<Number<'a>>,
}

/// Returns one text for `texts`, the texts of all runs: in place of each number that differs between the runs, its mean
/// and half of the 95 % interval of the mean. Returns `None` if the texts differ in more than numbers, or if there is
/// none.
pub(super) fn merged(texts: &[&str]) -> Option<String> {
    let (first, others) = texts.split_first()?;
    if others.iter().all(|text| text == first) {
        return Some((*first).into());
    }
    let all: Vec<Parts> = texts.iter().map(|text| parts(text)).collect();
    if all.iter().any(|parts| parts.between != all[0].between) {
        return None;
    }
    let mut text = all[0].between[0].to_string();
    for (index, between) in all[0].between[1..].iter().enumerate() {
        let numbers: Vec<&Number> = all.iter().map(|parts| &parts.numbers[index]).collect();
        text += &estimated(&numbers);
        text += between;
    }
    Some(text)
}

/// Returns the number of all runs as text: the number itself if it is equal in all runs, and otherwise `mean ± half`.
fn estimated(numbers: &[&Number]) -> String {
    if numbers.iter().all(|number| number.text == numbers[0].text) {
        return numbers[0].text.into();
    }
    let values: Vec<f64> = numbers.iter().map(|number| number.value).collect();
    let Some(estimate) = Estimate::of(&values) else { return numbers[0].text.into() };
    let half = estimate.half_width_95;
    let decimals = numbers.iter().map(|number| number.decimals).max().unwrap_or(0).max(decimals_of_two_digits(half));
    let is_grouped = numbers.iter().any(|number| number.text.contains(','));
    let is_signed = numbers.iter().any(|number| number.text.starts_with('+'));
    let shown = |value: f64, is_signed: bool| {
        let digits = if is_signed { format!("{value:+.decimals$}") } else { format!("{value:.decimals$}") };
        if is_grouped { grouped(&digits) } else { digits }
    };
    format!("{} ± {}", shown(estimate.mean, is_signed), shown(half, false))
}

/// Returns the number of digits after the point with which `half` has two significant digits; 0 for a number of 10 or
/// more.
fn decimals_of_two_digits(half: f64) -> usize {
    if half <= 0.0 { 0 } else { (1.0 - half.log10().floor()).max(0.0) as usize }
}

/// Returns a number with commas between groups of three digits before the point.
fn grouped(digits: &str) -> String {
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(whole, fraction)| (whole, Some(fraction)));
    let start = usize::from(whole.starts_with(['+', '-']));
    let mut text = whole[..start].to_string();
    for (index, digit) in whole[start..].char_indices() {
        if index > 0 && (whole.len() - start - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    fraction.map_or(text.clone(), |fraction| format!("{text}.{fraction}"))
}

/// Takes a text apart.
fn parts(text: &str) -> Parts<'_> {
    let bytes = text.as_bytes();
    let mut parts = Parts { between: Vec::new(), numbers: Vec::new() };
    let (mut at, mut begun) = (0, 0);
    while at < bytes.len() {
        let rest = &text[at..];
        if rest.starts_with(|letter: char| letter.is_alphabetic() || letter == '_') {
            at += rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
        } else if let Some(length) = length_of_number(text, at) {
            let found = &text[at..at + length];
            let value = found.replace(',', "").parse().expect("a number has only a sign, digits and a point");
            let decimals = found.split_once('.').map_or(0, |(_, fraction)| fraction.len());
            parts.between.push(&text[begun..at]);
            parts.numbers.push(Number { text: found, value, decimals });
            at += length;
            begun = at;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    parts.between.push(&text[begun..]);
    parts
}

/// Returns the length of the number that begins at `at`, or `None` if none does. A sign belongs to the number unless it
/// follows a letter or a digit, as in `emulated-smr-1`.
fn length_of_number(text: &str, at: usize) -> Option<usize> {
    let bytes = &text.as_bytes()[at..];
    let digits = |from: usize| bytes[from.min(bytes.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let follows_word = text[..at].ends_with(char::is_alphanumeric);
    let sign = usize::from(matches!(bytes[0], b'+' | b'-') && !follows_word);
    let mut length = sign + digits(sign);
    if length == sign {
        return None;
    }
    if length - sign <= 3 {
        while bytes.get(length) == Some(&b',') && digits(length + 1) == 3 {
            length += 4;
        }
    }
    if bytes.get(length) == Some(&b'.') && digits(length + 1) > 0 {
        length += 1 + digits(length + 1);
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    //! Goal: only numbers are merged, with digits that fit. Method: texts like those of reports; intervals computed by
    //! hand with Student's t for one degree of freedom (12.706) and for two (4.303).

    use super::*;

    fn numbers(text: &str) -> Vec<&str> {
        parts(text).numbers.iter().map(|number| number.text).collect()
    }

    #[test]
    fn numbers_are_found_in_texts_and_not_in_words() {
        assert_eq!(numbers("182,270 writes of 1.5 s (-0.25 %), 16.78 GiB."), ["182,270", "1.5", "-0.25", "16.78"]);
        assert_eq!(numbers("w39, emulated-smr-1: 4k, 1,2,3 and 2015."), ["1", "4", "1", "2", "3", "2015"]);
        assert_eq!(numbers("18–20 GiB, 3.04×"), ["18", "20", "3.04"]);
        assert_eq!(numbers("none, café"), [""; 0]);
    }

    #[test]
    fn equal_texts_stay() {
        assert_eq!(merged(&["12 ms", "12 ms"]), Some("12 ms".into()));
        assert_eq!(merged(&[]), None);
    }

    #[test]
    fn numbers_that_differ_become_means_with_intervals() {
        // Half of the interval: 12.706 · |a − b| / 2.
        assert_eq!(merged(&["1.0 of 15 ms", "1.2 of 15 ms"]), Some("1.1 ± 1.3 of 15 ms".into()));
        assert_eq!(merged(&["10.00 ms", "10.01 ms"]), Some("10.005 ± 0.064 ms".into()));
        assert_eq!(merged(&["999 writes", "1,001 writes"]), Some("1,000 ± 13 writes".into()));
        assert_eq!(merged(&["749,000 writes", "751,000 writes"]), Some("750,000 ± 12,706 writes".into()));
        assert_eq!(merged(&["+1 %", "-1 %"]), Some("+0 ± 13 %".into()));
        // Half of the interval: 4.303 / √3.
        assert_eq!(merged(&["a: 1", "a: 2", "a: 3"]), Some("a: 2.0 ± 2.5".into()));
    }

    #[test]
    fn texts_that_differ_in_more_are_not_merged() {
        assert_eq!(merged(&["none", "2 of 15"]), None);
        assert_eq!(merged(&["1 of 15: w08", "1 of 15: w09"]), None);
        assert_eq!(merged(&["1.2 ms", "990 µs"]), None);
    }
}
