//! `orangery drift`: what is not as deploy items have written it. Carried out by `runtime`; described and written here.

use std::{path::PathBuf, sync::Arc};

use clap::Args;
use kube::Client;
use orangery_api::deploy_item::{DeployItem, DriftedObject};
use orangery_core::name::{ApiVersion, Kind, Namespace, ObjectName};
use orangery_policy::Profile;
use serde::Serialize;

use crate::{
    call::CallError,
    command::inspect,
    command_error::CommandError,
    connection::{Connection, NamespaceScope},
    default_policy::profile,
    form::OutputFormat,
    terminal::{Ink, Paint, Terminal},
    tree::{NodeKind, Tree, TreeNode},
};

const HELP: &str = "\
Examples:
  orangery drift hello                  all deploy items of the installation hello
  orangery drift hello-item-x7f         one deploy item
  orangery drift hello -o json | jq -r '.items[].objects[].name'

The live objects are read and held against what the last job of each deploy item wrote. Nothing is written, and no component
is called. Fields that the item did not write belong to others, and are no drift; nor is what its spec.drift.ignore names.
Fields are compared where the item has spec.drift, for what it wrote is kept then; of other items it is only known whether their
objects are there, and are still theirs.

Signs:
  ~  is different       -  is missing       !  is not the item's any more
Fields are told by JSON pointer, without values.

Output of -o json and -o yaml (fields are added, never renamed or removed):
  apiVersion  orangery.dev/v1alpha1
  kind        Drift
  items       a list of {namespace, name, compared, count, objects, skipped}
              compared: whether fields were compared; count: how many objects were looked at
              objects: what is not as it was written, a list of {cluster, apiVersion, kind, namespace, name, what, fields}
              what: Different, Missing, BeingDeleted or TakenOver
              skipped: why the item was not looked at

Exit codes of this command:
  0  all is as it was written
  1  something could not be looked at, which the output says; or the command line cannot be used
  2  something is not as it was written";

/// Shows what is not as deploy items have written it.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = HELP)]
pub struct DriftArguments {
    /// An installation, or else a deploy item
    pub name: ObjectName,
    /// How it is written [default: lines]
    #[arg(short, long, value_enum, value_name = "FORM")]
    pub output: Option<OutputFormat>,
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
}

impl DriftArguments {
    /// The deploy items that are meant, in the order of their tree.
    ///
    /// # Errors
    /// The cluster does not answer, or has nothing of that name.
    pub async fn items(&self, client: &Client, namespace: &Namespace) -> Result<Vec<Arc<DeployItem>>, CallError> {
        let objects = inspect::read(client, namespace).await?;
        let tree = Tree::of(&objects).of_installation(namespace, &self.name);
        let names = match &tree {
            Some(tree) => tree.roots.iter().flat_map(deploy_items).collect(),
            None => vec![self.name.clone()],
        };
        let find = |name: &ObjectName| {
            objects.deploy_items.iter().find(|item| item.metadata.name.as_deref() == Some(&**name)).cloned()
        };
        let items: Vec<Arc<DeployItem>> = names.iter().filter_map(find).collect();
        if items.is_empty() && tree.is_none() {
            let kind = Kind::from_static("installation or deploy item");
            return Err(CallError::NotFound { kind, namespace: namespace.clone(), name: self.name.clone() });
        }
        Ok(items)
    }
}

fn deploy_items(node: &TreeNode) -> Vec<ObjectName> {
    let own = (node.kind == NodeKind::DeployItem).then(|| node.name.clone());
    own.into_iter().chain(node.children.iter().flat_map(deploy_items)).collect()
}

/// The drift of one deploy item.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DriftEntry {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its name.
    pub name: ObjectName,
    /// Whether fields were compared.
    pub compared: bool,
    /// How many objects were looked at.
    pub count: usize,
    /// Those that are not as they were written.
    pub objects: Vec<DriftedObject>,
    /// Why the item was not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DriftDocument {
    api_version: ApiVersion,
    kind: Kind,
    items: Vec<DriftEntry>,
}

impl DriftDocument {
    /// The drift of some items.
    pub fn new(items: Vec<DriftEntry>) -> Self {
        let (api_version, kind) = (ApiVersion::from_static("orangery.dev/v1alpha1"), Kind::from_static("Drift"));
        Self { api_version, kind, items }
    }

    /// Whether anything is not as it was written.
    pub fn has_drift(&self) -> bool {
        self.items.iter().any(|item| !item.objects.is_empty())
    }

    /// Writes it as the command line asks for.
    ///
    /// # Errors
    /// [`CommandError::Form`] and [`CommandError::Output`]
    pub fn write(&self, arguments: &DriftArguments, terminal: &mut Terminal) -> Result<(), CommandError> {
        if let Some(form) = arguments.output {
            return form.write(self, terminal);
        }
        for line in self.lines(terminal.ink()) {
            terminal.painted(&line)?;
        }
        Ok(())
    }

    fn lines(&self, ink: Ink) -> Vec<String> {
        let mut lines = Vec::new();
        for item in &self.items {
            lines.push(ink.paint(Paint::Plain, &item.summary()));
            for object in &item.objects {
                let (sign, paint) = match object.what.as_str() {
                    "Missing" | "BeingDeleted" => ("-", Paint::Bad),
                    "TakenOver" => ("!", Paint::Dim),
                    _ => ("~", Paint::Busy),
                };
                let place = object.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
                let cluster = object.cluster.as_ref().map(|cluster| format!(" on {cluster}")).unwrap_or_default();
                let title = format!("  {sign} {} {place}{}{cluster}", object.kind, object.name);
                lines.push(ink.paint(paint, &title));
                lines.extend(object.fields.iter().map(|field| ink.paint(Paint::Plain, &format!("      {field}"))));
            }
        }
        lines
    }
}

impl DriftEntry {
    fn summary(&self) -> String {
        let Self { namespace, name, compared, count, objects, skipped } = self;
        let what = match (skipped, objects.len()) {
            (Some(why), _) => format!("not looked at: {why}"),
            (None, 0) => format!("{count} objects, all {}", if *compared { "as they were written" } else { "there" }),
            (None, drifted) => format!("{drifted} of {count} objects are not as they were written"),
        };
        let only =
            if *compared || skipped.is_some() { "" } else { " (fields are not compared, as it has no spec.drift)" };
        format!("deploy item {namespace}/{name}: {what}{only}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(what: &str, name: &str, fields: &[&str]) -> DriftedObject {
        DriftedObject {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("n".into()),
            name: name.into(),
            what: what.to_owned(),
            fields: fields.iter().map(|field| (*field).to_owned()).collect(),
            ..DriftedObject::default()
        }
    }

    fn entry(objects: Vec<DriftedObject>) -> DriftEntry {
        DriftEntry { namespace: "default".into(), name: "web".into(), compared: true, count: 4, objects, skipped: None }
    }

    #[test]
    fn c_56_each_object_has_a_line_and_each_field_one_below_it() {
        let there = vec![
            object("Different", "a", &["/data/x", "/data/y"]),
            object("Missing", "b", &[]),
            DriftedObject { cluster: Some("the host cluster".to_owned()), ..object("TakenOver", "c", &[]) },
        ];
        let skipped = DriftEntry { skipped: Some("no".to_owned()), ..entry(Vec::new()) };
        let unkept = DriftEntry { compared: false, ..entry(Vec::new()) };
        let document = DriftDocument::new(vec![entry(there), skipped, unkept, entry(Vec::new())]);
        assert!(document.has_drift());
        let expected = "\
deploy item default/web: 3 of 4 objects are not as they were written
  ~ ConfigMap n/a
      /data/x
      /data/y
  - ConfigMap n/b
  ! ConfigMap n/c on the host cluster
deploy item default/web: not looked at: no
deploy item default/web: 4 objects, all there (fields are not compared, as it has no spec.drift)
deploy item default/web: 4 objects, all as they were written";
        assert_eq!(document.lines(Ink::Plain).join("\n"), expected);
        assert!(!DriftDocument::new(vec![entry(Vec::new())]).has_drift());
    }
}
