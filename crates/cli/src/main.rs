//! The `imbrex` program, with the layers that come with it.

fn main() -> std::process::ExitCode {
    imbrex_cli::main()
}
