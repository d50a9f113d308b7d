//! What a proposal would do, told without doing it.

use orangery_proposal::{Action, Next, Proposal, overlay::difference};
use serde_json::json;

use crate::world::{World, config_map, key, proposal, write};

/// Each object's name, what would become of it, and the fields that change.
async fn foretold(world: &World, plan: &Proposal) -> Vec<(String, Action, Vec<String>)> {
    let effects = world.preview(plan).await;
    let told = effects.into_iter().map(|effect| {
        let differences = effect.before.iter().zip(&effect.after).flat_map(|(before, after)| difference(before, after));
        (effect.located.key.name, effect.action, differences.map(|one| one.path).collect())
    });
    told.collect()
}

fn one(name: &str, action: Action, changes: &[&str]) -> (String, Action, Vec<String>) {
    (name.to_owned(), action, changes.iter().map(|change| (*change).to_owned()).collect())
}

#[tokio::test]
async fn a_preview_says_what_is_created_changed_and_deleted_and_writes_nothing() {
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
    assert_eq!(foretold(&world, &second).await, expected);
    assert_eq!(world.config_maps().await, before, "an apply is only tried");

    // What goes on after the next call may still be planned: nothing is told as leaving.
    let unfinished = Proposal { next: Next::ContinueWith(Vec::new()), ..second };
    assert!(foretold(&world, &unfinished).await.iter().all(|(name, _, _)| name != "leaves"));
}
