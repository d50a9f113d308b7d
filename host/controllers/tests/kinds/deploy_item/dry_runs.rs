//! A dry run and a run: the same proposal, the same effects.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use orangery_api::deploy_item::DeployItem;
use orangery_controllers::deploy_item::{ItemDryRun, dry_run, proposals::ItemProposals};
use orangery_core::{
    name::JobId,
    step::{Halt, Step},
};
use orangery_proposal::{Action, overlay::difference};
use serde_json::{Value, json};

use super::items::{Items, gated_on, proposal};

async fn try_out(world: &Items, name: &str) -> Step<ItemDryRun> {
    let item = world.items().get(name).await.unwrap();
    dry_run(world.host.as_ref().unwrap(), item).await
}

/// The config maps of the tests by name, as objects.
async fn config_maps(world: &Items) -> BTreeMap<String, Value> {
    let list = world.config_maps().list(&Default::default()).await.unwrap();
    let named = list.items.into_iter().map(|map| (map.metadata.name.clone().unwrap(), typed(json!(map))));
    named.filter(|(name, _)| name != "kube-root-ca.crt").collect()
}

fn typed(mut object: Value) -> Value {
    object["apiVersion"] = json!("v1");
    object["kind"] = json!("ConfigMap");
    object
}

/// Runs an item dry, then its job, and holds each effect against what has become of the object.
async fn check(world: &Items, name: &str, job: &str) -> Vec<(String, Action)> {
    let before = config_maps(world).await;
    let calls = world.calls();
    let run = try_out(world, name).await.unwrap();
    assert_eq!(config_maps(world).await, before, "a dry run writes nothing");
    let asked = world.plugin.calls.lock().unwrap().get(calls).cloned().unwrap();
    world.job(name, job).await;
    let again = world.plugin.calls.lock().unwrap().get(calls + 1).cloned().unwrap();
    assert_eq!((asked.config, asked.status, asked.checkpoint), (again.config, again.status, again.checkpoint));
    let after = config_maps(world).await;
    for effect in &run.effects {
        let name = effect.located.key.name.as_str();
        let (was, is) = (before.get(name), after.get(name));
        assert_eq!((effect.before.is_some(), effect.after.is_some()), (was.is_some(), is.is_some()), "{effect:?}");
        if let (Some(foreseen), Some(is)) = (&effect.after, is) {
            assert_eq!(difference(foreseen, is), [], "{name}");
        }
    }
    let touched: Vec<&str> = run.effects.iter().map(|effect| effect.located.key.name.as_str()).collect();
    let changed =
        |name: &&String| before.get(*name).map(|map| &map["data"]) != after.get(*name).map(|map| &map["data"]);
    for name in before.keys().chain(after.keys()).filter(changed) {
        assert!(touched.contains(&name.as_str()), "{name} has changed and the dry run did not say so");
    }
    run.effects.into_iter().map(|effect| (effect.located.key.name.into(), effect.action)).collect()
}

fn write(name: &str, value: &str, how: Value) -> Value {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"},
        "data": {"k": value}});
    json!({"object": object, "how": how})
}

fn plan(writes: &[Value], next: Value) -> Value {
    json!({"stages": [{"name": "all", "gate": "accepted", "writes": writes}], "next": next})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_has_the_effects_of_the_run_that_follows_it() {
    let world = Items::new().await;
    let ways = ["replace", "patch", "fill", "overlay", "apply", "create"];
    let writes = |value: &str| ways.map(|how| write(how, value, json!(how))).to_vec();
    let mut first = writes("1");
    first.push(write("leaves", "1", json!("replace")));
    world.create("item", &[plan(&first, json!({"finish": {}}))], json!({})).await;
    let created: Vec<(String, Action)> =
        [&ways[..], &["leaves"]].concat().iter().map(|name| ((*name).to_owned(), Action::Create)).collect();
    assert_eq!(check(&world, "item", "one").await, created);

    let later = json!({"name": "later", "gate": "accepted", "writes": [write("later", "1", json!("replace"))]});
    let second = plan(&writes("2"), json!({"finish": {"afterwards": [later]}}));
    world.patch("item", json!({"spec": {"config": {"proposals": [second]}}})).await;
    let expected = [
        ("replace", Action::Change),
        ("patch", Action::Change),
        ("fill", Action::None),
        ("overlay", Action::Change),
        ("apply", Action::Change),
        ("create", Action::None),
        ("leaves", Action::Delete),
        ("later", Action::Create),
    ];
    let expected: Vec<(String, Action)> = expected.map(|(name, action)| (name.to_owned(), action)).to_vec();
    assert_eq!(check(&world, "item", "two").await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_waits_for_no_gate_and_stores_nothing() {
    let world = Items::new().await;
    world.create("item", &[gated_on("a", "never")], json!({})).await;
    let run = try_out(&world, "item").await.unwrap();
    assert_eq!((run.effects.len(), run.unfinished, run.failure), (1, false, None));
    let item = world.items().get("item").await.unwrap();
    assert!(item.status.is_none_or(|status| status.provider_status.is_none()) && world.secrets().await.is_empty());
}

/// The objects that an item would have, with their values, as its component proposes them.
async fn proposed(proposals: &ItemProposals, item: DeployItem) -> Vec<String> {
    let proposal = proposals.of(item).await.unwrap();
    assert_eq!((proposal.plugin.as_str(), proposal.unfinished), ("scripted 1.0", false));
    let objects = proposal.objects.iter();
    objects.map(|of| format!("{} {} {}", of.on, of.key, of.object["data"]["k"].as_str().unwrap_or_default())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_243_a_component_is_asked_for_an_item_as_it_might_be_and_nothing_is_written() {
    let world = Items::new().await;
    let of = |value: &str| {
        plan(&[write("a", value, json!("apply")), write("b", "x", json!("create"))], json!({"finish": {}}))
    };
    world.create("item", &[of("1")], json!({})).await;
    let item = world.items().get("item").await.unwrap();
    let job = (JobId::from_static("explain"), Timestamp::UNIX_EPOCH);
    let proposals = ItemProposals::new(world.host.as_ref().unwrap(), job);
    let expected = |value: &str| {
        vec![
            format!("the target cluster ConfigMap default/a {value}"),
            "the target cluster ConfigMap default/b x".to_owned(),
        ]
    };
    assert_eq!(proposed(&proposals, item.clone()).await, expected("1"));
    let mut other = item.clone();
    other.spec.config = Some(json!({"proposals": [of("2")]}));
    assert_eq!(proposed(&proposals, other.clone()).await, expected("2"));
    // Time and randomness are the same in each call.
    let drawn = |call: usize| {
        let calls = world.plugin.calls.lock().unwrap();
        calls.get(call).map(|item| (item.secret.clone().unwrap(), item.now.clone(), item.job.clone())).unwrap()
    };
    assert_eq!((drawn(0), drawn(0).1), (drawn(1), "1970-01-01T00:00:00Z".to_owned()));
    // What is fetched can be changed on its way, and nothing is here.
    let unchanged = proposals.of_changed(item.clone(), Arc::new(|_| None)).await.unwrap();
    assert_eq!(unchanged.objects.len(), 2);
    let key = unchanged.objects[0].key.clone();
    assert_eq!(proposals.live(item.clone(), &unchanged.objects[0].on, &key).await.unwrap(), None);
    assert!(
        config_maps(&world).await.is_empty() && world.items().get("item").await.unwrap() == item,
        "nothing is written"
    );
    world.job("item", "one").await;
    let live = proposals.live(item, &unchanged.objects[0].on, &key).await.unwrap().unwrap();
    assert_eq!(
        (&live["data"]["k"], live["metadata"]["managedFields"][0]["manager"].as_str()),
        (&json!("1"), Some("orangery"))
    );
    // What no component claims, and what cannot be, is told as a job tells it.
    other.spec.type_ = "example.org/nobody".to_owned();
    assert!(matches!(proposals.of(other.clone()).await.unwrap_err(), Halt::Stall(_)));
    other.spec.type_ = world.items().get("item").await.unwrap().spec.type_;
    other.spec.config = Some(
        json!({"proposals": [{"stages": [{"name": "s", "gate": "accepted", "writes": [{"object": {}, "how": "apply"}]}], "next": {"finish": {}}}]}),
    );
    assert!(matches!(proposals.of(other).await.unwrap_err(), Halt::Stall(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_says_that_the_component_is_called_again_or_fails_the_item() {
    let world = Items::new().await;
    world.create("again", &[proposal("a", json!({"next": {"continueWith": [1]}}))], json!({})).await;
    let run = try_out(&world, "again").await.unwrap();
    assert_eq!((run.plugin.as_str(), run.unfinished, run.failure.is_none()), ("scripted 1.0", true, true));
    let fails = proposal("a", json!({"next": {"fail": {"code": "ERR_MINE", "message": "asked for"}}}));
    world.create("fails", &[fails], json!({})).await;
    let run = try_out(&world, "fails").await.unwrap();
    assert_eq!((run.unfinished, run.failure.map(|problem| problem.message)), (false, Some("asked for".to_owned())));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_fails_as_the_job_would() {
    let world = Items::new().await;
    let refused = async |name: &str| match try_out(&world, name).await {
        Err(Halt::Stall(failure)) => failure.message,
        other => panic!("{other:?}"),
    };
    let absent = json!({"target": {"name": "absent"}});
    world.create("absent", &[proposal("a", json!({}))], absent).await;
    world.create("invalid", &[], json!({})).await;
    for name in ["absent", "invalid"] {
        let text = refused(name).await;
        let status = world.job(name, "one").await;
        assert_eq!(status["lastError"]["message"], json!(text));
    }
    world.create("unclaimed", &[], json!({"type": "example.org/nobody"})).await;
    let text = refused("unclaimed").await;
    assert!(text.starts_with("no component of this host claims the type \"example.org/nobody\""), "{text}");
}
