//! Goal: completions offer the names of the registries, and layers only for drives that they fit. Method: bash runs the
//! installed script as it does on Tab; the names come from `imbrex list`.

use std::path::Path;
use std::process::Command;

/// Calls the completion function of bash for the words, of which the last is completed.
const COMPLETE: &str = r#"
PATH=$1:$PATH; shift
source <(imbrex completions bash)
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9
"$(complete -p imbrex | grep -o '_clap[a-z_]*')" imbrex "${COMP_WORDS[COMP_CWORD]}" before 2>/dev/null
printf '%s\n' "${COMPREPLY[@]}"
"#;

fn completed(words: &[&str]) -> Vec<String> {
    let folder = Path::new(env!("CARGO_BIN_EXE_imbrex")).parent().expect("a program lies in a folder");
    let mut command = Command::new("bash");
    command.current_dir("/").args(["-c", COMPLETE, "bash"]).arg(folder).arg("imbrex").args(words);
    let output = command.output().expect("bash starts");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_string).collect()
}

/// Returns a cell of each row of `imbrex list`.
fn listed(what: &str, key: &str) -> Vec<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_imbrex"));
    let output = command.args(["list", what, "--json"]).output().expect("the program starts");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = document[what].as_array().expect("a list of rows");
    rows.iter().map(|row| row[key].as_str().expect("a name").to_string()).collect()
}

#[test]
fn drives_formats_and_experiments_are_completed() {
    let beginning =
        |names: Vec<String>, start: &str| names.into_iter().filter(|name| name.starts_with(start)).collect();
    let emulated: Vec<String> = beginning(listed("profiles", "profile"), "emulated-smr-");
    assert_eq!(emulated.len(), 3);
    assert_eq!(completed(&["simulate", "demo", "--drive", "emulated-smr-"]), emulated);
    assert_eq!(completed(&["serve", "-d", "emulated-smr-"]), emulated);
    let formats: Vec<String> = beginning(listed("formats", "format"), "ms");
    assert_eq!(completed(&["simulate", "trace", "--format", "ms"]), formats);
    let experiments: Vec<String> = beginning(listed("experiments", "experiment"), "cassuto/");
    assert!(experiments.len() > 3);
    assert_eq!(completed(&["reproduce", "cassuto/"]), experiments);
}

#[test]
fn only_layers_that_fit_the_drive_are_offered() {
    let offered = completed(&["simulate", "demo", "--drive", "imr-1t+"]);
    assert!(offered.contains(&"imr-1t+track-flip".to_string()), "{offered:?}");
    assert!(!offered.contains(&"imr-1t+media-cache".to_string()), "a layer of shingled disks: {offered:?}");
    for drive in &offered {
        let mut command = Command::new(env!("CARGO_BIN_EXE_imbrex"));
        let words = ["simulate", "rw=write,bs=1m,number_ios=1", "--no-baseline", "--drive", drive];
        let output = command.args(words).output().expect("the program starts");
        assert!(output.status.success(), "{drive}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
