//! Targets whose servers are reached by IPv6.

use std::{net::Ipv6Addr, sync::Arc};

use orangery_core::port::Clock as _;
use orangery_embedded::{Options, Storage};
use orangery_runtime::machine::SystemClock;
use orangery_tests::{
    cluster::own_target,
    objects::Objects,
    tree::{any, blueprint, deploys, executions, imports_cluster, in_phase, installation, on_cluster},
};
use serde_json::json;

#[tokio::test]
#[cfg_attr(without_ipv6, ignore = "needs the address ::1 of IPv6")]
async fn items_come_to_a_server_at_an_address_of_ipv6_and_go_from_it() {
    let cluster = crate::cluster().await;
    let clock = Arc::new(|| SystemClock.now());
    let options = Options { storage: Storage::Memory, address: (Ipv6Addr::LOCALHOST, 0).into(), clock };
    let server = orangery_embedded::start(options).await.expect("the server starts");
    assert!(server.kubeconfig().contains("://[::1]:"), "it is reached by another address");
    let elsewhere = Objects::of(server.kubeconfig()).await;
    let mut target = own_target(&server.kubeconfig());
    target["metadata"]["name"] = json!("elsewhere");
    cluster.apply(&target).await;
    let fields = json!({"imports": imports_cluster(), "deployExecutions": executions(&[deploys("item", &[], "1")])});
    let mut root = on_cluster(installation("root", &blueprint(fields)));
    root["spec"]["imports"]["targets"][0]["target"] = json!("elsewhere");
    cluster.apply(&root).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let deployed = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "item"}});
    elsewhere.expect(&deployed).await;
    cluster.expect_absent(&deployed).await;
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    elsewhere.expect_absent(&deployed).await;
    drop(elsewhere);
    server.stop().await;
}
