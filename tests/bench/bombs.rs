//! What a neighbour notices, and how much memory it costs, while somebody in another namespace sends one bomb after the other.

use std::{
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    time::{Duration, Instant},
};

use orangery_proposal::overlay::overlay;
use orangery_tests::{
    cluster::{Cluster, own_target},
    tree::{any, blueprint, deploys, executions, imports_cluster, installation, on_cluster},
    usage::{forget_peak, peak_resident_mebibytes},
};
use serde_json::{Value, json};

use crate::{
    figures::{Figures, display},
    latency::hellos,
    place::Place,
};

const NAMESPACE: &str = "attacker";

/// What costs no more than its requests.
const CONTROL: &str = "one missing import after the other";

/// Hello-world alone, beside each bomb whose name has a text, and alone again: so often each, what is alone in two halves, so
/// that a machine that gets slower is no difference. Beside [`CONTROL`] it takes as long as requests that come one after the
/// other make it: what it takes beside a bomb is held against that too.
pub(crate) async fn measure(place: &Place, (hellos_each, named): (usize, &str), figures: &mut Figures) {
    let mut control = None;
    for (number, (what, bomb)) in bombs().into_iter().enumerate().filter(|(_, (what, _))| what.contains(named)) {
        let binary = crate::binary();
        let cluster = place.start(&binary).await;
        prepare(&cluster).await;
        // What is loaded once is no cost of the bomb.
        explode(&cluster, &bomb, "first").await;
        forget_peak(cluster.process());
        let before = hellos(&cluster, "before", hellos_each.div_ceil(2)).await;
        let peak_alone = peak_resident_mebibytes(cluster.process()).unwrap_or_default();
        forget_peak(cluster.process());
        let (over, count) = (AtomicBool::new(false), AtomicU32::new(0));
        let begin = Instant::now();
        let attack = async {
            while !over.load(Ordering::Relaxed) {
                let name = format!("bomb{number}-{}", count.fetch_add(1, Ordering::Relaxed));
                explode(&cluster, &bomb, &name).await;
            }
        };
        let neighbour = async {
            let beside = hellos(&cluster, "beside", hellos_each).await;
            over.store(true, Ordering::Relaxed);
            (beside, begin.elapsed())
        };
        let ((), (beside, took)) = tokio::join!(attack, neighbour);
        let peak = peak_resident_mebibytes(cluster.process()).unwrap_or_default();
        let alone = before.and(hellos(&cluster, "after", hellos_each.div_ceil(2)).await);
        let ratio = |share: f64| beside.quantile(share).as_secs_f64() / alone.quantile(share).as_secs_f64();
        let each = took.checked_div(count.load(Ordering::Relaxed)).unwrap_or(Duration::ZERO);
        let p99 = beside.quantile(0.99).as_secs_f64();
        let control = *control.get_or_insert(if what == CONTROL { p99 } else { f64::NAN });
        let figure = format!(
            "alone {}; beside {}: median × {:.2}, p90 × {:.2}, p99 × {:.2} (× {:.2} of that beside {CONTROL}); a bomb every {}; \
             peak {peak_alone:.0} -> {peak:.0} MiB, {:+.0}",
            alone.text(),
            beside.text(),
            ratio(0.5),
            ratio(0.9),
            ratio(0.99),
            p99 / control,
            display(each),
            peak - peak_alone,
        );
        figures.add(&format!("{}: hello-world beside {what}", place.name()), &figure);
        cluster.kill().await;
    }
}

/// The namespace of the bombs, with a Target and what they import.
async fn prepare(cluster: &Cluster) {
    cluster.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})).await;
    cluster.apply(&within(own_target(cluster.kubeconfig()))).await;
    let aliases = format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(50 << 10), vec!["*a"; 10_000].join(", "));
    let metadata = json!({"name": "aliases"});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"aliases": aliases}});
    cluster.apply(&within(map)).await;
}

/// Applies a bomb under a name, and waits until its job has ended, however it does.
async fn explode(cluster: &Cluster, bomb: &Value, name: &str) {
    let mut bomb = within(bomb.clone());
    overlay(&mut bomb, &json!({"metadata": {"name": name}}));
    cluster.apply(&bomb).await;
    let ended = |object: &Value| {
        object.pointer("/metadata/name") == Some(&json!(name))
            && matches!(object.pointer("/status/phase").and_then(Value::as_str), Some("Failed" | "Succeeded"))
    };
    cluster.expect_that(&within(any("Installation", name)), "does not end", ended).await;
    cluster.delete(&within(any("Installation", name))).await;
}

fn within(mut object: Value) -> Value {
    overlay(&mut object, &json!({"metadata": {"namespace": NAMESPACE}}));
    object
}

/// Bombs by what they are.
fn bombs() -> Vec<(&'static str, Value)> {
    let of = |fields: Value| installation("bomb", &blueprint(fields));
    let engine = |engine: &str, template: &str| {
        of(json!({"deployExecutions": [{"name": "d", "type": engine, "template": template}]}))
    };
    let data = |schema: Value| json!([{"name": "in", "type": "data", "schema": schema}]);
    let mut aliases = of(json!({"imports": data(json!({}))}));
    let from = json!([{"name": "in", "configMapRef": {"name": "aliases", "key": "aliases"}}]);
    overlay(&mut aliases, &json!({"spec": {"imports": {"data": from}}}));
    let doubling: serde_json::Map<String, Value> = (1..30)
        .map(|level| {
            let below = json!({"$ref": format!("local://t{}", level - 1)});
            (format!("t{level}"), json!({"allOf": [below, below]}))
        })
        .chain([("t0".to_owned(), json!({"type": "string"}))])
        .collect();
    let types = of(json!({"localTypes": doubling, "imports": [{"name": "in", "type": "data", "required": false,
        "default": {"value": "x"}, "schema": {"$ref": "local://t29"}}]}));
    let pattern = json!({"type": "string", "pattern": "^(a|aa)+(a|aa)+(a|aa)+$"});
    let long = "a".repeat(100_000) + "!";
    let patterns = of(json!({"imports": [{"name": "in", "type": "data", "required": false,
        "default": {"value": long}, "schema": pattern}]}));
    let mut path = deploys("path", &[], "1");
    let exported = json!({"key": "x", "jsonPath": "$..[?@..[?@..[?@.a]]]",
        "fromResource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "path", "namespace": "default"}});
    overlay(&mut path, &json!({"timeout": "1s", "config": {"exports": {"exports": [exported]}}}));
    let path = on_cluster(of(json!({"imports": imports_cluster(), "deployExecutions": executions(&[path])})));
    let mut gate = deploys("gate", &[], "1");
    let list: Vec<usize> = (0..1_000).collect();
    overlay(
        &mut gate,
        &json!({"when": [{"expression": "imports.list.all(x, imports.list.all(y, imports.list.all(z, x + y + z >= 0)))"}]}),
    );
    let mut imports = imports_cluster();
    if let Some(imports) = imports.as_array_mut() {
        imports
            .push(json!({"name": "list", "type": "data", "required": false, "default": {"value": list}, "schema": {}}));
    }
    let gate = on_cluster(of(json!({"imports": imports, "deployExecutions": executions(&[gate])})));
    vec![
        // What the requests of a bomb cost alone: it reads nothing, and fails.
        (CONTROL, of(json!({"imports": data(json!({}))}))),
        ("YAML with ten thousand aliases", aliases),
        ("schemas that double", types),
        ("a pattern over a long text", patterns),
        ("a JSONPath with filters within filters", path),
        ("a gate expression over a cube", gate),
        (
            "Jinja without an end",
            engine("Jinja", "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}"),
        ),
        ("GoTemplate without an end", engine("GoTemplate", "{{ range $a := until 100000000 }}{{ end }}")),
        (
            "GoTemplate that takes memory",
            engine("GoTemplate", "{{ $x := repeat 100000000 \"x\" }}{{ $y := repeat 10 $x }}{{ len $y }}"),
        ),
        (
            "Spiff that takes memory",
            engine("Spiff", "a: \"xxxxxxxxxxxxxxxx\"\nb: (( map[[1..10000000]|x|->a] ))\ndeployItems: []\n"),
        ),
        (
            "small objects in JSON",
            engine("Jinja", "{\"deployItems\": [], \"x\": [{% for a in range(1000000) %}{\"\": 0},{% endfor %}0]}"),
        ),
    ]
}
