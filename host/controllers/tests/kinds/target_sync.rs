//! Secrets and shoots of another cluster become Targets (C-371 … C-375). The other cluster is another namespace of the same server, or
//! a garden, which no API server here is.

use std::net::Ipv4Addr;

use axum::{Json, Router, body::Body, extract::Query, response::IntoResponse, routing::get, routing::post};
use data_encoding::BASE64;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use orangery_policy::Profile;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{
    objects::object,
    world::{Setup, World},
};

/// By which the garden is reached.
const TOKEN: &str = "a-token-of-the-garden";

const MARK: &str = "landscaper.gardener.cloud/targetsync";

/// What a list is asked with.
#[derive(Deserialize)]
struct ListQuery {
    #[serde(default)]
    watch: String,
}

/// A kubeconfig that a Target can use.
fn kubeconfig(server: &str, user: &Value) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": server}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "users": [{"name": "u", "user": user}],
    })
    .to_string()
}

fn usable(host: &str) -> String {
    kubeconfig(&format!("https://{host}.example"), &json!({"token": "t"}))
}

/// The Secrets of the namespace that is the other cluster.
fn garden(world: &World) -> Api<Secret> {
    Api::namespaced(world.client.clone(), "garden")
}

async fn put(world: &World, name: &str, kubeconfig: &str) {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "garden"},
        "data": {"kubeconfig": BASE64.encode(kubeconfig.as_bytes()), "password": BASE64.encode(b"p")},
    });
    garden(world).patch(name, &PatchParams::apply("gardener").force(), &Patch::Apply(&secret)).await.unwrap();
}

/// The Secret `access` with this kubeconfig.
async fn access(world: &World, kubeconfig: &str) {
    let data = json!({"kubeconfig": BASE64.encode(kubeconfig.as_bytes())});
    world.apply(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "access"}, "data": data})).await;
}

fn sync(name: &str, more: &Value) -> Value {
    let secret = json!({"name": "access", "key": "kubeconfig"});
    let mut sync = object("TargetSync", name, &json!({"sourceNamespace": "garden", "secretRef": secret}));
    orangery_proposal::overlay::overlay(&mut sync["spec"], more);
    sync
}

/// A world with a TargetSync of the Secrets `….kubeconfig`, of which there are these.
async fn synced(world: World, names: &[&str]) -> World {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden"}});
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(world.client.clone());
    let params = PatchParams::apply("user");
    namespaces.patch("garden", &params, &Patch::Apply(&namespace)).await.unwrap();
    for name in names {
        put(&world, name, &usable(name)).await;
    }
    access(&world, &world.kubeconfig()).await;
    world.apply(&sync("sync", &json!({"secretNameExpression": r"\.kubeconfig$"}))).await;
    world
}

/// The kubeconfig in a Secret.
fn text(secret: &Value) -> String {
    let encoded = secret["data"]["kubeconfig"].as_str().unwrap_or_default();
    String::from_utf8(BASE64.decode(encoded.as_bytes()).unwrap()).unwrap()
}

async fn holds(world: &World, name: &str, kubeconfig: &str) -> Value {
    world.expect("Secret", name, |secret| text(secret) == kubeconfig).await
}

/// Waits until the TargetSync says exactly this.
async fn tells(world: &World, name: &str, errors: &[&str]) -> Value {
    let is = |sync: &Value| {
        let told = sync["status"]["lastErrors"].as_array().cloned().unwrap_or_default();
        sync["status"]["lastUpdateTime"].is_string() && told == errors
    };
    world.expect("TargetSync", name, is).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_371_secrets_of_another_cluster_become_targets_and_are_followed() {
    let world = synced(World::new().await, &["a.kubeconfig", "b.kubeconfig", "other"]).await;
    let made = holds(&world, "a.kubeconfig", &usable("a.kubeconfig")).await;
    let target = world.expect("Target", "a.kubeconfig", |_| true).await;
    world.expect("Target", "b.kubeconfig", |_| true).await;
    let uid = world.find("TargetSync", "sync").await.unwrap()["metadata"]["uid"].clone();
    let marks = |object: &Value| {
        let metadata = &object["metadata"];
        (metadata["labels"].clone(), metadata["ownerReferences"][0]["uid"].clone())
    };
    let own = (json!({MARK: "ok"}), uid);
    assert_eq!((marks(&made), marks(&target)), (own.clone(), own));
    let spec = json!({
        "type": "landscaper.gardener.cloud/kubernetes-cluster",
        "secretRef": {"name": "a.kubeconfig", "key": "kubeconfig"},
    });
    assert_eq!(target["spec"], spec);
    let keys: Vec<&str> = made["data"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!((keys, &made["type"]), (vec!["kubeconfig"], &json!("Opaque")), "nothing else is copied");
    tells(&world, "sync", &[]).await;
    assert_eq!(world.find("Target", "other").await, None);

    put(&world, "a.kubeconfig", &usable("moved")).await;
    holds(&world, "a.kubeconfig", &usable("moved")).await;
    put(&world, "c.kubeconfig", &usable("c")).await;
    world.expect("Target", "c.kubeconfig", |_| true).await;
    // What somebody else makes of a copy is mended.
    world.patch("Secret", "c.kubeconfig", &json!({"data": {"kubeconfig": "YQ=="}})).await;
    holds(&world, "c.kubeconfig", &usable("c")).await;
    garden(&world).delete("b.kubeconfig", &DeleteParams::default()).await.unwrap();
    world.gone("Target", "b.kubeconfig").await;
    world.gone("Secret", "b.kubeconfig").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_371_what_is_wrong_takes_nothing_away_and_is_told() {
    let world = synced(World::new().await, &["a.kubeconfig", "b.kubeconfig"]).await;
    world.expect("Target", "a.kubeconfig", |_| true).await;
    world.expect("Target", "b.kubeconfig", |_| true).await;
    tells(&world, "sync", &[]).await;
    // A kubeconfig with a program, where one goes at the same time.
    let program = kubeconfig("https://a.example", &json!({"exec": {"apiVersion": "v1", "command": "sh"}}));
    put(&world, "a.kubeconfig", &program).await;
    let why = "Secret a.kubeconfig of the other cluster is not copied: exec is not allowed in the kubeconfig of a target (user \"u\"); \
               allowed are client-certificate-data, client-key-data, token, username and password";
    tells(&world, "sync", &[why]).await;
    garden(&world).delete("b.kubeconfig", &DeleteParams::default()).await.unwrap();
    put(&world, "c.kubeconfig", &usable("c")).await;
    world.expect("Target", "c.kubeconfig", |_| true).await;
    assert_eq!(text(&world.find("Secret", "a.kubeconfig").await.unwrap()), usable("a.kubeconfig"));
    assert!(world.find("Target", "b.kubeconfig").await.is_some(), "it stays until all is well");
    put(&world, "a.kubeconfig", &usable("a")).await;
    world.gone("Target", "b.kubeconfig").await;
    tells(&world, "sync", &[]).await;
    // The kubeconfig of the TargetSync itself.
    access(&world, &program).await;
    let why = "exec is not allowed in the kubeconfig of a target (user \"u\"); allowed are client-certificate-data, client-key-data, \
               token, username and password";
    tells(&world, "sync", &[why]).await;
    world.delete("Secret", "access").await;
    tells(&world, "sync", &["Secret default/access, which spec.secretRef names, does not exist; create it"]).await;
    access(&world, &world.kubeconfig()).await;
    tells(&world, "sync", &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_372_what_others_have_made_stays_as_it_is() {
    let world = World::new().await;
    let config = json!({"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": {"kubeconfig": "mine"}});
    let mut target = object("Target", "a.kubeconfig", &config);
    // The mark alone is not enough.
    target["metadata"]["labels"] = json!({MARK: "ok"});
    world.apply(&target).await;
    let data = json!({"kubeconfig": "bWluZQ=="});
    world
        .apply(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b.kubeconfig"}, "data": data}))
        .await;
    let world = synced(world, &["a.kubeconfig", "b.kubeconfig", "c.kubeconfig"]).await;
    let told = |kind: &str, name: &str| {
        format!(
            "{kind} default/{name} was not made by TargetSync sync and stays as it is; delete it, or have the expression leave out \
             {name}"
        )
    };
    let (one, other) = (told("Target", "a.kubeconfig"), told("Secret", "b.kubeconfig"));
    tells(&world, "sync", &[&one, &other]).await;
    world.expect("Target", "c.kubeconfig", |_| true).await;
    assert_eq!(world.find("Target", "a.kubeconfig").await.unwrap()["spec"], target["spec"]);
    assert_eq!(text(&world.find("Secret", "b.kubeconfig").await.unwrap()), "mine");
    assert_eq!(world.find("Target", "b.kubeconfig").await, None, "no Target leads to what others have made");
    // As soon as they are gone, and asked by nobody.
    world.delete("Secret", "b.kubeconfig").await;
    holds(&world, "b.kubeconfig", &usable("b.kubeconfig")).await;
    world.delete("Target", "a.kubeconfig").await;
    tells(&world, "sync", &[]).await;
    // Of two none is followed, and nothing goes.
    world.apply(&sync("twin", &json!({"secretNameExpression": "*"}))).await;
    let several =
        "more than one TargetSync object in the same namespace is not allowed; delete all but one in namespace default";
    tells(&world, "sync", &[several]).await;
    tells(&world, "twin", &[several]).await;
    world.delete("TargetSync", "twin").await;
    world.gone("TargetSync", "twin").await;
    tells(&world, "sync", &[]).await;
    world.expect("Target", "c.kubeconfig", |_| true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_373_c_374_a_target_in_use_stays_as_long_as_it_is() {
    let world = synced(World::guarded().await, &["a.kubeconfig", "b.kubeconfig"]).await;
    world.expect("Target", "a.kubeconfig", |_| true).await;
    world.expect("Target", "b.kubeconfig", |_| true).await;
    let mut item = object("DeployItem", "user", &json!({"type": "example.org/external"}));
    item["spec"]["target"] = json!({"name": "a.kubeconfig", "namespace": "default"});
    world.apply(&item).await;
    let seen = async || world.host.as_ref().unwrap().stores.deploy_items.list(None).into_iter().next();
    world.wait("the item is not known", seen).await;
    // The other cluster has nothing any more, or says so.
    for name in ["a.kubeconfig", "b.kubeconfig"] {
        garden(&world).delete(name, &DeleteParams::default()).await.unwrap();
    }
    world.gone("Target", "b.kubeconfig").await;
    let kept = "the other cluster has nothing for Target default/a.kubeconfig any more, which stays as long as DeployItem user uses it";
    tells(&world, "sync", &[kept]).await;
    let is_going = |object: Option<Value>| !object.unwrap()["metadata"]["deletionTimestamp"].is_null();
    assert!(!is_going(world.find("Target", "a.kubeconfig").await));
    assert!(!is_going(world.find("Secret", "a.kubeconfig").await));
    world.delete("DeployItem", "user").await;
    world.gone("Target", "a.kubeconfig").await;
    world.gone("Secret", "a.kubeconfig").await;
    // With the TargetSync goes what it has made, and nothing else.
    put(&world, "d.kubeconfig", &usable("d")).await;
    world.expect("Target", "d.kubeconfig", |_| true).await;
    world.delete("TargetSync", "sync").await;
    world.gone("TargetSync", "sync").await;
    world.gone("Target", "d.kubeconfig").await;
    world.gone("Secret", "d.kubeconfig").await;
    assert!(world.find("Secret", "access").await.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_375_the_token_of_a_target_sync_is_renewed_and_a_target_leads_to_its_cluster() {
    let world = World::new().await;
    world.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}})).await;
    let mut of_robot: Value = orangery_core::yaml::decode(&world.kubeconfig()).unwrap();
    of_robot["users"][0]["name"] = json!("robot");
    of_robot["contexts"][0]["context"]["user"] = json!("robot");
    access(&world, &of_robot.to_string()).await;
    let rotating = json!({
        "sourceNamespace": "default", "createTargetToSource": true, "targetToSourceName": "source",
        "tokenRotation": {"enabled": true},
    });
    world.apply(&sync("sync", &rotating)).await;
    let is_rotated = |sync: &Value| sync["status"]["lastTokenRotationTime"].is_string();
    let first = world.expect("TargetSync", "sync", is_rotated).await;
    let target = world.expect("Target", "source", |_| true).await;
    assert_eq!(target["spec"]["secretRef"], json!({"name": "access", "key": "kubeconfig"}));
    let token = |secret: &Value| orangery_core::yaml::decode(&text(secret)).unwrap()["users"][0].clone();
    let renewed = token(&world.find("Secret", "access").await.unwrap());
    assert_ne!(renewed, of_robot["users"][0]);
    assert_eq!(renewed["name"], "robot");
    // Without a name it has that of the source namespace.
    world.patch("TargetSync", "sync", &json!({"spec": {"targetToSourceName": null}})).await;
    world.expect("Target", "default", |_| true).await;
    world.gone("Target", "source").await;
    assert!(world.find("Secret", "access").await.is_some());
    // Once, however often it is called.
    tells(&world, "sync", &[]).await;
    reconciled(&world).await;
    assert_eq!(token(&world.find("Secret", "access").await.unwrap()), renewed);
    // And when it is asked for.
    world.jump(1);
    access(&world, &of_robot.to_string()).await;
    world.annotate("TargetSync", "sync", "rotate-token", "true").await;
    let again = |sync: &Value| {
        sync["status"]["lastTokenRotationTime"] != first["status"]["lastTokenRotationTime"]
            && sync["metadata"]["annotations"]["landscaper.gardener.cloud/rotate-token"].is_null()
    };
    world.expect("TargetSync", "sync", again).await;
    assert_ne!(token(&world.find("Secret", "access").await.unwrap()), of_robot["users"][0]);
}

/// A garden with the shoots `red` and `blue`, which issues a kubeconfig for the first alone.
async fn a_garden() -> String {
    garden_of(&["red", "blue", "../red"]).await
}

/// A garden with these shoots, which issues a kubeconfig for `red` alone.
async fn garden_of(shoots: &[&str]) -> String {
    let names: Vec<String> = shoots.iter().map(|name| (*name).to_owned()).collect();
    let list = move |Query(asked): Query<ListQuery>| {
        let names = names.clone();
        async move {
            if asked.watch == "true" || asked.watch == "1" {
                return Body::from_stream(futures::stream::pending::<Result<Vec<u8>, std::io::Error>>())
                    .into_response();
            }
            let shoot = |name: &str| {
                json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
                   "metadata": {"name": name, "namespace": "garden", "uid": name, "resourceVersion": "1"}})
            };
            Json(json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "ShootList", "metadata": {"resourceVersion": "1"},
                    "items": names.iter().map(|name| shoot(name)).collect::<Vec<_>>()}))
        .into_response()
        }
    };
    let issue = || async {
        let status = json!({"kubeconfig": BASE64.encode(usable("red").as_bytes()), "expirationTimestamp": "2027-01-01T00:00:00Z"});
        (axum::http::StatusCode::CREATED, Json(json!({"status": status})))
    };
    // It says what it was sent.
    let refuse = || async {
        let message = format!("blue has no control plane for {TOKEN}");
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 422, "reason": "Invalid",
                            "message": message});
        (axum::http::StatusCode::UNPROCESSABLE_ENTITY, Json(status))
    };
    let shoots = "/apis/core.gardener.cloud/v1beta1/namespaces/garden/shoots";
    let app = Router::new().route(shoots, get(list)).route(&format!("{shoots}/red/adminkubeconfig"), post(issue));
    let app = app.route(&format!("{shoots}/{{shoot}}/adminkubeconfig"), post(refuse));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    kubeconfig(&format!("http://{address}"), &json!({"token": TOKEN}))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_375_shoots_become_targets_with_kubeconfigs_that_are_issued() {
    let world = World::new().await;
    access(&world, &a_garden().await).await;
    world.apply(&sync("sync", &json!({"shootNameExpression": "*"}))).await;
    let target = world.expect("Target", "red", |_| true).await;
    assert!(target["metadata"]["annotations"]["landscaper.gardener.cloud/lasttargetsync"].is_string(), "{target:#}");
    holds(&world, "red", &usable("red")).await;
    let told = |sync: &Value| sync["status"]["lastErrors"].as_array().is_some_and(|told| told.len() == 2);
    let sync = world.expect("TargetSync", "sync", told).await;
    let errors = sync["status"]["lastErrors"].to_string();
    assert!(errors.contains("tells of 1 Shoots by names that no object can have"), "{errors}");
    assert!(errors.contains("no kubeconfig was issued for shoot blue"), "{errors}");
    assert!(errors.contains("blue has no control plane for") && !errors.contains(TOKEN), "{errors}");
    // It is renewed after half of its life.
    let issued = |target: &Value| target["metadata"]["annotations"]["landscaper.gardener.cloud/lasttargetsync"].clone();
    world.jump(12 * 60 * 60 - 60);
    reconciled(&world).await;
    assert_eq!(issued(&world.find("Target", "red").await.unwrap()), issued(&target));
    world.jump(120);
    reconciled(&world).await;
    world.expect("Target", "red", |renewed| issued(renewed) != issued(&target)).await;
    let targets: Api<orangery_api::target::Target> = Api::default_namespaced(world.client.clone());
    let names: Vec<String> =
        targets.list(&ListParams::default()).await.unwrap().items.iter().map(|target| target.name_any()).collect();
    assert_eq!(names, ["red"]);
}

/// Waits until the annotation that asks for a reconciliation is answered.
async fn reconciled(world: &World) {
    world.annotate("TargetSync", "sync", "operation", "reconcile").await;
    let is_answered = |sync: &Value| sync["metadata"]["annotations"]["landscaper.gardener.cloud/operation"].is_null();
    world.expect("TargetSync", "sync", is_answered).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_371_orc_06_killed_after_any_write_the_end_is_the_same() {
    let mut writes = 0;
    loop {
        let mut world = synced(World::new().await, &[]).await;
        tells(&world, "sync", &[]).await;
        // From here on: a Secret, a Target, and the status.
        world.cut_after(writes);
        put(&world, "a.kubeconfig", &usable("a")).await;
        let is_made = async || {
            let is_cut = world.is_cut();
            let told = world.find("TargetSync", "sync").await?;
            let made = world.find("Target", "a.kubeconfig").await.is_some() && told["status"]["lastErrors"].is_null();
            (is_cut || made).then_some(is_cut)
        };
        let is_cut = world.wait("neither the end nor the cut", is_made).await;
        world.restart();
        holds(&world, "a.kubeconfig", &usable("a")).await;
        world.expect("Target", "a.kubeconfig", |_| true).await;
        reconciled(&world).await;
        tells(&world, "sync", &[]).await;
        world.delete("TargetSync", "sync").await;
        world.gone("TargetSync", "sync").await;
        world.gone("Target", "a.kubeconfig").await;
        world.gone("Secret", "a.kubeconfig").await;
        if !is_cut {
            break;
        }
        writes += 1;
    }
    assert!(writes >= 2, "a Secret and a Target are two writes: {writes}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_371_orc_34_what_is_as_it_should_be_is_not_written_again() {
    let mut world = synced(World::new().await, &["a.kubeconfig", "b.kubeconfig"]).await;
    let mut before = Vec::new();
    for name in ["a.kubeconfig", "b.kubeconfig"] {
        before.push(holds(&world, name, &usable(name)).await);
        before.push(world.expect("Target", name, |_| true).await);
    }
    tells(&world, "sync", &[]).await;
    reconciled(&world).await;
    world.restart();
    reconciled(&world).await;
    let mut after = Vec::new();
    for name in ["a.kubeconfig", "b.kubeconfig"] {
        after.push(world.find("Secret", name).await.unwrap());
        after.push(world.find("Target", name).await.unwrap());
    }
    assert_eq!(after, before);
    let of_secrets = world.asked_about("/secrets/a.kubeconfig");
    assert_eq!(of_secrets.len(), 0, "what is watched is not asked for: {:?}", of_secrets.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_371_the_other_cluster_is_reached_as_that_of_a_target_is() {
    let setup = Setup { profile: Profile::Restricted, ..Setup::default() };
    let world = World::with(setup).await;
    access(&world, &a_garden().await).await;
    world.apply(&sync("sync", &json!({"shootNameExpression": "*"}))).await;
    let refused = |sync: &Value| sync["status"]["lastErrors"][0].is_string();
    let told = world.expect("TargetSync", "sync", refused).await["status"]["lastErrors"].clone();
    assert_eq!(told.as_array().unwrap().len(), 1, "{told}");
    assert!(told.to_string().contains("127.0.0.1") && !told.to_string().contains(TOKEN), "{told}");
    assert_eq!(world.list("Target").await, Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_371_a_spec_that_cannot_be_followed_is_told() {
    let world = synced(World::new().await, &["a.kubeconfig"]).await;
    world.expect("Target", "a.kubeconfig", |_| true).await;
    let both = "a targetsync object with both, secretNameExpression and shootNameExpression, is not allowed; remove one of them";
    for (spec, why) in [
        (json!({"shootNameExpression": "*"}), both),
        (
            json!({"shootNameExpression": "", "secretNameExpression": "("}),
            "spec.secretNameExpression \"(\" is no regular expression in the syntax of RE2; correct it",
        ),
        (
            json!({"secretNameExpression": "*", "sourceNamespace": "../kube-system"}),
            "spec.sourceNamespace \"../kube-system\" is no name of a namespace; correct it",
        ),
        (
            json!({"sourceNamespace": "garden", "secretRef": {"name": "../access", "key": "kubeconfig"}}),
            "spec.secretRef.name \"../access\" is no name of a Secret; correct it",
        ),
        (
            json!({"secretRef": {"name": "access", "key": "none"}}),
            "Secret default/access, which spec.secretRef names, has no kubeconfig as text under the key none; add it, or name its \
             key in spec.secretRef.key",
        ),
    ] {
        world.patch("TargetSync", "sync", &json!({"spec": spec})).await;
        tells(&world, "sync", &[why]).await;
    }
    assert!(world.find("Target", "a.kubeconfig").await.is_some(), "nothing was taken away");
    // Without a key it is that of kubeconfigs.
    let mended = json!({"secretRef": {"name": "access", "key": ""}, "secretNameExpression": "^a"});
    world.patch("TargetSync", "sync", &json!({"spec": mended})).await;
    tells(&world, "sync", &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_374_what_is_in_use_when_a_target_sync_goes_is_held_until_it_is_not() {
    let world = synced(World::guarded().await, &["a.kubeconfig"]).await;
    world.expect("Target", "a.kubeconfig", |_| true).await;
    holds(&world, "a.kubeconfig", &usable("a.kubeconfig")).await;
    let guard = json!({"metadata": {"finalizers": ["orangery.dev/in-use"], "labels": {"orangery.dev/in-use": "true"}}});
    for kind in ["Secret", "Target"] {
        world.patch(kind, "a.kubeconfig", &guard).await;
    }
    world.sees_guard("a.kubeconfig").await;
    let mut item = object("DeployItem", "user", &json!({"type": "example.org/external"}));
    item["spec"]["target"] = json!({"name": "a.kubeconfig", "namespace": "default"});
    world.apply(&item).await;
    let seen = async || world.host.as_ref().unwrap().stores.deploy_items.list(None).into_iter().next();
    world.wait("the item is not known", seen).await;
    world.delete("TargetSync", "sync").await;
    world.gone("TargetSync", "sync").await;
    for kind in ["Secret", "Target"] {
        let held = world.find(kind, "a.kubeconfig").await.unwrap();
        assert!(!held["metadata"]["deletionTimestamp"].is_null(), "{held:#}");
    }
    world.delete("DeployItem", "user").await;
    world.gone("Target", "a.kubeconfig").await;
    world.gone("Secret", "a.kubeconfig").await;
}

/// What another cluster answers where its Secrets are listed; `None` where it answers nothing.
type ListAnswer = std::sync::Arc<std::sync::Mutex<Option<(u16, Value)>>>;

/// A cluster that answers this.
async fn answering(answer: &ListAnswer) -> String {
    let answer = std::sync::Arc::clone(answer);
    let list = move |Query(asked): Query<ListQuery>| {
        let answer = answer.lock().unwrap().clone().filter(|_| asked.watch.is_empty() || asked.watch == "false");
        async move {
            match answer {
                Some((status, list)) => (axum::http::StatusCode::from_u16(status).unwrap(), Json(list)).into_response(),
                None => std::future::pending().await,
            }
        }
    };
    let app = Router::new().route("/api/v1/namespaces/garden/secrets", get(list));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    kubeconfig(&format!("http://{address}"), &json!({"token": TOKEN}))
}

/// A list of Secrets with kubeconfigs of these hosts.
fn listed(hosts: &[&str]) -> (u16, Value) {
    let secret = |host: &&str| {
        json!({"apiVersion": "v1", "kind": "Secret",
               "metadata": {"name": host, "namespace": "garden", "uid": host, "resourceVersion": "1"},
               "data": {"kubeconfig": BASE64.encode(usable(host).as_bytes())}})
    };
    let items: Vec<Value> = hosts.iter().map(secret).collect();
    (200, json!({"apiVersion": "v1", "kind": "SecretList", "metadata": {"resourceVersion": "1"}, "items": items}))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_376_a_cluster_that_answers_nothing_holds_up_nobody_and_no_deletion() {
    let world = World::new().await;
    access(&world, &answering(&ListAnswer::default()).await).await;
    world.apply(&sync("silent", &json!({"secretNameExpression": "*"}))).await;
    let has_begun = |sync: &Value| sync["metadata"]["finalizers"].is_array();
    world.expect("TargetSync", "silent", has_begun).await;
    // Another namespace is looked after, and whatever else there is.
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden"}});
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(world.client.clone());
    namespaces.patch("garden", &PatchParams::apply("user"), &Patch::Apply(&namespace)).await.unwrap();
    put(&world, "access", &world.kubeconfig()).await;
    put(&world, "a.kubeconfig", &usable("a")).await;
    let mut other = sync("other", &json!({"createTargetToSource": true, "targetToSourceName": "source"}));
    other["metadata"]["namespace"] = json!("garden");
    let syncs: Api<orangery_api::sync::TargetSync> = Api::namespaced(world.client.clone(), "garden");
    syncs.patch("other", &PatchParams::apply("user"), &Patch::Apply(&other)).await.unwrap();
    let targets: Api<orangery_api::target::Target> = Api::namespaced(world.client.clone(), "garden");
    let made = async || targets.get_opt("source").await.unwrap();
    world.wait("the other namespace waits", made).await;
    assert!(world.find("TargetSync", "silent").await.unwrap()["status"].is_null(), "nothing is known yet");
    world.delete("TargetSync", "silent").await;
    world.gone("TargetSync", "silent").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_371_a_cluster_that_refuses_takes_nothing_away_and_another_one_is_followed_then() {
    let world = World::new().await;
    let first = ListAnswer::default();
    *first.lock().unwrap() = Some(listed(&["a", "b"]));
    access(&world, &answering(&first).await).await;
    world.apply(&sync("sync", &json!({"secretNameExpression": "*"}))).await;
    holds(&world, "a", &usable("a")).await;
    world.expect("Target", "b", |_| true).await;
    tells(&world, "sync", &[]).await;
    // Other credentials, which may not list.
    let message = format!("nobody with {TOKEN} may list secrets");
    let forbidden = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden",
                           "message": message});
    let second = ListAnswer::default();
    *second.lock().unwrap() = Some((403, forbidden));
    access(&world, &answering(&second).await).await;
    let refused = |sync: &Value| sync["status"]["lastErrors"][0].as_str().is_some_and(|why| why.contains("may list"));
    let told = world.expect("TargetSync", "sync", refused).await["status"]["lastErrors"].to_string();
    assert!(!told.contains(TOKEN), "{told}");
    assert!(world.find("Target", "a").await.is_some() && world.find("Target", "b").await.is_some());
    // A third cluster has one of them, and another.
    let third = ListAnswer::default();
    *third.lock().unwrap() = Some(listed(&["b", "c"]));
    access(&world, &answering(&third).await).await;
    world.expect("Target", "c", |_| true).await;
    world.gone("Target", "a").await;
    world.gone("Secret", "a").await;
    assert!(world.find("Target", "b").await.is_some());
    tells(&world, "sync", &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_376_shoots_for_which_nothing_is_issued_keep_no_other_from_its_turn() {
    let world = World::new().await;
    let refused: Vec<String> = (0..20).map(|number| format!("blue-{number:02}")).collect();
    let shoots: Vec<&str> = refused.iter().map(String::as_str).chain(["red"]).collect();
    access(&world, &garden_of(&shoots).await).await;
    world.apply(&sync("sync", &json!({"shootNameExpression": "*"}))).await;
    // It comes after all that fail.
    holds(&world, "red", &usable("red")).await;
    world.expect("Target", "red", |_| true).await;
    let is_whole = |sync: &Value| {
        let told = sync["status"]["lastErrors"].as_array().cloned().unwrap_or_default();
        told.len() == 17 && told[16] == "and 4 more"
    };
    world.expect("TargetSync", "sync", is_whole).await;
    let targets: Vec<Value> =
        world.list("Target").await.iter().map(|target| target["metadata"]["name"].clone()).collect();
    assert_eq!(targets, [json!("red")]);
    // What was not issued is said again, and nothing is written for it.
    let writes = || world.asked_about("/targetsyncs/sync/status").len();
    let before = writes();
    let config = json!({"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": {"kubeconfig": "mine"}});
    for name in ["one", "two", "three"] {
        world.apply(&object("Target", name, &config)).await;
        let seen = async || {
            let key = orangery_reconcile::Key::new("default", name);
            world.host.as_ref().unwrap().stores.targets.get(&key)
        };
        world.wait("the Target is not known", seen).await;
    }
    assert_eq!(writes(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_372_the_target_of_the_other_cluster_is_not_taken_from_others() {
    let world = synced(World::new().await, &["a.kubeconfig"]).await;
    let config = json!({"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": {"kubeconfig": "mine"}});
    let mine = object("Target", "garden", &config);
    world.apply(&mine).await;
    world.patch("TargetSync", "sync", &json!({"spec": {"createTargetToSource": true}})).await;
    let why = "Target default/garden was not made by TargetSync sync and stays as it is; delete it, or have the expression leave out \
               garden";
    tells(&world, "sync", &[why]).await;
    assert_eq!(world.find("Target", "garden").await.unwrap()["spec"], mine["spec"]);
    // Under a name of its own it is made.
    world.patch("TargetSync", "sync", &json!({"spec": {"targetToSourceName": "garden-itself"}})).await;
    let made = world.expect("Target", "garden-itself", |_| true).await;
    assert_eq!(made["spec"]["secretRef"], json!({"name": "access", "key": "kubeconfig"}));
    tells(&world, "sync", &[]).await;
    // A name that no object can have is told.
    world.patch("TargetSync", "sync", &json!({"spec": {"targetToSourceName": "No Name"}})).await;
    tells(&world, "sync", &["spec.targetToSourceName \"No Name\" is no name; correct it"]).await;
    assert!(world.find("Target", "garden-itself").await.is_some());
    // The key of the Secret that is named counts for it as well.
    let data = json!({"admin.conf": BASE64.encode(world.kubeconfig().as_bytes())});
    world.patch("Secret", "access", &json!({"data": data})).await;
    let spec = json!({"targetToSourceName": "garden-itself", "secretRef": {"name": "access", "key": "admin.conf"}});
    world.patch("TargetSync", "sync", &json!({"spec": spec})).await;
    let is_moved = |target: &Value| target["spec"]["secretRef"]["key"] == "admin.conf";
    world.expect("Target", "garden-itself", is_moved).await;
}
