//! `orangery plugin test`: the golden cases of a component, in its sandbox.

use std::{path::PathBuf, sync::Arc};

use clap::Args;
use serde::Serialize;

use super::folder_of;
use crate::{
    authoring::{
        cases::{self, CallLog, CaseReport, Coverage, Expectation},
        loaded::LoadedComponent,
    },
    command_error::CommandError,
    exit::Exit,
    form::OutputFormat,
    terminal::{Ink, Paint, Terminal},
};

const HELP: &str = "\
Examples:
  orangery plugin test mine.wasm                       the cases in ./cases
  orangery plugin test mine.wasm --update              write what is expected anew: read it before you commit it
  orangery plugin test mine.wasm --cases more -o json  those of another folder, for programs

A case is a folder with request.json and what is expected: response.json, after.yaml for the objects of target.yaml after
the job, assertions.yaml with expressions in CEL. docs/plugins/testing.md has the forms. Cases in a folder `checks` beside
look at templates without rendering them. The component runs in the sandbox as the host runs it, with the grants and limits
of its registration, and without a server.

Output of -o json and -o yaml (fields are added, never renamed or removed):
  passed, failed   numbers
  cases            a list of {name, problems, updated}
  coverage         called, neverCalled, answered, neverAnswered: lists of words of the contract";

/// Runs the recorded cases of a component, and says what of the contract none of them exercises.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct PluginTest {
    /// The component (.wasm)
    pub file: PathBuf,
    /// Folder of the cases
    #[arg(long, value_name = "FOLDER", default_value = "cases")]
    pub cases: PathBuf,
    /// Its registration (.yaml) [default: plugin.yaml beside the cases or the component; else everything is granted]
    #[arg(long, value_name = "FILE")]
    pub registration: Option<PathBuf>,
    /// Write what is expected anew where it is not what is answered
    #[arg(long)]
    pub update: bool,
    /// How it is written [default: for people]
    #[arg(short, long, value_enum, value_name = "FORM")]
    pub output: Option<OutputFormat>,
}

/// The output of `-o json`.
#[derive(Serialize)]
struct PluginTestOutput {
    passed: usize,
    failed: usize,
    cases: Vec<CaseReport>,
    coverage: Coverage,
}

impl PluginTest {
    /// Runs the cases, and prints what came of them.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let near = [folder_of(&self.cases), folder_of(&self.file)];
        let component = LoadedComponent::read(&self.file, self.registration.as_deref(), &near)?;
        let output = self.run(&component).await?;
        match self.output {
            Some(form) => form.write(&output, terminal)?,
            None => text(&output, terminal.ink()).iter().try_for_each(|line| terminal.painted(line))?,
        }
        Ok(if output.failed == 0 { Exit::Ok } else { Exit::Failed })
    }

    async fn run(&self, component: &LoadedComponent) -> Result<PluginTestOutput, CommandError> {
        let expectation = if self.update { Expectation::IsUpdated } else { Expectation::Holds };
        let log = Arc::new(CallLog::default());
        let mut reports = Vec::new();
        for (folder, kind) in cases::all(&self.cases)? {
            reports.push(cases::run(component, &folder, kind, expectation, &log).await);
        }
        let failed = reports.iter().filter(|report| !report.problems.is_empty()).count();
        let coverage = log.coverage(&component.inspection);
        Ok(PluginTestOutput { passed: reports.len() - failed, failed, cases: reports, coverage })
    }
}

fn text(output: &PluginTestOutput, ink: Ink) -> Vec<String> {
    let mut lines = Vec::new();
    for CaseReport { name, problems, updated } in &output.cases {
        let (paint, word) = match (problems.is_empty(), updated.is_empty()) {
            (false, _) => (Paint::Bad, "failed"),
            (true, false) => (Paint::Busy, "updated"),
            (true, true) => (Paint::Good, "passed"),
        };
        lines.push(format!("{}  {}", ink.paint(paint, &format!("{word:<7}")), name.escape_debug()));
        lines.extend(problems.iter().map(|problem| format!("         {}", ink.paint(Paint::Plain, problem))));
    }
    let Coverage { never_called, never_answered, .. } = &output.coverage;
    for (what, words) in [("never called", never_called), ("never answered", never_answered)] {
        if !words.is_empty() {
            lines.push(ink.paint(Paint::Dim, &format!("{what}: {}", words.join(", "))));
        }
    }
    lines.push(format!("{} passed, {} failed", output.passed, output.failed));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_255_each_case_is_a_line_with_its_problems_and_then_what_none_exercises() {
        let report = |name: &str, problems: &[&str], updated: &[&str]| CaseReport {
            name: name.to_owned(),
            problems: problems.iter().map(|problem| (*problem).to_owned()).collect(),
            updated: updated.iter().map(|file| (*file).to_owned()).collect(),
        };
        let coverage = Coverage {
            called: vec!["deploy.plan"],
            never_called: vec!["cluster.get", "cluster.list"],
            answered: vec!["finish"],
            never_answered: vec!["recover"],
        };
        let cases = vec![
            report("a", &[], &[]),
            report("b", &["/x: expected is 1, answered is 2"], &[]),
            report("c", &[], &["after.yaml"]),
        ];
        let output = PluginTestOutput { passed: 2, failed: 1, cases, coverage };
        let expected = [
            "passed   a",
            "failed   b",
            "         /x: expected is 1, answered is 2",
            "updated  c",
            "never called: cluster.get, cluster.list",
            "never answered: recover",
            "2 passed, 1 failed",
        ];
        assert_eq!(text(&output, Ink::Plain), expected);
    }
}
