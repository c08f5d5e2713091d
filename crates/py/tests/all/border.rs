//! Goal: no panic crosses the border, whatever its payload and its place. Method: work and rows that panic. The module
//! is compiled here by itself, because the rest of the crate can be linked only into a Python process.

#[path = "../../src/border.rs"]
mod source;

use source::{caught, caught_rows};

/// Returns whether `told` contains the panic's text, the statement that it is our bug, and the request to report it.
fn is_told(told: &str, happened: &str) -> bool {
    let (bug, remedy) =
        (format!("a bug of imbrex {}, not of yours: {happened}", env!("CARGO_PKG_VERSION")), "please report it");
    told.starts_with(&bug) && told.contains(remedy)
}

#[test]
fn a_panic_is_told_and_what_succeeds_is_kept() {
    assert_eq!(caught(|| 7), Ok(7));
    let of_text = caught(|| panic!("the head left the disk")).expect_err("it panicked");
    assert!(is_told(&of_text, "the head left the disk"), "{of_text}");
    let zones: Vec<u32> = Vec::new();
    let formatted = caught(|| zones[3]).expect_err("it panicked");
    assert!(is_told(&formatted, "index out of bounds: the len is 0 but the index is 3"), "{formatted}");
    let of_anything = caught(|| std::panic::panic_any(5)).expect_err("it panicked");
    assert!(is_told(&of_anything, "no words"), "{of_anything}");
}

#[test]
fn rows_end_with_what_is_told_of_a_panic() {
    let rows = (0..5).map(|row| if row == 2 { panic!("row {row}") } else { Ok::<u32, String>(row) });
    let read: Vec<_> = caught_rows(rows, |words| words).collect();
    assert_eq!(read[..2], [Ok(0), Ok(1)]);
    let told = read[2].as_ref().expect_err("it panicked");
    assert!(is_told(told, "row 2") && read.len() == 3, "{read:?}");
    let sound: Vec<_> = caught_rows([Ok(1), Err("broken".to_string()), Ok(3)].into_iter(), |words| words).collect();
    assert_eq!(sound, [Ok(1), Err("broken".into()), Ok(3)], "an error is none of the border's");
}
