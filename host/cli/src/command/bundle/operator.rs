//! What an archive has of the operator itself: versions, Leases, pods, logs and metrics.

use k8s_openapi::api::{coordination::v1::Lease, core::v1::Pod};
use kube::{
    Api, Client, ResourceExt as _,
    api::{ListParams, LogParams},
};
use orangery_api::annotation::OPERATOR_LEASE;
use orangery_core::{masking::Masker, name::Kind};
use serde_json::{Value, json};

use super::{cause_of, masked_line};
use crate::{operator_metrics::MetricsFlags, support::SupportFiles};

/// The most namespaces with operators that are looked into.
const MOST_OPERATORS: usize = 10;

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
    match Api::<Lease>::all(client.clone()).list(&ListParams::default().labels(OPERATOR_LEASE)).await {
        Err(error) => files
            .note(format!("operator, its Leases, pods and logs: {}", cause_of(&Kind::from_static("Lease"), &error))),
        Ok(leases) => {
            let line = |lease: &Lease| {
                let spec = json!(lease.spec);
                masked_line(&json!({"namespace": lease.namespace(), "name": lease.name_any(), "spec": spec}), masker)
            };
            files.add("operator/leases.jsonl", &leases.items.iter().map(line).collect::<String>());
            namespaces.extend(leases.items.iter().filter_map(|lease| lease.namespace()));
        }
    }
    namespaces.sort();
    namespaces.dedup();
    for namespace in namespaces.into_iter().take(MOST_OPERATORS) {
        let api: Api<Pod> = Api::namespaced(client.clone(), &namespace);
        match api.list(&ListParams::default().labels(PODS)).await {
            Err(error) => files.note(format!(
                "pods of the operator in namespace {namespace}: {}",
                cause_of(&Kind::from_static("Pod"), &error)
            )),
            Ok(pods) => {
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
