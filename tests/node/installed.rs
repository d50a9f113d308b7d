//! The operator as the chart installs it.

use std::{fs, path::Path};

use orangery_tests::{
    binary::Binary,
    helm::Helm,
    node::{Chart, Node},
    objects::Objects,
    tree::API,
};
use serde_json::{Value, json};
use tokio::sync::MutexGuard;

use crate::objects::{TEAM, namespace, team};

/// The release, and its namespace.
pub(crate) const RELEASE: &str = "orangery";

/// The operator, installed.
pub(crate) struct Installed {
    pub(crate) node: MutexGuard<'static, Node>,
    pub(crate) helm: Helm,
    pub(crate) admin: Objects,
    binary: Binary,
}

/// The Lease of the operator.
fn lease() -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": RELEASE, "namespace": RELEASE},
    })
}

impl Installed {
    /// With these values beside those of a release, in a namespace that takes no pod but those that are restricted.
    pub(crate) async fn with(values: &[&str]) -> Installed {
        let installed = Installed::nothing().await;
        installed.install(values).await;
        installed
    }

    /// All that is there before the operator is.
    pub(crate) async fn nothing() -> Installed {
        let (program, shared) = (env!("CARGO_BIN_EXE_orangery-under-test"), env!("CARGO_TARGET_TMPDIR"));
        let binary = Binary::prepared(program, shared).await;
        let node = Node::taken(program, &Path::new(shared).join("cache")).await;
        let (helm, admin) = (Helm::of(node.kubeconfig()), Objects::of(node.kubeconfig().to_owned()).await);
        fs::write(binary.folder().join("kubeconfig"), node.kubeconfig()).expect("the file can be written");
        let installed = Installed { node, helm, admin, binary };
        // What a test that has failed has left.
        installed.helm.does(&["uninstall", RELEASE, "--namespace", RELEASE, "--ignore-not-found"]).await;
        installed.is_gone().await;
        let restricted = json!({"pod-security.kubernetes.io/enforce": "restricted"});
        installed.admin.apply(&namespace(RELEASE, restricted)).await;
        installed
    }

    /// Installs the release with these values beside its own, and then the objects of the team.
    pub(crate) async fn install(&self, values: &[&str]) {
        let Chart { values: of_image, .. } = self.node.chart().clone();
        let of_image: Vec<&str> = of_image.iter().map(String::as_str).collect();
        self.helm_with("install", &of_image, values, &["--wait"]).await;
        for object in team() {
            self.admin.apply(&object).await;
        }
    }

    /// Installs or upgrades the release with values in JSON and others.
    pub(crate) async fn helm_with(&self, verb: &str, in_json: &[&str], values: &[&str], flags: &[&str]) {
        let path = self.node.chart().path.clone();
        let mut arguments = vec![verb, RELEASE, path.to_str().expect("a path"), "--namespace", RELEASE];
        arguments.extend(in_json.iter().flat_map(|value| ["--set-json", *value]));
        arguments.extend(values.iter().flat_map(|value| ["--set", *value]));
        arguments.extend(flags);
        self.helm.does(&arguments).await;
    }

    /// Applies an Installation, and waits until it has succeeded.
    pub(crate) async fn succeeds(&self, object: &Value) {
        self.admin.apply(object).await;
        self.has_succeeded(object["metadata"]["name"].as_str().expect("its name")).await;
    }

    /// Waits until an Installation has succeeded, and answers it.
    pub(crate) async fn has_succeeded(&self, name: &str) -> Value {
        let mut expected = json!({"apiVersion": API, "kind": "Installation", "status": {"phase": "Succeeded"}});
        expected["metadata"] = json!({"name": name, "namespace": TEAM});
        self.admin.expect(&expected).await
    }

    /// Deletes an Installation, and waits until it is gone.
    pub(crate) async fn deletes(&self, name: &str) {
        let object = json!({"apiVersion": API, "kind": "Installation", "metadata": {"name": name, "namespace": TEAM}});
        self.admin.delete(&object).await;
        self.admin.expect_absent(&object).await;
    }

    /// What a command of the binary writes, and its exit code.
    pub(crate) async fn tells(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let ended = self.binary.run(&[arguments, &["--kubeconfig=kubeconfig"]].concat()).await;
        (ended.code, ended.stdout + &ended.stderr)
    }

    /// Waits until another process than this holds the Lease, and answers which.
    pub(crate) async fn holder_after(&self, before: &str) -> String {
        let holder = |lease: &Value| lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
        let another = |lease: &Value| !["", before].contains(&holder(lease).as_str());
        holder(&self.admin.expect_that(&lease(), "is held by another process", another).await)
    }

    /// The pods of the operator.
    pub(crate) async fn pods(&self) -> Vec<Value> {
        let kind = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": RELEASE}});
        let pods = self.admin.list(&kind).await;
        pods.into_iter().filter(|pod| pod["metadata"]["labels"]["app.kubernetes.io/name"] == "orangery").collect()
    }

    /// The container of the operator in the pod that holds the Lease as `holder`, or in the only one.
    pub(crate) async fn container(&self, holder: &str) -> String {
        let named = |pod: &&Value| holder.starts_with(pod["metadata"]["name"].as_str().unwrap_or_default());
        let pods = self.pods().await;
        let pod = pods.iter().find(|pod| holder.is_empty() || named(pod)).expect("there is the pod");
        pod["status"]["containerStatuses"][0]["containerID"].as_str().expect("it runs").to_owned()
    }

    /// How often the containers of the operator have been started again.
    pub(crate) async fn restarts(&self) -> Vec<Value> {
        let pods = self.pods().await;
        pods.iter().map(|pod| pod["status"]["containerStatuses"][0]["restartCount"].clone()).collect()
    }

    /// Waits until the pods of the operator are gone, and removes their Lease: they may have lost the right to give it back.
    pub(crate) async fn is_gone(&self) {
        let of_release = json!({"app.kubernetes.io/name": "orangery"});
        let pods = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": RELEASE, "labels": of_release},
        });
        self.admin.expect_absent(&pods).await;
        self.admin.delete(&lease()).await;
    }

    pub(crate) async fn ends(self) {
        let team = namespace(TEAM, json!({}));
        self.admin.delete(&team).await;
        self.admin.expect_absent(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})).await;
        self.helm.does(&["uninstall", RELEASE, "--namespace", RELEASE, "--wait"]).await;
    }
}
