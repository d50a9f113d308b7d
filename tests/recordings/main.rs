//! Makes the cases of `tests/golden` of a folder of raw recordings of the original.

use std::{
    fs,
    io::{self, Write as _},
    path::PathBuf,
};

use clap::Parser;
use orangery_tests::recording::{folder, raw};

/// Makes the cases of tests/golden of a folder of raw recordings of the original.
#[derive(Parser)]
struct Arguments {
    /// A folder with a folder for each case
    recordings: PathBuf,
}

fn main() -> io::Result<()> {
    let Arguments { recordings } = Arguments::parse();
    for entry in fs::read_dir(recordings)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            raw::convert(&entry.path(), &folder(&entry.file_name().to_string_lossy()))?;
            writeln!(io::stdout(), "{}", entry.file_name().display())?;
        }
    }
    Ok(())
}
