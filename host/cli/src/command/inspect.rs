//! `orangery inspect`: installations as trees.

use std::sync::Arc;

use clap::{Args, ValueEnum};
use kube::{Client, Resource, ResourceExt as _, core::NamespaceResourceScope};
use orangery_api::{GROUP, deploy_item::DeployItem, execution::Execution, installation::Installation};
use orangery_core::name::{ApiVersion, Kind, Namespace, ObjectName};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    call::CallError,
    command_error::CommandError,
    connection::{Connection, NamespaceScope},
    exit::Exit,
    form::OutputFormat,
    listed,
    terminal::Terminal,
    tree::{
        NodeFailure, Objects, Tree, TreeNode,
        draw::{self, TreeView},
    },
};

const HELP: &str = "\
Examples:
  orangery inspect                   all installations of the namespace
  orangery inspect hello -n demo     one of them, with what belongs to it
  orangery inspect -A --failed       what failed, in all namespaces
  orangery inspect -A -o json | jq '.causes[].message'

Output of -o json and -o yaml (fields are added, never renamed or removed):
  apiVersion     orangery.dev/v1alpha1
  kind           InstallationTrees
  installations  a list of nodes:
    kind         Installation, Execution or DeployItem
    namespace, name
    title        the name in the blueprint
    phase        as in the object's status; empty before the first job
    standing     idle, pending, running, succeeded or failed
    job          the id of the job asked for last
    type, target, plugin    of deploy items
    items        of executions: {done, total}
    seconds      from the job's start to its end
    since        when it failed, or began to wait for what it waits for
    waitsFor     one sentence
    waitingFor   the same as data, at most 16 of {kind, namespace, name, selection, until};
                 until is Exists, Ready, Finished, Gone, Met or Room
    waitingForMore    how many more it waits for
    error        {operation, reason, message, codes, hint}
    children     a list of nodes
  causes         what really failed, a list of
                 {path, kind, namespace, name, operation, reason, message, codes, hint}

The exit code is 0 whatever the installations' phases are.";

/// Shows installations as trees: what belongs to them, phases, what each waits for, and errors in full.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct Inspect {
    /// Show only this installation, a root or a sub-installation
    pub name: Option<ObjectName>,
    /// Look into all namespaces
    #[arg(short = 'A', long, conflicts_with_all = ["namespace", "name"])]
    pub all_namespaces: bool,
    /// Show only what failed, and what it belongs to
    #[arg(long)]
    pub failed: bool,
    /// How it is written [default: a tree]
    #[arg(short, long, value_enum, value_name = "FORM")]
    pub output: Option<TreeForm>,
    /// Which namespace.
    #[command(flatten)]
    pub scope: NamespaceScope,
    /// Which cluster.
    #[command(flatten)]
    pub connection: Connection,
}

/// How trees are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TreeForm {
    /// A tree with object names, jobs and plugins
    Wide,
    /// For programs
    Json,
    /// For programs
    Yaml,
}

/// The output of `-o json` and `-o yaml`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InspectOutput<'a> {
    api_version: ApiVersion,
    kind: Kind,
    installations: &'a [TreeNode],
    causes: Vec<NodeFailure<'a>>,
}

impl Inspect {
    /// Reads the objects and shows them.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        self.on(&self.connection.client().await?, terminal).await
    }

    pub(crate) async fn on(&self, client: &Client, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let namespace = if self.all_namespaces { Namespace::default() } else { self.scope.namespace(client) };
        let mut tree = Tree::of(&read(client, &namespace).await?);
        if let Some(name) = &self.name {
            tree = tree.of_installation(&namespace, name).ok_or_else(|| CallError::NotFound {
                kind: "installation".into(),
                namespace: namespace.clone(),
                name: name.clone(),
            })?;
        }
        if self.failed {
            tree = tree.failed_only();
        }
        self.show(&tree, &namespace, terminal)?;
        Ok(Exit::Ok)
    }

    fn show(&self, tree: &Tree, home: &Namespace, terminal: &mut Terminal) -> Result<(), CommandError> {
        let document = || InspectOutput {
            api_version: ApiVersion::from_static("orangery.dev/v1alpha1"),
            kind: Kind::from_static("InstallationTrees"),
            installations: &tree.roots,
            causes: tree.causes(),
        };
        let is_wide = match self.output {
            None => false,
            Some(TreeForm::Wide) => true,
            Some(TreeForm::Json) => return OutputFormat::Json.write(&document(), terminal),
            Some(TreeForm::Yaml) => return OutputFormat::Yaml.write(&document(), terminal),
        };
        if tree.roots.is_empty() {
            let what = if self.failed { "nothing failed" } else { "there are no installations" };
            let place = if home.is_empty() { "any namespace".to_owned() } else { format!("namespace {home}") };
            return Ok(terminal.note(format_args!("{what} in {place}"))?);
        }
        let view = TreeView { ink: terminal.ink(), is_wide, home, columns: None };
        for line in draw::lines(tree, view) {
            terminal.painted(&line)?;
        }
        for cause in tree.causes() {
            terminal.line("")?;
            terminal.line(cause.text())?;
        }
        Ok(())
    }
}

/// Everything of one namespace, or of all where it is empty.
pub(crate) async fn read(client: &Client, namespace: &Namespace) -> Result<Objects, CallError> {
    let (installations, executions, deploy_items) = futures::try_join!(
        list::<Installation>(client, namespace),
        list::<Execution>(client, namespace),
        list::<DeployItem>(client, namespace),
    )?;
    Ok(Objects { installations, executions, deploy_items })
}

/// Objects in one page of a list.
const PAGE: u32 = 500;

/// All objects of a kind in a namespace, or in all where it is empty, sorted.
pub(crate) async fn list<K>(client: &Client, namespace: &Namespace) -> Result<Vec<Arc<K>>, CallError>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned,
{
    let within = (!namespace.is_empty()).then_some(namespace);
    let mut objects = Vec::new();
    listed::each(client, within, (GROUP, PAGE), |object: K| objects.push(Arc::new(object))).await?;
    objects.sort_by_key(|object| (object.namespace(), object.name_any()));
    Ok(objects)
}
