//! What a job would be refused is said by a plan, before anything is written (C-87).

use std::{fs, pin::pin};

use futures::poll;
use kube::config::Kubeconfig;
use orangery_tests::{
    binary::{Binary, Ended},
    chart::deploy,
    cluster::{Cluster, own_target},
    objects::NAMESPACE,
    tree::{API, any, in_phase},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{policy, put, refused};

struct Plans {
    binary: Binary,
    cluster: Cluster,
}

impl Plans {
    async fn start() -> Self {
        let binary = crate::binary().await;
        let cluster = crate::cluster_of(&binary, &[]).await;
        let plans = Self { binary, cluster };
        plans.write("kubeconfig", plans.cluster.kubeconfig());
        plans
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.binary.folder().join(name), text).expect("the file can be written");
    }

    async fn of(&self, item: &Value, flags: &[&str]) -> Ended {
        self.write("item.yaml", &item.to_string());
        self.binary.run(&[&["plan", "--kubeconfig", "kubeconfig", "-f", "item.yaml"], flags].concat()).await
    }

    /// The line that refuses the plan of an item; the whole sentence.
    #[track_caller]
    fn refused(ended: &Ended, line: &str) -> String {
        let said = ended.stderr.lines().last().unwrap_or_default();
        assert!(ended.code == Some(1) && said.contains(&format!("line {line}")), "{line}: {ended:?}");
        said.trim_start_matches("error: ").to_owned()
    }
}

fn object(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}})
}

/// An item that writes these objects to the Target `cluster`.
fn item(name: &str, objects: &[Value]) -> Value {
    let manifest = |object: &Value| json!({"policy": "manage", "manifest": object});
    let config = json!({
        "apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
        "manifests": objects.iter().map(manifest).collect::<Vec<_>>(),
    });
    let target = json!({"name": "cluster", "namespace": NAMESPACE});
    let spec = json!({"type": "landscaper.gardener.cloud/kubernetes-manifest", "target": target, "config": config});
    json!({"apiVersion": API, "kind": "DeployItem", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn c_87_a_plan_says_what_a_policy_refuses_as_a_job_does_and_writes_nothing() {
    let plans = Plans::start().await;
    let planned = item("planned", &[object("ConfigMap", "map"), object("Secret", "mine")]);
    let allowed = plans.of(&planned, &["--brief", "--default-policy=compatible"]).await;
    let summary = "+ ConfigMap default/map  (manifests)\n+ Secret default/mine  (manifests)\n\n\
                   deploy item default/planned, by manifest 0.1.0: 2 to create\n";
    assert_eq!((allowed.code, allowed.stdout.as_str()), (Some(0), summary));
    // Which profile counts where no policy selects the namespace, the operator alone knows.
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}});
    let scoped = item("scoped", &[namespace]);
    let line = "line spec.targets.clusterScoped";
    let noted = plans.of(&scoped, &[]).await;
    let strict = "\n! where --default-policy is restricted, v1 Namespace mine outside of namespaces is refused by";
    assert!(noted.code == Some(0) && noted.stdout.contains(strict) && noted.stdout.contains(line), "{noted:?}");
    Plans::refused(&plans.of(&scoped, &["--default-policy=restricted"]).await, "spec.targets.clusterScoped");
    assert!(!plans.of(&scoped, &["--default-policy=compatible"]).await.stdout.contains("refused"));
    // What would be written is held against the policy first, then the server.
    let noted = plans.of(&planned, &["--brief"]).await;
    let strict = "\n! where --default-policy is restricted, cluster ";
    let line = ", a loopback address, which is refused by the default policy, line spec.egress.networks; ";
    assert!(noted.code == Some(0) && noted.stdout.contains(strict) && noted.stdout.contains(line), "{noted:?}");

    let lines = [
        (json!({"items": {"types": [{"type": "*/helm"}]}}), "spec.items.types"),
        (json!({"targets": {"servers": ["https://clusters.example.org:*"]}}), "spec.targets.servers"),
        (json!({"egress": {"networks": []}}), "spec.egress.networks"),
        (json!({"targets": {"kinds": {"deny": [{"group": "core", "kind": "Secret"}]}}}), "spec.targets.kinds.deny"),
        (json!({"signatures": {"required": true}}), "spec.signatures.required"),
    ];
    for (fields, line) in lines {
        let mut team = policy("team", fields);
        team["spec"]["profile"] = json!("compatible");
        // By the labels of the namespace, which a plan has to read.
        team["spec"]["namespaces"] =
            json!({"labelSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}});
        put(&plans.cluster, &team).await;
        let said = Plans::refused(&plans.of(&planned, &[]).await, line);
        assert!(said.contains("NamespacePolicy team"), "{said}");
        plans.cluster.expect_absent(&any("DeployItem", "planned")).await;
        deploy(&plans.cluster, &planned).await;
        assert_eq!(refused(&plans.cluster, &any("DeployItem", "planned"), "Failed", line).await, said);
        plans.cluster.delete(&planned).await;
        plans.cluster.expect_absent(&any("DeployItem", "planned")).await;
    }
    plans.cluster.expect_absent(&object("ConfigMap", "map")).await;
    plans.cluster.expect_absent(&object("Secret", "mine")).await;
}

#[tokio::test]
async fn c_87_a_plan_says_which_object_stays_because_another_item_has_it() {
    let plans = Plans::start().await;
    let maps = |names: &[&str]| names.iter().map(|name| object("ConfigMap", name)).collect::<Vec<_>>();
    for (name, names) in [("first", ["x", "y"]), ("second", ["x", "z"])] {
        deploy(&plans.cluster, &item(name, &maps(&names))).await;
        plans.cluster.expect(&in_phase("DeployItem", name, "Succeeded")).await;
    }
    let left = plans.of(&item("first", &maps(&["y"])), &["--default-policy=compatible"]).await;
    let expected = "! ConfigMap default/x\n! ConfigMap default/x of the target cluster stays: it belongs to DeployItem \
                    default/second\n\ndeploy item default/first, by manifest 0.1.0: 1 of somebody else, 1 as they should be\n";
    assert_eq!((left.code, left.stdout.as_str()), (Some(0), expected));
}

/// Others write where a Target leads to; whoever runs a command stands in networks that they do not reach.
#[tokio::test]
async fn c_128_without_a_profile_no_local_network_is_connected_to() {
    let plans = Plans::start().await;
    let deployed = item("deployed", &[object("ConfigMap", "map")]);
    deploy(&plans.cluster, &deployed).await;
    plans.cluster.expect(&in_phase("DeployItem", "deployed", "Succeeded")).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let inner = listener.local_addr().expect("an address").port();
    let mut target = own_target(plans.cluster.kubeconfig());
    let mut kubeconfig = Kubeconfig::from_yaml(plans.cluster.kubeconfig()).expect("a kubeconfig");
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        cluster.server = Some(format!("http://127.0.0.1:{inner}"));
    }
    target["spec"]["config"]["kubeconfig"] = json!(serde_json::to_string(&kubeconfig).expect("a kubeconfig"));
    plans.cluster.apply(&target).await;
    let drift = async |flags: &[&str]| {
        plans.binary.run(&[&["drift", "deployed", "--kubeconfig", "kubeconfig"], flags].concat()).await
    };
    let line = ", a loopback address, which is refused by what this command takes where no NamespacePolicy selects the \
                namespace (--default-policy compatible allows all), line spec.egress.networks; ";
    let planned = plans.of(&deployed, &[]).await;
    assert!(planned.code == Some(1) && planned.stderr.contains(line), "{planned:?}");
    let drifted = drift(&[]).await;
    assert!(drifted.code == Some(1) && drifted.stdout.contains(line), "{drifted:?}");
    put(&plans.cluster, &policy("team", json!({"egress": {"networks": []}}))).await;
    let drifted = drift(&["--default-policy=compatible"]).await;
    assert!(drifted.stdout.contains("is refused by NamespacePolicy team, line spec.egress.networks"), "{drifted:?}");
    plans.cluster.delete(&policy("team", json!({}))).await;
    let mut connected = pin!(listener.accept());
    assert!(poll!(connected.as_mut()).is_pending(), "somebody connected");
    // Asked for, it is connected to, which never answers.
    tokio::select! {
        asked = connected => drop(asked.expect("a connection")),
        ended = drift(&["--default-policy=compatible"]) => panic!("{ended:?}"),
    }
}

/// Of two policies of one priority each counts, and one of a lower priority does not.
#[tokio::test]
async fn c_141_what_counts_for_a_namespace_is_told_line_by_line() {
    let plans = Plans::start().await;
    let ours = policy("ours", json!({"targets": {"namespaces": ["apps-*"], "hostCluster": {"allow": true}}}));
    let theirs = policy("theirs", json!({"profile": "compatible", "quotas": {"items": 7}}));
    let lower = policy("lower", json!({"priority": -1, "approval": "Required"}));
    for policy in [&ours, &theirs, &lower] {
        put(&plans.cluster, policy).await;
    }
    let explained = plans.binary.run(&["policy", "explain", NAMESPACE, "--kubeconfig", "kubeconfig"]).await;
    let expected = include_str!("plans/explained.txt");
    assert_eq!((explained.code, explained.stdout.as_str(), explained.stderr.as_str()), (Some(0), expected, ""));
}
