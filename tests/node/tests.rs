use std::{fs, path::Path};

use orangery_tests::{
    binary::Binary,
    helm::Helm,
    node::{IMAGE, Node},
    objects::Objects,
    repository,
    tree::API,
};
use serde_json::{Value, json};
use tokio::{sync::MutexGuard, time::Instant};

use crate::objects::{TEAM, config_map, deployment, installation, manifest, release, team};

/// The release, and its namespace.
const RELEASE: &str = "orangery";

/// A release of the chart with a hook that runs, and with a workload that becomes ready.
const HOOKED: &str = "
apiVersion: batch/v1
kind: Job
metadata:
  name: before
  annotations: {helm.sh/hook: pre-install}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: 'local/busybox:1', command: ['true']}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: 'local/busybox:1', command: [sleep, '3600']}]
";

/// The operator, as the chart installs it.
struct Installed {
    node: MutexGuard<'static, Node>,
    binary: Binary,
    helm: Helm,
    admin: Objects,
}

impl Installed {
    /// With these values beside those of a release.
    async fn with(values: &[&str]) -> Installed {
        let (program, shared) = (env!("CARGO_BIN_EXE_orangery-under-test"), env!("CARGO_TARGET_TMPDIR"));
        let binary = Binary::prepared(program, shared).await;
        let node = Node::taken(program, &Path::new(shared).join("cache")).await;
        let (helm, admin) = (Helm::of(node.kubeconfig()), Objects::of(node.kubeconfig().to_owned()).await);
        fs::write(binary.folder().join("kubeconfig"), node.kubeconfig()).expect("the file can be written");
        let installed = Installed { node, binary, helm, admin };
        // What a test that has failed has left.
        installed.helm.does(&["uninstall", RELEASE, "--namespace", RELEASE, "--ignore-not-found"]).await;
        installed.install(values).await;
        for object in team() {
            installed.admin.apply(&object).await;
        }
        installed
    }

    async fn install(&self, values: &[&str]) {
        let chart = repository().join("charts/orangery");
        let (image, tag) =
            (format!("image.repository={},cache.inImage=true", IMAGE.0), format!("image.tag={}", IMAGE.1));
        let mut arguments = vec!["install", RELEASE, chart.to_str().expect("a path"), "--namespace", RELEASE];
        arguments.extend(["--create-namespace", "--wait", "--set", &image, "--set-string", &tag]);
        arguments.extend(values.iter().flat_map(|value| ["--set", *value]));
        self.helm.does(&arguments).await;
    }

    /// Applies an Installation, and waits until it has succeeded.
    async fn succeeds(&self, object: &Value) {
        self.admin.apply(object).await;
        let mut expected = json!({"apiVersion": API, "kind": "Installation", "status": {"phase": "Succeeded"}});
        expected["metadata"] = json!({"name": object["metadata"]["name"], "namespace": TEAM});
        self.admin.expect(&expected).await;
    }

    /// Deletes an Installation, and waits until it is gone.
    async fn deletes(&self, name: &str) {
        let object = json!({"apiVersion": API, "kind": "Installation", "metadata": {"name": name, "namespace": TEAM}});
        self.admin.delete(&object).await;
        self.admin.expect_absent(&object).await;
    }

    /// What a command of the binary writes, and its exit code.
    async fn tells(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let ended = self.binary.run(&[arguments, &["--kubeconfig=kubeconfig"]].concat()).await;
        (ended.code, ended.stdout + &ended.stderr)
    }

    /// Waits until another process than this holds the Lease, and answers which.
    async fn holder_after(&self, before: &str) -> String {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": RELEASE, "namespace": RELEASE},
        });
        let holder = |lease: &Value| lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
        let another = |lease: &Value| !["", before].contains(&holder(lease).as_str());
        holder(&self.admin.expect_that(&lease, "is held by another process", another).await)
    }

    /// The pods of the operator.
    async fn pods(&self) -> Vec<Value> {
        let kind = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": RELEASE}});
        let pods = self.admin.list(&kind).await;
        pods.into_iter().filter(|pod| pod["metadata"]["labels"]["app.kubernetes.io/name"] == "orangery").collect()
    }

    async fn ends(self) {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}});
        self.admin.delete(&namespace).await;
        self.admin.expect_absent(&namespace).await;
        self.helm.does(&["uninstall", RELEASE, "--namespace", RELEASE, "--wait"]).await;
    }
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn c_238_on_512_mebibytes_every_component_that_ships_works_in_the_image_that_brings_them_compiled() {
    let installed = Installed::with(&["resources.limits.memory=512Mi"]).await;
    let items = [
        ("Jinja", manifest("of-jinja", config_map("of-jinja"), "1m")),
        ("GoTemplate", release("web", HOOKED)),
        ("Spiff", manifest("of-spiff", config_map("of-spiff"), "1m")),
    ];
    installed.succeeds(&installation("all", &items)).await;
    let releases = installed.helm.tells(&["list", "--namespace", TEAM]).await;
    assert_eq!(releases[0]["status"], "deployed", "{releases:#}");
    let tested = installed.helm.does(&["test", RELEASE, "--namespace", RELEASE]).await;
    assert!(tested.contains("Phase:          Succeeded"), "{tested}");
    let restarts: Vec<Value> = installed
        .pods()
        .await
        .iter()
        .map(|pod| pod["status"]["containerStatuses"][0]["restartCount"].clone())
        .collect();
    assert_eq!(restarts, [json!(0)], "the operator was killed");
    installed.deletes("all").await;
    installed.ends().await;
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn c_233_an_operator_whose_container_is_killed_goes_on_without_waiting_for_its_own_lease() {
    let installed = Installed::with(&[]).await;
    let before = installed.holder_after("").await;
    let pods = installed.pods().await;
    let container = pods[0]["status"]["containerStatuses"][0]["containerID"].as_str().expect("it runs");
    let killed = Instant::now();
    installed.node.kill_container(container).await;
    let after = installed.holder_after(&before).await;
    let took = killed.elapsed();
    // Before the Lease of 15 seconds has ended.
    assert!(took.as_secs() < 10, "{took:?}");
    let pod = |holder: &str| holder.rsplit_once('_').map(|(pod, _)| pod.to_owned());
    assert_eq!(pod(&before), pod(&after), "it is the same pod");
    eprintln!("a killed container is active again after {took:?}");
    installed.succeeds(&installation("after", &[("Jinja", manifest("of-jinja", config_map("after"), "1m"))])).await;
    installed.deletes("after").await;
    installed.ends().await;
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn c_34_of_two_replicas_the_other_one_goes_on_at_once_when_the_active_pod_is_deleted() {
    let installed = Installed::with(&["replicas=2"]).await;
    let before = installed.holder_after("").await;
    let name = before.split('_').next().expect("the name of the pod");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": RELEASE}});
    let deleted = Instant::now();
    installed.admin.delete(&pod).await;
    let after = installed.holder_after(&before).await;
    let took = deleted.elapsed();
    assert!(took.as_secs() < 10, "{took:?}");
    assert!(!after.starts_with(name), "{after}");
    eprintln!("another replica is active {took:?} after the deletion of the pod");
    installed.succeeds(&installation("after", &[("Jinja", manifest("of-jinja", config_map("after"), "1m"))])).await;
    installed.deletes("after").await;
    installed.ends().await;
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn c_236_after_an_uninstall_in_order_nothing_hangs_and_the_operator_can_be_installed_again() {
    let installed = Installed::with(&[]).await;
    let app = installation("app", &[("Jinja", manifest("of-jinja", config_map("app"), "1m"))]);
    installed.succeeds(&app).await;
    let (code, told) = installed.tells(&["uninstall", "--check"]).await;
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("namespace team: 1 × DeployItem, 1 × Execution, 1 × Installation"), "{told}");
    installed.deletes("app").await;
    installed.helm.does(&["uninstall", RELEASE, "--namespace", RELEASE, "--wait"]).await;
    // Guards stay until somebody deletes what has them.
    let (code, told) = installed.tells(&["uninstall", "--release-guards", "--yes"]).await;
    assert_eq!(code, Some(0), "{told}");
    let (code, told) = installed.tells(&["uninstall", "--check"]).await;
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("nothing would hang") && told.contains("Lease orangery/orangery would be left"), "{told}");
    installed.install(&[]).await;
    installed.succeeds(&app).await;
    installed.deletes("app").await;
    installed.ends().await;
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn c_239_what_keeps_pods_is_told_while_they_are_waited_for_and_when_the_time_is_up() {
    let installed = Installed::with(&[]).await;
    let crash = json!(["sh", "-c", "echo no such table >/dev/termination-log; exit 3"]);
    let kept = [
        ("Jinja", "absent", json!({"image": "127.0.0.1:1/absent:1"}), "ImagePull"),
        ("GoTemplate", "crashing", json!({"image": "local/busybox:1", "command": crash}), "CrashLoopBackOff"),
        (
            "Spiff",
            "large",
            json!({"image": "local/busybox:1", "resources": {"requests": {"cpu": "1000"}}}),
            "is Unschedulable: 0/1 nodes are available",
        ),
    ];
    let items =
        kept.clone().map(|(engine, name, container, _)| (engine, manifest(name, deployment(name, container), "40s")));
    installed.admin.apply(&installation("kept", &items)).await;
    let kind = json!({"apiVersion": API, "kind": "DeployItem", "metadata": {"namespace": TEAM}});
    let says = |object: &Value, word: &str, conditions: &str| {
        object.pointer(conditions).is_some_and(|of| of.to_string().contains(word))
    };
    for (_, _, _, word) in &kept {
        installed
            .admin
            .expect_that(&kind, "tells what keeps its pod", |item| says(item, word, "/status/conditions"))
            .await;
    }
    let (_, why) = installed.tells(&["why", "installation/kept", "--namespace", TEAM]).await;
    assert!(kept.iter().any(|(_, _, _, word)| why.contains(word)), "{why}");
    for (_, _, _, word) in &kept {
        installed
            .admin
            .expect_that(&kind, "fails with what keeps its pod", |item| says(item, word, "/status/lastError"))
            .await;
    }
    installed.deletes("kept").await;
    installed.ends().await;
}
