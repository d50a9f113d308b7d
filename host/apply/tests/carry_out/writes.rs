//! What is written, in which order, with how many requests.

use std::sync::atomic::Ordering;

use orangery_apply::{OWNER_ANNOTATION, Outcome};
use orangery_core::step::Halt;
use orangery_proposal::{ClusterRef, ObjectKey, deployer::Clusters, executor::ExecutionStep, item::Progress};
use serde_json::{Value, json};

use crate::world::{LABEL, World, config_map, proposal, stage, write};

#[tokio::test]
async fn the_inventory_is_recorded_before_the_first_object_is_written() {
    let mut world = World::new().await;
    let plan = proposal(json!({"stages": [stage(&[write("a", "1")])]}));
    assert_eq!(world.run("j", &plan).await, Outcome::Finished);
    assert_eq!(world.traffic.take(), ["record", "POST default/configmaps", "record"]);
    let created = world.get("/api/v1/namespaces/default/configmaps/a").await.unwrap();
    assert_eq!(created["metadata"]["labels"], json!({LABEL: "item"}));
    assert_eq!(created["data"], json!({"k": "1"}));
    let entry = world.status.state.inventory.0.values().next().unwrap();
    assert_eq!(entry.uid.as_deref(), created["metadata"]["uid"].as_str());
}

#[tokio::test]
async fn a_known_object_costs_one_read_and_an_unchanged_one_no_write() {
    let mut world = World::new().await;
    world.run("j", &proposal(json!({"stages": [stage(&[write("a", "1")])]}))).await;
    world.traffic.take();
    world.run("k", &proposal(json!({"stages": [stage(&[write("a", "2")])]}))).await;
    assert_eq!(world.traffic.take(), ["record", "GET configmaps/a", "PUT configmaps/a", "record"]);
    world.run("l", &proposal(json!({"stages": [stage(&[write("a", "2")])]}))).await;
    assert_eq!(world.traffic.take(), ["record", "GET configmaps/a", "record"]);
}

#[tokio::test]
async fn definitions_come_first_then_cluster_scoped_then_namespaced_objects() {
    let mut world = World::new().await;
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced", "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    let thing = json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "t", "namespace": "new"}});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}});
    let writes: Vec<Value> =
        [thing, namespace, definition].into_iter().map(|object| json!({"object": object, "how": "replace"})).collect();
    world.run("j", &proposal(json!({"stages": [stage(&writes)]}))).await;
    let posts: Vec<String> = world.traffic.take().into_iter().filter(|line| line.starts_with("POST")).collect();
    assert_eq!(posts, ["POST v1/customresourcedefinitions", "POST v1/namespaces", "POST new/things"]);
}

#[tokio::test]
async fn foreign_objects_are_neither_written_nor_recorded() {
    let mut world = World::new().await;
    let all = "/api/v1/namespaces/default/configmaps";
    for name in ["created", "held"] {
        world.send("POST", all, &config_map(name, "foreign")).await;
    }
    let created = |name: &str| json!({"object": config_map(name, "ours"), "how": "create"});
    let fallback = |name: &str| json!({"object": config_map(name, "ours"), "how": "replace", "owned": "fallback"});
    let plan =
        proposal(json!({"stages": [stage(&[created("created"), created("new"), fallback("held"), fallback("free")])]}));
    world.run("j", &plan).await;
    assert_eq!(world.inventory(), ["free", "new"]);
    let values = |maps: &std::collections::BTreeMap<String, Value>| {
        maps.iter().map(|(name, data)| format!("{name}={}", data["k"].as_str().unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(values(&world.config_maps().await), ["created=foreign", "free=ours", "held=foreign", "new=ours"]);
    world.delete().await;
    assert_eq!(values(&world.config_maps().await), ["created=foreign", "held=foreign"]);
}

#[tokio::test]
async fn an_immutable_object_of_ours_is_not_updated() {
    let mut world = World::new().await;
    let plan = |value: &str| {
        proposal(json!({"stages": [stage(&[json!({"object": config_map("a", value), "how": "create"})])]}))
    };
    world.run("j", &plan("1")).await;
    world.run("k", &plan("2")).await;
    assert_eq!(world.config_maps().await["a"], json!({"k": "1"}));
    assert_eq!(world.inventory(), ["a"]);
}

#[tokio::test]
async fn what_is_merged_at_creation_is_lost_with_the_first_update() {
    let mut world = World::new().await;
    let plan = |value: &str| {
        proposal(json!({"stages": [stage(&[json!({"object": config_map("a", value), "how": "replace",
            "atCreation": {"metadata": {"annotations": {"made": "here"}}}})])]}))
    };
    let path = "/api/v1/namespaces/default/configmaps/a";
    world.run("j", &plan("1")).await;
    let mark = world.owner.mark();
    let annotations = json!({"made": "here", OWNER_ANNOTATION: mark});
    assert_eq!(world.get(path).await.unwrap()["metadata"]["annotations"], annotations);
    world.run("k", &plan("2")).await;
    assert_eq!(world.get(path).await.unwrap()["metadata"]["annotations"], json!({OWNER_ANNOTATION: mark}));
}

#[tokio::test]
async fn every_way_of_writing_reaches_the_server() {
    let mut world = World::new().await;
    for (how, expected) in [
        (json!("apply"), json!({"k": "2", "theirs": "x"})),
        (json!("patch"), json!({"k": "2"})),
        (json!("fill"), json!({"k": "1", "theirs": "x"})),
        (json!("overlay"), json!({"k": "2", "theirs": "x"})),
        (json!({"merge": config_map("a", "1")}), json!({"k": "2", "theirs": "x"})),
    ] {
        let plan = |value: &str| {
            proposal(json!({"stages": [stage(&[json!({"object": config_map("a", value), "how": how})])]}))
        };
        world.run("j", &plan("1")).await;
        world.send("PATCH", "/api/v1/namespaces/default/configmaps/a", &json!({"data": {"theirs": "x"}})).await;
        world.run("k", &plan("2")).await;
        assert_eq!(world.config_maps().await["a"], expected, "{how}");
        world.delete().await;
        world.status = Default::default();
    }
}

#[tokio::test]
async fn content_of_the_host_is_placed_encoded_and_never_kept() {
    let mut world = World::new().await;
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}, "data": {}});
    let plan = proposal(json!({"stages": [stage(&[json!({"object": secret, "how": "replace",
        "inject": [{"at": "/data/kubeconfig", "content": {"kubeconfig": "target"}}]})])], "next": {"finish":
            {"afterwards": [stage(&[write("later", "1")])]}}}));
    world.run("j", &plan).await;
    let written = world.get("/api/v1/namespaces/default/secrets/s").await.unwrap();
    assert_eq!(written["data"], json!({"kubeconfig": "c2VjcmV0IGNvbnRlbnQ="}));
}

#[tokio::test]
async fn c_24_a_superseded_job_writes_nothing() {
    let mut world = World::new().await;
    world.is_current.store(false, Ordering::SeqCst);
    let plan = proposal(json!({"stages": [stage(&[write("a", "1")])]}));
    assert!(matches!(world.reconcile("j", &plan).await, Err(Halt::Retry(failure)) if failure.reason == "Superseded"));
    assert_eq!(world.traffic.take(), [""; 0]);
    assert!(world.config_maps().await.is_empty());
}

#[tokio::test]
async fn objects_that_can_be_written_nowhere_fail_before_anything_is_recorded() {
    let mut world = World::new().await;
    let mut homeless = config_map("a", "1");
    homeless["metadata"].as_object_mut().unwrap().remove("namespace");
    let plan = proposal(json!({"stages": [stage(&[write("b", "1"), json!({"object": homeless, "how": "replace"})])]}));
    let Err(Halt::Stall(failure)) = world.reconcile("j", &plan).await else { panic!() };
    assert_eq!(failure.message, "ConfigMap a needs metadata.namespace, because its kind is namespaced");
    assert_eq!((world.config_maps().await.len(), world.inventory().len()), (0, 0));
}

#[tokio::test]
async fn an_unknown_kind_is_tried_again_because_its_definition_may_come() {
    let mut world = World::new().await;
    let object = json!({"apiVersion": "nope.example/v1", "kind": "Nope", "metadata": {"name": "x"}});
    let plan = proposal(json!({"stages": [stage(&[json!({"object": object, "how": "replace"})])]}));
    let Err(Halt::Retry(failure)) = world.reconcile("j", &plan).await else { panic!() };
    assert_eq!(failure.reason, "KindNotServed");
}

#[tokio::test]
async fn a_failed_stage_calls_the_component_that_wants_to_recover() {
    let mut world = World::new().await;
    let invalid = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": "no map"});
    let stages = json!({"stages": [stage(&[json!({"object": invalid, "how": "replace"})])]});
    let Err(Halt::Stall(_)) = world.reconcile("j", &proposal(stages.clone())).await else { panic!() };
    let mut recovering = stages;
    recovering["recover"] = json!([7]);
    assert_eq!(world.run("k", &proposal(recovering)).await, Outcome::Call);
    let Some(Progress { step: ExecutionStep::Recovering(failure), .. }) = &world.status.state.progress else {
        panic!()
    };
    assert_eq!((failure.stage.as_str(), failure.key.as_ref().unwrap().name.as_str()), ("s", "a"));
    // The answer of the next call is begun, not gone on with.
    let repaired = proposal(json!({"stages": [stage(&[write("b", "1")])]}));
    assert_eq!(world.run("k", &repaired).await, Outcome::Finished);
    assert_eq!(world.inventory(), ["a", "b"], "what both proposals have planned is not pruned");
}

#[tokio::test]
async fn components_read_through_the_same_clusters() {
    let world = World::new().await;
    let clusters = world.clusters();
    let key = |name: &str| ObjectKey {
        api_version: "v1".into(),
        kind: "Namespace".into(),
        namespace: None,
        name: name.into(),
    };
    let on = ClusterRef::Target;
    let read = Clusters::get_many(&clusters, &on, &[key("default"), key("absent")]).await.unwrap();
    let names: Vec<Option<String>> = read
        .into_iter()
        .map(|found| found.map(|object| object["metadata"]["name"].as_str().unwrap().to_owned()))
        .collect();
    assert_eq!(names, [Some("default".to_owned()), None]);
    let resources = clusters.discover(&on).await.unwrap();
    assert!(
        resources
            .iter()
            .any(|resource| resource.kind == "Deployment" && resource.api_version == "apps/v1" && resource.namespaced)
    );
    assert!(clusters.version(&on).await.unwrap().starts_with("v1."));
    let unknown = ObjectKey { kind: "Nope".into(), ..key("x") };
    assert!(matches!(Clusters::get(&clusters, &on, &unknown).await, Err(orangery_core::error::Fault::Invalid(_))));
}

/// Each has room alone, and they have none together.
#[tokio::test]
async fn c_201_objects_that_a_component_reads_at_once_hold_their_memory_until_all_are_there() {
    let mut world = World::new().await;
    let text = "x".repeat(300 << 10);
    world.run("j", &proposal(json!({"stages": [stage(&["a", "b", "c"].map(|name| write(name, &text)))]}))).await;
    world.restart_with(1_500 << 10);
    let clusters = world.clusters();
    let key = |name: &str| ObjectKey {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        namespace: Some("default".into()),
        name: name.into(),
    };
    let read = async |names: &[&str]| {
        let keys: Vec<ObjectKey> = names.iter().map(|name| key(name)).collect();
        Clusters::get_many(&clusters, &ClusterRef::Target, &keys).await.map(|found| found.iter().flatten().count())
    };
    let refused = read(&["a", "b", "c"]).await.unwrap_err();
    assert!(matches!(refused, orangery_core::error::Fault::Later(_)), "{refused:?}");
    assert_eq!((read(&["a"]).await, read(&["c"]).await), (Ok(1), Ok(1)), "what was given up holds nothing");
}
