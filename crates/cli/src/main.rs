//! The `imbrex` program: words in, work done by the crates below, results on standard output, all else on standard
//! error. Exit codes: 0 done, 1 failed, 2 usage, 3 found damage.

mod args;
mod chart;
mod drive;
mod error;
mod files;
mod fit;
mod human;
mod interrupt;
mod list;
mod manual;
mod output;
mod probe;
mod progress;
mod report;
mod reproduce;
#[cfg(test)]
mod sample;
mod serve;
mod simulate;
mod trace;
mod trace_info;
mod validate;
mod workload;

use clap::Parser;

use crate::args::{Cli, Command};
use crate::error::{ExitCode, Failure};

fn main() -> std::process::ExitCode {
    let cli = Cli::parse();
    interrupt::listen();
    let code = match run(&cli) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("imbrex: {failure}");
            failure.code
        }
    };
    std::process::ExitCode::from(code as u8)
}

fn run(cli: &Cli) -> Result<ExitCode, Failure> {
    match &cli.command {
        Command::Simulate(args) => simulate::run(args, cli.quiet),
        Command::Trace(command) => trace::run(command, cli.quiet),
        Command::Drive(command) => drive::run(command, cli.quiet),
        Command::Serve(args) => serve::run(args, cli.quiet),
        Command::Validate(args) => validate::run(args, cli.quiet),
        Command::Fit(args) => fit::run(args, cli.quiet),
        Command::Probe(args) => probe::run(args, cli.quiet),
        Command::List(args) => list::run(args),
        Command::Reproduce(args) => reproduce::run(args, cli.quiet),
        Command::Completions { shell } => manual::completions(*shell),
        Command::Man { folder } => manual::pages(folder),
    }
}
