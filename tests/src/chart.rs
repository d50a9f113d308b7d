//! Charts for tests, and deploy items of them.

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    path::Path,
};

use data_encoding::BASE64;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde_json::{Value, json};

use crate::{
    objects::{NAMESPACE, Objects},
    tree::{API, any},
};

/// The type of items that are charts.
pub const TYPE: &str = "landscaper.gardener.cloud/helm";

type Archive = tar::Builder<GzEncoder<Vec<u8>>>;

fn archive() -> Archive {
    tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()))
}

fn encoded(archive: Archive) -> String {
    let mut compressed = archive.into_inner().expect("a chart fits into memory");
    compressed.flush().expect("a chart fits into memory");
    BASE64.encode(&compressed.finish().expect("a chart fits into memory"))
}

/// A chart of `tests/charts`, packed, as `chart.archive.raw` takes it.
pub fn of_folder(name: &str) -> String {
    let mut archive = archive();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts").join(name);
    archive.append_dir_all(name, folder).expect("the chart can be read");
    encoded(archive)
}

/// A chart `app` of these templates, packed, as `chart.archive.raw` takes it.
pub fn packed(version: &str, templates: &[(&str, &str)]) -> String {
    let chart = format!("apiVersion: v2\nname: app\nversion: {version}\n");
    let mut archive = archive();
    let templates = templates.iter().map(|(name, text)| (format!("app/templates/{name}"), *text));
    for (name, text) in [("app/Chart.yaml".to_owned(), chart.as_str())].into_iter().chain(templates) {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, text.as_bytes()).expect("a chart fits into memory");
    }
    encoded(archive)
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
    let name = item.pointer("/metadata/name").and_then(Value::as_str).expect("an item has a name");
    objects.annotate(&any("DeployItem", name), asks).await;
}

/// The same, and waits until the job has ended, which has to be well.
pub async fn deploy_well(objects: &Objects, item: &Value) {
    deploy(objects, item).await;
    let name = item.pointer("/metadata/name").and_then(Value::as_str).expect("an item has a name");
    let over = |item: &Value| {
        let job = item.pointer("/status/jobID").filter(|job| job.is_string());
        let is_asked = item.pointer("/metadata/annotations/landscaper.gardener.cloud~1operation").is_some();
        job.is_some() && job == item.pointer("/status/jobIDFinished") && !is_asked
    };
    let ended = objects.expect_that(&any("DeployItem", name), "did not end its job", over).await;
    assert_eq!(ended.pointer("/status/phase"), Some(&json!("Succeeded")), "{ended:#}");
}

/// A template of a hook, which is a Job.
pub fn hook(name: &str, at: &str) -> String {
    annotated_hook(name, &format!("\"helm.sh/hook\": \"{at}\""))
}

/// The same with these delete policies.
pub fn hook_with_policies(name: &str, at: &str, policies: &str) -> String {
    annotated_hook(name, &format!("\"helm.sh/hook\": \"{at}\", \"helm.sh/hook-delete-policy\": \"{policies}\""))
}

fn annotated_hook(name: &str, annotations: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}, annotations: {{{annotations}}}}}\nspec: \
         {{template: {{spec: {{restartPolicy: Never, containers: [{{name: a, image: a}}]}}}}}}\n"
    )
}

/// The Job of a hook.
pub fn job(name: &str) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": NAMESPACE}})
}

/// Ends a Job as its controller does: `Complete` or `Failed`.
pub async fn end(objects: &Objects, name: &str, how: &str) {
    objects.expect(&job(name)).await;
    let now = "2026-11-23T08:00:00Z";
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "Test", "message": "the test says so", "lastTransitionTime": now});
    let before = if how == "Complete" { "SuccessCriteriaMet" } else { "FailureTarget" };
    let mut status = json!({"startTime": now, "conditions": [condition(before), condition(how)]});
    if let (true, Some(status)) = (how == "Complete", status.as_object_mut()) {
        status.insert("completionTime".to_owned(), json!(now));
        status.insert("succeeded".to_owned(), json!(1));
    }
    objects.patch_status(&job(name), status).await;
}

/// The files of a packed chart, by their names in the archive.
pub fn files(packed: &str) -> BTreeMap<String, Vec<u8>> {
    let packed = BASE64.decode(packed.as_bytes()).expect("a packed chart is base64");
    let mut archive = tar::Archive::new(GzDecoder::new(packed.as_slice()));
    let mut files = BTreeMap::new();
    for file in archive.entries().expect("a packed chart is an archive") {
        let mut file = file.expect("the archive is whole");
        let name = file.path().expect("files have names").to_string_lossy().into_owned();
        let mut content = Vec::new();
        file.read_to_end(&mut content).expect("the archive is whole");
        files.insert(name, content);
    }
    files
}

/// A revision of the release `rel` in a state, as its Secret says.
pub fn revision(number: u32, status: &str) -> Value {
    revision_of("rel", number, status)
}

/// A revision of a release in a state, as its Secret says.
pub fn revision_of(release: &str, number: u32, status: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
        "metadata": {
            "name": format!("sh.helm.release.v1.{release}.v{number}"),
            "labels": {"name": release, "owner": "helm", "status": status, "version": number.to_string()},
        },
    })
}
