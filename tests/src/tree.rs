//! Small trees for tests that look at one rule: blueprints written down as JSON, items of a deployer that the test plays.

use serde_json::{Value, json};

use crate::{
    external_deployer,
    objects::{NAMESPACE, Objects},
};

/// The version of our kinds.
pub const API: &str = "landscaper.gardener.cloud/v1alpha1";

/// The object of this kind and name.
pub fn any(kind: &str, name: &str) -> Value {
    json!({"apiVersion": API, "kind": kind, "metadata": {"name": name}})
}

/// The object of this kind and name in this phase.
pub fn in_phase(kind: &str, name: &str, phase: &str) -> Value {
    json!({"apiVersion": API, "kind": kind, "metadata": {"name": name}, "status": {"phase": phase}})
}

/// The annotation by which a job is asked for.
pub fn asks() -> Value {
    json!({"landscaper.gardener.cloud/operation": "reconcile"})
}

/// Asks for another job of an Installation.
pub async fn ask(objects: &Objects, name: &str) {
    objects.annotate(&any("Installation", name), asks()).await;
}

/// Applies the Installation `root` anew, and waits until its next job has succeeded.
pub async fn next_job(objects: &Objects, root: &Value) {
    let field = |object: &Value, name: &str| object.pointer(&format!("/status/{name}")).cloned();
    let job = field(&objects.expect(&any("Installation", "root")).await, "jobID");
    objects.apply(root).await;
    ask(objects, "root").await;
    let is_done = |object: &Value| {
        let (now, finished) = (field(object, "jobID"), field(object, "jobIDFinished"));
        object.pointer("/metadata/name") == Some(&json!("root")) && now != job && finished == now
    };
    let done = objects.expect_that(&any("Installation", "root"), "did not end another job", is_done).await;
    assert_eq!(field(&done, "phase"), Some(json!("Succeeded")), "{done:#}");
}

/// A blueprint with these fields.
pub fn blueprint(fields: Value) -> Value {
    let mut blueprint = json!({"apiVersion": API, "kind": "Blueprint"});
    if let (Some(blueprint), Some(fields)) = (blueprint.as_object_mut(), fields.as_object()) {
        blueprint.extend(fields.clone());
    }
    blueprint
}

/// `deployExecutions` of items for an [external deployer](external_deployer), each with what it depends on; `content` goes into
/// all of them.
pub fn items(items: &[(&str, &[&str])], content: &str) -> Value {
    let items: Vec<Value> = items
        .iter()
        .map(|(name, after)| json!({"name": name, "type": external_deployer::TYPE, "dependsOn": after, "config": config(content)}))
        .collect();
    executions(&items)
}

/// The configuration of an item.
pub fn config(content: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Anything", "content": content})
}

/// An Installation of a blueprint written into it. It asks for a job.
pub fn installation(name: &str, blueprint: &Value) -> Value {
    json!({
        "apiVersion": API,
        "kind": "Installation",
        "metadata": {"name": name, "annotations": asks()},
        "spec": {"blueprint": inline(blueprint)},
    })
}

/// A blueprint as an Installation or a template has it.
pub fn inline(blueprint: &Value) -> Value {
    json!({"inline": {"filesystem": {"blueprint.yaml": blueprint.to_string()}}})
}

/// A sub-installation of a blueprint.
pub fn subinstallation(name: &str, blueprint: &Value) -> Value {
    json!({
        "apiVersion": API,
        "kind": "InstallationTemplate",
        "name": name,
        "blueprint": {"filesystem": {"blueprint.yaml": blueprint.to_string()}},
    })
}

/// Waits until a job of the Installation `tree` other than this one has ended, and answers the Installation.
pub async fn another_job_ended(objects: &Objects, before: &str) -> Value {
    let is = |object: &Value| {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str);
        text("/metadata/name") == Some("tree")
            && text("/status/jobID").is_some_and(|job| job != before)
            && text("/status/jobID") == text("/status/jobIDFinished")
            && text("/metadata/annotations/landscaper.gardener.cloud~1operation").is_none()
    };
    objects.expect_that(&any("Installation", "tree"), "did not end another job", is).await
}

/// What a busy operator would still have done is done when another tree has come and gone.
pub async fn wait_until_idle(objects: &Objects) {
    objects.apply(&installation("other", &blueprint(json!({})))).await;
    objects.expect(&in_phase("Installation", "other", "Succeeded")).await;
    objects.delete(&any("Installation", "other")).await;
    objects.expect_absent(&any("Installation", "other")).await;
}

/// An item that deploys one ConfigMap of its own name, which says `content`.
pub fn deploys(name: &str, after: &[&str], content: &str) -> Value {
    let metadata = json!({"name": name, "namespace": NAMESPACE});
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"content": content}});
    let config = json!({
        "apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2",
        "kind": "ProviderConfiguration",
        "manifests": [{"policy": "manage", "manifest": manifest}],
    });
    json!({
        "name": name,
        "type": "landscaper.gardener.cloud/kubernetes-manifest",
        "target": {"import": "cluster"},
        "dependsOn": after,
        "config": config,
    })
}

/// An item whose ConfigMap has to say that it is ready.
pub fn becomes_ready(name: &str, after: &[&str]) -> Value {
    let mut item = deploys(name, after, "1");
    let selector = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "namespace": NAMESPACE});
    let requirement = json!({"jsonPath": ".data.ready", "operator": "==", "values": [{"value": "yes"}]});
    let check = json!({"name": "says-so", "resourceSelector": selector, "requirements": [requirement]});
    if let Some(config) = item.get_mut("config").and_then(Value::as_object_mut) {
        config.insert("readinessChecks".to_owned(), json!({"custom": [check]}));
    }
    item
}

/// An item that deploys nothing: `phase` is how it ends, and then it exports `content`.
pub fn mocks(name: &str, after: &[&str], phase: &str, content: &str) -> Value {
    let config = json!({
        "apiVersion": "mock.deployer.landscaper.gardener.cloud/v1alpha1",
        "kind": "ProviderConfiguration",
        "phase": phase,
        "export": {"content": content},
    });
    json!({"name": name, "type": "landscaper.gardener.cloud/mock", "dependsOn": after, "config": config})
}

/// The imports of a blueprint that deploys to the Target `cluster`.
pub fn imports_cluster() -> Value {
    json!([{"name": "cluster", "type": "target", "targetType": "landscaper.gardener.cloud/kubernetes-cluster"}])
}

/// `deployExecutions` of these items.
pub fn executions(items: &[Value]) -> Value {
    json!([{"name": "d", "type": "Jinja", "template": json!({"deployItems": items}).to_string()}])
}

/// An Installation or a template of one, with the Target `cluster` as its import.
pub fn on_cluster(mut installation: Value) -> Value {
    let imports = json!({"targets": [{"name": "cluster", "target": "cluster"}]});
    let inside =
        if installation.get("spec").is_some() { installation.get_mut("spec") } else { Some(&mut installation) };
    if let Some(fields) = inside.and_then(Value::as_object_mut) {
        fields.insert("imports".to_owned(), imports);
    }
    installation
}
