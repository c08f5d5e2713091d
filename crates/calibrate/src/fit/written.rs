//! Writes a fitted profile as TOML, with a comment at each value that was fitted.

/// Returns the profile's text with the overrides applied, each marked as fitted.
pub(super) fn written(base: &toml::Table, overrides: &[(String, String)], name: &str, file: &str) -> String {
    let mut table = base.clone();
    for (key, value) in overrides {
        let value: toml::Table = format!("value = {value}").parse().expect("a fitted value is a number or a list");
        set(&mut table, key, value["value"].clone());
    }
    let body = toml::to_string(&table).expect("it is the table of a profile");
    let mut text = format!("# {name}, fitted by `imbrex fit` to {file}: the values so marked are not the maker's.\n");
    let mut section = String::new();
    for line in body.lines() {
        if let Some(head) = line.strip_prefix('[') {
            section = head.trim_matches(['[', ']']).to_string();
        }
        let key = line.split(" = ").next().unwrap_or("");
        let whole = if section.is_empty() { key.to_string() } else { format!("{section}.{key}") };
        let marked =
            overrides.iter().any(|(fitted, _)| *fitted == whole || (*fitted == section && line.starts_with('[')));
        text.push_str(line);
        text.push_str(if marked { " # fitted\n" } else { "\n" });
    }
    text
}

fn set(table: &mut toml::Table, key: &str, value: toml::Value) {
    match key.split_once('.') {
        None => {
            table.insert(key.into(), value);
        }
        Some((head, rest)) => {
            let inner = table.entry(head).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            if let Some(inner) = inner.as_table_mut() {
                set(inner, rest, value);
            }
        }
    }
}
