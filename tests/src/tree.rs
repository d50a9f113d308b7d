//! Small trees for tests that look at one rule: blueprints written down as JSON, items of a deployer that the test plays.

use serde_json::{Value, json};

use crate::{objects::Objects, theirs};

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

/// A blueprint with these fields.
pub fn blueprint(fields: Value) -> Value {
    let mut blueprint = json!({"apiVersion": API, "kind": "Blueprint"});
    if let (Some(blueprint), Some(fields)) = (blueprint.as_object_mut(), fields.as_object()) {
        blueprint.extend(fields.clone());
    }
    blueprint
}

/// `deployExecutions` of items that are [`theirs`], with what each depends on; `content` goes into all of them.
pub fn items(items: &[(&str, &[&str])], content: &str) -> Value {
    let items: Vec<Value> = items
        .iter()
        .map(|(name, after)| json!({"name": name, "type": theirs::TYPE, "dependsOn": after, "config": config(content)}))
        .collect();
    json!([{"name": "d", "type": "Jinja", "template": json!({"deployItems": items}).to_string()}])
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

/// What a busy operator would still have done is done when another tree has come and gone.
pub async fn settle(objects: &Objects) {
    objects.apply(&installation("other", &blueprint(json!({})))).await;
    objects.expect(&in_phase("Installation", "other", "Succeeded")).await;
    objects.delete(&any("Installation", "other")).await;
    objects.expect_absent(&any("Installation", "other")).await;
}
