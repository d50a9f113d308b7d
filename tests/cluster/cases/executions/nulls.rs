//! Values that become `null` in a later job.

use orangery_tests::tree::{API, any, blueprint, executions, in_phase, installation, mocks, next_job};
use serde_json::{Value, json};

/// A `null` means something: it takes a default value of a chart away.
#[tokio::test]
async fn c_170_what_becomes_null_in_a_later_job_is_null_in_items_and_exports() {
    let cluster = crate::cluster().await;
    let root = |content: Value| {
        let mut item = mocks("a", &[], "Succeeded", "x");
        item["config"]["export"] = json!({"content": content});
        let exports = json!([{"name": "content", "type": "data", "schema": {}}]);
        let export = json!({"name": "e", "type": "GoTemplate", "template":
            "exports:\n  content: {{ index .values.deployitems \"a\" \"content\" | toJson }}"});
        let fields = json!({"exports": exports, "deployExecutions": executions(&[item]), "exportExecutions": [export]});
        let mut root = installation("root", &blueprint(fields));
        root["spec"]["exports"] = json!({"data": [{"name": "content", "dataRef": "content"}]});
        root
    };
    cluster.apply(&root(json!({"a": 1, "list": [{"b": 1}]}))).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    for content in [json!({"a": null, "list": [{"b": 1}], "new": {"n": null}}), json!({"list": [{"b": null}]})] {
        next_job(&cluster, &root(content.clone())).await;
        let item = cluster.expect(&json!({"apiVersion": API, "kind": "DeployItem"})).await;
        assert_eq!(item["spec"]["config"]["export"]["content"], content);
        let exported = cluster.expect(&any("DataObject", "content")).await;
        assert_eq!(exported["data"], content);
    }
}
