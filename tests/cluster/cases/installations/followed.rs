//! A spec that somebody changes while a job runs, where the root follows it.

use orangery_tests::{
    external_deployer::ExternalDeployer,
    tree::{any, blueprint, in_phase, installation, items},
};
use serde_json::{Value, json};

/// In each of the three ways to follow a spec.
#[tokio::test]
async fn c_06_c_05_a_change_during_a_job_starts_the_next_one_and_only_that() {
    let cluster = crate::cluster().await;
    let deployer = ExternalDeployer(&cluster);
    for (name, policy) in [("on-spec-change", "OnSpecChange"), ("on-change", "OnChange"), ("if-changed", "Manual")] {
        let root = |content: &str| {
            let mut root = installation(name, &blueprint(json!({"deployExecutions": items(&[(name, &[])], content)})));
            root["metadata"]["annotations"] = match policy {
                "Manual" => json!({"landscaper.gardener.cloud/reconcile-if-changed": "true"}),
                _ => json!({}),
            };
            root["spec"]["reconcilePolicy"] = json!(policy);
            root
        };
        cluster.apply(&root("1")).await;
        let first = deployer.triggered(name).await["status"]["jobID"].clone();
        cluster.expect(&in_phase("Installation", name, "Progressing")).await;
        cluster.apply(&root("2")).await;
        deployer.succeed(name).await;
        let is_next = |item: &Value| {
            let is_it = item["metadata"]["labels"]["execution.landscaper.gardener.cloud/name"] == name;
            is_it && item["spec"]["config"]["content"] == "2" && item["status"]["jobID"] != first
        };
        let next = cluster.expect_that(&any("DeployItem", ""), "no job of the new spec", is_next).await;
        deployer.succeed(name).await;
        let done = cluster.expect(&in_phase("Installation", name, "Succeeded")).await;
        assert_eq!(done["status"]["jobID"], next["status"]["jobID"], "{name}");
        assert_eq!(done["status"]["observedGeneration"], done["metadata"]["generation"], "{name}");
    }
}
