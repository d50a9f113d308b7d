//! The objects of a run beside its pod: what its containers read, where they write, and the account of `wait`.

use data_encoding::BASE64;
use orangery_sdk::{ClusterRef, Injection, Item, ObjectWrite, Ownership, SecretContent, Write};
use serde_json::{Map, Value, json};

use crate::{
    configuration::{DeployerConfiguration, GROUP},
    names,
};

/// Where a run is, and what it is called.
#[derive(Clone)]
pub(crate) struct Run<'a> {
    pub(crate) item: &'a Item,
    pub(crate) deployer: &'a DeployerConfiguration,
    /// The cluster of its pod.
    pub(crate) on: ClusterRef,
    /// The namespace of its pod.
    pub(crate) namespace: String,
    /// The name of its pod, of its service account, its role and the binding of that.
    pub(crate) name: String,
    /// `RECONCILE` or `DELETE`.
    pub(crate) operation: &'static str,
}

impl<'a> Run<'a> {
    /// The run of the item's job.
    pub(crate) fn new(
        item: &'a Item,
        deployer: &'a DeployerConfiguration,
        (on, namespace): (ClusterRef, String),
        operation: &'static str,
    ) -> Self {
        Self { item, deployer, on, namespace, name: names::pod(item, operation), operation }
    }

    /// The same with a pod that another deployer has made.
    pub(crate) fn with_pod(&self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self.clone() }
    }

    /// The Secret that `wait` fills.
    pub(crate) fn result(&self) -> String {
        format!("{}-result", self.name)
    }

    /// The Secret with the document of the target.
    pub(crate) fn target(&self) -> String {
        format!("{}-target", self.name)
    }

    /// The Secret with a part of what `init` writes.
    pub(crate) fn part(&self, number: usize) -> String {
        format!("{}-config-{number}", self.name)
    }

    /// The Secrets that are made for the state of this run.
    pub(crate) fn states(&self) -> Vec<String> {
        (0..self.deployer.state_secrets).map(|number| names::state(self.item, self.operation, number)).collect()
    }

    /// Where the run is.
    pub(crate) fn place(&self) -> (&ClusterRef, &str) {
        (&self.on, &self.namespace)
    }

    /// Name, namespace and labels of an object of the run.
    pub(crate) fn metadata(&self, name: &str, kind: Option<&str>) -> Map<String, Value> {
        let mut labels = names::labels(self.item, self.deployer);
        labels.extend(kind.map(|kind| (names::deployer_label("type"), json!(kind))));
        let mut metadata = Map::from_iter([
            ("name".to_owned(), json!(name)),
            ("namespace".to_owned(), json!(self.namespace)),
            ("labels".to_owned(), Value::Object(labels)),
        ]);
        // What is forgotten goes with the item; only objects of one namespace may be owned.
        if self.on == ClusterRef::Host && self.namespace == self.item.namespace {
            let owner = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DeployItem",
                "name": self.item.name, "uid": self.item.uid});
            metadata.insert("ownerReferences".to_owned(), json!([owner]));
        }
        metadata
    }

    /// An object that is made for this run and goes with it.
    pub(crate) fn of_run(&self, object: &Value) -> ObjectWrite {
        ObjectWrite { on: self.on.clone(), owned: Ownership::Ephemeral, ..ObjectWrite::new(object, Write::Create) }
    }

    fn secret(&self, name: &str, kind: &str, data: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": self.metadata(name, Some(kind)), "data": data})
    }

    /// All that has to be there before the pod, but for [`binding`](Self::binding).
    pub(crate) fn prerequisites(&self, parts: &[Vec<u8>], pull_secret: Option<&Value>) -> Vec<ObjectWrite> {
        let mut writes: Vec<ObjectWrite> = self.account().iter().map(|object| self.of_run(object)).collect();
        for (number, part) in parts.iter().enumerate() {
            let data = json!({"part": BASE64.encode(part)});
            writes.push(self.of_run(&self.secret(&self.part(number), "configuration", data)));
        }
        writes.push(self.target_document());
        writes.push(self.of_run(&self.secret(&self.result(), "export", json!({}))));
        writes.extend(pull_secret.map(|secret| self.of_run(secret)));
        writes.extend(self.states().iter().map(|name| self.of_run(&self.secret(name, "state", json!({})))));
        writes
    }

    /// A Secret that was made for the state of this run and has a piece of it: from now on it goes with the item. Nothing in it is
    /// touched.
    pub(crate) fn kept_state(&self, name: &str) -> ObjectWrite {
        let object = self.secret(name, "state", json!({}));
        ObjectWrite { on: self.on.clone(), owned: Ownership::Managed, ..ObjectWrite::new(&object, Write::Fill) }
    }

    /// The host resolves the target: nothing of it is known here.
    fn target_document(&self) -> ObjectWrite {
        let file = |text: &str| json!({"target.json": BASE64.encode(text.as_bytes())});
        if self.item.target.is_none() {
            return self.of_run(&self.secret(&self.target(), "target", file("null")));
        }
        let inject = Injection {
            at: "/data/target.json".to_owned(),
            content: SecretContent::TargetDocument(ClusterRef::Target),
        };
        ObjectWrite { inject: vec![inject], ..self.of_run(&self.secret(&self.target(), "target", json!({}))) }
    }

    /// The account of `wait`, and its rights: to look at its own pod, and to fill the Secrets that were made for it. It may read none.
    fn account(&self) -> [Value; 2] {
        let secrets: Vec<String> = [self.result()].into_iter().chain(self.states()).collect();
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": self.metadata(&self.name, None),
            "automountServiceAccountToken": false});
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": self.metadata(&self.name, None),
            "rules": [
                {"apiGroups": [""], "resources": ["pods"], "resourceNames": [self.name], "verbs": ["get", "list", "watch"]},
                {"apiGroups": [""], "resources": ["secrets"], "resourceNames": secrets, "verbs": ["patch"]},
            ],
        });
        [account, role]
    }

    /// What gives `wait` its rights. An API server refuses it as long as the Role is not there.
    pub(crate) fn binding(&self) -> ObjectWrite {
        self.of_run(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": self.metadata(&self.name, None),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": self.name},
            "subjects": [{"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace}],
        }))
    }

    /// Credentials of Secrets of another namespace, in one Secret beside the pod.
    pub(crate) fn pull_secret(&self, auths: &Map<String, Value>) -> Value {
        let config = json!({"auths": auths}).to_string();
        let mut secret = self.secret(
            &format!("{}-imgpullsec", self.name),
            "registry-pull-secret",
            json!({".dockerconfigjson": BASE64.encode(config.as_bytes())}),
        );
        if let Some(kind) = secret.get_mut("type") {
            *kind = json!("kubernetes.io/dockerconfigjson");
        }
        secret
    }
}

/// The version and kind of the status of an item.
pub(crate) fn status_head() -> Map<String, Value> {
    Map::from_iter([
        ("apiVersion".to_owned(), json!(format!("{GROUP}/v1alpha1"))),
        ("kind".to_owned(), json!("ProviderStatus")),
    ])
}
