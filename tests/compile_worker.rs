//! The compiler's process of the suite `wasm`, as `orangery plugin compile-worker` is that of the host.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// As that of the binary, whose confined process has to do with the system calls that it makes.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    orangery_plugin::compile_worker_main()
}
