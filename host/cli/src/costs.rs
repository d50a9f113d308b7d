//! What deploy items, components and clusters cost, from what objects and figures tell (C-398). Pure: objects in, rows out.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kube::ResourceExt as _;
use orangery_api::{deploy_item::DeployItem, label, stored_state::StoredState, target::Target};
use orangery_core::{
    digest::sha256,
    name::{JobId, Namespace, ObjectName},
};
use serde::Serialize;
use serde_json::json;

use crate::{
    samples::Samples,
    tree::{NodeKind, NodeState, Objects, Tree, TreeNode},
};

/// What a deploy item costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ItemCost {
    pub(crate) namespace: Namespace,
    pub(crate) name: ObjectName,
    #[serde(rename = "type")]
    pub(crate) item_type: String,
    /// The cluster, as [`clusters`] names it.
    pub(crate) cluster: String,
    /// The deployer, without its version.
    pub(crate) plugin: String,
    pub(crate) phase: String,
    #[serde(rename = "standing")]
    pub(crate) state: NodeState,
    pub(crate) job: JobId,
    /// From the job's start to its end, in seconds; absent while it runs, and where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seconds: Option<f64>,
    /// Since when it waits, or has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<String>,
    /// How many objects its status says that it has deployed.
    pub(crate) objects: usize,
    /// Whether it has more than its status has room for.
    pub(crate) has_more_objects: bool,
}

/// What deploy items that have something in common cost together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SumOfCosts {
    pub(crate) name: ObjectName,
    /// The namespace of a cluster; empty of a component.
    #[serde(skip_serializing_if = "is_of_no_namespace")]
    pub(crate) namespace: Namespace,
    pub(crate) items: usize,
    pub(crate) running: usize,
    pub(crate) failed: usize,
    pub(crate) objects: usize,
    /// Of the last jobs of all of them, as far as these have ended.
    pub(crate) seconds: f64,
    /// What the operator has counted since it began; absent where its figures cannot be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) calls: Option<ComponentCalls>,
}

/// Calls of a component, since the operator began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ComponentCalls {
    /// Calls that have ended.
    pub(crate) ended: f64,
    /// Those that no component answered.
    pub(crate) unanswered: f64,
    /// Those that were stopped at a limit.
    pub(crate) stopped_at_limits: f64,
    /// How long all took together, in seconds.
    pub(crate) seconds: f64,
}

/// What the operator tells of all clusters together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PooledClusters {
    /// Clusters that are kept, by their credentials.
    pub(crate) kept: f64,
    /// Their servers that did not answer lately.
    pub(crate) silent: f64,
    /// Watches that are open.
    pub(crate) watches: f64,
    /// Watches that may be open at once.
    pub(crate) most_watches: f64,
    /// Requests since the operator began.
    pub(crate) requests: f64,
}

/// The deploy items, what costs most first: those at work by how long they wait, then the others by how long their last job took.
pub(crate) fn items(objects: &Objects, targets: &[Target]) -> Vec<ItemCost> {
    let by_name: BTreeMap<(Namespace, String), &Arc<DeployItem>> = objects
        .deploy_items
        .iter()
        .map(|item| ((item.namespace().unwrap_or_default().into(), item.name_any()), item))
        .collect();
    let clusters = clusters(targets);
    let mut costs = Vec::new();
    let mut nodes: Vec<&TreeNode> = Vec::new();
    let tree = Tree::of(objects);
    tree.roots.iter().for_each(|root| collect(root, &mut nodes));
    for node in nodes {
        let Some(item) = by_name.get(&(node.namespace.clone(), node.name.to_string())) else { continue };
        costs.push(item_cost(node, item, &clusters));
    }
    let rank = |cost: &ItemCost| u8::from(cost.state != NodeState::Running);
    costs.sort_by(|one, other| {
        let longer = other.seconds.unwrap_or_default().total_cmp(&one.seconds.unwrap_or_default());
        let running = rank(one).cmp(&rank(other));
        let waits = if one.state == NodeState::Running { one.since.cmp(&other.since) } else { longer };
        running.then(waits).then_with(|| (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name)))
    });
    costs
}

fn collect<'t>(node: &'t TreeNode, nodes: &mut Vec<&'t TreeNode>) {
    if node.kind == NodeKind::DeployItem {
        nodes.push(node);
    }
    node.children.iter().for_each(|child| collect(child, nodes));
}

fn item_cost(node: &TreeNode, item: &DeployItem, clusters: &BTreeMap<(String, String), String>) -> ItemCost {
    let status = item.status.as_ref();
    let provider = status.and_then(|status| status.provider_status.as_ref());
    let listed = provider.and_then(|provider| provider.get("managedResources")?.as_array());
    let target = node.target.clone().unwrap_or_default();
    let known = clusters.get(&(node.namespace.to_string(), target.clone()));
    ItemCost {
        namespace: node.namespace.clone(),
        name: node.name.clone(),
        item_type: node.item_type.clone().unwrap_or_default(),
        cluster: known.cloned().unwrap_or(target),
        plugin: status.map(|status| status.deployer.name.clone()).unwrap_or_default(),
        phase: node.phase.clone(),
        state: node.standing,
        job: node.job.clone(),
        seconds: node.took.map(|took| took.as_secs_f64()),
        since: node.since.clone(),
        objects: listed.map_or(0, Vec::len),
        has_more_objects: StoredState::is_said(provider),
    }
}

/// What Targets call the cluster that they lead to. Targets of a namespace that say the same are one cluster; it has the name of one that
/// nobody has copied, else the first.
fn clusters(targets: &[Target]) -> BTreeMap<(String, String), String> {
    let mut same: BTreeMap<(String, String), BTreeSet<(bool, String)>> = BTreeMap::new();
    let key = |target: &Target| (target.namespace().unwrap_or_default(), says(target));
    for target in targets {
        let is_copy = target.labels().contains_key(label::SOURCE_TYPE);
        same.entry(key(target)).or_default().insert((is_copy, target.name_any()));
    }
    let named = |target: &Target| {
        let (_, name) = same.get(&key(target))?.first()?;
        Some(((target.namespace().unwrap_or_default(), target.name_any()), name.clone()))
    };
    targets.iter().filter_map(named).collect()
}

/// What a Target says, as nothing that could be shown.
fn says(target: &Target) -> String {
    let spec = &target.spec;
    let reference = spec.secret_ref.as_ref().map(|reference| json!(reference));
    sha256(json!([spec.type_, spec.config, reference]).to_string().as_bytes())
}

/// The components that deploy items are worked on by, and those that the operator has called.
pub(crate) fn plugins(items: &[ItemCost], samples: Option<&Samples>) -> Vec<SumOfCosts> {
    let named = |cost: &ItemCost| {
        Some((Namespace::default(), ObjectName::from(cost.plugin.as_str()))).filter(|(_, name)| !name.is_empty())
    };
    let mut sums = sums(items, named);
    if let Some(samples) = samples {
        for (name, calls) in calls(samples, &sums) {
            let sum = sums.entry((Namespace::default(), name.clone()));
            sum.or_insert_with(|| SumOfCosts { name, ..SumOfCosts::default() }).calls = Some(calls);
        }
    }
    let spent = |sum: &SumOfCosts| sum.calls.map_or(sum.seconds, |calls| calls.seconds);
    sorted(sums, spent)
}

const ENDED_CALLS: &str = "orangery_plugin_ended_calls_total";

/// The most components that are told apart beside those of deploy items: whoever answers chooses how many there are.
const MOST_COMPONENTS: usize = 1000;

/// What stands for the components beyond that. No component has such a name.
const OTHER_COMPONENTS: ObjectName = ObjectName::from_static("(others)");

/// The calls of each component whose calls have ended.
fn calls(samples: &Samples, known: &BTreeMap<CostKey, SumOfCosts>) -> BTreeMap<ObjectName, ComponentCalls> {
    let mut calls: BTreeMap<ObjectName, ComponentCalls> = BTreeMap::new();
    let mut more = 0;
    let ended = samples.each().filter(|(name, ..)| *name == ENDED_CALLS);
    for (plugin, result, value) in
        ended.filter_map(|(_, labels, value)| Some((labels.get("plugin")?, labels.get("result"), value)))
    {
        let name = ObjectName::from(plugin.as_str());
        let is_told = calls.contains_key(&name) || known.contains_key(&(Namespace::default(), name.clone()));
        more += usize::from(!is_told && more <= MOST_COMPONENTS);
        let name = if is_told || more <= MOST_COMPONENTS { name } else { OTHER_COMPONENTS };
        let of = calls.entry(name).or_default();
        of.ended += value;
        of.unanswered += if result.is_some_and(|result| result == "answered") { 0.0 } else { value };
    }
    for (name, labels, value) in samples.each() {
        let Some(plugin) = labels.get("plugin") else { continue };
        let name_of = ObjectName::from(plugin.as_str());
        let name_of = if calls.contains_key(&name_of) { name_of } else { OTHER_COMPONENTS };
        let Some(of) = calls.get_mut(&name_of) else { continue };
        match name {
            "orangery_plugin_limits_met_total" => of.stopped_at_limits += value,
            "orangery_plugin_call_duration_seconds_sum" => of.seconds += value,
            _ => {}
        }
    }
    calls
}

/// The clusters that deploy items are deployed to.
pub(crate) fn by_cluster(items: &[ItemCost]) -> Vec<SumOfCosts> {
    let named = |cost: &ItemCost| {
        Some((cost.namespace.clone(), ObjectName::from(cost.cluster.as_str()))).filter(|(_, name)| !name.is_empty())
    };
    sorted(sums(items, named), |sum| sum.seconds)
}

/// What the operator tells of clusters; `None` where it does not.
pub(crate) fn cluster_figures(samples: &Samples) -> Option<PooledClusters> {
    let of = |name: &str, labels: &[(&str, &str)]| samples.sum(name, labels);
    Some(PooledClusters {
        kept: of("orangery_clusters", &[])?,
        silent: of("orangery_cluster_servers", &[("state", "silent")]).unwrap_or_default(),
        watches: of("orangery_cluster_watches", &[]).unwrap_or_default(),
        most_watches: of("orangery_cluster_watches_limit", &[]).unwrap_or_default(),
        requests: of("orangery_cluster_requests_total", &[]).unwrap_or_default(),
    })
}

fn is_of_no_namespace(namespace: &Namespace) -> bool {
    namespace.is_empty()
}

type CostKey = (Namespace, ObjectName);

fn sums(items: &[ItemCost], named: impl Fn(&ItemCost) -> Option<CostKey>) -> BTreeMap<CostKey, SumOfCosts> {
    let mut sums: BTreeMap<CostKey, SumOfCosts> = BTreeMap::new();
    for cost in items {
        let Some((namespace, name)) = named(cost) else { continue };
        let sum = sums.entry((namespace.clone(), name.clone())).or_insert_with(|| SumOfCosts {
            name,
            namespace,
            ..SumOfCosts::default()
        });
        sum.items += 1;
        sum.running += usize::from(cost.state == NodeState::Running);
        sum.failed += usize::from(cost.state == NodeState::Failed);
        sum.objects += cost.objects;
        sum.seconds += cost.seconds.unwrap_or_default();
    }
    sums
}

/// What costs most first.
fn sorted(sums: BTreeMap<CostKey, SumOfCosts>, spent: impl Fn(&SumOfCosts) -> f64) -> Vec<SumOfCosts> {
    let mut sums: Vec<SumOfCosts> = sums.into_values().collect();
    sums.sort_by(|one, other| spent(other).total_cmp(&spent(one)).then_with(|| other.items.cmp(&one.items)));
    sums
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn item(name: &str, target: &str, status: Value) -> Arc<DeployItem> {
        let object = json!({
            "metadata": {"name": name, "namespace": "n"},
            "spec": {"type": "landscaper.gardener.cloud/mock", "target": {"name": target}},
            "status": status,
        });
        Arc::new(serde_json::from_value(object).unwrap())
    }

    fn ended(phase: &str, seconds: u32, objects: usize) -> Value {
        json!({
            "jobID": "j", "jobIDFinished": "j", "phase": phase, "deployer": {"name": "mock", "version": "1"},
            "lastError": {"operation": "o", "reason": "r", "message": "m",
                "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"},
            "transitionTimes": {"triggerTime": "2026-01-01T00:00:00Z", "finishedTime": format!("2026-01-01T00:00:{seconds:02}Z")},
            "providerStatus": {"managedResources": vec![json!({}); objects]},
        })
    }

    fn world() -> (Objects, Vec<Target>) {
        let running = json!({"jobID": "k", "jobIDFinished": "j", "phase": "Progressing", "deployer": {"name": "helm"},
            "transitionTimes": {"triggerTime": "2026-01-01T00:01:00Z"}});
        let deploy_items = vec![
            item("quick", "cluster", ended("Succeeded", 2, 1)),
            item("slow", "copy", ended("Failed", 40, 3)),
            item("busy", "other", running),
        ];
        let target = |name: &str, labels: Value, server: &str| -> Target {
            let object = json!({"metadata": {"name": name, "namespace": "n", "labels": labels},
                "spec": {"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": {"kubeconfig": server}}});
            serde_json::from_value(object).unwrap()
        };
        let copied = json!({(label::SOURCE_TYPE): label::SOURCE_TYPE_IMPORT});
        let targets =
            vec![target("copy", copied, "a"), target("cluster", json!({}), "a"), target("other", json!({}), "b")];
        (Objects { deploy_items, ..Objects::default() }, targets)
    }

    #[test]
    fn c_398_items_at_work_come_first_then_those_whose_jobs_took_longest() {
        let (objects, targets) = world();
        let rows: Vec<_> = items(&objects, &targets)
            .into_iter()
            .map(|cost| (cost.name.to_string(), cost.cluster, cost.seconds, cost.since, cost.objects))
            .collect();
        let row = |name: &str, cluster: &str, seconds, since: Option<&str>, objects| {
            (name.to_owned(), cluster.to_owned(), seconds, since.map(str::to_owned), objects)
        };
        assert_eq!(
            rows,
            [
                row("busy", "other", None, Some("2026-01-01T00:01:00Z"), 0),
                row("slow", "cluster", Some(40.0), Some("2026-01-01T00:00:00Z"), 3),
                row("quick", "cluster", Some(2.0), None, 1),
            ]
        );
    }

    #[test]
    fn c_398_targets_that_say_the_same_are_one_cluster_and_no_content_of_them_is_told() {
        let (objects, targets) = world();
        let rows = by_cluster(&items(&objects, &targets));
        let cluster = SumOfCosts {
            name: "cluster".into(),
            namespace: "n".into(),
            items: 2,
            failed: 1,
            objects: 4,
            seconds: 42.0,
            ..SumOfCosts::default()
        };
        let other =
            SumOfCosts { name: "other".into(), namespace: "n".into(), items: 1, running: 1, ..SumOfCosts::default() };
        assert_eq!(rows, [cluster, other]);
    }

    #[test]
    fn c_398_components_have_the_figures_of_the_operator_where_there_are_any() {
        let (objects, targets) = world();
        let items = items(&objects, &targets);
        let without: Vec<_> = plugins(&items, None).into_iter().map(|sum| (sum.name, sum.items, sum.calls)).collect();
        assert_eq!(without, [("mock".into(), 2, None), ("helm".into(), 1, None)]);
        let samples = Samples::of(
            "orangery_plugin_ended_calls_total{plugin=\"helm\",result=\"answered\"} 3\n\
             orangery_plugin_ended_calls_total{plugin=\"helm\",result=\"limit\"} 1\n\
             orangery_plugin_limits_met_total{plugin=\"helm\",limit=\"memoryMiB\"} 1\n\
             orangery_plugin_call_duration_seconds_sum{plugin=\"helm\"} 9.5\n\
             orangery_plugin_ended_calls_total{plugin=\"jinja\",result=\"answered\"} 2\n\
             orangery_clusters 3\norangery_cluster_servers{state=\"silent\"} 1\norangery_cluster_servers{state=\"answering\"} 2\n",
        );
        let rows = plugins(&items, Some(&samples));
        let names: Vec<_> = rows.iter().map(|sum| (sum.name.as_str(), sum.items)).collect();
        assert_eq!(names, [("mock", 2), ("helm", 1), ("jinja", 0)]);
        let helm = ComponentCalls { ended: 4.0, unanswered: 1.0, stopped_at_limits: 1.0, seconds: 9.5 };
        assert_eq!([rows[0].calls, rows[1].calls], [None, Some(helm)]);
        let clusters = PooledClusters { kept: 3.0, silent: 1.0, ..PooledClusters::default() };
        assert_eq!((cluster_figures(&samples), cluster_figures(&Samples::default())), (Some(clusters), None));
    }

    #[test]
    fn c_398_so_many_components_are_told_apart_and_the_others_are_one() {
        let (objects, targets) = world();
        let items = items(&objects, &targets);
        let line = |name: &str| {
            format!(
                "orangery_plugin_ended_calls_total{{plugin=\"{name}\",result=\"crash\"}} 2\n\
                 orangery_plugin_call_duration_seconds_sum{{plugin=\"{name}\"}} 0.5\n"
            )
        };
        let many: String =
            (0..MOST_COMPONENTS + 7).map(|number| line(&format!("p{number}"))).chain([line("helm")]).collect();
        let rows = plugins(&items, Some(&Samples::of(&many)));
        assert_eq!(rows.len(), MOST_COMPONENTS + 3);
        let of = |name: &str| rows.iter().find(|row| row.name == *name).and_then(|row| row.calls);
        let counted = |calls: f64| {
            Some(ComponentCalls {
                ended: calls * 2.0,
                unanswered: calls * 2.0,
                stopped_at_limits: 0.0,
                seconds: calls / 2.0,
            })
        };
        assert_eq!(
            ["(others)", "helm", "p999", "p1000", "mock"].map(of),
            [counted(7.0), counted(1.0), counted(1.0), None, None]
        );
    }
}
