//! Scaffolding for the suites beside this crate.
