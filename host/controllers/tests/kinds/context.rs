//! The Context `default` of every namespace, and what waits for a Context.

use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use orangery_api::{context::Context, installation::Installation};
use orangery_controllers::context::keep_default_contexts_of;
use serde_json::{Value, json};

use crate::{
    objects::{deploying, installation, object, with},
    world::World,
};

async fn make_namespace(world: &World, name: &str) {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata, ..Namespace::default() };
    Api::all(world.client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
}

/// The uid of the Context `default` of a namespace, once it is there.
async fn made(world: &World, namespace: &str) -> String {
    let api: Api<Context> = Api::namespaced(world.client.clone(), namespace);
    let uid = async || api.get_opt("default").await.unwrap()?.metadata.uid;
    world.wait(&format!("there is no Context default in {namespace}"), uid).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_namespace_has_a_context_default_from_its_begin_but_those_that_are_excluded() {
    let world = World::new().await;
    make_namespace(&world, "garden").await;
    made(&world, "garden").await;
    let all: Api<Context> = Api::all(world.client.clone());
    let all = all.list(&Default::default()).await.unwrap();
    assert!(all.items.iter().all(|context| context.metadata.namespace.as_deref() != Some("kube-system")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_context_default_that_is_there_stays_as_its_user_made_it() {
    let mut world = World::new().await;
    let repository = json!({"repositoryContext": {"type": "ociRegistry", "baseUrl": "example.org"}});
    let mut context = object("Context", "default", &json!({}));
    context.as_object_mut().unwrap().extend(repository.as_object().unwrap().clone());
    world.apply(&context).await;
    let before = world.find("Context", "default").await.unwrap();
    world.restart();
    make_namespace(&world, "later").await;
    made(&world, "later").await;
    assert_eq!(world.find("Context", "default").await.unwrap(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_context_default_that_is_deleted_comes_back_and_what_waits_for_it_goes_on() {
    let world = World::new().await;
    let before = made(&world, "default").await;
    world.delete("Context", "default").await;
    world.apply(&installation("a", &deploying(&[("a", &[])]))).await;
    world.succeed("a").await;
    world.ended("Installation", "a", "Succeeded").await;
    assert_ne!(made(&world, "default").await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_20_an_installation_makes_the_context_default_that_nobody_has_made() {
    let world = World::new().await;
    let mut waits = installation("a", &deploying(&[("a", &[])]));
    waits["metadata"]["namespace"] = json!("kube-system");
    let api: Api<Installation> = Api::namespaced(world.client.clone(), "kube-system");
    api.create(&PostParams::default(), &serde_json::from_value(waits).unwrap()).await.unwrap();
    made(&world, "kube-system").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_of_some_namespaces_keeps_a_context_default_in_these() {
    let world = World::new().await;
    let namespace = "kube-system";
    let host = world.host.clone().unwrap();
    let keeps = tokio::spawn(keep_default_contexts_of(host, vec![namespace.into()]));
    let before = made(&world, namespace).await;
    let contexts: Api<Context> = Api::namespaced(world.client.clone(), namespace);
    contexts.delete("default", &DeleteParams::default()).await.unwrap();
    let anew = async || contexts.get_opt("default").await.unwrap()?.metadata.uid.filter(|uid| *uid != before);
    world.wait("the Context default does not come back", anew).await;
    keeps.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_context_default_does_not_come_back_in_a_namespace_that_goes() {
    let world = World::new().await;
    make_namespace(&world, "leaving").await;
    made(&world, "leaving").await;
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    let hold = json!({"metadata": {"finalizers": ["example.org/hold"]}});
    namespaces.patch("leaving", &PatchParams::default(), &Patch::Merge(hold)).await.unwrap();
    namespaces.delete("leaving", &DeleteParams::default()).await.unwrap();
    let contexts: Api<Context> = Api::namespaced(world.client.clone(), "leaving");
    let gone = async || contexts.get_opt("default").await.unwrap().is_none().then_some(());
    world.wait("the Context default is still there", gone).await;
    // A namespace that begins afterwards shows that the controller has seen that.
    make_namespace(&world, "next").await;
    made(&world, "next").await;
    assert_eq!(contexts.get_opt("default").await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orc_31_a_context_matters_when_its_job_begins_and_not_afterwards() {
    let world = World::new().await;
    world.apply(&object("Context", "own", &json!({}))).await;
    world.apply(&with(installation("a", &deploying(&[("a", &[])])), &json!({"context": "own"}))).await;
    world.triggered("a").await;
    world.delete("Context", "own").await;
    world.gone("Context", "own").await;
    world.succeed("a").await;
    let done = world.ended("Installation", "a", "Succeeded").await;
    let execution = world.find("Execution", "a").await.unwrap();
    let item = world.find_item("a").await.unwrap();
    let handed_down: [&Value; 2] = [&execution["spec"]["context"], &item["spec"]["context"]];
    assert_eq!(handed_down, [&json!("own"); 2]);
    world.request("a").await;
    let failed = world.ended_after("Installation", "a", "Failed", &done).await;
    let expected = "ReadContext/ContextNotFound: Context default/own does not exist; create it or correct spec.context, then \
                    reconcile again [ERR_CONFIGURATION_PROBLEM]";
    assert_eq!(world.whole(&failed).await["lastError"], expected);
}
