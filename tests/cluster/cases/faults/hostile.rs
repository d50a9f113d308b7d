//! Bad input and rude hands: never a hang, always a status that says what to do.

use std::time::Duration;

use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, PropagationPolicy},
    runtime::wait::await_condition,
};
use orangery_tests::{
    external_deployer::{ExternalDeployer, item},
    objects::Objects,
    tree::{
        API, any, ask, blueprint, deploys, executions, imports_cluster, in_phase, installation, items, on_cluster,
        subinstallation, wait_until_idle,
    },
};
use serde_json::{Value, json};
use tokio::time::timeout;

/// How long a thousand of something may take on a busy machine, with nothing optimised.
const LONG: Duration = Duration::from_secs(240);

/// An Installation that exports a value under its name, and imports these; it has one item of its name.
fn member(name: &str, imports: &[&str]) -> Value {
    let string = |name: &str| json!({"name": name, "type": "data", "schema": {"type": "string"}});
    let definitions: Vec<Value> = imports.iter().map(|import| string(import)).collect();
    let mut member = installation(
        name,
        &blueprint(json!({
            "imports": definitions,
            "exports": [string("out")],
            "deployExecutions": items(&[(name, &[])], "1"),
            "exportExecutions": [{"name": "e", "type": "Jinja", "template": "exports: {out: v}"}],
        })),
    );
    let imports: Vec<Value> = imports.iter().map(|import| json!({"name": import, "dataRef": import})).collect();
    member["spec"]["imports"] = json!({"data": imports});
    member["spec"]["exports"] = json!({"data": [{"name": "out", "dataRef": name}]});
    member
}

/// A root `root` with an item `r` and a sub-installation with an item `s`, which has run well.
async fn family(cluster: &Objects) {
    let sub = blueprint(json!({"deployExecutions": items(&[("s", &[])], "1")}));
    let root = blueprint(json!({
        "deployExecutions": items(&[("r", &[])], "1"), "subinstallations": [subinstallation("sub", &sub)],
    }));
    cluster.apply(&installation("root", &root)).await;
    succeed(cluster, &["r", "s"]).await;
}

/// The items of a job of `root` end well, and so does it.
async fn succeed(cluster: &Objects, items: &[&str]) {
    for item in items {
        ExternalDeployer(cluster).succeed(item).await;
    }
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
}

/// The sub-installation of a family.
async fn sub(cluster: &Objects) -> Value {
    let is_sub = |object: &Value| object["metadata"]["labels"]["landscaper.gardener.cloud/encompassed-by"] == "root";
    cluster.expect_that(&any("Installation", "root"), "has no sub-installation", is_sub).await
}

/// The message of the failure that an Installation ends with.
async fn failure(cluster: &Objects, name: &str) -> String {
    let failed = cluster.expect(&in_phase("Installation", name, "Failed")).await;
    failed["status"]["lastError"]["message"].as_str().unwrap_or_default().to_owned()
}

/// Takes the finalizers of an object away, as one does who wants it gone at any price.
async fn release(cluster: &Objects, object: &Value) {
    let metadata = json!({"name": object["metadata"]["name"], "finalizers": null});
    let patch = json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": metadata});
    cluster.merge(&patch).await;
}

fn installations(cluster: &Objects) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("landscaper.gardener.cloud", "v1alpha1", "Installation");
    Api::default_namespaced_with(cluster.client().clone(), &ApiResource::from_gvk(&kind))
}

async fn delete_with(cluster: &Objects, name: &str, how: PropagationPolicy) {
    let how = DeleteParams { propagation_policy: Some(how), ..DeleteParams::default() };
    cluster.delete_with(&any("Installation", name), &how).await;
}

#[tokio::test]
async fn c_17_roots_that_import_each_other_fail_with_their_names_and_can_be_deleted() {
    let cluster = crate::cluster().await;
    for (name, imports) in [("a", ["c"]), ("b", ["a"]), ("c", ["b"])] {
        let mut member = member(name, &imports);
        member["metadata"]["annotations"] = json!({});
        cluster.apply(&member).await;
    }
    for (name, circle) in [("a", "a -> c -> b -> a"), ("b", "b -> a -> c -> b")] {
        ask(&cluster, name).await;
        let message = failure(&cluster, name).await;
        let expected =
            format!("installations {circle} depend on each other in a circle; remove one of these dependencies");
        assert_eq!(message, expected);
    }
    for name in ["a", "b", "c"] {
        cluster.delete(&any("Installation", name)).await;
    }
    cluster.expect_absent(&json!({"apiVersion": API, "kind": "Installation"})).await;
}

#[tokio::test]
async fn c_18_an_interrupt_does_not_lose_the_request_that_waited_for_the_job() {
    let cluster = crate::cluster().await;
    cluster.apply(&member("a", &[])).await;
    ExternalDeployer(&cluster).begin("a").await;
    let first = ExternalDeployer(&cluster).triggered("a").await["status"]["jobID"].clone();
    ask(&cluster, "a").await;
    let noted = |object: &Value| object["status"]["pendingOperation"] == "reconcile";
    cluster.expect_that(&any("Installation", "a"), "does not note the request", noted).await;
    cluster.annotate(&any("Installation", "a"), json!({"landscaper.gardener.cloud/operation": "interrupt"})).await;
    let is_next = |item: &Value| item["status"]["jobID"] != first && item["status"]["jobID"].is_string();
    cluster.expect_that(&item(), "got no second job", is_next).await;
    ExternalDeployer(&cluster).succeed("a").await;
    let done = cluster.expect(&in_phase("Installation", "a", "Succeeded")).await;
    assert_eq!(done["status"]["pendingOperation"], Value::Null);
}

#[tokio::test]
async fn c_32_an_interrupt_ends_a_job_that_has_not_come_to_its_children() {
    let cluster = crate::cluster().await;
    cluster.apply(&member("first", &[])).await;
    ExternalDeployer(&cluster).begin("first").await;
    cluster.apply(&member("second", &["first"])).await;
    cluster.expect(&in_phase("Installation", "second", "Init")).await;
    let interrupts = json!({"landscaper.gardener.cloud/operation": "interrupt"});
    cluster.annotate(&any("Installation", "second"), interrupts).await;
    let message = failure(&cluster, "second").await;
    assert!(message.starts_with("the operation was interrupted by the annotation"), "{message}");
    assert_eq!(ExternalDeployer(&cluster).find("second").await, None, "it has made nothing");
    // Another job is another matter.
    ExternalDeployer(&cluster).succeed("first").await;
    ExternalDeployer(&cluster).succeed("second").await;
    cluster.expect(&in_phase("Installation", "second", "Succeeded")).await;
}

#[tokio::test]
async fn a_circle_of_sub_installations_fails_before_anything_is_made() {
    let cluster = crate::cluster().await;
    let string = |name: &str| json!([{"name": name, "type": "data", "schema": {"type": "string"}}]);
    let part = |name: &str, from: &str| {
        let fields = json!({"imports": string("in"), "exports": string("out")});
        let mut part = subinstallation(name, &blueprint(fields));
        part["imports"] = json!({"data": [{"name": "in", "dataRef": from}]});
        part["exports"] = json!({"data": [{"name": "out", "dataRef": name}]});
        part
    };
    let root = blueprint(json!({"subinstallations": [part("x", "y"), part("y", "x")]}));
    cluster.apply(&installation("root", &root)).await;
    let message = failure(&cluster, "root").await;
    assert!(message.contains("x -> y -> x") || message.contains("y -> x -> y"), "{message}");
    assert_eq!(cluster.list(&any("Installation", "root")).await.len(), 1);
}

#[tokio::test]
async fn c_30_children_deleted_by_force_during_a_job_fail_it_and_the_next_one_makes_them_anew() {
    let cluster = crate::cluster().await;
    family(&cluster).await;
    ask(&cluster, "root").await;
    ExternalDeployer(&cluster).begin("r").await;
    let lost = ExternalDeployer(&cluster).triggered("s").await;
    cluster.delete(&lost).await;
    release(&cluster, &lost).await;
    ExternalDeployer(&cluster).succeed("r").await;
    let message = failure(&cluster, "root").await;
    let fix = "s is missing: its object was deleted during the job; reconcile the root installation again";
    assert!(message.contains(fix), "{message}");
    ask(&cluster, "root").await;
    succeed(&cluster, &["r", "s"]).await;
}

/// Also an Execution, without which the Installation would have nothing more to wait for.
#[tokio::test]
async fn c_30_an_execution_deleted_by_force_during_a_job_fails_it() {
    let cluster = crate::cluster().await;
    family(&cluster).await;
    ask(&cluster, "root").await;
    ExternalDeployer(&cluster).triggered("r").await;
    ExternalDeployer(&cluster).succeed("s").await;
    let execution = any("Execution", "root");
    cluster.delete(&execution).await;
    release(&cluster, &execution).await;
    let message = failure(&cluster, "root").await;
    let fix = "execution root is missing: its object was deleted during the job; reconcile the root installation again";
    assert_eq!(message, fix);
    ask(&cluster, "root").await;
    // Where a garbage collector is quick, the item of the lost Execution is gone before it is triggered once more.
    let again = async |name: &str| loop {
        ExternalDeployer(&cluster).succeed(name).await;
    };
    let succeeded = in_phase("Installation", "root", "Succeeded");
    tokio::select! {
        _ = cluster.expect(&succeeded) => {}
        () = again("r") => {}
        () = again("s") => {}
    }
}

#[tokio::test]
async fn children_deleted_by_hand_wait_for_the_next_job_which_replaces_them() {
    let cluster = crate::cluster().await;
    family(&cluster).await;
    let child = sub(&cluster).await;
    cluster.delete(&child).await;
    cluster.delete(&any("Execution", "root")).await;
    wait_until_idle(&cluster).await;
    let marked = sub(&cluster).await;
    assert_eq!(marked["metadata"]["uid"], child["metadata"]["uid"], "exe_41: a deletion without a job deletes nothing");
    ask(&cluster, "root").await;
    // First those that go, one after the other, then those that come.
    for name in ["s", "r", "r", "s"] {
        ExternalDeployer(&cluster).succeed(name).await;
    }
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    assert_ne!(sub(&cluster).await["metadata"]["uid"], child["metadata"]["uid"]);
}

/// Takes the finalizers of a tree away, but for those in `held`.
async fn release_family(cluster: &Objects, held: &[&str]) {
    let execution = any("Execution", "root");
    let items =
        [ExternalDeployer(cluster).find("r").await, ExternalDeployer(cluster).find("s").await].into_iter().flatten();
    for object in [any("Installation", "root"), sub(cluster).await, execution].into_iter().chain(items) {
        if !held.iter().any(|name| object["metadata"]["name"] == *name && object["kind"] == "Installation") {
            release(cluster, &object).await;
        }
    }
}

#[tokio::test]
async fn finalizers_that_were_edited_away_come_back_with_the_next_job() {
    let cluster = crate::cluster().await;
    family(&cluster).await;
    release_family(&cluster, &[]).await;
    ask(&cluster, "root").await;
    succeed(&cluster, &["r", "s"]).await;
    let held = json!(["finalizer.landscaper.gardener.cloud"]);
    for kind in ["Installation", "Execution"] {
        let held = json!({"name": "root", "finalizers": held});
        cluster.expect(&json!({"apiVersion": API, "kind": kind, "metadata": held})).await;
    }
    assert_eq!(sub(&cluster).await["metadata"]["finalizers"], held);
}

/// Nothing goes without its deployer having let it go, so that nothing that was deployed is forgotten.
#[tokio::test]
async fn children_whose_finalizers_were_edited_away_are_deleted_by_their_jobs_all_the_same() {
    let cluster = crate::cluster().await;
    family(&cluster).await;
    release_family(&cluster, &["root"]).await;
    cluster.delete(&any("Installation", "root")).await;
    for name in ["r", "s"] {
        ExternalDeployer(&cluster).succeed(name).await;
    }
    cluster.expect_absent(&any("Installation", "root")).await;
}

/// A root that is gone hands no job down; what it left behind deletes itself, through its deployers.
#[tokio::test]
async fn children_of_a_root_deleted_without_its_finalizer_delete_themselves() {
    let cluster = crate::cluster().await;
    family(&cluster).await;
    release(&cluster, &any("Installation", "root")).await;
    cluster.delete(&any("Installation", "root")).await;
    for name in ["r", "s"] {
        ExternalDeployer(&cluster).succeed(name).await;
    }
    cluster.expect_absent(&json!({"apiVersion": API, "kind": "Installation"})).await;
    cluster.expect_absent(&json!({"apiVersion": API, "kind": "Execution"})).await;
    cluster.expect_absent(&item()).await;
}

#[tokio::test]
async fn c_23_wf_48_wf_55_cascade_foreground_deletes_the_tree_through_its_deployers() {
    cascades(PropagationPolicy::Foreground).await;
}

#[tokio::test]
async fn c_23_wf_48_wf_55_cascade_background_deletes_the_tree_through_its_deployers() {
    cascades(PropagationPolicy::Background).await;
}

async fn cascades(how: PropagationPolicy) {
    let cluster = crate::cluster().await;
    family(&cluster).await;
    delete_with(&cluster, "root", how).await;
    // No item goes before its deployer lets it go.
    for name in ["r", "s"] {
        ExternalDeployer(&cluster).succeed(name).await;
    }
    cluster.expect_absent(&json!({"apiVersion": API, "kind": "Installation"})).await;
    cluster.expect_absent(&item()).await;
}

/// `--cascade=orphan` keeps what lies below: the sub-installation becomes a root of its own, with all that it has.
#[tokio::test]
async fn c_23_cascade_orphan_keeps_the_sub_installation_as_a_root() {
    let cluster = crate::cluster().await;
    family(&cluster).await;
    let child = sub(&cluster).await;
    let is_orphan = |object: &Value| {
        object["metadata"]["uid"] == child["metadata"]["uid"]
            && object["metadata"]["ownerReferences"].as_array().is_none_or(Vec::is_empty)
    };
    delete_with(&cluster, "root", PropagationPolicy::Orphan).await;
    cluster.expect_that(&child, "is owned still", is_orphan).await;
    // The items of the root's own Execution go with it.
    ExternalDeployer(&cluster).succeed("r").await;
    cluster.expect_absent(&any("Installation", "root")).await;
    let kept = ExternalDeployer(&cluster).find("s").await.unwrap_or_default();
    assert_eq!(kept["metadata"]["deletionTimestamp"], Value::Null);
    cluster.delete(&child).await;
    ExternalDeployer(&cluster).succeed("s").await;
    cluster.expect_absent(&child).await;
}

/// Jobs that an older leader began: the operator that finds one ends it, or replaces it by the job of the root.
#[tokio::test]
async fn c_31_jobs_of_an_older_leader_are_ended_or_replaced() {
    let cluster = crate::cluster().await;
    family(&cluster).await;
    let older = json!({"jobID": "older"});
    let left = ExternalDeployer(&cluster).find("r").await.unwrap_or_default();
    cluster.patch_status(&left, older.clone()).await;
    cluster.patch_status(&sub(&cluster).await, older).await;
    // The sub-installation does the job that it finds, and is in the middle of it as the next one of the root comes.
    let working = ExternalDeployer(&cluster).triggered("s").await;
    assert_eq!(working["status"]["jobID"], "older");
    ask(&cluster, "root").await;
    let is_current = |object: &Value| object["metadata"]["name"] == "root" && object["status"]["jobID"] != "older";
    cluster.expect_that(&any("Execution", "root"), "has no new job", is_current).await;
    let replaced =
        |object: &Value| object["metadata"]["name"] == left["metadata"]["name"] && object["status"]["jobID"] != "older";
    cluster.expect_that(&item(), "keeps the old job", replaced).await;
    let anew = |object: &Value| {
        object["metadata"]["name"] == working["metadata"]["name"] && object["status"]["jobID"] != "older"
    };
    cluster.expect_that(&item(), "keeps the job of its sub-installation", anew).await;
    succeed(&cluster, &["r", "s"]).await;
}

#[tokio::test]
async fn orc_35_a_deleted_target_is_named_and_its_return_is_enough() {
    let cluster = crate::cluster_with(&["--guards=false"]).await;
    let kept = cluster.expect(&any("Target", "cluster")).await;
    let content = json!({
        "apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
        "manifests": [{"manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}}}],
    });
    let items = json!({"deployItems": [{
        "name": "m", "type": "landscaper.gardener.cloud/kubernetes-manifest", "target": {"import": "cluster"}, "config": content,
    }]});
    let mut root = installation(
        "root",
        &blueprint(json!({
            "imports": [{"name": "cluster", "type": "target", "targetType": "landscaper.gardener.cloud/kubernetes-cluster"}],
            "deployExecutions": [{"name": "d", "type": "Jinja", "template": items.to_string()}],
        })),
    );
    root["spec"]["imports"] = json!({"targets": [{"name": "cluster", "target": "cluster"}]});
    cluster.apply(&root).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    cluster.delete(&kept).await;
    cluster.expect_absent(&any("Target", "cluster")).await;
    ask(&cluster, "root").await;
    let message = failure(&cluster, "root").await;
    assert!(
        message.contains("Target") && message.contains("cluster") && message.contains("does not exist"),
        "{message}"
    );
    cluster
        .apply(&json!({"apiVersion": API, "kind": "Target", "metadata": {"name": "cluster"}, "spec": kept["spec"]}))
        .await;
    ask(&cluster, "root").await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
}

/// A root whose blueprint has this template of deploy items, and imports the Target of the cluster.
/// A metadata service answers with credentials of the machine, so nobody is let there; an item that wants to is not tried again.
#[tokio::test]
async fn c_95_a_target_that_is_a_metadata_service_fails_its_item_at_once_and_harms_nobody_else() {
    let cluster = crate::cluster().await;
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "http://169.254.169.254"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    });
    let spec = json!({
        "type": "landscaper.gardener.cloud/kubernetes-cluster", "config": {"kubeconfig": kubeconfig.to_string()},
    });
    cluster.apply(&json!({"apiVersion": API, "kind": "Target", "metadata": {"name": "metadata"}, "spec": spec})).await;
    let root = |name: &str| {
        let items = executions(&[deploys(name, &[], "1")]);
        on_cluster(installation(name, &blueprint(json!({"imports": imports_cluster(), "deployExecutions": items}))))
    };
    let mut hostile = root("hostile");
    hostile["spec"]["imports"]["targets"] = json!([{"name": "cluster", "target": "metadata"}]);
    cluster.apply(&hostile).await;
    cluster.apply(&root("neighbour")).await;
    let sentence = "169.254.169.254 leads to 169.254.169.254, a link-local address, where clouds have their metadata service; \
                    no client of this host connects there";
    let message = failure(&cluster, "hostile").await;
    assert!(message.contains(sentence), "{message}");
    cluster.expect(&in_phase("Installation", "neighbour", "Succeeded")).await;
}

fn of_manifests(template: &str) -> Value {
    let executions = json!([{"name": "d", "type": "Jinja", "template": template}]);
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions});
    on_cluster(installation("root", &blueprint(fields)))
}

const MANIFESTS: &str = "type: landscaper.gardener.cloud/kubernetes-manifest\n  target: {import: cluster}\n  config:\n    \
    apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2\n    kind: ProviderConfiguration\n    manifests:\n";

#[tokio::test]
async fn a_kind_whose_definition_was_removed_is_named_and_holds_up_no_deletion() {
    let cluster = crate::cluster().await;
    let names = json!({"plural": "lamps", "singular": "lamp", "kind": "Lamp", "listKind": "LampList"});
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "lamps.example.org"},
        "spec": {"group": "example.org", "names": names, "scope": "Namespaced", "versions": [version]},
    });
    cluster.apply(&definition).await;
    let lamp = "{apiVersion: example.org/v1, kind: Lamp, metadata: {name: lamp, namespace: default}}";
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: beside, namespace: default}}";
    let manifests = format!("    - manifest: {lamp}\n    - manifest: {map}\n");
    cluster.apply(&of_manifests(&format!("deployItems:\n- name: a\n  timeout: 20s\n  {MANIFESTS}{manifests}"))).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    cluster.delete(&definition).await;
    cluster.expect_absent(&definition).await;
    ask(&cluster, "root").await;
    let message = failure(&cluster, "root").await;
    assert!(message.contains("Lamp") && message.contains("example.org/v1"), "{message}");
    let beside = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "beside"}});
    cluster.expect(&beside).await;
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    cluster.expect_absent(&beside).await;
}

#[tokio::test]
async fn a_blueprint_of_one_megabyte_is_deployed() {
    let cluster = crate::cluster().await;
    let mut root = installation("root", &blueprint(json!({"deployExecutions": items(&[("r", &[])], "1")})));
    root["spec"]["blueprint"]["inline"]["filesystem"]["docs"] = json!({"long.txt": "0123456789abcdef".repeat(65_000)});
    cluster.apply(&root).await;
    succeed(&cluster, &["r"]).await;
}

#[tokio::test]
async fn a_thousand_items_are_deployed_and_deleted() {
    let cluster = crate::cluster().await;
    let config = "{apiVersion: mock.deployer.landscaper.gardener.cloud/v1alpha1, kind: ProviderConfiguration}";
    let template = format!(
        "deployItems:\n{{% for n in range(1000) %}}\n- {{name: i-{{{{ n }}}}, type: landscaper.gardener.cloud/mock, config: {config}}}\n{{% endfor %}}\n"
    );
    let items = json!([{"name": "d", "type": "Jinja", "template": template}]);
    cluster.apply(&installation("root", &blueprint(json!({"deployExecutions": items})))).await;
    let succeeded = |root: Option<&DynamicObject>| root.is_some_and(|root| root.data["status"]["phase"] == "Succeeded");
    let done = await_condition(installations(&cluster), "root", succeeded);
    timeout(LONG, done).await.expect("a thousand items end in time").expect("the watch goes on");
    assert_eq!(cluster.list(&item()).await.len(), 1000);
}

#[tokio::test]
async fn a_namespace_that_terminates_takes_its_tree_along() {
    let cluster = crate::cluster().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "short"}});
    cluster.apply(&namespace).await;
    let template = json!({"deployItems": [{"name": "mock", "type": "landscaper.gardener.cloud/mock", "config": {
        "apiVersion": "mock.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration",
    }}]});
    let of = blueprint(json!({"deployExecutions": [{"name": "d", "type": "Jinja", "template": template.to_string()}]}));
    let of = blueprint(json!({"subinstallations": [subinstallation("sub", &of)]}));
    let mut root = installation("root", &of);
    root["metadata"]["namespace"] = json!("short");
    cluster.apply(&root).await;
    let mut done = in_phase("Installation", "root", "Succeeded");
    done["metadata"]["namespace"] = json!("short");
    cluster.expect(&done).await;
    cluster.delete(&namespace).await;
    cluster.expect_absent(&namespace).await;
}

#[tokio::test]
async fn an_invalid_cron_expression_stops_no_job_and_is_reported_in_an_event() {
    let cluster = crate::cluster().await;
    let mut root = installation("root", &blueprint(json!({"deployExecutions": items(&[("r", &[])], "1")})));
    root["spec"]["automaticReconcile"] = json!({"succeededReconcile": {"cronSpec": "whenever"}});
    cluster.apply(&root).await;
    succeed(&cluster, &["r"]).await;
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event"});
    let message =
        |event: &Value| event["reason"] == "InvalidSchedule" && event["note"].to_string().contains("whenever");
    cluster.expect_that(&event, "does not tell of the cron expression", message).await;
}

/// Those of the original's processes: ours write one object `critical-problems`, and lock nothing.
#[tokio::test]
async fn critical_problems_and_sync_objects_of_others_are_left_alone() {
    let cluster = crate::cluster().await;
    let problem = json!({"podName": "p", "creationTime": "2026-01-01T00:00:00Z", "description": "d"});
    let lock = json!({"podName": "p", "kind": "Installation", "name": "root", "prefix": "x", "lastUpdateTime": "2026-01-01T00:00:00Z"});
    let mut left = Vec::new();
    for (kind, spec) in [("CriticalProblems", json!({"criticalProblem": [problem]})), ("SyncObject", lock)] {
        let object = json!({"apiVersion": API, "kind": kind, "metadata": {"name": "left"}, "spec": spec});
        cluster.apply(&object).await;
        left.push(cluster.expect(&any(kind, "left")).await);
    }
    cluster.apply(&installation("root", &blueprint(json!({"deployExecutions": items(&[("r", &[])], "1")})))).await;
    succeed(&cluster, &["r"]).await;
    for object in left {
        let kind = object["kind"].as_str().unwrap_or_default();
        assert_eq!(cluster.expect(&any(kind, "left")).await, object);
    }
}
