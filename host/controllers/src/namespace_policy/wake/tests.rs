use std::sync::Mutex;

use orangery_api::deploy_item::DeployItem;
use orangery_cluster::{Cluster, Connections, NamespacedName, Waiter};
use orangery_core::{port::BoxFuture, step::Step};
use orangery_policy::Policy;
use orangery_proposal::{ClusterRef, SecretContent, deployer::ApiResource};
use serde_json::{Value, json};

use super::*;
use crate::controller_context::tests::host;

/// An object in the namespace whose last job ended with this code; `None` where a job is under way.
fn object(name: &str, namespace: &str, code: Option<&str>) -> Value {
    let metadata = json!({"name": name, "namespace": namespace, "uid": name, "resourceVersion": "1"});
    let time = "2026-01-01T00:00:00Z";
    let error = code.map(|code| {
        json!({
            "operation": "o", "reason": "r", "message": "m", "codes": [code], "lastTransitionTime": time,
            "lastUpdateTime": time,
        })
    });
    let finished = if code.is_some() { "1" } else { "0" };
    let mut status = json!({"phase": "Failed", "jobID": "1", "jobIDFinished": finished});
    if let Some(error) = error {
        status["lastError"] = error;
    }
    json!({"metadata": metadata, "status": status})
}

fn installation(name: &str, namespace: &str, parent: Option<&str>, code: Option<&str>) -> Installation {
    let mut object = object(name, namespace, code);
    object["spec"] = json!({"blueprint": {}});
    if let Some(parent) = parent {
        let owner =
            json!({"apiVersion": orangery_api::API_VERSION, "kind": "Installation", "name": parent, "uid": "u"});
        object["metadata"]["ownerReferences"] = json!([owner]);
    }
    serde_json::from_value(object).unwrap()
}

fn item(name: &str, namespace: &str, code: Option<&str>) -> DeployItem {
    let mut object = object(name, namespace, code);
    object["spec"] = json!({"type": "t"});
    serde_json::from_value(object).unwrap()
}

/// The namespaces `a` and `b` have been asked about; then a policy selects `a`.
fn select_a(host: &ControllerContext) {
    for namespace in ["a", "b"] {
        host.policies.of(&namespace.into()).unwrap();
    }
    let spec = json!({"namespaces": {"names": ["a"]}, "quotas": {"items": 1}});
    host.policies.put_policy("team".to_owned(), Policy::read("team", &spec));
}

fn names(queue: &Queue) -> Vec<String> {
    queue.queued().into_iter().map(|key| key.to_string()).collect()
}

#[tokio::test]
async fn a_refused_root_is_called_when_something_else_counts_for_its_namespace() {
    let (host, queue) = (host(), Queue::default());
    let code = Violation::CODE.to_string();
    for root in [
        installation("refused", "a", None, Some(&code)),
        installation("failed", "a", None, Some("ERR_TIMEOUT")),
        installation("working", "a", None, None),
        installation("below", "a", Some("refused"), Some(&code)),
        installation("elsewhere", "b", None, Some(&code)),
    ] {
        host.stores.installations.upsert(root);
    }
    wake_refused(&host, queue.clone());
    select_a(&host);
    assert_eq!(names(&queue), ["a/refused"]);
}

#[tokio::test]
async fn c_80_a_refused_root_keeps_what_counted_and_starts_where_something_else_does() {
    let (host, code) = (host(), Violation::CODE.to_string());
    let under = |root: &Installation| refused_under(&host.policies, root);
    let mut refused = installation("refused", "a", None, Some(&code));
    refused.status.as_mut().unwrap().refused_under = under(&refused);
    assert!(under(&refused).starts_with("sha256:") && !is_allowed_anew(&host.policies, &refused));
    select_a(&host);
    assert!(is_allowed_anew(&host.policies, &refused));
    refused.status.as_mut().unwrap().refused_under = under(&refused);
    assert!(!is_allowed_anew(&host.policies, &refused), "it was refused once more");
    for other in [
        installation("failed", "a", None, Some("ERR_TIMEOUT")),
        installation("working", "a", None, None),
        installation("below", "a", Some("refused"), Some(&code)),
    ] {
        assert_eq!((under(&other), is_allowed_anew(&host.policies, &other)), (String::new(), false));
    }
}

#[tokio::test]
async fn items_under_way_are_called_when_something_else_counts_for_their_namespace() {
    let (host, queue) = (host(), Queue::default());
    let code = Violation::CODE.to_string();
    for item in [item("working", "a", None), item("refused", "a", Some(&code)), item("elsewhere", "b", None)] {
        host.stores.deploy_items.upsert(item);
    }
    wake_items(&host, queue.clone());
    select_a(&host);
    assert_eq!(names(&queue), ["a/working"]);
}

/// Nothing is connected to.
struct Nowhere;

impl Connections for Nowhere {
    fn connect<'a>(&'a self, _: &'a ClusterRef) -> BoxFuture<'a, Step<Arc<Cluster>>> {
        unreachable!("no cluster is asked for")
    }

    fn content<'a>(&'a self, _: &'a SecretContent) -> BoxFuture<'a, Step<String>> {
        unreachable!("no content is asked for")
    }
}

#[tokio::test]
async fn c_102_watching_objects_are_called_when_something_else_counts_for_their_namespace() {
    let (host, woken) = (host(), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&woken);
    let pool = ClusterPool::new(move |waiter: &Waiter| {
        seen.lock().unwrap().push(format!("{} {}/{}", waiter.kind, waiter.namespace, waiter.name));
    });
    let (pool, cluster) = (Arc::new(pool), Cluster::new(host.client.clone(), "c".to_owned(), Arc::new(|_| {})));
    let api_version = "v1".into();
    let resource = ApiResource { api_version, kind: "K".into(), plural: "ks".to_owned(), namespaced: true };
    let place = NamespacedName { namespace: Some("n".into()), name: "x".into() };
    for namespace in ["a", "b"] {
        let waiter = Waiter { kind: "Execution".into(), namespace: namespace.into(), name: "waits".into() };
        let set = pool.set(Arc::new(Nowhere), waiter);
        set.watch(&cluster, &resource, &place);
        set.keep_waiting();
    }
    wake_watching(&host, &pool);
    select_a(&host);
    assert_eq!(*woken.lock().unwrap(), ["Execution a/waits"]);
}

#[tokio::test]
async fn subscriptions_do_not_keep_a_host_alive() {
    let host = host();
    wake_refused(&host, Queue::default());
    wake_items(&host, Queue::default());
    let pool = Arc::new(ClusterPool::new(|_| {}));
    wake_watching(&host, &pool);
    let policies = host.policies.clone();
    assert_eq!((Arc::strong_count(&host), Arc::strong_count(&pool)), (1, 1));
    drop(host);
    policies.put_policy("team".to_owned(), Policy::read("team", &json!({"namespaces": {"names": ["a"]}})));
}
