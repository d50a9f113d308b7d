//! The process is killed at every single write, before the server has it and after: the end is always the same.

use orangery_apply::Outcome;
use orangery_proposal::Proposal;
use serde_json::{Value, json};

use crate::world::{Break, World, config_map, key, proposal, stage, write};

fn first() -> Proposal {
    proposal(json!({"stages": [stage(&[write("a", "1"), write("old", "1")])]}))
}

/// Two stages, a removal, an object that is created only, exports, pruning, something afterwards, something ephemeral.
fn second() -> Proposal {
    let created = json!({"object": config_map("created", "2"), "how": "create"});
    let hook = json!({"name": "hook", "gate": "accepted", "removals": [{"key": key("hook")}],
        "writes": [{"object": config_map("hook", "2"), "how": "replace", "owned": "ephemeral"}]});
    let patched = json!({"object": config_map("b", "patched"), "how": "overlay"});
    proposal(json!({
        "stages": [stage(&[write("a", "2"), write("b", "2"), created]), hook],
        "next": {"finish": {
            "exports": [{"key": "k", "source": {"path": {"key": key("a"), "path": ".data.k"}}}],
            "afterwards": [stage(&[patched])],
        }},
    }))
}

/// A job of two calls: what the first has planned is not pruned by the second.
fn third() -> [Proposal; 2] {
    let again = serde_json::from_value(json!({"continueWith": [1]})).unwrap();
    let one = proposal(json!({"stages": [stage(&[write("c", "3")])]}));
    [Proposal { next: again, ..one }, proposal(json!({"stages": [stage(&[write("d", "3")])]}))]
}

async fn through(world: &mut World) -> Value {
    assert_eq!(world.run("1", &first()).await, Outcome::Finished);
    assert_eq!(world.run("2", &second()).await, Outcome::Finished);
    let [one, two] = third();
    let mut plan = &one;
    // As the controller does it: the status says whether the first call has been answered already.
    loop {
        match world.run("3", plan).await {
            Outcome::Call => plan = &two,
            Outcome::Finished if plan == &two => break,
            other => panic!("{other:?}"),
        }
    }
    let inventory = world.inventory();
    let mut state =
        json!({"inventory": inventory, "objects": world.config_maps().await, "exports": world.status.exports});
    world.delete().await;
    state["left"] = json!(world.config_maps().await);
    state
}

#[tokio::test]
async fn a_crash_at_any_write_changes_nothing_in_the_end() {
    let expected = json!({
        "inventory": ["c", "d"],
        "objects": {"c": {"k": "3"}, "d": {"k": "3"}},
        "exports": {"k": "2"},
        "left": {},
    });
    assert_eq!(through(&mut World::new().await).await, expected);
    for how in [Break::Request, Break::Answer] {
        let mut write = 0;
        loop {
            let mut world = World::new().await;
            world.traffic.break_at(write, how);
            assert_eq!(through(&mut world).await, expected, "killed at write {write} ({how:?})");
            if !world.traffic.has_broken() {
                break;
            }
            write += 1;
        }
        assert!(write > 20, "only {write} writes were broken");
    }
}

/// A component that only creates, as for the Secret of a Helm revision, learns whether it was this job that did.
#[tokio::test]
async fn what_was_created_right_before_a_crash_is_known_as_the_items_own() {
    let mut world = World::new().await;
    let create = json!({"object": config_map("a", "1"), "how": "create", "owned": "kept"});
    // The inventory is recorded, the object is made, and the answer is lost.
    world.traffic.break_at(1, Break::Answer);
    let outcome = world.run("j", &proposal(json!({"stages": [stage(&[create])]}))).await;
    assert_eq!((outcome, world.traffic.has_broken()), (Outcome::Finished, true));
    let made = world.get("/api/v1/namespaces/default/configmaps/a").await.unwrap();
    let known: Vec<Option<&str>> = world.status.state.inventory.0.values().map(|entry| entry.uid.as_deref()).collect();
    assert_eq!(known, [made["metadata"]["uid"].as_str()]);
}
