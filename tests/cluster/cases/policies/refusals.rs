//! A tenant tries what it may not do.

use std::net::TcpListener;

use orangery_tests::{
    chart,
    cluster::Cluster,
    objects::NAMESPACE,
    tree::{
        API, any, asks, blueprint, deploys, executions, imports_cluster, in_phase, installation, mocks, on_cluster,
    },
};
use serde_json::{Value, json};

use super::{policy, put, refused};

/// A root that deploys these items to the Target `cluster`.
fn root(name: &str, items: &[Value]) -> Value {
    let blueprint = blueprint(json!({"imports": imports_cluster(), "deployExecutions": executions(items)}));
    on_cluster(installation(name, &blueprint))
}

/// An item that writes a ConfigMap of its name, and this object after it.
fn writes(name: &str, object: Value) -> Value {
    let mut item = deploys(name, &[], "1");
    let manifests = item.pointer_mut("/config/manifests").and_then(Value::as_array_mut).expect("manifests");
    manifests.push(json!({"policy": "manage", "manifest": object}));
    item
}

fn config_map(name: &str, namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}})
}

/// A root that is refused by a line; nothing that its item wanted was written.
async fn check_refused(cluster: &Cluster, name: &str, item: Value, line: &str) -> String {
    cluster.apply(&root(name, &[item])).await;
    let message = refused(cluster, &any("Installation", name), "Failed", line).await;
    cluster.expect_absent(&config_map(name, NAMESPACE)).await;
    message
}

/// Under the profile that the chart begins with, without any policy; then with one that has the network of the tests alone.
#[tokio::test]
async fn a_tenant_under_the_restricted_profile_reaches_no_further_than_its_namespaces() {
    let cluster = crate::cluster_with(&["--default-policy=restricted"]).await;
    let inside = check_refused(&cluster, "inside", deploys("inside", &[], "1"), "spec.egress.networks").await;
    let sentence = "127.0.0.1 leads to 127.0.0.1, a loopback address, which is refused by the default policy, line \
                    spec.egress.networks; name another address, or have an administrator add 127.0.0.1/32 to that line";
    assert!(inside.contains(sentence), "{inside}");
    put(&cluster, &policy("team", json!({}))).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}});
    let message =
        check_refused(&cluster, "scoped", writes("scoped", namespace.clone()), "spec.targets.clusterScoped").await;
    let sentence = "v1 Namespace mine outside of namespaces is refused by NamespacePolicy team, line \
                    spec.targets.clusterScoped of its profile restricted; leave it out, or have an administrator set \
                    clusterScoped: true there";
    assert!(message.contains(sentence), "{message}");
    cluster.expect_absent(&namespace).await;
    // A namespace written beside it makes a Namespace no object of one.
    let mut stray = namespace.clone();
    stray["metadata"]["namespace"] = json!(NAMESPACE);
    check_refused(&cluster, "stray", writes("stray", stray), "spec.targets.clusterScoped").await;
    cluster.expect_absent(&namespace).await;
    let wasm = json!([{"name": "d", "type": "Wasm", "file": "engine.wasm"}]);
    let brings = blueprint(json!({"deployExecutions": wasm}));
    let mut brings = installation("brings", &brings);
    brings["spec"]["blueprint"]["inline"]["filesystem"]["engine.wasm"] = json!("no component");
    cluster.apply(&brings).await;
    refused(&cluster, &any("Installation", "brings"), "Failed", "spec.blueprints.components").await;
    // What is its own affair is none of the policy's.
    cluster.apply(&root("honest", &[deploys("honest", &[], "1")])).await;
    cluster.expect(&in_phase("Installation", "honest", "Succeeded")).await;
}

#[tokio::test]
async fn each_line_of_a_policy_refuses_what_it_does_not_allow_before_anything_is_written() {
    let cluster = crate::cluster().await;
    let tries = async |name: &str, item: Value, fields: Value, line: &str| {
        put(&cluster, &policy("team", fields)).await;
        let message = check_refused(&cluster, name, item, line).await;
        assert!(message.contains("NamespacePolicy team"), "{message}");
    };
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine", "namespace": NAMESPACE}});
    let denied = json!({"targets": {"kinds": {"deny": [{"group": "core", "kind": "Secret"}]}}});
    tries("denied", writes("denied", secret.clone()), denied, "spec.targets.kinds.deny").await;
    let allowed = json!({"targets": {"kinds": {"allow": [{"group": "core", "kind": "ConfigMap"}]}}});
    tries("allowed", writes("allowed", secret.clone()), allowed, "spec.targets.kinds.allow").await;
    cluster.expect_absent(&secret).await;
    let elsewhere = config_map("elsewhere", "kube-system");
    let namespaces = json!({"targets": {"namespaces": [NAMESPACE]}});
    tries("beside", writes("beside", elsewhere.clone()), namespaces, "spec.targets.namespaces").await;
    cluster.expect_absent(&elsewhere).await;
    let servers = json!({"targets": {"servers": ["https://clusters.example.org:*"]}});
    tries("server", deploys("server", &[], "1"), servers, "spec.targets.servers").await;
    let narrowed = json!({"items": {"types": [{"type": "*/kubernetes-manifest", "kinds": [{"kind": "Secret"}]}]}});
    tries("narrowed", deploys("narrowed", &[], "1"), narrowed, "spec.items.types[0].kinds").await;
    let narrowed = json!({"items": {"types": [{"type": "*/kubernetes-manifest", "namespaces": ["apps-*"]}]}});
    tries("placed", deploys("placed", &[], "1"), narrowed, "spec.items.types[0].namespaces").await;
}

/// Charts of registries and repositories, by the lines for all and by those for a type.
#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn each_line_about_sources_keeps_items_from_asking_them() {
    let cluster = crate::cluster().await;
    let source = TcpListener::bind("127.0.0.1:0").expect("a free port");
    source.set_nonblocking(true).expect("a socket");
    let address = source.local_addr().expect("an address");
    let repository = json!({"helmChartRepo": {
        "helmChartRepoUrl": format!("http://{address}/stable"), "helmChartName": "app", "helmChartVersion": "1.0.0",
    }});
    let registry = json!({"ref": format!("{address}/charts/app:1.0.0")});
    let of_type = |field: &str, allowed: &str| json!({"items": {"types": [{"type": "*/helm", field: [allowed]}]}});
    let lines = [
        ("hosts", json!({"sources": {"hosts": ["charts.example.org"]}}), &repository, "spec.sources.hosts"),
        ("registries", json!({"sources": {"registries": ["ghcr.io/acme/*"]}}), &registry, "spec.sources.registries"),
        ("hosts-of", of_type("hosts", "charts.example.org"), &repository, "spec.items.types[0].hosts"),
        ("registries-of", of_type("registries", "ghcr.io/acme/*"), &registry, "spec.items.types[0].registries"),
    ];
    for (name, fields, chart, line) in lines {
        put(&cluster, &policy("team", fields)).await;
        let mut item = chart::item("", &json!({"config": {"chart": chart}}));
        item["metadata"]["name"] = json!(name);
        chart::deploy(&cluster, &item).await;
        let message = refused(&cluster, &any("DeployItem", name), "Failed", line).await;
        assert!(message.contains("NamespacePolicy team"), "{message}");
        assert!(source.accept().is_err(), "{name}: the source was asked");
    }
}

/// Credentials that a template has issued for a Target, by a policy and by the profile. The root starts again when something else
/// counts.
#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_143_a_template_has_no_credentials_issued_that_a_policy_does_not_allow() {
    let cluster = crate::cluster().await;
    let asks = |name: &str, of: &str| {
        let template =
            format!("deployItems: []\nx: {{{{ get{of}Kubeconfig \"n\" \"default\" 600 .imports.cluster }}}}\n");
        let execution = json!({"name": "d", "type": "GoTemplate", "template": template});
        let fields = json!({"imports": imports_cluster(), "deployExecutions": [execution]});
        on_cluster(installation(name, &blueprint(fields)))
    };
    put(&cluster, &policy("team", json!({"targets": {"credentials": []}}))).await;
    cluster.apply(&asks("none", "ServiceAccount")).await;
    let message = refused(&cluster, &any("Installation", "none"), "Failed", "spec.targets.credentials").await;
    assert!(
        message.contains("a credential of kind serviceAccount is refused by NamespacePolicy team, line"),
        "{message}"
    );
    cluster.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "n"}})).await;
    put(&cluster, &policy("team", json!({}))).await;
    cluster.expect(&in_phase("Installation", "none", "Succeeded")).await;
    cluster.apply(&asks("shoot", "ShootAdmin")).await;
    let line = "spec.targets.credentials of its profile restricted";
    let message = refused(&cluster, &any("Installation", "shoot"), "Failed", line).await;
    assert!(message.contains("a credential of kind shootAdmin is refused by NamespacePolicy team, line"), "{message}");
}

/// No item is made whose type is refused, also where others of its Execution are allowed.
#[tokio::test]
async fn items_of_a_refused_type_and_blueprints_of_a_refused_sort_are_not_begun() {
    let cluster = crate::cluster().await;
    put(&cluster, &policy("team", json!({"items": {"types": [{"type": "*/kubernetes-manifest"}]}}))).await;
    let both = [deploys("typed", &[], "1"), mocks("mocked", &["typed"], "Succeeded", "x")];
    cluster.apply(&root("typed", &both)).await;
    refused(&cluster, &any("Installation", "typed"), "Failed", "spec.items.types").await;
    assert!(cluster.list(&any("DeployItem", "")).await.is_empty(), "an item was made");
    put(&cluster, &policy("team", json!({"blueprints": {"templates": ["GoTemplate"]}}))).await;
    cluster.apply(&root("jinja", &[deploys("jinja", &[], "1")])).await;
    refused(&cluster, &any("Installation", "jinja"), "Failed", "spec.blueprints.templates").await;
    put(&cluster, &policy("team", json!({"blueprints": {"inline": false}}))).await;
    cluster.apply(&root("inline", &[deploys("inline", &[], "1")])).await;
    refused(&cluster, &any("Installation", "inline"), "Failed", "spec.blueprints.inline").await;
    assert!(cluster.list(&any("Execution", "")).await.len() <= 1, "something was rendered");
}

#[tokio::test]
async fn a_registry_that_a_policy_does_not_allow_is_not_asked() {
    let cluster = crate::cluster().await;
    let registry = TcpListener::bind("127.0.0.1:0").expect("a free port");
    registry.set_nonblocking(true).expect("a socket");
    let address = registry.local_addr().expect("an address").to_string();
    put(&cluster, &policy("team", json!({"sources": {"registries": ["ghcr.io/acme/*"]}}))).await;
    let repository = json!({"type": "ociRegistry", "baseUrl": address});
    let reference = json!({"repositoryContext": repository, "componentName": "example.com/a", "version": "1.0.0"});
    let spec = json!({"componentDescriptor": {"ref": reference}, "blueprint": {"ref": {"resourceName": "blueprint"}}});
    let metadata = json!({"name": "fetched", "annotations": asks()});
    cluster.apply(&json!({"apiVersion": API, "kind": "Installation", "metadata": metadata, "spec": spec})).await;
    let message = refused(&cluster, &any("Installation", "fetched"), "Failed", "spec.sources.registries").await;
    assert!(
        message.contains(&format!("content of {address}/component-descriptors/example.com/a is refused by")),
        "{message}"
    );
    assert!(registry.accept().is_err(), "the registry was asked");
}

/// Nobody can approve anything yet: what asks for it is refused, and not done without.
#[tokio::test]
async fn c_49_where_an_approval_is_required_no_external_deployer_is_given_an_item_and_none_by_hand_goes_on() {
    let cluster = crate::cluster().await;
    put(&cluster, &policy("team", json!({"approval": "Required"}))).await;
    // An Execution that somebody writes by hand, and asks for a job as its Installation would, makes none for an external deployer.
    let items =
        json!([{"name": "forged", "type": "example.org/external", "config": orangery_tests::tree::config("1")}]);
    let forged = any("Execution", "forged");
    cluster
        .apply(&json!({
            "apiVersion": API, "kind": "Execution", "metadata": {"name": "forged"}, "spec": {"deployItems": items},
        }))
        .await;
    cluster.patch_status(&forged, json!({"jobID": "forged"})).await;
    let message = refused(&cluster, &forged, "Failed", "spec.approval").await;
    let sentence = "an item of an external deployer, whose writes nobody can approve (approval: None asks for none), is refused by \
                    NamespacePolicy team, line spec.approval; have an administrator correct that policy";
    assert!(message.contains(sentence), "{message}");
    assert_eq!(cluster.list(&any("DeployItem", "")).await.len(), 0, "an item was made");
    // An item that somebody writes by hand waits as well, and goes on when none is asked for.
    let config = writes("bare", config_map("beside", NAMESPACE))["config"].clone();
    let spec = json!({"type": "landscaper.gardener.cloud/kubernetes-manifest", "target": {"name": "cluster", "namespace": NAMESPACE}, "config": config});
    let asks = json!({"landscaper.gardener.cloud/operation": "test-reconcile"});
    let metadata = json!({"name": "bare", "annotations": asks});
    cluster.apply(&json!({"apiVersion": API, "kind": "DeployItem", "metadata": metadata, "spec": spec})).await;
    let waits = |item: &Value| item["status"]["waitingFor"][0]["until"] == "Approved";
    cluster.expect_that(&any("DeployItem", "bare"), "did not wait for an approval", waits).await;
    cluster.expect_absent(&config_map("beside", NAMESPACE)).await;
    put(&cluster, &policy("team", json!({"approval": "None"}))).await;
    cluster.expect(&in_phase("DeployItem", "bare", "Succeeded")).await;
}

/// A Target that is gone takes no server out of the policy's sight.
#[tokio::test]
async fn c_28_a_kubeconfig_that_was_kept_is_used_where_the_policy_allows_its_server() {
    let cluster = crate::cluster_with(&["--guards=false"]).await;
    cluster.apply(&root("kept", &[deploys("kept", &[], "1")])).await;
    cluster.expect(&in_phase("Installation", "kept", "Succeeded")).await;
    // What was kept counts for Targets that somebody else than a user has made.
    let mut exporter = root("exporter", &[]);
    exporter["metadata"]["annotations"] = json!({});
    exporter["spec"]["exports"] = json!({"targets": [{"name": "out", "target": "cluster"}]});
    cluster.apply(&exporter).await;
    put(&cluster, &policy("team", json!({"targets": {"servers": ["https://clusters.example.org:*"]}}))).await;
    cluster.delete(&any("Target", "cluster")).await;
    cluster.delete(&any("Installation", "kept")).await;
    refused(&cluster, &any("Installation", "kept"), "DeleteFailed", "spec.targets.servers").await;
    cluster.expect(&config_map("kept", NAMESPACE)).await;
    put(&cluster, &policy("team", json!({"profile": "compatible"}))).await;
    let mut again = any("Installation", "kept");
    again["metadata"]["annotations"] = asks();
    cluster.merge_where_there(&again).await;
    cluster.expect_absent(&any("Installation", "kept")).await;
    cluster.expect_absent(&config_map("kept", NAMESPACE)).await;
}
