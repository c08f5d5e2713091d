//! The error for a file that no format recognises: says what the file looks like (an archive, a picture, a web page),
//! and what to do about it.

use super::format::Head;

/// Types of files that users pass by mistake, each with its first bytes.
const MAGIC: [(&[u8], &str); 13] = [
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"\x7fELF", "a program"),
    (b"PK\x03\x04", "a ZIP archive: unpack it and give a trace inside it"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it and give a trace inside it"),
    (b"Rar!", "a RAR archive: unpack it and give a trace inside it"),
    (b"\x04\x22\x4d\x18", "compressed with lz4: unpack it first"),
    (b"\x1f\x9d", "compressed with compress: unpack it first"),
    (b"<!DOCTYPE", "a web page: the download went wrong"),
    (b"<html", "a web page: the download went wrong"),
    (b"SQLite format 3", "an SQLite database"),
];

/// Returns the reason why no format recognises a trace with this head, and a remedy. `names` lists the names of all
/// formats.
pub(super) fn reason(head: &Head<'_>, names: &str) -> String {
    let bytes = head.bytes;
    if bytes.is_empty() {
        return "the file is empty".into();
    }
    if bytes.trim_ascii().is_empty() {
        return "the file holds nothing but blanks".into();
    }
    if let Some((_, what)) = MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return format!("this is no trace but {what}; a trace that begins so by chance can be named with --format");
    }
    if bytes.get(257..262) == Some(b"ustar") {
        return "this is a tar archive: unpack it and give a trace inside it".into();
    }
    if is_oracle_general(head) {
        return "this looks like oracleGeneral of libCacheSim, which records no operations: reads cannot be told from \
                writes, so it cannot drive a disk; give the trace it was made from, or name another format with \
                --format"
            .into();
    }
    if is_text(bytes) {
        let line = crate::fields::shown(head.first_line());
        let columns = crate::table::columns_named(head, b',').unwrap_or_else(|| "time,op,offset,size".into());
        return format!(
            "text in no format we recognise (it begins {line}): name it with --format ({names}), or describe its \
             columns with --columns {columns}"
        );
    }
    format!("binary data in no format we recognise: if it is a trace, name its format with --format ({names})")
}

/// Returns whether the head looks like oracleGeneral of libCacheSim. It has records of 24 bytes, `u32 time, u64 object,
/// u32 size, i64 next`. Times never decrease, and `next` is -1 or the index of a later record.
fn is_oracle_general(head: &Head<'_>) -> bool {
    const RECORD_BYTES: usize = 24;
    let records = head.bytes.chunks_exact(RECORD_BYTES);
    if records.len() < 2 || (head.whole && !records.remainder().is_empty()) {
        return false;
    }
    let mut time_before = 0;
    records.take(64).zip(0i64..).all(|(record, index)| {
        let time = u32::from_le_bytes(record[..4].try_into().expect("four bytes are four"));
        let size = u32::from_le_bytes(record[12..16].try_into().expect("four bytes are four"));
        let next = i64::from_le_bytes(record[16..].try_into().expect("eight bytes are eight"));
        let sound = time >= time_before && size > 0 && (next == -1 || next > index);
        time_before = time;
        sound
    })
}

fn is_text(bytes: &[u8]) -> bool {
    let strange = bytes.iter().filter(|&&byte| byte < 0x20 && !byte.is_ascii_whitespace()).count();
    !bytes.contains(&0) && strange * 100 <= bytes.len()
}

#[cfg(test)]
mod tests {
    //! Goal: refused files are named, with a remedy. Method: the first bytes of each kind, written by hand.

    use crate::formats::testing::error_of;
    use crate::options::TraceOptions;

    fn told(bytes: &[u8]) -> String {
        error_of(bytes, &TraceOptions::default())
    }

    #[test]
    fn foreign_files_are_told_by_name() {
        assert_eq!(told(b""), "t: the file is empty");
        assert_eq!(told(b"\n \n"), "t: the file holds nothing but blanks");
        assert!(told(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").starts_with("t: this is no trace but a PNG image"));
        assert!(told(b"Dear diary,\ntoday\n").contains("begins «Dear diary,»"));
        assert!(told(b"Dear diary,\ntoday\n").contains("--format"));
        assert!(told(&[7, 0, 1, 2, 255, 254]).contains("binary data"));
        let unknown = TraceOptions { format: Some("foo".into()), ..TraceOptions::default() };
        assert!(error_of(b"x", &unknown).contains("no format «foo»; there are "));
    }

    #[test]
    fn oracle_general_has_no_operations() {
        let mut bytes = Vec::new();
        for index in 0u32..50 {
            bytes.extend((index / 3).to_le_bytes());
            bytes.extend(u64::from(index % 7).to_le_bytes());
            bytes.extend(4096u32.to_le_bytes());
            bytes.extend((if index < 43 { i64::from(index) + 7 } else { -1 }).to_le_bytes());
        }
        assert!(told(&bytes).contains("oracleGeneral"));
    }
}
