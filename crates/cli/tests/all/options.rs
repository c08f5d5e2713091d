//! Goal: no option is ignored, and `docs/options.md` is true. Method: the page's first table against the help of every
//! command; each command of its second table is run and refused.

use std::collections::BTreeMap;
use std::process::{Command, Output, Stdio};

const PAGE: &str = include_str!("../../../../docs/options.md");

fn imbrex(words: &[String]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_imbrex"));
    command.args(words).stdin(Stdio::null()).output().expect("the program starts")
}

/// Returns the rows of the table under `head`, each as its cells.
fn table(head: &str) -> Vec<Vec<&'static str>> {
    let rows = PAGE.lines().skip_while(|line| *line != head).skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

/// Returns the words in backquotes.
fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(String::from).collect()
}

/// Adds the options of `command` and of its own commands to `found`.
fn gather(command: &[String], found: &mut BTreeMap<String, Vec<String>>) {
    let output = imbrex(&[command, &["--help".to_string()]].concat());
    let help = String::from_utf8(output.stdout).expect("text");
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> = commands
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    let words = help.lines().filter(|line| line.starts_with(' ')).map(str::trim_start);
    let words = words.filter_map(|line| line.split_whitespace().find(|word| !word.ends_with(',') || word.len() > 3));
    let name = |word: &str| word.split(['[', '=']).next().unwrap_or(word).to_string();
    let mut options: Vec<String> = Vec::new();
    let is_name =
        |word: &String| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    for word in words.filter(|word| word.starts_with("--")).map(name).filter(is_name) {
        if !["--help", "--quiet", "--version"].contains(&word.as_str()) && !options.contains(&word) {
            options.push(word);
        }
    }
    // A command with commands of its own may have options, too.
    if names.is_empty() || !options.is_empty() {
        found.insert(command.join(" "), options);
    }
    names.iter().for_each(|name| gather(&[command, &[name.to_string()]].concat(), found));
}

#[test]
fn the_page_lists_every_option_of_every_command() {
    let mut found = BTreeMap::new();
    gather(&[], &mut found);
    let of_workloads = PAGE.split("The **options of a workload** are").nth(1).expect("they are listed");
    let of_workloads = quoted(of_workloads.split(". [").next().expect("a sentence"));
    let listed: BTreeMap<String, Vec<String>> = table("| command | options |")
        .into_iter()
        .map(|cells| {
            let own = if cells[1].contains("the options of a workload") { of_workloads.clone() } else { Vec::new() };
            (quoted(cells[0])[0].clone(), [own, quoted(cells[1])].concat())
        })
        .collect();
    assert_eq!(listed, found);
}

#[test]
fn an_option_that_does_not_apply_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    std::fs::write(path("trace"), "R,0,512\n").expect("written");
    for (image, drive) in [("zoned", "strict-append"), ("caveat", "caveat-1g")] {
        let words = ["drive", "create", &path(image), "--drive", drive, "-q"].map(String::from);
        assert!(imbrex(&words).status.success());
    }
    let rows = table("| options | apply to | refused, for example |");
    assert!(rows.len() > 15, "{rows:?}");
    for cells in rows {
        let (options, example) = (quoted(cells[0]), quoted(cells[2])[0].clone());
        let word = |word: &str| match word {
            "TRACE" => path("trace"),
            "ZONED" => path("zoned"),
            "CAVEAT" | "DEVICE" => path("caveat"),
            word => word.to_string(),
        };
        let words: Vec<String> = example.split_whitespace().skip(1).map(word).collect();
        let output = imbrex(&words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{example}: {said}");
        let is_named = options.iter().any(|option| option.starts_with("--") && said.contains(option.as_str()))
            || said.contains("required arguments were not provided")
            || said.contains("cannot be used with");
        assert!(is_named, "{example}: {said}");
    }
}
