//! `orangery plan`: what the next job of an Installation or of a deploy item would do. Carried out by `runtime`; described and
//! written here.

mod tree;

use std::{path::PathBuf, str::FromStr};

use clap::Args;
use orangery_core::name::{ApiVersion, Kind, Namespace, ObjectName};
use orangery_policy::Profile;
use orangery_proposal::{Action, PlannedObject, counted, overlay::Difference};
use serde::Serialize;
use serde_json::Value;

use crate::{
    command_error::CommandError,
    connection::{Connection, NamespaceScope},
    default_policy::profile,
    exit::Exit,
    form::{OutputFormat, yaml},
    repositories::RepositoryFlags,
    terminal::{Ink, Paint, Terminal},
};

pub use self::tree::{InstallationPlan, ItemPlan, ObjectAction, TreePlan};

const HELP: &str = "\
Examples:
  orangery plan web                     what the next job of the Installation web and of all below it would do
  orangery plan web --delete            what its deletion would take along
  orangery plan -f folder               the same for Installations as they are written in a folder or a file
  orangery plan deployitem/web          what the next job of one deploy item would do
  orangery plan -f item.yaml --brief    the same for an item as it is written in a file; without the content of objects

NAME is that of an Installation, or else of a deploy item; installation/NAME and deployitem/NAME are the one and the other.

Nothing is written. Blueprints are rendered as in a job, over the objects of the namespace. Each component is asked as in a job,
and what it answers is held against the policies of the namespace and against the live objects. What a policy refuses is said
with its line, and the exit code is 1. Waits are taken to succeed at once; what a component does after a later call is not known
beforehand, and that is said. Clusters are asked with the rights of whoever plans: what the namespace's service account may not
do on the host cluster a job alone finds out.

What a deploy item exports counts as its last job has left it. An Installation that needs an export that nobody has made yet is
decided later in the job, and so are gate expressions that read more than imports. What templates draw at random is drawn anew
in the job, but for what they keep as their state.

Signs:
  +  is created          ~  is changed, field by field      -  is deleted
  ±  is deleted, and created anew                           !  belongs to somebody else, and is left as it is
Values of Secrets are hidden.

Output of -o json and -o yaml of an Installation (fields are added, never renamed or removed;
docs/plan.schema.json is its JSON schema):
  apiVersion     orangery.dev/v1alpha1
  kind           Plan
  installation   {namespace, name}
  installations  itself and those below it, a list of {path, action, decidedLater, items, warnings}
                 path: the names from the root down; action: create, run or delete
                 decidedLater: why what it does is not known before the job
                 items: in the order in which they may begin, a list of
                 {name, type, action, dependsOn, plugin, objects, notes, unfinished, failure}, as below

Output of a deploy item:
  apiVersion  orangery.dev/v1alpha1
  kind        Plan
  item        {namespace, name}
  plugin      the component that answered
  objects     in the order in which they are come to, a list of
              {action, cluster, apiVersion, kind, namespace, name, stage, ephemeral, changes, object}
              action: create, change, replace, delete, none or foreign
              changes: a list of {path, before, after}
  notes       what is not deleted although it left the item, and why; and what is not known here: a list of sentences
  unfinished  whether the component is called again afterwards
  failure     why the item would fail then, where it would

The exit code is 0 whatever there is to do. With --detailed-exitcode, as of terraform plan:
  0  nothing is to be created, changed or deleted, and the component is not called again
  1  there is no plan, the item would fail, or the command line cannot be used
  2  something is to be done; of a release of Helm that is so in each job, since it has a new revision";

/// Shows what the next job of an Installation or of a deploy item would do, before anything is written.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct PlanArguments {
    /// The Installation, or else the deploy item; or installation/NAME, or deployitem/NAME
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    pub name: Option<PlanSubject>,
    /// Take Installations, or a deploy item, as this file or folder has them, or standard input where it is -
    #[arg(short, long = "filename", value_name = "PATH")]
    pub file: Option<PathBuf>,
    /// Plan a deletion
    #[arg(long)]
    pub delete: bool,
    /// Leave the content of objects out
    #[arg(long)]
    pub brief: bool,
    /// Say by the exit code whether anything is to be done: 2 where it is
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// How it is written [default: lines]
    #[arg(short, long, value_enum, value_name = "FORM")]
    pub output: Option<OutputFormat>,
    /// Folder with registrations of further components (YAML)
    #[arg(long, value_name = "FOLDER")]
    pub plugins: Option<PathBuf>,
    /// What the operator takes for namespaces that no NamespacePolicy selects [default: compatible, but for clusters in
    /// networks that restricted refuses; what else restricted would refuse is said]
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

/// What is to be planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanSubject {
    /// The Installation of this name, else the deploy item.
    Any(ObjectName),
    /// An Installation.
    Installation(ObjectName),
    /// A deploy item.
    Item(ObjectName),
}

impl FromStr for PlanSubject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some((kind, name)) = text.split_once('/') else { return Ok(Self::Any(text.into())) };
        match kind {
            "installation" | "installations" | "inst" => Ok(Self::Installation(name.into())),
            "deployitem" | "deployitems" | "di" => Ok(Self::Item(name.into())),
            _ => Err(format!("{kind:?} is no kind that is planned; write installation/{name} or deployitem/{name}")),
        }
    }
}

fn title(object: &PlannedObject) -> String {
    let PlannedObject { kind, namespace, name, cluster, stage, ephemeral, .. } = object;
    let place = namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    let cluster = cluster.as_ref().map(|cluster| format!(" on {cluster}")).unwrap_or_default();
    let goes = if *ephemeral { ", and goes with the job" } else { "" };
    let stage = if stage.is_empty() { String::new() } else { format!("  ({stage}{goes})") };
    format!("{kind} {place}{name}{cluster}{stage}")
}

/// All of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanDocument {
    api_version: ApiVersion,
    kind: Kind,
    item: ItemName,
    plugin: String,
    objects: Vec<PlannedObject>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    unfinished: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct ItemName {
    namespace: Namespace,
    name: ObjectName,
}

impl PlanDocument {
    /// A plan for an item. `unfinished`: the component is called again afterwards. `failure`: what the item fails with then.
    pub fn new(
        (namespace, name): (Namespace, ObjectName),
        plugin: String,
        objects: Vec<PlannedObject>,
        unfinished: bool,
        failure: Option<String>,
    ) -> Self {
        let item = ItemName { namespace, name };
        Self {
            api_version: ApiVersion::from_static("orangery.dev/v1alpha1"),
            kind: Kind::from_static("Plan"),
            item,
            plugin,
            objects,
            notes: Vec::new(),
            unfinished,
            failure,
        }
    }

    /// The same with what else is to be said, one sentence each.
    pub fn with_notes(self, notes: Vec<String>) -> Self {
        Self { notes, ..self }
    }

    /// The exit code of a command line that asks for one with the plan in it (C-307).
    pub fn detailed_exit(&self) -> Exit {
        detailed_exit(self.failure.is_some(), self.unfinished || self.objects.iter().any(PlannedObject::is_changed))
    }

    /// Writes it as the command line asks for.
    ///
    /// # Errors
    /// [`CommandError::Form`] and [`CommandError::Output`]
    pub fn write(&self, arguments: &PlanArguments, terminal: &mut Terminal) -> Result<(), CommandError> {
        write(self, arguments, terminal, |ink| self.lines(ink, arguments.brief))
    }

    fn lines(&self, ink: Ink, brief: bool) -> Result<Vec<String>, CommandError> {
        let mut lines = object_lines(&self.objects, ink, brief)?;
        lines.extend(self.notes.iter().map(|note| ink.paint(Paint::Bad, &format!("! {note}"))));
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.push(ink.paint(Paint::Plain, &self.summary()));
        Ok(lines)
    }

    fn summary(&self) -> String {
        let message = counts(self.objects.iter().map(|object| object.action));
        let ItemName { namespace, name } = &self.item;
        let mut summary = format!("deploy item {namespace}/{name}, by {}: {message}", self.plugin);
        if self.unfinished {
            summary.push_str("; the component is called again afterwards, and may ask for more");
        }
        if let Some(failure) = &self.failure {
            summary.push_str(&format!("; then the item fails: {failure}"));
        }
        summary
    }
}

/// Writes a plan as the command line asks for: as a document, or as these lines.
fn write(
    plan: &impl Serialize,
    arguments: &PlanArguments,
    terminal: &mut Terminal,
    lines: impl FnOnce(Ink) -> Result<Vec<String>, CommandError>,
) -> Result<(), CommandError> {
    if let Some(form) = arguments.output {
        return form.write(plan, terminal);
    }
    for line in lines(terminal.ink())? {
        terminal.painted(&line)?;
    }
    Ok(())
}

/// The exit code of a plan by which something fails, or else something is to be done (C-307).
fn detailed_exit(fails: bool, has_changes: bool) -> Exit {
    match (fails, has_changes) {
        (true, _) => Exit::Failed,
        (false, true) => Exit::Changes,
        (false, false) => Exit::Ok,
    }
}

/// What becomes of objects, a line each, with the content below it.
pub(super) fn object_lines(objects: &[PlannedObject], ink: Ink, brief: bool) -> Result<Vec<String>, CommandError> {
    let mut lines = Vec::new();
    for object in objects {
        let (sign, paint) = match object.action {
            Action::Create => ("+", Paint::Good),
            Action::Change => ("~", Paint::Busy),
            Action::Replace => ("±", Paint::Busy),
            Action::Delete => ("-", Paint::Bad),
            Action::Foreign => ("!", Paint::Dim),
            Action::None => continue,
        };
        lines.push(ink.paint(paint, &format!("{sign} {}", title(object))));
        if brief {
            continue;
        }
        lines.extend(object.changes.iter().map(|change| ink.paint(Paint::Plain, &changed(change))));
        if let Some(content) = &object.object {
            lines.extend(yaml(content)?.lines().map(|line| ink.paint(Paint::Dim, &format!("    {line}"))));
        }
    }
    Ok(lines)
}

/// How many objects of each sort there are, as words.
fn counts(actions: impl Iterator<Item = Action>) -> String {
    counted(actions).unwrap_or_else(|| "nothing to do".to_owned())
}

/// The longest value in a line, in characters.
const LONGEST: usize = 160;

fn changed(one: &Difference) -> String {
    let text = |value: &Option<Value>| match value {
        None => "(absent)".to_owned(),
        Some(value) => {
            let text = value.to_string();
            let short: String = text.chars().take(LONGEST).collect();
            if short.len() < text.len() { format!("{short}…") } else { short }
        }
    };
    format!("    {}: {} → {}", one.path, text(&one.before), text(&one.after))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use orangery_proposal::{ClusterRef, ObjectKey};
    use serde_json::json;

    use super::*;

    fn key(kind: &str, namespace: Option<&str>, name: &str) -> ObjectKey {
        ObjectKey {
            api_version: "v1".into(),
            kind: kind.into(),
            namespace: namespace.map(Into::into),
            name: name.into(),
        }
    }

    fn config_map(text: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "u"}, "data": {"text": text}})
    }

    fn document(objects: Vec<PlannedObject>) -> PlanDocument {
        let item = ("default".into(), "web".into());
        PlanDocument::new(item, "helm 0.1.0".to_owned(), objects, false, None)
    }

    /// The names of fields.
    fn names(object: &Value) -> BTreeSet<&str> {
        object.as_object().unwrap().keys().map(String::as_str).collect()
    }

    fn required(schema: &Value) -> BTreeSet<&str> {
        schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect()
    }

    #[test]
    fn c_307_the_schema_has_every_field_and_no_other() {
        let schema: Value = serde_json::from_str(include_str!("../../../../docs/plan.schema.json")).unwrap();
        let (one, two) = (config_map("one"), config_map("two"));
        let of = |action, on: &ClusterRef, before, after| {
            PlannedObject::new(action, on, &key("ConfigMap", Some("x"), "a"), before, after)
        };
        let changed = of(Action::Change, &ClusterRef::Host, Some(&one), Some(&two));
        let changed = PlannedObject { object: Some(json!({})), ..changed };
        let full =
            PlanDocument { failure: Some("no".to_owned()), ..document(vec![changed]).with_notes(vec!["n".to_owned()]) };
        let bare = of(Action::None, &ClusterRef::Target, None, None);
        let least = document(vec![PlannedObject { namespace: None, ..bare }]);
        let (full, least) = (serde_json::to_value(full).unwrap(), serde_json::to_value(least).unwrap());
        let (schema, item) = (&schema["oneOf"][0], &schema["$defs"]["objects"]["items"]);
        let change = &item["properties"]["changes"]["items"];
        assert_eq!(names(&schema["properties"]), names(&full));
        assert_eq!(names(&item["properties"]), names(&full["objects"][0]));
        assert_eq!(names(&change["properties"]), names(&full["objects"][0]["changes"][0]));
        assert_eq!(required(schema), names(&least));
        assert_eq!(required(item), names(&least["objects"][0]));
        let actions: Vec<Action> =
            vec![Action::Create, Action::Change, Action::Replace, Action::Delete, Action::None, Action::Foreign];
        assert_eq!(item["properties"]["action"]["enum"], serde_json::to_value(actions).unwrap());
    }

    #[test]
    fn c_307_the_exit_code_says_whether_anything_is_to_be_done() {
        let one = config_map("one");
        let object = |action| {
            PlannedObject::new(action, &ClusterRef::Target, &key("ConfigMap", Some("x"), "a"), Some(&one), Some(&one))
        };
        let exit = |actions: &[Action]| document(actions.iter().copied().map(object).collect()).detailed_exit();
        assert_eq!(exit(&[]), Exit::Ok);
        assert_eq!(exit(&[Action::None, Action::Foreign]), Exit::Ok);
        for action in [Action::Create, Action::Change, Action::Replace, Action::Delete] {
            assert_eq!(exit(&[Action::None, action]), Exit::Changes);
        }
        let unfinished = PlanDocument { unfinished: true, ..document(Vec::new()) };
        assert_eq!(unfinished.detailed_exit(), Exit::Changes);
        let failing = PlanDocument { failure: Some("no".to_owned()), ..unfinished };
        assert_eq!(failing.detailed_exit(), Exit::Failed);
    }

    #[test]
    fn a_plan_tells_what_happens_to_each_object_and_counts() {
        let target = ClusterRef::Target;
        let (one, two) = (config_map("one"), config_map("two"));
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"password": "aHVudGVy"}});
        let objects = vec![
            PlannedObject::new(Action::Create, &target, &key("Secret", Some("x"), "s"), None, Some(&secret))
                .in_stage("write Secret".to_owned(), false),
            PlannedObject::new(Action::Change, &target, &key("ConfigMap", Some("x"), "a"), Some(&one), Some(&two)),
            PlannedObject::new(Action::Replace, &ClusterRef::Host, &key("Job", Some("x"), "j"), Some(&one), Some(&one))
                .in_stage("hook".to_owned(), true),
            PlannedObject::new(Action::None, &target, &key("ConfigMap", Some("x"), "b"), Some(&one), Some(&one)),
            PlannedObject::new(Action::Foreign, &target, &key("Namespace", None, "x"), Some(&one), Some(&one)),
            PlannedObject::new(Action::Delete, &target, &key("ConfigMap", Some("x"), "c"), Some(&one), None),
        ];
        let document = document(objects);
        let expected = [
            "+ Secret x/s  (write Secret)",
            "    apiVersion: v1",
            "    kind: Secret",
            "    data:",
            "      password: (hidden)",
            "~ ConfigMap x/a",
            "    data.text: \"one\" → \"two\"",
            "± Job x/j on the host cluster  (hook, and goes with the job)",
            "! Namespace x",
            "- ConfigMap x/c",
            "",
            "deploy item default/web, by helm 0.1.0: 1 to create, 1 to change, 1 to create anew, 1 to delete, 1 of somebody else, 1 as they should be",
        ];
        let mut lines = document.lines(Ink::Plain, false).unwrap();
        // The order of fields is that of the map.
        lines[1..5].sort();
        let mut sorted = expected;
        sorted[1..5].sort_unstable();
        assert_eq!(lines, sorted);
        assert_eq!(document.lines(Ink::Plain, true).unwrap().len(), 7);
    }

    #[test]
    fn what_comes_afterwards_is_told() {
        let plan = document(Vec::new());
        assert_eq!(plan.summary(), "deploy item default/web, by helm 0.1.0: nothing to do");
        let noted = plan.clone().with_notes(vec!["v1 ConfigMap x stays".to_owned()]).lines(Ink::Plain, false).unwrap();
        assert_eq!(noted, ["! v1 ConfigMap x stays", "", "deploy item default/web, by helm 0.1.0: nothing to do"]);
        let plan = PlanDocument { unfinished: true, failure: Some("no".to_owned()), ..plan };
        assert_eq!(
            plan.summary(),
            "deploy item default/web, by helm 0.1.0: nothing to do; the component is called again afterwards, and may ask for more; then the item fails: no"
        );
    }

    #[test]
    fn a_long_value_is_cut() {
        let one = Difference { path: "data.x".to_owned(), before: None, after: Some(json!("ä".repeat(500))) };
        assert_eq!(changed(&one), format!("    data.x: (absent) → \"{}…", "ä".repeat(LONGEST - 1)));
    }
}
