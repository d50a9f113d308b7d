//! A server for one test, and the ways to talk to it.

use std::{path::Path, sync::Arc, time::Duration};

use kube::{
    Api, Client, Config,
    api::{ApiResource, DynamicObject, GroupVersionKind, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use orangery_embedded::{Options, Server, StartError, Storage, start};
use serde_json::{Value, json};

/// How long a test waits for what has to come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn options(storage: Storage) -> Options {
    let clock = Arc::new(|| jiff::Timestamp::from_second(1_800_000_000).unwrap());
    Options { storage, address: ([127, 0, 0, 1], 0).into(), clock }
}

pub(crate) async fn serve() -> (Server, Client) {
    serve_from(Storage::Memory).await.unwrap()
}

pub(crate) async fn serve_folder(folder: &Path) -> (Server, Client) {
    serve_from(Storage::Folder(folder.to_owned())).await.unwrap()
}

pub(crate) async fn serve_from(storage: Storage) -> Result<(Server, Client), StartError> {
    let server = start(options(storage)).await?;
    let client = client(&server).await;
    Ok((server, client))
}

pub(crate) async fn client(server: &Server) -> Client {
    client_with(server, server.token()).await
}

/// A client that shows another token.
pub(crate) async fn client_with(server: &Server, token: &str) -> Client {
    let text = server.kubeconfig().replace(server.token(), token);
    let kubeconfig: Kubeconfig = yaml_serde::from_str(&text).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// A namespace for the test.
pub(crate) async fn namespace(client: &Client, name: &str) {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    create(&dynamic(client, "", "v1", "Namespace", None), object).await.unwrap();
}

/// Objects of a kind, in a namespace or of the whole cluster.
pub(crate) fn dynamic(
    client: &Client,
    group: &str,
    version: &str,
    kind: &str,
    namespace: Option<&str>,
) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

pub(crate) fn config_maps(client: &Client, namespace: &str) -> Api<DynamicObject> {
    dynamic(client, "", "v1", "ConfigMap", Some(namespace))
}

pub(crate) fn things(client: &Client, namespace: &str) -> Api<DynamicObject> {
    dynamic(client, "example.com", "v1", "Thing", Some(namespace))
}

pub(crate) fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

pub(crate) fn thing(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec})
}

pub(crate) async fn create(api: &Api<DynamicObject>, object: Value) -> kube::Result<DynamicObject> {
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await
}

/// The definition of `Thing`: a size that has to be there, a mode with a default.
pub(crate) fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing", "shortNames": ["th"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "required": ["size"], "properties": {
                        "size": {"type": "integer", "minimum": 1},
                        "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
                        "rows": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["key"],
                            "items": {"type": "object", "properties": {"key": {"type": "string"}, "value": {"type": "string"}}}},
                    }},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }],
        },
    })
}

pub(crate) fn definitions(client: &Client) -> Api<DynamicObject> {
    dynamic(client, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", None)
}

/// A cluster with the kind `Thing` and the namespace `ns`.
pub(crate) async fn serve_things() -> (Server, Client) {
    let (server, client) = serve().await;
    create(&definitions(&client), definition()).await.unwrap();
    namespace(&client, "ns").await;
    (server, client)
}

/// The sentence of a refusal, with its code.
#[track_caller]
pub(crate) fn refusal<T: std::fmt::Debug>(result: kube::Result<T>) -> (u16, String) {
    match result {
        Err(kube::Error::Api(status)) => (status.code, status.message.clone()),
        other => panic!("a refusal was expected: {other:?}"),
    }
}

/// Waits until an object is gone. A watch wakes it, nothing polls.
pub(crate) async fn gone(api: &Api<DynamicObject>, name: &str) {
    let wait =
        kube::runtime::wait::await_condition(api.clone(), name, |object: Option<&DynamicObject>| object.is_none());
    tokio::time::timeout(PATIENCE, wait).await.expect("the object is still there").unwrap();
}

/// Waits until an object is as it should be.
pub(crate) async fn becomes(api: &Api<DynamicObject>, name: &str, is: impl Fn(&Value) -> bool) -> Value {
    let condition =
        move |object: Option<&DynamicObject>| object.is_some_and(|object| is(&serde_json::to_value(object).unwrap()));
    let wait = kube::runtime::wait::await_condition(api.clone(), name, condition);
    let object = tokio::time::timeout(PATIENCE, wait).await.expect("the object did not become so").unwrap();
    serde_json::to_value(object.unwrap()).unwrap()
}
