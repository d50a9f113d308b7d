//! What the service account of a namespace may not do, no item of the namespace does on the cluster of the resources, whatever
//! the operator and the component may (C-38).

use std::{sync::Arc, time::Duration};

use orangery_core::{error::Fault, port::BoxFuture};
use orangery_proposal::{
    Item, Proposal,
    deployer::{Deployer, PluginIdentity, Reads},
    grant::Grants,
};
use orangery_runtime::{Definitions, Operator, OperatorConfig};
use orangery_tests::{
    deployers::Deployers,
    kube::{Kube, OPERATOR},
    objects::{NAMESPACE, Objects, connect},
    tree::{API, any, in_phase},
};
use serde_json::{Value, json};
use tokio::time::interval;

use crate::cases::policies::{self, policy, put};

const ACCOUNT: &str = "system:serviceaccount:default:default";

/// A component that may write everything to the cluster of the resources, and writes what the configuration of its items is.
struct Writes {
    identity: PluginIdentity,
    grants: Grants,
}

impl Writes {
    fn new() -> Self {
        let grants = json!({"clusters": {"host": true}, "reads": [{}], "writes": [{}]});
        let [name, version, digest] = ["writes", "1", "sha256:0"].map(str::to_owned);
        Self {
            identity: PluginIdentity { name, version, digest, is_pinned: true },
            grants: serde_json::from_value(grants).expect("grants"),
        }
    }
}

impl Deployer for Writes {
    fn identity(&self) -> &PluginIdentity {
        &self.identity
    }

    fn grants(&self) -> &Grants {
        &self.grants
    }

    fn ownership_labels(&self) -> &[String] {
        &[]
    }

    fn plan<'a>(&'a self, item: &'a Item, _: Reads) -> BoxFuture<'a, Result<Proposal, Fault>> {
        let write = json!({"on": "host", "object": item.config, "how": "apply"});
        let stages = json!([{"name": "write", "gate": "accepted", "writes": [write]}]);
        let proposal = serde_json::from_value(json!({"stages": stages, "next": {"finish": {}}})).expect("a proposal");
        Box::pin(async move { Ok(proposal) })
    }

    fn uninstall<'a>(&'a self, _: &'a Item, _: Reads) -> BoxFuture<'a, Result<Option<Proposal>, Fault>> {
        Box::pin(async { Ok(None) })
    }
}

/// What the account of the namespace may do with these kinds, and nothing with others.
async fn allow(objects: &Objects, kinds: &[&str]) {
    let (group, metadata) = ("rbac.authorization.k8s.io", json!({"name": "deployer", "namespace": NAMESPACE}));
    let verbs = ["get", "list", "watch", "create", "patch", "delete"];
    let rule = json!({"apiGroups": [""], "resources": kinds, "verbs": verbs});
    let role = json!({"apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": metadata, "rules": [rule]});
    let subject = json!({"kind": "ServiceAccount", "name": "default", "namespace": NAMESPACE});
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "deployer"}, "subjects": [subject],
    });
    objects.apply(&role).await;
    objects.apply(&binding).await;
    // The authorizer learns of it some time later, and nothing tells when: it is asked until it answers so.
    for kind in ["configmaps", "secrets"] {
        let attributes = json!({"namespace": NAMESPACE, "verb": "delete", "resource": kind});
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": ACCOUNT, "resourceAttributes": attributes},
        });
        let mut tries = interval(Duration::from_millis(100));
        while may(objects, &review).await != kinds.contains(&kind) {
            tries.tick().await;
        }
    }
}

async fn may(objects: &Objects, review: &Value) -> bool {
    let request = http::Request::post("/apis/authorization.k8s.io/v1/subjectaccessreviews")
        .header("content-type", "application/json")
        .body(review.to_string().into_bytes())
        .expect("a request");
    let answer: Value = objects.client().request(request).await.expect("the server answers");
    answer["status"]["allowed"] == true
}

fn object(kind: &str) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "mine", "namespace": NAMESPACE}})
}

/// An item that writes an object of this kind. Rights that were given a moment ago are not known everywhere, so what is refused
/// for want of them is tried again until the time is up.
fn item(kind: &str) -> Value {
    let spec = json!({"type": "example.com/writes", "config": object(kind), "timeout": "5s"});
    json!({"apiVersion": API, "kind": "DeployItem", "metadata": {"name": kind.to_lowercase()}, "spec": spec})
}

/// Asks an item for a job.
async fn ask(objects: &Objects, item: &Value) {
    objects.annotate(item, json!({"landscaper.gardener.cloud/operation": "test-reconcile"})).await;
}

/// Waits until a job of an item has ended in a phase, with the sentence by which the server refuses the account.
async fn refused(objects: &Objects, item: &Value, phase: &str, sentence: &str) {
    let is_refused = |found: &Value| {
        let error = &found["status"]["lastError"];
        found["metadata"]["name"] == item["metadata"]["name"]
            && found["status"]["phase"] == phase
            && error["message"].as_str().is_some_and(|message| message.contains(sentence))
            && error["codes"].to_string().contains("ERR_UNAUTHORIZED")
    };
    objects.expect_that(&any("DeployItem", ""), &format!("did not end {phase} by {sentence}"), is_refused).await;
}

#[tokio::test]
async fn c_38_what_the_account_of_a_namespace_may_not_write_to_the_host_cluster_no_item_of_it_does() {
    let (binary, programs) = super::programs().await;
    let server = Kube::start_audited(&programs, &binary).await;
    let objects = Objects::of(server.kubeconfig()).await;
    allow(&objects, &["configmaps"]).await;
    let client = connect(&server.kubeconfig_of_operator(OPERATOR[0])).await;
    let writes: Arc<dyn Deployer> = Arc::new(Writes::new());
    let deployers = Deployers(move |_: &str| Some(Arc::clone(&writes)));
    let config = OperatorConfig::new(client, Arc::new(deployers));
    let config = OperatorConfig { definitions: Definitions::Expect, ..config };
    let operator = Operator::start(config).await.expect("the operator starts");

    for kind in ["ConfigMap", "Secret"] {
        objects.apply(&item(kind)).await;
        ask(&objects, &item(kind)).await;
    }
    // The operator itself may write Secrets, the account may not.
    let sentence = |verb: &str| {
        format!(
            "secrets \"mine\" is forbidden: User \"{ACCOUNT}\" cannot {verb} resource \"secrets\" in API group \"\" in the \
             namespace \"{NAMESPACE}\""
        )
    };
    refused(&objects, &item("Secret"), "Failed", &sentence("patch")).await;
    objects.expect(&in_phase("DeployItem", "configmap", "Succeeded")).await;
    objects.expect(&object("ConfigMap")).await;
    objects.expect_absent(&object("Secret")).await;
    let written = |of: &str| {
        let mut writes = server.writes(OPERATOR[0]);
        writes.retain(|write| write.contains(&format!(" {of} mine ")));
        writes
    };
    assert_eq!(written("configmaps"), ["patch configmaps mine 201"]);
    assert!(written("secrets").iter().all(|write| write.ends_with(" 403")), "{:?}", written("secrets"));

    allow(&objects, &["configmaps", "secrets"]).await;
    ask(&objects, &item("Secret")).await;
    objects.expect(&in_phase("DeployItem", "secret", "Succeeded")).await;
    objects.expect(&object("Secret")).await;

    // Nor does it delete. An item without Execution begins that by itself (C-161).
    allow(&objects, &["configmaps"]).await;
    objects.delete(&item("Secret")).await;
    refused(&objects, &item("Secret"), "DeleteFailed", &sentence("get")).await;
    objects.expect(&object("Secret")).await;
    allow(&objects, &["configmaps", "secrets"]).await;
    ask(&objects, &item("Secret")).await;
    objects.expect_absent(&item("Secret")).await;
    objects.expect_absent(&object("Secret")).await;

    // By a policy: as an account that it names, where the operator may act as that; and not at all.
    let rules = |fields: Value| policy("team", json!({"profile": "compatible", "targets": {"hostCluster": fields}}));
    put(&objects, &rules(json!({"serviceAccount": "worker"}))).await;
    objects.apply(&item("ConfigMap")).await;
    ask(&objects, &item("ConfigMap")).await;
    let sentence = "serviceaccounts \"worker\" is forbidden: User \"first-operator\" cannot impersonate resource \
                    \"serviceaccounts\" in API group \"\" in the namespace \"default\"";
    refused(&objects, &item("ConfigMap"), "Failed", sentence).await;
    put(&objects, &rules(json!({"allow": false}))).await;
    ask(&objects, &item("ConfigMap")).await;
    policies::refused(&objects, &any("DeployItem", "configmap"), "Failed", "spec.targets.hostCluster.allow").await;
    let mut other = rules(json!({"serviceAccount": "other"}));
    other["metadata"]["name"] = json!("other");
    put(&objects, &other).await;
    put(&objects, &rules(json!({"serviceAccount": "worker"}))).await;
    ask(&objects, &item("ConfigMap")).await;
    let line = "spec.targets.hostCluster.serviceAccount (NamespacePolicy other names another account)";
    policies::refused(&objects, &any("DeployItem", "configmap"), "Failed", line).await;
    operator.stop().await;
}
