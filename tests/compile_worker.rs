//! The compiler's process of the suite `wasm`, as `orangery plugin compile-worker` is that of the host.

use std::process::ExitCode;

fn main() -> ExitCode {
    orangery_plugin::compile_worker_main()
}
