//! Networks that a namespace may connect to (C-101, C-102, C-103). The servers of the tests are on loopback.

use kube::config::Kubeconfig;
use orangery_tests::{
    cluster::{Cluster, own_target},
    objects::NAMESPACE,
    tree::{
        any, ask, becomes_ready, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster,
    },
};
use serde_json::{Value, json};

use super::{expect_drifted, policy, put, refused};

const LINE: &str = "spec.egress.networks";

/// A root that deploys an item to a Target.
fn root(name: &str, item: Value, target: &str) -> Value {
    let blueprint = blueprint(json!({"imports": imports_cluster(), "deployExecutions": executions(&[item])}));
    let mut root = on_cluster(installation(name, &blueprint));
    root["spec"]["imports"]["targets"][0]["target"] = json!(target);
    root
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}})
}

/// The policy with these networks.
fn networks(networks: &[&str]) -> Value {
    policy("team", json!({"egress": {"networks": networks}}))
}

/// The server of the cases, as policies name it.
fn server(cluster: &Cluster) -> String {
    let kubeconfig = Kubeconfig::from_yaml(cluster.kubeconfig()).expect("the kubeconfig is one");
    let named = kubeconfig.clusters.into_iter().find_map(|named| named.cluster?.server);
    named.expect("it names a server").trim_end_matches('/').to_owned()
}

async fn succeeds(cluster: &Cluster, name: &str) {
    cluster.expect(&in_phase("Installation", name, "Succeeded")).await;
}

#[tokio::test]
async fn c_101_a_namespace_connects_to_the_networks_alone_that_its_policy_lists_and_a_change_counts_at_once() {
    let cluster = crate::cluster().await;
    put(&cluster, &networks(&[])).await;
    cluster.apply(&root("inside", deploys("inside", &[], "1"), "cluster")).await;
    let message = refused(&cluster, &any("Installation", "inside"), "Failed", LINE).await;
    let sentence = "127.0.0.1 leads to 127.0.0.1, a loopback address, which is refused by NamespacePolicy team, line \
                    spec.egress.networks; name another address, or have an administrator add 127.0.0.1/32 to that line";
    assert!(message.contains(sentence), "{message}");
    cluster.expect_absent(&config_map("inside")).await;
    // Of its profile, where the policy itself does not say it.
    let mut of_profile = policy("team", json!({}));
    of_profile["spec"].as_object_mut().expect("a spec").remove("egress");
    put(&cluster, &of_profile).await;
    let line = "spec.egress.networks of its profile restricted; ";
    refused(&cluster, &any("Installation", "inside"), "Failed", line).await;
    // Nobody asks for another job.
    put(&cluster, &networks(&["10.0.0.0/8", "127.0.0.0/8"])).await;
    succeeds(&cluster, "inside").await;
    cluster.expect(&config_map("inside")).await;
    // What was connected to before is not any more.
    put(&cluster, &networks(&["10.0.0.0/8", "169.254.0.0/16"])).await;
    ask(&cluster, "inside").await;
    refused(&cluster, &any("Installation", "inside"), "Failed", LINE).await;
    cluster.delete(&any("Installation", "inside")).await;
    refused(&cluster, &any("Installation", "inside"), "DeleteFailed", LINE).await;
    cluster.expect(&config_map("inside")).await;
    cluster.delete(&networks(&[])).await;
    cluster.expect_absent(&any("Installation", "inside")).await;
    cluster.expect_absent(&config_map("inside")).await;
}

#[tokio::test]
async fn c_101_a_server_that_the_policy_names_by_its_address_is_reached_by_that_and_by_no_name() {
    let cluster = crate::cluster().await;
    let by_name = cluster.kubeconfig().replace("127.0.0.1", "localhost");
    let mut target = own_target(&by_name);
    target["metadata"]["name"] = json!("by-name");
    cluster.apply(&target).await;
    let (server, named) = (server(&cluster), server(&cluster).replace("127.0.0.1", "localhost"));
    let servers = json!([server, named, "*"]);
    put(&cluster, &policy("team", json!({"egress": {"networks": []}, "targets": {"servers": servers}}))).await;
    cluster.apply(&root("by-address", deploys("by-address", &[], "1"), "cluster")).await;
    succeeds(&cluster, "by-address").await;
    cluster.apply(&root("by-name", deploys("by-name", &[], "1"), "by-name")).await;
    let message = refused(&cluster, &any("Installation", "by-name"), "Failed", LINE).await;
    assert!(message.contains(": localhost leads to ") && message.contains(", a loopback address, "), "{message}");
    cluster.expect_absent(&config_map("by-name")).await;
}

/// Two namespaces with one kubeconfig: what one of them may connect to, is connected to and keeps, is nothing for the other.
#[tokio::test]
async fn c_102_what_one_namespace_may_connect_to_is_nothing_for_another() {
    let cluster = crate::cluster().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "neighbour"}});
    cluster.apply(&namespace).await;
    let mut theirs = policy("neighbours", json!({"egress": {"networks": []}}));
    theirs["spec"]["namespaces"] = json!({"names": ["neighbour"]});
    put(&cluster, &theirs).await;
    put(&cluster, &networks(&["127.0.0.0/8"])).await;
    let there = |mut object: Value| {
        object["metadata"]["namespace"] = json!("neighbour");
        object
    };
    let context = there(any("Context", "default"));
    cluster.expect(&context).await;
    cluster.apply(&there(own_target(cluster.kubeconfig()))).await;
    cluster.apply(&root("mine", becomes_ready("mine", &[]), "cluster")).await;
    cluster.expect(&config_map("mine")).await;
    // The first one is connected and waits.
    let his = there(root("his", deploys("his", &[], "1"), "cluster"));
    cluster.apply(&his).await;
    let message = refused(&cluster, &there(any("Installation", "his")), "Failed", LINE).await;
    assert!(message.contains("NamespacePolicy neighbours"), "{message}");
    cluster.expect_absent(&config_map("his")).await;
    let mut ready = config_map("mine");
    ready["data"] = json!({"ready": "yes"});
    cluster.merge(&ready).await;
    succeeds(&cluster, "mine").await;
    // And the other way round.
    theirs["spec"]["egress"] = json!({"networks": ["127.0.0.0/8"]});
    put(&cluster, &theirs).await;
    put(&cluster, &networks(&[])).await;
    cluster.expect(&there(in_phase("Installation", "his", "Succeeded"))).await;
    ask(&cluster, "mine").await;
    let message = refused(&cluster, &any("Installation", "mine"), "Failed", LINE).await;
    assert!(message.contains("NamespacePolicy team"), "{message}");
}

#[tokio::test]
async fn c_102_a_job_that_waits_ends_where_its_network_is_shut_and_drift_is_not_known_there() {
    let cluster = crate::cluster().await;
    put(&cluster, &networks(&["127.0.0.0/8"])).await;
    let mut drifts = deploys("drifts", &[], "1");
    drifts["drift"] = json!({"policy": "Correct"});
    cluster.apply(&root("drifts", drifts, "cluster")).await;
    succeeds(&cluster, "drifts").await;
    let says = async |what: &str, status: &str, text: &str| expect_drifted(&cluster, what, (status, text)).await;
    says("is not watched", "False", "").await;
    cluster.apply(&root("waits", becomes_ready("waits", &[]), "cluster")).await;
    cluster.expect(&config_map("waits")).await;
    put(&cluster, &networks(&[])).await;
    refused(&cluster, &any("Installation", "waits"), "Failed", LINE).await;
    says("is still watched", "Unknown", "line spec.egress.networks").await;
    put(&cluster, &networks(&["127.0.0.0/8"])).await;
    says("is not watched again", "False", "").await;
    let waits = |item: &Value| item["status"]["waitingFor"].as_array().is_some_and(|waits| !waits.is_empty());
    cluster.expect_that(&any("DeployItem", ""), "did not wait again", waits).await;
    let mut ready = config_map("waits");
    ready["data"] = json!({"ready": "yes"});
    cluster.merge(&ready).await;
    succeeds(&cluster, "waits").await;
}

/// What is watched is read of as well: a server that is not allowed any more is not read of because it was once.
#[tokio::test]
async fn c_102_drift_is_not_known_where_the_server_is_not_allowed_any_more() {
    let cluster = crate::cluster().await;
    let servers = |servers: Value| {
        policy("team", json!({"egress": {"networks": ["127.0.0.0/8"]}, "targets": {"servers": servers}}))
    };
    put(&cluster, &servers(json!(["*"]))).await;
    let mut drifts = deploys("drifts", &[], "1");
    drifts["drift"] = json!({"policy": "Report"});
    cluster.apply(&root("drifts", drifts, "cluster")).await;
    succeeds(&cluster, "drifts").await;
    let says = async |what: &str, status: &str, text: &str| expect_drifted(&cluster, what, (status, text)).await;
    says("is not watched", "False", "").await;
    put(&cluster, &servers(json!(["https://elsewhere.example.org:443"]))).await;
    says("is still watched", "Unknown", "line spec.targets.servers").await;
    put(&cluster, &servers(json!(["*"]))).await;
    says("is not watched again", "False", "").await;
}

/// An account that may write ConfigMaps and know which cluster it is in, and a Target that names it.
fn own_cluster() -> Vec<Value> {
    let group = "rbac.authorization.k8s.io";
    let metadata = json!({"name": "deployer", "namespace": NAMESPACE});
    let verbs = json!(["get", "list", "watch", "create", "update", "patch", "delete"]);
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]);
    let account = json!({"kind": "ServiceAccount", "name": "deployer", "namespace": NAMESPACE});
    let knows =
        json!([{"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"]}]);
    let config = json!({"selfConfig": {"serviceAccount": {"name": "deployer"}, "expirationSeconds": 3600}});
    let mut target = own_target("");
    target["metadata"]["name"] = json!("here");
    target["spec"]["config"] = config;
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
        json!({"apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": metadata, "rules": rules}),
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "deployer"}, "subjects": [account],
        }),
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": "deployer"}, "rules": knows,
        }),
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "deployer"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "deployer"}, "subjects": [account],
        }),
        target,
    ]
}

/// Also by the kubeconfig that was kept of its Target; and the same address is nothing for a kubeconfig of a tenant's own.
#[tokio::test]
async fn c_103_the_operators_own_server_is_reached_where_no_network_is_allowed() {
    let cluster = crate::cluster_with(&["--guards=false"]).await;
    for object in own_cluster() {
        cluster.apply(&object).await;
    }
    put(&cluster, &networks(&[])).await;
    cluster.apply(&root("here", deploys("here", &[], "1"), "here")).await;
    succeeds(&cluster, "here").await;
    cluster.apply(&root("theirs", deploys("theirs", &[], "1"), "cluster")).await;
    refused(&cluster, &any("Installation", "theirs"), "Failed", LINE).await;
    // What was kept counts for Targets that somebody else than a user has made.
    let mut exporter = root("exporter", deploys("exporter", &[], "1"), "here");
    exporter["metadata"]["annotations"] = json!({});
    exporter["spec"]["exports"] = json!({"targets": [{"name": "out", "target": "here"}]});
    cluster.apply(&exporter).await;
    cluster.delete(&any("Target", "here")).await;
    cluster.delete(&any("Installation", "here")).await;
    cluster.expect_absent(&any("Installation", "here")).await;
    cluster.expect_absent(&config_map("here")).await;
}
