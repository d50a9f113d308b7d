//! Nothing secret is shown: a value of a Secret that goes through a tree stands in no error, condition, event, line of the log
//! or answer of a command, in whatever encoding (C-41).

mod bundle;
mod clusters;
mod encrypted;
pub(crate) mod harness;
mod withheld;

use std::sync::Arc;

use data_encoding::BASE64;
use orangery_tests::{
    canary::forms,
    chart,
    objects::{NAMESPACE, Objects},
    proxy::Sound,
    tree::{any, blueprint, deploys, imports_cluster, in_phase, installation},
    world::{MOCK, World},
};
use serde_json::{Value, json};

/// The value: no name of an object, so that servers quote it when they refuse it.
const CANARY: &str = "Canary-9f8e7d6c+5b4a3210 of mine";

#[track_caller]
fn check(what: &str, text: &str) {
    for form in forms(CANARY).into_iter().chain(["9f8e7d6c".to_owned()]) {
        let found = text.find(&form).map(|at| text.get(at.saturating_sub(200)..).unwrap_or(text));
        let around = found.map(|text| text.chars().take(400).collect::<String>());
        assert_eq!(around, None, "{what} shows the value as {form}");
    }
}

/// The Secret that holds it.
fn secret() -> Value {
    let data = json!({"value": BASE64.encode(CANARY.as_bytes())});
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "canary"}, "data": data})
}

/// An Installation that imports the value, with these parts of a blueprint.
fn importing(name: &str, mut fields: Value) -> Value {
    let mut imports = imports_cluster();
    let value = json!({"name": "value", "type": "data", "schema": {"type": "string"}});
    imports.as_array_mut().expect("a list").push(value);
    fields["imports"] = imports;
    let mut root = installation(name, &blueprint(fields));
    let data = json!([{"name": "value", "secretRef": {"name": "canary", "key": "value"}}]);
    root["spec"]["imports"] = json!({"data": data, "targets": [{"name": "cluster", "target": "cluster"}]});
    root
}

/// What each object says that others may read: of a deploy item, whose configuration is what a template made of the imports,
/// the status; of DataObjects those that are not marked.
async fn readable(objects: &Objects) -> Vec<(String, String)> {
    let mut readable = Vec::new();
    for kind in ["Installation", "Execution", "DeployItem", "DataObject", "Target", "Context"] {
        for object in objects.list(&any(kind, "")).await {
            let marked = object.pointer("/metadata/labels/orangery.dev~1secret-data").is_some();
            let part = if kind == "DeployItem" { object["status"].clone() } else { object.clone() };
            if !marked {
                readable.push((format!("{kind} {}", object["metadata"]["name"]), part.to_string()));
            }
        }
    }
    for event in objects.list(&json!({"apiVersion": "events.k8s.io/v1", "kind": "Event"})).await {
        readable.push(("an event".to_owned(), event.to_string()));
    }
    readable
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_41_a_value_of_a_secret_is_shown_nowhere() {
    let mut world = World::on(&crate::ground(), crate::binary().await, Arc::new(Sound)).await;
    let objects = &world.objects;
    objects.apply(&secret()).await;
    // A template that fails with it, in several encodings.
    let template = "{{ fail (printf \"%s %s %s %s\" .imports.value (b64enc .imports.value) (urlquery .imports.value) \
                    (b64enc (printf \"a%s\" .imports.value))) }}";
    let fails = json!({"deployExecutions": [{"name": "d", "type": "GoTemplate", "template": template}]});
    objects.apply(&importing("fails", fails)).await;
    // A server that answers with it.
    let mut item = deploys("item", &[], "content");
    item["config"]["manifests"][0]["manifest"]["metadata"]["name"] = json!("{{ imports.value }}");
    let execution = json!({"name": "d", "type": "Jinja", "template": json!({"deployItems": [item]}).to_string()});
    objects.apply(&importing("refused", json!({"deployExecutions": [execution]}))).await;
    // Whoever looks for a mistake has all of it logged.
    world.start_with(&[MOCK, "--log=debug"]);
    let objects = &world.objects;
    for name in ["fails", "refused"] {
        let failed = objects.expect(&in_phase("Installation", name, "Failed")).await;
        assert!(failed.to_string().contains("[masked]") || name == "fails", "{failed:#}");
        let arguments = ["why", &format!("installation/{name}"), "-o", "json"];
        check("why", &world.run(&arguments).await);
    }
    check("inspect", &world.run(&["inspect", "-o", "json"]).await);
    let items = objects.list(&any("DeployItem", "")).await;
    let item = items.first().and_then(|item| item["metadata"]["name"].as_str()).expect("there is an item");
    let plan = world.run(&["plan", item]).await;
    assert!(plan.contains("[masked]"), "{plan}");
    check("plan", &plan);
    let copies = objects.list(&any("DataObject", "")).await;
    let copies: Vec<_> = copies.iter().filter(|copy| copy.to_string().contains(CANARY)).collect();
    let marks = |copy: &&Value| copy["metadata"]["labels"]["orangery.dev/secret-data"] == "whole";
    assert!(!copies.is_empty() && copies.iter().all(marks), "{copies:#?}");
    for (what, text) in readable(objects).await {
        check(&what, &text);
    }
    check("the log", &world.log());
    world.end().await;
}

/// An Installation of a chart with this template, among whose values is the value.
fn charted(name: &str, template: &str) -> Value {
    let config = json!({
        "apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration", "name": name,
        "namespace": NAMESPACE, "chart": {"archive": {"raw": chart::packed("1.0.0", &[("t.yaml", template)])}},
        "values": {"password": "{{ imports.value }}"},
    });
    let item = json!({"name": name, "type": chart::TYPE, "target": {"import": "cluster"}, "config": config, "drift": {"policy": "Report"}});
    let execution = json!({"name": "d", "type": "Jinja", "template": json!({"deployItems": [item]}).to_string()});
    importing(name, json!({"deployExecutions": [execution]}))
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_41_a_value_of_a_secret_among_the_values_of_a_chart_is_shown_nowhere() {
    let mut world = World::on(&crate::ground(), crate::binary().await, Arc::new(Sound)).await;
    let objects = &world.objects;
    objects.apply(&secret()).await;
    objects
        .apply(&charted("fails", "{{ fail (printf \"it is %s or %s\" .Values.password (b64enc .Values.password)) }}"))
        .await;
    let made = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}\ndata: {k: {{ .Values.password | quote }}}\n";
    objects.apply(&charted("works", made)).await;
    world.start_with(&[MOCK, "--log=debug"]);
    let objects = &world.objects;
    objects.expect(&in_phase("Installation", "works", "Succeeded")).await;
    let failed = objects.expect(&in_phase("Installation", "fails", "Failed")).await;
    assert!(failed.to_string().contains("[masked]"), "{failed:#}");
    // Somebody changes what the chart has made.
    let metadata = json!({"name": "made", "namespace": NAMESPACE});
    objects
        .apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": "another"}}))
        .await;
    for item in objects.list(&any("DeployItem", "")).await {
        let name = item["metadata"]["name"].as_str().expect("an item has a name");
        for command in ["plan", "drift", "why"] {
            let of = if command == "why" { format!("deployitem/{name}") } else { name.to_owned() };
            for more in [&[][..], &["-o", "json"]] {
                let said = world.run(&[&[command, of.as_str()], more].concat()).await;
                check(command, &said);
                if command == "drift" && name.starts_with("works") {
                    assert!(said.contains("/data/k"), "{said}");
                }
            }
        }
    }
    for (what, text) in readable(objects).await {
        check(&what, &text);
    }
    check("the log", &world.log());
    world.end().await;
}
