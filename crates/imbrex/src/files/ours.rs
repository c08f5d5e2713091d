//! Whose a file in a folder of results is: a run replaces the files of an earlier run, and nobody else's.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use imbrex_safety::check_output;

use super::FilesError;

/// The files that a run may write into its folder.
pub(crate) const NAMES: [&str; 6] =
    ["summary.json", "report.html", "latency.parquet", "timeline.parquet", "ios.parquet", "plan.jsonl"];
/// How much of the beginning and of the end is searched: Parquet names its writer at the end, the others near the beginning.
const SEARCHED_BYTES: u64 = 64 << 10;
/// How a line of `plan.jsonl` begins.
const PLAN_LINE: &[u8] = b"{\"drive\":";

/// Checks that none of the files `names` in `folder` is somebody else's: one that does not name this program.
///
/// # Errors
///
/// The first file that is not ours, or that cannot be read.
pub fn refuse_foreign(folder: &Path, names: &[&str]) -> Result<(), FilesError> {
    for name in names {
        let path = folder.join(name);
        check_output(&path, &[])?;
        match is_ours(&path) {
            Ok(true) => {}
            Ok(false) => return Err(FilesError::Foreign { path }),
            // A file in the way of the folder is told when that is made.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(error) => return Err(FilesError::file(&path, error)),
        }
    }
    Ok(())
}

/// Returns whether the file was written by this program; an empty file is nobody's.
fn is_ours(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut begin = Vec::new();
    file.by_ref().take(SEARCHED_BYTES).read_to_end(&mut begin)?;
    if begin.is_empty() || names_us(&begin) || begin.starts_with(PLAN_LINE) {
        return Ok(true);
    }
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(length.saturating_sub(SEARCHED_BYTES)))?;
    file.take(SEARCHED_BYTES).read_to_end(&mut end)?;
    Ok(names_us(&end))
}

fn names_us(bytes: &[u8]) -> bool {
    bytes.windows(6).any(|window| window.eq_ignore_ascii_case(b"imbrex"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_others_are_kept_and_ours_are_replaced() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
        let refused = || refuse_foreign(folder.path(), &NAMES).err().map(|error| error.to_string());
        assert_eq!(refused(), None, "nothing is there");
        write("summary.json", "{\"schema\": \"imbrex.simulate/1\"}");
        write("plan.jsonl", "{\"drive\":\"cmr-7200\",\"at_ns\":1}\n");
        write("latency.parquet", &format!("PAR1{}created by imbrex 0.1.0 PAR1", "x".repeat(100_000)));
        write("timeline.parquet", "");
        write("notes.txt", "mine");
        assert_eq!(refused(), None);
        write("report.html", "<h1>My report</h1>");
        let text = refused().expect("it is somebody's");
        assert!(text.contains("report.html") && text.contains("another folder"), "{text}");
        std::fs::remove_file(folder.path().join("report.html")).expect("removed");
        std::fs::create_dir(folder.path().join("ios.parquet")).expect("made");
        assert!(refused().is_some(), "a folder of that name is in the way");
    }
}
