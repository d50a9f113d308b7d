//! Plays a recording and compares whole.

use std::{collections::BTreeMap, path::Path};

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use serde_json::{Value, json};

use super::{
    difference::{Phases, differences, of_phases},
    exceptions, input,
    names::Names,
    namespace::{WatchedNamespace, listed},
    normal::{KINDS, learn, named, normalised},
    steps::{Finished, Recording, Step},
};
use crate::{
    fail,
    history::{History, Version},
    objects::Objects,
    tree::wait_until_idle,
};

/// A case while it is played.
struct Play<'a> {
    folder: &'a Path,
    /// What is expected.
    recording: Recording,
    /// The phases as they were recorded.
    recorded: Phases,
    objects: &'a Objects,
    history: History,
    watched: WatchedNamespace,
    names: Names,
    /// The jobs whose end was waited for, by kind and name.
    jobs: BTreeMap<String, String>,
    /// Whether nothing is done until the next step.
    is_at_rest: bool,
    /// What was another, a paragraph for each dump.
    differences: Vec<String>,
}

/// Plays the case of a folder; what Orangery does otherwise on purpose is expected so.
///
/// # Panics
/// Something is another than it was recorded.
pub async fn play(folder: &Path, objects: &Objects) {
    let recorded = Recording::read(folder).phases;
    let recording = exceptions::expected(folder);
    let namespace = recording.namespace.clone();
    objects.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})).await;
    let metadata = json!({"name": "default", "namespace": namespace});
    objects.expect(&json!({"apiVersion": crate::tree::API, "kind": "Context", "metadata": metadata})).await;
    let history = History::begin_in(objects.client(), &namespace).await;
    let watched = WatchedNamespace::begin(objects.client(), &namespace).await;
    let mut play = Play {
        folder,
        recording,
        recorded,
        objects,
        history,
        watched,
        names: Names::default(),
        jobs: BTreeMap::new(),
        is_at_rest: false,
        differences: Vec::new(),
    };
    for step in play.recording.steps.clone() {
        play.carry_out(&step, &namespace).await;
    }
    play.compare_phases().await;
    if !play.differences.is_empty() {
        fail(&format!("{} is not as it was recorded\n{}", play.recording.case, play.differences.join("\n")));
    }
}

impl Play<'_> {
    async fn carry_out(&mut self, step: &Step, namespace: &str) {
        // What was dumped after a rest may have to come about first.
        if !matches!(step, Step::Dump(_)) && std::mem::take(&mut self.is_at_rest) {
            wait_until_idle(self.objects).await;
        }
        match step {
            Step::Apply(file) => {
                for document in input(&self.folder.join(file), namespace, self.objects) {
                    self.objects.apply(&document).await;
                }
            }
            Step::MergePatch(patch) => {
                let object = self.object(&patch.kind, &patch.name);
                self.objects.expect(&object).await;
                self.objects.merge(&merged(&object, &patch.patch)).await;
            }
            Step::PatchStatus(patch) => {
                let object = self.object(&patch.kind, &patch.name);
                self.objects.patch_status(&object, patch.patch.clone()).await;
            }
            Step::Delete(named) => self.objects.delete(&self.object(&named.kind, &named.name)).await,
            Step::WaitFinished(finished) => self.finished(finished).await,
            Step::WaitGone(named) => self.objects.expect_absent(&self.object(&named.kind, &named.name)).await,
            Step::WaitThere(named) => drop(self.objects.expect(&self.object(&named.kind, &named.name)).await),
            Step::Namespace(other) => {
                let namespaces: Api<Namespace> = Api::all(self.objects.client().clone());
                let found = namespaces.get_opt(&other.name).await.expect("the server answers");
                let is_there = found.is_some_and(|found| found.metadata.deletion_timestamp.is_none());
                assert_eq!(is_there, other.exists, "whether the namespace {} is there", other.name);
            }
            Step::Rest => self.is_at_rest = true,
            Step::Dump(label) => self.compare(label).await,
        }
    }

    /// The object with this stable name, as far as a request names it.
    fn object(&self, kind: &str, name: &str) -> Value {
        let version = KINDS.iter().find(|(_, of)| *of == kind).map(|(version, _)| *version);
        let version = version.unwrap_or_else(|| fail(&format!("{kind} is none of the kinds that are compared")));
        let metadata = json!({"name": self.names.seen(name), "namespace": self.recording.namespace});
        json!({"apiVersion": version, "kind": kind, "metadata": metadata})
    }

    async fn finished(&mut self, finished: &Finished) {
        let Finished { kind, name, phase } = finished;
        let before = self.jobs.get(&format!("{kind} {name}")).cloned().unwrap_or_default();
        let has_ended = |object: &Value| {
            let status = |field: &str| object.pointer(&format!("/status/{field}")).and_then(Value::as_str);
            let ended = status("jobIDFinished").filter(|job| Some(*job) == status("jobID") && *job != before);
            ended.filter(|_| status("phase") == Some(phase.as_str())).map(str::to_owned)
        };
        let mut named = self.object(kind, name);
        let expected = named.pointer("/metadata/name").cloned();
        let is_it =
            |object: &Value| object.pointer("/metadata/name") == expected.as_ref() && has_ended(object).is_some();
        let message = format!("did not end a job as {phase}, another one than {before:?}");
        named = self.objects.expect_that(&named, &message, is_it).await;
        self.jobs.insert(format!("{kind} {name}"), has_ended(&named).unwrap_or_default());
    }

    /// After a rest all is still so when a tree in another namespace has come and gone: nothing began late. What has jobs by itself
    /// is never at rest.
    async fn compare(&mut self, label: &str) {
        let is_at_rest = std::mem::take(&mut self.is_at_rest);
        let expected = self.recording.dumps.get(label).cloned().unwrap_or_default();
        let found = |objects: Vec<Value>| {
            let mut names = self.names.clone();
            let objects = normalised(objects, &mut names);
            self.history.with_seen(|versions| learn_all(versions, &mut names));
            let objects: Vec<Value> = objects.iter().map(|object| named(object, &names)).collect();
            (objects, names)
        };
        let is_equal = self.watched.until(|objects| differences(&expected, &found(objects).0).is_empty()).await;
        let has_jobs_by_itself = expected.iter().any(|object| object.pointer("/spec/automaticReconcile").is_some());
        let (mut when, mut seen) = ("", self.watched.now());
        if is_equal && is_at_rest && !has_jobs_by_itself {
            wait_until_idle(self.objects).await;
            (when, seen) = (" did not stay so", listed(self.objects.client(), &self.recording.namespace).await);
        }
        let (objects, names) = found(seen);
        let lines = differences(&expected, &objects);
        if !is_equal || (!when.is_empty() && !lines.is_empty()) {
            self.differences.push(format!("dump {label}{when}\n{}", indented(&lines)));
        }
        self.names = names;
    }

    /// What is seen is as [`of_phases`] has it, and no exception stands where what was recorded would do.
    async fn compare_phases(&mut self) {
        let seen = self.history.until_now().await;
        let mut found = Phases::new();
        learn_all(seen.versions(), &mut self.names);
        for version in seen.versions() {
            let name = version.object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            let phases = found.entry(format!("{} {}", version.kind, self.names.stable(name))).or_default();
            phases.push(version.phase().to_owned());
            phases.dedup();
        }
        let mut lines = of_phases(&self.recording.phases, &found);
        let is_as_recorded = |(of, recorded): &(&String, &Vec<String>)| {
            let alone = |phases: &Vec<String>| Phases::from([((*of).clone(), phases.clone())]);
            let is_recorded = |found: &Vec<String>| of_phases(&alone(recorded), &alone(found)).is_empty();
            self.recording.phases.get(*of) != Some(*recorded) && found.get(*of).is_some_and(is_recorded)
        };
        let as_recorded = self.recorded.iter().filter(is_as_recorded);
        lines.extend(as_recorded.map(|(of, _)| format!("{of} is as it was recorded: its exception is not needed")));
        if !lines.is_empty() {
            self.differences.push(format!("phases\n{}", indented(&lines)));
        }
    }
}

/// The names of what is in no dump. Items of a sub-installation have its name in theirs.
fn learn_all(versions: &[Version], names: &mut Names) {
    for kind in ["Installation", "Execution", "DeployItem"] {
        for version in versions.iter().filter(|version| version.kind == kind) {
            learn(kind, &version.object, names);
        }
    }
}

fn merged(object: &Value, patch: &Value) -> Value {
    let mut merged = object.clone();
    let (Some(fields), Some(patch)) = (merged.as_object_mut(), patch.as_object()) else { return merged };
    for (field, value) in patch {
        match (fields.get_mut(field).and_then(Value::as_object_mut), value.as_object()) {
            (Some(present), Some(more)) => present.extend(more.clone()),
            _ => drop(fields.insert(field.clone(), value.clone())),
        }
    }
    merged
}

fn indented(lines: &[String]) -> String {
    lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
