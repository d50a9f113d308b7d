//! Targets that name a service account, with real tokens (`docs/wire.md` §1.4).

use std::net::TcpListener;

use orangery_tests::{
    kube::{Kube, OPERATOR},
    objects::{NAMESPACE, Objects},
    tree::{API, blueprint, in_phase, installation},
};
use serde_json::{Value, json};

const AUDIENCE: &str = "targets";

/// An Installation `tree` that deploys a ConfigMap to this Target.
fn tree(target: &str) -> Value {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "there", "namespace": NAMESPACE}});
    let config = json!({
        "apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2",
        "kind": "ProviderConfiguration",
        "manifests": [{"manifest": map}],
    });
    let item = json!({
        "name": "item",
        "type": "landscaper.gardener.cloud/kubernetes-manifest",
        "target": {"import": "cluster"},
        "config": config,
    });
    let execution = json!({"name": "d", "type": "Jinja", "template": json!({"deployItems": [item]}).to_string()});
    let import =
        json!({"name": "cluster", "type": "target", "targetType": "landscaper.gardener.cloud/kubernetes-cluster"});
    let mut tree = installation("tree", &blueprint(json!({"imports": [import], "deployExecutions": [execution]})));
    tree["spec"]["imports"] = json!({"targets": [{"name": "cluster", "target": target}]});
    tree
}

/// Binds a role of the cluster to a user or a group.
fn binding(role: &str, kind: &str, name: &str) -> Value {
    let group = "rbac.authorization.k8s.io";
    json!({
        "apiVersion": format!("{group}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "tokens"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": kind, "name": name}],
    })
}

/// What lets the account that the operator acts as for the namespace have tokens of another one.
fn may_have_tokens(account: &str) -> [Value; 2] {
    let group = "rbac.authorization.k8s.io";
    let metadata = json!({"name": "tokens", "namespace": NAMESPACE});
    let rule = json!({"apiGroups": [""], "resources": ["serviceaccounts/token"], "resourceNames": [account], "verbs": ["create"]});
    [
        json!({"apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": metadata, "rules": [rule]}),
        json!({
            "apiVersion": format!("{group}/v1"),
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "tokens"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": NAMESPACE}],
        }),
    ]
}

#[tokio::test]
async fn c_38_a_target_with_oidc_is_reached_with_a_token_that_the_other_cluster_trusts() {
    let (binary, programs) = super::programs().await;
    let here = Kube::start(&programs, &binary).await;
    let objects = Objects::of(here.kubeconfig()).await;
    // Everybody may ask for the keys of the tokens.
    objects.apply(&binding("system:service-account-issuer-discovery", "Group", "system:unauthenticated")).await;
    let there = Kube::start_trusting(&programs, &binary, &here, AUDIENCE).await;
    let target = json!({
        "server": there.address(),
        "caData": there.authority(),
        "serviceAccount": {"name": "deployer"},
        "audience": [AUDIENCE],
        "expirationSeconds": 3600,
    });
    objects
        .apply(&json!({
            "apiVersion": API,
            "kind": "Target",
            "metadata": {"name": "elsewhere"},
            "spec": {"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": {"oidcConfig": target}},
        }))
        .await;
    let _operator = here.operator(&binary, OPERATOR[0], &[]);

    objects.apply(&tree("elsewhere")).await;
    let failed = objects.expect(&in_phase("Installation", "tree", "Failed")).await;
    let message = failed["status"]["lastError"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("names ServiceAccount default/deployer, which does not exist; create it"), "{message}");

    // The account has not opted in, then nobody lets the namespace have tokens of it.
    let account = |annotations: Value| {
        let metadata = json!({"name": "deployer", "annotations": annotations});
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    };
    let refusals = [
        (
            account(json!({})),
            "names ServiceAccount default/deployer, which Targets may not use; annotate it with \
            orangery.dev/allow-targets: \"true\"",
        ),
        (
            account(json!({"orangery.dev/allow-targets": "true"})),
            "names ServiceAccount default/deployer, for which \
            ServiceAccount default/default may not ask a token, as which the operator acts for the namespace; allow it to \
            create serviceaccounts/token of deployer",
        ),
    ];
    for (account, refusal) in refusals {
        objects.apply(&account).await;
        objects.apply(&tree("elsewhere")).await;
        let refused = |tree: &Value| {
            tree.pointer("/status/phase") == Some(&json!("Failed"))
                && tree
                    .pointer("/status/lastError/message")
                    .is_some_and(|message| message.to_string().replace('\\', "").contains(refusal))
        };
        objects.expect_that(&tree("elsewhere"), "is not refused in these words", refused).await;
    }
    for object in may_have_tokens("deployer") {
        objects.apply(&object).await;
    }
    let there = Objects::of(there.kubeconfig()).await;
    there.apply(&binding("cluster-admin", "User", "oidc:system:serviceaccount:default:deployer")).await;
    objects.apply(&tree("elsewhere")).await;
    objects.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "there"}});
    there.expect(&map).await;
    objects.expect_absent(&map).await;
}

/// A server elsewhere, which a tenant has, is sent no token that would be good for this cluster: none is even asked for.
#[tokio::test]
async fn c_38_a_server_elsewhere_is_sent_no_token_that_is_good_here() {
    let (binary, programs) = super::programs().await;
    let server = Kube::start_audited(&programs, &binary).await;
    let objects = Objects::of(server.kubeconfig()).await;
    let annotations = json!({"orangery.dev/allow-targets": "true"});
    let metadata = json!({"name": "deployer", "annotations": annotations});
    objects.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})).await;
    for object in may_have_tokens("deployer") {
        objects.apply(&object).await;
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.set_nonblocking(true).expect("a socket");
    let address = listener.local_addr().expect("an address");
    let _operator = server.operator(&binary, OPERATOR[0], &[]);
    let refused = async |name: &str, audience: Value, sentence: &str| {
        let account = json!({"name": "deployer"});
        let mut config =
            json!({"server": format!("https://{address}"), "serviceAccount": account, "audience": audience});
        if audience.is_null() {
            config.as_object_mut().expect("an object").remove("audience");
        }
        let spec = json!({"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": {"oidcConfig": config}});
        objects.apply(&json!({"apiVersion": API, "kind": "Target", "metadata": {"name": name}, "spec": spec})).await;
        let mut root = tree(name);
        root["metadata"]["name"] = json!(name);
        objects.apply(&root).await;
        let failed = objects.expect(&in_phase("Installation", name, "Failed")).await;
        let message = failed["status"]["lastError"]["message"].as_str().unwrap_or_default();
        let expected = format!("Target {NAMESPACE}/{name} cannot be used: oidcConfig {sentence}");
        assert!(message.contains(&expected), "{message}");
    };
    let asked = || {
        let mut writes = server.writes(OPERATOR[0]);
        writes.retain(|write| write.contains(" serviceaccounts "));
        writes
    };
    let needs = "needs an audience, since the server is not this cluster's own: the token without one would be good for this \
                 cluster; name in audience what the server expects of its tokens";
    for (name, audience) in [("none", Value::Null), ("empty", json!([])), ("nothing", json!([""]))] {
        refused(name, audience, needs).await;
        assert_eq!(asked(), [""; 0], "{name}");
    }
    // Which audiences are this cluster's own the API server says with a token that stays here, once.
    let own = |audience: &str| {
        format!(
            "asks for the audience {audience:?} of this cluster's own API server, which no other server may have; name in \
             audience what the server expects of its tokens"
        )
    };
    refused("own", json!([server.address()]), &own(&server.address())).await;
    refused("beside", json!([AUDIENCE, server.address()]), &own(&server.address())).await;
    refused("half", json!([AUDIENCE, ""]), &own("")).await;
    assert_eq!(asked(), ["create serviceaccounts deployer 201"]);
    assert!(listener.accept().is_err(), "the server elsewhere was asked");
}

/// Rights that spread: the credentials are those of somebody who may do nothing, until a role is bound to him.
#[tokio::test]
async fn c_39_rights_that_are_missing_are_told_at_once_and_tried_again_until_they_are_there() {
    let (binary, programs) = super::programs().await;
    let server = Kube::shared(&programs, &binary).await;
    let objects = Objects::of(server.kubeconfig()).await;
    let spec = json!({
        "type": "landscaper.gardener.cloud/kubernetes-cluster",
        "config": {"kubeconfig": server.kubeconfig_of("alice", NAMESPACE)},
    });
    objects.apply(&json!({"apiVersion": API, "kind": "Target", "metadata": {"name": "hers"}, "spec": spec})).await;
    let _operator = server.operator(&binary, OPERATOR[0], &[]);
    objects.apply(&tree("hers")).await;
    let is_told = |item: &Value| {
        let conditions = item["status"]["conditions"].to_string();
        conditions.contains("do not allow this") && conditions.contains("TransientError")
    };
    let item = json!({"apiVersion": API, "kind": "DeployItem"});
    let told = objects.expect_that(&item, "does not say that its rights are missing", is_told).await;
    assert_ne!(told["status"]["jobIDFinished"], told["status"]["jobID"], "it is tried again: {told:#}");
    objects.apply(&binding("cluster-admin", "User", "alice")).await;
    objects.expect(&in_phase("Installation", "tree", "Succeeded")).await;
    objects.expect(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "there"}})).await;
}
