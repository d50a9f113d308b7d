//! Charts and component versions that are pushed when what names them is there already.

use std::fs;

use orangery_core::digest::sha256;
use orangery_tests::{
    chart::deploy,
    cluster::Cluster,
    tree::{API, any, in_phase},
};
use serde_json::{Value, json};

use super::{
    chart_sources::{ChartServer, chart, release, start},
    registry::{BLUEPRINT_TYPE, COMPONENT, archive, installation},
};

/// What a condition says.
fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind)
}

/// Waits until an item says that what it needs is not there, and goes on.
async fn waits(cluster: &Cluster, item: &str, why: &str) {
    let message = format!("plugin helm: {why}");
    let is_so = |object: &Value| {
        let (status, error) = (&object["status"], &object["status"]["lastError"]);
        object["metadata"]["name"] == item
            && (&status["phase"], &error["message"], &error["reason"], &error["codes"])
                == (&json!("Progressing"), &json!(message), &json!("PluginTryLater"), &Value::Null)
            && condition(object, "Progressing").is_some_and(|of| of["reason"] == "TransientError")
    };
    cluster.expect_that(&any("DeployItem", item), "does not say what is not there", is_so).await;
}

fn of_repository(shelf: &ChartServer, version: &str) -> Value {
    let url = format!("http://{}/stable", shelf.address);
    json!({"helmChartRepo": {"helmChartRepoUrl": url, "helmChartName": "app", "helmChartVersion": version}})
}

fn of_server(shelf: &ChartServer) -> Value {
    json!({"archive": {"remote": {"url": format!("http://{}/open/app.tgz", shelf.address)}}})
}

fn not_there(shelf: &ChartServer, tag: &str) -> String {
    format!(
        "cannot get the manifest of {}/charts/app:{tag}: the registry does not have it (404 to a request with the \
         credentials in the Secret pull); check name and version, and whether the Context has credentials that may see it",
        shelf.address
    )
}

#[tokio::test]
async fn c_148_a_chart_that_is_pushed_later_is_waited_for() {
    let (shelf, cluster) = start().await;
    let address = shelf.address;
    let packed = chart("repository");
    let index = |versions: &str| format!("entries: {{app: [{versions}]}}");
    let listed =
        |version: &str, digest: &str| format!("{{version: {version}, urls: [app-{version}.tgz], digest: {digest}}}");
    let first = listed("1.0.0", "");
    shelf.put("/stable/index.yaml", index(&first).as_bytes());
    let by_tag = json!({"ref": format!("{address}/charts/app:2.0.0")});
    for (name, source) in
        [("tag", &by_tag), ("repository", &of_repository(&shelf, "2.0.0")), ("server", &of_server(&shelf))]
    {
        deploy(&cluster, &release(name, source)).await;
    }
    waits(&cluster, "tag", &not_there(&shelf, "2.0.0")).await;
    let unlisted =
        format!("the index http://{address}/stable/index.yaml has no version 2.0.0 of the chart app; it has 1.0.0");
    waits(&cluster, "repository", &unlisted).await;
    let missing = format!(
        "cannot get the file http://{address}/open/app.tgz: the server does not have it (404 to a request without \
         credentials, as the Context has none for it); check name and version, and whether the Context has credentials that \
         may see it"
    );
    waits(&cluster, "server", &missing).await;

    shelf.push("2.0.0", &chart("tag"));
    shelf.put("/stable/app-2.0.0.tgz", &packed);
    let second = listed("2.0.0", &sha256(&packed).replacen("sha256:", "", 1));
    shelf.put("/stable/index.yaml", index(&format!("{first}, {second}")).as_bytes());
    shelf.put("/open/app.tgz", &chart("server"));
    for name in ["tag", "repository", "server"] {
        let done = cluster.expect(&in_phase("DeployItem", name, "Succeeded")).await;
        assert_eq!(done["status"]["lastError"], Value::Null);
        cluster.expect(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})).await;
    }
}

#[tokio::test]
async fn c_148_c_08_a_chart_that_is_never_pushed_ends_with_the_time_of_its_item_and_a_command_at_once() {
    let (shelf, cluster) = start().await;
    let mut item = release("never", &json!({"ref": format!("{}/charts/app:2.0.0", shelf.address)}));
    item["spec"]["timeout"] = json!("3s");
    deploy(&cluster, &item).await;
    let failed = cluster.expect(&in_phase("DeployItem", "never", "Failed")).await;
    let error = &failed["status"]["lastError"];
    let message = error["message"].as_str().unwrap_or_default();
    assert_eq!((&error["reason"], &error["codes"]), (&json!("ProgressingTimeout"), &json!(["ERR_TIMEOUT"])));
    assert!(message.contains(&not_there(&shelf, "2.0.0")), "{message}");

    let binary = crate::binary().await;
    fs::write(binary.folder().join("kubeconfig"), cluster.kubeconfig()).expect("a file");
    let named = shelf.address.to_string();
    let flags = ["--kubeconfig", "kubeconfig", "--default-policy=compatible", "--plain-http-registry", &named];
    let ended = binary.run(&[&["plan", "never"][..], &flags].concat()).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains(&not_there(&shelf, "2.0.0")), "{ended:?}");
}

/// Pushes the component version that the Installation names.
fn push_component(shelf: &ChartServer, context: &Value) {
    let repository = format!("components/component-descriptors/{COMPONENT}");
    let layer = shelf.blob(&repository, BLUEPRINT_TYPE, &archive());
    let access = json!({"type": "localBlob", "localReference": layer["digest"], "mediaType": BLUEPRINT_TYPE});
    let descriptor = json!({
        "meta": {"schemaVersion": "v2"},
        "component": {
            "name": COMPONENT, "version": "1.0.0+1", "provider": "us", "repositoryContexts": [context], "sources": [],
            "componentReferences": [],
            "resources": [{
                "name": "blueprint", "version": "1.0.0", "type": "landscaper.gardener.cloud/blueprint",
                "relation": "local", "access": access,
            }],
        },
    });
    let kind = "application/vnd.ocm.software.component-descriptor.v2+json";
    let descriptor = shelf.blob(&repository, kind, descriptor.to_string().as_bytes());
    let config = json!({"componentDescriptorLayer": descriptor}).to_string();
    let config = shelf.blob(&repository, "application/vnd.ocm.software.component.config.v1+json", config.as_bytes());
    shelf.manifest(&repository, "1.0.0.build-1", &config, &[descriptor, layer]);
}

/// The Context `components`, and the repository that it names.
async fn apply_context(shelf: &ChartServer, cluster: &Cluster) -> Value {
    let context = json!({"type": "OCIRegistry", "baseUrl": shelf.address.to_string(), "subPath": "components"});
    cluster
        .apply(&json!({
            "apiVersion": API, "kind": "Context", "metadata": {"name": "components"},
            "repositoryContext": context, "registryPullSecrets": [{"name": "pull"}],
        }))
        .await;
    context
}

/// It is opened at the begin of a job, to render, and for the exports.
#[tokio::test]
async fn ins_82_a_job_fetches_a_component_version_once() {
    let (shelf, cluster) = start().await;
    push_component(&shelf, &apply_context(&shelf, &cluster).await);
    cluster.apply(&installation("once", "components")).await;
    cluster.expect(&in_phase("Installation", "once", "Succeeded")).await;
    assert_eq!(shelf.served("/manifests/"), 1);
}

#[tokio::test]
async fn c_148_a_component_version_that_is_pushed_later_is_waited_for() {
    let (shelf, cluster) = start().await;
    let context = apply_context(&shelf, &cluster).await;
    cluster.apply(&installation("late", "components")).await;
    let expected = format!(
        "there is no component {COMPONENT}:1.0.0+1 in {}/components; check its name and version",
        shelf.address
    );
    let is_so = |object: &Value| {
        object["status"]["phase"] == "Init"
            && condition(object, "Reconciling").is_some_and(|of| of["status"] == "True")
            && condition(object, "Progressing")
                .is_some_and(|of| (&of["reason"], &of["message"]) == (&json!("TransientError"), &json!(expected)))
    };
    cluster.expect_that(&any("Installation", "late"), "does not say what is not there", is_so).await;
    push_component(&shelf, &context);
    let done = cluster.expect(&in_phase("Installation", "late", "Succeeded")).await;
    assert_eq!(done["status"]["lastError"], Value::Null);
    cluster.expect(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "greeting"}})).await;
}
