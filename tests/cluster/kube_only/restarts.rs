//! etcd or kube-apiserver is killed and started again while jobs are under way: the operator stays, and all of them end as if
//! nothing had happened (ORC-06).

use orangery_tests::{
    binary::signal,
    cluster::own_target,
    external_deployer::ExternalDeployer,
    kube::{Kube, OPERATOR, SERVERS},
    objects::Objects,
    tree::{any, blueprint, deploys, executions, imports_cluster, in_phase, installation, items, on_cluster},
};
use serde_json::{Value, json};

/// Installations that are under way when the servers die.
const UNDER_WAY: usize = 24;

/// A tree of one item, which a test holds.
fn held(name: &str) -> Value {
    installation(name, &blueprint(json!({"deployExecutions": items(&[(&format!("{name}-item"), &[])], "1")})))
}

/// A tree of two ConfigMaps, the second after the first.
fn deploying(name: &str) -> Value {
    let (first, second) = (format!("{name}-first"), format!("{name}-second"));
    let items = [deploys(&first, &[], "1"), deploys(&second, &[&first], "1")];
    let blueprint = blueprint(json!({"imports": imports_cluster(), "deployExecutions": executions(&items)}));
    on_cluster(installation(name, &blueprint))
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

fn names() -> impl Iterator<Item = String> {
    (0..UNDER_WAY).map(|number| format!("tree-{number}"))
}

async fn go_on_after_the_death_of(victims: &[&'static str]) {
    let (binary, programs) = super::programs().await;
    let mut server = Kube::start(&programs, &binary).await;
    let objects = Objects::of(server.kubeconfig()).await;
    let deployer = ExternalDeployer(&objects);
    let operator = server.operator(&binary, OPERATOR[0], &["--lease-duration=120"]);
    objects.apply(&own_target(&server.kubeconfig())).await;

    // One waits in its first job, one in its uninstall, and many write.
    for name in ["waits", "goes"] {
        objects.apply(&held(name)).await;
    }
    deployer.succeed("goes-item").await;
    objects.expect(&in_phase("Installation", "goes", "Succeeded")).await;
    objects.delete(&any("Installation", "goes")).await;
    for item in ["goes-item", "waits-item"] {
        deployer.triggered(item).await;
    }
    for name in names() {
        objects.apply(&deploying(&name)).await;
    }
    objects.expect(&config_map("tree-0-first")).await;
    server.kill(victims);
    server.start_again(&programs).await;

    for name in names() {
        objects.expect(&in_phase("Installation", &name, "Succeeded")).await;
    }
    for item in ["goes-item", "waits-item"] {
        deployer.succeed(item).await;
    }
    objects.expect_absent(&any("Installation", "goes")).await;
    objects.expect(&in_phase("Installation", "waits", "Succeeded")).await;
    let owned = |object: &Value| object["data"]["content"] == "1";
    let there = objects.list(&config_map("")).await.into_iter().filter(owned);
    let mut expected: Vec<String> =
        names().flat_map(|name| [format!("{name}-first"), format!("{name}-second")]).collect();
    expected.sort();
    assert_eq!(
        there.map(|object| object["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>(),
        expected
    );

    for name in names() {
        objects.delete(&any("Installation", &name)).await;
    }
    server.kill(victims);
    server.start_again(&programs).await;
    for name in names() {
        objects.expect_absent(&any("Installation", &name)).await;
    }
    let left = objects.list(&config_map("")).await.into_iter().filter(owned).collect::<Vec<_>>();
    assert_eq!(left, Vec::<Value>::new());
    signal(operator.id(), "-TERM");
    let ended = operator.finished().await;
    assert_eq!(ended.code, Some(0), "the operator ended with the server: {ended:?}");
}

#[tokio::test]
async fn orc_06_jobs_go_on_after_etcd_was_killed() {
    go_on_after_the_death_of(&SERVERS[..1]).await;
}

#[tokio::test]
async fn orc_06_jobs_go_on_after_kube_apiserver_was_killed() {
    go_on_after_the_death_of(&SERVERS[1..]).await;
}
