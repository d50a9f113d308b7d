//! `orangery blueprint test`: the cases of a blueprint, rendered without a cluster, or carried out by the operator of one.

mod server;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use orangery_blueprint::review::{self, BlueprintOrigin};
use orangery_ocm::Files;
use serde::Serialize;

pub use self::server::ServerFlags;
use crate::{
    blueprint_cases::{
        self, BlueprintCaseReport, CoverageMeasure, LineCoverage, SnapshotUse, TemplateCoverage, TestedBlueprint,
        counted, junit,
    },
    blueprints::{BlueprintsError, FolderFiles, folder_of_blueprint},
    command::render::OfflineVersionFlags,
    command_error::CommandError,
    components,
    exit::Exit,
    form::OutputFormat,
    terminal::{Ink, Paint, Terminal},
};

const HELP: &str = "\
Examples:
  orangery blueprint test my-blueprint                      the cases in my-blueprint/tests
  orangery blueprint test my-blueprint --update             write snapshots anew: read them before you commit them
  orangery blueprint test my-blueprint --junit junit.xml    results for a CI system as well
  orangery blueprint test my-blueprint --server -n tests --target cluster=test-cluster

A case is a YAML file with imports, and with what has to come of them: assertions in CEL over items, exports, sub-installations
and the error, or a snapshot of all that is rendered. docs/blueprint-tests.md has the form. Nothing is sent: the same code
renders in the operator.

At the end stand the lines of templates that no case has rendered.

With --server the operator of a cluster carries the cases out. Each has an Installation of its own, with DataObjects and Targets of
what it imports; the same assertions are held against what came of it, and all is deleted again. Cases that give what a server has
itself are skipped, but for those with server: true.

Output of -o json and -o yaml (fields are added, never renamed or removed):
  passed, failed, skipped   numbers
  cases            a list of {name, file, problems, updated, skipped}
  coverage         a list of {file, execution, type, measured, lines, reached, notReached}";

/// Renders the cases of a blueprint, and says what is not as they expect it and which lines of templates none has rendered.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
#[command(mut_arg("namespace", |arg| arg.requires("server")))]
#[command(mut_arg("kubeconfig", |arg| arg.requires("server")))]
#[command(mut_arg("context", |arg| arg.requires("server")))]
pub struct BlueprintTest {
    /// A folder with blueprint.yaml
    #[arg(value_name = "FOLDER")]
    pub path: PathBuf,
    /// Folder of the cases [default: tests in FOLDER]
    #[arg(long, value_name = "FOLDER")]
    pub cases: Option<PathBuf>,
    /// Write snapshots anew where they are not what is rendered
    #[arg(long)]
    pub update: bool,
    /// File that results are written to in the form of JUnit
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Folder with registrations of further components (YAML)
    #[arg(long, value_name = "FOLDER")]
    pub plugins: Option<PathBuf>,
    /// How it is written [default: for people]
    #[arg(short, long, value_enum, value_name = "FORM")]
    pub output: Option<OutputFormat>,
    /// Which server carries them out.
    #[command(flatten)]
    pub server: ServerFlags,
    /// What it is made with of component versions.
    #[command(flatten)]
    pub versions: OfflineVersionFlags,
}

/// The output of `-o json`.
#[derive(Serialize)]
struct BlueprintTestOutput {
    passed: usize,
    failed: usize,
    skipped: usize,
    cases: Vec<BlueprintCaseReport>,
    coverage: Vec<TemplateCoverage>,
}

impl BlueprintTest {
    /// Renders the cases, and prints what came of them.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let folder =
            folder_of_blueprint(&self.path).ok_or_else(|| BlueprintsError::None { path: self.path.clone() })?;
        let output = self.run(&folder).await?;
        if let Some(path) = &self.junit {
            let text = junit::document(&folder.display().to_string(), &output.cases);
            fs::write(path, text).map_err(|cause| CommandError::Write { path: path.clone(), cause })?;
        }
        match self.output {
            Some(form) => form.write(&output, terminal)?,
            None => text(&output, terminal.ink()).iter().try_for_each(|line| terminal.painted(line))?,
        }
        Ok(if output.failed == 0 { Exit::Ok } else { Exit::Failed })
    }

    async fn run(&self, folder: &Path) -> Result<BlueprintTestOutput, CommandError> {
        let cases = self.cases.clone().unwrap_or_else(|| folder.join("tests"));
        let cases = blueprint_cases::files(&cases)?;
        let files = FolderFiles::new(folder);
        if self.server.server {
            let reports = self.server.run((&files, &self.versions), &cases).await?;
            return Ok(BlueprintTestOutput::of(reports, Vec::new()));
        }
        let spec = self.versions.spec(self.versions.of_folder(&files))?;
        let files: Arc<dyn Files> = Arc::new(files);
        let plugins = components::of_command(self.plugins.as_deref())?;
        let coverage = Arc::new(LineCoverage::default());
        let plugins = counted(plugins.as_ref(), &coverage);
        let versions = self.versions.open(folder)?;
        let blueprint = TestedBlueprint { plugins: &plugins, versions, files: Arc::clone(&files), spec };
        let snapshots = if self.update { SnapshotUse::IsUpdated } else { SnapshotUse::Holds };
        let mut reports = Vec::new();
        for case in &cases {
            reports.push(blueprint.run(case, snapshots).await);
        }
        let origin = BlueprintOrigin::Files(folder.join("").display().to_string());
        Ok(BlueprintTestOutput::of(reports, coverage.report(&review::review(&files, &origin).templates)))
    }
}

impl BlueprintTestOutput {
    fn of(cases: Vec<BlueprintCaseReport>, coverage: Vec<TemplateCoverage>) -> Self {
        let failed = cases.iter().filter(|case| !case.problems.is_empty()).count();
        let skipped = cases.iter().filter(|case| case.skipped.is_some()).count();
        Self { passed: cases.len() - failed - skipped, failed, skipped, cases, coverage }
    }
}

fn text(output: &BlueprintTestOutput, ink: Ink) -> Vec<String> {
    let mut lines = Vec::new();
    for BlueprintCaseReport { name, problems, updated, skipped, .. } in &output.cases {
        let (paint, word) = match (problems.is_empty(), skipped, updated.is_empty()) {
            (false, _, _) => (Paint::Bad, "failed"),
            (true, Some(_), _) => (Paint::Dim, "skipped"),
            (true, None, false) => (Paint::Busy, "updated"),
            (true, None, true) => (Paint::Good, "passed"),
        };
        let name = ink.paint(Paint::Plain, name);
        lines.push(format!("{}  {name}", ink.paint(paint, &format!("{word:<7}"))));
        let told = problems.iter().chain(skipped);
        lines.extend(told.map(|text| format!("         {}", ink.paint(Paint::Plain, text))));
    }
    lines.extend(output.coverage.iter().map(|of| ink.paint(Paint::Dim, &covered(of))));
    let skipped = if output.skipped == 0 { String::new() } else { format!(", {} skipped", output.skipped) };
    lines.push(format!("{} passed, {} failed{skipped}", output.passed, output.failed));
    lines
}

fn covered(of: &TemplateCoverage) -> String {
    let TemplateCoverage { file, execution, template_type, measured, lines, reached, not_reached } = of;
    let what = match measured {
        CoverageMeasure::None => {
            return format!("{file}, {execution}: lines of the type {template_type} are not counted");
        }
        CoverageMeasure::Lines => format!("{reached} of {lines} lines"),
        CoverageMeasure::Whole if *reached == 0 => format!("not rendered, {lines} lines"),
        CoverageMeasure::Whole => return format!("{file}, {execution}: rendered, all of its {lines} lines"),
    };
    let missing = if *measured == CoverageMeasure::Lines { ranges(not_reached.iter().copied()) } else { String::new() };
    let missing = if missing.is_empty() { missing } else { format!("; not rendered: {missing}") };
    format!("{file}, {execution}: {what}{missing}")
}

/// Numbers that rise, as `3, 5-7`.
fn ranges(numbers: impl Iterator<Item = usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let written = ranges.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    written.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_303_each_case_is_a_line_with_its_problems_and_then_what_none_has_rendered() {
        let report = |name: &str, problems: &[&str], updated: &[&str]| BlueprintCaseReport {
            name: name.to_owned(),
            file: String::new(),
            problems: problems.iter().map(|problem| (*problem).to_owned()).collect(),
            updated: updated.iter().map(|file| (*file).to_owned()).collect(),
            skipped: None,
        };
        let skipped = BlueprintCaseReport { skipped: Some("it gives now".to_owned()), ..report("d", &[], &[]) };
        let coverage = |measured, (reached, lines), not_reached: &[usize]| TemplateCoverage {
            file: "b/t".to_owned(),
            execution: "deployExecutions \"d\"".to_owned(),
            template_type: "T".to_owned(),
            measured,
            lines,
            reached,
            not_reached: not_reached.iter().copied().collect(),
        };
        let output = BlueprintTestOutput {
            passed: 2,
            failed: 1,
            skipped: 1,
            cases: vec![
                report("a", &[], &[]),
                report("b", &["x\u{1b}"], &[]),
                report("c", &[], &["snapshots/c.yaml"]),
                skipped,
            ],
            coverage: vec![
                coverage(CoverageMeasure::Lines, (9, 9), &[]),
                coverage(CoverageMeasure::Lines, (4, 9), &[1, 3, 4, 5, 9]),
                coverage(CoverageMeasure::Whole, (9, 9), &[]),
                coverage(CoverageMeasure::Whole, (0, 2), &[1, 2]),
                coverage(CoverageMeasure::None, (0, 0), &[]),
            ],
        };
        let expected = [
            "passed   a",
            "failed   b",
            "         x\u{fffd}",
            "updated  c",
            "skipped  d",
            "         it gives now",
            "b/t, deployExecutions \"d\": 9 of 9 lines",
            "b/t, deployExecutions \"d\": 4 of 9 lines; not rendered: 1, 3-5, 9",
            "b/t, deployExecutions \"d\": rendered, all of its 9 lines",
            "b/t, deployExecutions \"d\": not rendered, 2 lines",
            "b/t, deployExecutions \"d\": lines of the type T are not counted",
            "2 passed, 1 failed, 1 skipped",
        ];
        assert_eq!(text(&output, Ink::Plain), expected);
    }
}
