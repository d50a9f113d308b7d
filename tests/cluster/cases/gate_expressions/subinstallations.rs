//! Gate expressions of sub-installations: the same as those of deploy items, asked by the parent (WF-02 … WF-05, WF-18 …
//! WF-28, C-21).

use orangery_tests::{
    external_deployer::ExternalDeployer,
    objects::Objects,
    tree::{any, ask, blueprint, in_phase, items, subinstallation},
};
use serde_json::{Map, Value, json};

use super::{config_map, definitions::definition, over_metric, tree_with, want};

/// A sub-installation with one item of its name, which exports its name and imports what these export; `fields` are its
/// gate expressions, and whatever else it has.
pub(super) fn sub(name: &str, after: &[&str], fields: Value) -> Value {
    let string = |name: &&str| json!({"name": name, "type": "data", "schema": {"type": "string"}});
    let imports: Vec<Value> = after.iter().map(string).collect();
    let mut sub = subinstallation(
        name,
        &blueprint(json!({
            "imports": imports,
            "exports": [string(&name)],
            "deployExecutions": items(&[(name, &[])], "x"),
            "exportExecutions": [{"name": "e", "type": "Jinja", "template": json!({"exports": {name: name}}).to_string()}],
        })),
    );
    let bound: Vec<Value> = after.iter().map(|name| json!({"name": name, "dataRef": name})).collect();
    sub["imports"] = json!({"data": bound});
    sub["exports"] = json!({"data": [{"name": name, "dataRef": name}]});
    let (Some(of), Some(fields)) = (sub.as_object_mut(), fields.as_object()) else { return Value::Null };
    of.extend(fields.clone());
    sub
}

fn tree(subs: &[Value]) -> Value {
    tree_with(json!({"subinstallations": subs}))
}

/// A condition over the ConfigMap `metric` of the imported cluster.
fn over_its_metric(expression: &str) -> Value {
    let mut condition = over_metric(expression);
    condition["objects"]["metric"]["target"] = json!({"import": "cluster"});
    condition
}

/// The sub-installation of this name as it is now, if it is there.
async fn find(cluster: &Objects, name: &str) -> Option<Value> {
    let all = cluster.list(&any("Installation", "")).await;
    let is = |sub: &Value| sub["metadata"]["annotations"]["landscaper.gardener.cloud/subinstallation-name"] == name;
    all.into_iter().find(is)
}

/// The results of the gate expressions of a sub-installation, without times: type to status, reason and message.
fn results(tree: &Value, name: &str) -> Value {
    let subs = tree.pointer("/status/workflow/subinstallations").and_then(Value::as_array);
    let of = subs.into_iter().flatten().filter(|sub| sub["name"] == name);
    let result = |one: &Value| {
        (one["type"].as_str().unwrap_or_default().to_owned(), json!([one["status"], one["reason"], one["message"]]))
    };
    Value::Object(of.flat_map(|sub| sub["conditions"].as_array()).flatten().map(result).collect::<Map<_, _>>())
}

/// Waits until a gate expression of a sub-installation says this.
async fn says(cluster: &Objects, name: &str, condition: &str, status: &str) {
    let is = |tree: &Value| results(tree, name)[condition][0] == status;
    cluster.expect_that(&any("Installation", "tree"), &format!("{condition} of {name} was never {status}"), is).await;
}

async fn done(cluster: &Objects) -> Value {
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await
}

async fn failure(cluster: &Objects) -> Value {
    let tree = cluster.expect(&in_phase("Installation", "tree", "Failed")).await;
    tree["status"]["lastError"]["message"].clone()
}

#[tokio::test]
async fn wf_02_wf_20_to_22_an_unwanted_subinstallation_is_deleted_after_all_that_import_from_it() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    cluster
        .apply(&tree(&[
            sub("base", &[], json!({})),
            sub("db", &["base"], json!({"when": "imports.wanted"})),
            sub("app", &["db"], json!({})),
        ]))
        .await;
    for name in ["base", "db", "app"] {
        deployer.succeed(name).await;
    }
    done(&cluster).await;
    want(&cluster, false).await;
    ask(&cluster, "tree").await;
    deployer.triggered("app").await;
    assert!(find(&cluster, "db").await.is_some_and(|db| db["metadata"]["deletionTimestamp"].is_null()));
    for name in ["app", "db", "base"] {
        deployer.succeed(name).await;
    }
    let tree = done(&cluster).await;
    assert!(find(&cluster, "db").await.is_none() && find(&cluster, "app").await.is_none());
    let expected = json!({"when": ["False", "ExpressionDoesNotHold", "`imports.wanted` does not hold"]});
    assert_eq!(results(&tree, "db"), expected);
    want(&cluster, true).await;
    ask(&cluster, "tree").await;
    for name in ["base", "db", "app"] {
        deployer.succeed(name).await;
    }
    done(&cluster).await;
}

#[tokio::test]
async fn wf_23_after_on_and_off_an_unwanted_subinstallation_is_as_after_off() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, false).await;
    cluster.apply(&tree(&[sub("db", &[], json!({"when": "imports.wanted"})), sub("app", &["db"], json!({}))])).await;
    let off = done(&cluster).await;
    let alone = async || {
        for (kind, most) in [("Installation", 1), ("Execution", 0), ("DeployItem", 0)] {
            let all = cluster.list(&any(kind, "")).await;
            assert_eq!(all.len(), most, "the tree alone is there: {all:?}");
        }
        cluster
            .list(&any("DataObject", ""))
            .await
            .iter()
            .map(|object| object["metadata"]["name"].clone())
            .collect::<Vec<_>>()
    };
    let kept: Vec<Value> = alone().await;
    want(&cluster, true).await;
    ask(&cluster, "tree").await;
    deployer.succeed("db").await;
    deployer.succeed("app").await;
    done(&cluster).await;
    want(&cluster, false).await;
    ask(&cluster, "tree").await;
    deployer.succeed("app").await;
    deployer.succeed("db").await;
    let on_off = done(&cluster).await;
    assert_eq!((&on_off["spec"], results(&on_off, "db")), (&off["spec"], results(&off, "db")));
    assert_eq!(alone().await, kept);
}

#[tokio::test]
async fn wf_02_wf_18_c_21_a_condition_reads_what_its_siblings_exported() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    let reads = |value: &str| json!({"when": format!("items.db.exports.db == '{value}' && items.db.status.phase == 'Succeeded'")});
    let subs = [sub("db", &[], json!({})), sub("app", &["db"], reads("db")), sub("web", &["db"], reads("other"))];
    cluster.apply(&tree(&subs)).await;
    deployer.triggered("db").await;
    assert!(find(&cluster, "app").await.is_none(), "it is made when it starts");
    deployer.succeed("db").await;
    deployer.succeed("app").await;
    let tree = done(&cluster).await;
    assert!(find(&cluster, "web").await.is_none());
    assert_eq!(
        (&results(&tree, "app")["when"][0], &results(&tree, "web")["when"][0]),
        (&json!("True"), &json!("False"))
    );
}

#[tokio::test]
async fn wf_03_wf_19_what_imports_from_one_waits_until_it_is_ready() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    let ready = json!({"readyWhen": over_its_metric("objects.metric != null")});
    cluster.apply(&tree(&[sub("db", &[], ready), sub("app", &["db"], json!({})), sub("other", &[], json!({}))])).await;
    deployer.succeed("db").await;
    deployer.succeed("other").await;
    says(&cluster, "db", "readyWhen", "False").await;
    assert!(find(&cluster, "app").await.is_none());
    cluster.apply(&config_map("metric", &json!({}))).await;
    deployer.succeed("app").await;
    done(&cluster).await;
}

#[tokio::test]
async fn wf_04_wf_28_wf_40_what_one_imports_from_stays_until_it_is_gone_in_every_respect() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    cluster.apply(&config_map("metric", &json!({}))).await;
    let gone = json!({"deletedWhen": over_its_metric("objects.metric == null")});
    cluster.apply(&tree(&[sub("db", &[], json!({})), sub("app", &["db"], gone)])).await;
    deployer.succeed("db").await;
    deployer.succeed("app").await;
    done(&cluster).await;
    cluster.delete(&any("Installation", "tree")).await;
    deployer.succeed("app").await;
    says(&cluster, "app", "deletedWhen", "False").await;
    let db = deployer.find("db").await.unwrap_or_default();
    assert_eq!(db["status"]["jobIDFinished"], db["status"]["jobID"], "nobody has asked db to go");
    cluster.delete(&config_map("metric", &json!({}))).await;
    deployer.succeed("db").await;
    cluster.expect_absent(&any("Installation", "tree")).await;
}

#[tokio::test]
async fn wf_05_wf_24_wf_25_an_inactive_subinstallation_is_left_alone_and_its_importers_are_deleted() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    let definition = definition("Gadget");
    let present = json!({"target": {"import": "cluster"}, "group": "example.org", "kind": "Gadget"});
    let active = json!({"activateWhen": {"crdPresent": present}});
    cluster.apply(&definition).await;
    cluster.apply(&tree(&[sub("db", &[], active), sub("app", &["db"], json!({}))])).await;
    deployer.succeed("db").await;
    deployer.succeed("app").await;
    done(&cluster).await;
    cluster.delete(&definition).await;
    cluster.expect_absent(&definition).await;
    let before = find(&cluster, "db").await;
    ask(&cluster, "tree").await;
    deployer.succeed("app").await;
    done(&cluster).await;
    assert_eq!(find(&cluster, "db").await, before, "it is left as it is");
    assert!(find(&cluster, "app").await.is_none());
    cluster.delete(&any("Installation", "tree")).await;
    deployer.succeed("db").await;
    cluster.expect_absent(&any("Installation", "tree")).await;
}

#[tokio::test]
async fn c_03_a_condition_that_is_never_met_ends_the_job_at_its_timeout() {
    let cluster = crate::cluster().await;
    want(&cluster, true).await;
    let never = json!({"when": over_its_metric("objects.metric.data.level == 'high'"), "timeout": "1s"});
    cluster.apply(&tree(&[sub("db", &[], never)])).await;
    let message = failure(&cluster).await;
    let message = message.as_str().unwrap_or_default();
    let begin = "when of sub-installation db was not met within its timeout of 1s: `objects.metric.data.level == 'high'` cannot be evaluated: ";
    assert!(message.starts_with(begin), "{message}");
    assert!(find(&cluster, "db").await.is_none());
}

#[tokio::test]
async fn a_failed_subinstallation_is_reported_with_those_not_started_for_that_reason() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    let when = || json!({"when": over_its_metric("objects.metric != null")});
    let mut tree = tree(&[sub("db", &[], json!({})), sub("app", &["db"], when()), sub("other", &[], when())]);
    tree["spec"]["failurePolicy"] = json!("ContinueIndependent");
    cluster.apply(&config_map("metric", &json!({}))).await;
    cluster.apply(&tree).await;
    deployer.succeed("other").await;
    deployer.fail("db", "no disk").await;
    let message = failure(&cluster).await;
    let message = message.as_str().unwrap_or_default();
    assert!(message.starts_with("sub-installation db failed: ") && message.contains("no disk"), "{message}");
    assert!(message.ends_with("; not started for that reason: app"), "{message}");
}

#[tokio::test]
async fn conditions_that_cannot_be_asked_are_refused_before_anything_is_made() {
    let cluster = crate::cluster().await;
    want(&cluster, true).await;
    let refused = [
        (
            json!({"when": "imports.wnted"}),
            "the sub-installation \"db\": when: the expression `imports.wnted` cannot be used: there is no wnted in imports; known are: cluster, wanted",
        ),
        (
            json!({"readyWhen": over_metric("objects.metric != null")}),
            "the sub-installation \"db\": readyWhen: objects.metric names no target, and a sub-installation has none of its own; set target",
        ),
        (
            json!({"when": "items.other.exports.x == 1"}),
            "the sub-installation \"db\": when: the expression `items.other.exports.x == 1` cannot be used: there is no other in items; there are none",
        ),
    ];
    for (fields, expected) in refused {
        cluster.apply(&tree(&[sub("db", &[], fields)])).await;
        let message =
            |tree: &Value| tree["status"]["phase"] == "Failed" && tree["status"]["lastError"]["message"] == expected;
        cluster.expect_that(&any("Installation", "tree"), expected, message).await;
    }
    assert!(find(&cluster, "db").await.is_none());
}

#[tokio::test]
async fn an_interrupt_ends_a_job_that_waits_for_a_condition() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    let ready = json!({"readyWhen": over_its_metric("objects.metric != null"), "timeout": "none"});
    let when = json!({"when": over_its_metric("objects.metric.data.level == 'high'"), "timeout": "none"});
    cluster.apply(&tree(&[sub("db", &[], ready), sub("app", &["db"], json!({})), sub("other", &[], when)])).await;
    deployer.succeed("db").await;
    says(&cluster, "db", "readyWhen", "False").await;
    let mut asking = any("Installation", "tree");
    asking["metadata"]["annotations"] = json!({"landscaper.gardener.cloud/operation": "interrupt"});
    cluster.merge(&asking).await;
    failure(&cluster).await;
}

#[tokio::test]
async fn ins_36_what_changed_during_the_job_fails_what_is_made_late() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    let ready = json!({"readyWhen": over_its_metric("objects.metric != null")});
    cluster.apply(&tree(&[sub("db", &[], ready), sub("app", &["db"], json!({}))])).await;
    deployer.succeed("db").await;
    says(&cluster, "db", "readyWhen", "False").await;
    let mut changed = any("Installation", "tree");
    changed["spec"] = json!({"maxParallel": 7});
    cluster.merge(&changed).await;
    cluster.apply(&config_map("metric", &json!({}))).await;
    assert_eq!(
        failure(&cluster).await,
        "its spec changed while the job was running; reconcile the root installation to take the change into account"
    );
    assert!(find(&cluster, "app").await.is_none());
    ask(&cluster, "tree").await;
    deployer.succeed("db").await;
    deployer.succeed("app").await;
    done(&cluster).await;
}

#[tokio::test]
async fn a_subinstallation_deleted_by_a_user_during_the_job_that_made_it_is_made_anew() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    cluster.apply(&config_map("metric", &json!({}))).await;
    cluster.apply(&tree(&[sub("app", &[], json!({"when": over_its_metric("objects.metric != null")}))])).await;
    deployer.triggered("app").await;
    let app = find(&cluster, "app").await.unwrap_or_default();
    cluster.delete(&any("Installation", app["metadata"]["name"].as_str().unwrap_or_default())).await;
    // It ends the job that it is at, goes, and is made and deployed again.
    for _ in 0..3 {
        deployer.succeed("app").await;
    }
    done(&cluster).await;
    let anew = find(&cluster, "app").await.unwrap_or_default();
    assert_ne!(anew["metadata"]["uid"], app["metadata"]["uid"]);
}
