//! Container items where no node runs their pods. [`Pods`] makes each pod say that it has ended well, and fills before that the
//! Secrets that the container `wait` fills; it notes all that are made, and whether two of one item were there at once.

use std::{collections::BTreeMap, fs, path::Path};

use data_encoding::BASE64;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams},
    runtime::{
        WatchStreamExt as _,
        watcher::{self, Event},
    },
};
use serde_json::{Value, json};
use tokio::{
    sync::{oneshot, watch},
    task::JoinHandle,
};

use crate::{
    fail,
    objects::{NAMESPACE, Objects},
    tree::{blueprint, executions, installation},
};

/// The labels and annotations of the deployer begin so.
const GROUP: &str = "container.deployer.landscaper.gardener.cloud";

/// Bytes of the state that a program leaves: more than is looked for of Secrets in what a namespace is told.
pub const STATE_BYTES: usize = 300 << 10;

/// Writes a configuration of the deployer into a folder, and answers the argument that names it.
pub fn configured_in(folder: &Path) -> String {
    let own = json!({"image": "local/orangery:1"});
    let configuration = json!({
        "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "Configuration", "initContainer": own, "waitContainer": own,
        "stateSecrets": 1,
    });
    let file = folder.join("containers.yaml");
    fs::write(&file, configuration.to_string()).expect("the file can be written");
    format!("--container-deployer={}", file.display())
}

/// An Installation of one item that runs a program and has no target; it has so much time, and these fields in its configuration.
pub fn runs_a_program(name: &str, timeout: &str, fields: &Value) -> Value {
    let mut config = json!({
        "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "ProviderConfiguration", "image": "ghcr.io/acme/task:1",
        "importValues": {"size": 3},
    });
    if let (Some(config), Some(fields)) = (config.as_object_mut(), fields.as_object()) {
        config.extend(fields.clone());
    }
    let item =
        json!({"name": "task", "type": "landscaper.gardener.cloud/container", "timeout": timeout, "config": config});
    installation(name, &blueprint(json!({"deployExecutions": executions(&[item])})))
}

/// All objects that container items have made in a namespace and that are there: kind and name of each.
pub async fn left_of_items(objects: &Objects, namespace: &str) -> Vec<String> {
    let mut left = Vec::new();
    let kinds = [
        ("v1", "Pod"),
        ("v1", "Secret"),
        ("v1", "ServiceAccount"),
        ("rbac.authorization.k8s.io/v1", "Role"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ];
    for (version, kind) in kinds {
        let of_kind = json!({"apiVersion": version, "kind": kind, "metadata": {"namespace": namespace}});
        for object in objects.list(&of_kind).await {
            let labels = object.pointer("/metadata/labels");
            if labels.is_some_and(|labels| labels.get(format!("deployitem.{GROUP}/name")).is_some()) {
                let name = object.pointer("/metadata/name").and_then(Value::as_str);
                left.extend(name.map(|name| format!("{kind} {name}")));
            }
        }
    }
    left
}

/// What was seen of pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenPods {
    /// Operation and job of each that was made, in order.
    pub made: Vec<(String, String)>,
    /// The names of two of one item that were there at once.
    pub at_once: Vec<[String; 2]>,
    /// Item and name of those that are there, by uid.
    there: BTreeMap<String, (String, String)>,
}

impl SeenPods {
    fn came(&mut self, pod: &Pod) {
        let uid = pod.uid().unwrap_or_default();
        if self.there.contains_key(&uid) {
            return;
        }
        let item = pod.labels().get(&format!("deployitem.{GROUP}/name")).cloned().unwrap_or_default();
        let job = pod.annotations().get("orangery.dev/job").cloned().unwrap_or_default();
        let others =
            self.there.values().filter(|(of, _)| *of == item).map(|(_, other)| [other.clone(), pod.name_any()]);
        self.at_once.extend(others.collect::<Vec<_>>());
        self.made.push((variable(pod, "main", "OPERATION"), job));
        self.there.insert(uid, (item, pod.name_any()));
    }
}

/// Works until it is dropped.
pub struct Pods {
    seen: watch::Sender<SeenPods>,
    task: JoinHandle<()>,
}

impl Drop for Pods {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Pods {
    /// Takes up work in [`NAMESPACE`]; answers when the watch is up.
    pub async fn begin(client: &Client) -> Pods {
        let seen = watch::Sender::new(SeenPods::default());
        let (up, is_up) = oneshot::channel();
        let task = tokio::spawn(work(client.clone(), seen.clone(), up));
        is_up.await.expect("the watch begins");
        Pods { seen, task }
    }

    /// What was seen so far.
    pub fn seen(&self) -> SeenPods {
        self.seen.borrow().clone()
    }
}

async fn work(client: Client, seen: watch::Sender<SeenPods>, up: oneshot::Sender<()>) {
    let (pods, secrets) = (Api::namespaced(client.clone(), NAMESPACE), Api::namespaced(client, NAMESPACE));
    let mut up = Some(up);
    let mut events = watcher::watcher(pods.clone(), watcher::Config::default()).default_backoff().boxed();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(pod) | Event::InitApply(pod)) => {
                seen.send_modify(|seen| seen.came(&pod));
                if !has_ended(&pod) && pod.metadata.deletion_timestamp.is_none() {
                    end(&pods, &secrets, &pod).await;
                }
            }
            Ok(Event::Delete(pod)) => {
                seen.send_modify(|seen| drop(seen.there.remove(&pod.uid().unwrap_or_default())));
            }
            Ok(Event::InitDone) => drop(up.take().map(|up| up.send(()))),
            Ok(Event::Init) | Err(_) => {}
        }
    }
}

fn has_ended(pod: &Pod) -> bool {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Succeeded")
}

/// The program has left a state of one piece, and exports what it was run for.
async fn end(pods: &Api<Pod>, secrets: &Api<Secret>, pod: &Pod) {
    let uid = pod.uid().unwrap_or_default();
    let encoded = |value: Value| BASE64.encode(value.to_string().as_bytes());
    let state = json!({
        "metadata": {"annotations": {
            format!("{GROUP}/uuid"): uid, format!("{GROUP}/num"): "0",
            "orangery.dev/state-stored-at": pod.resource_version(), "orangery.dev/state-pieces": "1",
        }},
        "data": {"config": BASE64.encode(&[0x1f, 0x8b, 0x08, 0xff].repeat(STATE_BYTES / 4))},
    });
    let exports = json!({"operation": variable(pod, "main", "OPERATION")});
    let result = json!({"data": {"result": encoded(json!({"statePieces": 1})), "config": encoded(exports)}});
    let states = variable(pod, "wait", "ORANGERY_STATE_SECRETS");
    let first = states.split(',').next().unwrap_or_default();
    for (name, content) in [(first, state), (variable(pod, "wait", "ORANGERY_RESULT_SECRET").as_str(), result)] {
        is_taken(secrets.patch(name, &PatchParams::default(), &Patch::Merge(content)).await);
    }
    let ended = |name: &str| {
        json!({"name": name, "image": name, "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}})
    };
    let status = json!({
        "phase": "Succeeded", "initContainerStatuses": [ended("init")],
        "containerStatuses": [ended("main"), ended("wait")],
    });
    let patch = Patch::Merge(json!({"metadata": {"uid": uid}, "status": status}));
    is_taken(pods.patch_status(&pod.name_any(), &PatchParams::default(), &patch).await);
}

/// A write is done, unless its object is gone.
fn is_taken<T>(written: kube::Result<T>) {
    match written {
        Err(kube::Error::Api(refusal)) if matches!(refusal.code, 404 | 409) => {}
        Err(error) => fail(&format!("what is said of a pod is refused: {error}")),
        Ok(_) => {}
    }
}

/// What a container has in its environment.
fn variable(pod: &Pod, container: &str, name: &str) -> String {
    let containers = pod.spec.as_ref().map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let of_container = containers.iter().find(|of| of.name == container);
    let mut variables = of_container.and_then(|of| of.env.as_ref()).into_iter().flatten();
    variables.find(|variable| variable.name == name).and_then(|variable| variable.value.clone()).unwrap_or_default()
}
