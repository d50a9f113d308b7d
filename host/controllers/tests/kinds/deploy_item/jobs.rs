//! Jobs of a deploy item, from the trigger to the end.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use orangery_api::{FINALIZER, job::Job};
use serde_json::{Value, json};

use super::items::{Items, gated, is_proposal, proposal};

#[track_caller]
fn failed(status: &Value, reason: &str, code: &str) -> String {
    assert_eq!((&status["phase"], &status["lastError"]["reason"]), (&json!("Failed"), &json!(reason)), "{status:#}");
    assert!(status["lastError"]["codes"].as_array().unwrap().contains(&json!(code)), "{status:#}");
    assert_eq!((&status["firstError"], &status["lastErrors"]), (&status["lastError"], &json!([status["lastError"]])));
    status["lastError"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_without_waits_writes_the_status_twice() {
    let world = Items::new().await;
    world.create("item", &[proposal("a", json!({}))], json!({})).await;
    world.wait("item", |item| item.is_some()).await;
    let status = world.job("item", "one").await;
    world.wait("item", |_| world.changes.lock().unwrap().last().is_some_and(|line| line == "Succeeded one")).await;
    let changes: Vec<String> = std::mem::take(&mut *world.changes.lock().unwrap());
    // Created, triggered, the finalizer, and the two writes of the job.
    let of_job: Vec<&str> = changes.iter().map(String::as_str).filter(|line| !line.is_empty()).collect();
    assert_eq!(of_job, ["Progressing", "Succeeded one"]);
    assert_eq!(world.value("a").await.as_deref(), Some("v"));
    let uid = status["providerStatus"]["managedResources"][0]["resource"]["uid"].clone();
    let mut provider_status = status["providerStatus"].clone();
    let of_host = provider_status.as_object_mut().unwrap().remove("orangery").unwrap();
    let kept: Vec<&String> = of_host.as_object().unwrap().keys().collect();
    assert_eq!(kept, ["clusters", "credentials", "job", "number", "seal"]);
    assert_eq!(
        provider_status,
        json!({"apiVersion": "example.org/v1", "kind": "Status", "managedResources": [{"policy": "manage",
            "resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": "default", "uid": uid}}]})
    );
    assert!(uid.is_string());
    assert_eq!(status["deployer"], json!({"identity": "sha256:0", "name": "scripted", "version": "1.0"}));
    assert_eq!((&status["observedGeneration"], status.get("lastError")), (&json!(1), None));
    assert!(status["transitionTimes"]["initTime"].is_string() && status["transitionTimes"]["finishedTime"].is_string());
    assert_eq!(world.stored_proposals().await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exports_become_a_secret_of_the_item_and_go_when_there_are_none() {
    let world = Items::new().await;
    let exports = json!({"next": {"finish": {"exports": [{"key": "a.b", "source": {"value": 1}}]}}});
    world.create("item", &[proposal("a", exports)], json!({})).await;
    let status = world.job("item", "one").await;
    assert_eq!(status["exportRef"], json!({"name": "item-export", "namespace": "default"}));
    let secrets = world.secrets().await;
    let secret = secrets.iter().find(|secret| secret.metadata.name.as_deref() == Some("item-export")).unwrap();
    assert_eq!(secret.data.as_ref().unwrap()["config"].0, br#"{"a":{"b":1}}"#);
    assert_eq!(secret.metadata.owner_references.as_ref().unwrap()[0].name, "item");
    world.patch("item", json!({"spec": {"config": {"proposals": [proposal("a", json!({}))]}}})).await;
    let status = world.job("item", "two").await;
    assert_eq!(status.get("exportRef"), None);
    assert!(world.secrets().await.iter().all(|secret| secret.metadata.name.as_deref() != Some("item-export")));
}

/// Makes the Secret `item-export` of this owner; `None` for nobody's.
async fn export_secret(world: &Items, owner: Option<Value>) {
    let metadata = json!({"name": "item-export", "ownerReferences": owner.into_iter().collect::<Vec<_>>()});
    let secret = json!({"metadata": metadata, "data": {"mine": "a2VwdA=="}});
    let api: Api<Secret> = Api::default_namespaced(world.client.clone());
    api.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
}

async fn exported(world: &Items) -> Secret {
    let secrets = world.secrets().await;
    secrets.into_iter().find(|secret| secret.metadata.name.as_deref() == Some("item-export")).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_194_a_secret_of_others_by_the_name_of_the_exports_stays_as_it_is() {
    let world = Items::new().await;
    let exports = json!({"next": {"finish": {"exports": [{"key": "a.b", "source": {"value": 1}}]}}});
    export_secret(&world, None).await;
    let before = exported(&world).await;
    world.create("item", &[proposal("a", exports)], json!({})).await;
    let message = failed(&world.job("item", "one").await, "ExportSecretTaken", "ERR_CONFIGURATION_PROBLEM");
    let expected = "the exports of DeployItem item cannot be written: Secret default/item-export is there already, and the item is \
                    not its owner, so it stays as it is; rename or delete it, and reconcile again";
    assert_eq!(message, expected);
    assert_eq!(exported(&world).await, before);
    // A status that says that it is the item's has it deleted by no job that exports nothing.
    let planted = json!({"status": {"exportRef": {"name": "item-export", "namespace": "default"}}});
    world.items().patch_status("item", &PatchParams::default(), &Patch::Merge(planted)).await.unwrap();
    world.patch("item", json!({"spec": {"config": {"proposals": [proposal("a", json!({}))]}}})).await;
    assert_eq!(world.job("item", "two").await["phase"], "Succeeded");
    assert_eq!(exported(&world).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_194_a_secret_whose_owner_only_has_the_kind_and_name_of_the_item_stays_as_it_is() {
    let world = Items::new().await;
    let exports = json!({"next": {"finish": {"exports": [{"key": "a.b", "source": {"value": 1}}]}}});
    let owner =
        json!({"apiVersion": "example.org/v1alpha1", "kind": "DeployItem", "name": "item", "uid": "of-another-kind"});
    export_secret(&world, Some(owner)).await;
    let before = exported(&world).await;
    world.create("item", &[proposal("a", exports)], json!({})).await;
    failed(&world.job("item", "one").await, "ExportSecretTaken", "ERR_CONFIGURATION_PROBLEM");
    assert_eq!(exported(&world).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_194_exports_of_an_earlier_item_of_the_name_are_written_over() {
    let world = Items::new().await;
    let exports = json!({"next": {"finish": {"exports": [{"key": "a.b", "source": {"value": 1}}]}}});
    world.create("other", &[], json!({})).await;
    let earlier = world.items().get("other").await.unwrap().metadata.uid;
    let owner = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DeployItem", "name": "item", "uid": earlier});
    export_secret(&world, Some(owner)).await;
    world.create("item", &[proposal("a", exports)], json!({})).await;
    assert_eq!(world.job("item", "one").await["phase"], "Succeeded");
    let written = exported(&world).await;
    assert_eq!(written.data.unwrap()["config"].0, br#"{"a":{"b":1}}"#);
    let uid = world.items().get("item").await.unwrap().metadata.uid.unwrap();
    assert_eq!(written.metadata.owner_references.unwrap()[0].uid, uid);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exe_44_an_item_that_is_deleted_keeps_what_it_brought_about_until_its_job_comes() {
    let world = Items::new().await;
    world.create("item", &[proposal("a", json!({}))], json!({})).await;
    world.job("item", "one").await;
    world.delete("item").await;
    let kept = world.wait("item", |item| item.is_some_and(|item| item.metadata.deletion_timestamp.is_some())).await;
    assert_eq!(kept.unwrap().metadata.finalizers, Some(vec![FINALIZER.to_owned()]));
    assert_eq!(world.value("a").await.as_deref(), Some("v"), "nothing happens before the job arrives");
    world.trigger("item", "two").await;
    world.gone("item").await;
    assert_eq!(world.value("a").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_80_without_uninstall_the_objects_stay_and_the_component_is_not_asked() {
    let world = Items::new().await;
    world.create("item", &[proposal("a", json!({}))], json!({})).await;
    world.job("item", "one").await;
    let calls = world.calls();
    world
        .patch(
            "item",
            json!({"metadata": {"annotations": {"landscaper.gardener.cloud/delete-without-uninstall": "true"}}}),
        )
        .await;
    world.delete("item").await;
    world.trigger("item", "two").await;
    world.gone("item").await;
    assert_eq!((world.value("a").await.as_deref(), world.calls()), (Some("v"), calls));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_28_without_its_target_an_item_of_nobody_goes_if_it_says_so_and_the_component_is_not_asked() {
    let world = Items::new().await;
    world.create("held", &[proposal("h", json!({}))], json!({})).await;
    let skips = json!({"onDelete": {"skipUninstallIfClusterRemoved": true}});
    world.create("left", &[proposal("l", json!({}))], skips).await;
    for name in ["held", "left"] {
        world.job(name, "one").await;
    }
    world.lose_target("cluster").await;
    world.lose_kept().await;
    let calls = world.calls();
    for name in ["held", "left"] {
        world.delete(name).await;
        world.trigger(name, "two").await;
    }
    world.gone("left").await;
    let status = world.finished("held", "two").await;
    let message = status["lastError"]["message"].as_str().unwrap_or_default();
    assert_eq!(status["phase"], "DeleteFailed");
    assert!(
        message.starts_with("DeployItem held cannot be uninstalled: Target default/cluster does not exist;"),
        "{message}"
    );
    let left = (world.value("l").await, world.value("h").await, world.calls());
    assert_eq!(left, (Some("v".to_owned()), Some("v".to_owned()), calls));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_is_kept_and_gone_on_with_by_another_controller() {
    let mut world = Items::new().await;
    world.create("item", &[gated("ready")], json!({})).await;
    world.trigger("item", "one").await;
    world.waiting("item", "ConfigMap default/a (.data.k == \"ready\" does not hold) to become ready").await;
    let kept = world.secrets().await.into_iter().find(is_proposal);
    assert_eq!(kept.unwrap().metadata.owner_references.unwrap()[0].name, "item");
    let calls = world.calls();
    world.restart();
    let api: Api<ConfigMap> = Api::default_namespaced(world.client.clone());
    api.patch("a", &PatchParams::default(), &Patch::Merge(json!({"data": {"k": "ready"}}))).await.unwrap();
    let status = world.finished("item", "one").await;
    assert_eq!((&status["phase"], world.calls()), (&json!("Succeeded"), calls));
    assert_eq!(world.value("a").await.as_deref(), Some("ready"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_63_a_job_that_has_ended_keeps_no_proposal_however_it_ended() {
    let world = Items::new().await;
    world.create("ready", &[gated("ready")], json!({})).await;
    world.trigger("ready", "one").await;
    world.waiting("ready", "ConfigMap default/a (.data.k == \"ready\" does not hold) to become ready").await;
    assert_eq!(world.stored_proposals().await, 1);
    world.patch_config_map("a", json!({"data": {"k": "ready"}})).await;
    let succeeded = world.finished("ready", "one").await;
    world.without_proposals().await;
    world.create("late", &[gated("never")], json!({"timeout": "2s"})).await;
    let failed = world.job("late", "one").await;
    world.without_proposals().await;
    let ends = [succeeded, failed].map(|status| {
        (status["phase"].clone(), status["providerStatus"]["orangery"].as_object().unwrap().contains_key("proposal"))
    });
    assert_eq!(ends, [(json!("Succeeded"), false), (json!("Failed"), false)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_that_goes_on_is_called_with_its_checkpoint_and_prunes_nothing_of_its_own() {
    let world = Items::new().await;
    let first = proposal("a", json!({"next": {"continueWith": [1]}}));
    world.create("item", &[first, proposal("b", json!({}))], json!({})).await;
    let status = world.job("item", "one").await;
    assert_eq!(status["phase"], json!("Succeeded"), "{status:#}");
    let checkpoints: Vec<Option<Vec<u8>>> =
        world.plugin.calls.lock().unwrap().iter().map(|item| item.checkpoint.clone()).collect();
    assert_eq!(checkpoints, [None, Some(vec![1])]);
    assert_eq!((world.value("a").await.is_some(), world.value("b").await.is_some()), (true, true));
    world.patch("item", json!({"spec": {"config": {"proposals": [proposal("b", json!({}))]}}})).await;
    world.job("item", "two").await;
    assert_eq!((world.value("a").await, world.value("b").await.is_some()), (None, true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_08_a_timeout_names_what_was_waited_for() {
    let world = Items::new().await;
    world.create("item", &[gated("never")], json!({"timeout": "2s"})).await;
    let status = world.job("item", "one").await;
    assert_eq!(
        failed(&status, "ProgressingTimeout", "ERR_TIMEOUT"),
        "the item did not finish within its timeout of 2s; waiting for ConfigMap default/a (.data.k == \"never\" does not hold) to become ready"
    );
    assert_eq!(status["providerStatus"]["managedResources"].as_array().unwrap().len(), 1, "the inventory is kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timeout_of_a_transient_failure_keeps_the_cause() {
    let world = Items::new().await;
    let mut lost = proposal("a", json!({}));
    lost["stages"][0]["writes"][0]["object"]["metadata"]["namespace"] = json!("absent");
    world.create("item", &[lost], json!({"timeout": "2s"})).await;
    world.trigger("item", "one").await;
    let status = world.finished("item", "one").await;
    assert_eq!(
        (&status["lastError"]["reason"], &status["firstError"]["reason"]),
        (&json!("ProgressingTimeout"), &json!("NotFound"))
    );
    let message = status["lastError"]["message"].as_str().unwrap();
    assert!(message.contains("namespaces \"absent\" not found"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_08_a_clock_that_jumps_back_ends_nothing_and_one_that_jumps_on_ends_what_waits_with_its_cause() {
    let world = Items::new().await;
    world.create("item", &[gated("ready")], json!({"timeout": "1h"})).await;
    world.trigger("item", "one").await;
    let wait = "ConfigMap default/a (.data.k == \"ready\" does not hold) to become ready";
    world.waiting("item", wait).await;
    world.jump(-86_400);
    let api: Api<ConfigMap> = Api::default_namespaced(world.client.clone());
    let set = async |value: &str| {
        let patch = Patch::Merge(json!({"data": {"k": value}}));
        api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    };
    set("ready").await;
    assert_eq!(world.finished("item", "one").await["phase"], json!("Succeeded"));

    set("other").await;
    world.trigger("item", "two").await;
    world.waiting("item", wait).await;
    world.jump(2 * 86_400);
    world.patch("item", json!({"metadata": {"annotations": {"look": "again"}}})).await;
    let message = failed(&world.finished("item", "two").await, "ProgressingTimeout", "ERR_TIMEOUT");
    // The cause is the object that it waits for, whether its watch has shown it by then or not.
    let cause =
        message.strip_prefix("the item did not finish within its timeout of 60m; waiting for ConfigMap default/a ");
    let causes = ["(.data.k == \"ready\" does not hold) to become ready", "(not seen yet) to become ready"];
    assert!(cause.is_some_and(|cause| causes.contains(&cause)), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_72_an_interrupted_item_is_not_written_again() {
    let world = Items::new().await;
    world.create("item", &[gated("later")], json!({})).await;
    world.trigger("item", "one").await;
    world.waiting("item", "to become ready").await;
    let interrupted = json!({"status": {"phase": "Failed", "jobIDFinished": "one"}});
    world.items().patch_status("item", &PatchParams::default(), &Patch::Merge(interrupted)).await.unwrap();
    let before = world.items().get("item").await.unwrap().metadata.resource_version;
    // A change that the item would have waited for, and a second item to see that the controller is done with it.
    let api: Api<ConfigMap> = Api::default_namespaced(world.client.clone());
    api.patch("a", &PatchParams::default(), &Patch::Merge(json!({"data": {"k": "later"}}))).await.unwrap();
    world.create("other", &[proposal("b", json!({}))], json!({})).await;
    world.job("other", "two").await;
    let item = world.items().get("item").await.unwrap();
    assert_eq!((item.phase(), item.metadata.resource_version.clone()), ("Failed", before));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unchanged_item_is_left_alone_if_it_asks_for_it() {
    let world = Items::new().await;
    world.create("item", &[proposal("a", json!({}))], json!({"updateOnChangeOnly": true})).await;
    world.job("item", "one").await;
    let calls = world.calls();
    let status = world.job("item", "two").await;
    assert_eq!((&status["phase"], world.calls()), (&json!("Succeeded"), calls));
    world.patch("item", json!({"spec": {"config": {"proposals": [proposal("b", json!({}))]}}})).await;
    world.job("item", "three").await;
    assert_eq!((world.calls(), world.value("b").await.is_some()), (calls + 1, true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_reconcile_needs_no_execution() {
    let world = Items::new().await;
    world.create("item", &[proposal("a", json!({}))], json!({})).await;
    world
        .patch("item", json!({"metadata": {"annotations": {"landscaper.gardener.cloud/operation": "test-reconcile"}}}))
        .await;
    let done = |item: Option<&orangery_api::deploy_item::DeployItem>| {
        item.is_some_and(|item| item.phase() == "Succeeded" && item.job_finished())
    };
    let item = world.wait("item", done).await.unwrap();
    assert_eq!(item.metadata.annotations.unwrap_or_default().get("landscaper.gardener.cloud/operation"), None);
    assert_eq!(world.calls(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn targets_that_cannot_be_used_fail_the_item_at_once() {
    let world = Items::new().await;
    let with = |name: &str| json!({"target": {"name": name}});
    world.create("absent", &[proposal("a", json!({}))], with("absent")).await;
    let status = world.job("absent", "one").await;
    assert_eq!(
        failed(&status, "NoTargetFound", "ERR_CONFIGURATION_PROBLEM"),
        "DeployItem absent needs Target default/absent, which does not exist; create it and reconcile again"
    );
    let exec = json!({"clusters": [], "contexts": [], "users": [{"name": "u", "user": {"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1"}}}]});
    world
        .target("exec", json!({"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": {"kubeconfig": exec}}))
        .await;
    world.create("exec", &[proposal("a", json!({}))], with("exec")).await;
    let message = failed(&world.job("exec", "one").await, "InvalidKubeconfig", "ERR_CONFIGURATION_PROBLEM");
    assert!(message.starts_with("exec is not allowed in the kubeconfig of a target (user \"u\")"), "{message}");
    world.target("other", json!({"type": "example.org/other"})).await;
    world.create("other", &[proposal("a", json!({}))], with("other")).await;
    failed(&world.job("other", "one").await, "TargetTypeMismatch", "ERR_CONFIGURATION_PROBLEM");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_the_component_and_denied_writes_fail_the_item() {
    let world = Items::new().await;
    world.create("invalid", &[], json!({})).await;
    let message = failed(&world.job("invalid", "one").await, "InvalidConfiguration", "ERR_CONFIGURATION_PROBLEM");
    assert_eq!(message, "plugin scripted: config.proposals is missing");
    let mut denied = proposal("a", json!({}));
    denied["stages"][0]["writes"][0]["on"] = json!("host");
    world.create("denied", &[denied], json!({})).await;
    failed(&world.job("denied", "one").await, "CapabilityDenied", "ERR_FORBIDDEN");
    assert_eq!(world.value("a").await, None);
    let fails = proposal("a", json!({"next": {"fail": {"code": "ERR_MINE", "message": "asked for"}}}));
    world.create("fails", &[fails], json!({})).await;
    failed(&world.job("fails", "one").await, "PluginFailedItem", "ERR_MINE");
    assert!(world.value("a").await.is_some(), "what the stages wrote stays");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn types_that_no_component_claims_are_left_to_others() {
    let world = Items::new().await;
    world.create("foreign", &[], json!({"type": "example.org/foreign"})).await;
    world.trigger("foreign", "one").await;
    let before = world.items().get("foreign").await.unwrap();
    world.create("item", &[proposal("a", json!({}))], json!({})).await;
    world.job("item", "one").await;
    assert_eq!(world.items().get("foreign").await.unwrap(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_of_landscaper_is_deleted_in_the_order_of_its_configuration() {
    let world = Items::new().await;
    let selected = json!({"managed": {"apiVersion": "v1", "kind": "ConfigMap", "names": ["a"]}});
    let mut order = proposal("a", json!({"deletionOrder": [{"what": [selected]}]}));
    let mut second = order["stages"][0]["writes"][0].clone();
    second["object"]["metadata"]["name"] = json!("b");
    order["stages"][0]["writes"].as_array_mut().unwrap().push(second);
    world.create("item", &[order], json!({})).await;
    let mut status = world.job("item", "one").await;
    // As the original leaves it: its own name, and nothing beside the inventory.
    status["providerStatus"].as_object_mut().unwrap().insert("orangery".into(), Value::Null);
    let adopted = json!({"status": {"deployer": {"identity": "x", "name": "manifest.deployer.landscaper.gardener.cloud",
        "version": "v"}, "providerStatus": status["providerStatus"]}});
    world.items().patch_status("item", &PatchParams::default(), &Patch::Merge(adopted)).await.unwrap();
    world.delete("item").await;
    world.trigger("item", "two").await;
    world.gone("item").await;
    assert_eq!((world.value("a").await, world.value("b").await.is_some()), (None, true), "b is in no group");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_try_of_a_failed_look_keeps_its_error_to_be_seen() {
    let world = Items::new().await;
    let mut lost = proposal("a", json!({}));
    lost["stages"][0]["writes"][0]["object"]["metadata"]["namespace"] = json!("late");
    world.create("item", &[lost], json!({})).await;
    world.trigger("item", "one").await;
    world.waiting("item", "namespaces \"late\" not found").await;
    let calls = world.calls();
    world.wait("item", |_| world.calls() >= calls + 3).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "late"}});
    let api: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(world.client.clone());
    api.create(&Default::default(), &serde_json::from_value(namespace).unwrap()).await.unwrap();
    let status = world.finished("item", "one").await;
    assert_eq!((&status["phase"], status.get("lastError")), (&json!("Succeeded"), None));
    assert_eq!(status["lastErrors"].as_array().unwrap().len(), 1);
    // The store knows an end a moment before it tells of it.
    world.wait("item", |_| world.changes.lock().unwrap().iter().any(|line| line == "Succeeded one")).await;
    let changes: Vec<String> = std::mem::take(&mut *world.changes.lock().unwrap());
    let of_job: Vec<&str> = changes.iter().map(String::as_str).filter(|line| !line.is_empty()).collect();
    assert_eq!(of_job, ["Progressing", "Progressing", "Succeeded one"], "the inventory, the error, the end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_later_call_that_has_to_be_asked_again_keeps_its_checkpoint() {
    let mut world = Items::new().await;
    let first = proposal("a", json!({"next": {"continueWith": [1]}}));
    world.create("item", &[first, json!({"closed": proposal("b", json!({}))})], json!({})).await;
    world.trigger("item", "one").await;
    world.waiting("item", "plugin scripted: closed").await;
    let at = world.items().get("item").await.unwrap().status.unwrap().provider_status.unwrap()["orangery"]["progress"]
        ["at"]
        .clone();
    assert_eq!(at, json!({"calling": {}}));
    world.restart();
    world.plugin.open();
    let status = world.finished("item", "one").await;
    assert_eq!(status["phase"], json!("Succeeded"), "{status:#}");
    let checkpoints: Vec<bool> =
        world.plugin.calls.lock().unwrap().iter().map(|item| item.checkpoint.is_some()).collect();
    let (first, later) = checkpoints.split_first().unwrap();
    assert!(!first && later.len() > 1 && later.iter().all(|has_one| *has_one), "{checkpoints:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_100_what_may_only_be_created_is_created_when_the_object_that_goes_is_gone() {
    for owned in ["managed", "fallback"] {
        let world = Items::new().await;
        let metadata = json!({"name": "a", "finalizers": ["example.org/hold"]});
        let theirs = json!({"metadata": metadata, "data": {"k": "theirs"}});
        world.config_maps().create(&Default::default(), &serde_json::from_value(theirs).unwrap()).await.unwrap();
        world.config_maps().delete("a", &Default::default()).await.unwrap();
        let mut creates = proposal("a", json!({}));
        let how = if owned == "managed" { "create" } else { "replace" };
        orangery_proposal::overlay::overlay(
            &mut creates["stages"][0]["writes"][0],
            &json!({"how": how, "owned": owned}),
        );
        world.create("item", &[creates], json!({})).await;
        world.trigger("item", "one").await;
        world.waiting("item", "waiting for ConfigMap default/a to be gone").await;
        world.patch_config_map("a", json!({"metadata": {"finalizers": null}})).await;
        let status = world.finished("item", "one").await;
        assert_eq!((&status["phase"], world.value("a").await.as_deref()), (&json!("Succeeded"), Some("v")), "{owned}");
        assert_eq!(status["providerStatus"]["managedResources"].as_array().map(Vec::len), Some(1), "{owned}");
    }
}
