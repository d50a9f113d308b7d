//! The benchmark: one command that prints a table of figures. It asserts nothing.
//!
//! Server and operator run as the binary of a release build, which is built first, so that processor time and memory
//! are theirs alone.

mod bombs;
mod calls;
mod charts;
mod drift;
mod engines;
mod explain;
mod figures;
mod gates;
mod latency;
mod limit;
mod load;
mod place;
mod plans;
mod restart;
mod silent;
mod sizes;
mod triples;

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use clap::{Parser, ValueEnum};
use orangery_tests::{binary::Binary, kube::Programs};

use crate::{figures::Figures, place::Place};

/// The binary of the host, as this package builds it.
const BINARY: &str = "orangery-under-test";

/// Prints a table of figures.
#[derive(Parser)]
struct Arguments {
    /// Sizes of the runs with many triples; the largest is that of the restart
    #[arg(default_values_t = [100, 1000])]
    sizes: Vec<usize>,
    /// What is measured
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Part::value_variants().to_vec())]
    parts: Vec<Part>,
    /// Items of 1 MB each whose proposals are under way at once
    #[arg(long, value_delimiter = ',', default_values_t = [25, 100, 300])]
    items: Vec<usize>,
    /// Objects whose drift is looked for
    #[arg(long, default_value_t = 10_000)]
    objects: usize,
    /// Installations of the neighbour of a bomb, alone and beside it
    #[arg(long, default_value_t = 400)]
    hellos: usize,
    /// Bombs whose names have this text
    #[arg(long, default_value = "")]
    bomb: String,
    /// On a real kube-apiserver, built by tests/kube/build.sh: latency, conditions, triples and namespaces
    #[arg(long)]
    kube: bool,
}

/// A part of the table.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Starts of `up`.
    Starts,
    /// Calls of components.
    Calls,
    /// Template engines.
    Engines,
    /// Many Helm releases at once.
    Charts,
    /// Everything that compiles, beside many Helm releases, within the chart's limit of memory; needs root.
    Limit,
    /// How long one thing takes.
    Latency,
    /// Gate expressions of deploy items.
    Conditions,
    /// Many triples at once.
    Triples,
    /// The same in one namespace and in ten.
    Namespaces,
    /// A restart beside finished triples.
    Restart,
    /// Clusters that say nothing.
    Silent,
    /// What neighbours notice of bombs.
    Bombs,
    /// Many large items at once.
    Proposals,
    /// Many objects of an item, and what finished releases leave in the store.
    Sizes,
    /// Drift of many objects.
    Drift,
    /// Plans of a large tree, and what approvals and records cost.
    Plans,
    /// Explanations of an object of a large chart.
    Explain,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    build();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    runtime.block_on(measure(&arguments));
    ExitCode::SUCCESS
}

async fn measure(arguments: &Arguments) {
    binary().prepare().await;
    let mut figures = Figures::begin();
    let place = if arguments.kube { Place::Kube(Programs::find()) } else { Place::Embedded };
    let largest = arguments.sizes.iter().copied().max().unwrap_or_default();
    for part in &arguments.parts {
        match part {
            Part::Latency => {
                latency::hello_world(&place, &mut figures).await;
                latency::wake_up(&place, &mut figures).await;
            }
            Part::Conditions => {
                gates::classify(&mut figures);
                gates::wake_up(&place, &mut figures).await;
                gates::watches(&place, &mut figures).await;
            }
            Part::Triples => {
                let mut costs = Vec::new();
                for size in &arguments.sizes {
                    costs.push(triples::measure(&place, *size, &mut figures).await);
                }
                triples::ratio(&place, &costs, &mut figures);
                triples::with_engine(&place, "GoTemplate", largest, &mut figures).await;
            }
            Part::Drift => drift::measure(&place, arguments.objects, &mut figures).await,
            Part::Bombs => bombs::measure(&place, (arguments.hellos, &arguments.bomb), &mut figures).await,
            Part::Proposals => {
                for items in &arguments.items {
                    sizes::proposals_under_way(&place, *items, &mut figures).await;
                }
            }
            Part::Sizes => sizes::measure(&place, &mut figures).await,
            Part::Silent => silent::measure(&place, &mut figures).await,
            Part::Namespaces => triples::namespaces(&place, &mut figures).await,
            Part::Starts
            | Part::Calls
            | Part::Engines
            | Part::Charts
            | Part::Limit
            | Part::Restart
            | Part::Explain
            | Part::Plans
                if arguments.kube => {}
            Part::Plans => plans::measure(largest, &mut figures).await,
            Part::Starts => restart::starts(&mut figures).await,
            Part::Calls => calls::measure(&mut figures).await,
            Part::Engines => engines::measure(&mut figures).await,
            Part::Charts => charts::releases(&mut figures).await,
            Part::Explain => explain::measure(&mut figures).await,
            Part::Limit => limit::everything_compiles(&mut figures).await,
            Part::Restart => restart::with_finished_triples(largest, &mut figures).await,
        }
    }
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
