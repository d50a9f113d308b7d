//! `orangery plugin replay`: recorded calls, made again with another component.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::folder_of;
use crate::{
    authoring::{
        cases::replay::{self, ReplayOutcome, ReplayReport},
        loaded::LoadedComponent,
    },
    command_error::CommandError,
    exit::Exit,
    form::OutputFormat,
    terminal::{Ink, Paint, Terminal},
};

const HELP: &str = "\
Examples:
  orangery up --record recordings my-folder                            keep calls of deployers
  orangery plugin replay recordings --with new.wasm                    make them again with another component
  orangery plugin replay recordings/call-0000000003-* --with new.wasm  some of them

A recording is a folder with request.json, response.json and recording.json, the same as a case (docs/plugins/testing.md). Reads
are answered as they were recorded; no cluster is asked, and nothing is carried out. Values of Secrets are tokens in it: one that the
request has stands for itself, any other for whatever the component makes up. Recordings of items of other types than the registration
claims are left out. The exit code is 1 when an answer differs, or a call cannot be made again.

Output of -o json and -o yaml (fields are added, never renamed or removed):
  same, different, notReplayed, ofOthers   numbers
  recordings                               a list of {name, outcome, differences}; outcome is same, different or notReplayed";

/// Makes recorded calls again with another component, and prints how its answers differ.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct PluginReplay {
    /// Recordings, or folders of them
    #[arg(value_name = "FOLDER", required = true)]
    pub recordings: Vec<PathBuf>,
    /// The component that is called (.wasm)
    #[arg(long, value_name = "FILE")]
    pub with: PathBuf,
    /// Its registration (.yaml) [default: plugin.yaml beside the component; else everything is granted]
    #[arg(long, value_name = "FILE")]
    pub registration: Option<PathBuf>,
    /// Only recordings of the component of this name
    #[arg(long, value_name = "NAME")]
    pub component: Option<String>,
    /// How it is written [default: for people]
    #[arg(short, long, value_enum, value_name = "FORM")]
    pub output: Option<OutputFormat>,
}

/// The output of `-o json`.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReplayOutput {
    same: usize,
    different: usize,
    not_replayed: usize,
    of_others: usize,
    recordings: Vec<ReplayReport>,
}

impl ReplayOutput {
    pub(super) fn of(recordings: Vec<ReplayReport>, of_others: usize) -> Self {
        let count = |outcome| recordings.iter().filter(|report| report.outcome == outcome).count();
        let (same, different) = (count(ReplayOutcome::Same), count(ReplayOutcome::Different));
        Self { same, different, not_replayed: count(ReplayOutcome::NotReplayed), of_others, recordings }
    }

    pub(super) fn exit(&self) -> Exit {
        if self.different + self.not_replayed == 0 { Exit::Ok } else { Exit::Failed }
    }

    pub(super) fn text(&self, ink: Ink) -> Vec<String> {
        let mut lines = Vec::new();
        for ReplayReport { name, outcome, differences } in &self.recordings {
            let (paint, word) = match outcome {
                ReplayOutcome::Same => (Paint::Good, "same"),
                ReplayOutcome::Different => (Paint::Busy, "different"),
                ReplayOutcome::NotReplayed => (Paint::Bad, "not made"),
            };
            lines.push(format!("{}  {}", ink.paint(paint, &format!("{word:<9}")), name.escape_debug()));
            lines.extend(
                differences.iter().map(|difference| format!("           {}", ink.paint(Paint::Plain, difference))),
            );
        }
        let mut last =
            format!("{} same, {} different, {} not made again", self.same, self.different, self.not_replayed);
        if self.of_others > 0 {
            last.push_str(&format!("; {} of other components or types left out", self.of_others));
        }
        lines.push(last);
        lines
    }
}

impl PluginReplay {
    /// Makes the calls, and prints what came of them.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let recordings = replay::recordings(&self.recordings)?;
        let component = LoadedComponent::read(&self.with, self.registration.as_deref(), &[folder_of(&self.with)])?;
        let (mut reports, mut of_others) = (Vec::new(), 0);
        for recording in &recordings {
            if self.is_meant(recording) && replay::is_claimed(&component, recording) {
                reports.push(replay::replay(&component, recording).await);
            } else {
                of_others += 1;
            }
        }
        let output = ReplayOutput::of(reports, of_others);
        match self.output {
            Some(form) => form.write(&output, terminal)?,
            None => output.text(terminal.ink()).iter().try_for_each(|line| terminal.painted(line))?,
        }
        Ok(output.exit())
    }

    /// Whether a recording is of the component that is meant; one that cannot be read is, so that it is told.
    fn is_meant(&self, recording: &std::path::Path) -> bool {
        let Some(name) = &self.component else { return true };
        replay::note(recording).map_or(true, |note| note.is_some_and(|note| note.component.name == *name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_342_each_recording_is_a_line_with_its_differences_and_the_sum_is_the_last() {
        let report = |name: &str, outcome, differences: &[&str]| ReplayReport {
            name: name.to_owned(),
            outcome,
            differences: differences.iter().map(|difference| (*difference).to_owned()).collect(),
        };
        let reports = vec![
            report("a", ReplayOutcome::Same, &[]),
            report("b", ReplayOutcome::Different, &["/x: expected is 1, answered is 2"]),
            report("c", ReplayOutcome::NotReplayed, &["request.json is missing"]),
        ];
        let output = ReplayOutput::of(reports, 2);
        let expected = [
            "same       a",
            "different  b",
            "           /x: expected is 1, answered is 2",
            "not made   c",
            "           request.json is missing",
            "1 same, 1 different, 1 not made again; 2 of other components or types left out",
        ];
        assert_eq!((output.text(Ink::Plain), output.exit()), (expected.map(str::to_owned).to_vec(), Exit::Failed));
        let same = ReplayOutput::of(vec![report("a", ReplayOutcome::Same, &[])], 0);
        assert_eq!(
            (same.text(Ink::Plain).pop().unwrap().as_str(), same.exit()),
            ("1 same, 0 different, 0 not made again", Exit::Ok)
        );
    }
}
