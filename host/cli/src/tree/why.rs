//! What an object waits for, or why it failed: a chain from it to the object where the reason lies.

use std::{collections::BTreeMap, num::NonZeroU32};

use orangery_api::waiting::WaitingFor;
use orangery_core::{
    condition::{AWAITS_UNINSTALL, SUSPENDS},
    error::cleaned,
    name::{Namespace, ObjectName},
    step::{BEFORE_DELETION, Until},
};
use serde::Serialize;

use crate::tree::{NodeKind, NodeState, Tree, TreeNode, Trouble};

/// A chain of objects, each of which stands as it does because of the next.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CauseChain<'a> {
    /// From the object asked about to the one where the reason lies; never empty.
    pub chain: Vec<Link<'a>>,
    /// Why the last one failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a Trouble>,
    /// How to mend it, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// One object of the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Link<'a> {
    /// Its kind.
    pub kind: NodeKind,
    /// Its namespace.
    pub namespace: &'a Namespace,
    /// Its name.
    pub name: &'a ObjectName,
    /// Its name in the blueprint.
    pub title: &'a str,
    /// The phase on the wire.
    pub phase: &'a str,
    /// How it stands.
    pub standing: NodeState,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<&'a str>,
    /// What it waits for, or what there is to say of it; the error of one that failed stands beside the chain.
    pub says: String,
    /// How many more it waits for, beside the next of the chain.
    pub others: usize,
}

type NodeId<'a> = (NodeKind, &'a Namespace, &'a str);

/// All nodes by kind, namespace and name, with what each belongs to.
struct NodeIndex<'a> {
    nodes: BTreeMap<NodeId<'a>, (&'a TreeNode, Option<NodeId<'a>>)>,
}

/// What stands next in the chain, and how many stand beside it.
struct ChainStep<'a> {
    next: Option<&'a TreeNode>,
    others: usize,
}

impl Tree {
    /// Why an object stands as it does; `None` where there is no such object.
    pub fn why(&self, kind: NodeKind, namespace: &Namespace, name: &ObjectName) -> Option<CauseChain<'_>> {
        let positions = NodeIndex::of(self);
        let (mut node, _) = positions.nodes.get(&(kind, namespace, name)).copied()?;
        let (mut seen, mut chain) = (Vec::new(), Vec::new());
        let ring = loop {
            seen.push(node);
            let step = positions.step(node);
            chain.push(Link::of(node, &step));
            let Some(next) = step.next else { break None };
            match seen.iter().position(|before| id(before) == id(next)) {
                Some(first) => break ring(seen.get(first..).unwrap_or_default()),
                None => node = next,
            }
        };
        let fix = ring.or_else(|| positions.undeleted_importer(&seen)).or_else(|| fix(node));
        let fix = fix.or_else(|| kept_deletion(&seen));
        Some(CauseChain { chain, error: node.error.as_ref(), fix })
    }
}

/// How to end the waiting of these for each other, where each says for what it waits.
fn ring(nodes: &[&TreeNode]) -> Option<String> {
    let waits = |node: &&TreeNode| node.standing == NodeState::Running && !node.waiting_for.is_empty();
    let names: Vec<String> = nodes.iter().map(|node| format!("{} {}", node.kind.as_str(), node.name)).collect();
    nodes.iter().all(waits).then(|| {
        format!(
            "{} wait for each other in a ring: end the job of their root with orangery interrupt NAME",
            names.join(" and ")
        )
    })
}

/// How the deletion of an Installation begins at once that waits for the end of its job (C-212).
fn kept_deletion(chain: &[&TreeNode]) -> Option<String> {
    let root = chain.first().filter(|root| root.kind == NodeKind::Installation)?;
    let waits = root.waits_for.as_deref().is_some_and(|wait| wait.ends_with(BEFORE_DELETION));
    waits.then(|| {
        format!(
            "to have the deletion begin at once, end the job: orangery interrupt {} -n {}",
            root.name, root.namespace
        )
    })
}

impl CauseChain<'_> {
    /// Whether the last object is at work, or is to be, and nothing tells what it waits for.
    pub(crate) fn is_unexplained(&self) -> bool {
        self.chain.last().is_some_and(|link| link.says.ends_with(NOBODY))
    }

    /// Says of the last object what is known otherwise, and what to do.
    pub(crate) fn conclude(&mut self, (says, fix): (String, String)) {
        if let Some(last) = self.chain.last_mut() {
            let what = last.says.strip_suffix(NOBODY).unwrap_or(&last.says);
            last.says = format!("{what}; {says}");
        }
        self.fix = Some(fix);
    }

    /// The chain as lines, and below it the error of the last object in full.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (depth, link) in self.chain.iter().enumerate() {
            let lead = if depth == 0 { String::new() } else { format!("{}because ", "  ".repeat(depth)) };
            let since = link.since.map(|since| format!(" (since {since})")).unwrap_or_default();
            let others = if link.others == 0 { String::new() } else { format!(", and for {} more", link.others) };
            lines.push(format!("{lead}{} {}{others}{since}", link.subject(), cleaned(&link.says, usize::MAX)));
        }
        let below = "  ".repeat(self.chain.len());
        if let Some(error) = self.error {
            lines.push(format!(
                "{below}error:  {}",
                error.message.trim_end().replace('\n', &format!("\n{below}        "))
            ));
            let operation =
                if error.operation.is_empty() { String::new() } else { format!(" (in {})", error.operation) };
            lines.push(format!("{below}reason: {}{operation}", error.reason));
            if !error.codes.is_empty() {
                lines.push(format!("{below}code:   {}", error.codes.join(", ")));
            }
        }
        lines.extend(self.fix.as_ref().map(|fix| format!("{below}fix:    {fix}")));
        lines
    }
}

impl<'a> Link<'a> {
    fn of(node: &'a TreeNode, step: &ChainStep<'a>) -> Self {
        Self {
            kind: node.kind,
            namespace: &node.namespace,
            name: &node.name,
            title: &node.title,
            phase: &node.phase,
            standing: node.standing,
            since: node.since.as_deref(),
            says: says(node, step.next),
            others: step.others,
        }
    }

    fn subject(&self) -> String {
        match self.kind {
            // One that has no object has no name of its own.
            NodeKind::DeployItem if self.name.as_str() == self.title => format!("deploy item {}", self.title),
            NodeKind::Installation => format!("installation {}", self.name),
            NodeKind::Execution => format!("execution {}", self.name),
            NodeKind::DeployItem => format!("deploy item {} ({})", self.title, self.name),
        }
    }
}

fn id(node: &TreeNode) -> NodeId<'_> {
    (node.kind, &node.namespace, &node.name)
}

/// The kind of an object that is waited for, where it has a place in trees.
fn kind(word: &str) -> Option<NodeKind> {
    [NodeKind::Installation, NodeKind::Execution, NodeKind::DeployItem].into_iter().find(|kind| kind.as_str() == word)
}

impl<'a> NodeIndex<'a> {
    fn of(tree: &'a Tree) -> Self {
        let mut positions = Self { nodes: BTreeMap::new() };
        for root in &tree.roots {
            positions.add(root, None);
        }
        positions
    }

    fn add(&mut self, node: &'a TreeNode, parent: Option<NodeId<'a>>) {
        self.nodes.insert(id(node), (node, parent));
        for child in &node.children {
            self.add(child, Some(id(node)));
        }
    }

    fn node(&self, id: &NodeId<'_>) -> Option<&'a TreeNode> {
        self.nodes.get(id).map(|(node, _)| *node)
    }

    fn parent(&self, node: &TreeNode) -> Option<&'a TreeNode> {
        let (_, parent) = self.nodes.get(&id(node))?;
        self.node(parent.as_ref()?)
    }

    /// Those beside a node: with the same parent, or roots of its namespace.
    fn beside(&self, node: &'a TreeNode) -> Vec<&'a TreeNode> {
        match self.parent(node) {
            Some(parent) => parent.children.iter().collect(),
            None => {
                let roots =
                    self.nodes.values().filter(|(root, parent)| parent.is_none() && root.namespace == node.namespace);
                roots.map(|(root, _)| *root).collect()
            }
        }
    }

    fn step(&self, node: &'a TreeNode) -> ChainStep<'a> {
        match node.standing {
            NodeState::Failed => self.failed(node),
            NodeState::Running => self.running(node),
            NodeState::Pending => self.pending(node),
            NodeState::Idle | NodeState::Succeeded => first(Vec::new()),
        }
    }

    /// How the deletion of a root goes on that waits for another one to be gone, which imports its exports and which nobody
    /// deletes (INS-61).
    fn undeleted_importer(&self, chain: &[&'a TreeNode]) -> Option<String> {
        let [.., node, next] = chain else { return None };
        let is_root = |node: &TreeNode| node.kind == NodeKind::Installation && self.parent(node).is_none();
        let waits = |on: &WaitingFor| on.until() == Some(Until::Gone) && on.name == next.name;
        let is_deleted = next.standing == NodeState::Running || next.phase == "DeleteFailed";
        (is_root(node) && is_root(next) && !is_deleted && node.waiting_for.iter().any(waits)).then(|| {
            format!(
                "installation {next} imports what installation {node} exports, and nobody deletes it: delete it, too, or annotate \
                 installation {node} with landscaper.gardener.cloud/delete-ignore-successors: \"true\"",
                next = next.name,
                node = node.name
            )
        })
    }

    /// What failed below it, or the sibling whose failure it names.
    fn failed(&self, node: &'a TreeNode) -> ChainStep<'a> {
        let below: Vec<&TreeNode> = node.children.iter().filter(|child| child.has_failed()).collect();
        if !below.is_empty() {
            return first(below);
        }
        let Some(error) = node.error.as_ref().filter(|error| error.reason == "PredecessorNotSucceeded") else {
            return first(below);
        };
        let names = |other: &TreeNode| error.message.contains(&format!("installation {} ", other.name));
        let siblings = self.beside(node).into_iter();
        first(
            siblings
                .filter(|other| other.kind == NodeKind::Installation && id(other) != id(node) && names(other))
                .collect(),
        )
    }

    fn running(&self, node: &'a TreeNode) -> ChainStep<'a> {
        if !node.waiting_for.is_empty() {
            let named = first(node.waiting_for.iter().filter_map(|on| self.awaited(node, on)).collect());
            let more = if named.next.is_some() { more(node) } else { 0 };
            return ChainStep { others: named.others + more, ..named };
        }
        first(
            node.children
                .iter()
                .filter(|child| matches!(child.standing, NodeState::Running | NodeState::Failed))
                .collect(),
        )
    }

    /// The node of a thing that a node waits for; what a deploy item waits for is on other clusters.
    fn awaited(&self, node: &'a TreeNode, on: &WaitingFor) -> Option<&'a TreeNode> {
        if node.kind == NodeKind::DeployItem {
            return None;
        }
        if let Some(kind) = kind(&on.kind) {
            return self.node(&(kind, &on.namespace, &on.name));
        }
        // `item/readyWhen`: a gate expression of one of its items.
        let (item, _) = on.name.rsplit_once('/').filter(|_| on.until() == Some(Until::Met))?;
        node.children.iter().find(|child| child.title == item)
    }

    /// The predecessors that it waits for, else what it belongs to, which has not come to it yet.
    fn pending(&self, node: &'a TreeNode) -> ChainStep<'a> {
        let after = node.waits_for.as_deref().and_then(|text| text.strip_prefix("after ")).unwrap_or_default();
        let after: Vec<&str> = after.split(", ").collect();
        let before: Vec<&TreeNode> =
            self.beside(node).into_iter().filter(|other| after.contains(&other.title.as_str())).collect();
        if before.is_empty() { first(self.parent(node).into_iter().collect()) } else { first(before) }
    }
}

/// How many things a node waits for that its status counts and does not name.
fn more(node: &TreeNode) -> usize {
    let more = node.waiting_for_more.map_or(0, NonZeroU32::get);
    usize::try_from(more).unwrap_or(usize::MAX)
}

/// Of several, what failed comes first, then what is at work.
fn first(mut nodes: Vec<&TreeNode>) -> ChainStep<'_> {
    nodes.sort_by_key(|node| match node.standing {
        _ if node.has_failed() => 0,
        NodeState::Running => 1,
        NodeState::Pending => 2,
        NodeState::Idle | NodeState::Succeeded | NodeState::Failed => 3,
    });
    ChainStep { next: nodes.first().copied(), others: nodes.len().saturating_sub(1) }
}

/// The end of what is said of an object at work that names nothing.
const NOBODY: &str = ", and waits for nobody";

fn says(node: &TreeNode, next: Option<&TreeNode>) -> String {
    let phase = if node.phase.is_empty() { String::new() } else { format!(" in phase {}", node.phase) };
    match (node.standing, &node.waits_for) {
        (NodeState::Failed, Some(wait)) if wait.starts_with(SUSPENDS) => format!("failed; it {wait}"),
        (NodeState::Failed, _) => "failed".to_owned(),
        (NodeState::Succeeded, Some(condition)) => format!("succeeded, but {condition}"),
        (NodeState::Succeeded, None) => "waits for nothing: its last job succeeded".to_owned(),
        (NodeState::Idle, Some(trigger)) => trigger.clone(),
        (NodeState::Idle, None) => "has nothing to do: no job that reached it has asked for it".to_owned(),
        (NodeState::Pending, Some(after)) if after.starts_with("after ") => format!("has not begun: it comes {after}"),
        (NodeState::Pending, Some(condition)) => format!("has not begun: {condition}"),
        (NodeState::Pending, None) => "has not begun: the job has not come to it yet".to_owned(),
        (NodeState::Running, _) if is_untaken(node) => {
            let item_type = node.item_type.as_deref().unwrap_or_default();
            format!("has not begun: nobody has taken it, neither a component for {item_type} nor another deployer")
        }
        (NodeState::Running, Some(wait)) if wait.starts_with(AWAITS_UNINSTALL) => wait.clone(),
        (NodeState::Running, Some(wait)) if awaits_room(node) => format!("has not begun: {wait}"),
        (NodeState::Running, Some(wait)) => format!("is at work{phase}: {wait}"),
        (NodeState::Running, None) if next.is_some() => format!("is at work{phase}"),
        (NodeState::Running, None) => format!("is at work{phase}{NOBODY}"),
    }
}

/// Whether it waits for its turn among all that the host works on.
fn awaits_room(node: &TreeNode) -> bool {
    node.waiting_for.iter().any(|on| on.until() == Some(Until::Room))
}

/// Whether nobody has begun with a deploy item that is asked for: it never had a deployer, or stands where its last job left it.
fn is_untaken(node: &TreeNode) -> bool {
    let stands_still = node.plugin.is_none() || matches!(node.phase.as_str(), "Succeeded" | "Failed" | "DeleteFailed");
    node.kind == NodeKind::DeployItem && node.standing == NodeState::Running && node.waits_for.is_none() && stands_still
}

/// How to mend what the last object of a chain says.
fn fix(node: &TreeNode) -> Option<String> {
    if let Some(error) = &node.error {
        return error.hint.map(str::to_owned);
    }
    if is_untaken(node) {
        return Some(
            "register a component for the type (orangery run --plugins), start the deployer that takes it, or correct \
             the type in the blueprint; to delete it without its deployer, and leave what it deployed, annotate it with \
             landscaper.gardener.cloud/delete-without-uninstall: \"true\""
                .to_owned(),
        );
    }
    let missing = node.waiting_for.iter().find(|on| on.until() == Some(Until::Exists))?;
    let which = if missing.name.is_empty() { missing.selection.as_str() } else { missing.name.as_str() };
    let place =
        if missing.namespace.is_empty() { String::new() } else { format!(" in namespace {}", missing.namespace) };
    Some(format!("create {} {which}{place}, or correct what names it", missing.kind))
}
