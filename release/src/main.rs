//! The command line of `orangery_release::pack`, which `release/build` calls.

use std::{
    io::{Write as _, stderr, stdout},
    process::ExitCode,
};

use clap::Parser;
use orangery_release::{Contents, Digests, pack};

/// Packs a release from what `release/build` built.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    contents: Contents,
}

fn main() -> ExitCode {
    let Arguments { contents } = Arguments::parse();
    let (told, code) = match pack(&contents) {
        Ok(Digests { image, chart }) => (writeln!(stdout(), "image {image}\nchart {chart}"), ExitCode::SUCCESS),
        Err(error) => (writeln!(stderr(), "error: {error}"), ExitCode::FAILURE),
    };
    told.map_or(ExitCode::FAILURE, |()| code)
}
