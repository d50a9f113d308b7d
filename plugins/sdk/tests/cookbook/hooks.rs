//! Hooks: Jobs before and after what is deployed, and one before it is deleted.

use orangery_sdk::{
    Completion, Deployer, DeployerWithUninstall, Fault, Gate, Host, Item, ObjectKey, ObjectWrite, Ownership, Problem,
    Proposal, Stage,
};
use serde_json::{Value, json};

pub struct Hooked;

impl Deployer for Hooked {
    fn plan(item: Item, _host: &impl Host) -> Result<Proposal, Fault> {
        let settings = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": item.name, "namespace": "default"},
            "data": {"mode": "on"},
        });
        let stages =
            vec![hook(&item, "before"), Stage::new("settings", vec![ObjectWrite::apply(&settings)], Gate::Accepted)];
        // These are carried out after the exports are collected; a failure fails the item.
        Ok(Proposal::finish(stages, Completion { exports: vec![], afterwards: vec![hook(&item, "after")] }))
    }
}

impl DeployerWithUninstall for Hooked {
    fn uninstall(item: Item, _host: &impl Host) -> Result<Proposal, Fault> {
        // Then the host deletes the inventory.
        Ok(Proposal::finish(vec![hook(&item, "farewell")], Completion::default()))
    }

    fn schema() -> Value {
        json!({"type": "object", "additionalProperties": false})
    }

    fn check(config: &Value) -> Vec<Problem> {
        match config.as_object() {
            Some(_) => vec![],
            None => vec![Problem::configuration("", "the configuration is no object; write {}")],
        }
    }
}

/// A stage with a Job of this job's own, which has to end well.
fn hook(item: &Item, name: &str) -> Stage {
    let short = item.job.get(..8).unwrap_or(&item.job);
    let job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": format!("{}-{name}-{short}", item.name), "namespace": "default"},
        "spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [
            {"name": "hook", "image": "registry.example/hook:1", "args": [name]},
        ]}}},
    });
    let write = ObjectWrite { owned: Ownership::Ephemeral, ..ObjectWrite::apply(&job) };
    Stage::new(name, vec![write], Gate::Completed(ObjectKey::of(&job).into_iter().collect()))
}
