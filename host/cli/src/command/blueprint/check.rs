//! `orangery blueprint check`: what can be said of blueprints without rendering them.

use std::path::PathBuf;

use clap::Args;
use orangery_blueprint::{
    BUNDLED_ENGINE, TemplateExecution,
    plugins::Plugins,
    rendering::RenderRequest,
    review::{Finding, Review, Severity, ToCheck, classify},
    template_engine::{TemplateContext, TemplateEngine},
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    blueprints::{self, FoundBlueprint},
    command_error::CommandError,
    components,
    exit::Exit,
    form::OutputFormat,
    terminal::{Ink, Paint, Terminal},
};

const HELP: &str = "\
Examples:
  orangery blueprint check my-blueprint                a folder with blueprint.yaml, or an archive of one
  orangery blueprint check examples/hello-world        a folder of manifests, with blueprints in its Installations
  orangery blueprint check installation.yaml -o json   one file, for programs

Checked are the structure, JSON schemas and defaults, the data flow among sub-installations, how each of them and each
Installation binds its blueprint, and the templates, those of data mappings too: their syntax, the functions that they
call, and the inputs that they read by name. What only inputs can tell is left to: orangery render

Output: file:line:column: severity: sentence. An error would fail an installation; a warning is probably a mistake; a
note says what was not looked at. The exit code is 1 when there are errors.

Output of -o json and -o yaml (fields are added, never renamed or removed):
  errors, warnings   numbers
  findings           a list of {file, line, column, severity, message}";

/// Looks for mistakes in blueprints, and prints each with its place and how to mend it. Nothing is rendered or sent.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct Check {
    /// Folders with blueprint.yaml or archives of them, or files or folders of manifests with Installations
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// Folder with registrations of further components (YAML)
    #[arg(long, value_name = "FOLDER")]
    pub plugins: Option<PathBuf>,
    /// How it is written [default: for people]
    #[arg(short, long, value_enum, value_name = "FORM")]
    pub output: Option<OutputFormat>,
}

/// The output of `-o json`.
#[derive(Serialize)]
struct CheckOutput<'a> {
    errors: usize,
    warnings: usize,
    findings: Vec<CheckOutputEntry<'a>>,
}

#[derive(Serialize)]
struct CheckOutputEntry<'a> {
    file: &'a str,
    line: usize,
    column: usize,
    severity: String,
    message: &'a str,
}

impl Check {
    /// Looks at everything, and prints what is to be said.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let found = blueprints::find(&self.paths)?;
        let plugins = components::of_command(self.plugins.as_deref())?;
        let mut findings = findings(&found, plugins.as_ref()).await;
        findings.sort();
        findings.dedup();
        let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        match self.output {
            Some(form) => {
                let findings = findings.iter().map(entry).collect();
                form.write(&CheckOutput { errors, warnings, findings }, terminal)?;
            }
            None => {
                for finding in &findings {
                    terminal.painted(&line(finding, terminal.ink()))?;
                }
                let blueprints = number(found.len(), "blueprint");
                terminal.line(format_args!(
                    "{blueprints} checked: {}, {}",
                    number(errors, "error"),
                    number(warnings, "warning")
                ))?;
            }
        }
        Ok(if errors == 0 { Exit::Ok } else { Exit::Failed })
    }
}

fn number(count: usize, of: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {of}{plural}")
}

fn entry(finding: &Finding) -> CheckOutputEntry<'_> {
    let Finding { position, severity, message } = finding;
    let (line, column) = (position.place.line, position.place.column);
    CheckOutputEntry { file: &position.file, line, column, severity: severity.to_string(), message }
}

fn line(finding: &Finding, ink: Ink) -> String {
    let Finding { position, severity, message } = finding;
    let paint = match severity {
        Severity::Error => Paint::Bad,
        Severity::Warning => Paint::Busy,
        Severity::Note => Paint::Dim,
    };
    let severity = ink.paint(paint, &format!("{severity}:"));
    let plain = |text: &str| Ink::Plain.paint(Paint::Plain, text);
    let (file, message) = (plain(&position.file), plain(message));
    format!("{file}:{}:{}: {severity} {message}", position.place.line, position.place.column)
}

/// All that is to be said of these blueprints.
async fn findings(found: &[FoundBlueprint], plugins: &dyn Plugins) -> Vec<Finding> {
    let mut findings = Vec::new();
    for one in found {
        let Review { findings: of_structure, templates } = one.review();
        findings.extend(of_structure);
        for template in &templates {
            findings.extend(of_template(template, plugins).await);
            findings.extend(template.gates());
        }
    }
    findings
}

/// What the engine of a template says of it.
async fn of_template(of: &ToCheck, plugins: &dyn Plugins) -> Vec<Finding> {
    let TemplateExecution { name, engine: engine_type, file, template } = &of.execution;
    if engine_type == BUNDLED_ENGINE {
        let reported = "the component comes with the blueprint, so it is not looked at; try it with: orangery render";
        return vec![of.finding(Severity::Note, reported)];
    }
    let Some(engine) = plugins.template_engine(engine_type, None) else {
        let known = plugins.template_types().join(", ");
        let reported = format!(
            "no component renders the type {engine_type:?}; correct `type` or register a component for it; known types are: {known}"
        );
        return vec![of.finding(Severity::Error, reported)];
    };
    let template = match file {
        None => template.clone(),
        Some(file) => match of.files.read(file).map(String::from_utf8) {
            Ok(Ok(text)) => text,
            Ok(Err(_)) => {
                let reported = format!("the file {file} is not UTF-8 text; save it as such");
                return vec![of.finding(Severity::Error, reported)];
            }
            // Reading the blueprint has said so.
            Err(_) => return Vec::new(),
        },
    };
    let request = RenderRequest {
        execution: of.list,
        name: name.clone(),
        file: file.clone(),
        template,
        inputs: Value::Object(serde_json::Map::new()),
        state: None,
    };
    let context = TemplateContext::of_files(of.files.clone());
    match TemplateEngine::check(engine.as_ref(), &request, &context).await {
        Ok(Some(found)) => classify(of, found).findings,
        Ok(None) => vec![of.finding(
            Severity::Note,
            "the engine cannot tell without rendering, so the template is not looked at; try it with: orangery render",
        )],
        Err(failure) => vec![of.finding(Severity::Error, failure.message)],
    }
}
