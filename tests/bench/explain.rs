//! `orangery explain` of an object of a chart with many.

use std::{fmt::Write as _, fs, time::Instant};

use orangery_tests::{
    binary::Binary,
    chart::{TYPE, packed},
    cluster::Cluster,
    objects::NAMESPACE,
    tree::{API, blueprint, executions, imports_cluster, in_phase, installation, on_cluster},
};
use serde_json::{Value, json};

use crate::figures::{Figures, Samples};

/// Objects of the chart.
const OBJECTS: usize = 100;
/// Objects that are explained.
const EXPLAINED: usize = 20;

/// The Installation `root` with a release of a chart of so many ConfigMaps, each of two values of its own and one of all.
fn root() -> Value {
    let mut template = String::new();
    for number in 0..OBJECTS {
        write!(
            template,
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: map-{number}}}\ndata:\n  host: {{{{ .Values.m{number}.host }}}}\n  \
             {{{{- if .Values.m{number}.on }}}}\n  all: {{{{ .Values.all }}}}\n  {{{{- end }}}}\n"
        )
        .expect("a text takes all");
    }
    let config = json!({
        "apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration",
        "name": "rel", "namespace": NAMESPACE, "chart": {"archive": {"raw": packed("1.0.0", &[("maps.yaml", &template)])}},
        "values": "VALUES",
    });
    let item = json!({"name": "chart", "type": TYPE, "target": {"import": "cluster"}, "config": config});
    let mut deploys = executions(&[item]);
    if let Some(text) = deploys.pointer_mut("/0/template") {
        let filled = text.as_str().unwrap_or_default().replace("\"VALUES\"", "{{ imports.values | tojson }}");
        *text = json!(filled);
    }
    let mut imports = imports_cluster();
    imports
        .as_array_mut()
        .expect("a list")
        .push(json!({"name": "values", "type": "data", "schema": {"type": "object"}}));
    let mut root =
        on_cluster(installation("root", &blueprint(json!({"imports": imports, "deployExecutions": deploys}))));
    if let Some(imports) = root.pointer_mut("/spec/imports").and_then(Value::as_object_mut) {
        imports.insert("data".to_owned(), json!([{"name": "values", "dataRef": "values"}]));
    }
    root
}

fn values() -> Value {
    let mut values = json!({"all": "text-of-all"});
    if let Some(fields) = values.as_object_mut() {
        fields.extend(
            (0..OBJECTS).map(|number| (format!("m{number}"), json!({"host": format!("host-{number}"), "on": true}))),
        );
    }
    json!({"apiVersion": API, "kind": "DataObject", "metadata": {"name": "values"}, "data": values})
}

/// From the command to its end, of a whole object and of one field.
pub(crate) async fn measure(figures: &mut Figures) {
    let binary = crate::binary();
    let cluster = Cluster::start(&binary, &["--ephemeral"]).await;
    fs::write(binary.folder().join("kubeconfig"), cluster.kubeconfig()).expect("the folder takes a file");
    cluster.apply(&values()).await;
    cluster.apply(&root()).await;
    cluster.expect(&in_phase("Installation", "root", "Succeeded")).await;
    let title = format!("explain, of a chart of {OBJECTS} objects and {} values", 2 * OBJECTS + 1);
    let whole = explained(&binary, &[]).await;
    figures.add(&format!("{title}: an object"), &whole.text());
    let field = explained(&binary, &["data.host"]).await;
    figures.add(&format!("{title}: a field"), &field.text());
    cluster.kill().await;
}

async fn explained(binary: &Binary, field: &[&str]) -> Samples {
    let mut samples = Vec::new();
    for number in 0..EXPLAINED {
        let object = format!("configmap/map-{}", number * OBJECTS / EXPLAINED);
        let begin = Instant::now();
        let line = ["explain", "--kubeconfig", "kubeconfig", &object];
        let ended = binary.run(&[&line[..], field].concat()).await;
        samples.push(begin.elapsed());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
    Samples::new(samples)
}
