//! `orangery plugin diff`: what changes where one component takes the place of another.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use orangery_plugin::{Inspection, Registration, RegistrationSpec};
use orangery_proposal::{grant::Grants, recorded::differences};
use serde::Serialize;
use serde_json::json;

use super::{folder_of, inspect::size, replay::ReplayOutput};
use crate::{
    authoring::{
        cases::replay::{compare, recordings},
        loaded::LoadedComponent,
    },
    command_error::CommandError,
    exit::Exit,
    folder,
    form::OutputFormat,
    terminal::{Ink, Paint, Terminal},
};

const HELP: &str = "\
Examples:
  orangery plugin diff old.wasm new.wasm
  orangery plugin diff old.wasm new.wasm --old-registration old.yaml --registration new.yaml
  orangery plugin diff old.wasm new.wasm --cases recordings

Says what the new component is, imports and exports otherwise than the old one, which of its imports are not granted, and how its
registration differs: grants, limits, types. Nothing of the components runs, unless --cases names a folder of cases or recordings
(docs/plugins/testing.md): then both are called with each of them in the sandbox, with the grants and limits of its own registration,
and the differences of their answers are told. The exit code is 1 when answers differ, or this host would not load the new component.

Output of -o json and -o yaml (fields are added, never renamed or removed):
  old, new       digest, size, functions, level, worlds
  imports        added: a list of {interface, offer, grant}, as of plugin inspect; removed: a list of names
  exports        added, removed: lists of names
  registration   differences of the registrations, a sentence each
  unusable       why this host would not load the new component
  cases          as of plugin replay";

/// The most differences of registrations that are told.
const TOLD: usize = 50;

/// Says what changes where a component takes the place of another: imports, grants, limits and, of recorded calls, answers.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct PluginDiff {
    /// The component in use (.wasm)
    pub old: PathBuf,
    /// The one that is to take its place (.wasm)
    pub new: PathBuf,
    /// Registration of the old one (.yaml) [default: that of the new one]
    #[arg(long, value_name = "FILE")]
    pub old_registration: Option<PathBuf>,
    /// Registration of the new one (.yaml) [default: nothing is granted, and for cases everything]
    #[arg(long, value_name = "FILE")]
    pub registration: Option<PathBuf>,
    /// Folder of cases or recordings that both are called with
    #[arg(long, value_name = "FOLDER")]
    pub cases: Option<PathBuf>,
    /// How it is written [default: for people]
    #[arg(short, long, value_enum, value_name = "FORM")]
    pub output: Option<OutputFormat>,
}

/// The output of `-o json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PluginDiffOutput {
    old: ComparedComponent,
    new: ComparedComponent,
    imports: ImportChanges,
    exports: NameChanges,
    registration: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unusable: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cases: Option<ReplayOutput>,
}

/// What a component is.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ComparedComponent {
    digest: String,
    size: u64,
    functions: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<String>,
    worlds: Vec<String>,
}

/// Imports that are new, and those that are gone.
#[derive(Serialize)]
struct ImportChanges {
    added: Vec<AddedImport>,
    removed: Vec<String>,
}

/// An import that is new, against what the new component is granted.
#[derive(Serialize)]
struct AddedImport {
    interface: String,
    offer: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<&'static str>,
}

/// Names that are new, and those that are gone.
#[derive(Serialize)]
struct NameChanges {
    added: Vec<String>,
    removed: Vec<String>,
}

impl ComparedComponent {
    fn of(inspection: &Inspection) -> Self {
        Self {
            digest: inspection.digest.clone(),
            size: inspection.size,
            functions: inspection.functions,
            level: inspection.level.clone(),
            worlds: inspection.worlds().iter().map(ToString::to_string).collect(),
        }
    }
}

impl PluginDiff {
    /// Compares the files, and calls both where there are cases.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let (old, new) = (inspection(&self.old)?, inspection(&self.new)?);
        let (before, after) = (
            self.spec(self.old_registration.as_deref().or(self.registration.as_deref()))?,
            self.spec(self.registration.as_deref())?,
        );
        let mut output = compared((&old, &new), (before.as_ref(), after.as_ref()));
        if let Some(cases) = &self.cases
            && output.unusable.is_none()
        {
            output.cases = Some(self.call(cases).await?);
        }
        match self.output {
            Some(form) => form.write(&output, terminal)?,
            None => text(&output, terminal.ink()).iter().try_for_each(|line| terminal.painted(line))?,
        }
        let answers = output.cases.as_ref().map_or(Exit::Ok, ReplayOutput::exit);
        Ok(if output.unusable.is_some() { Exit::Failed } else { answers })
    }

    fn spec(&self, registration: Option<&Path>) -> Result<Option<RegistrationSpec>, CommandError> {
        let Some(file) = registration else { return Ok(None) };
        Ok(Some(Registration::parse(&folder::text_of(file)?, &file.display().to_string())?.spec))
    }

    async fn call(&self, cases: &Path) -> Result<ReplayOutput, CommandError> {
        let cases = recordings(&[cases.to_owned()])?;
        let of_old = self.old_registration.as_deref().or(self.registration.as_deref());
        let old = LoadedComponent::read(&self.old, of_old, &[folder_of(&self.old)])?;
        let new = LoadedComponent::read(&self.new, self.registration.as_deref(), &[folder_of(&self.new)])?;
        if old.world != new.world {
            return Err(CommandError::OtherWorld { path: self.new.clone(), claimed: old.world.to_string() });
        }
        let mut reports = Vec::new();
        for case in &cases {
            reports.push(compare((&old, &new), case).await);
        }
        Ok(ReplayOutput::of(reports, 0))
    }
}

fn inspection(file: &Path) -> Result<Inspection, CommandError> {
    let bytes = fs::read(file).map_err(|cause| CommandError::Read { path: file.to_owned(), cause })?;
    orangery_plugin::inspect(&bytes).map_err(|cause| CommandError::Component { path: file.to_owned(), cause })
}

fn compared(
    (old, new): (&Inspection, &Inspection),
    (before, after): (Option<&RegistrationSpec>, Option<&RegistrationSpec>),
) -> PluginDiffOutput {
    let grants = after.map_or_else(Grants::default, |spec| spec.grants.clone());
    let added = new.needs(&grants).into_iter().filter(|need| !old.imports.contains(&need.interface));
    let added = added.map(|need| {
        let (offer, grant) = need.offer.words();
        AddedImport { interface: need.interface, offer, grant }
    });
    let without = |names: &[String], others: &[String]| -> Vec<String> {
        names.iter().filter(|name| !others.contains(name)).cloned().collect()
    };
    PluginDiffOutput {
        old: ComparedComponent::of(old),
        new: ComparedComponent::of(new),
        imports: ImportChanges { added: added.collect(), removed: without(&old.imports, &new.imports) },
        exports: NameChanges {
            added: without(&new.exports, &old.exports),
            removed: without(&old.exports, &new.exports),
        },
        registration: match (before, after) {
            (Some(before), Some(after)) => differences(&json!(before), &json!(after), TOLD),
            _ => Vec::new(),
        },
        unusable: new.check().err().map(|error| error.to_string()),
        cases: None,
    }
}

fn text(output: &PluginDiffOutput, ink: Ink) -> Vec<String> {
    let mut lines = Vec::new();
    let PluginDiffOutput { old, new, .. } = output;
    let mut change = |what: &str, old: &str, new: &str| {
        let told = if old == new { ink.paint(Paint::Dim, "the same") } else { format!("{old} -> {new}") };
        lines.push(format!("{what:<10}{told}"));
    };
    let level = |facts: &ComparedComponent| {
        facts.level.as_ref().map_or("none".to_owned(), |level| level.escape_debug().to_string())
    };
    let length = |facts: &ComparedComponent| format!("{} in {} functions", size(facts.size), facts.functions);
    change("digest", &old.digest, &new.digest);
    change("world", &worlds(old), &worlds(new));
    change("contract", &level(old), &level(new));
    change("size", &length(old), &length(new));
    for AddedImport { interface, offer, grant } in &output.imports.added {
        let grant = grant.map(|grant| format!(" by `{grant}`")).unwrap_or_default();
        let paint = if *offer == "harmless" { Paint::Dim } else { Paint::Busy };
        lines.push(format!(
            "imports   + {}  {}",
            interface.escape_debug(),
            ink.paint(paint, &format!("{offer}{grant}"))
        ));
    }
    let mut names = |what: &str, sign: &str, names: &[String]| {
        lines.extend(names.iter().map(|name| format!("{what:<10}{sign} {}", name.escape_debug())));
    };
    names("imports", "-", &output.imports.removed);
    names("exports", "+", &output.exports.added);
    names("exports", "-", &output.exports.removed);
    for difference in &output.registration {
        let said = difference.replace("expected is", "was").replace("answered is", "is");
        lines.push(format!("register  {}", ink.paint(Paint::Busy, &said)));
    }
    lines.extend(output.unusable.iter().map(|why| format!("unusable  {}", ink.paint(Paint::Bad, why))));
    lines.extend(output.cases.iter().flat_map(|cases| cases.text(ink)));
    lines
}

fn worlds(facts: &ComparedComponent) -> String {
    if facts.worlds.is_empty() { "none that this host knows".to_owned() } else { facts.worlds.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(imports: &[&str], exports: &[&str], digest: &str) -> Inspection {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Inspection {
            digest: digest.to_owned(),
            size: 1 << 10,
            functions: 7,
            level: None,
            imports: names(imports),
            exports: names(exports),
        }
    }

    fn spec(more: &str) -> RegistrationSpec {
        let text = format!(
            "apiVersion: orangery.dev/v1alpha1\nkind: Plugin\nmetadata: {{name: mine}}\nspec: {{version: 1.0.0, component: {{file: \
             mine.wasm}}, deployer: {{itemTypes: [example.org/mine]}}, {more}}}\n"
        );
        Registration::parse(&text, "mine.yaml").unwrap().spec
    }

    const DEPLOY: &str = "orangery:deployer/deploy@0.1.0";
    const CLUSTER: &str = "orangery:deployer/cluster@0.1.0";

    #[test]
    fn c_343_what_a_new_component_asks_for_is_told_with_what_it_is_granted() {
        let old = component(&["wasi:cli/exit@0.2.3"], &[DEPLOY], "sha256:1");
        let new = component(&[CLUSTER], &[DEPLOY, "orangery:deployer/uninstall@0.1.0"], "sha256:2");
        let (before, after) = (spec("limits: {memoryMiB: 64}"), spec("limits: {memoryMiB: 128}, grants: {hosts: [a]}"));
        let output = compared((&old, &new), (Some(&before), Some(&after)));
        let expected = [
            "digest    sha256:1 -> sha256:2",
            "world     the same",
            "contract  the same",
            "size      the same",
            "imports   + orangery:deployer/cluster@0.1.0  notGranted by `clusters`",
            "imports   - wasi:cli/exit@0.2.3",
            "exports   + orangery:deployer/uninstall@0.1.0",
            "register  /grants/hosts/0: was nothing, is \"a\"",
            "register  /limits/memoryMiB: was 64, is 128",
        ];
        assert_eq!(text(&output, Ink::Plain), expected);
        let document = serde_json::to_value(&output).unwrap();
        assert_eq!(document["imports"]["added"][0]["offer"], "notGranted");
        assert_eq!(document["exports"], json!({"added": ["orangery:deployer/uninstall@0.1.0"], "removed": []}));
    }

    #[test]
    fn c_343_a_component_of_another_world_is_told_as_such() {
        let old = component(&[], &[DEPLOY], "sha256:1");
        let new = component(&["example:other/thing@1.0.0"], &["example:other/world@1.0.0"], "sha256:1");
        let output = compared((&old, &new), (None, None));
        let lines = text(&output, Ink::Plain);
        assert_eq!(lines[..2], ["digest    the same", "world     deployer -> none that this host knows"]);
        assert!(lines.last().unwrap().starts_with("unusable  "), "{lines:?}");
        assert_eq!(output.registration, Vec::<String>::new());
    }
}
