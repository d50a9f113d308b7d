//! `orangery force-delete`: takes objects away that no operator can delete, and tells what they leave behind (C-378).

use std::{fmt::Debug, str::FromStr, sync::Arc};

use clap::Args;
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
    core::NamespaceResourceScope,
};
use orangery_api::{FINALIZER, GROUP, deploy_item::DeployItem, execution::Execution, installation::Installation};
use orangery_core::name::{Kind, Namespace, ObjectName};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{
    inspect,
    policy::check::deployed,
    why::{NoKind, ObjectArgument, SubjectKind},
};
use crate::{
    call::{CallError, CallSubject},
    command_error::CommandError,
    connection::{Connection, NamespaceScope},
    exit::Exit,
    terminal::Terminal,
    tree::{NodeKind, Objects, Tree, TreeNode},
};

const EXAMPLES: &str = "\
Examples:
  orangery force-delete hello                       what would be deleted, and what would be left behind
  orangery force-delete hello --yes                 deletes it, with all that belongs to it
  orangery force-delete deployitem/hello-x7f --yes

Nothing is uninstalled: what was deployed stays in its clusters, and nobody knows of it any more. This is for objects that an operator
cannot delete, as where their clusters are gone for good and nobody can say so otherwise. While an operator runs, kubectl delete is
what is meant, with the annotation landscaper.gardener.cloud/delete-without-uninstall: \"true\" where nothing is to be uninstalled.";

/// How many objects that are left behind are named of each deploy item.
const NAMED: usize = 20;
/// How often a finalizer is taken off anew, where somebody else writes the same object.
const TRIES: usize = 5;

/// Deletes an installation, an execution or a deploy item, with all that belongs to it, without uninstalling anything.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{}", crate::exit::EXIT_CODES))]
pub struct ForceDelete {
    /// The object, such as installation/hello, execution/hello or deployitem/hello-item-x7f; a name alone is that of an installation
    #[arg(value_name = "KIND/NAME")]
    pub subject: ForcedObject,
    /// Do it, and not only tell what would be done
    #[arg(long)]
    pub yes: bool,
    /// Which namespace.
    #[command(flatten)]
    pub scope: NamespaceScope,
    /// Which cluster.
    #[command(flatten)]
    pub connection: Connection,
}

/// An object of a tree, as the command line names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForcedObject {
    kind: NodeKind,
    name: ObjectName,
}

/// What cannot be deleted by force.
#[derive(Debug, thiserror::Error)]
pub enum NotForced {
    /// It is no kind.
    #[error(transparent)]
    NoKind(#[from] NoKind),
    /// It is of another sort.
    #[error(
        "only installations, executions and deploy items are deleted by force; guards of other objects are let go by orangery uninstall \
         --release-guards"
    )]
    Used,
}

impl FromStr for ForcedObject {
    type Err = NotForced;

    fn from_str(text: &str) -> Result<Self, NotForced> {
        let ObjectArgument { kind, name } = text.parse()?;
        match kind {
            SubjectKind::Node(kind) => Ok(Self { kind, name }),
            SubjectKind::Used(_) => Err(NotForced::Used),
        }
    }
}

impl ForceDelete {
    /// Tells what would be deleted, or deletes it.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        self.on(&self.connection.client().await?, terminal).await
    }

    pub(crate) async fn on(&self, client: &Client, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let namespace = self.scope.namespace(client);
        let objects = inspect::read(client, &namespace).await?;
        let tree = Tree::of(&objects);
        let Some(top) = tree.roots.iter().find_map(|root| find(root, &self.subject)) else {
            let kind = Kind::from(self.subject.kind.as_str().to_lowercase());
            return Err(CallError::NotFound { kind, namespace, name: self.subject.name.clone() }.into());
        };
        let mut nodes = Vec::new();
        collect(top, &mut nodes);
        let does = if self.yes { "is deleted" } else { "would be deleted" };
        for node in &nodes {
            let left = self.left_behind(client, &objects, node).await;
            terminal.line(format_args!(
                "{} {namespace}/{} {does}{left}",
                node.kind.as_str().to_lowercase(),
                node.name
            ))?;
        }
        if !self.yes {
            terminal.note("nothing was changed; look at these, and say --yes to do it")?;
            return Ok(Exit::Ok);
        }
        let forced = Forced { client, namespace: &namespace };
        // From the top down nothing below is made anew; a finalizer cannot come back to what is being deleted.
        for node in &nodes {
            forced.delete(&objects, node).await?;
        }
        let mut held = false;
        for node in nodes.iter().rev() {
            let others = forced.free(&objects, node).await?;
            if !others.is_empty() {
                held = true;
                let kind = node.kind.as_str().to_lowercase();
                let names = others.join(", ");
                terminal.warning(format_args!(
                    "{kind} {namespace}/{} stays until its finalizers of others go: {names}",
                    node.name
                ));
            }
        }
        Ok(if held { Exit::Failed } else { Exit::Ok })
    }

    /// What a deploy item leaves in its clusters, as the line goes on.
    async fn left_behind(&self, client: &Client, objects: &Objects, node: &TreeNode) -> String {
        let item = objects.deploy_items.iter().find(|item| item.name_any() == *node.name);
        let Some(item) = item.filter(|_| node.kind == NodeKind::DeployItem) else { return String::new() };
        let inventory = match deployed(client, item).await {
            Ok(inventory) if inventory.0.is_empty() => return "; it has deployed nothing that is known".to_owned(),
            Ok(inventory) => inventory,
            Err(why) => return format!("; what it leaves behind is not known: {why}"),
        };
        let target = item.spec.target.as_ref().map_or("no target", |target| target.name.as_str());
        let mut names: Vec<String> =
            inventory.0.keys().take(NAMED).map(|at| format!("{} in {}", at.key, at.on)).collect();
        let more = inventory.0.len().saturating_sub(NAMED);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        format!("; left behind ({target}): {}", names.join(", "))
    }
}

fn find<'t>(node: &'t TreeNode, subject: &ForcedObject) -> Option<&'t TreeNode> {
    if node.kind == subject.kind && node.name == subject.name {
        return Some(node);
    }
    node.children.iter().find_map(|child| find(child, subject))
}

/// A node and all below it, from the top down.
fn collect<'t>(node: &'t TreeNode, nodes: &mut Vec<&'t TreeNode>) {
    nodes.push(node);
    node.children.iter().for_each(|child| collect(child, nodes));
}

/// The uid of an object as it was seen; empty where it is not known.
fn seen<K: Resource>(objects: &[Arc<K>], name: &ObjectName) -> Option<String> {
    objects.iter().find(|object| object.name_any() == **name).and_then(|object| object.uid())
}

/// Where objects are deleted by force.
struct Forced<'a> {
    client: &'a Client,
    namespace: &'a Namespace,
}

impl Forced<'_> {
    async fn delete(&self, objects: &Objects, node: &TreeNode) -> Result<(), CallError> {
        let name = &node.name;
        match node.kind {
            NodeKind::Installation => self.delete_as::<Installation>(name, seen(&objects.installations, name)).await,
            NodeKind::Execution => self.delete_as::<Execution>(name, seen(&objects.executions, name)).await,
            NodeKind::DeployItem => self.delete_as::<DeployItem>(name, seen(&objects.deploy_items, name)).await,
        }
    }

    /// Takes the operator's finalizer off an object, and answers those of others.
    async fn free(&self, objects: &Objects, node: &TreeNode) -> Result<Vec<String>, CallError> {
        let name = &node.name;
        match node.kind {
            NodeKind::Installation => self.free_as::<Installation>(name, seen(&objects.installations, name)).await,
            NodeKind::Execution => self.free_as::<Execution>(name, seen(&objects.executions, name)).await,
            NodeKind::DeployItem => self.free_as::<DeployItem>(name, seen(&objects.deploy_items, name)).await,
        }
    }

    async fn delete_as<K>(&self, name: &ObjectName, uid: Option<String>) -> Result<(), CallError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), self.namespace);
        let preconditions = Some(Preconditions { uid, resource_version: None });
        let deleted = api.delete(name, &DeleteParams { preconditions, ..DeleteParams::background() }).await;
        match deleted.map_err(|error| self.refused::<K>(name, error)) {
            // Another one has its name by now: the one that was meant is gone.
            Ok(_) | Err(CallError::NotFound { .. } | CallError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn free_as<K>(&self, name: &ObjectName, uid: Option<String>) -> Result<Vec<String>, CallError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), self.namespace);
        for left in (0..TRIES).rev() {
            let found = api.get_metadata_opt(name).await.map_err(|error| self.refused::<K>(name, error))?;
            let Some(found) = found.filter(|found| found.uid() == uid) else { return Ok(Vec::new()) };
            let others: Vec<String> = found.finalizers().iter().filter(|held| *held != FINALIZER).cloned().collect();
            if others.len() == found.finalizers().len() {
                return Ok(others);
            }
            let metadata = json!({"finalizers": others, "resourceVersion": found.resource_version()});
            let patch = Patch::Merge(json!({"metadata": metadata}));
            let freed = api.patch_metadata(name, &PatchParams::default(), &patch).await;
            match freed.map_err(|error| self.refused::<K>(name, error)) {
                Ok(_) | Err(CallError::NotFound { .. }) => return Ok(others),
                // The operator has written it meanwhile.
                Err(CallError::Conflict { .. }) if left > 0 => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Vec::new())
    }

    fn refused<K: Resource<DynamicType = ()>>(&self, name: &ObjectName, error: kube::Error) -> CallError {
        let kind = Kind::from(K::kind(&()).into_owned());
        CallError::of(CallSubject { kind: &kind, group: GROUP, namespace: self.namespace, name }, error)
    }
}

#[cfg(test)]
mod tests;
