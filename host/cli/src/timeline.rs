//! What happened in a job, in the order of time: from statuses, events and records (C-399). Pure: objects in, entries out.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::{core::v1::ObjectReference, events::v1::Event};
use kube::ResourceExt as _;
use orangery_api::job::TransitionTimes;
use orangery_core::name::{JobId, Namespace, ObjectName};
use serde::{Serialize, Serializer};

use crate::{
    records::ShownRecord,
    tree::{NodeKind, NodeState, Objects, Tree, TreeNode},
};

/// Where an entry comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum EntrySource {
    /// The status of the object.
    Status,
    /// A record of the job.
    Record,
    /// An event.
    Event,
}

/// How far an object is in a job. What belongs to an object ends before it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum JobStage {
    Triggered,
    Begun,
    AtWork,
    Waits,
    ItemEnded,
    ExecutionEnded,
    InstallationEnded,
}

impl JobStage {
    fn ended(kind: NodeKind) -> Self {
        match kind {
            NodeKind::DeployItem => JobStage::ItemEnded,
            NodeKind::Execution => JobStage::ExecutionEnded,
            NodeKind::Installation => JobStage::InstallationEnded,
        }
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TimelineEntry {
    /// When; of what happened several times, when it did last.
    #[serde(serialize_with = "as_text")]
    pub(crate) time: Timestamp,
    /// Its place among what happened at the same time: a status has whole seconds.
    #[serde(skip)]
    pub(crate) stage: JobStage,
    pub(crate) source: EntrySource,
    pub(crate) kind: NodeKind,
    pub(crate) namespace: Namespace,
    pub(crate) name: ObjectName,
    /// Where it is in the tree: names of the blueprint with slashes between.
    pub(crate) path: String,
    /// One word.
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) is_warning: bool,
    /// How often it happened.
    pub(crate) count: i32,
}

fn as_text<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(time)
}

/// What a timeline is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimelineSources<'a> {
    /// The tree of the object that is asked about; empty where it is gone.
    pub(crate) tree: &'a Tree,
    /// What it was made of.
    pub(crate) objects: &'a Objects,
    /// Events of the namespace.
    pub(crate) events: &'a [Event],
    /// The records of the job.
    pub(crate) records: &'a [ShownRecord],
    /// The job.
    pub(crate) job: &'a JobId,
}

type NodeKey = (NodeKind, Namespace, ObjectName);

/// What happened, the oldest first.
pub(crate) fn entries(sources: TimelineSources<'_>) -> Vec<TimelineEntry> {
    let mut nodes = Vec::new();
    sources.tree.roots.iter().for_each(|root| collect(root, "", &mut nodes));
    let times = transition_times(sources.objects);
    let mut entries = Vec::new();
    let paths: BTreeMap<NodeKey, &str> = nodes.iter().map(|(node, path)| (key(node), path.as_str())).collect();
    for (node, path) in nodes.iter().filter(|(node, _)| node.job == *sources.job) {
        entries.extend(of_status(node, path, times.get(&key(node))));
    }
    for record in sources.records {
        entries.extend(of_record(record, &paths));
    }
    let window = Window::of(&sources, &nodes, &entries);
    entries.extend(sources.events.iter().filter_map(|event| of_event(event, &paths)).filter(|entry| window.has(entry)));
    entries.sort();
    entries.dedup();
    entries
}

fn key(node: &TreeNode) -> NodeKey {
    (node.kind, node.namespace.clone(), node.name.clone())
}

fn collect<'t>(node: &'t TreeNode, above: &str, nodes: &mut Vec<(&'t TreeNode, String)>) {
    let path = if above.is_empty() { node.title.clone() } else { format!("{above}/{}", node.title) };
    // An Execution has the name of its Installation.
    let path = if node.kind == NodeKind::Execution && !above.is_empty() { above.to_owned() } else { path };
    nodes.push((node, path.clone()));
    node.children.iter().for_each(|child| collect(child, &path, nodes));
}

fn transition_times(objects: &Objects) -> BTreeMap<NodeKey, TransitionTimes> {
    let mut times = BTreeMap::new();
    for object in &objects.installations {
        let of = object.status.as_ref().and_then(|status| status.transition_times.clone());
        times.extend(of.map(|of| (named(NodeKind::Installation, &**object), of)));
    }
    for object in &objects.executions {
        let of = object.status.as_ref().and_then(|status| status.transition_times.clone());
        times.extend(of.map(|of| (named(NodeKind::Execution, &**object), of)));
    }
    for object in &objects.deploy_items {
        let of = object.status.as_ref().and_then(|status| status.transition_times.clone());
        times.extend(of.map(|of| (named(NodeKind::DeployItem, &**object), of)));
    }
    times
}

fn named(kind: NodeKind, object: &impl kube::ResourceExt) -> NodeKey {
    (kind, object.namespace().unwrap_or_default().into(), object.name_any().into())
}

/// What the status says of the job.
fn of_status(node: &TreeNode, path: &str, times: Option<&TransitionTimes>) -> Vec<TimelineEntry> {
    let entry = |time: Timestamp, stage: JobStage, (reason, message, is_warning): (&str, &str, bool)| TimelineEntry {
        time,
        stage,
        source: EntrySource::Status,
        kind: node.kind,
        namespace: node.namespace.clone(),
        name: node.name.clone(),
        path: path.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        is_warning,
        count: 1,
    };
    let mut entries = Vec::new();
    if let Some(times) = times {
        entries.extend(
            times.trigger_time.as_ref().map(|time| entry(time.0, JobStage::Triggered, ("Triggered", "", false))),
        );
        entries.extend(times.init_time.as_ref().map(|time| entry(time.0, JobStage::Begun, ("Begun", "", false))));
    }
    let since = node.since.as_deref().and_then(|since| since.parse::<Timestamp>().ok());
    match (node.standing, &node.error) {
        (NodeState::Failed, Some(error)) => {
            let codes = if error.codes.is_empty() { String::new() } else { format!(" [{}]", error.codes.join(", ")) };
            let ended = times.and_then(|times| times.finished_time.as_ref()).map(|time| time.0).or(since);
            let message = format!("{}: {}{codes}", error.reason, error.message);
            entries.extend(ended.map(|time| entry(time, JobStage::ended(node.kind), (&node.phase, &message, true))));
        }
        (NodeState::Running, _) => {
            let waits = node.waits_for.as_deref().unwrap_or_default();
            entries.extend(
                since.filter(|_| !waits.is_empty()).map(|time| entry(time, JobStage::Waits, ("Waits", waits, false))),
            );
        }
        _ => {
            let ended = times.and_then(|times| times.finished_time.as_ref());
            entries.extend(ended.map(|time| entry(time.0, JobStage::ended(node.kind), (&node.phase, "", false))));
        }
    }
    entries
}

/// What is on record of the job.
fn of_record(record: &ShownRecord, paths: &BTreeMap<NodeKey, &str>) -> Vec<TimelineEntry> {
    let name = ObjectName::from(record.item.name.as_str());
    let known = paths.iter().find(|((kind, _, of), _)| *kind == NodeKind::DeployItem && *of == name);
    let entry = |time: Timestamp, stage: JobStage, (reason, message): (&str, String), is_warning| TimelineEntry {
        time,
        stage,
        source: EntrySource::Record,
        kind: NodeKind::DeployItem,
        namespace: known.map(|((_, namespace, _), _)| namespace.clone()).unwrap_or_default(),
        name: name.clone(),
        path: known.map_or_else(|| record.item.name.clone(), |(_, path)| (*path).to_owned()),
        reason: reason.to_owned(),
        message,
        is_warning,
        count: 1,
    };
    let content = &record.content;
    let trigger = content.trigger.as_ref().map(|trigger| match trigger.manager.as_str() {
        "" => format!(", started by {}", trigger.cause),
        manager => format!(", started by {} of {manager}", trigger.cause),
    });
    let begun = format!("by {}{}", content.inputs.plugin, trigger.unwrap_or_default());
    let errors = if content.errors.is_empty() { String::new() } else { format!(" [{}]", content.errors.join(", ")) };
    let written = format!("{}: {}{errors}", record.phase, record.summary);
    let time = |text: &str| text.parse::<Timestamp>().ok();
    let begins = time(&record.begun).map(|time| entry(time, JobStage::Begun, ("Recorded", begun), false));
    let is_warning = !content.errors.is_empty();
    let ends = time(&record.written).map(|time| entry(time, JobStage::AtWork, ("Written", written), is_warning));
    begins.into_iter().chain(ends).collect()
}

/// What an event of an object of the tree says.
fn of_event(event: &Event, paths: &BTreeMap<NodeKey, &str>) -> Option<TimelineEntry> {
    let regarding = event.regarding.as_ref()?;
    let key = regarded(regarding)?;
    let path = paths.get(&key)?;
    let series = event.series.as_ref();
    let time = series
        .map(|series| series.last_observed_time.0)
        .or_else(|| event.deprecated_last_timestamp.as_ref().map(|time| time.0))
        .or_else(|| event.event_time.as_ref().map(|time| time.0))
        .or_else(|| event.creation_timestamp().map(|time| time.0))?;
    let count = series.map(|series| series.count).or(event.deprecated_count).unwrap_or(1).max(1);
    let (kind, namespace, name) = key;
    Some(TimelineEntry {
        time,
        stage: JobStage::AtWork,
        source: EntrySource::Event,
        kind,
        namespace,
        name,
        path: (*path).to_owned(),
        reason: event.reason.clone().unwrap_or_default(),
        message: event.note.clone().unwrap_or_default(),
        is_warning: event.type_.as_deref() == Some("Warning"),
        count,
    })
}

fn regarded(regarding: &ObjectReference) -> Option<NodeKey> {
    let kinds = [NodeKind::Installation, NodeKind::Execution, NodeKind::DeployItem];
    let kind = kinds.into_iter().find(|kind| regarding.kind.as_deref() == Some(kind.as_str()))?;
    Some((kind, regarding.namespace.clone()?.into(), regarding.name.clone()?.into()))
}

/// The time of a job. An event does not say which job it is of.
struct Window {
    begin: Option<Timestamp>,
    end: Option<Timestamp>,
}

impl Window {
    fn of(sources: &TimelineSources<'_>, nodes: &[(&TreeNode, String)], entries: &[TimelineEntry]) -> Self {
        let is_last = nodes.first().is_some_and(|(top, _)| top.job == *sources.job);
        let end = if is_last { None } else { entries.iter().map(|entry| entry.time).max() };
        Self { begin: entries.iter().map(|entry| entry.time).min(), end }
    }

    /// Whether it happened in the job. A status has whole seconds.
    fn has(&self, entry: &TimelineEntry) -> bool {
        self.begin.is_none_or(|begin| begin.as_second() <= entry.time.as_second())
            && self.end.is_none_or(|end| entry.time.as_second() <= end.as_second())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    fn objects(job: &str) -> Objects {
        let object = |kind: &str, name: &str, more: Value| {
            let mut object = json!({
                "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": kind,
                "metadata": {"name": name, "namespace": "n", "uid": "u"}, "spec": {"blueprint": {}, "type": "t/mock"},
                "status": {"jobID": job, "jobIDFinished": job, "phase": "Succeeded", "transitionTimes": {
                    "triggerTime": "2026-01-01T10:00:00Z", "initTime": "2026-01-01T10:00:01Z", "finishedTime": "2026-01-01T10:00:09Z"}},
            });
            let (Value::Object(fields), Value::Object(more)) = (&mut object["metadata"], more) else { unreachable!() };
            fields.extend(more);
            object
        };
        let owner = |kind: &str| json!({"ownerReferences": [{"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": kind, "name": "web", "uid": "u"}]});
        let mut item = object(
            "DeployItem",
            "web-x",
            json!({"labels": {"execution.landscaper.gardener.cloud/managed-by": "web", "execution.landscaper.gardener.cloud/name": "front"}}),
        );
        item["status"]["phase"] = json!("Failed");
        item["status"]["lastError"] = json!({"operation": "Apply", "reason": "Refused", "message": "no", "codes": ["ERR_CONFIGURATION_PROBLEM"],
            "lastTransitionTime": "2026-01-01T10:00:08Z", "lastUpdateTime": "2026-01-01T10:00:08Z"});
        let of = |value: Value| serde_json::from_value(value).unwrap();
        Objects {
            installations: vec![Arc::new(of(object("Installation", "web", json!({}))))],
            executions: vec![Arc::new(
                serde_json::from_value(object("Execution", "web", owner("Installation"))).unwrap(),
            )],
            deploy_items: vec![Arc::new(serde_json::from_value(item).unwrap())],
        }
    }

    fn event(name: &str, time: &str, reason: &str, count: i32) -> Event {
        let mut event = json!({
            "metadata": {"name": format!("{name}.{time}"), "namespace": "n"}, "eventTime": format!("2026-01-01T{time}.000000Z"),
            "regarding": {"kind": "DeployItem", "namespace": "n", "name": name}, "type": "Warning", "reason": reason, "note": "it says",
        });
        if count > 1 {
            event["series"] = json!({"count": count, "lastObservedTime": "2026-01-01T10:00:07.500000Z"});
        }
        serde_json::from_value(event).unwrap()
    }

    fn lines(job: &str, asked: &str, records: &[ShownRecord], events: &[Event]) -> Vec<String> {
        let objects = objects(job);
        let tree = Tree::of(&objects);
        let sources = TimelineSources { tree: &tree, objects: &objects, events, records, job: &asked.into() };
        let line = |entry: TimelineEntry| {
            let TimelineEntry { time, source, kind, path, reason, message, count, is_warning, .. } = entry;
            let mark = if is_warning { "!" } else { "" };
            format!("{} {source:?} {} {path} {mark}{reason} {message} x{count}", time.strftime("%S"), kind.as_str())
        };
        entries(sources).into_iter().map(line).collect()
    }

    #[test]
    fn c_399_statuses_and_events_of_the_last_job_are_one_timeline() {
        let events = [
            event("web-x", "09:59:59", "Earlier", 1),
            event("web-x", "10:00:05", "Refused", 4),
            event("web-x", "10:00:02", "Hook", 1),
            event("other", "10:00:03", "Other", 1),
        ];
        let expected = [
            "00 Status Installation web Triggered  x1",
            "00 Status Execution web Triggered  x1",
            "00 Status DeployItem web/front Triggered  x1",
            "01 Status Installation web Begun  x1",
            "01 Status Execution web Begun  x1",
            "01 Status DeployItem web/front Begun  x1",
            "02 Event DeployItem web/front !Hook it says x1",
            "07 Event DeployItem web/front !Refused it says x4",
            "09 Status DeployItem web/front !Failed Refused: no [ERR_CONFIGURATION_PROBLEM] x1",
            "09 Status Execution web Succeeded  x1",
            "09 Status Installation web Succeeded  x1",
        ];
        assert_eq!(lines("j", "j", &[], &events), expected);
    }

    #[test]
    fn c_399_a_job_before_the_last_is_told_from_its_records_and_what_happened_meanwhile() {
        let mut record = crate::records::tests::one_record("web-x", "i");
        "2026-01-01T09:00:00Z".clone_into(&mut record.begun);
        "2026-01-01T09:00:20Z".clone_into(&mut record.written);
        record.content.errors = vec!["ERR_TIMEOUT".to_owned()];
        let events = [
            event("web-x", "09:00:05", "Then", 1),
            event("web-x", "09:00:21", "Later", 1),
            event("web-x", "08:59:59", "Before", 1),
        ];
        let expected = [
            "00 Record DeployItem web/front Recorded by manifest 1 x1",
            "05 Event DeployItem web/front !Then it says x1",
            "20 Record DeployItem web/front !Written Succeeded: 1 created [ERR_TIMEOUT] x1",
        ];
        assert_eq!(lines("j", "i", &[record], &events), expected);
    }
}
