//! Definitions in a proposal: what they say of their kinds before a server has taken them, and what they do not (C-167).

use orangery_apply::without_stray_namespaces;
use orangery_core::step::Halt;
use serde_json::{Value, json};

use crate::{
    identity::definition,
    world::{World, proposal, stage, write},
};

/// A definition of the kind X, by which it would be reached under another one's path.
fn alias(plural: &str) -> Value {
    let mut alias = definition([false, true]);
    alias["metadata"]["name"] = json!(format!("{plural}.example.org"));
    alias["spec"]["names"] = json!({"kind": "X", "plural": plural});
    alias
}

fn replaces(object: &Value) -> Value {
    json!({"object": object, "how": "replace"})
}

/// Proposals that would read the object `a` of the kind X, and define that afterwards.
fn readers(alias: &Value) -> [Value; 5] {
    let x = json!({"apiVersion": "example.org/v2", "kind": "X", "namespace": "default", "name": "a"});
    let all = json!({"apiVersion": "example.org/v2", "kind": "X", "namespace": "default"});
    let rule = json!({"requirements": [{"path": ".data.k", "operator": "==", "values": ["ready"]}]});
    let gated = |gate: Value| {
        let first = json!({"name": "first", "writes": [write("c", "1")], "gate": gate});
        json!({"stages": [first, stage(&[replaces(alias)])]})
    };
    let ready = |scope: Value| gated(json!({"ready": [{"name": "r", "scope": scope, "rule": rule}]}));
    let export = json!({"key": "k", "source": {"path": {"key": x, "path": ".data.k"}}});
    let finish = json!({"exports": [export], "afterwards": [stage(&[replaces(alias)])]});
    let object =
        json!({"apiVersion": "example.org/v2", "kind": "X", "metadata": {"name": "a", "namespace": "default"}});
    let created = json!({"object": object, "how": "create"});
    let unwritten = json!({"name": "last", "writes": [replaces(alias)], "gate": "accepted"});
    [
        ready(json!({"keys": [x]})),
        ready(json!({"matching": all})),
        gated(json!({"completed": [x]})),
        json!({"stages": [stage(&[write("c", "1")])], "next": {"finish": finish}}),
        json!({"stages": [stage(&[write("c", "1")]), stage(&[created]), unwritten]}),
    ]
}

#[tokio::test]
async fn c_167_a_definition_that_is_not_written_leads_to_no_path() {
    for plural in ["things", "../configmaps"] {
        for reader in readers(&alias(plural)) {
            let mut world = World::new().await;
            world
                .send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition([true, true]))
                .await;
            let thing = json!({"apiVersion": "example.org/v2", "kind": "Thing",
                "metadata": {"name": "a", "namespace": "default"}, "data": {"k": "ready"}});
            world.send("POST", "/apis/example.org/v2/namespaces/default/things", &thing).await;
            let Err(Halt::Retry(failure)) = world.reconcile("j", &proposal(reader.clone())).await else {
                panic!("{reader:#} goes on")
            };
            assert_eq!(failure.reason, "KindNotServed", "{failure}");
            let sentence =
                "does not serve example.org/v2 X; install its CustomResourceDefinition, or mend apiVersion and kind";
            assert!(failure.message.ends_with(sentence), "{failure}");
            let asked: Vec<String> = world.traffic.take();
            let elsewhere: Vec<&String> =
                asked.iter().filter(|line| line.contains("things") || line.starts_with("GET")).collect();
            assert_eq!((elsewhere, &world.status.exports), (Vec::new(), &None), "{reader:#}");
        }
    }
}

#[tokio::test]
async fn c_167_a_kind_that_discovery_knows_has_namespaces_as_that_says() {
    let world = World::new().await;
    world.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition([true, true])).await;
    let mut otherwise = definition([true, true]);
    otherwise["spec"]["scope"] = json!("Cluster");
    let of = |kind: &str| json!({"apiVersion": "example.org/v2", "kind": kind, "metadata": {"name": "a", "namespace": "default"}});
    let known = proposal(json!({"stages": [stage(&[replaces(&otherwise), replaces(&of("Thing"))])]}));
    assert_eq!(without_stray_namespaces(&world.clusters(), known.clone()).await.unwrap(), known);
    let mut scoped = alias("xs");
    scoped["spec"]["scope"] = json!("Cluster");
    let unknown = proposal(json!({"stages": [stage(&[replaces(&scoped), replaces(&of("X"))])]}));
    let mut without = unknown.clone();
    without.stages[0].writes[1].object["metadata"] = json!({"name": "a"});
    assert_eq!(without_stray_namespaces(&world.clusters(), unknown).await.unwrap(), without);
}

#[tokio::test]
async fn c_167_an_object_that_its_definition_cannot_place_fails_before_anything_is_written() {
    let mut world = World::new().await;
    let object = json!({"apiVersion": "example.org/v2", "kind": "X", "metadata": {"name": "a"}});
    let plan = proposal(json!({"stages": [stage(&[replaces(&alias("xs")), replaces(&object)])]}));
    let sentence = "X a needs metadata.namespace, because its kind is namespaced";
    for result in [world.dry_run(&plan).await.map(drop), world.reconcile("j", &plan).await.map(drop)] {
        let Err(Halt::Stall(failure)) = result else { panic!("{result:?}") };
        assert_eq!(failure.message, sentence);
    }
    // The record is that of the end of the job.
    assert_eq!((world.traffic.take(), world.inventory()), (vec!["record".to_owned()], vec![]));
}
