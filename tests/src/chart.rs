//! Charts for tests, and deploy items of them.

use std::io::Write as _;

use data_encoding::BASE64;
use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};

use crate::{
    objects::{NAMESPACE, Objects},
    tree::{API, any},
};

/// The type of items that are charts.
pub const TYPE: &str = "landscaper.gardener.cloud/helm";

/// A chart `app` of these templates, packed, as `chart.archive.raw` takes it.
pub fn packed(version: &str, templates: &[(&str, &str)]) -> String {
    let chart = format!("apiVersion: v2\nname: app\nversion: {version}\n");
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let templates = templates.iter().map(|(name, text)| (format!("app/templates/{name}"), *text));
    for (name, text) in [("app/Chart.yaml".to_owned(), chart.as_str())].into_iter().chain(templates) {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, text.as_bytes()).expect("a chart fits into memory");
    }
    let mut compressed = archive.into_inner().expect("a chart fits into memory");
    compressed.flush().expect("a chart fits into memory");
    BASE64.encode(&compressed.finish().expect("a chart fits into memory"))
}

/// A deploy item of its own that installs a packed chart as the release `rel`; it asks for a job.
pub fn item(packed: &str, more: &Value) -> Value {
    let mut config = json!({
        "apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration",
        "name": "rel", "namespace": NAMESPACE, "chart": {"archive": {"raw": packed}},
    });
    if let (Some(config), Some(more)) = (config.as_object_mut(), more.get("config").and_then(Value::as_object)) {
        config.extend(more.clone());
    }
    let mut spec = json!({"type": TYPE, "target": {"name": "cluster", "namespace": NAMESPACE}, "config": config});
    if let (Some(spec), Some(timeout)) = (spec.as_object_mut(), more.get("timeout")) {
        spec.insert("timeout".to_owned(), timeout.clone());
    }
    json!({"apiVersion": API, "kind": "DeployItem", "metadata": {"name": "item"}, "spec": spec})
}

/// Applies an item and has its job begin.
pub async fn deploy(objects: &Objects, item: &Value) {
    objects.apply(item).await;
    let asks = json!({"landscaper.gardener.cloud/operation": "test-reconcile"});
    objects.annotate(&any("DeployItem", "item"), asks).await;
}

/// A revision of the release `rel` in a state, as its Secret says.
pub fn revision(number: u32, status: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
        "metadata": {
            "name": format!("sh.helm.release.v1.rel.v{number}"),
            "labels": {"name": "rel", "owner": "helm", "status": status, "version": number.to_string()},
        },
    })
}
