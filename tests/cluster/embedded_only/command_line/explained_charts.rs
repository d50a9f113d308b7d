//! `orangery explain` over forty charts (C-243): each value is a marker of its own. A field depends on the values whose markers stand
//! in it, and on those that a case names beside, which only decide or are made into something else.

mod cases;

use std::{collections::BTreeSet, env};

use futures::{StreamExt as _, stream};
use orangery_tests::{
    binary::Ended,
    chart,
    cluster::Cluster,
    tree::{blueprint, imports_cluster, in_phase, installation, on_cluster},
};
use serde_json::{Value, json};

use self::cases::{ChartCase, cases};
use super::{
    offline::{document, write},
    plans::Stage,
};

/// By day one of so many is explained.
const EACH: usize = 9;

/// How many are explained at once.
const AT_ONCE: usize = 2;

impl ChartCase {
    /// The Installation of the case, and the DataObject that it imports.
    fn objects(&self, name: &str) -> [Value; 2] {
        let item = json!({
            "name": "chart", "type": chart::TYPE, "target": {"import": "cluster"},
            "config": {
                "apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration",
                "name": name, "namespace": "default", "chart": {"archive": {"raw": self.packed()}}, "values": "VALUES",
            },
        });
        let mut imports = imports_cluster();
        imports.as_array_mut().unwrap().push(json!({"name": "values", "type": "data", "schema": {"type": "object"}}));
        let template =
            json!({"deployItems": [item]}).to_string().replace("\"VALUES\"", "{{ imports.values | tojson }}");
        let fields =
            json!({"imports": imports, "deployExecutions": [{"name": "d", "type": "Jinja", "template": template}]});
        let mut root = on_cluster(installation(name, &blueprint(fields)));
        root["spec"]["imports"]["data"] = json!([{"name": "values", "dataRef": name}]);
        let data = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DataObject", "metadata": {"name": name},
            "data": self.values});
        [data, root]
    }

    /// What is wrong with an explanation of the release `name`.
    fn problems(&self, name: &str, ended: &Ended) -> Vec<String> {
        let explanation = document(ended);
        let mut leaves = Vec::new();
        collect(&self.values, String::new(), &mut leaves);
        let mut problems = Vec::new();
        let mut hidden: BTreeSet<&str> = self.hidden.iter().map(|(path, _)| *path).collect();
        for field in explanation["fields"].as_array().expect("it has fields") {
            let path = field["path"].as_str().unwrap_or_default();
            hidden.remove(path);
            let shown = match &field["value"] {
                Value::String(text) => text.to_lowercase(),
                other => other.to_string(),
            };
            let is_in = |(_, marker): &&(String, String)| shown.contains(marker.as_str());
            let seen = leaves.iter().filter(is_in).map(|(leaf, _)| leaf.clone());
            let beside = self.hidden.iter().filter(|(of, _)| *of == path).flat_map(|(_, leaves)| *leaves);
            let expected: BTreeSet<String> = seen.chain(beside.map(|leaf| (*leaf).to_owned())).collect();
            let inputs = field["inputs"].as_array().expect("a list").iter();
            let found: BTreeSet<String> =
                inputs.map(|input| input["path"].as_str().unwrap_or_default().to_owned()).collect();
            if found != expected {
                problems.push(format!("{} ({name}), {path}: {found:?}, and not {expected:?}", self.name));
            }
        }
        problems.extend(hidden.into_iter().map(|path| format!("{} ({name}): there is no field {path}", self.name)));
        problems
    }
}

/// The leaves of values that are markers, by their paths.
fn collect(value: &Value, path: String, leaves: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                collect(value, path, leaves);
            }
        }
        Value::Array(elements) => {
            for (place, value) in elements.iter().enumerate() {
                collect(value, format!("{path}[{place}]"), leaves);
            }
        }
        Value::String(text) if text.starts_with("marker") => leaves.push((path, text.clone())),
        Value::Number(number) if number.as_u64().is_some_and(|number| number > 1_000) => {
            leaves.push((path, number.to_string()));
        }
        _ => {}
    }
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_243_over_forty_charts_each_field_names_the_values_whose_markers_are_in_it_and_no_other() {
    let all = cases();
    let charts: BTreeSet<&str> = all.iter().map(|case| case.name).collect();
    assert!(charts.len() >= 40, "{}", charts.len());
    let at_night = env::var("POINTS").is_ok_and(|points| points == "all");
    let numbered = all.iter().enumerate().filter(|(number, _)| at_night || number % EACH == 0);
    let cases: Vec<(String, &ChartCase)> = numbered.map(|(number, case)| (format!("rel-{number}"), case)).collect();
    let binary = crate::binary().await;
    let cluster = Cluster::start(&binary, &["--ephemeral", "--simulate-workloads"]).await;
    let stage = Stage { binary, cluster };
    write(&stage.binary, "kubeconfig", stage.cluster.kubeconfig());
    for (name, case) in &cases {
        for object in case.objects(name) {
            stage.cluster.apply(&object).await;
        }
    }
    for (name, _) in &cases {
        stage.cluster.expect(&in_phase("Installation", name, "Succeeded")).await;
    }
    let explained = stream::iter(&cases).map(async |(name, case)| {
        let object = case.object.replace("REL", name);
        let line = ["explain", "--kubeconfig", "kubeconfig", "-o", "json", &object];
        case.problems(name, &stage.binary.run(&line).await)
    });
    let problems: Vec<String> = explained.buffered(AT_ONCE).concat().await;
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
