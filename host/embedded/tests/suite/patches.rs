//! The four kinds of patches, over the wire.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::scaffold::*;

#[tokio::test]
async fn each_kind_of_patch_changes_the_object() {
    let (server, client) = serve().await;
    let maps = config_maps(&client, "default");
    create(&maps, config_map("one", json!({"a": "1", "b": "2"}))).await.unwrap();
    let by = PatchParams::default();
    maps.patch("one", &by, &Patch::Merge(json!({"data": {"a": null, "c": "3"}}))).await.unwrap();
    let operations = serde_json::from_value(json!([{"op": "replace", "path": "/data/b", "value": "9"}])).unwrap();
    maps.patch("one", &by, &Patch::Json::<()>(operations)).await.unwrap();
    let patched = maps.patch("one", &by, &Patch::Strategic(json!({"data": {"d": "4"}}))).await.unwrap();
    assert_eq!(patched.data["data"], json!({"b": "9", "c": "3", "d": "4"}));
    let stale = json!({"metadata": {"resourceVersion": "1"}, "data": {"e": "5"}});
    assert_eq!(refusal(maps.patch("one", &by, &Patch::Merge(stale)).await).0, 409);
    let failing = serde_json::from_value(json!([{"op": "test", "path": "/data/b", "value": "0"}])).unwrap();
    assert_eq!(refusal(maps.patch("one", &by, &Patch::Json::<()>(failing)).await).0, 422);
    server.stop().await;
}

#[tokio::test]
async fn a_strategic_merge_patch_of_a_custom_kind_is_refused() {
    let (server, client) = serve_things().await;
    let api = things(&client, "ns");
    create(&api, thing("t", json!({"size": 1}))).await.unwrap();
    let patch = Patch::Strategic(json!({"spec": {"size": 2}}));
    assert_eq!(refusal(api.patch("t", &PatchParams::default(), &patch).await).0, 415);
    server.stop().await;
}

#[tokio::test]
async fn an_apply_creates_merges_conflicts_and_takes() {
    let (server, client) = serve_things().await;
    let api = things(&client, "ns");
    let row = |key: &str, value: &str| json!({"key": key, "value": value});
    let apply = |by: &'static str, spec: Value| {
        let api = api.clone();
        async move { api.patch("t", &PatchParams::apply(by), &Patch::Apply(thing("t", spec))).await }
    };
    apply("a", json!({"size": 1, "rows": [row("x", "1")]})).await.unwrap();
    apply("b", json!({"size": 1, "rows": [row("y", "2")]})).await.unwrap();
    let conflict = refusal(apply("b", json!({"size": 2, "rows": [row("y", "2")]})).await);
    assert_eq!(conflict, (409, "Apply failed with 1 conflict: conflict with \"a\": .spec.size".to_owned()));
    let forced = Patch::Apply(thing("t", json!({"size": 2, "rows": [row("y", "2")]})));
    let taken = api.patch("t", &PatchParams::apply("b").force(), &forced).await.unwrap();
    assert_eq!(taken.data["spec"], json!({"size": 2, "mode": "a", "rows": [row("x", "1"), row("y", "2")]}));
    assert_eq!(taken.metadata.generation, Some(3));
    let again = api.patch("t", &PatchParams::apply("b").force(), &forced).await.unwrap();
    assert_eq!(
        again.metadata.resource_version, taken.metadata.resource_version,
        "an apply that changes nothing is no write"
    );
    let without = apply("a", json!({"size": 2})).await.unwrap();
    assert_eq!(without.data["spec"]["rows"], json!([row("y", "2")]));
    server.stop().await;
}

#[tokio::test]
async fn an_apply_of_the_status_leaves_the_rest_alone() {
    let (server, client) = serve_things().await;
    let api = things(&client, "ns");
    create(&api, thing("t", json!({"size": 1}))).await.unwrap();
    let status =
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "spec": {"size": 7}, "status": {"phase": "Ready"}});
    let patched = api.patch_status("t", &PatchParams::apply("c"), &Patch::Apply(status)).await.unwrap();
    assert_eq!(patched.data, json!({"spec": {"size": 1, "mode": "a"}, "status": {"phase": "Ready"}}));
    assert_eq!(patched.metadata.generation, Some(1));
    let managed: Vec<(Option<String>, Option<String>)> =
        patched.metadata.managed_fields.unwrap().into_iter().map(|entry| (entry.manager, entry.subresource)).collect();
    assert_eq!(managed[0], (Some("c".to_owned()), Some("status".to_owned())));
    server.stop().await;
}

#[tokio::test]
async fn patches_at_the_same_time_are_all_made() {
    let (server, client) = serve().await;
    let maps = config_maps(&client, "default");
    create(&maps, config_map("one", json!({}))).await.unwrap();
    let patches = (0..20).map(|n| {
        let maps = maps.clone();
        async move {
            maps.patch("one", &PatchParams::default(), &Patch::Merge(json!({"data": {format!("k{n}"): "v"}}))).await
        }
    });
    for patched in futures::future::join_all(patches).await {
        patched.unwrap();
    }
    assert_eq!(maps.get("one").await.unwrap().data["data"].as_object().unwrap().len(), 20);
    server.stop().await;
}

/// As Helm and `kubectl` do to go over to server-side apply.
#[tokio::test]
async fn the_owners_of_fields_can_be_named_and_forgotten() {
    let (server, client) = serve().await;
    let maps = config_maps(&client, "default");
    let made = create(&maps, config_map("one", json!({"a": "1"}))).await.unwrap();
    let by = PatchParams { field_manager: Some("updater".to_owned()), ..PatchParams::default() };
    maps.patch("one", &by, &Patch::Merge(json!({"data": {"b": "2"}}))).await.unwrap();
    let owners = |object: &kube::api::DynamicObject| -> Value {
        let entries = object.metadata.managed_fields.clone().unwrap_or_default().into_iter();
        entries.map(|entry| json!([entry.manager, entry.operation, entry.fields_v1])).collect()
    };
    let data = |names: &[&str]| -> Value {
        json!({"f:data": names.iter().map(|name| (format!("f:{name}"), json!({}))).collect::<serde_json::Map<_, _>>()})
    };
    let version = maps.get("one").await.unwrap().metadata.resource_version;
    let entry = json!({"manager": "applier", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "time": "2026-01-01T00:00:00Z", "fieldsV1": data(&["a", "b"])});
    let report: Patch<()> = Patch::Json(
        serde_json::from_value(json!([
            {"op": "replace", "path": "/metadata/managedFields", "value": [entry]},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
            {"op": "add", "path": "/data/c", "value": "3"},
        ]))
        .unwrap(),
    );
    let taken = maps.patch("one", &by, &report).await.unwrap();
    let expected = json!([["applier", "Apply", data(&["a", "b"])], ["updater", "Update", data(&["c"])]]);
    assert_eq!(owners(&taken), expected);
    assert_ne!(taken.metadata.resource_version, made.metadata.resource_version);
    // An empty list says nothing, an empty entry that nobody owns anything.
    let says = |managed_fields: Value| Patch::Merge(json!({"metadata": {"managedFields": managed_fields}}));
    assert_eq!(owners(&maps.patch("one", &by, &says(json!([]))).await.unwrap()), expected);
    assert_eq!(owners(&maps.patch("one", &by, &says(json!([{}]))).await.unwrap()), json!([]));
    server.stop().await;
}

#[tokio::test]
async fn a_scaling_writer_owns_the_replicas() {
    let (server, client) = serve().await;
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = |replicas: i64| {
        let spec = json!({"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": template});
        Patch::Apply(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}))
    };
    let deployments = dynamic(&client, "apps", "v1", "Deployment", Some("default"));
    let by = PatchParams::apply("applier");
    deployments.patch("d", &by, &deployment(1)).await.unwrap();
    let scale = PatchParams { field_manager: Some("scaler".to_owned()), ..PatchParams::default() };
    deployments.patch_scale("d", &scale, &Patch::Merge(json!({"spec": {"replicas": 3}}))).await.unwrap();
    let conflict = refusal(deployments.patch("d", &by, &deployment(2)).await);
    let why = "Apply failed with 1 conflict: conflict with \"scaler\" with subresource \"scale\" using apps/v1: .spec.replicas";
    assert_eq!(conflict, (409, why.to_owned()));
    server.stop().await;
}

#[tokio::test]
async fn what_does_not_fit_its_kind_cannot_be_applied() {
    let (server, client) = serve().await;
    let variable = |value: &str| json!({"name": "K", "value": value});
    let container =
        json!({"name": "c", "image": 1, "env": [variable("1"), variable("2"), {"name": "L", "valeu": "3"}]});
    let wanted = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"replicas": "many", "template": {"spec": {"containers": [container]}}}});
    let deployments = dynamic(&client, "apps", "v1", "Deployment", Some("default"));
    let refused = refusal(deployments.patch("d", &PatchParams::apply("a"), &Patch::Apply(wanted)).await);
    let why = "failed to create typed patch object (default/d; apps/v1, Kind=Deployment): errors:
  .spec.template.spec.containers[name=\"c\"].env: duplicate entries for key [name=\"K\"]
  .spec.template.spec.containers[name=\"c\"].env[name=\"L\"].valeu: field not declared in schema
  .spec.replicas: expected numeric (int or float), got string
  .spec.template.spec.containers[name=\"c\"].image: expected string, got number";
    assert_eq!(refused, (500, why.to_owned()));
    server.stop().await;
}
