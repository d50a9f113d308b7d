//! A Job has to end well before the Deployment changes.

use orangery_sdk::{
    Completion, Deployer, Fault, Gate, Host, Item, ObjectKey, ObjectWrite, Ownership, Proposal, Stage, lenient::Place,
};
use serde_json::{Value, json};

pub struct Migrated;

impl Deployer for Migrated {
    fn plan(item: Item, _host: &impl Host) -> Result<Proposal, Fault> {
        let config = item.config()?;
        let image = Place::root(&config).required("image")?.text()?;
        // A Job cannot be changed, so each job of the item has one of its own.
        let short = item.job.get(..8).unwrap_or(&item.job);
        let migration = json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": format!("{}-{short}", item.name), "namespace": "default"},
            "spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [
                {"name": "migrate", "image": image, "args": ["migrate"]},
            ]}}},
        });
        // It goes when the job of the item ends, well or not.
        let write = ObjectWrite { owned: Ownership::Ephemeral, ..ObjectWrite::apply(&migration) };
        let completed = Gate::Completed(ObjectKey::of(&migration).into_iter().collect());
        let stages = vec![
            Stage::new("migration", vec![write], completed),
            Stage::new("application", vec![ObjectWrite::apply(&deployment(&item.name, image))], Gate::Accepted),
        ];
        Ok(Proposal::finish(stages, Completion::default()))
    }
}

fn deployment(name: &str, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "app", "image": image}]},
            },
        },
    })
}

orangery_sdk::export_deployer!(Migrated);
