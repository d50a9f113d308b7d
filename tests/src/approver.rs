//! Somebody who approves whatever asks for it, and keeps what that was: nothing else may have been written (C-311).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use futures::StreamExt as _;
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams},
    runtime::{
        WatchStreamExt as _,
        watcher::{self, Event},
    },
};
use orangery_api::plan::{Plan, phase};
use orangery_proposal::{Action, PlannedObject};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::objects::NAMESPACE;

/// What ConfigMaps may come to say, by name; none where they may go.
type Contents = BTreeMap<String, BTreeSet<Option<String>>>;

/// Approves from the moment it is begun until it is dropped.
pub struct Approver {
    /// Protects what was approved. Held for one change or one look.
    approved: Arc<Mutex<Contents>>,
    /// Aborted when dropped.
    _task: JoinSet<()>,
}

impl Approver {
    /// Begins.
    pub fn begin(client: &Client) -> Approver {
        let approved = Arc::new(Mutex::new(Contents::new()));
        let mut task = JoinSet::new();
        task.spawn(approve(Api::namespaced(client.clone(), NAMESPACE), Arc::clone(&approved)));
        Approver { approved, _task: task }
    }

    /// What was written and was in no Plan that was approved before, a line each.
    pub fn unapproved(&self, effects: &BTreeMap<String, Vec<Option<String>>>) -> Vec<String> {
        let approved = self.approved.lock().unwrap_or_else(PoisonError::into_inner);
        let is_approved =
            |name: &str, content: &Option<String>| approved.get(name).is_some_and(|of| of.contains(content));
        let all = effects.iter().flat_map(|(name, contents)| contents.iter().map(move |content| (name, content)));
        let unapproved = all.filter(|(name, content)| !is_approved(name, content));
        unapproved.map(|(name, content)| format!("{name} came to say {content:?}, which nobody has approved")).collect()
    }
}

async fn approve(api: Api<Plan>, approved: Arc<Mutex<Contents>>) {
    let mut events = watcher::watcher(api.clone(), watcher::Config::default()).default_backoff().boxed();
    while let Some(event) = events.next().await {
        let (Ok(Event::Apply(plan)) | Ok(Event::InitApply(plan))) = event else { continue };
        if plan.phase() != phase::READY || plan.decision().is_some() {
            continue;
        }
        let planned = plan.spec.planned().expect("the operator makes Plans that can be read");
        for object in planned.objects.iter().filter(|object| object.kind.as_str() == "ConfigMap") {
            let mut approved = approved.lock().unwrap_or_else(PoisonError::into_inner);
            approved.entry(object.name.to_string()).or_default().extend(contents(object));
        }
        let approval = json!({"decision": "Approve", "planHash": plan.spec.plan_hash, "by": "approver"});
        let patch = Patch::Merge(json!({"status": {"approval": approval}}));
        // Where it is gone by now there is nothing to approve.
        drop(api.patch_status(&plan.name_any(), &PatchParams::default(), &patch).await);
    }
}

/// What an object may come to say by this.
fn contents(object: &PlannedObject) -> Vec<Option<String>> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let changed = object.changes.iter().filter(|change| change.path == "data.content");
    let changed = changed.map(|change| Some(text(change.after.as_ref())));
    match object.action {
        Action::Create => vec![Some(text(object.object.as_ref().and_then(|object| object.pointer("/data/content"))))],
        Action::Change => changed.collect(),
        Action::Replace => changed.chain([None]).collect(),
        Action::Delete => vec![None],
        Action::None | Action::Foreign => Vec::new(),
    }
}
