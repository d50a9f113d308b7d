//! `orangery render` makes what the operator makes, and says what it cannot know.

use std::fs;

use orangery_api::{annotation, execution::Execution};
use orangery_tests::{
    binary::{Binary, Ended},
    cluster::Cluster,
    repository,
};
use serde_json::{Map, Value, json};

const LANDSCAPER: &str = "landscaper.gardener.cloud/v1alpha1";

fn example(name: &str) -> String {
    repository().join("examples").join(name).to_string_lossy().into_owned()
}

fn write(binary: &Binary, name: &str, text: &str) {
    let path = binary.folder().join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be made");
    fs::write(path, text).expect("the file can be written");
}

/// The document that a command printed.
#[track_caller]
fn document(ended: &Ended) -> Value {
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    serde_json::from_str(&ended.stdout).expect("the output is JSON")
}

/// What a cluster has once everything in it is final.
struct Deployed {
    installations: Vec<Value>,
    executions: Vec<Value>,
    data_objects: Vec<Value>,
}

impl Deployed {
    async fn of(cluster: &Cluster) -> Self {
        let kind = |kind: &str| json!({"apiVersion": LANDSCAPER, "kind": kind, "metadata": {"namespace": "default"}});
        Self {
            installations: cluster.list(&kind("Installation")).await,
            executions: cluster.list(&kind("Execution")).await,
            data_objects: cluster.list(&kind("DataObject")).await,
        }
    }

    fn children(&self, parent: &str) -> Vec<(&str, &str)> {
        let owned = self.installations.iter().filter(|of| of["metadata"]["ownerReferences"][0]["name"] == parent);
        owned
            .map(|of| {
                let template = of["metadata"]["annotations"][annotation::SUBINSTALLATION_NAME].as_str();
                (template.expect("it names its template"), of["metadata"]["name"].as_str().expect("a name"))
            })
            .collect()
    }

    fn execution(&self, name: &str) -> Option<&Value> {
        self.executions.iter().find(|of| of["metadata"]["name"] == name)
    }

    /// The items of an Installation as its Execution has them, byte for byte.
    fn items(&self, name: &str) -> String {
        let Some(execution) = self.execution(name) else { return "[]".to_owned() };
        let execution: Execution = serde_json::from_value(execution.clone()).expect("an Execution");
        serde_json::to_string(&execution.spec.items().expect("its items")).expect("JSON")
    }

    /// What `--values` takes of an Installation and of those below it.
    fn values(&self, name: &str) -> Value {
        let reference = self.execution(name).map(|of| &of["status"]["exportRef"]["name"]);
        let exported = self.data_objects.iter().find(|of| Some(&of["metadata"]["name"]) == reference);
        let children: Map<String, Value> =
            self.children(name).into_iter().map(|(template, name)| (template.to_owned(), self.values(name))).collect();
        json!({"deployItems": exported.map_or_else(|| json!({}), |of| of["data"].clone()), "subinstallations": children})
    }

    /// Holds what was rendered against what is in the cluster.
    fn check(&self, rendered: &Value, name: &str) {
        assert_eq!(rendered["waitsFor"], Value::Null, "{name}");
        let items = serde_json::to_string(&rendered["deployItems"]).expect("JSON");
        let sorted = |text: &str| serde_json::from_str::<Value>(text).expect("JSON").to_string();
        assert_eq!(sorted(&items), sorted(&self.items(name)), "{name}");
        let below = rendered["subinstallations"].as_array().cloned().unwrap_or_default();
        let children = self.children(name);
        assert_eq!(below.len(), children.len(), "{name}");
        for (template, object) in children {
            let child = below.iter().find(|child| child["name"] == template).expect("it is rendered");
            self.check(child, object);
        }
    }
}

async fn renders_as_deployed(name: &str, roots: &[&str]) {
    let binary = crate::binary().await;
    let cluster = Cluster::start(&binary, &["--ephemeral", &example(name)]).await;
    for root in roots {
        let succeeded = json!({
            "apiVersion": LANDSCAPER, "kind": "Installation", "metadata": {"name": root}, "status": {"phase": "Succeeded"},
        });
        cluster.expect(&succeeded).await;
    }
    let target =
        cluster.expect(&json!({"apiVersion": LANDSCAPER, "kind": "Target", "metadata": {"name": "cluster"}})).await;
    let deployed = Deployed::of(&cluster).await;
    let values: Map<String, Value> = roots.iter().map(|root| ((*root).to_owned(), deployed.values(root))).collect();
    write(&binary, "imports.yaml", &json!({"imports": {"cluster": target}}).to_string());
    write(&binary, "values.yaml", &Value::Object(values).to_string());
    let path = example(name);
    let line = ["render", &path, "-i", "imports.yaml", "--values", "values.yaml", "-o", "json"];
    let ended = binary.run(&line).await;
    let document = document(&ended);
    let rendered = document["installations"].as_array().expect("a list");
    assert_eq!(rendered.len(), roots.len());
    for root in roots {
        deployed.check(rendered.iter().find(|of| of["name"] == *root).expect("it is rendered"), root);
    }
    assert_eq!(binary.run(&line).await.stdout, ended.stdout, "rendering twice prints the same");
}

#[tokio::test]
async fn the_examples_render_as_the_operator_renders_them() {
    renders_as_deployed("hello-world", &["hello"]).await;
    renders_as_deployed("data-flow", &["database", "application"]).await;
    renders_as_deployed("sub-installations", &["shop"]).await;
    renders_as_deployed("dependencies", &["garden"]).await;
}

const BLUEPRINT: &str = "\
imports:
- {name: replicas, schema: {type: integer}}
- {name: clusters, type: targetMap, targetType: kubernetes-cluster}
deployExecutions:
- name: items
  type: Jinja
  template: |
    deployItems:
    - {name: item, type: example.com/item, target: {import: clusters, key: red}, config: {replicas: {{ imports.replicas }}}}
    state: {count: {{ (state.count | default(0)) + 1 }}}
exports: [{name: url, schema: {type: string}}]
exportExecutions:
- name: url
  type: Jinja
  template: 'exports: {url: {{ values.deployitems.item.url }}}'
";

const IMPORTS: &str = "\
imports:
  replicas: 3
  clusters:
    red:
      apiVersion: landscaper.gardener.cloud/v1alpha1
      kind: Target
      metadata: {name: red-cluster}
      spec: {type: landscaper.gardener.cloud/kubernetes-cluster}
";

#[tokio::test]
async fn a_folder_is_rendered_with_given_imports_values_and_states() {
    let binary = crate::binary().await;
    write(&binary, "b/blueprint.yaml", BLUEPRINT);
    write(&binary, "imports.yaml", IMPORTS);
    write(&binary, "values.yaml", "deployItems: {item: {url: 'https://x'}}");
    write(&binary, "state.yaml", "state: {deployExecutions: {items: {count: 4}}}");
    let base = ["render", "b", "-i", "imports.yaml", "-o", "json"];
    let item = json!({
        "name": "item", "type": "example.com/item", "config": {"replicas": 3},
        "target": {"name": "red-cluster", "namespace": "default"},
    });
    let expected = |count: u64, exports: Value| {
        let mut of = json!({"name": "blueprint", "deployItems": [item]});
        of["state"] = json!({"deployExecutions": {"items": {"count": count}}});
        if !exports.is_null() {
            of["exports"] = exports;
        }
        json!({"apiVersion": "orangery.dev/v1alpha1", "kind": "RenderedInstallations", "installations": [of]})
    };
    assert_eq!(document(&binary.run(&base).await), expected(1, Value::Null));
    let given = [base.as_slice(), &["--values", "values.yaml", "--state", "state.yaml"]].concat();
    assert_eq!(document(&binary.run(&given).await), expected(5, json!({"url": "https://x"})));
}

#[tokio::test]
async fn what_waits_for_an_unknown_export_says_so() {
    let binary = crate::binary().await;
    let target = "imports: {cluster: {apiVersion: landscaper.gardener.cloud/v1alpha1, kind: Target, metadata: {name: c}, spec: {type: landscaper.gardener.cloud/kubernetes-cluster}}}";
    write(&binary, "imports.yaml", target);
    let ended = binary.run(&["render", &example("data-flow"), "-i", "imports.yaml", "-o", "json"]).await;
    let document = document(&ended);
    let application = &document["installations"][1];
    let told = "the exports of database, which are not known; give them with --values";
    assert_eq!(*application, json!({"name": "application", "waitsFor": told, "deployItems": []}));
}

#[tokio::test]
async fn what_cannot_be_rendered_is_one_sentence() {
    let binary = crate::binary().await;
    write(&binary, "b/blueprint.yaml", BLUEPRINT);
    write(&binary, "imports.yaml", "imports: {replicas: many}");
    write(&binary, "broken.yaml", "imports: [");
    let cases: [(&[&str], i32, &str); 4] = [
        (&["b", "-i", "imports.yaml"], 1, "error: installation blueprint: import \"replicas\""),
        (&["b", "-i", "broken.yaml"], 2, "error: broken.yaml:1:"),
        (&["b", "-i", "none.yaml"], 2, "error: none.yaml cannot be read"),
        (&["nowhere"], 2, "error: nowhere does not exist"),
    ];
    for (arguments, code, told) in cases {
        let ended = binary.run(&[&["render"], arguments].concat()).await;
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        assert!(ended.stderr.starts_with(told), "{}", ended.stderr);
    }
}
