//! A Secret is known by its name alone: where the name stands is read, and the cluster puts the content into the pod.

use orangery_sdk::{
    ClusterRef, Completion, Deployer, Fault, Gate, Host, Item, ObjectKey, ObjectWrite, Problem, Proposal, Stage,
    lenient::Place,
};
use serde_json::{Value, json};

pub struct Certified;

impl Deployer for Certified {
    fn plan(item: Item, host: &impl Host) -> Result<Proposal, Fault> {
        let config = item.config()?;
        let certificate = Place::root(&config).required("certificate")?.text()?;
        let key = ObjectKey {
            api_version: "cert-manager.io/v1".into(),
            kind: "Certificate".into(),
            namespace: Some("default".into()),
            name: certificate.into(),
        };
        let found = host.get(&ClusterRef::Target, &key)?;
        let name = found.as_ref().and_then(|found| found.pointer("/spec/secretName")).and_then(Value::as_str);
        // It may be made yet: the host asks again until the time of the item is up.
        let secret = name.ok_or_else(|| {
            Fault::Later(Problem {
                code: "ERR_UNFINISHED".into(),
                message: format!("Certificate default/{certificate} names no Secret yet; create it"),
                at: Some("/certificate".into()),
            })
        })?;
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": item.name, "namespace": "default"},
            "spec": {
                "containers": [{
                    "name": "proxy",
                    "image": "registry.example/proxy:1",
                    "volumeMounts": [{"name": "tls", "mountPath": "/tls", "readOnly": true}],
                }],
                "volumes": [{"name": "tls", "secret": {"secretName": secret}}],
            },
        });
        let stage = Stage::new("proxy", vec![ObjectWrite::apply(&pod)], Gate::Accepted);
        Ok(Proposal::finish(vec![stage], Completion::default()))
    }
}

orangery_sdk::export_deployer!(Certified);
