//! The program `imbrex` with one more layer.

fn main() -> std::process::ExitCode {
    imbrex_layer::registry::register(&own_layer::INFO).expect("no other layer has its name");
    imbrex_cli::main()
}
