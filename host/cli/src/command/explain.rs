//! `orangery explain`: where an object of a target cluster comes from, field by field. Carried out by `runtime`; described and written
//! here.

mod subject;

use std::path::PathBuf;

use clap::Args;
use orangery_core::name::{ApiVersion, Kind, Namespace, ObjectName};
use orangery_policy::Profile;
use orangery_proposal::field::FieldManager;
use serde::Serialize;
use serde_json::Value;

use crate::{
    chart_marks::ChartPlace,
    command_error::CommandError,
    connection::{Connection, NamespaceScope},
    default_policy::profile,
    form::OutputFormat,
    repositories::RepositoryFlags,
    template_trace::TemplatePlace,
    terminal::{Ink, Paint, Terminal},
};

pub use self::subject::{ObjectHolder, ObjectSubject, SubjectError, holder};

const HELP: &str = "\
Examples:
  orangery explain deployment/web                       each field of the Deployment web
  orangery explain deployment/web spec.replicas         one field, or what stands below it
  orangery explain cm/app -n shop data[\"app.yaml\"]      of the namespace shop
  orangery explain deploy/web -o json | jq '.fields[] | {path, inputs}'

KIND is a kind, its plural, or a short name of kubectl, with its group where it needs one: ingress.networking.k8s.io/web.
A field is named as orangery plan names it, with numbers in place of the names of elements, or by JSON pointer.

-n is the namespace of the object, or else that of its deploy item. Deploy items of all namespaces are looked at where that
is allowed, else those of the namespace of the context.

Nothing is written. The Installation is rendered over what the cluster has, and its component is asked, as in the next job. Then one
input after the other is changed, each leaf of the imports and of what deploy items have exported, and all is rendered and asked again:
what comes out differently depends on it. Many inputs are changed together first, and one by one where something differs. Inputs
that work against each other, of which one hides another, can be missed. What is said of an input that no other value was found
for is that it was not tried.

Lines are those of the blueprint's templates, and of those of a chart. Of a field that the deployer makes from its configuration, as those of
a chart are made from values, lines of the blueprint are those that made the configuration which it depends on.

Output of -o json and -o yaml (fields are added, never renamed or removed):
  apiVersion     orangery.dev/v1alpha1
  kind           Explanation
  object         {cluster, apiVersion, kind, namespace, name}
  item           {namespace, name, item}
                 item: its name in the blueprint
  execution      the name of the Execution
  installations  names from the Installation of the item up to its root
  component      the component that proposes the object
  fields         a list of {path, value, chart, config, inputs, managers}
                 value: as the next job would write it; values of Secrets are hidden
                 chart: {file, line} of the template of a chart
                 config: what of the item's configuration it comes from, a list of {path, place}
                 place: {file, line, execution} of the template
                 inputs: what it depends on, a list of {kind, name, path}
                 kind: import, target, or export of a deploy item
                 managers: who manages it on the cluster, a list of {manager, operation, subresource, time}
  notTried       inputs of which that is not known, a list of {kind, name, path, why}
  notes          what else is to be known";

/// Shows where the fields of an object come from: templates, inputs, and who else manages them.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct ExplainArguments {
    /// The object: KIND/NAME
    #[arg(value_name = "KIND/NAME")]
    pub object: ObjectSubject,
    /// Only this field, and those below it
    #[arg(value_name = "FIELD")]
    pub field: Option<String>,
    /// How it is written [default: lines]
    #[arg(short, long, value_enum, value_name = "FORM")]
    pub output: Option<OutputFormat>,
    /// The deploy item, where several have an object of that name: NAME, or NAMESPACE/NAME
    #[arg(long, value_name = "ITEM")]
    pub item: Option<String>,
    /// Folder with registrations of further components (YAML)
    #[arg(long, value_name = "FOLDER")]
    pub plugins: Option<PathBuf>,
    /// What the operator takes for namespaces that no NamespacePolicy selects [default: compatible, but for clusters in
    /// networks that restricted refuses]
    #[arg(long, value_name = "PROFILE", value_parser = profile())]
    pub default_policy: Option<Profile>,
    /// Which namespace.
    #[command(flatten)]
    pub scope: NamespaceScope,
    /// Which cluster.
    #[command(flatten)]
    pub connection: Connection,
    /// Where component versions come from.
    #[command(flatten)]
    pub repositories: RepositoryFlags,
}

/// Where an object comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The version of this form.
    pub api_version: ApiVersion,
    /// Its kind.
    pub kind: Kind,
    /// The object.
    pub object: ExplainedObject,
    /// The deploy item that puts it there.
    pub item: ExplainedItem,
    /// Its Execution; none of an item that stands for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<ObjectName>,
    /// From its Installation up to the root.
    pub installations: Vec<ObjectName>,
    /// The component that proposes the object.
    pub component: String,
    /// Its fields.
    pub fields: Vec<ExplainedField>,
    /// Inputs of which it is not known what depends on them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_tried: Vec<NotTriedInput>,
    /// What else is to be known, one sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The object that is explained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedObject {
    /// Its cluster, as the item names it.
    pub cluster: String,
    /// Group and version.
    pub api_version: ApiVersion,
    /// Its kind.
    pub kind: Kind,
    /// Its namespace; `None` for a kind without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Namespace>,
    /// Its name.
    pub name: ObjectName,
}

/// The deploy item of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedItem {
    /// Its namespace.
    pub namespace: Namespace,
    /// The name of its object.
    pub name: ObjectName,
    /// Its name in the blueprint; none of an item that stands for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
}

/// Where a field comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedField {
    /// Where it is.
    pub path: String,
    /// What the next job would write.
    pub value: Value,
    /// What of the configuration of the item it comes from.
    pub config: Vec<ConfigPlace>,
    /// The template of a chart that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart: Option<ChartPlace>,
    /// What it depends on.
    pub inputs: Vec<ExplainedInput>,
    /// What manages it on the cluster.
    pub managers: Vec<FieldManager>,
}

/// A part of the configuration of an item, and where it was made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigPlace {
    /// Where in `spec.config`.
    pub path: String,
    /// Where it was made; none of an item that stands for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<TemplatePlace>,
}

/// What an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum InputKind {
    /// Data that the root imports.
    Import,
    /// A Target that the root imports, as templates see it.
    Target,
    /// What a deploy item has exported.
    Export,
}

/// A leaf of the inputs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedInput {
    /// What it is.
    pub kind: InputKind,
    /// The name of the import; of an export that of the deploy item, below the names of its sub-installations.
    pub name: String,
    /// Where in it; empty for all of it.
    pub path: String,
}

/// An input that could not be tried.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NotTriedInput {
    /// Which.
    #[serde(flatten)]
    pub input: ExplainedInput,
    /// Why.
    pub why: String,
}

/// The longest value in a line, in characters.
const LONGEST: usize = 160;

impl Explanation {
    /// Writes it as the command line asks for.
    ///
    /// # Errors
    /// [`CommandError::Form`] and [`CommandError::Output`]
    pub fn write(&self, output: Option<OutputFormat>, terminal: &mut Terminal) -> Result<(), CommandError> {
        if let Some(form) = output {
            return form.write(self, terminal);
        }
        self.lines(terminal.ink()).iter().try_for_each(|line| terminal.painted(line))?;
        Ok(())
    }

    fn lines(&self, ink: Ink) -> Vec<String> {
        let ExplainedObject { cluster, kind, namespace, name, .. } = &self.object;
        let place = namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        let mut lines = vec![ink.paint(Paint::Strong, &format!("{kind} {place}{name} on {cluster}"))];
        let item = self.item.item.as_ref().map(|item| format!(", {item:?} of its blueprint")).unwrap_or_default();
        let fact = |name: &str, text: &str| ink.paint(Paint::Plain, &format!("  {name:<14}{text}"));
        lines.push(fact("deploy item", &format!("{}/{}{item}", self.item.namespace, self.item.name)));
        if let Some(execution) = &self.execution {
            lines.push(fact("execution", execution));
        }
        if !self.installations.is_empty() {
            let names: Vec<&str> = self.installations.iter().map(|name| &**name).collect();
            lines.push(fact("installation", &names.join(", below ")));
        }
        lines.push(fact("component", &self.component));
        for field in &self.fields {
            lines.push(String::new());
            lines.push(ink.paint(Paint::Strong, &format!("{}: {}", field.path, short(&field.value))));
            lines.extend(field.chart.iter().map(|place| fact("made by", &chart_place(place))));
            lines.extend(field.config.iter().map(|from| fact("made by", &config_place(from))));
            lines.extend(field.inputs.iter().map(|input| fact("depends on", &input.in_words())));
            lines.extend(field.managers.iter().map(|of| fact("managed by", &managed_by(of))));
        }
        if !self.not_tried.is_empty() || !self.notes.is_empty() {
            lines.push(String::new());
        }
        lines.extend(self.not_tried.iter().map(|NotTriedInput { input, why }| {
            ink.paint(Paint::Busy, &format!("! {} was not tried: {why}", input.in_words()))
        }));
        lines.extend(self.notes.iter().map(|note| ink.paint(Paint::Busy, &format!("! {note}"))));
        lines
    }
}

impl ExplainedInput {
    fn in_words(&self) -> String {
        let Self { kind, name, path } = self;
        let kind = match kind {
            InputKind::Import => "import",
            InputKind::Target => "the Target of import",
            InputKind::Export => "what was exported by deploy item",
        };
        if path.is_empty() { format!("{kind} {name}") } else { format!("{kind} {name}, {path}") }
    }
}

fn config_place(ConfigPlace { path, place }: &ConfigPlace) -> String {
    match place {
        None => format!("config {path}"),
        Some(TemplatePlace { file, line: Some(line), execution }) => {
            format!("{file}:{line} ({execution}), config {path}")
        }
        Some(TemplatePlace { file, line: None, execution }) => format!("{file} ({execution}), config {path}"),
    }
}

fn chart_place(ChartPlace { file, line }: &ChartPlace) -> String {
    match line {
        Some(line) => format!("{file}:{line} of the chart"),
        None => format!("{file} of the chart"),
    }
}

fn managed_by(FieldManager { manager, operation, subresource, time }: &FieldManager) -> String {
    let facts: Vec<&str> =
        [operation, subresource, time].into_iter().map(String::as_str).filter(|fact| !fact.is_empty()).collect();
    if facts.is_empty() { manager.clone() } else { format!("{manager} ({})", facts.join(", ")) }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    let short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c_245_an_explanation_is_written_field_by_field() {
        let input = |kind, path: &str| ExplainedInput { kind, name: "app".to_owned(), path: path.to_owned() };
        let place =
            |line| TemplatePlace { file: "t.yaml".to_owned(), line, execution: "deployExecutions \"d\"".to_owned() };
        let config = |place| ConfigPlace { path: "values.a".to_owned(), place };
        let manager = |time: &str| FieldManager {
            manager: "orangery".to_owned(),
            operation: "Apply".to_owned(),
            subresource: String::new(),
            time: time.to_owned(),
        };
        let explanation = Explanation {
            api_version: "orangery.dev/v1alpha1".into(),
            kind: "Explanation".into(),
            object: ExplainedObject {
                cluster: "the target cluster".to_owned(),
                api_version: "v1".into(),
                kind: "ConfigMap".into(),
                namespace: Some("shop".into()),
                name: "app".into(),
            },
            item: ExplainedItem { namespace: "ns".into(), name: "web-x".into(), item: Some("web".to_owned()) },
            execution: Some("web".into()),
            installations: vec!["web".into(), "root".into()],
            component: "helm 0.1.0".to_owned(),
            fields: vec![ExplainedField {
                path: "data.a".to_owned(),
                value: json!("x".repeat(200)),
                chart: Some(ChartPlace { file: "app/templates/a.yaml".to_owned(), line: Some(3) }),
                config: vec![config(Some(place(Some(7)))), config(Some(place(None))), config(None)],
                inputs: vec![
                    input(InputKind::Import, "b.c"),
                    input(InputKind::Target, "metadata.name"),
                    input(InputKind::Export, ""),
                ],
                managers: vec![manager("2026-01-01T00:00:00Z")],
            }],
            not_tried: vec![NotTriedInput { input: input(InputKind::Import, "z"), why: "no\u{1b}".to_owned() }],
            notes: vec!["note".to_owned()],
        };
        let expected = [
            "ConfigMap shop/app on the target cluster".to_owned(),
            "  deploy item   ns/web-x, \"web\" of its blueprint".to_owned(),
            "  execution     web".to_owned(),
            "  installation  web, below root".to_owned(),
            "  component     helm 0.1.0".to_owned(),
            String::new(),
            format!("data.a: \"{}…", "x".repeat(159)),
            "  made by       app/templates/a.yaml:3 of the chart".to_owned(),
            "  made by       t.yaml:7 (deployExecutions \"d\"), config values.a".to_owned(),
            "  made by       t.yaml (deployExecutions \"d\"), config values.a".to_owned(),
            "  made by       config values.a".to_owned(),
            "  depends on    import app, b.c".to_owned(),
            "  depends on    the Target of import app, metadata.name".to_owned(),
            "  depends on    what was exported by deploy item app".to_owned(),
            "  managed by    orangery (Apply, 2026-01-01T00:00:00Z)".to_owned(),
            String::new(),
            "! import app, z was not tried: no\u{fffd}".to_owned(),
            "! note".to_owned(),
        ];
        assert_eq!(explanation.lines(Ink::Plain), expected);
    }
}
