//! The benchmark: one command that prints a table of figures. It asserts nothing.
//!
//! Server and operator run as the binary of a release build, which is built first, so that processor time and memory
//! are theirs alone.

mod calls;
mod engines;
mod figures;
mod latency;
mod load;
mod restart;
mod triples;

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use orangery_tests::binary::Binary;

use crate::figures::Figures;

/// Sizes of the runs with many triples.
const SIZES: [usize; 2] = [100, 1000];

/// The binary of the host, as this package builds it.
const BINARY: &str = "orangery-under-test";

const USAGE: &str = "usage: bench [SIZE…]   sizes of the runs with many triples [default: 100 1000]";

fn main() -> ExitCode {
    let sizes: Result<Vec<usize>, _> = env::args().skip(1).map(|argument| argument.parse()).collect();
    match sizes {
        Ok(sizes) if sizes.is_empty() => measure(&SIZES),
        Ok(sizes) => measure(&sizes),
        Err(_) => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn measure(sizes: &[usize]) -> ExitCode {
    build();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    runtime.block_on(async {
        binary().prepare().await;
        let mut figures = Figures::begin();
        restart::starts(&mut figures).await;
        calls::measure(&mut figures).await;
        engines::measure(&mut figures).await;
        latency::hello_world(&mut figures).await;
        latency::wake_up(&mut figures).await;
        let mut costs = Vec::new();
        for size in sizes {
            costs.push(triples::measure(*size, &mut figures).await);
        }
        triples::ratio(&costs, &mut figures);
        restart::with_finished_triples(sizes.iter().copied().max().unwrap_or_default(), &mut figures).await;
    });
    ExitCode::SUCCESS
}

/// Builds the binary, so that what is measured is what the sources say. As a part of this package it is made of the same
/// builds of its dependencies as this program.
fn build() {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = orangery_tests::repository().join("Cargo.toml");
    let built = Command::new(cargo)
        .args(["build", "--release", "-p", "orangery-tests", "--bin", BINARY, "--manifest-path"])
        .arg(manifest)
        .status();
    assert!(built.is_ok_and(|status| status.success()), "the binary cannot be built");
}

/// The binary of the release build; all runs but the cold one share the compiled components.
fn binary() -> Binary {
    binary_with(&release())
}

fn binary_with(cache: &Path) -> Binary {
    Binary::new(&release().join(BINARY).to_string_lossy(), &cache.to_string_lossy())
}

/// The folder of the release build, beside the one this program lies in.
fn release() -> PathBuf {
    let program = env::current_exe().expect("the program knows its path");
    program.ancestors().nth(2).unwrap_or(Path::new(".")).join("release")
}
