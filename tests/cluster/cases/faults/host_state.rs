//! What the host keeps about an item, and whose objects are, in the hands of users: objects of others stay (C-35 to C-37).

use std::io::Write as _;

use data_encoding::BASE64;
use flate2::{Compression, write::ZlibEncoder};
use orangery_core::digest::sha256;
use orangery_proposal::Proposal;
use orangery_tests::{
    objects::{NAMESPACE, Objects},
    tree::{
        any, ask, becomes_ready, blueprint, deploys, executions, imports_cluster, in_phase, installation, mocks,
        next_job, on_cluster, subinstallation,
    },
};
use serde_json::{Value, json};

/// An Installation of these items on the Target `cluster`.
fn deploying(name: &str, items: &[Value]) -> Value {
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(items)});
    on_cluster(installation(name, &blueprint(fields)))
}

/// A Secret of another namespace.
async fn victim(cluster: &Objects) -> Value {
    cluster.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})).await;
    let victim = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "victim", "namespace": "other"}});
    cluster.apply(&victim).await;
    victim
}

/// An Installation without a Target, whose one item says what its component is to keep in the status.
async fn plants(status: Value) {
    let cluster = crate::cluster().await;
    let victim = victim(&cluster).await;
    let mut item = mocks("plants", &[], "Succeeded", "x");
    item["config"]["providerStatus"] = status;
    let root = installation("root", &blueprint(json!({"deployExecutions": executions(&[item])})));
    cluster.apply(&root).await;
    let failed = cluster.expect(&in_phase("Installation", "root", "Failed")).await;
    let message = failed["status"]["lastError"]["message"].to_string();
    assert!(message.contains("which the host keeps for itself; leave it out"), "{message}");
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    cluster.expect(&victim).await;
}

#[tokio::test]
async fn c_37_a_mock_item_cannot_plant_an_inventory() {
    let resource = json!({"apiVersion": "v1", "kind": "Secret", "name": "victim", "namespace": "other"});
    let entry = json!({"policy": "manage", "cluster": "host", "resource": resource});
    plants(json!({"apiVersion": "a/v1", "kind": "K", "managedResources": [entry]})).await;
}

#[tokio::test]
async fn c_37_a_mock_item_cannot_plant_an_order_of_deletion() {
    let every = json!({"matching": {"apiVersion": "v1", "kind": "Secret"}});
    let order = json!([{"on": "host", "what": [every], "force": true}]);
    plants(json!({"apiVersion": "a/v1", "kind": "K", "orangery": {"deletionOrder": order}})).await;
}

/// What a user that may write `deployitems/status` puts into the status of the only item.
async fn plant(cluster: &Objects, status: Value) {
    let item = cluster.list(&any("DeployItem", "")).await.pop().expect("an item");
    cluster.patch_status(&item, status).await;
}

/// Waits until an event says that the state of an item is not the operator's.
async fn expect_told(cluster: &Objects) {
    let says = |event: &Value| {
        event["reason"] == "StateNotTrusted"
            && event["note"].as_str().is_some_and(|note| note.contains("was not written by this operator"))
    };
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event"});
    cluster.expect_that(&event, "no event says that the state is not trusted", says).await;
}

fn kept(fields: Value) -> Value {
    let mut kept = json!({"apiVersion": "a/v1", "kind": "K"});
    kept.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
    json!({"providerStatus": kept})
}

/// Planted before a job of the item, and once more before its deletion.
#[tokio::test]
async fn c_37_what_a_user_plants_in_the_status_of_an_item_deletes_nothing_of_others() {
    let resource = json!({"apiVersion": "v1", "kind": "Secret", "name": "victim", "namespace": "other"});
    let inventory =
        |on: &str| kept(json!({"managedResources": [{"policy": "manage", "cluster": on, "resource": resource}]}));
    let every = json!({"matching": {"apiVersion": "v1", "kind": "Secret"}});
    let order = |on: &str| kept(json!({"orangery": {"deletionOrder": [{"on": on, "what": [every], "force": true}]}}));
    let planted = [inventory("target"), inventory("host"), order("target"), order("host")];
    for status in planted {
        let cluster = crate::cluster().await;
        let victim = victim(&cluster).await;
        let root = deploying("root", &[deploys("mine", &[], "1")]);
        cluster.apply(&root).await;
        cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
        plant(&cluster, status.clone()).await;
        next_job(&cluster, &root).await;
        expect_told(&cluster).await;
        cluster.expect(&victim).await;
        plant(&cluster, status).await;
        cluster.delete(&any("Installation", "root")).await;
        cluster.expect_absent(&any("Installation", "root")).await;
        cluster.expect(&victim).await;
    }
}

/// A proposal, and how far it has come, in the hands of a user: while a job of the item is under way.
#[tokio::test]
async fn c_37_a_proposal_that_a_user_plants_is_not_gone_on_with() {
    let cluster = crate::cluster().await;
    cluster.apply(&deploying("root", &[becomes_ready("waits", &[])])).await;
    cluster.expect(&config_map("waits")).await;
    let is_waiting = |item: &Value| item["status"]["providerStatus"]["orangery"]["progress"].is_object();
    let item = cluster.expect_that(&any("DeployItem", ""), "does not wait", is_waiting).await;
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "evil", "namespace": NAMESPACE}});
    let evil: Proposal = serde_json::from_value(json!({"next": {"finish": {}}, "stages": [
        {"name": "s", "gate": "accepted", "writes": [{"object": object, "how": "create"}]}]}))
    .expect("a proposal");
    let text = json!(evil).to_string().into_bytes();
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&text).expect("it fits into memory");
    let content = BASE64.encode(&encoder.finish().expect("it fits into memory"));
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "planted"}, "data": {"proposal": content}});
    cluster.apply(&secret).await;
    let progress = json!({"job": item["status"]["jobID"], "at": {"stage": {"stage": 0, "step": "removing"}},
        "since": "2020-01-01T00:00:00Z"});
    let stored = json!({"digest": sha256(&text), "secrets": ["planted"]});
    plant(&cluster, kept(json!({"orangery": {"progress": progress, "proposal": stored}}))).await;
    expect_told(&cluster).await;
    // The item has begun anew, by what its component answers.
    let waits_again = |item: &Value| {
        let progress = &item["status"]["providerStatus"]["orangery"]["progress"];
        progress["at"]["stage"]["step"] == "waiting" && progress["since"] != "2020-01-01T00:00:00Z"
    };
    cluster.expect_that(&any("DeployItem", ""), "does not wait again", waits_again).await;
    let mut ready = config_map("waits");
    ready["data"] = json!({"ready": "yes"});
    cluster.merge(&ready).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    cluster.expect_absent(&config_map("evil")).await;
    cluster.expect(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "planted"}})).await;
}

/// A name in the status is no name of a Secret to delete.
#[tokio::test]
async fn c_37_a_reference_to_exports_that_a_user_plants_deletes_no_secret() {
    let cluster = crate::cluster().await;
    let mine = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "named"}});
    cluster.apply(&mine).await;
    let root = deploying("root", &[deploys("mine", &[], "1")]);
    cluster.apply(&root).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    for reference in ["default", "other"] {
        plant(&cluster, json!({"exportRef": {"name": "named", "namespace": reference}})).await;
        next_job(&cluster, &root).await;
        cluster.expect(&mine).await;
    }
    plant(&cluster, json!({"exportRef": {"name": "named", "namespace": "default"}})).await;
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    cluster.expect(&mine).await;
}

/// An item `name` that deploys these ConfigMaps.
fn deploys_all(name: &str, after: &[&str], objects: &[&str]) -> Value {
    let mut item = deploys(name, after, name);
    let manifests = objects.iter().map(|object| {
        let metadata = json!({"name": object, "namespace": NAMESPACE});
        let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"by": name}});
        json!({"policy": "manage", "manifest": manifest})
    });
    item["config"]["manifests"] = manifests.collect();
    item
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

#[tokio::test]
async fn c_36_an_object_that_moves_from_one_item_to_another_lives() {
    let cluster = crate::cluster().await;
    let first = [deploys_all("a", &["b"], &["x"]), deploys_all("b", &[], &["y"])];
    cluster.apply(&deploying("root", &first)).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let second = [deploys_all("a", &["b"], &["z"]), deploys_all("b", &[], &["x", "y"])];
    next_job(&cluster, &deploying("root", &second)).await;
    for (name, by) in [("x", "b"), ("y", "b"), ("z", "a")] {
        let object = cluster.expect(&config_map(name)).await;
        assert_eq!(object["data"], json!({"by": by}), "{name}");
    }
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    for name in ["x", "y", "z"] {
        cluster.expect_absent(&config_map(name)).await;
    }
}

/// The item that had the object comes first, or at the same time: it stays for the one that names it now.
#[tokio::test]
async fn c_163_an_object_that_moves_to_an_item_that_comes_later_lives() {
    for after in [&["a"][..], &[]] {
        let cluster = crate::cluster().await;
        let first = [deploys_all("a", &[], &["x"]), deploys_all("b", after, &["y"])];
        cluster.apply(&deploying("root", &first)).await;
        cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
        let uid = cluster.expect(&config_map("x")).await["metadata"]["uid"].clone();
        next_job(&cluster, &deploying("root", &[deploys_all("a", &[], &["z"]), deploys_all("b", after, &["x", "y"])]))
            .await;
        let moved = cluster.expect(&config_map("x")).await;
        assert_eq!((&moved["metadata"]["uid"], &moved["data"]), (&uid, &json!({"by": "b"})), "{after:?}");
        // Where neither names it, it goes.
        next_job(&cluster, &deploying("root", &[deploys_all("a", &[], &["z"]), deploys_all("b", after, &["y"])])).await;
        cluster.expect_absent(&config_map("x")).await;
    }
}

/// Two items have each what the other one had.
#[tokio::test]
async fn c_211_objects_that_two_items_swap_live() {
    for after in [&["a"][..], &[]] {
        let cluster = crate::cluster().await;
        let uids = async |by: [&str; 2]| {
            let mut uids = Vec::new();
            for (name, by) in ["x", "y"].into_iter().zip(by) {
                let object = cluster.expect(&config_map(name)).await;
                assert_eq!(object["data"], json!({"by": by}), "{name} {after:?}");
                uids.push(object["metadata"]["uid"].clone());
            }
            uids
        };
        cluster.apply(&deploying("root", &[deploys_all("a", &[], &["x"]), deploys_all("b", after, &["y"])])).await;
        cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
        let before = uids(["a", "b"]).await;
        let swapped = [deploys_all("a", &[], &["y"]), deploys_all("b", after, &["x"])];
        next_job(&cluster, &deploying("root", &swapped)).await;
        assert_eq!(uids(["b", "a"]).await, before, "{after:?}");
        cluster.delete(&any("Installation", "root")).await;
        cluster.expect_absent(&any("Installation", "root")).await;
        for name in ["x", "y"] {
            cluster.expect_absent(&config_map(name)).await;
        }
    }
}

/// An Installation takes an object over before the one that had it lets it go.
#[tokio::test]
async fn c_211_an_object_that_another_root_has_taken_over_is_left_to_it() {
    let cluster = crate::cluster().await;
    cluster.apply(&deploying("root", &[deploys_all("a", &[], &["x", "y"])])).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let uid = cluster.expect(&config_map("x")).await["metadata"]["uid"].clone();
    cluster.apply(&deploying("second", &[deploys_all("b", &[], &["x"])])).await;
    cluster.expect(&in_phase("Installation", "second", "Succeeded")).await;
    next_job(&cluster, &deploying("root", &[deploys_all("a", &[], &["y"])])).await;
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    cluster.expect_absent(&config_map("y")).await;
    let left = cluster.expect(&config_map("x")).await;
    assert_eq!((&left["metadata"]["uid"], &left["data"]), (&uid, &json!({"by": "b"})));
    cluster.delete(&any("Installation", "second")).await;
    cluster.expect_absent(&any("Installation", "second")).await;
    cluster.expect_absent(&config_map("x")).await;
}

/// An object that stands in one of another item, as in a ManifestWork, is deployed by nobody here.
#[tokio::test]
async fn c_210_an_object_that_stands_in_an_object_of_another_item_is_pruned() {
    let cluster = crate::cluster().await;
    let mut carries = deploys_all("b", &[], &["y"]);
    let inside = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": NAMESPACE}});
    let carrier = json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1, "data": inside,
        "metadata": {"name": "carrier", "namespace": NAMESPACE}});
    carries["config"]["manifests"].as_array_mut().unwrap().push(json!({"policy": "manage", "manifest": carrier}));
    cluster.apply(&deploying("root", &[deploys_all("a", &[], &["x", "z"]), carries.clone()])).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    cluster.expect(&config_map("x")).await;
    next_job(&cluster, &deploying("root", &[deploys_all("a", &[], &["z"]), carries])).await;
    cluster.expect_absent(&config_map("x")).await;
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
}

#[tokio::test]
async fn c_174_an_item_that_goes_leaves_its_objects_to_the_one_that_names_them_now() {
    let cluster = crate::cluster().await;
    cluster.apply(&deploying("root", &[deploys_all("a", &[], &["x", "y"])])).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let uid = cluster.expect(&config_map("x")).await["metadata"]["uid"].clone();
    // The item is called otherwise.
    next_job(&cluster, &deploying("root", &[deploys_all("b", &[], &["x"])])).await;
    cluster.expect_absent(&config_map("y")).await;
    // Two items have it, and the one that has written it last goes.
    let second = deploys_all("c", &["b"], &["x"]);
    next_job(&cluster, &deploying("root", &[deploys_all("b", &[], &["x"]), second.clone()])).await;
    assert_eq!(cluster.expect(&config_map("x")).await["data"], json!({"by": "c"}));
    next_job(&cluster, &deploying("root", &[deploys_all("b", &[], &["x"])])).await;
    let moved = cluster.expect(&config_map("x")).await;
    assert_eq!((&moved["metadata"]["uid"], &moved["data"]), (&uid, &json!({"by": "b"})));
    // It goes with the last of them, in whatever order they go.
    next_job(&cluster, &deploying("root", &[deploys_all("b", &[], &["x"]), second])).await;
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    cluster.expect_absent(&config_map("x")).await;
}

/// The namespace that a configuration gives to an object of a kind without namespaces says nothing.
#[tokio::test]
async fn c_163_c_174_c_162_an_object_without_a_namespace_lives_whatever_namespace_its_manifest_has() {
    let cluster = crate::cluster().await;
    let role =
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "kept"}});
    let with = |name: &str, after: &[&str], has_role: bool, policy: &str| {
        let mut item = deploys_all(name, after, &[&format!("of-{name}")]);
        if has_role {
            let mut manifest = role.clone();
            manifest["metadata"]["namespace"] = json!(NAMESPACE);
            let manifests = item["config"]["manifests"].as_array_mut().unwrap();
            manifests.push(json!({"policy": policy, "manifest": manifest}));
        }
        item
    };
    cluster.apply(&deploying("root", &[with("a", &[], true, "manage")])).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let uid = cluster.expect(&role).await["metadata"]["uid"].clone();
    for items in [
        // Its item is called otherwise, it moves to one that comes later, and it is left to itself.
        vec![with("b", &[], true, "manage")],
        vec![with("b", &[], false, ""), with("c", &["b"], true, "manage")],
        vec![with("b", &[], false, ""), with("c", &["b"], true, "ignore")],
    ] {
        next_job(&cluster, &deploying("root", &items)).await;
        assert_eq!(cluster.expect(&role).await["metadata"]["uid"], uid, "{items:#?}");
    }
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    assert_eq!(cluster.expect(&role).await["metadata"]["uid"], uid);
    cluster.delete(&role).await;
}

/// It is passed over, and yet what is left to it is its own.
#[tokio::test]
async fn c_174_an_item_that_is_passed_over_has_what_is_left_to_it() {
    let cluster = crate::cluster().await;
    let mut unchanged = deploys_all("a", &[], &["x"]);
    unchanged["updateOnChangeOnly"] = json!(true);
    let leaves = deploys_all("b", &["a"], &["x", "y"]);
    cluster.apply(&deploying("root", &[unchanged.clone(), leaves])).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let before = cluster.expect(&config_map("x")).await;
    assert_eq!(before["data"], json!({"by": "b"}));
    next_job(&cluster, &deploying("root", &[unchanged])).await;
    cluster.expect_absent(&config_map("y")).await;
    let after = cluster.expect(&config_map("x")).await;
    assert_eq!((&after["metadata"]["uid"], &after["data"]), (&before["metadata"]["uid"], &before["data"]));
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    cluster.expect_absent(&config_map("x")).await;
}

/// Whatever becomes of the job of the item that goes on with it.
#[tokio::test]
async fn c_271_what_is_left_to_an_item_whose_job_fails_goes_with_that_item() {
    let cluster = crate::cluster().await;
    cluster.apply(&deploying("root", &[deploys_all("a", &[], &["x", "y"])])).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let before = cluster.expect(&config_map("x")).await;
    // The item is called otherwise, and comes after one that fails.
    let goes_on = deploys_all("b", &["f"], &["x"]);
    let mut fails = deploys_all("f", &[], &["z"]);
    fails["config"]["manifests"][0]["policy"] = json!("nonsense");
    cluster.apply(&deploying("root", &[goes_on, fails])).await;
    ask(&cluster, "root").await;
    cluster.expect(&in_phase("Installation", "root", "Failed")).await;
    cluster.expect_absent(&config_map("y")).await;
    let after = cluster.expect(&config_map("x")).await;
    assert_eq!((&after["metadata"]["uid"], &after["data"]), (&before["metadata"]["uid"], &before["data"]));
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    cluster.expect_absent(&config_map("x")).await;
}

/// Two items have the object, and one of them goes, the other one a moment later.
#[tokio::test]
async fn c_271_an_object_that_is_left_to_an_item_that_goes_itself_is_deleted() {
    let cluster = crate::cluster().await;
    let other = deploys_all("b", &[], &["x"]);
    let absent = json!({"crdPresent": {"group": "monitoring.example.org", "kind": "Probe"}});
    let gated = |gate: &str| {
        let mut item = other.clone();
        item[gate] = absent.clone();
        item
    };
    for second in [Some(gated("activateWhen")), Some(gated("when")), None] {
        cluster
            .apply(&deploying(
                "root",
                &[other.clone(), deploys_all("a", &["b"], &["x"]), deploys_all("c", &[], &["c"])],
            ))
            .await;
        ask(&cluster, "root").await;
        cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
        assert_eq!(cluster.expect(&config_map("x")).await["data"], json!({"by": "a"}));
        let rest: Vec<Value> = second.into_iter().chain([deploys_all("c", &[], &["c"])]).collect();
        next_job(&cluster, &deploying("root", &rest)).await;
        cluster.delete(&any("Installation", "root")).await;
        cluster.expect_absent(&any("Installation", "root")).await;
        cluster.expect_absent(&config_map("x")).await;
    }
}

/// It would not write over what another item has written, and nobody would have it.
#[tokio::test]
async fn c_174_an_object_that_its_new_item_does_not_write_over_is_made_anew() {
    for policy in ["fallback", "immutable"] {
        let cluster = crate::cluster().await;
        cluster.apply(&deploying("root", &[deploys_all("a", &[], &["x"])])).await;
        cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
        let mut item = deploys_all("b", &[], &["x"]);
        item["config"]["manifests"][0]["policy"] = json!(policy);
        next_job(&cluster, &deploying("root", &[item])).await;
        assert_eq!(cluster.expect(&config_map("x")).await["data"], json!({"by": "b"}), "{policy}");
        cluster.delete(&any("Installation", "root")).await;
        cluster.expect_absent(&any("Installation", "root")).await;
        cluster.expect_absent(&config_map("x")).await;
    }
}

#[tokio::test]
async fn c_162_an_object_whose_policy_has_become_ignore_stays_and_is_nobodys() {
    let cluster = crate::cluster().await;
    cluster.apply(&deploying("root", &[deploys_all("a", &[], &["x", "y"])])).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let before = cluster.expect(&config_map("x")).await;
    let mut ignoring = deploys_all("a", &[], &["x", "y"]);
    ignoring["config"]["manifests"][0]["policy"] = json!("ignore");
    ignoring["config"]["manifests"][0]["manifest"]["data"] = json!({"by": "nobody"});
    next_job(&cluster, &deploying("root", &[ignoring])).await;
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    cluster.expect_absent(&config_map("y")).await;
    assert_eq!(cluster.expect(&config_map("x")).await, before);
}

/// One entry says to ignore the object, and another one to deploy it: that one counts, as in the original, and is told.
#[tokio::test]
async fn c_204_an_object_under_ignore_and_under_another_policy_is_deployed_told_and_goes_with_its_item() {
    let cluster = crate::cluster().await;
    let mut item = deploys_all("a", &[], &["x", "y"]);
    let mut again = item["config"]["manifests"][0].clone();
    again["policy"] = json!("ignore");
    item["config"]["manifests"].as_array_mut().unwrap().push(again);
    cluster.apply(&deploying("root", &[item])).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    assert_eq!(cluster.expect(&config_map("x")).await["data"], json!({"by": "a"}));
    let note = format!(
        "manifests has ConfigMap {NAMESPACE}/x twice, under `ignore` and under another policy, which counts: what is deployed goes \
         with the item; remove one of the two entries"
    );
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "reason": "ObjectNamedTwice"});
    cluster.expect_that(&event, "does not name the object alone", |event| event["note"] == note.as_str()).await;
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    for name in ["x", "y"] {
        cluster.expect_absent(&config_map(name)).await;
    }
}

/// Between Installations of one tree it stays where its policy, for one job, is `keep`.
#[tokio::test]
async fn c_211_an_object_that_moves_to_another_installation_of_its_tree_is_made_anew_unless_it_was_kept() {
    let cluster = crate::cluster().await;
    let tree = |first: Value, second: Value| {
        let sub = |name: &str, item: Value| {
            let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&[item])});
            on_cluster(subinstallation(name, &blueprint(fields)))
        };
        let subs = json!([sub("first", first), sub("second", second)]);
        on_cluster(installation("root", &blueprint(json!({"imports": imports_cluster(), "subinstallations": subs}))))
    };
    let (rest, other) = (deploys_all("a", &[], &["of-a"]), deploys_all("b", &[], &["of-b"]));
    for is_kept in [false, true] {
        let mut has = deploys_all("a", &[], &["of-a", "x"]);
        cluster.apply(&tree(has.clone(), other.clone())).await;
        cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
        let uid = cluster.expect(&config_map("x")).await["metadata"]["uid"].clone();
        if is_kept {
            has["config"]["manifests"][1]["policy"] = json!("keep");
            next_job(&cluster, &tree(has, other.clone())).await;
        }
        next_job(&cluster, &tree(rest.clone(), other.clone())).await;
        next_job(&cluster, &tree(rest.clone(), deploys_all("b", &[], &["of-b", "x"]))).await;
        let moved = cluster.expect(&config_map("x")).await;
        assert_eq!((moved["metadata"]["uid"] == uid, &moved["data"]), (is_kept, &json!({"by": "b"})));
        cluster.delete(&any("Installation", "root")).await;
        cluster.expect_absent(&any("Installation", "root")).await;
        cluster.expect_absent(&config_map("x")).await;
    }
}

#[tokio::test]
async fn c_35_an_object_that_is_written_in_another_version_stays() {
    let cluster = crate::cluster().await;
    let autoscaler = |version: &str| {
        let mut item = deploys("scales", &[], "1");
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"});
        item["config"]["manifests"] = json!([{"policy": "manage", "manifest": {
            "apiVersion": format!("autoscaling/{version}"), "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "a", "namespace": NAMESPACE}, "spec": {"maxReplicas": 2, "scaleTargetRef": target}}}]);
        deploying("root", &[item])
    };
    cluster.apply(&autoscaler("v1")).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    next_job(&cluster, &autoscaler("v2")).await;
    let object = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"}});
    cluster.expect(&object).await;
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&object).await;
}
