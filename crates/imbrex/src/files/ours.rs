//! Recognizes the files that this program wrote. A run replaces the result files of an earlier run, but no other files.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::FilesError;
use super::whole::check_patiently;

/// Names of the files that a run may write into its folder.
pub(crate) const NAMES: [&str; 7] =
    ["summary.json", "report.html", "latency.parquet", "timeline.parquet", "ios.parquet", "plan.jsonl", "explain.json"];
/// Number of bytes searched at the beginning and at the end of a file. Parquet names its writer at the end, the other
/// formats near the beginning.
const SEARCHED_BYTES: u64 = 64 << 10;
/// Beginning of a line of `plan.jsonl`.
const PLAN_LINE: &[u8] = b"{\"drive\":";

/// Checks that each of the files `names` in `folder` is missing, is empty, or was written by this program, which its
/// contents show.
///
/// # Errors
///
/// For the first file that another program wrote, that cannot be read, or that must not be written because it is a
/// block device or in use.
pub fn refuse_foreign(folder: &Path, names: &[&str]) -> Result<(), FilesError> {
    for name in names {
        let path = folder.join(name);
        refuse_unmarked(&path, mark(&path))?;
    }
    Ok(())
}

/// Checks that the file is missing, is empty, or has the bytes `mark`, in capital or small letters, in its first or
/// last 64 KiB. `mark` is a text that this program writes into each such file.
///
/// # Errors
///
/// As for [`refuse_foreign`].
pub fn refuse_unmarked(path: &Path, mark: &[u8]) -> Result<(), FilesError> {
    check_patiently(path)?;
    refuse_unless(path, is_ours(path, mark))
}

/// Checks that the file is missing, is empty, or begins with the bytes `mark`.
///
/// # Errors
///
/// As for [`refuse_foreign`].
pub fn refuse_unless_begins(path: &Path, mark: &[u8]) -> Result<(), FilesError> {
    let begins = || {
        let mut begin = Vec::new();
        File::open(path)?.take(mark.len() as u64).read_to_end(&mut begin)?;
        Ok(begin.is_empty() || begin == mark)
    };
    check_patiently(path)?;
    refuse_unless(path, begins())
}

fn refuse_unless(path: &Path, is_ours: io::Result<bool>) -> Result<(), FilesError> {
    match is_ours {
        Ok(true) => Ok(()),
        Ok(false) => Err(FilesError::Foreign { path: path.into() }),
        // If a file has the name of the folder, creating the folder reports that.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(()),
        Err(error) => Err(FilesError::file(path, error)),
    }
}

fn is_ours(path: &Path, mark: &[u8]) -> io::Result<bool> {
    let has_mark = |bytes: &[u8]| bytes.windows(mark.len()).any(|window| window.eq_ignore_ascii_case(mark));
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut begin = Vec::new();
    file.by_ref().take(SEARCHED_BYTES).read_to_end(&mut begin)?;
    if begin.is_empty() || has_mark(&begin) {
        return Ok(true);
    }
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(length.saturating_sub(SEARCHED_BYTES)))?;
    file.take(SEARCHED_BYTES).read_to_end(&mut end)?;
    Ok(has_mark(&end))
}

/// Returns the bytes that this program writes into every file of this kind. A page or a document of another author may
/// well name Imbrex, so the name alone is a mark only where nothing else is.
fn mark(path: &Path) -> &'static [u8] {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => b"<p class=\"kind\">imbrex ",
        Some("json") => b"\"imbrex.",
        Some("jsonl") => PLAN_LINE,
        Some("md") => b"`imbrex reproduce`",
        _ => b"imbrex",
    }
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
        for theirs in ["<h1>My report</h1>", "<title>Imbrex and others</title><p>What imbrex simulate gave</p>"] {
            write("report.html", theirs);
            let text = refused().expect("it is somebody's");
            assert!(text.contains("report.html"), "{text}");
        }
        write("report.html", "<header><p class=\"kind\">imbrex simulate</p>");
        assert_eq!(refused(), None);
        write("report.html", "<h1>My report</h1>");
        let text = refused().expect("it is somebody's");
        assert!(text.contains("report.html") && text.contains("another folder"), "{text}");
        std::fs::remove_file(folder.path().join("report.html")).expect("removed");
        std::fs::create_dir(folder.path().join("ios.parquet")).expect("made");
        assert!(refused().is_some(), "a folder of that name is in the way");
    }
}
