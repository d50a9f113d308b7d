//! Drift of what deploy items have written: told, and written again where the item says so (C-55 to C-61).

use std::fs;

use kube::config::Kubeconfig;
use orangery_tests::{
    objects::{NAMESPACE, Objects},
    proxy::Sound,
    tree::{API, any, ask, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster},
    world::{Ground, World},
};
use serde_json::{Value, json};

/// An Installation of these items on the Target `cluster`.
fn deploying(name: &str, items: &[Value]) -> Value {
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(items)});
    on_cluster(installation(name, &blueprint(fields)))
}

/// An item that deploys these objects, and says this of drift.
fn item(name: &str, drift: Value, manifests: &[Value]) -> Value {
    let mut item = deploys(name, &[], "1");
    item["drift"] = drift;
    item["config"]["manifests"] =
        manifests.iter().map(|manifest| json!({"policy": "manage", "manifest": manifest})).collect();
    item
}

fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}, "data": data})
}

fn data(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// What `status.drift` has of a ConfigMap.
fn drifted(name: &str, what: &str, fields: &[&str]) -> Value {
    let mut one = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": NAMESPACE, "name": name, "what": what});
    if !fields.is_empty() {
        one["fields"] = json!(fields);
    }
    one
}

/// The condition of drift: its status and its reason.
fn condition(item: &Value) -> (String, String) {
    let all = item["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let drifted = all.into_iter().find(|one| one["type"] == "Drifted").unwrap_or_default();
    let text = |field: &str| drifted[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

/// Waits until the one DeployItem says exactly this of drift, and with this status of the condition.
async fn says(cluster: &Objects, status: &str, objects: &[Value]) -> Value {
    let expected = (!objects.is_empty()).then(|| json!({"count": objects.len(), "objects": objects}));
    let holds = |item: &Value| condition(item).0 == status && item["status"].get("drift") == expected.as_ref();
    let what = format!("does not say {status}, {expected:?}");
    let item = cluster.expect_that(&any("DeployItem", ""), &what, holds).await;
    assert_eq!(item["status"]["phase"], "Succeeded", "drift is no progress");
    item
}

async fn installed(cluster: &Objects, root: &Value) {
    cluster.apply(root).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
}

#[tokio::test]
async fn c_58_what_is_changed_by_hand_is_told_by_place_and_no_more_when_it_is_put_back() {
    let cluster = crate::cluster().await;
    let manifests = [config_map("a", json!({"x": "hunter2", "y": "1"})), config_map("b", json!({"x": "1"}))];
    installed(&cluster, &deploying("root", &[item("i", json!({"policy": "Report"}), &manifests)])).await;
    says(&cluster, "False", &[]).await;
    cluster.merge(&data("a", json!({"x": "hunter3", "theirs": "no drift"}))).await;
    let item = says(&cluster, "True", &[drifted("a", "Different", &["/data/x"])]).await;
    let said = item["status"].to_string();
    assert!(!said.contains("hunter"), "{said}");
    let regarding = json!({"kind": "DeployItem", "name": item["metadata"]["name"]});
    let event =
        json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "reason": "DriftDetected", "regarding": regarding});
    let note = cluster.expect(&event).await["note"].to_string();
    assert_eq!(note, r#""ConfigMap default/a: /data/x is different""#);
    cluster.delete(&data("b", json!({}))).await;
    says(&cluster, "True", &[drifted("a", "Different", &["/data/x"]), drifted("b", "Missing", &[])]).await;
    cluster.merge(&data("a", json!({"x": "hunter2"}))).await;
    says(&cluster, "True", &[drifted("b", "Missing", &[])]).await;
    // A job writes all of it again.
    ask(&cluster, "root").await;
    says(&cluster, "False", &[]).await;
    cluster.expect(&data("b", json!({"x": "1"}))).await;
}

/// A kubeconfig like this one of who bears a token.
fn of_bearer(kubeconfig: &str, token: &str) -> String {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).expect("a kubeconfig");
    let mut kubeconfig = serde_json::to_value(kubeconfig).expect("a kubeconfig is JSON");
    kubeconfig["users"][0]["user"] = json!({"token": token});
    kubeconfig.to_string()
}

/// A token of the service account `visitor`, for these audiences or for the server itself.
async fn token_of_visitor(cluster: &Objects, spec: Value) -> String {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts/visitor/token");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    let sent = http::Request::post(path).header("content-type", "application/json");
    let sent = sent.body(request.to_string().into_bytes()).expect("a request");
    let answer: Value = cluster.client().request(sent).await.expect("a token");
    answer["status"]["token"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn c_60_the_command_tells_drift_by_its_exit_code_and_a_lack_of_rights_in_a_sentence() {
    let binary = crate::binary().await;
    let cluster = crate::cluster_of(&binary, &[]).await;
    let manifests = [config_map("a", json!({"x": "1"}))];
    installed(&cluster, &deploying("root", &[item("i", json!({"policy": "Report"}), &manifests)])).await;
    let item = says(&cluster, "False", &[]).await;
    let name = item["metadata"]["name"].as_str().unwrap_or_default();
    let run = async |kubeconfig: &str| {
        fs::write(binary.folder().join("kubeconfig"), kubeconfig).expect("the kubeconfig can be written");
        binary.run(&["drift", "root", "--kubeconfig", "kubeconfig"]).await
    };
    let admin = cluster.kubeconfig().to_owned();
    let as_written = format!("deploy item default/{name}: 1 objects, all as they were written\n");
    let told = run(&admin).await;
    assert_eq!((told.code, &told.stdout), (Some(0), &as_written), "{}", told.stderr);
    cluster.merge(&data("a", json!({"x": "2"}))).await;
    says(&cluster, "True", &[drifted("a", "Different", &["/data/x"])]).await;
    let drifted = format!(
        "deploy item default/{name}: 1 of 1 objects are not as they were written\n  ~ ConfigMap default/a\n      /data/x\n"
    );
    let told = run(&admin).await;
    assert_eq!((told.code, &told.stdout), (Some(2), &drifted), "{}", told.stderr);

    let metadata = json!({"name": "visitor", "namespace": NAMESPACE});
    cluster.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})).await;
    let visitor = run(&of_bearer(&admin, &token_of_visitor(&cluster, json!({})).await)).await;
    match crate::ground() {
        // Everybody with a token may do everything there.
        Ground::Embedded => assert_eq!((visitor.code, &visitor.stdout), (Some(2), &drifted), "{}", visitor.stderr),
        Ground::Kube(_) => {
            assert_eq!((visitor.code, visitor.stdout.as_str()), (Some(1), ""), "{}", visitor.stderr);
            assert!(visitor.stderr.contains("is forbidden: User"), "{}", visitor.stderr);
        }
    }
    let foreign = token_of_visitor(&cluster, json!({"audiences": ["vault"]})).await;
    let stranger = run(&of_bearer(&admin, &foreign)).await;
    assert_eq!((stranger.code, stranger.stdout.as_str()), (Some(1), ""), "{}", stranger.stderr);
    let refused = "the cluster does not accept the credentials of the kubeconfig";
    assert!(stranger.stderr.contains(refused), "{}", stranger.stderr);

    cluster.merge(&data("a", json!({"x": "1"}))).await;
    says(&cluster, "False", &[]).await;
    let told = run(&admin).await;
    assert_eq!((told.code, &told.stdout), (Some(0), &as_written), "{}", told.stderr);
}

#[tokio::test]
async fn c_60_what_is_changed_by_hand_is_written_again_and_what_others_added_stays() {
    let cluster = crate::cluster().await;
    let manifests = [config_map("a", json!({"x": "1"})), config_map("b", json!({"x": "1"}))];
    installed(&cluster, &deploying("root", &[item("i", json!({"policy": "Correct"}), &manifests)])).await;
    says(&cluster, "False", &[]).await;
    cluster.merge(&data("a", json!({"x": "2", "theirs": "1"}))).await;
    cluster.expect(&data("a", json!({"x": "1", "theirs": "1"}))).await;
    let event =
        json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "reason": "DriftCorrected", "type": "Normal"});
    cluster.expect(&event).await;
    cluster.delete(&data("b", json!({}))).await;
    cluster.expect(&data("b", json!({"x": "1"}))).await;
    says(&cluster, "False", &[]).await;
    // Somebody else has taken it over: it is told, and left alone.
    let mark = json!({"metadata": {"annotations": {"orangery.dev/owner": "default/other/0"}}, "data": {"x": "3"}});
    let mut taken = data("a", json!({}));
    taken["metadata"]["annotations"] = mark["metadata"]["annotations"].clone();
    taken["data"] = mark["data"].clone();
    cluster.merge(&taken).await;
    says(&cluster, "True", &[drifted("a", "TakenOver", &[])]).await;
    cluster.merge(&data("b", json!({"x": "2"}))).await;
    cluster.expect(&data("b", json!({"x": "1"}))).await;
    cluster.expect(&data("a", json!({"x": "3"}))).await;
}

#[tokio::test]
async fn c_57_what_an_item_ignores_is_no_drift_and_stays_when_something_else_is_written_again() {
    let cluster = crate::cluster().await;
    let manifests = [config_map("a", json!({"x": "1", "free": "1", "managed": "1"}))];
    let ignore = json!([{"kind": "ConfigMap", "jsonPointers": ["/data/free"]}, {"managedFieldsManagers": ["suite"]}]);
    let drift = json!({"policy": "Correct", "ignore": ignore});
    installed(&cluster, &deploying("root", &[item("i", drift, &manifests)])).await;
    says(&cluster, "False", &[]).await;
    // Applied by the field manager `suite`, which is ignored; the merge is by nobody who is.
    cluster.apply(&config_map("a", json!({"managed": "2"}))).await;
    cluster.merge(&data("a", json!({"free": "2", "x": "2"}))).await;
    cluster.expect(&data("a", json!({"x": "1", "free": "2", "managed": "2"}))).await;
    says(&cluster, "False", &[]).await;
}

#[tokio::test]
async fn c_55_a_scaled_deployment_is_no_drift_where_its_manifest_names_no_replicas() {
    let (cluster, _kubelet) = crate::cluster_with_workloads().await;
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{
        "name": "web", "image": "example.org/web:1", "ports": [{"containerPort": 80}],
        "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}}}]}});
    let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "template": template});
    let deployment = |spec: Value| json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": NAMESPACE}, "spec": spec});
    installed(&cluster, &deploying("root", &[item("i", json!({"policy": "Report"}), &[deployment(spec)])])).await;
    // What the server made of the quantities is none, either.
    says(&cluster, "False", &[]).await;
    cluster.merge(&deployment(json!({"replicas": 7}))).await;
    cluster.merge(&deployment(json!({"minReadySeconds": 3, "selector": {"matchLabels": {"app": "web"}}}))).await;
    let web = json!([{"name": "web", "image": "example.org/web:2"}]);
    cluster.merge(&deployment(json!({"template": {"spec": {"containers": web}}}))).await;
    let container = "/spec/template/spec/containers/0";
    let fields = ["image", "ports", "resources/limits"].map(|field| format!("{container}/{field}"));
    let expected = json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": NAMESPACE, "name": "web",
        "what": "Different", "fields": fields});
    says(&cluster, "True", &[expected]).await;
}

#[tokio::test]
async fn c_58_no_value_of_a_secret_is_told_and_what_was_written_as_text_is_compared() {
    let cluster = crate::cluster().await;
    let secret = |fields: Value| {
        let mut secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": NAMESPACE}});
        secret.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        secret
    };
    let manifests = [secret(json!({"stringData": {"password": "hunter2"}}))];
    installed(&cluster, &deploying("root", &[item("i", json!({"policy": "Report"}), &manifests)])).await;
    says(&cluster, "False", &[]).await;
    cluster.merge(&secret(json!({"data": {"password": "aHVudGVyMw=="}}))).await;
    let mut expected = drifted("s", "Different", &["/data/password"]);
    expected["kind"] = json!("Secret");
    let item = says(&cluster, "True", &[expected]).await;
    let said = item.to_string();
    assert!(!said.contains("hunter3") && !said.contains("aHVudGVy"), "{said}");
}

#[tokio::test]
async fn c_60_a_field_manager_that_changes_an_object_back_is_named() {
    let cluster = crate::cluster().await;
    let manifests = [config_map("a", json!({"x": "1"}))];
    installed(&cluster, &deploying("root", &[item("i", json!({"policy": "Correct"}), &manifests)])).await;
    says(&cluster, "False", &[]).await;
    // It is written again three times, and left alone for two seconds after the third.
    for _ in 0..3 {
        cluster.apply(&config_map("a", json!({"x": "2"}))).await;
        cluster.expect(&data("a", json!({"x": "1"}))).await;
    }
    cluster.apply(&config_map("a", json!({"x": "2"}))).await;
    let fought = |item: &Value| condition(item).1 == "DriftNotCorrected";
    let item = cluster.expect_that(&any("DeployItem", ""), "nobody is named", fought).await;
    let conditions = item["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let drifted = conditions.iter().find(|one| one["type"] == "Drifted").expect("there is the condition");
    let message = "ConfigMap default/a: /data/x is different, though it was written again 3 times: the field manager \"suite\" \
                   changes it back; have it leave these fields, or name it in spec.drift.ignore";
    assert_eq!(drifted["message"], message);
    // It is written once more all the same, when the time has come.
    cluster.expect(&data("a", json!({"x": "1"}))).await;
}

#[tokio::test]
async fn c_61_continuous_reconcile_corrects_at_its_times() {
    let cluster = crate::cluster().await;
    let scheduled = |schedule: Value| {
        let mut item = deploys("i", &[], "1");
        item["config"]["continuousReconcile"] = schedule;
        deploying("root", &[item])
    };
    installed(&cluster, &scheduled(json!({"every": "2s"}))).await;
    says(&cluster, "False", &[]).await;
    cluster.merge(&data("i", json!({"content": "2"}))).await;
    says(&cluster, "True", &[drifted("i", "Different", &["/data/content"])]).await;
    cluster.expect(&data("i", json!({"content": "1"}))).await;
    says(&cluster, "False", &[]).await;
    cluster.apply(&scheduled(json!({"cron": "0 0 1 1 *"}))).await;
    let next = |item: &Value| item["spec"]["config"]["continuousReconcile"]["cron"].is_string();
    cluster.expect_that(&any("DeployItem", ""), "is the old one", next).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    says(&cluster, "False", &[]).await;
    cluster.merge(&data("i", json!({"content": "2"}))).await;
    says(&cluster, "True", &[drifted("i", "Different", &["/data/content"])]).await;
}

#[tokio::test]
async fn c_59_what_changed_while_no_operator_was_there_is_seen() {
    let mut world = World::on(&crate::ground(), crate::binary().await, std::sync::Arc::new(Sound)).await;
    world.start();
    world.ready().await;
    let manifests = [config_map("a", json!({"x": "1"})), config_map("b", json!({"x": "1"}))];
    installed(&world.objects, &deploying("root", &[item("i", json!({"policy": "Report"}), &manifests)])).await;
    says(&world.objects, "False", &[]).await;
    world.kill().await;
    world.objects.merge(&data("a", json!({"x": "2"}))).await;
    world.objects.delete(&data("b", json!({}))).await;
    world.start();
    let both = [drifted("a", "Different", &["/data/x"]), drifted("b", "Missing", &[])];
    says(&world.objects, "True", &both).await;
    world.end().await;
}

#[tokio::test]
async fn c_58_an_item_that_says_nothing_is_not_looked_at_and_one_that_says_it_late_says_why_not() {
    let cluster = crate::cluster().await;
    installed(&cluster, &deploying("root", &[deploys("i", &[], "1")])).await;
    let has_succeeded = |item: &Value| item["status"]["phase"] == "Succeeded";
    let item = cluster.expect_that(&any("DeployItem", ""), "has not succeeded", has_succeeded).await;
    assert_eq!(condition(&item), (String::new(), String::new()));
    cluster
        .merge(&json!({"apiVersion": API, "kind": "DeployItem", "metadata": {"name": item["metadata"]["name"]},
        "spec": {"drift": {"policy": "Report"}}}))
        .await;
    let item = says(&cluster, "Unknown", &[]).await;
    let conditions = item["status"]["conditions"].to_string();
    assert!(conditions.contains("what the last job wrote was not kept"), "{conditions}");
    cluster
        .merge(&json!({"apiVersion": API, "kind": "DeployItem", "metadata": {"name": item["metadata"]["name"]},
        "spec": {"drift": {"policy": "Ignore"}}}))
        .await;
    says(&cluster, "", &[]).await;
}

/// What stands in the patch after deployment is laid over what the item has written before: of both it is told, and an object
/// that is gone is made anew with both.
#[tokio::test]
async fn c_58_c_60_a_patch_after_deployment_hides_nothing_of_what_lies_below_it() {
    let cluster = crate::cluster().await;
    let corrects = json!({"policy": "Correct"});
    for strategy in ["update", "patch", "merge", "mergeOverwrite"] {
        let name = strategy.to_lowercase();
        let mut item = item("i", corrects.clone(), &[config_map(&name, json!({"a": "1", "b": "2"}))]);
        item["config"]["updateStrategy"] = json!(strategy);
        item["config"]["manifests"][0]["patchAfterDeployment"] = json!({"data": {"b": "after"}});
        cluster.apply(&deploying("root", &[item])).await;
        let written = data(&name, json!({"a": "1", "b": "after"}));
        cluster.expect(&written).await;
        says(&cluster, "False", &[]).await;
        cluster.merge(&data(&name, json!({"b": "theirs"}))).await;
        cluster.expect(&written).await;
        // What was only filled is for others to change.
        if strategy != "merge" {
            cluster.merge(&data(&name, json!({"a": "theirs"}))).await;
            cluster.expect(&written).await;
        }
        cluster.delete(&data(&name, json!({}))).await;
        cluster.expect(&written).await;
        says(&cluster, "False", &[]).await;
    }
}

#[tokio::test]
async fn c_58_c_61_continuous_reconcile_makes_an_object_with_a_patch_after_deployment_whole_again() {
    let cluster = crate::cluster().await;
    let mut item = item("i", Value::Null, &[config_map("a", json!({"a": "1", "b": "2"}))]);
    item["config"]["continuousReconcile"] = json!({"every": "1s"});
    item["config"]["manifests"][0]["patchAfterDeployment"] = json!({"data": {"b": "after"}});
    installed(&cluster, &deploying("root", &[item])).await;
    says(&cluster, "False", &[]).await;
    cluster.delete(&data("a", json!({}))).await;
    cluster.expect(&data("a", json!({"a": "1", "b": "after"}))).await;
}
