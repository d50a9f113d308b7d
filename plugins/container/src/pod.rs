//! The pod of a run (contract A: what the image of a user may rely on).

use serde_json::{Map, Value, json};

use crate::{configuration::OwnContainer, names::item_generation, objects::Run};

/// The folder that all containers share.
const SHARED: &str = "/data/ls/shared";

/// Where `init` finds what it writes for the program, with the pieces of the state.
const INTERNAL: &str = "/data/ls/internal";

/// Where `init` finds the document of the target.
const TARGETS: &str = "/data/ls/targets";

/// Where clients of the cluster look for their credentials.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Seconds for which a token of `wait` is good; the kubelet renews it before.
const TOKEN_SECONDS: u64 = 600;

/// Seconds that the program has to end in when its pod is deleted.
const GRACE_SECONDS: u64 = 300;

/// The annotation with the job that a pod is for.
const JOB: &str = "orangery.dev/job";

/// What a pod is made of beside its run.
pub(crate) struct Program<'a> {
    pub(crate) image: &'a str,
    pub(crate) command: &'a [String],
    pub(crate) args: &'a [String],
    /// How many parts of what `init` writes there are.
    pub(crate) parts: usize,
    /// The Secrets with the pieces of the state, in order.
    pub(crate) states: &'a [String],
    /// Names of Secrets with credentials for images.
    pub(crate) pull_secrets: &'a [String],
}

/// The pod of a run.
pub(crate) fn pod(run: &Run<'_>, program: &Program<'_>) -> Value {
    let mut metadata = run.metadata(&run.name, None);
    if let Some(Value::Object(labels)) = metadata.get_mut("labels") {
        labels.insert(item_generation(), json!(run.item.generation.to_string()));
    }
    metadata.insert("annotations".to_owned(), json!({JOB: run.item.job}));
    let mut spec = json!({
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "serviceAccountName": run.name,
        "automountServiceAccountToken": false,
        "securityContext": {
            "runAsUser": 1000, "runAsGroup": 3000, "fsGroup": 2000, "runAsNonRoot": true,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "initContainers": [init(run)],
        "containers": [main(run, program), wait(run)],
        "volumes": volumes(run, program),
    });
    if let Some(spec) = spec.as_object_mut() {
        if !program.pull_secrets.is_empty() {
            let named: Vec<Value> = program.pull_secrets.iter().map(|name| json!({"name": name})).collect();
            spec.insert("imagePullSecrets".to_owned(), Value::Array(named));
        }
        // The host ends the pod with its job; the kubelet does where there is no host.
        if let Some(seconds) = deadline(run.item.timeout) {
            spec.insert("activeDeadlineSeconds".to_owned(), json!(seconds));
        }
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

/// The most that Kubernetes takes.
const MOST_SECONDS: u64 = 2_147_483_647;

fn deadline(milliseconds: u64) -> Option<u64> {
    let seconds = milliseconds.div_ceil(1000).max(1);
    (milliseconds < u64::MAX && seconds <= MOST_SECONDS).then_some(seconds)
}

fn init(run: &Run<'_>) -> Value {
    let environment = [
        ("CONFIGURATION_PATH", format!("{INTERNAL}/configuration.json")),
        ("DEPLOY_ITEM_NAME", run.item.name.clone()),
        ("DEPLOY_ITEM_NAMESPACE", run.item.namespace.clone()),
        ("ORANGERY_INPUTS_DIR", format!("{INTERNAL}/inputs")),
        ("ORANGERY_STATES_DIR", format!("{INTERNAL}/states")),
        ("ORANGERY_TARGET_FILE", format!("{TARGETS}/target.json")),
    ];
    let mounts = json!([
        {"name": "configuration", "mountPath": INTERNAL, "readOnly": true},
        {"name": "target", "mountPath": TARGETS, "readOnly": true},
        {"name": "shared-volume", "mountPath": SHARED},
    ]);
    side_container("init", &run.deployer.init, environment.into(), mounts)
}

fn wait(run: &Run<'_>) -> Value {
    let environment = [
        ("DEPLOY_ITEM_NAME", run.item.name.clone()),
        ("DEPLOY_ITEM_NAMESPACE", run.item.namespace.clone()),
        ("ORANGERY_RESULT_SECRET", run.result()),
        ("ORANGERY_STATE_SECRETS", run.states().join(",")),
    ];
    let mounts = json!([
        {"name": "serviceaccount-wait", "mountPath": ACCOUNT, "readOnly": true},
        {"name": "shared-volume", "mountPath": SHARED},
    ]);
    side_container("wait", &run.deployer.wait, environment.into(), mounts)
}

fn main(run: &Run<'_>, program: &Program<'_>) -> Value {
    let mounts = json!([{"name": "shared-volume", "mountPath": SHARED}]);
    let mut main =
        container("main", program.image, "IfNotPresent", vec![("OPERATION", run.operation.to_owned())], mounts);
    put(&mut main, "command", program.command);
    put(&mut main, "args", program.args);
    Value::Object(main)
}

fn side_container(name: &str, of: &OwnContainer, environment: Vec<(&str, String)>, mounts: Value) -> Value {
    let mut container = container(name, &of.image, &of.pull_policy, environment, mounts);
    put(&mut container, "command", &of.command);
    put(&mut container, "args", &of.args);
    Value::Object(container)
}

fn put(container: &mut Map<String, Value>, field: &str, texts: &[String]) {
    if !texts.is_empty() {
        container.insert(field.to_owned(), json!(texts));
    }
}

fn container(
    name: &str,
    image: &str,
    pull_policy: &str,
    environment: Vec<(&str, String)>,
    mounts: Value,
) -> Map<String, Value> {
    let paths = [
        ("IMPORTS_PATH", "imports/import.json"),
        ("EXPORTS_PATH", "exports/values"),
        ("COMPONENT_DESCRIPTOR_PATH", "component_descriptor.json"),
        ("TARGET_PATH", "targets/target.json"),
        ("CONTENT_PATH", "content"),
        ("STATE_PATH", "state"),
    ];
    let mut variables: Vec<Value> =
        paths.iter().map(|(name, path)| json!({"name": name, "value": format!("{SHARED}/{path}")})).collect();
    for (name, field) in [("POD_NAME", "metadata.name"), ("POD_NAMESPACE", "metadata.namespace")] {
        variables.push(json!({"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": field}}}));
    }
    variables.extend(environment.into_iter().map(|(name, value)| json!({"name": name, "value": value})));
    let container = json!({
        "name": name,
        "image": image,
        "imagePullPolicy": pull_policy,
        "env": variables,
        "volumeMounts": mounts,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
    });
    match container {
        Value::Object(container) => container,
        _ => Map::new(),
    }
}

fn volumes(run: &Run<'_>, program: &Program<'_>) -> Value {
    let file = |secret: String, key: &str, path: String| json!({"secret": {"name": secret, "items": [{"key": key, "path": path}]}});
    // The names say the order.
    let parts = (0..program.parts).map(|number| file(run.part(number), "part", format!("inputs/{number:05}")));
    let states = program.states.iter().enumerate();
    let states = states.map(|(number, name)| file(name.clone(), "config", format!("states/{number:05}")));
    let sources: Vec<Value> = parts.chain(states).collect();
    let account = json!([
        {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_SECONDS}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
    ]);
    json!([
        {"name": "shared-volume", "emptyDir": {}},
        {"name": "configuration", "projected": {"defaultMode": 0o440, "sources": sources}},
        {"name": "target", "secret": {"secretName": run.target(), "defaultMode": 0o440}},
        {"name": "serviceaccount-wait", "projected": {"defaultMode": 0o440, "sources": account}},
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn con_06_a_pod_ends_with_the_time_of_its_item() {
        assert_eq!([deadline(600_000), deadline(1), deadline(0)], [Some(600), Some(1), Some(1)]);
        assert_eq!([deadline(u64::MAX), deadline(u64::MAX - 1)], [None, None]);
    }
}
