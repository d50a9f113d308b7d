//! What stays though it has left the proposals: what another item takes over, and what is ignored now.

use orangery_apply::{OWNER_ANNOTATION, Outcome};
use orangery_core::name::ObjectName;
use serde_json::json;

use crate::world::{World, proposal, stage, write};

async fn run(world: &mut World, job: &str, names: &[&str]) {
    let writes: Vec<_> = names.iter().map(|name| write(name, "1")).collect();
    assert_eq!(world.run(job, &proposal(json!({"stages": [stage(&writes)]}))).await, Outcome::Finished);
}

/// The objects that there are, with the item whose mark they have, and those of the inventory.
async fn left(world: &World) -> (Vec<String>, Vec<String>) {
    let owner = |object: &serde_json::Value| {
        let mark = object["metadata"]["annotations"][OWNER_ANNOTATION].as_str().unwrap_or_default().to_owned();
        mark.split('/').nth(1).unwrap_or_default().to_owned()
    };
    let there = world.objects().await.iter().map(|(name, object)| format!("{name} of {}", owner(object))).collect();
    (there, world.status.state.inventory.0.keys().map(|located| located.key.name.to_string()).collect())
}

fn expected(there: &[&str], inventory: &[&str]) -> (Vec<String>, Vec<String>) {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    (texts(there), texts(inventory))
}

#[tokio::test]
async fn c_162_what_is_ignored_by_now_is_neither_pruned_nor_deleted_with_the_item() {
    let mut world = World::new().await;
    run(&mut world, "1", &["a", "b", "c", "d"]).await;
    world.items.ignored.lock().unwrap().insert(world.located("a"));
    run(&mut world, "2", &["b", "c"]).await;
    assert_eq!(left(&world).await, expected(&["a of item", "b of item", "c of item"], &["b", "c"]));
    // No job has come to prune since this one is ignored.
    world.items.ignored.lock().unwrap().insert(world.located("b"));
    world.delete().await;
    assert_eq!(left(&world).await.0, expected(&["a of item", "b of item"], &[]).0);
}

#[tokio::test]
async fn c_163_what_another_item_names_is_in_the_inventory_until_it_has_the_mark_of_that_one() {
    let mut world = World::new().await;
    run(&mut world, "1", &["a", "b", "c"]).await;
    world.items.named.lock().unwrap().insert(world.located("a"), ObjectName::from_static("other"));
    run(&mut world, "2", &["b"]).await;
    assert_eq!(left(&world).await, expected(&["a of item", "b of item"], &["a", "b"]));
    let stays = "ConfigMap default/a of the target cluster stays: DeployItem other names it as well, and takes it over";
    assert_eq!(world.status.state.notes, [stays]);
    // Nobody names it any more: it goes. Named again, and written by the other one, it stays and is that one's.
    world.items.named.lock().unwrap().clear();
    run(&mut world, "3", &["b"]).await;
    assert_eq!(left(&world).await, expected(&["b of item"], &["b"]));
    world.items.named.lock().unwrap().insert(world.located("b"), ObjectName::from_static("other"));
    world.switch("other");
    run(&mut world, "1", &["b"]).await;
    world.switch("item");
    run(&mut world, "4", &["c"]).await;
    assert_eq!(left(&world).await, expected(&["b of other", "c of item"], &["c"]));
}
