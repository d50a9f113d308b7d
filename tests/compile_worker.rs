//! The compiler's process of `wasm.rs`, as `orangery plugin compile-worker` is that of the host.

use std::process::ExitCode;

fn main() -> ExitCode {
    orangery_plugin::compile_worker_main()
}
