//! Gate expressions of deploy items: whether one takes part, is wanted, is ready and is gone (WF-02 … WF-09, WF-18 … WF-28, C-03,
//! C-07, C-21).

use orangery_tests::{
    external_deployer::{self, ExternalDeployer},
    tree::{any, ask, in_phase, wait_until_idle},
};
use serde_json::{Value, json};

use super::{config_map, failure, item, over_metric, results, says, tree, want};

#[tokio::test]
async fn wf_02_wf_20_to_22_an_unwanted_item_is_deleted_after_all_that_depend_on_it() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    cluster
        .apply(&tree(&[
            item("base", &[], json!({})),
            item("db", &["base"], json!({"when": "imports.wanted"})),
            item("app", &["db"], json!({})),
            item("other", &["base"], json!({})),
        ]))
        .await;
    for name in ["base", "db", "app", "other"] {
        deployer.succeed(name).await;
    }
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    want(&cluster, false).await;
    ask(&cluster, "tree").await;
    deployer.triggered("app").await;
    assert!(deployer.find("db").await.is_some_and(|db| db["metadata"]["deletionTimestamp"].is_null()));
    deployer.succeed("app").await;
    for name in ["db", "base", "other"] {
        deployer.succeed(name).await;
    }
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    assert!(deployer.find("db").await.is_none() && deployer.find("app").await.is_none());
    assert_eq!(
        Value::Object(results(&cluster, "db").await),
        json!({"when": ["False", "ExpressionDoesNotHold", "`imports.wanted` does not hold"]})
    );
}

#[tokio::test]
async fn wf_23_an_unwanted_item_that_was_never_made_does_not_remain() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, false).await;
    let items = [item("db", &[], json!({"when": "imports.wanted"})), item("app", &["db"], json!({}))];
    cluster.apply(&tree(&items)).await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    assert!(cluster.list(&external_deployer::item()).await.is_empty(), "an item that was never wanted has no object");
    let off = cluster.expect(&in_phase("Execution", "tree", "Succeeded")).await;
    want(&cluster, true).await;
    ask(&cluster, "tree").await;
    deployer.succeed("db").await;
    deployer.succeed("app").await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    want(&cluster, false).await;
    ask(&cluster, "tree").await;
    deployer.succeed("app").await;
    deployer.succeed("db").await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    assert!(cluster.list(&external_deployer::item()).await.is_empty());
    let on_off = cluster.expect(&in_phase("Execution", "tree", "Succeeded")).await;
    assert_eq!(
        on_off["spec"],
        json!({"imports": {"wanted": false}, "context": "default", "deployItemsCompressed": off["spec"]["deployItemsCompressed"]})
    );
}

#[tokio::test]
async fn wf_02_wf_18_a_condition_reads_what_its_predecessors_export() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    cluster
        .apply(&tree(&[
            item("db", &[], json!({})),
            item("small", &["db"], json!({"when": "items.db.exports.size < 10"})),
            item("large", &["db"], json!({"when": "items.db.exports.size >= 10"})),
        ]))
        .await;
    deployer.export("db", json!({"size": 12})).await;
    deployer.succeed("db").await;
    deployer.succeed("large").await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    assert!(deployer.find("small").await.is_none());
}

#[tokio::test]
async fn wf_03_wf_19_c_03_what_depends_on_an_item_waits_until_it_is_ready() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    cluster
        .apply(&tree(&[
            item(
                "canary",
                &[],
                json!({"readyWhen": over_metric("objects.metric != null && int(objects.metric.data.healthy) > 90")}),
            ),
            item("rest", &["canary"], json!({})),
        ]))
        .await;
    deployer.succeed("canary").await;
    says(&cluster, "canary", "readyWhen", "False").await;
    cluster.apply(&config_map("metric", &json!({"healthy": "17"}))).await;
    wait_until_idle(&cluster).await;
    assert!(deployer.find("rest").await.is_some_and(|rest| rest.pointer("/status/jobID").is_none()));
    let waits = cluster.expect(&in_phase("Execution", "tree", "Progressing")).await;
    let waits = waits["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|one| one["type"] == "Progressing")
        .cloned();
    assert_eq!(waits.unwrap_or_default()["message"], "waiting for GateExpression canary/readyWhen to be met");
    cluster.apply(&config_map("metric", &json!({"healthy": "97"}))).await;
    deployer.succeed("rest").await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    says(&cluster, "canary", "readyWhen", "True").await;
}

#[tokio::test]
async fn wf_03_an_item_that_is_ready_once_is_ready_for_the_job_however_often_that_changes() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    cluster.apply(&config_map("metric", &json!({"up": "yes"}))).await;
    cluster
        .apply(&tree(&[
            item("db", &[], json!({"readyWhen": over_metric("objects.metric.data.up == 'yes'")})),
            item("app", &["db"], json!({})),
        ]))
        .await;
    deployer.succeed("db").await;
    deployer.triggered("app").await;
    for up in ["no", "yes", "no"] {
        cluster.apply(&config_map("metric", &json!({"up": up}))).await;
    }
    deployer.succeed("app").await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
}

#[tokio::test]
async fn wf_04_wf_28_wf_40_what_an_item_depends_on_stays_until_it_is_gone_in_every_respect() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    cluster.apply(&config_map("metric", &json!({}))).await;
    cluster
        .apply(&tree(&[
            item("base", &[], json!({})),
            item("data", &["base"], json!({"deletedWhen": over_metric("objects.metric == null")})),
        ]))
        .await;
    deployer.succeed("base").await;
    deployer.succeed("data").await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    cluster.delete(&any("Installation", "tree")).await;
    deployer.succeed("data").await;
    says(&cluster, "data", "deletedWhen", "False").await;
    let base = deployer.find("base").await.unwrap_or_default();
    assert_eq!(base["status"]["jobIDFinished"], base["status"]["jobID"], "nobody has asked base to go");
    cluster.delete(&config_map("metric", &json!({}))).await;
    deployer.succeed("base").await;
    cluster.expect_absent(&any("Installation", "tree")).await;
}

/// With the item its gate expressions have left the blueprint: what is to be asked has to be asked while it is there, by `when`.
#[tokio::test]
async fn c_206_what_has_left_the_blueprint_is_not_asked_whether_it_is_gone() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    cluster.apply(&config_map("metric", &json!({}))).await;
    let gated = |name: &str| {
        item(name, &[], json!({"when": "imports.wanted", "deletedWhen": over_metric("objects.metric == null")}))
    };
    cluster.apply(&tree(&[item("base", &[], json!({})), gated("leaves"), gated("unwanted")])).await;
    for name in ["base", "leaves", "unwanted"] {
        deployer.succeed(name).await;
    }
    let first = cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    want(&cluster, false).await;
    cluster.apply(&tree(&[item("base", &[], json!({})), gated("unwanted")])).await;
    ask(&cluster, "tree").await;
    for name in ["leaves", "base", "unwanted"] {
        deployer.succeed(name).await;
    }
    // One is waited for, and of the other one nothing is left.
    says(&cluster, "unwanted", "deletedWhen", "False").await;
    let execution = cluster.expect(&any("Execution", "tree")).await;
    let known: Vec<_> =
        execution["status"]["items"].as_array().into_iter().flatten().map(|item| &item["name"]).collect();
    assert!(!known.contains(&&json!("leaves")), "{execution:#}");
    cluster.delete(&config_map("metric", &json!({}))).await;
    let again =
        |root: &Value| root["status"]["phase"] == "Succeeded" && root["status"]["jobID"] != first["status"]["jobID"];
    cluster.expect_that(&any("Installation", "tree"), "did not succeed again", again).await;
}

#[tokio::test]
async fn c_07_a_target_that_does_not_answer_deletes_nothing_and_is_named() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    // Nobody listens there.
    let server = cluster.kubeconfig().split("://").nth(1).unwrap_or_default();
    let server = server.split(|c: char| c.is_whitespace() || matches!(c, '"' | '/')).next().unwrap_or_default();
    let kubeconfig = cluster.kubeconfig().replace(server, "127.0.0.1:9");
    let over = |expression: &str| {
        let mut over = over_metric(expression);
        over["objects"]["metric"]["target"] = json!({"name": "away"});
        over
    };
    let away = json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Target", "metadata": {"name": "away"},
        "spec": {"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": {"kubeconfig": cluster.kubeconfig()}},
    });
    cluster.apply(&away).await;
    cluster.apply(&config_map("metric", &json!({}))).await;
    let items = [item("db", &[], json!({"when": over("objects.metric != null"), "timeout": "2s"}))];
    cluster.apply(&tree(&items)).await;
    deployer.succeed("db").await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    let mut moved = away.clone();
    moved["spec"]["config"]["kubeconfig"] = json!(kubeconfig);
    cluster.apply(&moved).await;
    ask(&cluster, "tree").await;
    let message = failure(&cluster).await;
    assert!(message.starts_with("when of deploy item db was not met within its timeout of 2s: "), "{message}");
    assert!(deployer.find("db").await.is_some_and(|db| db["metadata"]["deletionTimestamp"].is_null()));
    assert_eq!(results(&cluster, "db").await["when"][0], "Unknown");
}

#[tokio::test]
async fn c_03_a_condition_that_is_never_met_ends_the_job_at_the_timeout_of_its_item() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    let mut fields = json!({"readyWhen": over_metric("objects.metric != null")});
    fields["timeout"] = json!("1s");
    cluster.apply(&tree(&[item("db", &[], fields), item("app", &["db"], json!({}))])).await;
    deployer.succeed("db").await;
    assert_eq!(
        failure(&cluster).await,
        "readyWhen of deploy item db was not met within its timeout of 1s: `objects.metric != null` does not hold"
    );
}

#[tokio::test]
async fn conditions_that_cannot_be_evaluated_fail_their_item_with_the_cause() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    let list: Vec<u32> = (0..200).collect();
    cluster
        .apply(&tree(&[
            item("db", &[], json!({})),
            item("zero", &["db"], json!({"when": "1 / items.db.exports.zero == 1"})),
        ]))
        .await;
    deployer.export("db", json!({"zero": 0, "list": list})).await;
    deployer.succeed("db").await;
    let message = failure(&cluster).await;
    let begin = "when of deploy item zero cannot be told, and it looks at nothing that could change: `1 / items.db.exports.zero == 1` cannot be evaluated: ";
    assert!(message.starts_with(begin), "{message}");
    let long = "items.db.exports.list.all(a, items.db.exports.list.all(b, items.db.exports.list.all(c, items.db.exports.list.all(d, true))))";
    cluster.apply(&tree(&[item("db", &[], json!({})), item("long", &["db"], json!({"when": long}))])).await;
    deployer.export("db", json!({"list": list})).await;
    deployer.succeed("db").await;
    let is = |execution: &Value| {
        let message = execution.pointer("/status/lastError/message").and_then(Value::as_str).unwrap_or_default();
        message.contains("long") && message.contains("it could cost ")
    };
    let execution = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Execution"});
    cluster.expect_that(&execution, "the cost was not told", is).await;
}

#[tokio::test]
async fn conditions_that_cannot_be_asked_are_refused_before_anything_is_made() {
    let cluster = crate::cluster().await;
    want(&cluster, true).await;
    cluster.apply(&tree(&[item("db", &[], json!({"when": "imports.wnted"}))])).await;
    let failed = cluster.expect(&in_phase("Installation", "tree", "Failed")).await;
    assert_eq!(
        failed["status"]["lastError"]["message"],
        "deploy item \"db\": when: the expression `imports.wnted` cannot be used: there is no wnted in imports; known are: cluster, wanted"
    );
    cluster.expect_absent(&any("Execution", "tree")).await;
}

#[tokio::test]
async fn an_item_that_is_wanted_again_after_an_unfinished_deletion_is_made_anew() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    cluster.apply(&tree(&[item("db", &[], json!({"when": "imports.wanted"})), item("app", &["db"], json!({}))])).await;
    deployer.succeed("db").await;
    deployer.succeed("app").await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    want(&cluster, false).await;
    ask(&cluster, "tree").await;
    deployer.succeed("app").await;
    deployer.fail("db", "it has data").await;
    assert_eq!(failure(&cluster).await, "deploy item db failed: it has data");
    want(&cluster, true).await;
    ask(&cluster, "tree").await;
    deployer.succeed("db").await;
    deployer.succeed("db").await;
    deployer.succeed("app").await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
}

#[tokio::test]
async fn an_interrupt_ends_a_job_that_waits_for_a_condition() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    let never = json!({"readyWhen": over_metric("objects.metric != null"), "timeout": "none"});
    let waits = json!({"when": over_metric("objects.metric != null"), "timeout": "none"});
    cluster.apply(&tree(&[item("db", &[], never), item("app", &["db"], json!({})), item("other", &[], waits)])).await;
    deployer.succeed("db").await;
    says(&cluster, "db", "readyWhen", "False").await;
    let mut asking = any("Installation", "tree");
    asking["metadata"]["annotations"] = json!({"landscaper.gardener.cloud/operation": "interrupt"});
    cluster.merge(&asking).await;
    cluster.expect(&in_phase("Installation", "tree", "Failed")).await;
}

#[tokio::test]
async fn an_item_that_takes_no_part_is_not_asked_whether_it_is_wanted() {
    let cluster = crate::cluster().await;
    want(&cluster, true).await;
    let fields = json!({"activateWhen": "!imports.wanted", "when": "1 / 0 == 1"});
    cluster.apply(&tree(&[item("db", &[], fields)])).await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
}

#[tokio::test]
async fn wf_27_an_item_whose_deployment_is_kept_is_not_waited_for_to_be_gone() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    want(&cluster, true).await;
    cluster.apply(&config_map("metric", &json!({}))).await;
    let mut fields = json!({"when": "imports.wanted", "onDelete": {"keep": true}});
    fields["deletedWhen"] = over_metric("objects.metric == null");
    cluster.apply(&tree(&[item("db", &[], fields)])).await;
    deployer.succeed("db").await;
    cluster.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    want(&cluster, false).await;
    ask(&cluster, "tree").await;
    let without = |execution: &Value| {
        let status = &execution["status"];
        status["phase"] == "Succeeded" && status["items"][0]["conditions"][0]["status"] == "False"
    };
    cluster.expect_that(&any("Execution", "tree"), "the job waits for what is kept", without).await;
    assert!(deployer.find("db").await.is_none());
}
