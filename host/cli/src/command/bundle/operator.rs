//! What an archive has of the operator itself: versions, Leases, pods, logs and metrics.

use std::collections::{BTreeMap, BTreeSet};

use futures::future;
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Pod};
use kube::{
    Api, Client, ResourceExt as _,
    api::{ListParams, LogParams},
};
use orangery_api::annotation::OPERATOR_LEASE;
use orangery_core::{
    masking::Masker,
    name::{Kind, ObjectName},
};
use serde_json::{Value, json};

use super::{cause_of, masked_line};
use crate::{
    operator_metrics::{MetricsFlags, OperatorPod},
    operators::{holder, is_renewed},
    support::SupportFiles,
};

/// The most namespaces with operators that are looked into.
const MOST_OPERATORS: usize = 10;

/// The most Leases that are looked at until they are renewed.
const MOST_LEASES: usize = 50;

/// The most pods of an operator that are looked at.
const MOST_PODS: usize = 10;

/// Bytes of the end of a log.
const MOST_LOG_BYTES: i64 = 4 << 20;

/// Lines of the end of a log.
const MOST_LOG_LINES: i64 = 20_000;

/// The labels of pods of the chart.
const PODS: &str = "app.kubernetes.io/name=orangery";

/// Versions of this program, of the server and of the definitions.
pub(super) async fn versions(client: &Client, files: &mut SupportFiles) {
    let server = match client.apiserver_version().await {
        Ok(version) => json!(version),
        Err(error) => json!(cause_of(&Kind::from_static("version"), &error)),
    };
    let mut definitions = Vec::new();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for definition in orangery_api::crds() {
        let name = definition.name_any();
        let request = http::Request::get(format!("{path}/{name}")).body(Vec::new());
        let Ok(request) = request else { continue };
        let found = client.request::<Value>(request).await;
        definitions.push(match found {
            Ok(found) => json!({
                "name": name,
                "versions": found.pointer("/spec/versions").and_then(Value::as_array).map(|versions| {
                    versions.iter().filter_map(|version| version.get("name")).collect::<Vec<_>>()
                }),
                "stored": found.pointer("/status/storedVersions"),
                "conditions": found.pointer("/status/conditions"),
            }),
            Err(error) => {
                json!({"name": name, "why": cause_of(&Kind::from_static("CustomResourceDefinition"), &error)})
            }
        });
    }
    let versions = json!({"program": env!("CARGO_PKG_VERSION"), "server": server, "definitions": definitions});
    files.add("versions.json", &format!("{versions:#}\n"));
}

/// Leases, pods, logs and metrics of operators.
pub(super) async fn operators(client: &Client, (figures, masker): (&MetricsFlags, &Masker), files: &mut SupportFiles) {
    let mut namespaces = Vec::new();
    let leases = Api::<Lease>::all(client.clone()).list(&ListParams::default().labels(OPERATOR_LEASE)).await;
    match leases {
        Err(error) => files
            .note(format!("operator, its Leases, pods and logs: {}", cause_of(&Kind::from_static("Lease"), &error))),
        Ok(leases) => {
            let line = |lease: &Lease| {
                let spec = json!(lease.spec);
                masked_line(&json!({"namespace": lease.namespace(), "name": lease.name_any(), "spec": spec}), masker)
            };
            files.add("operator/leases.jsonl", &leases.items.iter().map(line).collect::<String>());
            let looked_at = leases.items.iter().enumerate().map(async |(place, lease)| {
                place < MOST_LEASES && holder(lease).is_some() && is_renewed(client, lease).await
            });
            let is_alive = future::join_all(looked_at).await;
            namespaces = holders(leases.items.iter().zip(is_alive));
        }
    }
    let more = namespaces.len().saturating_sub(MOST_OPERATORS);
    if more > 0 {
        files.note(format!(
            "pods and logs of {more} more namespaces with Leases of operators, those last that nobody renews"
        ));
    }
    for (namespace, holders) in namespaces.into_iter().take(MOST_OPERATORS) {
        let api: Api<Pod> = Api::namespaced(client.clone(), &namespace);
        match api.list(&ListParams::default().labels(PODS)).await {
            Err(error) => files.note(format!(
                "pods of the operator in namespace {namespace}: {}",
                cause_of(&Kind::from_static("Pod"), &error)
            )),
            Ok(mut pods) => {
                pods.items.sort_by_key(|pod| !holders.contains(pod.name_any().as_str()));
                let more = pods.items.len().saturating_sub(MOST_PODS);
                if more > 0 {
                    files.note(format!("{more} more pods of the operator in namespace {namespace}, and their logs"));
                }
                for pod in pods.items.iter().take(MOST_PODS) {
                    of_pod((&api, pod), &format!("operator/{namespace}"), masker, files).await;
                }
            }
        }
    }
    match figures.page(client).await {
        Ok(page) => files.add("operator/metrics.txt", &masker.mask(&page.text)),
        Err(why) => files.note(format!("operator/metrics.txt: {why}")),
    }
}

/// The namespaces of Leases with the pods that hold them, those first where one is renewed.
fn holders<'l>(leases: impl Iterator<Item = (&'l Lease, bool)>) -> Vec<(String, BTreeSet<ObjectName>)> {
    let mut of: BTreeMap<String, (bool, BTreeSet<ObjectName>)> = BTreeMap::new();
    for (lease, is_alive) in leases {
        let (any_is_alive, pods) = of.entry(lease.namespace().unwrap_or_default()).or_default();
        *any_is_alive |= is_alive;
        pods.extend(OperatorPod::of(lease).map(|pod| pod.name));
    }
    let mut of: Vec<_> = of.into_iter().collect();
    of.sort_by_key(|(_, (any_is_alive, _))| !any_is_alive);
    of.into_iter().map(|(namespace, (_, pods))| (namespace, pods)).collect()
}

async fn of_pod((api, pod): (&Api<Pod>, &Pod), folder: &str, masker: &Masker, files: &mut SupportFiles) {
    let name = pod.name_any();
    files.add(&format!("{folder}/{name}.json"), &masked_line(&outline(pod), masker));
    let restarted = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let restarted = restarted.map(|container| container.restart_count).max().unwrap_or_default() > 0;
    for (previous, file) in [(false, "log"), (true, "previous.log")] {
        if previous && !restarted {
            continue;
        }
        let params = LogParams {
            previous,
            limit_bytes: Some(MOST_LOG_BYTES),
            tail_lines: Some(MOST_LOG_LINES),
            ..LogParams::default()
        };
        match api.logs(&name, &params).await {
            Ok(text) => files.add(&format!("{folder}/{name}.{file}"), &masker.mask(&text)),
            Err(error) => {
                files.note(format!("{folder}/{name}.{file}: {}", cause_of(&Kind::from_static("Pod"), &error)))
            }
        }
    }
}

/// A pod without what its environment says.
fn outline(pod: &Pod) -> Value {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers).map(|container| {
        json!({"name": container.name, "image": container.image, "args": container.args, "resources": container.resources})
    });
    json!({
        "name": pod.name_any(),
        "created": pod.creation_timestamp(),
        "node": pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
        "containers": containers.collect::<Vec<_>>(),
        "status": pod.status,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::tests::server;

    fn lease(namespace: &str, holder: &str, renewed: &str) -> Value {
        json!({"metadata": {"name": "orangery", "namespace": namespace},
            "spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 1}})
    }

    #[tokio::test(start_paused = true)]
    async fn c_401_the_operator_that_is_active_comes_first_and_what_is_cut_is_told() {
        let list = |kind: &str, items: Vec<Value>| json!({"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items});
        let (client, sent) = server(move |line| {
            let old = "2026-01-01T00:00:00.000000Z";
            let pods = (0..12).map(|number| json!({"metadata": {"name": format!("p{number:02}")}})).collect();
            match line {
                _ if line.contains("namespaces/z/leases") => {
                    (200, list("LeaseList", vec![lease("z", "p11_x", "2026-01-01T00:00:01.000000Z")]))
                }
                _ if line.contains("/leases") && line.contains("fieldSelector") => (404, json!({})),
                _ if line.contains("/leases") => {
                    let dead = (0..MOST_OPERATORS).map(|number| lease(&format!("n{number}"), "p_x", old));
                    (200, list("LeaseList", dead.chain([lease("z", "p11_x", old)]).collect()))
                }
                _ if line.contains("namespaces/z/pods?") => (200, list("PodList", pods)),
                _ if line.contains("/log?") => (200, json!("a line")),
                _ => (403, json!({"kind": "Status", "status": "Failure", "code": 403, "message": "no", "reason": "x"})),
            }
        });
        let mut files = SupportFiles::new(1 << 20);
        operators(&client, (&MetricsFlags::default(), &Masker::default()), &mut files).await;
        let sent = sent.lock().unwrap();
        let asked: Vec<&String> =
            sent.iter().filter(|line| line.contains("/pods?") || line.contains("/log?")).collect();
        assert!(asked.first().is_some_and(|line| line.contains("namespaces/z/pods?")), "{asked:?}");
        assert!(asked.get(1).is_some_and(|line| line.contains("/pods/p11/log?")), "{asked:?}");
        for note in [
            "pods and logs of 1 more namespaces with Leases of operators, those last that nobody renews",
            "2 more pods of the operator in namespace z, and their logs",
        ] {
            assert!(files.notes().iter().any(|of| of == note), "{note}: {:?}", files.notes());
        }
    }
}
