//! Goal: completions offer the names of the registries, and layers only for drives that they fit. Method: the function of
//! the script for bash is called, or Tab pressed on a terminal; the names come from `imbrex list`.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Calls the completion function of bash for the words, of which the last is completed.
const COMPLETE: &str = r#"
PATH=$1:$PATH; shift
source <(imbrex completions bash)
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9 COMP_LINE="$*"
COMP_POINT=${#COMP_LINE}
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

#[test]
fn bash_completes_words_that_it_splits() {
    if Command::new("script").arg("--version").output().is_err() {
        println!("skipped: Tab in a terminal (no program script)");
        return;
    }
    let lines = [
        ("imbrex simulate demo --drive=imr-1t+track-f", "lip"),
        ("imbrex simulate demo --drive  imr-1t+imr-rmw:jo", "in="),
        ("imbrex serve --drive=emulated-smr-1+s-blocks:policy=fifo,siz", "e="),
        ("imbrex drive create x -d emulated-smr-1+s-bl", "ocks"),
    ];
    let folder = Path::new(env!("CARGO_BIN_EXE_imbrex")).parent().expect("a program lies in a folder");
    let mut typed = format!("PATH={}:$PATH\nsource <(imbrex completions bash)\n", folder.display());
    for (line, _) in lines {
        // Tab completes the line; Ctrl-A goes to its beginning, where `echo` makes it harmless.
        typed.push_str(&format!("{line}\t\u{1}echo completed: \n"));
    }
    typed.push_str("exit\n");
    let mut command = Command::new("script");
    command.args(["-qec", "bash --norc --noprofile -i", "/dev/null"]).env("TERM", "dumb").env("COLUMNS", "400");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script starts");
    child.stdin.take().expect("a pipe").write_all(typed.as_bytes()).expect("bash reads");
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    for (line, rest) in lines {
        let whole = format!("\ncompleted: {}{rest}", line.replace("  ", " "));
        assert!(said.contains(&whole), "{line}: {said}");
    }
}
