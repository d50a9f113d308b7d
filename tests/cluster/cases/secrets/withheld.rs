//! More values of Secrets than can be looked for: what is withheld for that says why (C-203).

use data_encoding::BASE64;
use orangery_tests::{
    chart::deploy,
    objects::NAMESPACE,
    tree::{API, any, in_phase},
};
use serde_json::json;

use super::importing;

const WITHHELD: &str = "[masked: more was read of Secrets for this namespace than can be looked for in a message (256 KiB); use \
                        fewer or smaller ones in it, or another namespace for what fails. The reason and the codes beside it are \
                        shown]";

#[tokio::test]
async fn c_203_a_message_that_is_withheld_says_why_and_shows_its_reason_and_codes() {
    let cluster = crate::cluster().await;
    let value = BASE64.encode("a secret of many words, ".repeat(12 << 10).as_bytes());
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "canary"}, "data": {"value": value}});
    cluster.apply(&secret).await;
    let template = json!([{"name": "d", "type": "Jinja", "template": "deployItems: {{ imports.none.of }}"}]);
    cluster.apply(&importing("root", json!({"deployExecutions": template}))).await;
    let failed = cluster.expect(&in_phase("Installation", "root", "Failed")).await;
    let error = &failed["status"]["lastError"];
    let told = json!([error["operation"], error["reason"], error["message"], error["codes"]]);
    assert_eq!(told, json!(["RenderTemplate", "TemplateFailed", WITHHELD, ["ERR_FOR_INFO_ONLY"]]));
    // An item of the same namespace that has nothing to do with it.
    let config = json!({
        "apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
        "manifests": "none",
    });
    let target = json!({"name": "cluster", "namespace": NAMESPACE});
    let spec = json!({"type": "landscaper.gardener.cloud/kubernetes-manifest", "target": target, "config": config});
    let item = json!({"apiVersion": API, "kind": "DeployItem", "metadata": {"name": "item"}, "spec": spec});
    deploy(&cluster, &item).await;
    cluster.expect(&in_phase("DeployItem", "item", "Failed")).await;
    let items = cluster.list(&any("DeployItem", "item")).await;
    assert_eq!(items[0]["status"]["lastError"]["message"], WITHHELD);
}
