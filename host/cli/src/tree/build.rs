//! From objects to trees.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    time::Duration,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use orangery_api::{
    annotation,
    condition::{self, Condition},
    convert::is_suspended,
    deploy_item::DeployItem,
    execution::{Execution, ItemGate},
    installation::Installation,
    job::{Job, TransitionTimes},
    label,
    marks::{Marks, Operation},
};

use crate::tree::{ItemProgress, NodeKind, NodeState, Objects, Tree, TreeNode, cause};
use orangery_core::{
    condition::SUSPENDS,
    name::{JobId, Namespace, ObjectName},
};

/// Namespace and name.
type ObjectId = (Namespace, ObjectName);

/// The objects by what they belong to.
struct OwnershipIndex<'a> {
    installations: BTreeMap<ObjectId, &'a Installation>,
    subinstallations: BTreeMap<ObjectId, Vec<&'a Installation>>,
    executions: BTreeMap<ObjectId, &'a Execution>,
    /// Executions by the installation they belong to.
    owned: BTreeMap<ObjectId, &'a Execution>,
    items: BTreeMap<ObjectId, Vec<&'a DeployItem>>,
    /// Installations that have their place. Guards against rings of labels, which only a forger makes.
    placed: BTreeSet<ObjectId>,
}

/// What a child needs to know of its parent.
#[derive(Clone, Copy)]
struct ParentNode<'a> {
    job: &'a JobId,
    is_at_work: bool,
    /// How many Installations are above.
    depth: usize,
}

/// Installations in one another, as far as they are shown: more are no tree that the operator follows.
const DEEPEST: usize = 64;

pub(super) fn tree(objects: &Objects) -> Tree {
    let mut index = OwnershipIndex::of(objects);
    let installations: Vec<(ObjectId, &Installation)> =
        index.installations.iter().map(|(id, installation)| (id.clone(), *installation)).collect();
    let mut roots = Vec::new();
    for (_, installation) in &installations {
        if parent_id(installation).is_none_or(|parent| !index.installations.contains_key(&parent)) {
            roots.extend(index.installation(installation, None));
        }
    }
    for (_, installation) in &installations {
        roots.extend(index.installation(installation, None));
    }
    let executions: Vec<&Execution> = index.executions.values().copied().collect();
    let homeless = executions.iter().filter(|execution| !index.installations.contains_key(&owner_of(execution)));
    roots.extend(homeless.map(|execution| index.execution(execution, None)));
    for (id, items) in &index.items {
        if !index.executions.contains_key(id) {
            roots.extend(items.iter().map(|item| deploy_item(item, None)));
        }
    }
    Tree { roots }
}

fn id(object: &impl Marks) -> ObjectId {
    let meta = object.meta();
    (meta.namespace.as_deref().map(Namespace::from).unwrap_or_default(), meta.name.clone().unwrap_or_default().into())
}

fn beside(object: &impl Marks, name: &str) -> ObjectId {
    (object.meta().namespace.as_deref().map(Namespace::from).unwrap_or_default(), name.into())
}

fn parent_id(installation: &Installation) -> Option<ObjectId> {
    let name = installation.parent_installation().or_else(|| installation.label(label::ENCOMPASSED_BY))?;
    Some(beside(installation, name))
}

/// The installation of an execution: its owner, else the one of the same name.
fn owner_of(execution: &Execution) -> ObjectId {
    execution.parent_installation().map_or_else(|| id(execution), |name| beside(execution, name))
}

impl<'a> OwnershipIndex<'a> {
    fn of(objects: &'a Objects) -> Self {
        let mut index = Self {
            installations: objects.installations.iter().map(|object| (id(&**object), &**object)).collect(),
            subinstallations: BTreeMap::new(),
            executions: objects.executions.iter().map(|object| (id(&**object), &**object)).collect(),
            owned: objects.executions.iter().map(|object| (owner_of(object), &**object)).collect(),
            items: BTreeMap::new(),
            placed: BTreeSet::new(),
        };
        for installation in &objects.installations {
            if let Some(parent) = parent_id(installation) {
                index.subinstallations.entry(parent).or_default().push(installation);
            }
        }
        for item in &objects.deploy_items {
            let execution = beside(&**item, item.label(label::MANAGED_BY).unwrap_or_default());
            index.items.entry(execution).or_default().push(item);
        }
        index
    }

    fn installation(&mut self, installation: &'a Installation, parent: Option<ParentNode<'_>>) -> Option<TreeNode> {
        let own_id = id(installation);
        let depth = parent.as_ref().map_or(0, |parent| parent.depth + 1);
        if depth > DEEPEST || !self.placed.insert(own_id.clone()) {
            return None;
        }
        let status = installation.status.as_ref();
        // A root that is about to trigger others is not done: their jobs follow from its own.
        let is_suspended = installation.is_root() && is_suspended(installation);
        let is_requested = parent.is_none()
            && !is_suspended
            && (installation.operation() == Some(Operation::Reconcile)
                || status.is_some_and(|status| {
                    !status.dependents_to_trigger.is_empty() || !status.pending_operation.is_empty()
                }));
        let times = status.and_then(|status| status.transition_times.as_ref());
        let mut node = node(installation, NodeKind::Installation, times, ExpectedJob { parent, is_requested });
        if let Some(title) = installation.annotation(annotation::SUBINSTALLATION_NAME) {
            node.title = title.to_owned();
        }
        if node.standing == NodeState::Idle && parent.is_none() {
            node.waits_for = Some(format!("awaits a trigger: orangery reconcile {} -n {}", node.name, node.namespace));
        }
        if node.standing != NodeState::Running && is_suspended {
            node.waits_for = Some(format!("{SUSPENDS}: orangery resume {} -n {}", node.name, node.namespace));
        }
        let below = ParentNode { job: installation.job_id(), is_at_work: !node.standing.is_final(), depth };
        let execution = self.owned.get(&own_id).copied();
        if let Some(execution) = execution {
            let title = node.title.clone();
            node.children.push(TreeNode { title, ..self.execution(execution, Some(below)) });
        }
        let mut subinstallations = self.subinstallations.get(&own_id).cloned().unwrap_or_default();
        subinstallations.sort_by_key(|sub| (sub.annotation(annotation::SUBINSTALLATION_NAME), id(*sub)));
        let mut children: Vec<TreeNode> = Vec::new();
        for sub in subinstallations {
            children.extend(self.installation(sub, Some(below)));
        }
        if let Some(workflow) = status.and_then(|status| status.workflow.as_ref()) {
            let mut gated = GatedItems { kind: NodeKind::Installation, of: &own_id, nodes: children };
            for of in workflow.subinstallations.iter().filter(|of| !of.conditions.is_empty()) {
                gated.show_conditions((&of.name, &of.conditions), &below);
            }
            if node.standing == NodeState::Succeeded {
                gated.show_left(workflow.subinstallations.iter().map(|of| &of.name));
            }
            children = gated.nodes;
            children.sort_by(|one, other| one.title.cmp(&other.title));
        }
        node.children.extend(children);
        Some(node)
    }

    fn execution(&self, execution: &'a Execution, parent: Option<ParentNode<'_>>) -> TreeNode {
        let times = execution.status.as_ref().and_then(|status| status.transition_times.as_ref());
        let mut node = node(execution, NodeKind::Execution, times, ExpectedJob { parent, is_requested: false });
        let depth = parent.as_ref().map_or(0, |parent| parent.depth);
        let below = ParentNode { job: execution.job_id(), is_at_work: !node.standing.is_final(), depth };
        let mut items = self.items.get(&id(execution)).cloned().unwrap_or_default();
        // An unreadable list leaves the order of the names; the execution's own error tells of it.
        let order: Vec<String> =
            execution.spec.items().map(|items| items.into_iter().map(|item| item.name).collect()).unwrap_or_default();
        let places: BTreeMap<_, _> =
            order.iter().enumerate().rev().map(|(place, name)| (name.as_str(), place)).collect();
        let place_of = |title: &str| places.get(title).copied().unwrap_or(usize::MAX);
        items.sort_by_cached_key(|item| {
            let title = item_title(item);
            (place_of(&title), title)
        });
        node.children = items.into_iter().map(|item| deploy_item(item, Some(below))).collect();
        name_predecessors(&mut node.children, &self.items.get(&id(execution)).cloned().unwrap_or_default());
        let status = execution.status.as_ref();
        let conditional = status.map(|status| status.items.as_slice()).unwrap_or_default();
        if !conditional.is_empty() {
            let mut gated = GatedItems { kind: NodeKind::DeployItem, of: &id(execution), nodes: node.children };
            for item in conditional {
                gated.show_conditions((&item.name, &item.conditions), &below);
            }
            if node.standing == NodeState::Succeeded {
                gated.show_left(order.iter());
            }
            node.children = gated.nodes;
        }
        node.children.sort_by_cached_key(|item| place_of(&item.title));
        let done = node.children.iter().filter(|item| item.standing == NodeState::Succeeded).count();
        // An item that is not wanted is none of those to be done.
        let left_out =
            |item: &&TreeNode| item.job.is_empty() && item.standing == NodeState::Idle && item.waits_for.is_some();
        let total = node.children.len() - node.children.iter().filter(left_out).count();
        node.items = Some(ItemProgress { done, total });
        tell_stopped(&mut node);
        node
    }
}

/// Says of what a failed job did not come to that it was another's failure that kept it.
fn tell_stopped(node: &mut TreeNode) {
    let why = match node.phase.as_str() {
        "Failed" => "not started: another one failed",
        "DeleteFailed" => "not deleted: another one could not be",
        _ => return,
    };
    let left = node.children.iter_mut().filter(|child| child.standing == NodeState::Idle && child.waits_for.is_none());
    for child in left {
        child.waits_for = Some(why.to_owned());
    }
}

fn item_title(item: &DeployItem) -> String {
    item.item_name().map_or_else(|| id(item).1.into(), str::to_owned)
}

fn deploy_item(item: &DeployItem, parent: Option<ParentNode<'_>>) -> TreeNode {
    let status = item.status.as_ref();
    let times = status.and_then(|status| status.transition_times.as_ref());
    let is_requested = parent.is_none() && item.operation() == Some(Operation::TestReconcile);
    let mut node = node(item, NodeKind::DeployItem, times, ExpectedJob { parent, is_requested });
    node.title = item_title(item);
    node.item_type = Some(item.spec.type_.clone());
    node.target = item.spec.target.as_ref().map(|target| target.name.clone()).map(String::from);
    node.plugin = status
        .map(|status| &status.deployer)
        .filter(|deployer| !deployer.name.is_empty())
        .map(|deployer| format!("{} {}", deployer.name, deployer.version).trim_end().to_owned());
    node
}

/// Says of each pending item which of its predecessors it waits for.
fn name_predecessors(nodes: &mut [TreeNode], items: &[&DeployItem]) {
    let succeeded: BTreeSet<String> =
        nodes.iter().filter(|node| node.standing == NodeState::Succeeded).map(|node| node.title.clone()).collect();
    let by_name: BTreeMap<ObjectName, &DeployItem> = items.iter().map(|item| (id(*item).1, *item)).collect();
    for node in nodes.iter_mut().filter(|node| node.standing == NodeState::Pending) {
        let Some(item) = by_name.get(node.name.as_str()) else { continue };
        let waiting: Vec<&str> = item
            .annotation(annotation::DEPENDS_ON)
            .unwrap_or_default()
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty() && !succeeded.contains(*name))
            .collect();
        if !waiting.is_empty() {
            node.waits_for = Some(format!("after {}", waiting.join(", ")));
        }
    }
}

/// The items of an object that gate expressions have a say in.
struct GatedItems<'a> {
    kind: NodeKind,
    /// The object.
    of: &'a ObjectId,
    nodes: Vec<TreeNode>,
}

impl GatedItems<'_> {
    /// Says of an item what its gate expressions hold up. One without an object, which is not wanted or not decided upon, gets
    /// a place of its own.
    fn show_conditions(&mut self, (name, conditions): (&str, &[ItemGate]), parent: &ParentNode<'_>) {
        // The one that holds it up is the last that was asked.
        let unmet = conditions.iter().rfind(|condition| condition.status != "True");
        let held = unmet.map(|condition| match (condition.type_.as_str(), condition.status.as_str()) {
            ("when", "False") => format!("not wanted: {}", condition.message),
            ("activateWhen", "False") => format!("takes no part: {}", condition.message),
            (field, "False") => format!("{field} is not met: {}", condition.message),
            (field, _) => format!("{field} cannot be told: {}", condition.message),
        });
        let decides = |condition: &ItemGate| matches!(condition.type_.as_str(), "when" | "activateWhen");
        let decided = unmet.is_some_and(|condition| condition.status == "False" && decides(condition));
        match self.nodes.iter_mut().find(|node| node.title == name) {
            Some(node) => {
                node.conditions = conditions.to_vec();
                node.waits_for = held.or(node.waits_for.take());
            }
            None => {
                let standing = if decided || !parent.is_at_work { NodeState::Idle } else { NodeState::Pending };
                self.nodes.push(TreeNode {
                    since: unmet.map(|condition| condition.last_transition_time.0.to_string()),
                    waits_for: held,
                    conditions: conditions.to_vec(),
                    ..self.without_object(name, standing)
                });
            }
        }
    }

    /// What depends on what is not wanted was never asked, and has no object.
    fn show_left<'n>(&mut self, names: impl Iterator<Item = &'n String>) {
        let known: BTreeSet<String> = self.nodes.iter().map(|node| node.title.clone()).collect();
        for name in names.filter(|name| !known.contains(*name)) {
            self.nodes.push(TreeNode {
                waits_for: Some("not wanted: what it depends on is not there".to_owned()),
                ..self.without_object(name, NodeState::Idle)
            });
        }
    }

    /// The place of an item that has no object.
    fn without_object(&self, name: &str, standing: NodeState) -> TreeNode {
        TreeNode {
            kind: self.kind,
            namespace: self.of.0.clone(),
            name: name.into(),
            title: name.to_owned(),
            phase: String::new(),
            standing,
            job: JobId::default(),
            item_type: None,
            target: None,
            plugin: None,
            items: None,
            took: None,
            since: None,
            waits_for: None,
            waiting_for: Vec::new(),
            waiting_for_more: None,
            error: None,
            conditions: Vec::new(),
            children: Vec::new(),
        }
    }
}

/// What is asked of an object, beside its own status.
#[derive(Clone, Copy)]
struct ExpectedJob<'a> {
    parent: Option<ParentNode<'a>>,
    is_requested: bool,
}

fn node<K: Marks + Job>(
    object: &K,
    kind: NodeKind,
    times: Option<&TransitionTimes>,
    asked: ExpectedJob<'_>,
) -> TreeNode {
    let (namespace, name) = id(object);
    let standing = standing(object, asked);
    let is_running = standing == NodeState::Running;
    TreeNode {
        kind,
        namespace,
        title: name.to_string(),
        name,
        phase: object.phase().to_owned(),
        standing,
        job: object.job_id().clone(),
        item_type: None,
        target: None,
        plugin: None,
        items: None,
        took: if standing == NodeState::Succeeded || standing == NodeState::Failed {
            times.and_then(took)
        } else {
            None
        },
        since: since(object, standing, times).map(|since| since.0.to_string()),
        waits_for: is_running.then(|| waits_for(object)).flatten(),
        waiting_for: if is_running { object.waiting_for().to_vec() } else { Vec::new() },
        waiting_for_more: NonZeroU32::new(object.waiting_for_more()).filter(|_| is_running),
        error: (standing == NodeState::Failed).then(|| object.last_error().map_or_else(cause::untold, cause::trouble)),
        conditions: Vec::new(),
        children: Vec::new(),
    }
}

fn standing<K: Marks + Job>(object: &K, asked: ExpectedJob<'_>) -> NodeState {
    if !object.job_finished() || asked.is_requested {
        return NodeState::Running;
    }
    if let Some(parent) = asked.parent
        && parent.job != object.job_id()
    {
        return if parent.is_at_work { NodeState::Pending } else { NodeState::Idle };
    }
    match object.phase() {
        "DeleteFailed" => NodeState::Failed,
        _ if object.is_deleting() => NodeState::Running,
        "Failed" => NodeState::Failed,
        "Succeeded" if awaits_trigger(object.conditions()) => NodeState::Idle,
        "Succeeded" => NodeState::Succeeded,
        _ => NodeState::Idle,
    }
}

fn awaits_trigger(conditions: &[Condition]) -> bool {
    condition::find(conditions, "Ready")
        .is_some_and(|ready| ready.status == "False" && ready.reason == "AwaitingTrigger")
}

fn took(times: &TransitionTimes) -> Option<Duration> {
    let began = times.trigger_time.as_ref().or(times.init_time.as_ref())?;
    let ended = times.finished_time.as_ref()?;
    Duration::try_from(ended.0.duration_since(began.0)).ok()
}

/// When it ended, or began to wait for what it waits for; nothing of what is not reached, or has succeeded.
fn since<'a, K: Job>(object: &'a K, standing: NodeState, times: Option<&'a TransitionTimes>) -> Option<&'a Time> {
    match standing {
        NodeState::Idle | NodeState::Pending | NodeState::Succeeded => None,
        NodeState::Failed => match condition::find(object.conditions(), "Ready") {
            Some(ready) => Some(&ready.last_transition_time),
            None => object.last_error().map(|error| &error.last_update_time),
        },
        NodeState::Running => match condition::find(object.conditions(), "Progressing") {
            Some(progressing) => Some(&progressing.last_update_time),
            None => times?.trigger_time.as_ref(),
        },
    }
}

/// What a running object waits for, from the conditions (C-04); external deployers only write `lastError`.
fn waits_for<K: Job>(object: &K) -> Option<String> {
    let of = |type_: &str| condition::find(object.conditions(), type_);
    // `Progressing` has the begin of the message alone (C-65).
    let message = of("Ready").or_else(|| of("Progressing")).map(|one| one.message.as_str());
    match of("Progressing").zip(message) {
        Some((_, "")) => None,
        Some((progressing, message)) if progressing.reason == "TransientError" => {
            Some(format!("tries again: {message}"))
        }
        Some((_, message)) => Some(message.to_owned()),
        None => object.last_error().map(|error| format!("tries again: {}", error.message)),
    }
}
