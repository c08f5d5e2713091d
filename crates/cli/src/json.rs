//! Prints documents as JSON: indented, except that a list within a list, such as a point or a row, stands on one line.
//!
//! JSON is UTF-8, and a path need not be. So no path enters a document but through [`path`], [`paths`] or [`exact`].

use std::io;
use std::path::Path;

use imbrex::Failure;
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

/// Nesting depth of lists beyond which a list stands on one line.
const LISTS_MAX: usize = 1;

/// Returns a path for a document. Bytes that are not UTF-8 become the replacement character.
pub(crate) fn path(path: impl AsRef<Path>) -> Value {
    path.as_ref().to_string_lossy().into()
}

/// Returns a list of paths for a document, each as [`path`] returns it.
pub(crate) fn paths(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Value {
    paths.into_iter().map(path).collect()
}

/// Returns a path for a message to another process, which opens it.
///
/// # Errors
///
/// The path is not UTF-8.
pub(crate) fn exact(path: &Path) -> Result<Value, Failure> {
    let unfit = || {
        Failure::failed(format!("{}: the name is not UTF-8, and cannot be sent to the serving process", path.display()))
            .or_try("a name in UTF-8; a link to its folder, if the name of the folder is not")
    };
    path.to_str().map(Value::from).ok_or_else(unfit)
}

/// Returns `document` as JSON text.
pub(crate) fn text(document: &impl Serialize) -> serde_json::Result<String> {
    let mut bytes = Vec::new();
    let layout = Layout { pretty: PrettyFormatter::new(), lists: 0 };
    document.serialize(&mut Serializer::with_formatter(&mut bytes, layout))?;
    Ok(String::from_utf8(bytes).expect("JSON is UTF-8"))
}

/// A formatter that indents, except within nested lists. Nested lists contain no objects.
struct Layout {
    pretty: PrettyFormatter<'static>,
    lists: usize,
}

impl Layout {
    fn is_compact(&self) -> bool {
        self.lists > LISTS_MAX
    }
}

impl Formatter for Layout {
    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.lists += 1;
        if self.is_compact() {
            return CompactFormatter.begin_array(writer);
        }
        self.pretty.begin_array(writer)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        let is_compact = self.is_compact();
        self.lists -= 1;
        if is_compact {
            return CompactFormatter.end_array(writer);
        }
        self.pretty.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if self.is_compact() {
            return CompactFormatter.begin_array_value(writer, first);
        }
        self.pretty.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.is_compact() {
            return CompactFormatter.end_array_value(writer);
        }
        self.pretty.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_object(writer)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.pretty.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_object_value(writer)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;
    use imbrex_probe::{Confidence, Series, Value, Verdict};

    #[test]
    fn a_path_that_is_not_utf_8_is_shown_and_not_sent() {
        let (odd, plain) = (Path::new(OsStr::from_bytes(b"/a/b\xff")), Path::new("/a/bé"));
        assert_eq!(path(odd), serde_json::json!("/a/b\u{fffd}"));
        assert_eq!(paths([odd, plain]), serde_json::json!(["/a/b\u{fffd}", "/a/bé"]));
        assert_eq!(exact(plain).ok(), Some(serde_json::json!("/a/bé")));
        assert!(exact(odd).is_err_and(|failure| failure.message.contains("not UTF-8")));
    }

    #[test]
    fn points_stand_on_one_line_and_nothing_is_lost() {
        let mut verdict = Verdict { schema: "imbrex.probe/1", ..Verdict::default() };
        verdict.conclude("type", Value::Word("shingled"), "", Confidence::High, "seen".into(), &["a", "b"]);
        let points = vec![(0.5, 1.0), (2.0, 3.25)];
        verdict.series.push(Series { name: "a", x: "x", y: "y", points });
        let text = text(&verdict).expect("it can be written");
        assert!(
            text.contains("\n      \"points\": [[0.5,1.0],[2.0,3.25]]\n") && text.contains("[\"a\",\"b\"]"),
            "{text}"
        );
        let read: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(read, serde_json::to_value(&verdict).expect("it can be written"));
    }
}
