//! The command line of `orangery_release::pack`, which `release/build` calls.

use std::{
    io::{Write as _, stderr, stdout},
    path::PathBuf,
    process::ExitCode,
};

use clap::Parser;
use orangery_release::{Contents, Digests, Platform, pack};

/// Packs a release from what `release/build` built.
#[derive(Debug, Parser)]
struct Arguments {
    /// The version, which is that of the chart
    #[arg(long)]
    version: String,
    /// Where the image will be, without a tag
    #[arg(long)]
    repository: String,
    /// Where the sources are
    #[arg(long)]
    source: String,
    /// The commit that was built
    #[arg(long)]
    commit: String,
    /// The name of the machine or service that builds, as a URI
    #[arg(long)]
    builder: String,
    /// The time of the commit in seconds since 1970
    #[arg(long, env = "SOURCE_DATE_EPOCH")]
    epoch: u64,
    /// An architecture with its binary and its folder of compiled components; may be given for several
    #[arg(long = "platform", value_name = "ARCHITECTURE,BINARY,FOLDER", required = true, value_parser = platform)]
    platforms: Vec<Platform>,
    /// The folder of the chart
    #[arg(long)]
    chart: PathBuf,
    /// A file of certificates of authorities
    #[arg(long)]
    certificates: PathBuf,
    /// A file of what `cargo metadata` says
    #[arg(long)]
    metadata: PathBuf,
    /// A file go.mod of components; may be given for several
    #[arg(long = "go-module")]
    go_modules: Vec<PathBuf>,
    /// A file of the private key that signs
    #[arg(long)]
    key: Option<PathBuf>,
    /// The folder that gets the release
    #[arg(long)]
    out: PathBuf,
}

fn platform(text: &str) -> Result<Platform, String> {
    match text.split(',').collect::<Vec<_>>().as_slice() {
        [architecture, binary, cache] => {
            Ok(Platform { architecture: (*architecture).to_owned(), binary: binary.into(), cache: cache.into() })
        }
        _ => Err("give three values with commas between them, as in amd64,target/release/orangery,cache".to_owned()),
    }
}

fn main() -> ExitCode {
    let Arguments {
        version,
        repository,
        source,
        commit,
        builder,
        epoch,
        platforms,
        chart,
        certificates,
        metadata,
        go_modules,
        key,
        out,
    } = Arguments::parse();
    let contents = Contents {
        version,
        repository,
        source,
        commit,
        builder,
        epoch,
        platforms,
        chart,
        certificates,
        metadata,
        go_modules,
        key,
        out,
    };
    let (told, code) = match pack(&contents) {
        Ok(Digests { image, chart }) => (writeln!(stdout(), "image {image}\nchart {chart}"), ExitCode::SUCCESS),
        Err(error) => (writeln!(stderr(), "error: {error}"), ExitCode::FAILURE),
    };
    told.map_or(ExitCode::FAILURE, |()| code)
}
