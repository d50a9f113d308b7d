//! Keeps the policies current: watches of NamespacePolicies and of namespaces, and the condition that a policy is told.

use std::{collections::BTreeMap, pin::pin, sync::Arc};

use futures::StreamExt;
use k8s_openapi::{api::core::v1, apimachinery::pkg::apis::meta::v1::Time};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use orangery_api::{
    condition::{self, Condition},
    namespace_policy::{NamespacePolicy, NamespacePolicyStatus},
};
use orangery_core::{error::Code, name::Namespace};
use orangery_policy::Policy;
use orangery_reconcile::UnreadObject;
use serde_json::{Value, json};

use super::Labels;
use crate::controller_context::ControllerContext;

/// Keeps the policies of a host current, and tells each policy whether it can be used. Runs until it is dropped.
///
/// Errors are logged and backed off; what was known stays until the watch goes on.
pub async fn watch_namespace_policies(host: Arc<ControllerContext>) {
    tokio::join!(follow_policies(&host), follow_namespaces(&host));
}

/// Reads what counts for one namespace now, for a command that follows no watch.
///
/// # Errors
/// The policies cannot be listed. Labels of the namespace that cannot be read are missed where they decide.
pub async fn read_namespace_policies(host: &ControllerContext, namespace: &Namespace) -> kube::Result<()> {
    let resource = ApiResource::erase::<NamespacePolicy>(&());
    let policies: Api<DynamicObject> = Api::all_with(host.client.clone(), &resource);
    let listed = policies.list(&ListParams::default()).await?.items;
    host.policies.replace_policies(listed.iter().map(|object| (object.name_any(), read(object))).collect());
    let namespaces: Api<v1::Namespace> = Api::all(host.client.clone());
    if let Ok(found) = namespaces.get_metadata(namespace).await {
        let (namespace, labels) = labels_of(&found);
        host.policies.put_namespace(namespace, labels);
    }
    Ok(())
}

async fn follow_policies(host: &ControllerContext) {
    // As they are written: one that cannot be read as a whole counts as well.
    let resource = ApiResource::erase::<NamespacePolicy>(&());
    let api: Api<DynamicObject> = Api::all_with(host.client.clone(), &resource);
    let mut events = pin!(watcher(api.clone(), watcher::Config::default()).default_backoff());
    let mut listed = BTreeMap::new();
    let mut unreported = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(object)) => {
                let policy = read(&object);
                listed.insert(object.name_any(), policy.clone());
                unreported.push((object, policy));
            }
            Ok(Event::InitDone) => {
                host.policies.replace_policies(std::mem::take(&mut listed));
                for (object, policy) in std::mem::take(&mut unreported) {
                    report(host, &api, &object, &policy).await;
                }
            }
            Ok(Event::Apply(object)) => {
                let policy = read(&object);
                host.policies.put_policy(object.name_any(), policy.clone());
                report(host, &api, &object, &policy).await;
            }
            Ok(Event::Delete(object)) => host.policies.remove_policy(&object.name_any()),
            Err(error) => tracing::warn!(%error, "the watch of NamespacePolicies broke off and is taken up again"),
        }
    }
}

async fn follow_namespaces(host: &ControllerContext) {
    let api: Api<UnreadObject<v1::Namespace>> = Api::all(host.client.clone());
    let mut events = pin!(watcher(api, watcher::Config::default()).default_backoff());
    let mut listed = BTreeMap::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(object)) => listed.extend([labels_of(&object)]),
            Ok(Event::InitDone) => host.policies.replace_namespaces(std::mem::take(&mut listed)),
            Ok(Event::Apply(object)) => {
                let (namespace, labels) = labels_of(&object);
                host.policies.put_namespace(namespace, labels);
            }
            Ok(Event::Delete(object)) => host.policies.remove_namespace(&labels_of(&object).0),
            Err(error) => tracing::warn!(%error, "the watch of namespaces broke off and is taken up again"),
        }
    }
}

fn labels_of(namespace: &impl ResourceExt) -> (Namespace, Labels) {
    let labels = namespace.meta().labels.iter().flatten().map(|(key, value)| (key.clone(), value.clone()));
    (Namespace::from(namespace.name_any()), labels.collect())
}

fn read(object: &DynamicObject) -> Policy {
    Policy::read(object.name_any(), object.data.get("spec").unwrap_or(&Value::Null))
}

/// Writes the condition `Ready` of a policy, where it says something else than before.
async fn report(host: &ControllerContext, api: &Api<DynamicObject>, object: &DynamicObject, policy: &Policy) {
    let before = object.data.get("status").and_then(|status| serde_json::from_value(status.clone()).ok());
    let Some(status) = status(policy, object.metadata.generation, before.as_ref(), &host.now()) else { return };
    let patch = Patch::Merge(json!({"status": status}));
    if let Err(error) = api.patch_status(&object.name_any(), &PatchParams::default(), &patch).await {
        tracing::warn!(policy = %object.name_any(), %error, "the condition of a policy is not written");
    }
}

/// The status of a policy; `None` where it is as it should be.
fn status(
    policy: &Policy,
    generation: Option<i64>,
    before: Option<&NamespacePolicyStatus>,
    now: &Time,
) -> Option<NamespacePolicyStatus> {
    let (status, reason, message, codes) = match policy.lines() {
        Ok(_) => ("True", "Valid", "the policy counts".to_owned(), Vec::new()),
        Err(why) => {
            let message =
                format!("the policy cannot be used, and all is refused in the namespaces that it selects: {why}");
            ("False", "Invalid", message, vec![Code::ConfigurationProblem.to_string()])
        }
    };
    let known = before.and_then(|before| condition::find(&before.conditions, "Ready"));
    let says = |one: &&Condition| one.status == status && one.reason == reason && one.message == message;
    if known.filter(says).is_some_and(|one| one.observed_generation == generation) {
        return None;
    }
    let since = known.filter(|one| one.status == status).map_or(now, |one| &one.last_transition_time);
    let ready = Condition {
        type_: "Ready".to_owned(),
        status: status.to_owned(),
        last_transition_time: since.clone(),
        last_update_time: now.clone(),
        reason: reason.to_owned(),
        message,
        codes,
        observed_generation: generation,
    };
    Some(NamespacePolicyStatus { observed_generation: generation, conditions: vec![ready] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Time {
        Time(jiff::Timestamp::from_second(second).unwrap())
    }

    fn observed(spec: Value, before: Option<&NamespacePolicyStatus>, second: i64) -> Option<NamespacePolicyStatus> {
        status(&Policy::read("p", &spec), Some(second), before, &at(second))
    }

    #[test]
    fn a_policy_is_told_whether_it_can_be_used_and_that_once() {
        let good = observed(json!({}), None, 1).unwrap();
        assert_eq!(status(&Policy::read("p", &json!({})), Some(1), Some(&good), &at(9)), None, "nothing new");
        let again = observed(json!({"priority": 1}), Some(&good), 2).unwrap();
        let ready = again.conditions.first().unwrap();
        assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("True", "Valid"));
        assert_eq!((&ready.last_transition_time, &ready.last_update_time), (&at(1), &at(2)));
        let bad = observed(json!({"quotas": 5}), Some(&again), 3).unwrap();
        let ready = bad.conditions.first().unwrap();
        assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "Invalid"));
        assert_eq!((&ready.last_transition_time, ready.observed_generation), (&at(3), Some(3)));
        assert!(ready.message.contains("all is refused in the namespaces that it selects: spec cannot be read"));
        assert_eq!(ready.codes, ["ERR_CONFIGURATION_PROBLEM"]);
    }
}
