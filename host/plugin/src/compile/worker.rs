//! The compiler's process: confines itself before it reads a byte.

use std::{
    io::{self, Read, Write},
    process::ExitCode,
};

use wasmtime::Engine;

use super::CPU_SECONDS;
use crate::{
    confine::{ProcessLimits, confine},
    cost::CodeCounts,
    error::Error,
    inspect::MOST_BYTES,
    sandbox::{MemoryShares, settings},
};

/// Compiles the component of the standard input to the standard output. Call it from `main`, before any thread is started.
///
/// The exit code is 0, or 1 with one sentence on the standard error.
pub fn compile_worker_main() -> ExitCode {
    compiled(CodeCounts::Nothing)
}

/// The same to code that counts its steps.
pub fn compile_counting_worker_main() -> ExitCode {
    compiled(CodeCounts::Fuel)
}

fn compiled(counts: CodeCounts) -> ExitCode {
    match compile(counts) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            // Nobody else can be told when nobody reads it.
            let _unread = writeln!(io::stderr(), "{sentence}");
            ExitCode::FAILURE
        }
    }
}

fn compile(counts: CodeCounts) -> Result<(), String> {
    let limits = ProcessLimits { cpu_seconds: CPU_SECONDS, memory: MemoryShares::of_machine().compiler };
    confine(limits).map_err(|error| format!("the compiler could not confine itself: {error}"))?;
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(MOST_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("the component could not be read: {error}"))?;
    let code = precompiled(counts, &bytes)?;
    let mut out = io::stdout().lock();
    out.write_all(&code).and_then(|()| out.flush()).map_err(|error| format!("the code could not be written: {error}"))
}

/// Compiles a component in this process.
///
/// # Errors
/// [`Error::Compile`]
pub(crate) fn compile_in_process(counts: CodeCounts, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    precompiled(counts, bytes).map_err(|why| Error::Compile { why })
}

fn precompiled(counts: CodeCounts, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let engine = Engine::new(&settings(counts)).map_err(|error| format!("the engine does not start: {error:#}"))?;
    engine.precompile_component(bytes).map_err(|error| format!("{error:#}"))
}
