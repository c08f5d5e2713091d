//! The `imbrex` program, with the layers that come with it.

/// The allocator of musl takes a lock at each allocation, and is several times slower with many threads.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    imbrex_cli::main()
}
