//! How runs of container items end that cannot begin, or whose node goes away, and what a program gets of its target.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Router,
    extract::Request,
    http::{StatusCode, header},
};
use data_encoding::BASE64;
use orangery_core::yaml;
use orangery_tests::tree::API;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle, time::Instant};

use crate::{
    containers::{
        ENDLESS, GROUP, LARGE, asks_again, ended, exported, installed, installed_with, item, kind, left, pieces,
        pod_that, runs,
    },
    installed::Installed,
    objects::{TEAM, installation, namespace},
};

/// Whether the content of a target has the form that it was promised in.
type IsAsPromised<'t> = Box<dyn Fn(&str) -> bool + 't>;

/// Pods of items.
fn kind_of_pods() -> Value {
    let labels = json!({format!("deployitem.{GROUP}/namespace"): TEAM});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": TEAM, "labels": labels}})
}

/// The item of an Installation, once its job has ended in this phase.
async fn item_of(installed: &Installed, name: &str, phase: &str) -> Value {
    let is_it = |item: &Value| {
        let status = &item["status"];
        let of = item["metadata"]["name"].as_str().unwrap_or_default();
        of.starts_with(&format!("{name}-")) && status["phase"] == phase && status["jobID"] == status["jobIDFinished"]
    };
    installed.admin.expect_that(&kind("DeployItem"), &format!("of {name} has ended {phase}"), is_it).await
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn con_19_a_program_gets_its_target_whatever_form_that_has() {
    let installed = installed().await;
    let kubeconfig = installed.node.kubeconfig().to_owned();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "access", "namespace": TEAM},
        "stringData": {"kubeconfig": kubeconfig, "other": "plain"},
    });
    installed.admin.apply(&secret).await;
    let specs = [
        ("inline", json!({"config": {"kubeconfig": kubeconfig}})),
        ("key", json!({"secretRef": {"name": "access", "key": "kubeconfig"}})),
        ("keyless", json!({"secretRef": {"name": "access"}})),
    ];
    let copies = item("cp $TARGET_PATH $EXPORTS_PATH", &json!({}));
    for (name, mut spec) in specs {
        spec["type"] = json!("landscaper.gardener.cloud/kubernetes-cluster");
        let target = json!({
            "apiVersion": API, "kind": "Target", "metadata": {"name": name, "namespace": TEAM}, "spec": spec,
        });
        installed.admin.apply(&target).await;
        let mut object = installation(name, &[("Jinja", copies.clone())]);
        object["spec"]["imports"]["targets"][0]["target"] = json!(name);
        installed.admin.apply(&object).await;
    }
    // `null` alone exports nothing.
    let mut without = item("printf 'target: ' | cat - $TARGET_PATH > $EXPORTS_PATH", &json!({}));
    without.as_object_mut().expect("an item").remove("target");
    installed.admin.apply(&installation("none", &[("Jinja", without)])).await;

    let decoded = yaml::decode(&kubeconfig).expect("a kubeconfig is YAML");
    let whole = json!({"kubeconfig": decoded, "other": "plain"});
    let is_text = |text: &str| text == kubeconfig;
    let is_object = |expected: Value| move |text: &str| serde_json::from_str(text).ok() == Some(expected.clone());
    let forms: [(&str, IsAsPromised<'_>); 3] = [
        ("inline", Box::new(is_object(json!({"kubeconfig": kubeconfig})))),
        ("key", Box::new(is_text)),
        ("keyless", Box::new(is_object(whole))),
    ];
    for (name, is_as_promised) in forms {
        let exports = exported(&installed, &item_of(&installed, name, "Succeeded").await).await;
        let members: Vec<&String> = exports.as_object().expect("an object").keys().collect();
        assert_eq!(members, ["content", "target"], "{name}");
        let of = &exports["target"]["spec"];
        assert_eq!(of["type"], "landscaper.gardener.cloud/kubernetes-cluster", "{exports:#}");
        let from = (of.get("config").is_some(), of["secretRef"]["name"] == "access");
        assert_eq!(from, (name == "inline", name != "inline"), "{exports:#}");
        assert!(is_as_promised(exports["content"].as_str().expect("text")), "{name}: {exports:#}");
    }
    let exports = exported(&installed, &item_of(&installed, "none", "Succeeded").await).await;
    assert_eq!(exports, json!({"target": null}));
    for name in ["inline", "key", "keyless", "none"] {
        installed.deletes(name).await;
    }
    installed.ends().await;
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn con_12_a_state_of_landscapers_deployer_is_restored() {
    let installed = installed().await;
    installed.succeeds(&installation("task", &[("Jinja", item(LARGE, &json!({})))])).await;
    let first = ended(&installed, "Succeeded", &Value::Null).await;
    let left_first = exported(&installed, &first).await["left"].clone();
    let of_kind = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": TEAM}});
    let secrets = installed.admin.list(&of_kind).await;
    let mut ours: Vec<&Value> =
        secrets.iter().filter(|secret| secret["metadata"]["labels"][format!("{GROUP}/type")] == "state").collect();
    ours.sort_by_key(|secret| {
        secret["metadata"]["annotations"][format!("{GROUP}/num")].as_str().unwrap_or_default().to_owned()
    });
    assert_eq!(ours.len(), 2);
    // As the original stores it: no mark, names that are made up, and a last piece that is filled up with what its buffer had.
    for (number, secret) in ours.iter().enumerate() {
        let mut bytes = BASE64.decode(secret["data"]["config"].as_str().expect("a piece").as_bytes()).expect("base64");
        let filling: Vec<u8> = bytes.iter().copied().cycle().take((1 << 20) - bytes.len()).collect();
        bytes.extend(filling);
        let prefix = format!("deployitem.{GROUP}");
        let labels = json!({
            format!("{prefix}/name"): first["metadata"]["name"], format!("{prefix}/namespace"): TEAM,
            format!("{GROUP}/type"): "state",
        });
        let annotations =
            json!({format!("{GROUP}/uuid"): "of-the-original", format!("{GROUP}/num"): number.to_string()});
        let original = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": format!("state-{TEAM}-task-abcd{number}"), "namespace": TEAM, "labels": labels, "annotations": annotations},
            "data": {"config": BASE64.encode(&bytes)},
        });
        installed.admin.create(&original).await;
        installed.admin.delete(secret).await;
    }
    asks_again(&installed, "task").await;
    let second = ended(&installed, "Succeeded", &first["status"]["jobID"]).await;
    assert_eq!(exported(&installed, &second).await, json!({"found": left_first, "left": left_first}));
    let now = pieces(&installed).await;
    assert!(now.len() == 2 && now.iter().all(|(uuid, _)| *uuid == now[0].0 && uuid != "of-the-original"), "{now:?}");
    installed.deletes("task").await;
    assert_eq!(left(&installed).await, Vec::<String>::new());
    installed.ends().await;
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn con_20_a_state_that_cannot_be_unpacked_ends_in_init_and_stays() {
    let installed = installed().await;
    installed.succeeds(&installation("task", &[("Jinja", item("echo x > $STATE_PATH/a", &json!({})))])).await;
    let first = ended(&installed, "Succeeded", &Value::Null).await;
    let now = pieces(&installed).await;
    let of_kind = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": TEAM}});
    let secrets = installed.admin.list(&of_kind).await;
    let is_first = |secret: &&Value| secret["metadata"]["annotations"][format!("{GROUP}/num")] == "0";
    let name = &secrets.iter().find(is_first).expect("a first piece")["metadata"]["name"];
    let broken = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": TEAM},
        "data": {"config": BASE64.encode(b"no archive")},
    });
    installed.admin.merge(&broken).await;
    asks_again(&installed, "task").await;
    let failed = ended(&installed, "Failed", &first["status"]["jobID"]).await;
    let message = failed["status"]["lastError"]["message"].as_str().unwrap_or_default();
    let sentence = "the container init ended with exit code 1: the stored state cannot be restored: ";
    assert!(message.contains(sentence), "{message}");
    assert_eq!(pieces(&installed).await, now);
    installed.admin.annotate(&failed, json!({format!("{GROUP}/force-cleanup"): "true"})).await;
    installed.deletes("task").await;
    assert_eq!(left(&installed).await, Vec::<String>::new());
    installed.ends().await;
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn con_23_a_run_whose_node_goes_away_ends_with_its_reason() {
    // The operator is on the same node, and stays.
    let installed = installed_with(&["tolerations[0].operator=Exists"]).await;
    installed.admin.apply(&installation("task", &[("Jinja", item(ENDLESS, &json!({})))])).await;
    let pod = pod_that(&installed, "runs", runs).await;
    let gone = installed.node.goes().await;
    let failed = ended(&installed, "Failed", &Value::Null).await;
    let message = failed["status"]["lastError"]["message"].as_str().unwrap_or_default();
    let sentence = "its pod was taken off node node, DeletionByTaintManager: ";
    assert!(message.contains(sentence) && message.contains("; the next job waits until that pod is gone"), "{message}");
    // Nobody has ended it.
    let key =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": TEAM, "name": pod["metadata"]["name"]}});
    installed.admin.expect(&key).await;
    let ends = installation("task", &[("Jinja", item("echo 'job: two' > $EXPORTS_PATH", &json!({})))]);
    installed.admin.apply(&ends).await;
    drop(gone);
    let second = ended(&installed, "Succeeded", &failed["status"]["jobID"]).await;
    assert_eq!(exported(&installed, &second).await, json!({"job": "two"}));
    installed.admin.expect_absent(&key).await;
    installed.deletes("task").await;
    assert_eq!(left(&installed).await, Vec::<String>::new());
    installed.ends().await;
}

/// A registry that lets nobody in, and the credentials that were shown to it.
struct ClosedRegistry {
    address: SocketAddr,
    shown: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for ClosedRegistry {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ClosedRegistry {
    async fn start() -> Self {
        let shown: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = Arc::clone(&shown);
        let app = Router::new().fallback(move |request: Request| {
            let sent = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
            noted.lock().unwrap_or_else(PoisonError::into_inner).extend(sent.map(str::to_owned));
            async { (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Basic realm=\"closed\"")]) }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let task = tokio::spawn(async move { axum::serve(listener, app).await.expect("a server") });
        Self { address, shown, task }
    }
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn con_20_a_registry_that_does_not_take_the_credentials_is_told_without_them() {
    let installed = installed().await;
    let registry = ClosedRegistry::start().await;
    let (address, login) = (registry.address.to_string(), BASE64.encode(b"reader:of-long-ago"));
    let auths = json!({"auths": {&address: {"username": "reader", "password": "of-long-ago", "auth": login}}});
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
        "metadata": {"name": "pull", "namespace": TEAM},
        "data": {".dockerconfigjson": BASE64.encode(auths.to_string().as_bytes())},
    });
    installed.admin.apply(&secret).await;
    let named = json!([{"name": "pull", "namespace": TEAM}]);
    let fields = json!({"config": {"image": format!("{address}/task:1"), "registryPullSecrets": named}});
    installed.admin.apply(&installation("task", &[("Jinja", item("", &fields))])).await;
    let failed = ended(&installed, "Failed", &Value::Null).await;
    let message = failed["status"]["lastError"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("the container main cannot begin, ") && message.contains("uthoriz"), "{message}");
    assert!(message.contains("; correct its image, or the credentials for it"), "{message}");
    let told = failed["status"].to_string();
    assert!(!told.contains("of-long-ago") && !told.contains(&login), "{told}");
    let shown = registry.shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(shown.contains(&format!("Basic {login}")), "nobody has shown the credentials: {shown:?}");
    let pods = kind_of_pods();
    installed.admin.expect_absent(&pods).await;
    assert_eq!(left(&installed).await, Vec::<String>::new());
    installed.deletes("task").await;
    assert_eq!(left(&installed).await, Vec::<String>::new());
    installed.ends().await;
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn con_26_a_quota_of_pods_that_is_full_is_told_and_leaves_nothing() {
    let installed = installed().await;
    let quota = |pods: &str| {
        json!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small", "namespace": TEAM},
            "spec": {"hard": {"pods": pods}},
        })
    };
    let of = |pods: &str| {
        let mut quota = quota(pods);
        quota["status"] = json!({"hard": {"pods": pods}});
        quota
    };
    installed.admin.apply(&quota("0")).await;
    installed.admin.expect(&of("0")).await;
    let object = installation("task", &[("Jinja", item("true", &json!({"timeout": "10s"})))]);
    installed.admin.apply(&object).await;
    let failed = ended(&installed, "Failed", &Value::Null).await;
    let message = failed["status"]["lastError"]["message"].as_str().unwrap_or_default();
    for part in [
        "the item did not finish within its timeout of 10s; the last problem was: ",
        "exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0",
    ] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(left(&installed).await, Vec::<String>::new());
    installed.admin.apply(&quota("1")).await;
    installed.admin.expect(&of("1")).await;
    asks_again(&installed, "task").await;
    ended(&installed, "Succeeded", &failed["status"]["jobID"]).await;
    installed.deletes("task").await;
    assert_eq!(left(&installed).await, Vec::<String>::new());
    installed.ends().await;
}

#[tokio::test]
#[cfg_attr(without_node, ignore = "needs root, containerd and runc: tests/node/build.sh")]
async fn con_29_in_a_namespace_that_is_deleted_what_is_in_the_way_is_told_with_how_to_go_on() {
    let installed = installed().await;
    let keeps = "echo x > $STATE_PATH/a";
    installed.succeeds(&installation("task", &[("Jinja", item(keeps, &json!({})))])).await;
    let deleted = Instant::now();
    installed.admin.delete(&namespace(TEAM, json!({}))).await;
    let stays = item_of(&installed, "task", "DeleteFailed").await;
    // The item has three minutes.
    let took = deleted.elapsed();
    assert!(took.as_secs() < 60, "{took:?}");
    let (_, why) = installed.tells(&["why", "installation/task", "--namespace", TEAM]).await;
    assert!(why.contains("annotate DeployItem landscaper.gardener.cloud/delete-without-uninstall=true"), "{why}");
    assert_eq!(left(&installed).await, Vec::<String>::new());
    installed.admin.annotate(&stays, json!({"landscaper.gardener.cloud/delete-without-uninstall": "true"})).await;
    asks_again(&installed, "task").await;
    installed.admin.expect_absent(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})).await;
    installed.ends().await;
}
