//! `orangery plugin conform`: what every deployer has to be able to do.

use std::path::PathBuf;

use clap::Args;
use orangery_plugin::World;
use serde::Serialize;

use crate::{
    authoring::{
        conformance::{self, CaseOutcome, CaseVerdict, ConformanceReport},
        loaded::LoadedComponent,
    },
    command_error::CommandError,
    exit::Exit,
    form::OutputFormat,
    terminal::{Ink, Paint, Terminal},
};

const HELP: &str = "\
Examples:
  orangery plugin conform mine.wasm                    with the configurations in ./samples
  orangery plugin conform mine.wasm -o json            for programs

Each YAML file of the folder is a provider configuration that the deployer plans; target.yaml among them has the objects that
its target has before. Every case is asked of every sample, in the sandbox as the host runs it, with the grants and limits of
the registration: same request, same proposal; a second job that changes nothing; configurations that are none, of other
types, unknown, and huge; clusters that lie; deletions with nothing there and after every stage; recovery.
docs/plugins/conformance.md says what each case asks. The exit code is 1 when a case fails.

Output of -o json and -o yaml (fields are added, never renamed or removed):
  digest                          of the component
  passed, failed, notApplicable   numbers; the score is passed of passed and failed
  cases                           a list of {case, sample, outcome, reason}; outcome is passed, failed or notApplicable";

/// Asks a deployer what every deployer has to be able to do, and prints a score with reasons.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct PluginConform {
    /// The component (.wasm)
    pub file: PathBuf,
    /// Folder of configurations that it plans
    #[arg(long, value_name = "FOLDER", default_value = "samples")]
    pub samples: PathBuf,
    /// Its registration (.yaml) [default: plugin.yaml beside the samples or the component; else everything is granted]
    #[arg(long, value_name = "FILE")]
    pub registration: Option<PathBuf>,
    /// How it is written [default: for people]
    #[arg(short, long, value_enum, value_name = "FORM")]
    pub output: Option<OutputFormat>,
}

/// The output of `-o json`.
#[derive(Serialize)]
struct PluginConformOutput<'a> {
    digest: &'a str,
    #[serde(flatten)]
    report: &'a ConformanceReport,
}

impl PluginConform {
    /// Asks everything, and prints what came of it.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let near = [super::folder_of(&self.samples), super::folder_of(&self.file)];
        let component = LoadedComponent::read(&self.file, self.registration.as_deref(), &near)?;
        if component.world != World::Deployer {
            return Err(CommandError::NoDeployer { path: self.file });
        }
        let (samples, target) = conformance::samples(&self.samples)?;
        let report = conformance::conform(&component.plugin, component.first_type(), (&samples, &target)).await;
        let no_target = |why| CommandError::Sample { path: self.samples.join("target.yaml"), why };
        let report = report.map_err(no_target)?;
        match self.output {
            Some(form) => {
                form.write(&PluginConformOutput { digest: &component.inspection.digest, report: &report }, terminal)?;
            }
            None => text(&report, terminal.ink()).iter().try_for_each(|line| terminal.painted(line))?,
        }
        Ok(if report.failed == 0 { Exit::Ok } else { Exit::Failed })
    }
}

fn text(report: &ConformanceReport, ink: Ink) -> Vec<String> {
    let mut lines = Vec::new();
    for CaseVerdict { case, sample, outcome, reason } in &report.cases {
        let (paint, word) = match outcome {
            CaseOutcome::Passed => (Paint::Good, "passed"),
            CaseOutcome::Failed => (Paint::Bad, "failed"),
            CaseOutcome::NotApplicable => (Paint::Dim, "not asked"),
        };
        let sample = sample.escape_debug();
        lines.push(format!("{}  {:<23}  {sample}", ink.paint(paint, &format!("{word:<9}")), case.name()));
        lines.extend(reason.iter().map(|reason| format!("           {}", ink.paint(Paint::Plain, reason))));
    }
    let asked = report.passed + report.failed;
    lines.push(format!("score: {} of {asked}, {} not asked", report.passed, report.not_applicable));
    lines
}

#[cfg(test)]
mod tests {
    use crate::authoring::conformance::ConformanceCase;

    use super::*;

    #[test]
    fn c_256_a_report_is_a_line_for_each_case_with_its_reason_and_a_score() {
        let verdict = |case, outcome, reason: Option<&str>| CaseVerdict {
            case,
            sample: "hello".to_owned(),
            outcome,
            reason: reason.map(str::to_owned),
        };
        let report = ConformanceReport {
            passed: 1,
            failed: 1,
            not_applicable: 1,
            cases: vec![
                verdict(ConformanceCase::SameAnswer, CaseOutcome::Passed, None),
                verdict(ConformanceCase::UninstallAfterFailure, CaseOutcome::Failed, Some("why")),
                verdict(ConformanceCase::Recovery, CaseOutcome::NotApplicable, Some("no need")),
            ],
        };
        let expected = [
            "passed     same-answer              hello",
            "failed     uninstall-after-failure  hello",
            "           why",
            "not asked  recovery                 hello",
            "           no need",
            "score: 1 of 2, 1 not asked",
        ];
        assert_eq!(text(&report, Ink::Plain), expected);
        let document = serde_json::to_value(PluginConformOutput { digest: "sha256:0", report: &report }).unwrap();
        let cases = serde_json::json!([
            {"case": "same-answer", "sample": "hello", "outcome": "passed"},
            {"case": "uninstall-after-failure", "sample": "hello", "outcome": "failed", "reason": "why"},
            {"case": "recovery", "sample": "hello", "outcome": "notApplicable", "reason": "no need"},
        ]);
        let expected = serde_json::json!({
            "digest": "sha256:0", "passed": 1, "failed": 1, "notApplicable": 1, "cases": cases,
        });
        assert_eq!(document, expected);
    }
}
