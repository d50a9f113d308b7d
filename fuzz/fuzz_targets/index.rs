//! See `parsers.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| orangery_fuzz::run("index", bytes));
