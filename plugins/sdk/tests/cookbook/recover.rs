//! A canary that does not become ready is taken away again before the item fails.

use orangery_sdk::{
    ClusterRef, Completion, Deployer, Fault, Gate, Host, Item, Next, ObjectKey, ObjectRemoval, ObjectWrite, Proposal,
    Readiness, ReadinessRule, Scope, Stage,
};
use serde_json::json;

pub struct Canary;

impl Deployer for Canary {
    fn plan(item: Item, _host: &impl Host) -> Result<Proposal, Fault> {
        let canary = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": format!("{}-canary", item.name), "namespace": "default"},
            "spec": {"containers": [{"name": "app", "image": "registry.example/app:2"}]},
        });
        let key = ObjectKey::of(&canary);
        // The host calls once more where a stage has failed, with what failed and with the checkpoint of `recover`.
        if let (Some(failure), Some(key)) = (item.failed, key) {
            let removal = ObjectRemoval { key, on: ClusterRef::Target, force: false };
            let stage = Stage { removals: vec![removal], ..Stage::new("canary goes", vec![], Gate::Gone) };
            return Ok(Proposal::new(vec![stage], Next::Fail(failure.problem)));
        }
        let ready = Readiness {
            name: "canary".into(),
            on: ClusterRef::Target,
            scope: Scope::Stage,
            rule: ReadinessRule::Usual,
            timeout: Some(60_000),
        };
        let stage = Stage::new("canary", vec![ObjectWrite::apply(&canary)], Gate::Ready(vec![ready]));
        Ok(Proposal { recover: Some(b"canary".to_vec()), ..Proposal::finish(vec![stage], Completion::default()) })
    }
}

orangery_sdk::export_deployer!(Canary);
