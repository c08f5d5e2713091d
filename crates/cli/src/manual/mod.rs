//! Shell completions and man pages, generated from the help texts.

mod examples;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use clap_complete::env::Shells;
use clap_mangen::Man;
use roff::{Roff, bold, roman};

use self::examples::EXAMPLES;
use crate::args::{Cli, EXIT_CODES};
use crate::error::ExitCode;
use crate::output;
use imbrex::Failure;
use imbrex::files::ours::refuse_foreign;
use imbrex::files::replace;

/// Environment variable with which a completion script calls the program.
pub(crate) const COMPLETION_VARIABLE: &str = "IMBREX_COMPLETE";

/// Prints the script that completes command lines in `shell`. It calls the program, so it knows the program's drives,
/// layers and formats.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<ExitCode, Failure> {
    // A program with layers of its own has another name.
    let program = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let program = program.file_name().and_then(OsStr::to_str).unwrap_or("imbrex");
    let shells = Shells::builtins();
    let name = shell.to_string();
    let completer = shells.completer(&name).expect("each shell that the parser accepts has a completer");
    let mut script = Vec::new();
    completer
        .write_registration(COMPLETION_VARIABLE, program, program, program, &mut script)
        .expect("writing into memory does not fail");
    let script = String::from_utf8_lossy(&script);
    match shell {
        clap_complete::Shell::Bash => output::line(with_whole_words(&script, program).trim_end()),
        _ => output::line(script.trim_end()),
    }
    Ok(ExitCode::Done)
}

/// Adds to the script for bash that words are whole. Bash splits words at `:` and `=`, as in `--drive=imr-1t:join=off`,
/// and replaces only the part after the last of these characters.
fn with_whole_words(script: &str, program: &str) -> String {
    let function = format!("_clap_complete_{}", program.replace('-', "_"));
    let wrapper = WHOLE_WORDS.replace("FUNCTION", &function);
    format!("{wrapper}\n{}", script.replace(&format!("-F {function} "), &format!("-F {function}_whole ")))
}

/// Function of bash that joins the parts of words, calls the function of the completions, and removes from its answers
/// the parts that bash keeps.
const WHOLE_WORDS: &str = r#"FUNCTION_whole() {
    local line=${COMP_LINE:0:COMP_POINT} words=() part breaks=${COMP_WORDBREAKS//[^:=]/} kept=
    for part in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        if [[ ${#words[@]} -eq 0 || $line == [[:blank:]]* ]]; then
            words+=("$part")
        else
            words[-1]+=$part
        fi
        line=${line#"${line%%[![:blank:]]*}"}
        line=${line#"$part"}
    done
    local word=${words[-1]}
    [[ -z $breaks || $word != *["$breaks"]* ]] || kept=${word%"${word##*["$breaks"]}"}
    local COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1))
    FUNCTION "$1" "$word" "$3"
    for part in "${!COMPREPLY[@]}"; do
        COMPREPLY[part]=${COMPREPLY[part]#"$kept"}
    done
}"#;

/// Writes a man page for the program and each command into `folder`.
pub(crate) fn pages(folder: &Path, quiet: bool) -> Result<ExitCode, Failure> {
    let failed = |error| Failure::failed(format!("cannot write man pages into {}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    let mut pages = Vec::new();
    render(&program, "", &mut pages).map_err(failed)?;
    // A file of that name that is not a page of ours is not overwritten.
    refuse_foreign(folder, &pages.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>())?;
    for (name, page) in &pages {
        replace(&folder.join(name), page)?;
    }
    if !quiet {
        message!("man pages are in {}: man -l {}", folder.display(), folder.join("imbrex.1").display());
    }
    Ok(ExitCode::Done)
}

/// Adds file name and text of the page of `command` and of each command below it. `path` is the command without `imbrex`,
/// such as `drive create`.
fn render(command: &Command, path: &str, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        let path = format!("{path} {}", below.get_name());
        render(below, path.trim(), pages)?;
    }
    let version = env!("CARGO_PKG_VERSION");
    // The exit codes have a section of their own.
    let man = Man::new(command.clone().after_help(None::<&str>)).source(format!("imbrex {version}")).manual("Imbrex");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    sections(path).to_writer(&mut page)?;
    pages.push((man.get_filename(), page));
    Ok(())
}

/// Returns the sections that the help texts lack.
fn sections(path: &str) -> Roff {
    let mut roff = Roff::new();
    if let Some((_, examples)) = EXAMPLES.iter().find(|(command, _)| *command == path) {
        roff.control("SH", ["EXAMPLES"]);
        for (purpose, line) in *examples {
            roff.text([roman(*purpose)]);
            roff.control("PP", []).control("RS", ["4"]).control("nf", []);
            roff.text([bold(format!("imbrex {line}"))]);
            roff.control("fi", []).control("RE", []).control("PP", []);
        }
    }
    roff.control("SH", ["EXIT STATUS"]);
    for line in EXIT_CODES.lines().skip(1) {
        let (code, meaning) = line.trim().split_once("  ").expect("a line has a code and its meaning");
        roff.control("TP", ["4"]);
        roff.text([bold(code)]);
        roff.text([roman(meaning)]);
    }
    if !path.is_empty() {
        roff.control("SH", ["SEE ALSO"]);
        roff.text([bold("imbrex"), roman("(1)")]);
    }
    roff
}

#[cfg(test)]
mod tests {

    use super::*;

    /// Adds the paths of the commands without commands below them.
    fn leaves(command: &Command, path: &str, found: &mut Vec<String>) {
        let path = format!("{path} {}", command.get_name());
        match command.has_subcommands() {
            true => command.get_subcommands().for_each(|below| leaves(below, &path, found)),
            false => found.push(path.trim_start_matches(" imbrex ").to_string()),
        }
    }

    #[test]
    fn every_command_has_examples_that_it_accepts() {
        let mut commands = Vec::new();
        leaves(&Cli::command(), "", &mut commands);
        // The page of `man` shows its use.
        commands.retain(|command| command != "man");
        let mut with_examples = EXAMPLES.map(|(command, _)| command.to_string()).to_vec();
        commands.sort_unstable();
        with_examples.sort_unstable();
        assert_eq!(with_examples, commands);
        for (command, examples) in EXAMPLES {
            assert!(!examples.is_empty(), "{command}");
            for (purpose, line) in examples {
                assert!(purpose.ends_with(':'), "{purpose}");
                // `drive fault FILE unreadable` has the image between its words.
                assert!(command.split(' ').all(|word| line.split(' ').any(|other| other == word)), "{command}: {line}");
                let words = std::iter::once("imbrex").chain(line.split_whitespace());
                crate::args::parse(words).unwrap_or_else(|error| panic!("{line}: {error}"));
            }
        }
    }
}
