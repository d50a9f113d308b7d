//! Whose an object is: only what the item itself has written is deleted with it.

use orangery_apply::{OWNER_ANNOTATION, OWNER_CLUSTER_ANNOTATION, Outcome, Owner};
use orangery_core::step::Halt;
use orangery_proposal::inventory::Inventory;
use serde_json::{Value, json};

use crate::world::{LABEL, World, config_map, everything, proposal, stage, write};

fn path(name: &str) -> String {
    format!("/api/v1/namespaces/default/configmaps/{name}")
}

async fn names(world: &World) -> Vec<String> {
    world.config_maps().await.into_keys().collect()
}

async fn job(world: &mut World, item: &str, job: &str, objects: &[&str]) {
    world.switch(item);
    let writes: Vec<Value> = objects.iter().map(|name| write(name, item)).collect();
    assert_eq!(world.run(job, &proposal(json!({"stages": [stage(&writes)]}))).await, Outcome::Finished);
}

/// What is told about objects that stay.
fn notes(world: &World) -> Vec<&str> {
    world.status.state.notes.iter().map(String::as_str).collect()
}

#[tokio::test]
async fn c_36_an_object_that_another_item_took_over_is_not_pruned_by_the_first() {
    let mut world = World::new().await;
    job(&mut world, "b", "1", &["y"]).await;
    job(&mut world, "a", "1", &["x"]).await;
    // b comes first: a depends on it.
    job(&mut world, "b", "2", &["x", "y"]).await;
    job(&mut world, "a", "2", &["z"]).await;
    assert_eq!(names(&world).await, ["x", "y", "z"]);
    assert_eq!(world.inventory(), ["z"]);
    let note = "ConfigMap default/x of the target cluster stays: it belongs to DeployItem default/b";
    assert_eq!(notes(&world), [note]);
    world.switch("b");
    world.delete().await;
    assert_eq!(names(&world).await, ["z"], "b has it now, and takes it along");
}

#[tokio::test]
async fn c_36_an_object_that_another_item_took_over_is_not_deleted_with_the_first() {
    let mut world = World::new().await;
    job(&mut world, "a", "1", &["x"]).await;
    job(&mut world, "b", "1", &["x"]).await;
    world.switch("a");
    world.delete().await;
    assert_eq!((names(&world).await, world.inventory().len(), notes(&world).len()), (vec!["x".to_owned()], 0, 1));
}

/// The same name, and the same label: an item that was deleted and made again, or one of another namespace.
#[tokio::test]
async fn c_36_an_item_of_the_same_name_is_another_item() {
    let mut world = World::new().await;
    job(&mut world, "a", "1", &["x"]).await;
    world.owner.uid = "another".to_owned();
    world.delete().await;
    assert_eq!(names(&world).await, ["x"]);
}

#[tokio::test]
async fn c_36_an_object_that_somebody_else_has_made_anew_stays() {
    let mut world = World::new().await;
    world.run("j", &proposal(json!({"stages": [stage(&[write("a", "1")])]}))).await;
    world.send("DELETE", &path("a"), &json!({})).await;
    world.send("POST", "/api/v1/namespaces/default/configmaps", &config_map("a", "theirs")).await;
    world.delete().await;
    assert_eq!(world.config_maps().await["a"], json!({"k": "theirs"}));
    let note = "ConfigMap default/a of the target cluster stays: nothing says that this item has written it (annotation \
                orangery.dev/owner); delete it by hand where it is not needed";
    assert_eq!(notes(&world), [note]);
}

/// An inventory of Landscaper, and objects with its label: one that is meant, one that was made anew, one without a label.
#[tokio::test]
async fn c_36_of_an_inventory_of_landscaper_only_objects_with_the_label_of_the_item_are_its_own() {
    let mut world = World::new().await;
    let mut inventory = Vec::new();
    for (name, label, knows_uid) in
        [("own", json!({LABEL: "item"}), true), ("anew", json!({LABEL: "item"}), false), ("bare", json!({}), true)]
    {
        let mut object = config_map(name, "1");
        object["metadata"]["labels"] = label;
        let made = world.send("POST", "/api/v1/namespaces/default/configmaps", &object).await;
        let uid = if knows_uid { made["metadata"]["uid"].clone() } else { json!("earlier") };
        inventory.push(json!({"policy": "manage", "resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": name,
            "namespace": "default", "uid": uid}}));
    }
    world.status.state.inventory = Inventory::read(Some(&Value::Array(inventory))).unwrap();
    world.delete().await;
    assert_eq!(names(&world).await, ["anew", "bare"]);
}

#[tokio::test]
async fn c_36_what_was_taken_over_since_it_was_read_is_read_again() {
    let mut world = World::new().await;
    // The watch that waits for it goes on knowing the object.
    job(&mut world, "a", "1", &["x"]).await;
    world.send("PATCH", &path("x"), &json!({"metadata": {"finalizers": ["example.org/hold"]}})).await;
    let removed =
        proposal(json!({"stages": [{"name": "s", "gate": "gone", "removals": [{"key": crate::world::key("x")}]}]}));
    assert!(world.reconcile("2", &removed).await.is_err(), "it waits");
    world.send("PATCH", &path("x"), &json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(world.run("2", &removed).await, Outcome::Finished);
    job(&mut world, "b", "1", &["x"]).await;
    world.switch("a");
    world.status.state.inventory = Inventory::read(Some(&json!([{"policy": "manage",
        "resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "namespace": "default"}}])))
    .unwrap();
    world.delete().await;
    assert_eq!(names(&world).await, ["x"]);
}

#[tokio::test]
async fn c_36_a_stage_removes_nothing_of_another_item() {
    let mut world = World::new().await;
    job(&mut world, "b", "1", &["x"]).await;
    world.switch("a");
    world.send("POST", "/api/v1/namespaces/default/configmaps", &config_map("nobodys", "1")).await;
    let removals = json!([{"key": crate::world::key("x")}, {"key": crate::world::key("nobodys")}]);
    let plan = proposal(json!({"stages": [{"name": "s", "gate": "gone", "removals": removals}]}));
    assert_eq!(world.run("1", &plan).await, Outcome::Finished);
    assert_eq!(names(&world).await, ["x"]);
}

#[tokio::test]
async fn c_192_a_stage_removes_only_what_has_the_mark_of_its_item_where_nobody_vouches_for_it() {
    let mut world = World::new().await;
    job(&mut world, "a", "1", &["ours"]).await;
    world.send("POST", "/api/v1/namespaces/default/configmaps", &config_map("nobodys", "1")).await;
    let removals = json!([{"key": crate::world::key("ours")}, {"key": crate::world::key("nobodys")}]);
    let plan = proposal(json!({"stages": [{"name": "s", "gate": "gone", "removals": removals}]}));
    world.removes_its_own_alone = true;
    assert_eq!(world.run("2", &plan).await, Outcome::Finished);
    assert_eq!(names(&world).await, ["nobodys"]);
    let note = "ConfigMap default/nobodys of the target cluster stays: it has not the mark of this item, and nobody vouches for what \
                its release says, by a signature, as the policy of the namespace requires them";
    assert_eq!(notes(&world), [note]);
}

/// What left the plan of an item that was deleted without what it had deployed, or that came again under another uid.
#[tokio::test]
async fn c_114_a_stage_removes_what_an_item_has_left_that_does_not_exist_any_more() {
    let mut world = World::new().await;
    job(&mut world, "gone", "1", &["left"]).await;
    world.items.gone.lock().unwrap().push(world.owner.clone());
    // A server asked for a path answers that it has no such thing, and that is no answer about an item.
    let path_as_item = Owner { namespace: "..".into(), name: "default".into(), uid: "gone".to_owned(), cluster: None };
    world.items.gone.lock().unwrap().push(path_as_item);
    job(&mut world, "b", "1", &["theirs"]).await;
    world.switch("a");
    // Landscaper's own deployer knows no marks, and has taken this one over for an item of which nothing is known.
    job(&mut world, "gone", "2", &["left", "taken"]).await;
    world.send("PATCH", &path("taken"), &json!({"metadata": {"labels": {LABEL: "c"}}})).await;
    let marked = |mark: &str| json!({"metadata": {"annotations": {OWNER_ANNOTATION: mark}}});
    for (name, mark) in [("unreadable", "gone"), ("path", "../default/gone"), ("other", "default/gone/other-uid")] {
        world.send("POST", "/api/v1/namespaces/default/configmaps", &config_map(name, "1")).await;
        world.send("PATCH", &path(name), &marked(mark)).await;
    }
    world.switch("a");
    let all = ["left", "theirs", "taken", "unreadable", "path", "other"];
    let removals = all.map(|name| json!({"key": crate::world::key(name)}));
    let plan = proposal(json!({"stages": [{"name": "s", "gate": "gone", "removals": removals}]}));
    assert_eq!(world.run("1", &plan).await, Outcome::Finished);
    assert_eq!(names(&world).await, ["other", "path", "taken", "theirs", "unreadable"]);
    let mut notes = notes(&world);
    notes.sort_unstable();
    assert_eq!(
        notes,
        [
            "ConfigMap default/other of the target cluster stays: it belongs to DeployItem default/gone",
            "ConfigMap default/path of the target cluster stays: it belongs to DeployItem ../default",
            "ConfigMap default/taken of the target cluster stays: it belongs to DeployItem default/gone",
            "ConfigMap default/theirs of the target cluster stays: it belongs to DeployItem default/b",
            "ConfigMap default/unreadable of the target cluster stays: it belongs to DeployItem gone",
        ]
    );
}

/// Pruning and deletion go by what the item itself has written.
#[tokio::test]
async fn c_114_an_object_of_an_inventory_with_another_mark_stays_also_where_that_item_is_gone() {
    let mut world = World::new().await;
    job(&mut world, "a", "1", &["x"]).await;
    job(&mut world, "gone", "1", &["x"]).await;
    world.items.gone.lock().unwrap().push(world.owner.clone());
    world.switch("a");
    world.delete().await;
    assert_eq!(names(&world).await, ["x"]);
}

#[tokio::test]
async fn c_115_what_is_to_be_made_anew_and_stays_fails_and_is_not_written_over() {
    let mut world = World::new().await;
    job(&mut world, "b", "1", &["x"]).await;
    world.switch("a");
    let anew = json!({"name": "s", "gate": "accepted", "removals": [{"key": crate::world::key("x")}],
        "writes": [write("x", "anew")]});
    let halt = world.reconcile("1", &proposal(json!({"stages": [anew]}))).await.unwrap_err();
    let Halt::Stall(failure) = halt else { panic!("{halt:?}") };
    assert_eq!(
        failure.message,
        "ConfigMap default/x has to be deleted before it is made anew, and stays: it belongs to DeployItem default/b; delete it \
         by hand where it is not needed, or give one of the two another name"
    );
    assert_eq!(world.config_maps().await["x"], json!({"k": "b"}));
}

/// The mark and the label are no content that gives way to what is there.
#[tokio::test]
async fn c_36_an_object_that_is_only_filled_is_taken_over_as_well() {
    let mut world = World::new().await;
    job(&mut world, "a", "1", &["x"]).await;
    world.switch("b");
    let filled = json!({"object": config_map("x", "b"), "how": "fill"});
    world.run("1", &proposal(json!({"stages": [stage(&[filled])]}))).await;
    let metadata = world.objects().await.remove("x").unwrap()["metadata"].take();
    assert_eq!(
        (&metadata["annotations"][OWNER_ANNOTATION], &metadata["labels"][LABEL]),
        (&json!("default/b/uid-of-b"), &json!("b"))
    );
    assert_eq!(world.config_maps().await["x"], json!({"k": "a"}));
    world.delete().await;
    assert!(names(&world).await.is_empty());
}

#[tokio::test]
async fn c_36_a_component_cannot_write_the_mark_of_another_item() {
    let mut world = World::new().await;
    let marked = |mut object: Value| {
        object["metadata"]["annotations"] = json!({OWNER_ANNOTATION: "default/b/uid-of-b"});
        object
    };
    let all = ["apply", "replace", "patch", "fill", "overlay", "create"].map(|how| {
        json!({"object": marked(config_map(how, "1")), "how": how,
            "atCreation": {"metadata": {"annotations": {OWNER_ANNOTATION: "default/b/uid-of-b"}}}})
    });
    world.run("j", &proposal(json!({"stages": [stage(&all)]}))).await;
    for (name, object) in world.objects().await {
        assert_eq!(object["metadata"]["annotations"][OWNER_ANNOTATION], "default/item/uid-of-item", "{name}");
    }
    world.delete().await;
    assert!(names(&world).await.is_empty());
}

#[tokio::test]
async fn c_119_what_is_written_is_the_object_that_was_checked() {
    let mut world = World::new().await;
    let others = [
        json!({"metadata": {"name": "b"}}),
        json!({"metadata": {"name": null, "generateName": "b-"}}),
        json!({"metadata": {"namespace": "kube-system"}}),
        json!({"kind": "Secret"}),
        json!({"apiVersion": "example.org/v1"}),
        json!("b"),
    ];
    for (number, (how, extra)) in ["replace", "create", "apply", "fill"]
        .into_iter()
        .flat_map(|how| others.iter().map(move |extra| (how, extra)))
        .enumerate()
    {
        let write = json!({"object": config_map("a", "1"), "how": how, "atCreation": extra});
        let plan = proposal(json!({"stages": [stage(&[write])]}));
        let Err(Halt::Stall(failure)) = world.reconcile(&number.to_string(), &plan).await else {
            panic!("{how} {extra}: {:?}", names(&world).await)
        };
        let message = "ConfigMap default/a was checked, and another object would be written by what is merged in at creation or \
            placed by the host; leave apiVersion, kind, metadata.name and metadata.namespace out of that";
        assert_eq!(failure.message, message, "{how} {extra}");
    }
    assert!(names(&world).await.is_empty());
}

#[tokio::test]
async fn c_119_what_is_merged_in_at_creation_takes_no_mark_away() {
    let mut world = World::new().await;
    let marks = json!({"metadata": {"labels": {LABEL: "b"}, "annotations": null}});
    let write = json!({"object": config_map("a", "1"), "how": "replace", "atCreation": marks});
    world.run("j", &proposal(json!({"stages": [stage(&[write])]}))).await;
    let metadata = world.objects().await.remove("a").unwrap()["metadata"].take();
    assert_eq!(
        (&metadata["annotations"], &metadata["labels"]),
        (&json!({OWNER_ANNOTATION: "default/item/uid-of-item"}), &json!({LABEL: "item"}))
    );
    world.delete().await;
    assert!(names(&world).await.is_empty());
}

#[tokio::test]
async fn c_119_a_last_change_makes_no_other_object_of_what_is_deleted() {
    let mut world = World::new().await;
    let change = json!({"kind": "Secret", "data": {"k": "bye"}, "metadata": {"name": "b", "uid": "u", "resourceVersion": "1",
        "labels": {LABEL: "b"}, "annotations": {OWNER_ANNOTATION: "default/b/uid-of-b", OWNER_CLUSTER_ANNOTATION: "c/uid-of-b"}}});
    let write = json!({"object": config_map("a", "1"), "how": "replace", "beforeDeletion": change});
    world.run("j", &proposal(json!({"stages": [stage(&[write])]}))).await;
    world.send("PATCH", &path("a"), &json!({"metadata": {"finalizers": ["example.org/hold"]}})).await;
    assert!(matches!(world.look_at_deletion().await, Err(Halt::Wait(_))));
    let left = world.objects().await.remove("a").unwrap();
    assert_eq!(
        (&left["data"], &left["metadata"]["annotations"], &left["metadata"]["labels"]),
        (&json!({"k": "bye"}), &json!({OWNER_ANNOTATION: "default/item/uid-of-item"}), &json!({LABEL: "item"}))
    );
}

#[tokio::test]
async fn c_36_what_helm_is_told_to_keep_stays_in_every_spelling() {
    let mut world = World::new().await;
    let all = ["a", "b", "c", "d"].map(|name| write(name, "1"));
    world.run("j", &proposal(json!({"stages": [stage(&all)]}))).await;
    for (name, policy) in [("a", "keep"), ("b", " Keep "), ("c", "KEEP"), ("d", "keeper")] {
        let annotations = json!({"metadata": {"annotations": {"helm.sh/resource-policy": policy}}});
        world.send("PATCH", &path(name), &annotations).await;
    }
    world.run("k", &proposal(json!({"stages": [stage(&[write("e", "1")])]}))).await;
    assert_eq!(names(&world).await, ["a", "b", "c", "e"], "pruned");
    world.send("PATCH", &path("e"), &json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}})).await;
    world.delete().await;
    assert_eq!(names(&world).await, ["a", "b", "c", "e"], "deleted");
}

#[tokio::test]
async fn c_271_marks_are_handed_over_by_the_current_job_and_of_what_is_granted() {
    let mut world = World::new().await;
    world.run("j", &proposal(json!({"stages": [stage(&[write("a", "1"), write("b", "1")])]}))).await;
    let (own, to) =
        (world.owner.clone(), Owner { name: "other".into(), uid: "uid-of-other".to_owned(), ..world.owner.clone() });
    let marks = async |world: &World| {
        let objects = world.objects().await;
        ["a", "b"].map(|name| objects[name]["metadata"]["annotations"][OWNER_ANNOTATION].as_str().unwrap().to_owned())
    };
    world.allow(0);
    assert!(world.hand_over(&["a", "b"], &to).await.is_err(), "another job has begun");
    assert_eq!(marks(&world).await, [own.mark(), own.mark()]);
    world.allow(usize::MAX);
    world.grants =
        serde_json::from_value(json!({"clusters": {"target": true}, "writes": [{"kinds": ["Secret"]}]})).unwrap();
    world.hand_over(&["a", "b"], &to).await.unwrap();
    assert_eq!(marks(&world).await, [own.mark(), own.mark()], "its component may not write them");
    world.grants = everything();
    world.hand_over(&["a"], &to).await.unwrap();
    assert_eq!(marks(&world).await, [to.mark(), own.mark()]);
}

#[tokio::test]
async fn c_37_what_is_not_granted_is_not_deleted() {
    let mut world = World::new().await;
    world.run("j", &proposal(json!({"stages": [stage(&[write("a", "1")])]}))).await;
    world.grants =
        serde_json::from_value(json!({"clusters": {"target": true}, "writes": [{"kinds": ["Secret"]}]})).unwrap();
    let order = json!([{"what": [{"matching": {"apiVersion": "v1", "kind": "ConfigMap"}}]}]);
    world.status.state.deletion_order = serde_json::from_value(order).unwrap();
    world.delete().await;
    assert_eq!((names(&world).await, notes(&world).len()), (vec!["a".to_owned()], 2));
    world.grants = serde_json::from_value(json!({})).unwrap();
    world.status.state.inventory = Inventory::read(Some(&json!([{"policy": "manage", "cluster": "host",
        "resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": "default"}}])))
    .unwrap();
    world.delete().await;
    assert_eq!(names(&world).await, ["a"]);
}

/// Two operators deploy to one cluster, from namespaces and items of one name. Neither knows the items of the other.
#[tokio::test]
async fn c_137_a_stage_removes_nothing_of_an_item_of_another_host() {
    let mut world = World::new().await;
    let at = |cluster: Option<&str>, uid: &str| Owner {
        namespace: "default".into(),
        name: "item".into(),
        uid: uid.to_owned(),
        cluster: cluster.map(str::to_owned),
    };
    let writes: Vec<Value> = ["x", "old"].map(|name| write(name, "theirs")).into();
    world.owner = at(Some("there"), "theirs");
    world.run("1", &proposal(json!({"stages": [stage(&writes)]}))).await;
    let theirs = std::mem::take(&mut world.status);
    // As an earlier build has written it.
    let bare = json!({"metadata": {"annotations": {OWNER_CLUSTER_ANNOTATION: null}}});
    world.send("PATCH", &path("old"), &bare).await;
    world.owner = at(Some("here"), "ours");
    // For the API server of this host an item of that uid is gone.
    world.items.gone.lock().unwrap().extend([at(None, "theirs"), at(Some("there"), "theirs")]);
    let removals = ["x", "old"].map(|name| json!({"key": crate::world::key(name)}));
    let plan = proposal(json!({"stages": [{"name": "s", "gate": "gone", "removals": removals}]}));
    assert_eq!(world.run("1", &plan).await, Outcome::Finished);
    assert_eq!(names(&world).await, ["x"], "whose host is not said counts as one of this");
    let note = "ConfigMap default/x of the target cluster stays: it belongs to DeployItem default/item of another host, whose \
                cluster has the uid there; where that host is gone, delete it by hand";
    assert_eq!(notes(&world), [note]);
    // The other operator deletes what is its own.
    (world.owner, world.status) = (at(Some("there"), "theirs"), theirs);
    world.delete().await;
    assert_eq!(names(&world).await, [""; 0]);
}

/// What an earlier build has written is the item's by its uid, and says where the item is from the next write on.
#[tokio::test]
async fn c_137_a_mark_of_an_earlier_build_counts_and_is_written_anew() {
    let mut world = World::new().await;
    let plan = proposal(
        json!({"stages": [stage(&[write("x", "1"), json!({"object": config_map("f", "1"), "how": "fill"})])]}),
    );
    world.run("1", &plan).await;
    world.owner.cluster = Some("here".to_owned());
    let before = world.get(&path("x")).await.unwrap();
    world.run("2", &plan).await;
    for name in ["x", "f"] {
        let live = world.get(&path(name)).await.unwrap();
        let marks = json!({OWNER_ANNOTATION: "default/item/uid-of-item", OWNER_CLUSTER_ANNOTATION: "here/uid-of-item"});
        assert_eq!(live["metadata"]["annotations"], marks, "{name}");
    }
    let after = world.get(&path("x")).await.unwrap();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    // An operator that does not know its cluster any more leaves what is said of it.
    let known = std::mem::take(&mut world.owner.cluster);
    world.run("3", &plan).await;
    world.owner.cluster = known;
    let marks = world.get(&path("x")).await.unwrap()["metadata"]["annotations"].clone();
    assert_eq!(marks[OWNER_CLUSTER_ANNOTATION], "here/uid-of-item");
    // Without the newer mark it goes with the item all the same.
    world.send("PATCH", &path("x"), &json!({"metadata": {"annotations": {OWNER_CLUSTER_ANNOTATION: null}}})).await;
    world.delete().await;
    assert_eq!(names(&world).await, [""; 0]);
}
