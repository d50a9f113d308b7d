//! What items have left that do not exist any more, and what belongs to others: hooks, objects and revisions of a release.

use orangery_tests::{
    chart::{deploy, deploy_well, end, hook, hook_with_policies, item, job, packed, revision},
    objects::{NAMESPACE, Objects},
    tree::{any, ask, blueprint, deploys, executions, imports_cluster, in_phase, installation, next_job, on_cluster},
};
use serde_json::{Value, json};

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

fn template(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")
}

fn release() -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1"})
}

/// The same item under another name.
fn named(name: &str, mut item: Value) -> Value {
    item["metadata"]["name"] = json!(name);
    item
}

/// The deletion of an item without an Execution begins by itself (C-161): soon nothing is there that could be asked.
async fn delete(cluster: &Objects, name: &str) {
    cluster.delete(&any("DeployItem", name)).await;
    cluster.expect_absent(&any("DeployItem", name)).await;
}

/// Ends the Job of the hook, which is another one than that of this uid.
async fn end_anew(cluster: &Objects, former: &Value) -> Value {
    let is_new = |job: &Value| job.pointer("/metadata/uid") != Some(former);
    let anew = cluster.expect_that(&job("migrate"), "is the former one", is_new).await;
    end(cluster, "migrate", "Complete").await;
    anew.pointer("/metadata/uid").cloned().unwrap_or_default()
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_114_a_release_goes_on_where_an_item_has_left_it_that_does_not_exist_any_more() {
    let cluster = crate::cluster().await;
    let migrate = hook("migrate", "pre-install,pre-upgrade");
    let (a, left) = (template("a"), template("left"));
    let first = packed("1.0.0", &[("a.yaml", &a), ("left.yaml", &left), ("migrate.yaml", &migrate)]);
    let second = packed("2.0.0", &[("a.yaml", &a), ("migrate.yaml", &migrate)]);
    deploy(&cluster, &item(&first, &json!({}))).await;
    let uid = end_anew(&cluster, &Value::Null).await;
    cluster.expect(&in_phase("DeployItem", "item", "Succeeded")).await;
    let stays = json!({"landscaper.gardener.cloud/delete-without-uninstall": "true"});
    cluster.annotate(&any("DeployItem", "item"), stays).await;
    delete(&cluster, "item").await;
    cluster.expect(&config_map("left")).await;

    deploy(&cluster, &named("again", item(&second, &json!({})))).await;
    let uid = end_anew(&cluster, &uid).await;
    cluster.expect(&in_phase("DeployItem", "again", "Succeeded")).await;
    cluster.expect_absent(&config_map("left")).await;
    delete(&cluster, "again").await;
    cluster.expect_absent(&release()).await;
    cluster.expect_absent(&config_map("a")).await;

    // The hook of the release that was uninstalled is still there, as Helm leaves it.
    deploy(&cluster, &item(&second, &json!({}))).await;
    end_anew(&cluster, &uid).await;
    cluster.expect(&in_phase("DeployItem", "item", "Succeeded")).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_115_a_hook_of_an_item_that_lives_is_not_written_over_by_that_of_another() {
    let cluster = crate::cluster().await;
    let chart = packed("1.0.0", &[("migrate.yaml", &hook("migrate", "pre-install"))]);
    deploy(&cluster, &item(&chart, &json!({}))).await;
    let uid = end_anew(&cluster, &Value::Null).await;
    cluster.expect(&in_phase("DeployItem", "item", "Succeeded")).await;
    deploy(&cluster, &named("other", item(&chart, &json!({"config": {"name": "another"}})))).await;
    let failed = cluster.expect(&in_phase("DeployItem", "other", "Failed")).await;
    assert_eq!(
        failed.pointer("/status/lastError/message"),
        Some(&json!(
            "plugin helm: pre-install hook Job migrate (app/templates/migrate.yaml): Job default/migrate has to be deleted before it is \
             made anew, and stays: it belongs to DeployItem default/item; delete it by hand where it is not needed, or give one of the \
             two another name"
        ))
    );
    assert_eq!(cluster.expect(&job("migrate")).await.pointer("/metadata/uid"), Some(&uid));
}

/// Waits until a job of the item has failed, and answers why.
async fn failure(cluster: &Objects) -> String {
    let failed = cluster.expect(&in_phase("DeployItem", "item", "Failed")).await;
    failed.pointer("/status/lastError/message").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn exists_already(at: &str) -> String {
    format!(
        "plugin helm: {at} hook Job migrate (app/templates/migrate.yaml): Job default/migrate exists already, and none of its policies \
         deletes it before the hook runs; delete it by hand, or add before-hook-creation to its annotation helm.sh/hook-delete-policy"
    )
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_121_a_hook_that_no_policy_deletes_before_is_not_taken_for_one_that_has_run() {
    let cluster = crate::cluster().await;
    let migrate = hook_with_policies("migrate", "pre-install,pre-upgrade", "hook-failed");
    let chart = packed("1.0.0", &[("migrate.yaml", &migrate)]);
    deploy(&cluster, &item(&chart, &json!({}))).await;
    let uid = end_anew(&cluster, &Value::Null).await;
    cluster.expect(&in_phase("DeployItem", "item", "Succeeded")).await;
    deploy(&cluster, &item(&chart, &json!({}))).await;
    assert_eq!(failure(&cluster).await, exists_already("pre-upgrade"));
    assert_eq!(cluster.expect(&job("migrate")).await.pointer("/metadata/uid"), Some(&uid), "it is still there");
    cluster.expect(&revision(2, "failed")).await;
    cluster.delete(&job("migrate")).await;
    deploy(&cluster, &item(&chart, &json!({}))).await;
    end_anew(&cluster, &uid).await;
    cluster.expect(&revision(3, "deployed")).await;
    cluster.expect(&in_phase("DeployItem", "item", "Succeeded")).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_121_a_job_of_somebody_else_is_not_taken_for_a_hook() {
    let cluster = crate::cluster().await;
    let mut theirs = job("migrate");
    let container = json!({"name": "theirs", "image": "theirs"});
    theirs["spec"] = json!({"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}});
    cluster.apply(&theirs).await;
    end(&cluster, "migrate", "Complete").await;
    let migrate = hook_with_policies("migrate", "pre-install", "hook-failed");
    deploy(&cluster, &item(&packed("1.0.0", &[("migrate.yaml", &migrate)]), &json!({}))).await;
    assert_eq!(failure(&cluster).await, exists_already("pre-install"));
    let left = cluster.expect(&job("migrate")).await;
    assert_eq!(left.pointer("/spec/template/spec/containers/0/name"), Some(&json!("theirs")));
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_117_deletion_groups_of_a_release_delete_nothing_of_users() {
    let cluster = crate::cluster().await;
    cluster.apply(&config_map("users")).await;
    let groups = json!([{"customResourceGroup": {"resources": [{"apiVersion": "v1", "kind": "ConfigMap", "namespaces": ["default"]}],
        "deleteAllResources": true}}]);
    let chart = packed("1.0.0", &[("a.yaml", &template("a"))]);
    deploy_well(&cluster, &item(&chart, &json!({"config": {"deletionGroups": groups}}))).await;
    delete(&cluster, "item").await;
    cluster.expect_absent(&config_map("a")).await;
    cluster.expect(&config_map("users")).await;
}

/// As Landscaper's deployer leaves the status of a release without workloads.
#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_118_a_release_that_no_inventory_tells_of_is_uninstalled() {
    let cluster = crate::cluster().await;
    let chart = packed("1.0.0", &[("a.yaml", &template("a"))]);
    deploy_well(&cluster, &item(&chart, &json!({}))).await;
    let status = json!({"providerStatus": {"managedResources": [], "orangery": null, "release": null}});
    cluster.patch_status(&any("DeployItem", "item"), status).await;
    delete(&cluster, "item").await;
    cluster.expect_absent(&release()).await;
    cluster.expect_absent(&config_map("a")).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_118_a_release_whose_configuration_is_invalid_by_now_is_uninstalled() {
    let cluster = crate::cluster().await;
    let chart = packed("1.0.0", &[("a.yaml", &template("a"))]);
    deploy_well(&cluster, &item(&chart, &json!({}))).await;
    deploy(&cluster, &item(&chart, &json!({"config": {"chart": {"bogus": 1}}}))).await;
    cluster.expect(&in_phase("DeployItem", "item", "Failed")).await;
    delete(&cluster, "item").await;
    cluster.expect_absent(&release()).await;
    cluster.expect_absent(&config_map("a")).await;
}

/// An Installation whose one item of this name makes the release of a chart.
fn root(name: &str, chart: &str) -> Value {
    let item = item(chart, &json!({}));
    let items = [json!({
        "name": name, "type": item["spec"]["type"], "target": {"import": "cluster"}, "config": item["spec"]["config"],
    })];
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&items)});
    on_cluster(installation("root", &blueprint(fields)))
}

/// The item that goes on with it never comes to do so.
#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_271_a_release_that_is_left_to_an_item_whose_job_fails_goes_with_that_item() {
    let cluster = crate::cluster().await;
    cluster.apply(&root("first", &packed("1.0.0", &[("a.yaml", &template("a"))]))).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let uid = cluster.expect(&config_map("a")).await["metadata"]["uid"].clone();
    cluster.apply(&root("second", &packed("2.0.0", &[("a.yaml", "{{ fail \"no\" }}")]))).await;
    ask(&cluster, "root").await;
    cluster.expect(&in_phase("Installation", "root", "Failed")).await;
    assert_eq!(cluster.expect(&config_map("a")).await["metadata"]["uid"], uid);
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    cluster.expect_absent(&config_map("a")).await;
    cluster.expect_absent(&release()).await;
}

/// An Installation whose one item deploys these objects.
fn manifests(objects: &[Value]) -> Value {
    let mut item = deploys("plain", &[], "1");
    item["config"]["manifests"] =
        objects.iter().map(|object| json!({"policy": "manage", "manifest": object})).collect();
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&[item])});
    on_cluster(installation("root", &blueprint(fields)))
}

/// The same that makes a chart, with these fields of its configuration.
fn charted(chart: &str, more: &Value) -> Value {
    let item = item(chart, &json!({"config": more}));
    let items = [json!({
        "name": "chart", "type": item["spec"]["type"], "target": {"import": "cluster"}, "config": item["spec"]["config"],
    })];
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&items)});
    on_cluster(installation("root", &blueprint(fields)))
}

fn placed(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}})
}

/// What stays of the ConfigMap `a` and goes of `b` where the item that had both goes, and a chart has `a`: whether `a` is the same
/// object, and the note of an event of this reason.
async fn moves(more: &Value, reason: &str) -> (bool, String) {
    let cluster = crate::cluster().await;
    cluster.apply(&manifests(&[placed("a"), placed("b")])).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let uid = cluster.expect(&config_map("a")).await["metadata"]["uid"].clone();
    let chart = packed("1.0.0", &[("a.yaml", &template("a"))]);
    next_job(&cluster, &charted(&chart, more)).await;
    cluster.expect_absent(&config_map("b")).await;
    let is_same = cluster.expect(&config_map("a")).await["metadata"]["uid"] == uid;
    let event = cluster.expect(&json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "reason": reason})).await;
    // It is the chart's.
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    cluster.expect_absent(&config_map("a")).await;
    (is_same, event["note"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_205_an_item_that_goes_leaves_its_objects_to_the_chart_that_writes_over_them_now() {
    for more in [
        json!({"helmDeployment": false}),
        json!({"helmDeployment": true, "helmDeploymentConfig": {"install": {"takeOwnership": true}}}),
    ] {
        let (is_same, note) = moves(&more, "ObjectsStay").await;
        assert!(is_same, "{more}: {note}");
        let begin = format!("ConfigMap {NAMESPACE}/a of the target cluster stays: DeployItem root-");
        assert!(note.starts_with(&begin) || note.contains(" has it in its chart, and goes on with it"), "{note}");
    }
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_205_what_a_chart_refuses_to_take_over_is_made_anew_and_told() {
    let (is_same, note) = moves(&json!({"helmDeployment": true}), "ObjectsMadeAnew").await;
    assert!(!is_same && note.contains("cannot be planned: ") && note.contains("takeOwnership"), "{note}");
}

/// The namespace that a chart is installed in, with all that is in it.
#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_205_a_namespace_of_an_item_that_goes_stays_with_the_chart_that_makes_it() {
    let cluster = crate::cluster().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "moved"}});
    cluster.apply(&manifests(&[namespace.clone(), placed("b")])).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let uid = cluster.expect(&namespace).await["metadata"]["uid"].clone();
    let within =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of-users", "namespace": "moved"}});
    cluster.apply(&within).await;
    let chart = packed("1.0.0", &[("a.yaml", &template("a"))]);
    next_job(&cluster, &charted(&chart, &json!({"namespace": "moved", "createNamespace": true}))).await;
    cluster.expect_absent(&config_map("b")).await;
    assert_eq!(cluster.expect(&namespace).await["metadata"]["uid"], uid);
    // It stays when the chart goes, too.
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    assert_eq!(cluster.expect(&namespace).await["metadata"]["uid"], uid);
    cluster.expect(&within).await;
    cluster.delete(&namespace).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_175_a_release_goes_on_where_its_item_is_called_otherwise() {
    let cluster = crate::cluster().await;
    cluster.apply(&root("first", &packed("1.0.0", &[("a.yaml", &template("a"))]))).await;
    let job = cluster.expect(&in_phase("Installation", "root", "Succeeded")).await["status"]["jobID"].clone();
    let uid = cluster.expect(&config_map("a")).await["metadata"]["uid"].clone();
    cluster.apply(&root("second", &packed("2.0.0", &[("a.yaml", &template("a"))]))).await;
    ask(&cluster, "root").await;
    let is_done = |root: &Value| root["status"]["jobID"] != job && root["status"]["phase"] == "Succeeded";
    cluster.expect_that(&any("Installation", "root"), "did not succeed again", is_done).await;
    assert_eq!(cluster.expect(&config_map("a")).await["metadata"]["uid"], uid);
    cluster.expect(&revision(1, "superseded")).await;
    cluster.expect(&revision(2, "deployed")).await;
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    cluster.expect_absent(&config_map("a")).await;
    cluster.expect_absent(&release()).await;
}
