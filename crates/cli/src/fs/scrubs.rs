//! Result and time of the last scrub, kept across mounts in an extended attribute of the root directory.

use imbrex_fs::core::SetAttribute;
use imbrex_fs::namespace::ROOT;
use imbrex_fs::{Fs, FsError};
use serde_json::{Value, json};

/// Name of the attribute. Only root can access its namespace.
const ATTRIBUTE: &[u8] = b"trusted.imbrex.scrub";

/// Returns the summary of a scrub's result that is kept.
pub(super) fn summary(found: &Value) -> Value {
    let count = |key: &str| found[key].as_array().map_or(0, Vec::len);
    json!({
        "is_whole": found["is_whole"],
        "damaged": count("lost") + count("findings"),
        "repaired_rows": found["repaired_rows"].as_u64().unwrap_or(0),
    })
}

/// Stores the summary `found` with the current time.
pub(super) async fn note(fs: &Fs, found: &Value) -> Result<(), FsError> {
    let mut kept = known(found);
    kept["unix_time_s"] = json!(fs.time_ns() / 1_000_000_000);
    fs.set_attribute(ROOT, ATTRIBUTE, kept.to_string().as_bytes(), SetAttribute::Any).await
}

/// Returns the summary of the last scrub; `Null` if there was none.
pub(super) fn last(fs: &Fs) -> Value {
    let kept = fs.attribute(ROOT, ATTRIBUTE).ok();
    kept.and_then(|kept| serde_json::from_slice(&kept).ok()).map_or(Value::Null, |kept| known(&kept))
}

/// Returns the fields of a kept summary that this program knows. Root may have set the attribute to anything.
fn known(kept: &Value) -> Value {
    json!({
        "unix_time_s": kept["unix_time_s"].as_i64(),
        "is_whole": kept["is_whole"] == true,
        "damaged": kept["damaged"].as_u64().unwrap_or(0),
        "repaired_rows": kept["repaired_rows"].as_u64().unwrap_or(0),
    })
}

/// Returns the summary `last` in words, `now_s` seconds after 1970. Empty if there was no scrub.
pub(super) fn words(last: &Value, now_s: i64) -> String {
    let Some(time_s) = last["unix_time_s"].as_i64() else { return String::new() };
    let ago = match (now_s - time_s).max(0) {
        seconds @ 0..120 => format!("{seconds} s ago"),
        seconds @ 120..7_200 => format!("{} min ago", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h ago", seconds / 3_600),
        seconds => format!("{} days ago", seconds / 86_400),
    };
    let found = match (last["is_whole"] == true, last["damaged"].as_u64().unwrap_or(0)) {
        (true, _) => "whole".to_string(),
        (false, damaged) => format!("{damaged} places damaged"),
    };
    match last["repaired_rows"].as_u64().unwrap_or(0) {
        0 => format!("{ago}: {found}"),
        rows => format!("{ago}: {found}, {rows} rows repaired"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_when_it_was_and_what_it_found() {
        let last = |is_whole, damaged, rows| json!({ "unix_time_s": 1_000_000, "is_whole": is_whole, "damaged": damaged, "repaired_rows": rows });
        assert_eq!(words(&last(true, 0, 0), 1_000_005), "5 s ago: whole");
        assert_eq!(words(&last(false, 3, 2), 1_000_000 + 3 * 86_400), "3 days ago: 3 places damaged, 2 rows repaired");
        assert_eq!(words(&Value::Null, 5), "");
        let found = json!({ "is_whole": false, "lost": [1, 2], "repaired_rows": 4 });
        assert_eq!(summary(&found), json!({ "is_whole": false, "damaged": 2, "repaired_rows": 4 }));
    }
}
