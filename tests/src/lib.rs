//! Scaffolding for the suites beside this crate, written once: the binary under test, a fresh server and operator for
//! each test, waiting on conditions with a deadline, cases that are folders of YAML.
//!
//! Every test has a process of its own and talks to it over HTTP, as `kubectl` does. Nothing here polls: waiting is a
//! watch, and every wait has a deadline whose failure says what was there instead.

pub mod binary;
pub mod case;
pub mod cluster;
pub mod empty;
pub mod history;
pub mod matching;
pub mod own_template;
pub mod requests;
pub mod usage;
pub mod yaml;

/// The folder of the repository.
pub fn repository() -> &'static std::path::Path {
    let tests = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the tests lie one level below the root")
}

/// Fails the test.
#[expect(clippy::panic, reason = "a panic is how a test fails")]
#[track_caller]
pub fn fail(message: &str) -> ! {
    panic!("{message}")
}
