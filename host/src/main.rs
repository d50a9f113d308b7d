//! The binary: its command line goes to `runtime`, which answers the exit code.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Reconciling is made of many short-lived values on several threads, of which the allocator of the C library takes a third
/// of the processor time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    match orangery_cli::Cli::from_process() {
        Ok(cli) => orangery_runtime::execute(cli),
        Err(code) => code,
    }
}
