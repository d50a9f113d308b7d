//! A value of a Secret is in no byte of an archive for support, wherever it lies (C-400).

use std::{io::Read as _, sync::Arc};

use data_encoding::BASE64;
use flate2::read::GzDecoder;
use orangery_tests::{
    objects::NAMESPACE,
    proxy::Sound,
    tree::{deploys, in_phase},
    world::{MOCK, World},
};
use serde_json::{Value, json};

use super::{CANARY, check, importing, secret};

const GROUP: &str = "landscaper.gardener.cloud/v1alpha1";

/// An object with the value in a part of it, and as kubectl apply leaves it in an annotation.
fn planted(api_version: &str, kind: &str, part: Value) -> Value {
    let last = json!({"kind": kind, "of": part}).to_string();
    let annotations = json!({"kubectl.kubernetes.io/last-applied-configuration": last});
    let mut object =
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "planted", "annotations": annotations}});
    let (Value::Object(fields), Value::Object(part)) = (&mut object, part) else { unreachable!() };
    fields.extend(part);
    object
}

/// The files of an archive.
fn files(packed: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = tar::Archive::new(GzDecoder::new(packed));
    let file = |entry: std::io::Result<tar::Entry<'_, GzDecoder<&[u8]>>>| {
        let mut entry = entry.unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (entry.path().unwrap().display().to_string(), bytes)
    };
    archive.entries().unwrap().map(file).collect()
}

#[tokio::test]
async fn c_400_a_value_of_a_secret_is_in_no_byte_of_an_archive() {
    let mut world = World::on(&crate::ground(), crate::binary().await, Arc::new(Sound)).await;
    world.start_with(&[MOCK, "--job-records=3", "--log=debug"]);
    let objects = &world.objects;
    objects.apply(&secret()).await;
    let users = json!([{"name": "u", "user": {"token": CANARY}}]);
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "users": users}).to_string();
    let spec = json!({"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": {"kubeconfig": kubeconfig}});
    let item = json!({"name": "i", "type": "landscaper.gardener.cloud/mock", "config": {"apiVersion": "x/v1", "kind": "X", "deep": [{"value": CANARY}]}});
    let note = json!({
        "regarding": {"apiVersion": GROUP, "kind": "Installation", "name": "refused", "namespace": NAMESPACE},
        "note": format!("it says {CANARY}"), "reason": "Planted", "type": "Warning", "action": "Plant",
        "reportingController": "test", "reportingInstance": "test", "eventTime": "2026-01-01T00:00:00.000000Z",
    });
    let all = [
        planted("v1", "Secret", json!({"data": {"value": BASE64.encode(CANARY.as_bytes())}})),
        planted(GROUP, "DataObject", json!({"data": {"a": [CANARY]}})),
        planted(GROUP, "Target", json!({"spec": spec})),
        planted(GROUP, "Context", json!({"configurations": {"config.landscaper.gardener.cloud": {"deep": CANARY}}})),
        planted(GROUP, "Execution", json!({"spec": {"deployItems": [item.clone()]}})),
        planted(GROUP, "DeployItem", json!({"spec": {"type": "of-nobody", "config": item["config"]}})),
        planted("events.k8s.io/v1", "Event", note),
    ];
    for object in &all {
        objects.apply(object).await;
    }
    // A server that answers with it, to a template that has it.
    let mut item = deploys("item", &[], "content");
    item["config"]["manifests"][0]["manifest"]["metadata"]["name"] = json!("{{ imports.value }}");
    let execution = json!({"name": "d", "type": "Jinja", "template": json!({"deployItems": [item]}).to_string()});
    let mut root = importing("refused", json!({"deployExecutions": [execution]}));
    root["spec"]["importDataMappings"] = json!({"literal": CANARY});
    root["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = json!(root.to_string());
    objects.apply(&root).await;
    objects.expect(&in_phase("Installation", "refused", "Failed")).await;

    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().join("case.tar.gz");
    let told = world.run(&["bundle", "-n", NAMESPACE, "--into", &into.to_string_lossy()]).await;
    check("bundle", &told);
    assert!(told.contains("case.tar.gz is written; look through it before you give it to somebody\n"), "{told}");
    let packed = std::fs::read(&into).unwrap();
    check("the packed archive", &String::from_utf8_lossy(&packed));
    let found = files(&packed);
    for (name, bytes) in &found {
        check(name, &String::from_utf8_lossy(bytes));
    }
    let text = |name: &str| {
        let name = format!("orangery-bundle/{name}");
        let (_, bytes) = found.iter().find(|(of, _)| *of == name).unwrap_or_else(|| panic!("{name} in {told}"));
        String::from_utf8_lossy(bytes).into_owned()
    };
    let within = |kind: &str| text(&format!("namespaces/{NAMESPACE}/{kind}.jsonl"));
    assert!(within("installation").contains("[masked]") && within("installation").contains("\"phase\":\"Failed\""));
    assert!(within("event").contains("it says [masked]"), "{}", within("event"));
    let names = ["target", "dataobject", "context", "execution", "deployitem", "secrets"];
    for kind in names {
        assert!(within(kind).contains("planted"), "{kind}: {}", within(kind));
    }
    assert!(within("records").contains("\"job\""), "{}", within("records"));
    assert!(text("README.txt").contains("operator/metrics.txt: no metrics: "), "{}", text("README.txt"));
    // What is there is not written over.
    let second = world.run(&["bundle", "-n", NAMESPACE, "--into", &into.to_string_lossy()]).await;
    assert!(
        second.starts_with("error: ")
            && second.ends_with("case.tar.gz is there already; name another one with --into\n"),
        "{second}"
    );
    assert_eq!(std::fs::read(&into).unwrap(), packed);
    // What was planted is nobody's mistake, which every case is searched for at its end.
    for object in &all {
        objects.delete(object).await;
    }
    world.end().await;
}
