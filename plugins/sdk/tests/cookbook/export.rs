//! Exports: a value that the component knows, and one that the host reads when the Service is ready.

use orangery_sdk::{
    ClusterRef, Completion, Deployer, ExportRule, ExportSource, Fault, Gate, Host, Item, ObjectKey, ObjectWrite,
    PathSource, Proposal, Readiness, ReadinessRule, Scope, Stage,
};
use serde_json::json;

pub struct Served;

impl Deployer for Served {
    fn plan(item: Item, _host: &impl Host) -> Result<Proposal, Fault> {
        let service = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": item.name, "namespace": "default"},
            "spec": {"type": "LoadBalancer", "selector": {"app": item.name}, "ports": [{"port": 80}]},
        });
        let has_address = Readiness {
            name: "address".into(),
            on: ClusterRef::Target,
            scope: Scope::Stage,
            rule: ReadinessRule::Expression("size(object.status.loadBalancer.ingress) > 0".into()),
            timeout: Some(120_000),
        };
        let stage = Stage::new("service", vec![ObjectWrite::apply(&service)], Gate::Ready(vec![has_address]));
        let key = ObjectKey {
            api_version: "v1".into(),
            kind: "Service".into(),
            namespace: Some("default".into()),
            name: item.name,
        };
        let path = ".status.loadBalancer.ingress[0].ip".to_owned();
        let address = ExportSource::Path(PathSource { on: ClusterRef::Target, key, path, then: None });
        let exports = vec![
            ExportRule { key: "service.address".into(), source: address },
            ExportRule { key: "service.port".into(), source: ExportSource::Value(json!(80).to_string()) },
        ];
        Ok(Proposal::finish(vec![stage], Completion { exports, afterwards: vec![] }))
    }
}

orangery_sdk::export_deployer!(Served);
