//! A target that is away for a while, in each part of a job: what its items have begun goes on when it is back, and nobody else
//! waits for it (C-183).

use std::sync::Arc;

use orangery_tests::{
    cluster::own_target,
    effects::{self, Effects},
    external_deployer::{ExternalDeployer, item},
    objects::Objects,
    proxy::Proxy,
    road::{Passage, Road},
    tree::{any, becomes_ready, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster},
};
use serde_json::{Value, json};

/// Requests in vain after which it is back: a client that comes in growing intervals needs some seconds for them.
const IN_VAIN: usize = 4;

/// An Installation of these items on this Target.
pub(super) fn deploying(target: &str, name: &str, items: &[Value]) -> Value {
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(items)});
    let mut root = on_cluster(installation(name, &blueprint(fields)));
    root["spec"]["imports"]["targets"][0]["target"] = json!(target);
    root
}

/// The Target `away`, whose server is reached by a road of its own as long as the proxy lives.
pub(super) async fn behind_a_road(cluster: &Objects) -> (Arc<Road>, Proxy) {
    let road = Arc::new(Road::default());
    let proxy = Proxy::start(cluster.kubeconfig(), road.clone()).await;
    let mut target = own_target(&proxy.kubeconfig());
    target["metadata"]["name"] = json!("away");
    cluster.apply(&target).await;
    (road, proxy)
}

pub(super) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

/// Waits until the item says that the check of [`becomes_ready`] does not hold yet.
pub(super) async fn waits_for_its_check(cluster: &Objects, name: &str) {
    let says = |item: &Value| {
        item["metadata"]["labels"]["execution.landscaper.gardener.cloud/name"] == name
            && item["status"]["conditions"].to_string().contains(".data.ready")
    };
    cluster.expect_that(&item(), "does not say that it waits for its check", says).await;
}

/// A tree on the other Target comes and goes meanwhile.
async fn neighbours_are_well(cluster: &Objects) {
    cluster.apply(&deploying("cluster", "well", &[deploys("fast", &[], "1")])).await;
    cluster.expect(&in_phase("Installation", "well", "Succeeded")).await;
    cluster.delete(&any("Installation", "well")).await;
    cluster.expect_absent(&any("Installation", "well")).await;
}

#[tokio::test]
async fn c_183_a_target_that_is_away_in_the_write_the_check_and_the_uninstall_delays_its_items_and_nobody_else() {
    let cluster = crate::cluster().await;
    let (road, _proxy) = behind_a_road(&cluster).await;
    let effects = Effects::begin(cluster.client()).await;

    road.switch(Passage::Cut);
    cluster.apply(&deploying("away", "root", &[deploys("first", &[], "1"), becomes_ready("second", &["first"])])).await;
    road.asked_in_vain(IN_VAIN).await;
    neighbours_are_well(&cluster).await;
    let first = ExternalDeployer(&cluster).find("first").await.unwrap();
    assert_eq!(first["status"]["phase"], "Progressing", "{first:#}");
    let told = first["status"]["conditions"].to_string();
    assert!(told.contains("does not answer as it should") && told.contains("TransientError"), "{told}");
    road.switch(Passage::Open);
    waits_for_its_check(&cluster, "second").await;

    road.switch(Passage::Cut);
    let ready =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "second"}, "data": {"ready": "yes"}});
    cluster.merge(&ready).await;
    road.asked_in_vain(IN_VAIN).await;
    neighbours_are_well(&cluster).await;
    let second = ExternalDeployer(&cluster).find("second").await.unwrap();
    assert_eq!(second["status"]["phase"], "Progressing", "{second:#}");
    road.switch(Passage::Open);
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;

    road.switch(Passage::Cut);
    cluster.delete(&any("Installation", "root")).await;
    road.asked_in_vain(IN_VAIN).await;
    neighbours_are_well(&cluster).await;
    cluster.expect(&config_map("second")).await;
    let root = cluster.expect(&any("Installation", "root")).await;
    assert_eq!(root["status"]["phase"], "Deleting", "{root:#}");
    road.switch(Passage::Open);
    cluster.expect_absent(&any("Installation", "root")).await;
    let done = effects::by_name(&effects.until_now(&cluster).await);
    let said = |name: &str| done[name].iter().map(Option::as_deref).collect::<Vec<_>>();
    assert_eq!(said("first"), [Some("1"), None], "it was written once and deleted once");
    assert_eq!(said("second"), [Some("1"), Some("1"), None], "the second time it was made ready");
}

#[tokio::test]
async fn c_183_of_a_tree_on_two_targets_the_items_on_the_one_that_is_there_end_meanwhile() {
    let cluster = crate::cluster().await;
    let (road, _proxy) = behind_a_road(&cluster).await;
    road.switch(Passage::Cut);
    let mut far = deploys("far", &[], "1");
    far["target"]["import"] = json!("far");
    let mut imports = imports_cluster();
    let mut import = imports[0].clone();
    import["name"] = json!("far");
    imports.as_array_mut().unwrap().push(import);
    let items = [deploys("near", &[], "1"), far, deploys("after", &["near"], "1")];
    let mut root = on_cluster(installation(
        "root",
        &blueprint(json!({"imports": imports, "deployExecutions": executions(&items)})),
    ));
    let targets = root["spec"]["imports"]["targets"].as_array_mut().unwrap();
    targets.push(json!({"name": "far", "target": "away"}));
    cluster.apply(&root).await;
    for name in ["near", "after"] {
        let is = |item: &Value| {
            item["metadata"]["labels"]["execution.landscaper.gardener.cloud/name"] == name
                && item["status"]["phase"] == "Succeeded"
        };
        cluster.expect_that(&item(), &format!("{name} has not succeeded"), is).await;
    }
    road.asked_in_vain(IN_VAIN).await;
    let far = ExternalDeployer(&cluster).find("far").await.unwrap();
    assert_eq!(far["status"]["phase"], "Progressing", "{far:#}");
    road.switch(Passage::Open);
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    cluster.expect(&config_map("far")).await;
}

/// An address of IPv6 stands in brackets in an URL.
#[tokio::test]
async fn a_target_at_an_address_of_ipv6_is_deployed_to() {
    let cluster = crate::cluster().await;
    let loopback = std::net::SocketAddr::new(std::net::Ipv6Addr::LOCALHOST.into(), 0);
    let proxy = Proxy::start_at(loopback, cluster.kubeconfig(), Arc::new(Road::default())).await;
    assert!(proxy.kubeconfig().contains("http://[::1]:"), "{}", proxy.kubeconfig());
    let mut target = own_target(&proxy.kubeconfig());
    target["metadata"]["name"] = json!("away");
    cluster.apply(&target).await;
    cluster.apply(&deploying("away", "root", &[becomes_ready("slow", &[])])).await;
    waits_for_its_check(&cluster, "slow").await;
    let ready =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "slow"}, "data": {"ready": "yes"}});
    cluster.merge(&ready).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    cluster.expect_absent(&config_map("slow")).await;
}
