//! The processes that compile and call components for the suite `wasm`, as `orangery plugin compile-worker` and `orangery plugin
//! call-worker` are those of the host; and processes that only pretend to be such.

mod hostile;

use std::{env, process::ExitCode};

use mimalloc::MiMalloc;

/// As that of the binary, whose confined processes have to do with the system calls that it makes.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().collect();
    let hostile = arguments.iter().find_map(|argument| argument.strip_prefix("hostile="));
    match (arguments.last().map(String::as_str), hostile) {
        (Some("call-worker"), Some(what)) => hostile::call(what),
        (Some("call-worker"), None) => orangery_plugin::call_worker_main(),
        (Some("compile-counting-worker"), _) => orangery_plugin::compile_counting_worker_main(),
        _ => orangery_plugin::compile_worker_main(),
    }
}
