//! One release, two that work on it: the stock Helm CLI and the deployer take turns, on what the other one has left.

use orangery_tests::{
    chart::{deploy_well, item, of_folder, revision},
    helm::Helm,
    objects::Objects,
    tree::{any, in_phase},
};
use serde_json::{Value, json};

/// A chart with hooks, a value of it, and where that value can be seen.
struct Trip {
    chart: &'static str,
    value: &'static str,
    /// What the value is at first, and after the upgrade.
    values: [Value; 2],
    object: Value,
    pointer: &'static str,
}

fn trips() -> [Trip; 3] {
    let named = |api_version: &str, kind: &str, name: &str| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "default"}});
    [
        Trip {
            chart: "hooks",
            value: "greeting",
            values: [json!("one"), json!("two")],
            object: named("v1", "ConfigMap", "rel-greeting"),
            pointer: "/data/greeting",
        },
        Trip {
            chart: "web",
            value: "replicas",
            values: [json!(1), json!(3)],
            object: named("apps/v1", "Deployment", "rel"),
            pointer: "/spec/replicas",
        },
        Trip {
            chart: "custom",
            value: "size",
            values: [json!(3), json!(5)],
            object: named("charts.example.org/v1", "Gadget", "rel"),
            pointer: "/spec/size",
        },
    ]
}

impl Trip {
    fn item(&self, value: usize) -> Value {
        item(&of_folder(self.chart), &json!({"config": {"values": {self.value: self.values[value]}}}))
    }

    async fn deploys(&self, cluster: &Objects, value: usize) {
        deploy_well(cluster, &self.item(value)).await;
    }

    fn set(&self, value: usize) -> String {
        format!(
            "{}={}",
            self.value,
            self.values[value].as_str().map_or_else(|| self.values[value].to_string(), str::to_owned)
        )
    }

    async fn is(&self, cluster: &Objects, value: usize) {
        let wanted = &self.values[value];
        let has = |object: &Value| object.pointer(self.pointer) == Some(wanted);
        cluster.expect_that(&self.object, "does not have the value", has).await;
    }

    async fn states(&self, cluster: &Objects, states: &[&str]) {
        for (number, state) in (1..).zip(states) {
            cluster.expect(&revision(number, state)).await;
        }
    }
}

#[tokio::test]
#[cfg_attr(without_helm, ignore = "needs the stock helm: tests/helm/build.sh")]
async fn helm_installs_we_upgrade_helm_rolls_back_we_uninstall() {
    for trip in trips() {
        let (cluster, _workloads) = crate::cluster_with_workloads().await;
        let helm = Helm::of(cluster.kubeconfig());
        helm.does(&["install", "rel", trip.chart, "--set", &trip.set(0), "--wait"]).await;
        trip.is(&cluster, 0).await;
        trip.deploys(&cluster, 1).await;
        trip.is(&cluster, 1).await;
        trip.states(&cluster, &["superseded", "deployed"]).await;
        let message = helm.tells(&["get", "values", "rel"]).await;
        assert_eq!(message, json!({trip.value: trip.values[1]}));
        helm.does(&["rollback", "rel", "1", "--wait"]).await;
        trip.is(&cluster, 0).await;
        cluster.delete(&any("DeployItem", "item")).await;
        cluster.expect_absent(&any("DeployItem", "item")).await;
        cluster.expect_absent(&trip.object).await;
        assert_eq!(helm.tells(&["list", "-A"]).await, json!([]));
    }
}

#[tokio::test]
#[cfg_attr(without_helm, ignore = "needs the stock helm: tests/helm/build.sh")]
async fn we_install_helm_upgrades_we_go_back_helm_uninstalls() {
    for trip in trips() {
        let (cluster, _workloads) = crate::cluster_with_workloads().await;
        let helm = Helm::of(cluster.kubeconfig());
        trip.deploys(&cluster, 0).await;
        trip.is(&cluster, 0).await;
        let listed = helm.tells(&["list"]).await;
        let display = ["name", "revision", "status"].map(|field| listed[0][field].clone());
        assert_eq!(display, ["rel", "1", "deployed"].map(|text| json!(text)));
        helm.does(&["upgrade", "rel", trip.chart, "--set", &trip.set(1), "--wait"]).await;
        trip.is(&cluster, 1).await;
        trip.deploys(&cluster, 0).await;
        trip.is(&cluster, 0).await;
        trip.states(&cluster, &["superseded", "superseded", "deployed"]).await;
        // What has no hook `test` has nothing to test, and that is well.
        let tested = helm.does(&["test", "rel"]).await;
        assert_eq!(tested.contains("Phase:          Succeeded"), trip.chart == "web", "{tested}");
        helm.does(&["uninstall", "rel", "--wait"]).await;
        cluster.expect_absent(&trip.object).await;
        // Nothing is left to uninstall, and that is no failure.
        cluster.delete(&any("DeployItem", "item")).await;
        cluster.expect_absent(&any("DeployItem", "item")).await;
        cluster.expect_absent(&in_phase("DeployItem", "item", "Failed")).await;
    }
}
