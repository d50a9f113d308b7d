//! Releases whose target is not there for a while, or whose readiness takes long.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use orangery_tests::{
    binary::DEADLINE,
    chart::{deploy, end, hook, item, job, of_folder, packed, revision},
    cluster::{Cluster, own_target},
    proxy::{Echo, Fate, Fates, Proxy, ProxyRequest},
    tree::{any, in_phase},
    world::World,
};
use serde_json::{Value, json};
use tokio::{sync::Notify, time::timeout};

/// The way to a target, which can be cut, and counts what goes along it.
#[derive(Default)]
struct Road {
    is_cut: AtomicBool,
    /// Told of each request that goes nowhere.
    refused: Notify,
    /// How often each was asked.
    asked: Mutex<BTreeMap<String, usize>>,
}

impl Fates for Road {
    fn request(&self, asked: &ProxyRequest) -> Fate {
        let verb = if asked.watches { "WATCH" } else { asked.method.as_str() };
        *self.asked.lock().expect("a lock").entry(format!("{verb} {}", asked.path)).or_default() += 1;
        if !self.is_cut.load(Ordering::SeqCst) {
            return Fate::Pass;
        }
        self.refused.notify_one();
        Fate::Cut
    }

    fn event(&self, _: &ProxyRequest) -> Echo {
        if self.is_cut.load(Ordering::SeqCst) { Echo::Break } else { Echo::Pass }
    }
}

impl Road {
    /// A Target `release_item` that leads along it to the server itself.
    async fn to(self: &Arc<Self>, cluster: &Cluster) -> Proxy {
        let proxy = Proxy::start(cluster.kubeconfig(), self.clone()).await;
        let mut target = own_target(&proxy.kubeconfig());
        target["metadata"]["name"] = json!("away");
        cluster.apply(&target).await;
        proxy
    }

    fn counts(&self) -> BTreeMap<String, usize> {
        self.asked.lock().expect("a lock").clone()
    }
}

/// The item on the Target `release_item`.
fn release_item(packed: &str, more: &Value) -> Value {
    let mut item = item(packed, more);
    item["spec"]["target"]["name"] = json!("away");
    item
}

fn with_hook() -> String {
    let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\n";
    packed("1.0.0", &[("migrate.yaml", &hook("migrate", "pre-install")), ("config.yaml", config)])
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn a_target_that_becomes_unreachable_during_a_job_fails_the_item_and_the_next_job_repairs_the_release() {
    let cluster = crate::cluster().await;
    let road = Arc::new(Road::default());
    let _proxy = road.to(&cluster).await;
    deploy(&cluster, &release_item(&with_hook(), &json!({"timeout": "8s"}))).await;
    let first = cluster.expect(&job("migrate")).await;
    road.is_cut.store(true, Ordering::SeqCst);
    let failed = cluster.expect(&in_phase("DeployItem", "item", "Failed")).await;
    let error = &failed["status"]["lastError"];
    let message = error["message"].as_str().unwrap_or_default();
    assert!(
        message.starts_with("the item did not finish within its timeout of 8s; the last problem was: plugin helm: cluster http://127.0.0.1:")
            && message.contains("does not answer as it should"),
        "{message}"
    );
    // Nobody could write it.
    cluster.expect(&revision(1, "pending-install")).await;

    road.is_cut.store(false, Ordering::SeqCst);
    deploy(&cluster, &release_item(&with_hook(), &json!({"timeout": "60s"}))).await;
    // The hook begins anew.
    let uid = first.pointer("/metadata/uid").cloned();
    cluster.expect_that(&job("migrate"), "is the old one", |job| job.pointer("/metadata/uid") != uid.as_ref()).await;
    end(&cluster, "migrate", "Complete").await;
    cluster.expect(&in_phase("DeployItem", "item", "Succeeded")).await;
    cluster.expect(&revision(1, "deployed")).await;
    cluster.expect(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config"}})).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn a_target_that_comes_back_in_time_costs_nothing() {
    let cluster = crate::cluster().await;
    let road = Arc::new(Road::default());
    let _proxy = road.to(&cluster).await;
    deploy(&cluster, &release_item(&with_hook(), &json!({"timeout": "60s"}))).await;
    cluster.expect(&job("migrate")).await;
    road.is_cut.store(true, Ordering::SeqCst);
    end(&cluster, "migrate", "Complete").await;
    // It notices: what it had watched has ended, and is asked for in vain.
    timeout(DEADLINE, road.refused.notified()).await.expect("nothing was asked in vain");
    road.is_cut.store(false, Ordering::SeqCst);
    cluster.expect(&in_phase("DeployItem", "item", "Succeeded")).await;
    cluster.expect(&revision(1, "deployed")).await;
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn a_release_that_waits_holds_one_watch_and_nothing_else() {
    let road = Arc::new(Road::default());
    let mut world = World::on(&crate::ground(), crate::binary().await, road.clone()).await;
    world.start();
    world.ready().await;
    let config = json!({"helmDeploymentConfig": {"install": {"wait": true}}});
    deploy(&world.objects, &item(&of_folder("web"), &json!({"config": config}))).await;
    let says = |item: &Value| item["status"]["conditions"].to_string().contains("waiting for Deployment default/rel");
    world.objects.expect_that(&any("DeployItem", "item"), "does not say what it waits for", says).await;

    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let to_deployments = |road: &Road| {
        let counts = road.counts();
        let of = counts.iter().filter(|(asked, _)| asked.contains(deployments));
        of.map(|(asked, times)| (asked.clone(), *times)).collect::<Vec<_>>()
    };
    let deployment =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "rel", "namespace": "default"}});
    let replicas = |ready: u32| {
        let available = if ready == 2 { "True" } else { "False" };
        json!({
            "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": ready, "availableReplicas": ready,
            "conditions": [{"type": "Available", "status": available}],
        })
    };
    world.objects.patch_status(&deployment, replicas(1)).await;
    let says = |item: &Value| item["status"]["conditions"].to_string().contains("1 of 2");
    world.objects.expect_that(&any("DeployItem", "item"), "does not say how far it is", says).await;
    let once = |asked: &str| (asked.to_owned(), 1);
    assert_eq!(
        to_deployments(&road),
        [
            once(&format!("GET {deployments}")),
            once(&format!("GET {deployments}/rel")),
            once(&format!("POST {deployments}")),
            once(&format!("WATCH {deployments}")),
        ]
    );
    assert_eq!(world.figure("orangery_plugin_calls").await, 0);
    assert_eq!(world.figure("orangery_plugin_memory_bytes").await, 0);
    world.objects.patch_status(&deployment, replicas(2)).await;
    world.objects.expect(&in_phase("DeployItem", "item", "Succeeded")).await;
    world.end().await;
}
