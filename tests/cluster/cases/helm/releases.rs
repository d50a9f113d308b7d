//! Charts as releases of Helm: hooks, failures and what is left of them, on a server. What a chart needs is decided in
//! `plugins/helm/plan`, whose tests have the rest.

use orangery_tests::{
    chart::{deploy, end, hook, item, job, packed, revision},
    objects::Objects,
    tree::{any, in_phase},
};
use serde_json::{Value, json};

const CONFIG: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata: {text: {{ .Values.text | quote }}}\n";

fn config_map(text: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config"}, "data": {"text": text}})
}

/// The message of the item's failure.
async fn failure(cluster: &Objects) -> String {
    let item = cluster.expect(&in_phase("DeployItem", "item", "Failed")).await;
    item.pointer("/status/lastError/message").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn values(text: &str) -> Value {
    json!({"config": {"values": {"text": text}}})
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn a_hook_that_fails_fails_the_release_and_the_next_job_goes_on() {
    let cluster = crate::cluster().await;
    let migrate = hook("migrate", "pre-install,pre-upgrade");
    let chart = packed("1.0.0", &[("config.yaml", CONFIG), ("migrate.yaml", &migrate)]);
    deploy(&cluster, &item(&chart, &values("one"))).await;
    end(&cluster, "migrate", "Failed").await;
    let message = failure(&cluster).await;
    let expected = "plugin helm: pre-install hook Job migrate (app/templates/migrate.yaml): Job default/migrate has failed: Test: the test says so";
    assert_eq!(message, expected);
    cluster.expect(&revision(1, "failed")).await;
    cluster.expect_absent(&config_map("one")).await;
    let failed = cluster.expect(&job("migrate")).await;

    deploy(&cluster, &item(&chart, &values("two"))).await;
    let uid = failed.pointer("/metadata/uid").cloned();
    cluster.expect_that(&job("migrate"), "is the old one", |job| job.pointer("/metadata/uid") != uid.as_ref()).await;
    end(&cluster, "migrate", "Complete").await;
    cluster.expect(&in_phase("DeployItem", "item", "Succeeded")).await;
    cluster.expect(&config_map("two")).await;
    cluster.expect(&revision(2, "deployed")).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn an_atomic_upgrade_that_fails_is_rolled_back() {
    let cluster = crate::cluster().await;
    let plain = packed("1.0.0", &[("config.yaml", CONFIG)]);
    deploy(&cluster, &item(&plain, &values("one"))).await;
    cluster.expect(&in_phase("DeployItem", "item", "Succeeded")).await;

    let check = hook("check", "post-upgrade");
    let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n";
    let chart = packed("2.0.0", &[("config.yaml", CONFIG), ("check.yaml", &check), ("other.yaml", other)]);
    let mut atomic = values("two");
    atomic["config"]["helmDeploymentConfig"] = json!({"upgrade": {"atomic": true}});
    deploy(&cluster, &item(&chart, &atomic)).await;
    cluster.expect(&config_map("two")).await;
    end(&cluster, "check", "Failed").await;
    let message = failure(&cluster).await;
    assert!(message.ends_with("; the release is atomic and was rolled back to revision 1"), "{message}");
    cluster.expect(&config_map("one")).await;
    for (number, status) in [(1, "superseded"), (2, "failed"), (3, "deployed")] {
        cluster.expect(&revision(number, status)).await;
    }
    cluster.expect_absent(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}})).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn a_hook_that_never_ends_leaves_no_release_that_is_pending() {
    let cluster = crate::cluster().await;
    let chart = packed("1.0.0", &[("config.yaml", CONFIG), ("migrate.yaml", &hook("migrate", "pre-install"))]);
    let mut soon = values("one");
    // On a machine that does much else a chart takes its time.
    soon["timeout"] = json!("8s");
    deploy(&cluster, &item(&chart, &soon)).await;
    let failed = cluster.expect(&in_phase("DeployItem", "item", "Failed")).await;
    let error = failed.pointer("/status/lastError").cloned().unwrap_or_default();
    assert_eq!(error["codes"], json!(["ERR_TIMEOUT"]), "{error}");
    assert_eq!(
        error["message"],
        "plugin helm: pre-install hook Job migrate (app/templates/migrate.yaml): the item did not finish within its timeout of 8s; waiting for Job default/migrate to finish"
    );
    cluster.expect(&revision(1, "failed")).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn an_object_of_another_owner_is_left_alone_and_named() {
    let cluster = crate::cluster().await;
    cluster.apply(&config_map("foreign")).await;
    let chart = packed("1.0.0", &[("config.yaml", CONFIG)]);
    deploy(&cluster, &item(&chart, &values("ours"))).await;
    let message = failure(&cluster).await;
    assert!(message.contains("ConfigMap default/config exists and does not belong to the release rel"), "{message}");
    cluster.expect(&config_map("foreign")).await;
    cluster.expect_absent(&json!({"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1"})).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn a_conflict_over_a_field_fails_a_server_side_apply() {
    let cluster = crate::cluster().await;
    let chart = packed("1.0.0", &[("config.yaml", CONFIG)]);
    let mut server = values("ours");
    server["config"]["helmDeploymentConfig"] = json!({"install": {"serverSideApply": true}});
    deploy(&cluster, &item(&chart, &server)).await;
    cluster.expect(&in_phase("DeployItem", "item", "Succeeded")).await;
    cluster.apply(&config_map("foreign")).await;
    deploy(&cluster, &item(&chart, &values("ours again"))).await;
    let message = failure(&cluster).await;
    assert!(
        message.contains("ConfigMap default/config is not written, because others manage some of its fields")
            && message.contains("suite"),
        "{message}"
    );
    cluster.expect(&revision(2, "failed")).await;
    cluster.expect(&config_map("foreign")).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn a_deletion_runs_hooks_and_takes_the_release_away() {
    let cluster = crate::cluster().await;
    let kept =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, annotations: {\"helm.sh/resource-policy\": keep}}\n";
    let chart =
        packed("1.0.0", &[("config.yaml", CONFIG), ("kept.yaml", kept), ("drain.yaml", &hook("drain", "pre-delete"))]);
    deploy(&cluster, &item(&chart, &values("one"))).await;
    cluster.expect(&in_phase("DeployItem", "item", "Succeeded")).await;
    cluster.delete(&any("DeployItem", "item")).await;
    cluster.expect(&job("drain")).await;
    cluster.expect(&config_map("one")).await;
    end(&cluster, "drain", "Complete").await;
    cluster.expect_absent(&any("DeployItem", "item")).await;
    cluster.expect_absent(&config_map("one")).await;
    cluster.expect_absent(&json!({"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1"})).await;
    cluster.expect(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}})).await;
}

/// Bytes that a release of twenty objects may leave beside what Helm keeps of it.
const TEN_KILOBYTES: usize = 10 << 10;

#[tokio::test]
async fn c_63_a_release_of_twenty_objects_leaves_ten_kilobytes_beside_the_release() {
    let cluster = crate::cluster().await;
    let object = "{{ range $i, $e := until 20 }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: config-{{ $i }}}\n{{ end }}";
    deploy(&cluster, &item(&packed("1.0.0", &[("config.yaml", object)]), &json!({}))).await;
    let mut done = cluster.expect(&in_phase("DeployItem", "item", "Succeeded")).await;
    let maps = cluster.list(&json!({"apiVersion": "v1", "kind": "ConfigMap"})).await;
    let of_chart = |map: &&Value| map["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("config-"));
    assert_eq!(maps.iter().filter(of_chart).count(), 20);
    // Managed fields are the server's own.
    done["metadata"].as_object_mut().expect("metadata").remove("managedFields");
    let secrets = cluster.list(&json!({"apiVersion": "v1", "kind": "Secret"})).await;
    let ours = secrets.iter().filter(|secret| secret["metadata"]["ownerReferences"].to_string().contains("DeployItem"));
    let bytes = ours.chain([&done]).map(|object| object.to_string().len()).sum::<usize>();
    assert!((1 << 10..=TEN_KILOBYTES).contains(&bytes), "{bytes} bytes: {done:#}");
}
