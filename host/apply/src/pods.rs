//! What the pods of a workload say of themselves where it does not become ready, or does not end (C-239): a Deployment whose image
//! cannot be pulled only says that none of its replicas is available.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use orangery_core::{
    error::cleaned,
    name::Kind,
    step::{Halt, Wait, Waiting},
};
use orangery_proposal::{ClusterRef, Selection};
use serde_json::Value;

use crate::{apply_error::ApplyError, job_objects::JobObjects};

/// How long a workload is waited for before its pods are looked at: until then most are ready.
const LOOKED_AT_AFTER: Duration = Duration::from_secs(10);
/// The longest that is told of a pod, in bytes.
const LONGEST_WORDS: usize = 512;
/// What containers wait for that nothing keeps.
const BEGINNING: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// What is known of the pods of a workload.
#[derive(Debug, PartialEq, Eq)]
enum PodsState {
    /// They are looked at when this time has passed.
    Later(Duration),
    /// What keeps one of them.
    Kept(String),
    /// Nothing, as far as can be seen.
    Unknown,
}

impl JobObjects<'_> {
    /// The wait for a workload since `since`, with what keeps its pods where that is known. They are watched from then on, where
    /// that is allowed: whoever waits is called again when they change.
    pub(crate) async fn waits_for_pods(
        &self,
        (on, object): (&ClusterRef, &Value),
        waiting: Waiting,
        since: Timestamp,
    ) -> ApplyError {
        let state = self.pods(on, object, since).await;
        Halt::Wait(explained(waiting, state)).into()
    }

    async fn pods(&self, on: &ClusterRef, object: &Value, since: Timestamp) -> PodsState {
        if text(object, "/kind") == "Pod" {
            return keeps(object).map_or(PodsState::Unknown, PodsState::Kept);
        }
        let Some(labels) = selector_of(object) else { return PodsState::Unknown };
        let elapsed = Duration::try_from(self.job.clock.now().duration_since(since)).unwrap_or_default();
        if let Some(left) = LOOKED_AT_AFTER.checked_sub(elapsed).filter(|left| !left.is_zero()) {
            return PodsState::Later(left);
        }
        let kind = Kind::from_static("Pod");
        let Ok((cluster, resource)) = self.resource(on, &"v1".into(), &kind).await else { return PodsState::Unknown };
        let namespace = text(object, "/metadata/namespace");
        let pods = Selection {
            api_version: "v1".into(),
            kind,
            namespace: (!namespace.is_empty()).then(|| namespace.into()),
            names: Vec::new(),
            labels: Some(labels),
            fields: None,
        };
        // Where they may not be read, or are not known yet, the workload says what there is to say.
        let pods = self.job.clusters.watch_all(&cluster, &resource, &pods).unwrap_or_default();
        first_kept(&pods).map_or(PodsState::Unknown, PodsState::Kept)
    }
}

/// A wait, with what is known of pods.
fn explained(waiting: Waiting, state: PodsState) -> Wait {
    match state {
        PodsState::Unknown => waiting.into(),
        PodsState::Later(left) => Wait::from(waiting).within(left),
        PodsState::Kept(why) => {
            let detail = waiting.detail.as_ref().map_or_else(|| why.clone(), |detail| format!("{detail}; {why}"));
            waiting.because(detail).into()
        }
    }
}

/// The labels of the pods of a workload, as a selector in text form; `None` where it has none, or selects by more than labels.
fn selector_of(workload: &Value) -> Option<String> {
    let selector = workload.pointer("/spec/selector")?;
    if selector.get("matchExpressions").and_then(Value::as_array).is_some_and(|all| !all.is_empty()) {
        return None;
    }
    let is_workload = matches!(
        (text(workload, "/apiVersion"), text(workload, "/kind")),
        ("apps/v1", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch/v1", "Job")
    );
    let labels = selector.get("matchLabels").filter(|_| is_workload)?.as_object()?;
    let labels: Option<Vec<String>> =
        labels.iter().map(|(name, value)| Some(format!("{name}={}", value.as_str()?))).collect();
    labels.filter(|labels| !labels.is_empty()).map(|labels| labels.join(","))
}

/// What keeps the first of these that anything keeps, by their names.
fn first_kept(pods: &[Arc<Value>]) -> Option<String> {
    let mut pods: Vec<&Value> = pods.iter().map(AsRef::as_ref).collect();
    pods.sort_by_key(|pod| text(pod, "/metadata/name"));
    pods.into_iter().find_map(keeps)
}

/// What keeps a pod from running; stable as long as that stays the same.
fn keeps(pod: &Value) -> Option<String> {
    if pod.pointer("/metadata/deletionTimestamp").is_some() {
        return None;
    }
    let name = text(pod, "/metadata/name");
    let conditions = list(pod, "/status/conditions");
    let unscheduled = conditions.iter().find(|condition| {
        text(condition, "/type") == "PodScheduled"
            && text(condition, "/status") == "False"
            && text(condition, "/reason") == "Unschedulable"
    });
    let why = match unscheduled {
        Some(condition) => format!("pod {name} is Unschedulable{}", after(text(condition, "/message"))),
        None => {
            let of_init = list(pod, "/status/initContainerStatuses").iter();
            let (container, why) = of_init
                .chain(list(pod, "/status/containerStatuses"))
                .find_map(|status| Some((text(status, "/name"), container(status)?)))?;
            format!("container {container} of pod {name}: {why}")
        }
    };
    Some(cleaned(&why, LONGEST_WORDS))
}

/// What keeps a container from running.
fn container(status: &Value) -> Option<String> {
    let ended = |pointer: &str| {
        let ended = status.pointer(pointer)?;
        let code = ended.get("exitCode").and_then(Value::as_i64).filter(|code| *code != 0)?;
        let reason = Some(text(ended, "/reason")).filter(|reason| !["", "Error"].contains(reason));
        let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        Some(format!("it ended with exit code {code}{reason}{}", after(text(ended, "/message").trim())))
    };
    match text(status, "/state/waiting/reason") {
        // Its own message has the pause, which grows.
        "CrashLoopBackOff" => {
            let last = ended("/lastState/terminated").map(|last| format!(", {last}")).unwrap_or_default();
            Some(format!("CrashLoopBackOff{last}"))
        }
        reason if !reason.is_empty() && !BEGINNING.contains(&reason) => {
            Some(format!("{reason}{}", after(text(status, "/state/waiting/message"))))
        }
        _ => ended("/state/terminated"),
    }
}

fn after(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

fn text<'v>(of: &'v Value, pointer: &str) -> &'v str {
    of.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(of: &'v Value, pointer: &str) -> &'v [Value] {
    of.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use orangery_core::step::Until;
    use serde_json::json;

    use super::*;

    fn pod(status: Value) -> Value {
        json!({"kind": "Pod", "metadata": {"name": "web-1"}, "status": status})
    }

    fn waits(reason: &str, message: &str, last: Value) -> Option<String> {
        let state = json!({"waiting": {"reason": reason, "message": message}});
        let fine = json!({"name": "side", "state": {"running": {}}});
        keeps(&pod(json!({"containerStatuses": [fine, {"name": "web", "state": state, "lastState": last}]})))
    }

    #[test]
    fn c_239_what_keeps_a_pod_is_named_with_the_word_of_kubernetes() {
        let none = json!({});
        assert_eq!(
            waits("ImagePullBackOff", "Back-off pulling image \"a:1\"", none.clone()).unwrap(),
            "container web of pod web-1: ImagePullBackOff: Back-off pulling image \"a:1\""
        );
        let last = json!({"terminated": {"exitCode": 3, "reason": "Error", "message": "no such table\n"}});
        assert_eq!(
            waits("CrashLoopBackOff", "back-off 10s restarting failed container", last).unwrap(),
            "container web of pod web-1: CrashLoopBackOff, it ended with exit code 3: no such table"
        );
        let last = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}});
        assert_eq!(
            waits("CrashLoopBackOff", "", last).unwrap(),
            "container web of pod web-1: CrashLoopBackOff, it ended with exit code 137 (OOMKilled)"
        );
        assert_eq!([waits("ContainerCreating", "", none.clone()), waits("", "", none)], [None, None]);
        let ended = json!({"initContainerStatuses": [{"name": "migrate", "state": {"terminated": {"exitCode": 1}}}]});
        assert_eq!(keeps(&pod(ended)).unwrap(), "container migrate of pod web-1: it ended with exit code 1");
        let well = json!({"containerStatuses": [{"name": "job", "state": {"terminated": {"exitCode": 0}}}]});
        assert_eq!(keeps(&pod(well)), None);
        let condition =
            json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"});
        let mut unscheduled = pod(json!({"conditions": [condition]}));
        assert_eq!(keeps(&unscheduled).unwrap(), "pod web-1 is Unschedulable: 0/1 nodes");
        unscheduled["metadata"]["deletionTimestamp"] = json!("2026-11-21T08:00:00Z");
        assert_eq!(keeps(&unscheduled), None);
    }

    #[test]
    fn c_239_of_several_pods_the_first_by_name_is_told_that_anything_keeps() {
        let named = |name: &str, reason: &str| {
            let status = json!({"containerStatuses": [{"name": "web", "state": {"waiting": {"reason": reason}}}]});
            Arc::new(json!({"kind": "Pod", "metadata": {"name": name}, "status": status}))
        };
        let well = named("web-1", "ContainerCreating");
        let pods = [named("web-3", "ErrImagePull"), named("web-2", "ImagePullBackOff"), Arc::clone(&well)];
        assert_eq!(first_kept(&pods).unwrap(), "container web of pod web-2: ImagePullBackOff");
        assert_eq!([first_kept(&[well]), first_kept(&[])], [None, None]);
    }

    #[test]
    fn limits_pods_what_is_told_of_one_has_a_length() {
        let told = waits("ErrImagePull", &"x".repeat(10_000), json!({})).unwrap();
        assert!((LONGEST_WORDS..LONGEST_WORDS + 32).contains(&told.len()), "{}", told.len());
    }

    #[test]
    fn c_239_the_pods_of_a_workload_are_those_of_its_labels() {
        let of = |version: &str, kind: &str, selector: Value| {
            selector_of(&json!({"apiVersion": version, "kind": kind, "spec": {"selector": selector}}))
        };
        let labels = json!({"matchLabels": {"app": "web", "tier": "a"}});
        assert_eq!(of("apps/v1", "Deployment", labels.clone()).as_deref(), Some("app=web,tier=a"));
        assert_eq!(of("batch/v1", "Job", labels.clone()).as_deref(), Some("app=web,tier=a"));
        assert_eq!(of("example.org/v1", "Deployment", labels), None);
        assert_eq!(of("apps/v1", "Deployment", json!({"matchLabels": {}})), None);
        let more = json!({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "x", "operator": "Exists"}]});
        assert_eq!(of("apps/v1", "Deployment", more), None);
    }

    #[test]
    fn c_239_a_wait_says_what_keeps_pods_and_is_called_again_to_look_at_them() {
        let waiting =
            || Waiting::selected(&"Deployment".into(), None, "web".to_owned(), Until::Ready).because("0 of 1");
        let later = explained(waiting(), PodsState::Later(Duration::from_secs(4)));
        assert_eq!(later.again_in(), Some(Duration::from_secs(4)));
        let kept = explained(waiting(), PodsState::Kept("pod web-1 is Unschedulable".to_owned()));
        assert_eq!(kept.to_string(), "waiting for Deployment web (0 of 1; pod web-1 is Unschedulable) to become ready");
        assert_eq!(kept.again_in(), None);
        assert_eq!(explained(waiting(), PodsState::Unknown), waiting().into());
    }
}
