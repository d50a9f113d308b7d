//! Installations as trees: objects in, lines out.
//!
//! An installation holds its execution and its sub-installations, an execution its deploy items (`docs/wire.md` §11.5).
//! [`Tree::of`] builds the tree, [`draw::lines`] draws it, [`Tree::causes`] names what really failed, and [`live::Live`]
//! keeps a drawing up to date. All but the last are pure; nothing here reads a cluster.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use orangery_api::{
    deploy_item::DeployItem,
    execution::{Execution, ItemGate},
    installation::Installation,
    waiting::WaitingFor,
};
use orangery_core::name::{JobId, Namespace, ObjectName};
use serde::{Serialize, Serializer};

pub use crate::tree::{
    cause::NodeFailure,
    why::{CauseChain, Link},
};

mod build;
mod cause;
pub mod draw;
pub mod live;
#[cfg(test)]
mod tests;
mod why;

/// What a tree is built from: everything of some namespaces.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// All installations.
    pub installations: Vec<Arc<Installation>>,
    /// All executions.
    pub executions: Vec<Arc<Execution>>,
    /// All deploy items.
    pub deploy_items: Vec<Arc<DeployItem>>,
}

/// Trees, side by side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// Root installations by namespace and name, then executions and deploy items that belong to none.
    pub roots: Vec<TreeNode>,
}

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum NodeKind {
    /// A blueprint being installed.
    Installation,
    /// Its deploy items, in order.
    Execution,
    /// One thing deployed.
    DeployItem,
}

impl NodeKind {
    /// The word of `kind` fields.
    pub fn as_str(self) -> &'static str {
        match self {
            NodeKind::Installation => "Installation",
            NodeKind::Execution => "Execution",
            NodeKind::DeployItem => "DeployItem",
        }
    }
}

/// How an object stands. No verdict is ever taken from a job before the one asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeState {
    /// Nothing is asked of it: no job ever ran, or the spec changed since the last one (C-05), or the last job of its
    /// parent ended without it.
    Idle,
    /// Its parent's job runs and has not come to it yet.
    Pending,
    /// A job runs, is asked for, or deletes it.
    Running,
    /// The last job succeeded.
    Succeeded,
    /// The last job, or the deletion, failed.
    Failed,
}

impl NodeState {
    /// Whether nothing happens any more without a new trigger.
    pub fn is_final(self) -> bool {
        match self {
            NodeState::Idle | NodeState::Succeeded | NodeState::Failed => true,
            NodeState::Pending | NodeState::Running => false,
        }
    }
}

/// What went wrong, as `status.lastError` has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trouble {
    /// The operation that failed.
    pub operation: String,
    /// A CamelCase word.
    pub reason: String,
    /// What is told.
    pub message: String,
    /// Error codes, sorted (`docs/wire.md` §3.3).
    pub codes: Vec<String>,
    /// What usually helps, where the code tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<&'static str>,
}

/// How many of an execution's deploy items succeeded in this job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ItemProgress {
    /// Those that succeeded.
    pub done: usize,
    /// All of them.
    pub total: usize,
}

/// One object and what belongs to it. Its JSON form is documented in `orangery inspect --help` and stable.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeNode {
    /// The kind.
    pub kind: NodeKind,
    /// The object's namespace.
    pub namespace: Namespace,
    /// The object's name.
    pub name: ObjectName,
    /// The name in the blueprint; that of the object where it has none.
    pub title: String,
    /// The phase on the wire; empty before the first job.
    pub phase: String,
    /// How it stands.
    pub standing: NodeState,
    /// The job asked for last; empty before the first.
    pub job: JobId,
    /// The type of a deploy item.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub item_type: Option<String>,
    /// The target of a deploy item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The deployer that works on a deploy item, with its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// How far an execution is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<ItemProgress>,
    /// From the job's start to its end, in seconds.
    #[serde(rename = "seconds", skip_serializing_if = "Option::is_none", serialize_with = "seconds")]
    pub took: Option<Duration>,
    /// Since when it stands so: when it failed, or began to wait for what it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// What it waits for, one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// The things that it waits for, as `status.waitingFor` has them; empty unless it is at work.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting_for: Vec<WaitingFor>,
    /// How many more things it waits for, as `status.waitingForMore` has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_for_more: Option<NonZeroU32>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Trouble>,
    /// What the gate expressions of a deploy item answered in the last job.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ItemGate>,
    /// What belongs to it, in the order of the blueprint.
    pub children: Vec<TreeNode>,
}

fn seconds<S: Serializer>(took: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    took.map(|took| took.as_secs_f64()).serialize(serializer)
}

impl TreeNode {
    /// Whether it, or anything below it, failed.
    pub fn has_failed(&self) -> bool {
        self.standing == NodeState::Failed || self.children.iter().any(TreeNode::has_failed)
    }

    /// Whether it failed by itself: it failed, and nothing below it did.
    pub fn is_cause(&self) -> bool {
        self.standing == NodeState::Failed && !self.children.iter().any(TreeNode::has_failed)
    }

    fn failed_only(mut self) -> Option<Self> {
        if !self.has_failed() {
            return None;
        }
        self.children = self.children.into_iter().filter_map(TreeNode::failed_only).collect();
        Some(self)
    }

    fn find(&self, namespace: &Namespace, name: &ObjectName) -> Option<&TreeNode> {
        if self.kind == NodeKind::Installation && self.namespace == *namespace && self.name == *name {
            return Some(self);
        }
        self.children.iter().find_map(|child| child.find(namespace, name))
    }
}

impl Tree {
    /// Builds the trees of these objects.
    pub fn of(objects: &Objects) -> Self {
        build::tree(objects)
    }

    /// The tree of one installation, a sub-installation as well; `None` where there is none.
    pub fn of_installation(&self, namespace: &Namespace, name: &ObjectName) -> Option<Self> {
        let node = self.roots.iter().find_map(|root| root.find(namespace, name))?;
        Some(Self { roots: vec![node.clone()] })
    }

    /// Only what failed, with what it belongs to.
    pub fn failed_only(self) -> Self {
        Self { roots: self.roots.into_iter().filter_map(TreeNode::failed_only).collect() }
    }

    /// Whether nothing happens any more without a new trigger.
    pub fn is_final(&self) -> bool {
        self.roots.iter().all(|root| root.standing.is_final())
    }

    /// Whether any root failed.
    pub fn has_failed(&self) -> bool {
        self.roots.iter().any(|root| root.standing == NodeState::Failed)
    }

    /// What really failed, in the order of the tree: failures that follow from others are left out.
    pub fn causes(&self) -> Vec<NodeFailure<'_>> {
        cause::causes(self)
    }
}
