//! What a proposal would do, without doing it; and that a run does the same.

use orangery_apply::Outcome;
use orangery_core::step::Halt;
use orangery_proposal::{Action, Next, Proposal, overlay::difference};
use serde_json::json;

use crate::world::{World, config_map, key, proposal, stage, write};

/// Each object's name, what would become of it, and the fields that change.
async fn effects(world: &World, plan: &Proposal) -> Vec<(String, Action, Vec<String>)> {
    let found = world.dry_run(plan).await.unwrap().effects;
    let message = found.into_iter().map(|effect| {
        let differences = effect.before.iter().zip(&effect.after).flat_map(|(before, after)| difference(before, after));
        (effect.located.key.name.to_string(), effect.action, differences.map(|one| one.path).collect())
    });
    message.collect()
}

fn one(name: &str, action: Action, changes: &[&str]) -> (String, Action, Vec<String>) {
    (name.to_owned(), action, changes.iter().map(|change| (*change).to_owned()).collect())
}

#[tokio::test]
async fn a_dry_run_says_what_is_created_changed_and_deleted_and_writes_nothing() {
    let mut world = World::new().await;
    let first = json!({"stages": [{"name": "s", "gate": "accepted", "writes": [
        write("changes", "1"), write("stays", "1"), write("leaves", "1"), write("again", "1"), write("twice", "1"),
        {"object": config_map("kept", "1"), "how": "replace", "owned": "kept"},
        {"object": config_map("applied", "1"), "how": "apply"},
        {"object": config_map("merged", "1"), "how": {"merge": {}}},
    ]}]});
    world.run("j", &proposal(first)).await;
    world.send("POST", "/api/v1/namespaces/default/configmaps", &config_map("foreign", "theirs")).await;
    let before = world.config_maps().await;

    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.org"}, "spec": {"group": "example.org", "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"}, "versions": [{"name": "v1", "served": true, "storage": true}]}});
    let thing =
        json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "thing", "namespace": "default"}});
    let unknown =
        json!({"apiVersion": "example.com/v1", "kind": "Other", "metadata": {"name": "other", "namespace": "default"}});
    let second = proposal(json!({"stages": [
        {"name": "one", "gate": "accepted", "removals": [{"key": key("again")}, {"key": key("never")}], "writes": [
            {"object": definition, "how": "replace"},
            write("again", "2"), write("changes", "2"), write("stays", "1"), write("new", "1"),
            {"object": config_map("foreign", "ours"), "how": "create"},
            {"object": config_map("applied", "2"), "how": "apply"},
            {"object": config_map("merged", "2"), "how": {"merge": config_map("merged", "1")}},
        ]},
        {"name": "two", "gate": "accepted", "writes": [write("twice", "2"), {"object": thing, "how": "replace"}, {"object": unknown, "how": "apply"}]},
        {"name": "three", "gate": "accepted", "writes": [write("twice", "1")]},
    ]}));
    let expected = [
        one("again", Action::Replace, &["data.k"]),
        one("never", Action::None, &[]),
        one("things.example.org", Action::Create, &[]),
        one("changes", Action::Change, &["data.k"]),
        one("stays", Action::None, &[]),
        one("new", Action::Create, &[]),
        one("foreign", Action::Foreign, &[]),
        one("applied", Action::Change, &["data.k"]),
        one("merged", Action::Change, &["data.k"]),
        one("twice", Action::None, &[]),
        one("thing", Action::Create, &[]),
        one("other", Action::Create, &[]),
        one("leaves", Action::Delete, &[]),
    ];
    assert_eq!(effects(&world, &second).await, expected);
    assert_eq!(world.config_maps().await, before, "an apply is only tried");

    // What goes on after the next call may still be planned: nothing is told as leaving.
    let unfinished = Proposal { next: Next::ContinueWith(Vec::new()), ..second };
    assert!(effects(&world, &unfinished).await.iter().all(|(name, _, _)| name != "leaves"));
}

/// Runs a proposal dry, then really, and holds each effect against what has become of the object.
async fn check(world: &mut World, job: &str, plan: &Proposal) -> Vec<(String, Action)> {
    let before = world.objects().await;
    let run = world.dry_run(plan).await.unwrap();
    let asked = world.traffic.take();
    let is_try = |line: &String| ["GET", "PUT", "PATCH"].iter().any(|method| line.starts_with(method));
    assert!(asked.iter().all(is_try), "{asked:?}");
    assert_eq!(world.objects().await, before, "a dry run writes nothing");
    assert_eq!(world.run(job, plan).await, run.outcome);
    let after = world.objects().await;
    for effect in &run.effects {
        let name = effect.located.key.name.as_str();
        assert_eq!(effect.before.as_ref(), before.get(name), "{name} before");
        match (&effect.after, after.get(name)) {
            (Some(foreseen), Some(is)) => assert_eq!(difference(foreseen, is), [], "{name} after"),
            (foreseen, is) => assert_eq!(foreseen.is_some(), is.is_some() || effect.ephemeral, "{name} after"),
        }
    }
    let named = |name: &&String| run.effects.iter().any(|effect| effect.located.key.name == name.as_str());
    for name in before.keys().chain(after.keys()).filter(|name| before.get(*name) != after.get(*name)) {
        assert!(named(&name), "{name} has changed, and the dry run did not say so");
    }
    run.effects.into_iter().map(|effect| (effect.located.key.name.to_string(), effect.action)).collect()
}

fn actions<const N: usize>(expected: [(&str, Action); N]) -> Vec<(String, Action)> {
    expected.map(|(name, action)| (name.to_owned(), action)).to_vec()
}

#[tokio::test]
async fn a_run_has_the_effects_of_its_dry_run_for_every_way_to_write() {
    let ways = |value: &str, earlier: &str| {
        let how = |name: &str, how: serde_json::Value| json!({"object": config_map(name, value), "how": how});
        vec![
            how("replace", json!("replace")),
            how("patch", json!("patch")),
            how("fill", json!("fill")),
            how("overlay", json!("overlay")),
            how("merge", json!({"merge": config_map("merge", earlier)})),
            how("apply", json!("apply")),
            how("apply-as", json!({"applyAs": "other"})),
            how("create", json!("create")),
        ]
    };
    let mut world = World::new().await;
    let first = proposal(json!({"stages": [stage(&ways("1", "1"))]}));
    let names = ["replace", "patch", "fill", "overlay", "merge", "apply", "apply-as", "create"];
    assert_eq!(check(&mut world, "j", &first).await, actions(names.map(|name| (name, Action::Create))));
    for name in names {
        let path = format!("/api/v1/namespaces/default/configmaps/{name}");
        world.send("PATCH", &path, &json!({"data": {"theirs": "x"}})).await;
    }
    let second = proposal(json!({"stages": [stage(&ways("2", "1"))]}));
    let unchanged = ["fill", "create"];
    let expected = names.map(|name| (name, if unchanged.contains(&name) { Action::None } else { Action::Change }));
    assert_eq!(check(&mut world, "k", &second).await, actions(expected));
}

#[tokio::test]
async fn a_run_has_the_effects_of_its_dry_run_where_it_prunes_removes_and_goes_on_afterwards() {
    let mut world = World::new().await;
    let kept = json!({"object": config_map("kept", "1"), "how": "replace", "owned": "kept"});
    let names = ["again", "later", "leaves", "stays"];
    let mut writes: Vec<_> = names.iter().map(|name| write(name, "1")).collect();
    writes.push(kept);
    world.run("j", &proposal(json!({"stages": [stage(&writes)]}))).await;
    let hook = json!({"object": config_map("hook", "1"), "how": "replace", "owned": "ephemeral"});
    let one = json!({"name": "one", "gate": "accepted", "removals": [{"key": key("again")}, {"key": key("never")}],
        "writes": [hook, write("again", "2")]});
    let in_group = json!({"managed": {"apiVersion": "v1", "kind": "ConfigMap", "names": ["leaves"]}});
    let plan = proposal(json!({"stages": [one], "pruningOrder": [{"what": [in_group]}],
        "next": {"finish": {"afterwards": [stage(&[write("later", "2")])]}}}));
    // What is in no group of the pruning order stays, and what is written afterwards is not pruned before.
    let expected = actions([
        ("again", Action::Replace),
        ("never", Action::None),
        ("hook", Action::Create),
        ("leaves", Action::Delete),
        ("later", Action::Change),
    ]);
    assert_eq!(check(&mut world, "k", &plan).await, expected);
    assert_eq!(world.config_maps().await.into_keys().collect::<Vec<_>>(), ["again", "kept", "later", "stays"]);
}

#[tokio::test]
async fn a_run_has_the_effects_of_its_dry_run_where_objects_belong_to_others() {
    let mut world = World::new().await;
    for name in ["created", "held", "taken"] {
        world.send("POST", "/api/v1/namespaces/default/configmaps", &config_map(name, "theirs")).await;
    }
    let fallback = |name: &str| json!({"object": config_map(name, "1"), "how": "replace", "owned": "fallback"});
    let create = |name: &str| json!({"object": config_map(name, "1"), "how": "create"});
    let writes = [create("created"), create("new"), fallback("held"), fallback("free"), write("taken", "1")];
    let expected = actions([
        ("created", Action::Foreign),
        ("new", Action::Create),
        ("held", Action::Foreign),
        ("free", Action::Create),
        ("taken", Action::Change),
    ]);
    assert_eq!(check(&mut world, "j", &proposal(json!({"stages": [stage(&writes)]}))).await, expected);
    // Somebody takes one over: it is not pruned with the rest.
    let path = "/api/v1/namespaces/default/configmaps/free";
    world.send("PATCH", path, &json!({"metadata": {"labels": {crate::world::LABEL: "other"}}})).await;
    let expected = actions([("free", Action::Foreign), ("new", Action::Delete), ("taken", Action::Delete)]);
    assert_eq!(check(&mut world, "k", &proposal(json!({}))).await, expected);
    assert_eq!(world.config_maps().await.into_keys().collect::<Vec<_>>(), ["created", "free", "held"]);
}

#[tokio::test]
async fn a_dry_run_waits_for_nothing_and_takes_what_is_being_deleted_for_gone() {
    let mut world = World::new().await;
    world.run("j", &proposal(json!({"stages": [stage(&[write("a", "1")])]}))).await;
    let path = "/api/v1/namespaces/default/configmaps/a";
    world.send("PATCH", path, &json!({"metadata": {"finalizers": ["example.org/hold"]}})).await;
    world.send("DELETE", path, &json!({})).await;
    let gate = json!({"ready": [{"name": "mine", "scope": {"keys": [key("a")]},
        "rule": {"requirements": [{"path": ".data.k", "operator": "==", "values": ["never"]}]}}]});
    let source = json!({"path": {"key": key("a"), "path": ".data.never"}});
    let plan = proposal(json!({"stages": [{"name": "s", "writes": [write("a", "2")], "gate": gate}],
        "next": {"finish": {"exports": [{"key": "e", "source": source}]}}}));
    let run = world.dry_run(&plan).await.unwrap();
    assert_eq!(run.outcome, Outcome::Finished);
    let values = |effect: &orangery_apply::Effect| {
        [&effect.before, &effect.after].map(|object| object.as_ref().map(|object| object["data"]["k"].clone()))
    };
    assert_eq!(run.effects.iter().map(values).collect::<Vec<_>>(), [[Some(json!("1")), Some(json!("2"))]]);
    assert_eq!((world.status.exports.is_none(), world.inventory()), (true, vec!["a".to_owned()]));
}

/// As they are and as they would be they take 1.6 MB; no answer is long enough to be counted.
#[tokio::test]
async fn c_201_the_objects_of_a_dry_run_share_the_memory_of_clusters() {
    let mut world = World::new().await;
    let plan = |byte: &str| {
        let writes: Vec<_> = (0..40).map(|number| write(&format!("a{number}"), &byte.repeat(20 << 10))).collect();
        proposal(json!({"stages": [stage(&writes)]}))
    };
    world.run("j", &plan("x")).await;
    world.restart_with(8 << 20);
    assert_eq!(world.dry_run(&plan("y")).await.unwrap().effects.len(), 40);
    world.restart_with(2 << 20);
    let Err(Halt::Stall(failure)) = world.dry_run(&plan("y")).await else { panic!("there was room for all") };
    let limit =
        "looked at together take more than the 1048576 bytes of memory, shared with other namespaces, that are allowed";
    assert!(failure.message.contains(limit), "{failure}");
    assert_eq!(failure.reason, "TooLarge");
}

#[tokio::test]
async fn a_dry_run_says_where_the_proposal_leads_and_a_failure_is_not_recovered_from() {
    let world = World::new().await;
    let problem = json!({"code": "ERR_MINE", "message": "asked for"});
    let fails = Proposal { next: serde_json::from_value(json!({"fail": problem})).unwrap(), ..proposal(json!({})) };
    let Outcome::Failed(failed) = world.dry_run(&fails).await.unwrap().outcome else { panic!() };
    assert_eq!(json!(failed), problem);
    let again =
        Proposal { next: Next::ContinueWith(vec![1]), ..proposal(json!({"stages": [stage(&[write("a", "1")])]})) };
    let run = world.dry_run(&again).await.unwrap();
    assert_eq!((run.outcome, run.effects.len()), (Outcome::Call, 1));
    let homeless = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let broken = proposal(json!({"recover": [1], "stages": [stage(&[json!({"object": homeless, "how": "replace"})])]}));
    let Err(Halt::Stall(failure)) = world.dry_run(&broken).await else { panic!() };
    assert_eq!(failure.message, "ConfigMap a needs metadata.namespace, because its kind is namespaced");
}

#[tokio::test]
async fn orc_22_a_dry_run_shows_nobody_what_the_host_places() {
    let world = World::new().await;
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}, "data": {}});
    let inject = |at: &str| json!([{"at": at, "content": {"kubeconfig": "target"}}]);
    let plan = |at: &str| {
        proposal(json!({"stages": [stage(&[json!({"object": secret, "how": "replace", "inject": inject(at)})])]}))
    };
    let run = world.dry_run(&plan("/data/kubeconfig")).await.unwrap();
    let after = run.effects.first().and_then(|effect| effect.after.clone()).unwrap();
    assert_eq!(after["data"], json!({"kubeconfig": "KHBsYWNlZCBieSB0aGUgaG9zdCk="}), "(placed by the host)");
    let Err(Halt::Stall(failure)) = world.dry_run(&plan("/absent/kubeconfig")).await else { panic!() };
    assert!(failure.message.contains("has no place /absent/kubeconfig"), "{failure}");
}
