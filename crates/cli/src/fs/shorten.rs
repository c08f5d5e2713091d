//! Shortens a JSON document to a given length: the status of a mounted file system, which must fit into an extended
//! attribute.
//!
//! Long texts lose their middle, and long lists their end. The document says so in its field `shortened`. Numbers, and
//! texts of at most 64 bytes, stay as they are; so do the names of fields. A document with a fixed number of fields
//! therefore always fits.

use serde_json::Value;

/// Limits of texts in bytes, and of lists in entries, in the order in which they are tried.
const LIMITS: [(usize, usize); 6] = [(4096, 256), (1024, 64), (256, 64), (64, 64), (64, 8), (64, 1)];

/// Returns `document`, shortened if its text is longer than `bytes_max` bytes. Of the limits above, the first with
/// which the text fits is used; if none is enough, the last.
pub(super) fn shortened(document: Value, bytes_max: usize) -> Value {
    if document.to_string().len() <= bytes_max {
        return document;
    }
    let mut shorter = document;
    for (text_bytes, entries) in LIMITS {
        shorten(&mut shorter, text_bytes, entries);
        shorter["shortened"] = true.into();
        if shorter.to_string().len() <= bytes_max {
            break;
        }
    }
    shorter
}

fn shorten(value: &mut Value, text_bytes: usize, entries: usize) {
    match value {
        Value::String(text) if text.len() > text_bytes => *text = without_middle(text, text_bytes),
        Value::Array(list) => {
            list.truncate(entries);
            list.iter_mut().for_each(|entry| shorten(entry, text_bytes, entries));
        }
        Value::Object(map) => map.values_mut().for_each(|entry| shorten(entry, text_bytes, entries)),
        _ => {}
    }
}

/// Returns the beginning and the end of `text`, with an ellipsis in between: at most `bytes` bytes.
fn without_middle(text: &str, bytes: usize) -> String {
    let half = bytes.saturating_sub("…".len()) / 2;
    let (head, tail) = (text.floor_char_boundary(half), text.ceil_char_boundary(text.len() - half));
    format!("{}…{}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_loses_its_middle_at_whole_characters() {
        assert_eq!(without_middle("/a/long/path/to/drive", 13), "/a/lo…drive");
        for bytes in 3..40 {
            let short = without_middle(&"äöü€".repeat(20), bytes);
            assert!(short.len() <= bytes && short.contains('…'), "{short}");
        }
    }

    #[test]
    fn a_document_that_fits_stays_as_it_is() {
        let document = json!({ "devices": ["/dev/sda"], "blocks": 7 });
        assert_eq!(shortened(document.clone(), 40), document);
    }

    /// The status has some 100 numbers, 20 texts and 12 lists. Here are more of each, all as long as they can be.
    #[test]
    fn the_largest_status_fits_into_an_extended_attribute() {
        let worst = "\u{1}".repeat(4096);
        let list: Vec<Value> =
            (0..40).map(|_| json!({ "device": worst, "placement": worst, "used": u64::MAX })).collect();
        let status: serde_json::Map<String, Value> = (0..300)
            .map(|number| match number {
                0..200 => json!(u64::MAX),
                200..250 => json!(worst),
                250..275 => json!(list),
                _ => json!(vec!["\u{1}".repeat(9); 3000]),
            })
            .enumerate()
            .map(|(number, value)| (format!("a_long_name_of_a_field_{number}"), value))
            .collect();
        let short = shortened(Value::Object(status), super::super::stat::ANSWER_BYTES_MAX).to_string();
        assert!(short.len() <= super::super::stat::ANSWER_BYTES_MAX, "{}", short.len());
    }

    #[test]
    fn every_document_fits_and_keeps_numbers_and_short_texts() {
        let uuid = "6f3b0a52-7d0e-4c1c-9f6e-2f5d5a3c8b1e";
        for (count, bytes) in [(300, 4000), (3, 100_000), (100_000, 3)] {
            let list = vec![json!({ "device": "\u{1}".repeat(bytes), "state": "lost" }); count];
            let document = json!({ "uuid": uuid, "copies": list, "why": "ä".repeat(bytes), "process": 4711 });
            let short = shortened(document, 8000);
            assert!(short.to_string().len() <= 8000, "{count} of {bytes}: {}", short.to_string().len());
            assert!(short["uuid"] == uuid && short["process"] == 4711 && short["shortened"] == true, "{short}");
            assert_eq!(short["copies"][0]["state"], "lost");
        }
    }
}
