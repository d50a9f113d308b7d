//! The binary: its command line goes to `runtime`, which answers the exit code.

use std::{
    ffi::{c_int, c_long},
    process::ExitCode,
};

use mimalloc::MiMalloc;

/// Reconciling is made of many short-lived values on several threads, of which the allocator of the C library takes a third
/// of the processor time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The number of mimalloc's option `purge_delay`.
const PURGE_DELAY: c_int = 15;

/// Milliseconds for which the allocator keeps memory that is free before the machine has it back. By itself it takes a second:
/// whoever sends one large object after the other then has the process hold a hundred MiB that nobody uses (C-204).
const KEPT_FOR: c_long = 10;

fn main() -> ExitCode {
    give_back_soon();
    match orangery_cli::Cli::from_process() {
        Ok(cli) => orangery_runtime::execute(cli),
        Err(code) => code,
    }
}

/// Has the allocator give free memory back after [`KEPT_FOR`], unless the environment says otherwise.
#[expect(unsafe_code, reason = "the allocator is set by its own functions, in C")]
fn give_back_soon() {
    unsafe extern "C" {
        fn mi_option_set_default(option: c_int, value: c_long);
    }
    // SAFETY: it takes two numbers, and refuses an option that there is not.
    unsafe { mi_option_set_default(PURGE_DELAY, KEPT_FOR) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(unsafe_code, reason = "the allocator is asked by its own functions, in C")]
    fn c_204_memory_that_is_free_is_given_back_soon() {
        unsafe extern "C" {
            fn mi_option_get(option: c_int) -> c_long;
        }
        // SAFETY: it takes a number, and answers one.
        let kept_for = || unsafe { mi_option_get(PURGE_DELAY) };
        assert_eq!(kept_for(), 1_000, "of itself");
        give_back_soon();
        assert_eq!(kept_for(), KEPT_FOR);
    }
}
