//! More failures than a status could hold: what is left out is counted, and nothing of what was deployed is forgotten (C-98).

use std::ops::Range;

use orangery_tests::tree::{API, any, blueprint, imports_cluster, in_phase, installation, on_cluster};
use serde_json::{Value, json};

const ITEMS: usize = 60;
const OBJECTS: usize = 300;

/// What a status may take. An API server takes 1.5 MiB of an object, and parents repeat what is said below them.
const MOST_OF_A_STATUS: usize = 128 * 1024;

/// A rendered text of all items would take more memory than one may, so there are two. Each item has one good ConfigMap; the others
/// of its first item are refused by the server, and those of all others before anything is written, as they have no namespace.
fn template(items: Range<usize>) -> String {
    let Range { start, end } = items;
    format!(
        "deployItems:
{{% for item in range({start}, {end}) %}}
- name: item-{{{{ item }}}}
  type: landscaper.gardener.cloud/kubernetes-manifest
  target: {{import: cluster}}
  config:
    apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2
    kind: ProviderConfiguration
    manifests:
    - manifest: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: 'good-{{{{ item }}}}', namespace: default, labels: {{good: 'yes'}}}}}}
{{% for object in range({OBJECTS}) %}}
{{% if item == {start} %}}
    - manifest: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: 'Bad_{{{{ item }}}}-{{{{ object }}}}', namespace: default}}}}
{{% else %}}
    - manifest: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: 'bad-{{{{ item }}}}-{{{{ object }}}}'}}}}
{{% endif %}}
{{% endfor %}}
{{% endfor %}}
"
    )
}

/// How many failures a message tells, and how many more it counts.
fn counted(message: &str, word: &str) -> (usize, usize) {
    let more = message.rsplit_once("; and ").and_then(|(_, rest)| rest.split_once(" more"));
    (message.matches(word).count(), more.and_then(|(count, _)| count.parse().ok()).unwrap_or(0))
}

#[tokio::test]
async fn c_98_three_hundred_failures_in_each_of_sixty_items_are_counted_and_nothing_is_lost() {
    let cluster = crate::cluster().await;
    let fields = json!({
        "imports": imports_cluster(),
        "deployExecutions": [
            {"name": "first", "type": "Jinja", "template": template(0..ITEMS / 2)},
            {"name": "second", "type": "Jinja", "template": template(ITEMS / 2..ITEMS)},
        ],
    });
    cluster.apply(&on_cluster(installation("root", &blueprint(fields)))).await;
    let root = cluster.expect(&in_phase("Installation", "root", "Failed")).await;
    let execution = cluster.expect(&in_phase("Execution", "root", "Failed")).await;
    let items = cluster.list(&json!({"apiVersion": API, "kind": "DeployItem"})).await;
    assert_eq!(items.len(), ITEMS);
    let message = |object: &Value| object["status"]["lastError"]["message"].as_str().unwrap_or_default().to_owned();
    for object in items.iter().chain([&root, &execution]) {
        let size = object["status"].to_string().len();
        let name = &object["metadata"]["name"];
        assert!(size <= MOST_OF_A_STATUS, "the status of {} {name} has {size} bytes", object["kind"]);
    }
    let mut known = 0;
    for item in &items {
        assert_eq!(item["status"]["phase"], "Failed", "{item:#}");
        let message = message(item);
        let word = if message.contains("Bad_") { "ConfigMap default/Bad_" } else { "ConfigMap bad-" };
        let (shown, more) = counted(&message, word);
        assert_eq!(shown + more, OBJECTS, "{message}");
        assert!(shown > 10, "{message}");
        let managed = item["status"]["providerStatus"]["managedResources"].as_array();
        known += managed.into_iter().flatten().filter(|entry| entry["resource"]["uid"].is_string()).count();
    }
    for parent in [&execution, &root] {
        let (shown, more) = counted(&message(parent), "deploy item ");
        assert_eq!(shown + more, ITEMS, "{}", message(parent));
    }
    let good = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": {"good": "yes"}}});
    let deployed = async || {
        let all = cluster.list(&good).await;
        all.iter().filter(|object| object["metadata"]["labels"]["good"] == "yes").count()
    };
    assert_eq!((deployed().await, known), (2, 2), "what is deployed is in the inventory");
    cluster.delete(&any("Installation", "root")).await;
    cluster.expect_absent(&any("Installation", "root")).await;
    assert_eq!(deployed().await, 0, "all that was deployed goes with its items");
}
