//! A sample of mutants, all of them behind switches in one build.
//!
//! `cargo mutants` builds once for each mutant, which takes days where thousands of them are listed. This draws some of
//! its list, writes each into the sources as `if crate::mutant(17) { what it makes } else { what was there }`, and plays
//! the tests with one of them on. `sample.sh` does all of it; `docs/mutants.md` says what has come of it.

mod draw;
mod outcome;
mod play;
mod reach;
mod refused;
mod several;
mod suite;
mod switch;

use std::path::PathBuf;

use clap::Parser;

#[derive(Parser)]
enum Command {
    /// Draws of what `cargo mutants --list --json` has printed: sorted by the digest of the seed and the name.
    Draw {
        list: PathBuf,
        #[arg(long)]
        seed: String,
        #[arg(long)]
        count: usize,
        /// Conditions alone: operators, negations and guards of arms.
        #[arg(long)]
        conditions: bool,
        /// Where the plan is written; what it has stays, and numbers go on.
        #[arg(long)]
        plan: PathBuf,
    },
    /// Writes the switches of a plan into the sources as they are committed.
    Switch { plan: PathBuf },
    /// Marks what did not compile, read from what `cargo --message-format json` has printed.
    Refused { plan: PathBuf, messages: PathBuf },
    /// Plays each test alone, without a mutant, and adds a line to the file for each: which mutants it reaches.
    Reach {
        reached: PathBuf,
        /// `FOLDER` of a crate for its unit tests, or `FOLDER:SUITE`.
        #[arg(long = "suite", required = true)]
        suites: Vec<String>,
        /// Tests with this in their names are left out.
        #[arg(long = "skip")]
        skipped: Vec<String>,
    },
    /// Plays what compiles with the tests that reach it, the shortest first, until one catches it, and adds a line to the table
    /// for each.
    Play {
        plan: PathBuf,
        reached: PathBuf,
        table: PathBuf,
        /// How many of those that compile, in the order of the plan.
        #[arg(long, default_value_t = usize::MAX)]
        count: usize,
        /// Numbers of the plan, instead of all.
        #[arg(long, value_delimiter = ',')]
        only: Vec<usize>,
    },
}

fn main() {
    match Command::parse() {
        Command::Draw { list, seed, count, conditions, plan } => draw::draw(&list, &seed, count, conditions, &plan),
        Command::Switch { plan } => switch::switch(&plan),
        Command::Refused { plan, messages } => refused::refused(&plan, &messages),
        Command::Reach { reached, suites, skipped } => reach::reach(&suites, &skipped, &reached),
        Command::Play { plan, reached, table, count, only } => {
            let chosen = play::chosen(&plan, count, &only);
            play::play(chosen, &reached, &table);
        }
    }
}
