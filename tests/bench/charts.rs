//! Many Helm releases at once: deploy items of one chart, whose workloads are simulated.

use std::time::Instant;

use kube::{
    Api,
    api::{DynamicObject, PostParams},
};
use orangery_tests::{
    chart::{TYPE, packed},
    cluster::Cluster,
    objects::NAMESPACE,
    tree::{API, asks, blueprint, inline},
};
use serde_json::{Value, json};

use crate::{
    figures::{Figures, display},
    load::{Installations, resource},
    place::{self, CpuTime},
};

/// How many releases there are.
pub(crate) const SIZE: usize = 100;

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}, labels: {app: {{ .Release.Name }}, chart: {{ .Chart.Name }}}}
spec:
  replicas: 2
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec: {containers: [{name: app, image: example.org/app, ports: [{name: http, containerPort: 80}]}]}
";

const SERVICE: &str = "\
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec: {selector: {app: {{ .Release.Name }}}, ports: [{port: 80, targetPort: http}]}
";

/// The Installation `charts`, each of whose items is a release of one chart, and which waits for all Deployments.
pub(crate) fn installation() -> Value {
    let chart = packed("1.0.0", &[("deployment.yaml", DEPLOYMENT), ("service.yaml", SERVICE)]);
    let config = json!({
        "apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration",
        "name": "app-{{ number }}", "namespace": NAMESPACE, "chart": {"archive": {"raw": chart}},
        "helmDeploymentConfig": {"install": {"wait": true}},
    });
    let item = json!({"name": "app-{{ number }}", "type": TYPE, "target": {"import": "cluster"}, "config": config});
    let template = format!("deployItems:\n{{% for number in range({SIZE}) %}}\n- {item}\n{{% endfor %}}\n");
    let blueprint = blueprint(json!({
        "imports": [{"name": "cluster", "type": "target", "targetType": "landscaper.gardener.cloud/kubernetes-cluster"}],
        "deployExecutions": [{"name": "default", "type": "Jinja", "template": template}],
    }));
    let imports = json!({"targets": [{"name": "cluster", "target": "cluster"}]});
    json!({
        "apiVersion": API, "kind": "Installation", "metadata": {"name": "charts", "annotations": asks()},
        "spec": {"imports": imports, "blueprint": inline(&blueprint)},
    })
}

/// From the Installation to its success.
pub(crate) async fn releases(figures: &mut Figures) {
    let object: DynamicObject = serde_json::from_value(installation()).expect("an installation is an object");
    let cluster = Cluster::start(&crate::binary(), &["--data", "state", "--simulate-workloads"]).await;
    let mut seen = Installations::watch(cluster.client()).await;
    let api = Api::namespaced_with(cluster.client().clone(), NAMESPACE, &resource("Installation"));
    let (begin, before) = (Instant::now(), CpuTime::used(&cluster));
    api.create(&PostParams::default(), &object).await.expect("an installation can be created");
    seen.until_succeeded("charts").await;
    let (took, cpu) = (begin.elapsed(), CpuTime::used(&cluster).since(before));
    let peak = place::peak(&cluster);
    figures
        .add(&format!("{SIZE} Helm releases of one chart, workloads simulated"), &format!("{}, {cpu}", display(took)));
    figures.add(&format!("{SIZE} Helm releases of one chart: peak resident memory"), &peak);
}
