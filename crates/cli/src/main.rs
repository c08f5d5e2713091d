//! The `imbrex` program, with the layers that come with it.

/// Allocator of the static program, in place of that of musl.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    imbrex_cli::main()
}
