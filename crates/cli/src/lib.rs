//! The `imbrex` program: it parses the command line, calls the crates below it, and prints results on standard output
//! and everything else on standard error. Exit codes: 0 done, 1 failed, 2 usage, 3 found damage, 4 standard output failed.
//!
//! It is a library so that a program that brings layers of its own gets all commands for them:
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     // imbrex_layer::registry::register(&MY_LAYER) first, then
//!     imbrex_cli::main()
//! }
//! ```

#![deny(clippy::print_stderr, clippy::print_stdout)] // they end the program if their reader leaves: `message` and `output`

#[macro_use]
mod message;

mod args;
mod chart_files;
mod complete;
mod consent;
mod displaced;
mod drive;
mod error;
mod events;
mod explain;
mod file_limit;
mod fit;
mod fs;
mod interrupt;
mod json;
mod lab;
mod list;
mod manual;
mod output;
mod probe;
mod reproduce;
mod serve;
mod service;
mod simulate;
mod sweep;
mod trace;
mod trace_info;
mod usage;
mod validate;

use clap::CommandFactory;
use clap_complete::CompleteEnv;
use imbrex::Failure;

use crate::args::{Cli, Command};
use crate::error::ExitCode;

/// Runs the `imbrex` program with the command line of this process, and returns its exit code: 0 done, 1 failed, 2
/// wrong command line, 3 damage found, 4 standard output failed. A wrong command line, `--help` and `--version` end the
/// process within this function.
pub fn main() -> std::process::ExitCode {
    file_limit::report_as_error();
    // Ends the process if a shell asks for completions.
    CompleteEnv::with_factory(Cli::command).var(manual::COMPLETION_VARIABLE).complete();
    let cli = args::parse(fs::helper::arguments()).unwrap_or_else(|error| usage::leave(&error));
    if let Command::Fs(fs::args::FsCommand::Mount(_)) = &cli.command {
        imbrex_fuse::share_memory();
    }
    interrupt::listen();
    let code = run(&cli).unwrap_or_else(|failure| {
        if output::is_of_check(&failure) {
            return ExitCode::Done;
        }
        message!("imbrex: {failure}");
        ExitCode::from(&failure)
    });
    std::process::ExitCode::from(output::finished(code) as u8)
}

fn run(cli: &Cli) -> Result<ExitCode, Failure> {
    match &cli.command {
        Command::Explain(args) => explain::run(args, cli.quiet),
        Command::Simulate(args) => simulate::run(args, cli.quiet),
        Command::Sweep(args) => sweep::run(args, cli.quiet),
        Command::Trace(command) => trace::run(command, cli.quiet),
        Command::Drive(command) => drive::run(command, cli.quiet),
        Command::Fs(command) => fs::run(command, cli.quiet),
        Command::Serve(args) => serve::run(args, cli.quiet),
        Command::Lab(command) => lab::run(command, cli.quiet),
        Command::Validate(args) => validate::run(args, cli.quiet),
        Command::Fit(args) => fit::run(args, cli.quiet),
        Command::Probe(args) => probe::run(args, cli.quiet),
        Command::List(args) => list::run(args),
        Command::Reproduce(args) => reproduce::run(args, cli.quiet),
        Command::Completions { shell } => manual::completions(*shell),
        Command::Man { folder } => manual::pages(folder, cli.quiet),
    }
}
