//! Namespaces, owners, and definitions under deletion.

use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::scaffold::*;

#[tokio::test]
async fn a_namespace_is_furnished_and_emptied() {
    let (server, client) = serve().await;
    namespace(&client, "ns").await;
    let namespaces = dynamic(&client, "", "v1", "Namespace", None);
    let accounts = dynamic(&client, "", "v1", "ServiceAccount", Some("ns"));
    becomes(&accounts, "default", |_| true).await;
    let maps = config_maps(&client, "ns");
    let authority = becomes(&maps, "kube-root-ca.crt", |_| true).await;
    assert_eq!(authority["data"]["ca.crt"], json!(server.ca_pem()));
    let mut held = config_map("held", json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    create(&maps, held).await.unwrap();
    let marked = namespaces.delete("ns", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert_eq!(marked.data["status"]["phase"], json!("Terminating"));
    gone(&accounts, "default").await;
    let refused = refusal(create(&maps, config_map("new", json!({}))).await);
    let why =
        "configmaps \"new\" is forbidden: unable to create new content in namespace ns because it is being terminated";
    assert_eq!(refused, (403, why.to_owned()));
    maps.patch("held", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"finalizers": null}})))
        .await
        .unwrap();
    gone(&namespaces, "ns").await;
    namespace(&client, "ns").await;
    becomes(&accounts, "default", |_| true).await;
    server.stop().await;
}

#[tokio::test]
async fn what_names_an_owner_that_never_was_is_collected() {
    let (server, client) = serve().await;
    let maps = config_maps(&client, "default");
    let mut owned = config_map("owned", json!({}));
    owned["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "ghost", "uid": "ghost"}]);
    create(&maps, owned).await.unwrap();
    gone(&maps, "owned").await;
    let mut kept = config_map("kept", json!({}));
    kept["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "unknown.example/v1", "kind": "Ghost", "name": "g", "uid": "g"}]);
    create(&maps, kept).await.unwrap();
    let mut last = config_map("last", json!({}));
    last["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "ghost", "uid": "ghost"}]);
    create(&maps, last).await.unwrap();
    gone(&maps, "last").await;
    assert!(maps.get_opt("kept").await.unwrap().is_some(), "an owner of a kind that is not served may exist elsewhere");
    server.stop().await;
}

#[tokio::test]
async fn an_object_with_two_owners_stays_until_both_are_gone() {
    let (server, client) = serve().await;
    let maps = config_maps(&client, "default");
    let mut owners = Vec::new();
    for name in ["a", "b"] {
        let owner = create(&maps, config_map(name, json!({}))).await.unwrap();
        owners.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": owner.metadata.uid}));
    }
    let mut owned = config_map("owned", json!({}));
    owned["metadata"]["ownerReferences"] = json!(owners);
    create(&maps, owned).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let left =
        becomes(&maps, "owned", |owned| owned["metadata"]["ownerReferences"].as_array().is_some_and(|o| o.len() == 1))
            .await;
    assert_eq!(left["metadata"]["ownerReferences"], json!([owners[1]]));
    maps.delete("b", &DeleteParams::default()).await.unwrap();
    gone(&maps, "owned").await;
    server.stop().await;
}

#[tokio::test]
async fn a_deleted_definition_takes_its_objects_along() {
    let (server, client) = serve_things().await;
    let api = things(&client, "ns");
    let mut held = thing("held", json!({"size": 1}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    create(&api, held).await.unwrap();
    create(&api, thing("free", json!({"size": 1}))).await.unwrap();
    definitions(&client).delete("things.example.com", &DeleteParams::default()).await.unwrap();
    gone(&api, "free").await;
    let late = refusal(create(&api, thing("late", json!({"size": 1}))).await);
    assert_eq!(late, (405, "create not allowed while custom resource definition is terminating".to_owned()));
    api.patch("held", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"finalizers": []}}))).await.unwrap();
    gone(&definitions(&client), "things.example.com").await;
    assert_eq!(refusal(api.get("held").await), (404, "the server could not find the requested resource".to_owned()));
    create(&definitions(&client), definition()).await.unwrap();
    assert_eq!(api.list(&kube::api::ListParams::default()).await.unwrap().items.len(), 0);
    server.stop().await;
}
