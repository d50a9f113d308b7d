//! The binary: its command line goes to `runtime`, which answers the exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    orangery_runtime::execute(orangery_cli::Cli::from_process())
}
