//! Component versions that cannot be used: one sentence each.

use std::fs;

use orangery_ocm::ResourceReference;
use serde_json::{Value, json};

use crate::kit::*;

#[tokio::test]
async fn paths_outside_of_the_folder_of_components_are_refused() {
    let host = Host::new();
    fs::create_dir_all(host.folder.path().join("other")).unwrap();
    let outside = host.folder.path().join("other").display().to_string();
    for path in ["../other", "/etc", &outside, "missing"] {
        for type_ in ["CommonTransportFormat", "ComponentArchive", "local"] {
            let message = host.refused(json!({ "type": type_, "filePath": path }), "a", "1").await;
            let end = "which is not in the folder of components DIR/components";
            assert!(
                message.starts_with("the repository context names the path ") && message.ends_with(end),
                "{message}"
            );
        }
    }
}

#[tokio::test]
async fn a_repository_that_is_none_is_told() {
    let host = Host::new();
    let root = host.components();
    fs::create_dir_all(root.join("empty")).unwrap();
    fs::write(root.join("text.tar"), "no archive").unwrap();
    let mut archive = Transport::default();
    archive.version(&descriptor("a", "1", &[], json!([])), false);
    let bytes = gzip(&archive.archive());
    fs::write(root.join("cut.tgz"), &bytes[..bytes.len() / 2]).unwrap();
    fs::write(root.join("bad.yaml"), "a: [").unwrap();
    let message = |context: Value| host.refused(context, "a", "1");
    assert_eq!(
        message(transport("empty")).await,
        "the folder DIR/components/empty: its file artifact-index.json: cannot be read: No such file or directory (os error 2)"
            .replace("its file artifact-index.json: cannot be read", "DIR/components/empty/artifact-index.json")
    );
    assert_eq!(
        message(json!({ "type": "ComponentArchive", "filePath": "empty" })).await,
        "the folder DIR/components/empty: it has no component-descriptor.yaml"
    );
    let text = message(transport("text.tar")).await;
    assert!(
        text.starts_with(
            "the archive DIR/components/text.tar: its file artifact-index.json: it is no complete tar archive: "
        ),
        "{text}"
    );
    let cut = message(transport("cut.tgz")).await;
    assert!(
        cut.starts_with(
            "the archive DIR/components/cut.tgz: its file artifact-index.json: it is no complete tar archive: "
        ),
        "{cut}"
    );
    let bad = message(json!({ "type": "local", "filePath": "." })).await;
    assert!(bad.starts_with("DIR/components/bad.yaml: the component descriptor is no YAML: "), "{bad}");
}

#[tokio::test]
async fn a_descriptor_of_another_component_is_refused() {
    let host = Host::new();
    let mut archive = Transport::default();
    archive.version(&descriptor("a", "1", &[], json!([])), false);
    let path = host.components().join("a");
    archive.write_folder(&path);
    let index = fs::read_to_string(path.join("artifact-index.json")).unwrap();
    fs::write(path.join("artifact-index.json"), index.replace("component-descriptors/a", "component-descriptors/b"))
        .unwrap();
    assert_eq!(
        host.refused(transport("a"), "b", "1").await,
        "DIR/components/a has the descriptor of a:1 where b:1 should be; push it again"
    );
}

/// A component with one resource in a transport archive, and the sentence of its blueprint's fault.
async fn blueprint_fault(bytes: &[u8], change: impl FnOnce(&mut Value)) -> String {
    let host = Host::new();
    let mut archive = Transport::default();
    let blob = archive.blob(bytes);
    let mut resource = resource("bp", BLUEPRINT_TYPE, local_blob(&blob, "application/x-tar"));
    change(&mut resource);
    archive.version(&descriptor("a", "1", &[], json!([resource])), false);
    archive.write_folder(&host.components().join("a"));
    let opened = host.open(transport("a"), "a", "1").await.unwrap();
    let folder = host.folder.path().canonicalize().unwrap().display().to_string();
    let fault = opened.blueprint(&ResourceReference::named("bp")).await.err().unwrap();
    fault.to_string().replace(&folder, "DIR")
}

#[tokio::test]
async fn a_resource_that_cannot_be_read_is_told() {
    let bytes = blueprint();
    let none = sha256(b"none");
    assert_eq!(
        blueprint_fault(&bytes, |resource| resource["access"]["localReference"] = json!(none.to_string())).await,
        format!("resource bp of a:1: the folder DIR/components/a: it has no blob {none}")
    );
    assert_eq!(
        blueprint_fault(&bytes, |resource| resource["access"] = json!({ "type": "s3", "bucket": "b" })).await,
        "resource bp of a:1: its access type \"s3\" is not supported; known are localBlob, ociArtifact, ociBlob, \
         relativeOciReference, helm, wget and gitHub: transport the component with its resources (ocm transfer \
         --copy-resources)"
    );
    assert_eq!(
        blueprint_fault(&bytes, |resource| resource["access"] = Value::Null).await,
        "resource bp of a:1: it has no access, so no content"
    );
    assert_eq!(
        blueprint_fault(&bytes, |resource| resource["type"] = json!("ociImage")).await,
        "resource bp of a:1 has the type \"ociImage\", but a blueprint has the type landscaper.gardener.cloud/blueprint \
         or blueprint"
    );
    let digest = |value: &str| json!({ "hashAlgorithm": "SHA-256", "normalisationAlgorithm": "genericBlobDigest/v1", "value": value });
    assert_eq!(
        blueprint_fault(&bytes, |resource| resource["digest"] = digest("00")).await,
        format!(
            "resource bp of a:1 has another content than its component says: its digest is {}, the component descriptor \
             says 00; push the component again",
            sha256(&bytes).hex()
        )
    );
}

#[tokio::test]
async fn a_blob_that_was_altered_on_disk_is_refused() {
    let host = Host::new();
    let mut archive = Transport::default();
    let bytes = blueprint();
    let blob = archive.blob(&bytes);
    let resources = json!([resource("bp", BLUEPRINT_TYPE, local_blob(&blob, "application/x-tar"))]);
    archive.version(&descriptor("a", "1", &[], resources), false);
    let path = host.components().join("a");
    archive.write_folder(&path);
    fs::write(path.join(format!("blobs/sha256.{}", sha256(&bytes).hex())), tar(&[("blueprint.yaml", b"evil")]))
        .unwrap();
    let opened = host.open(transport("a"), "a", "1").await.unwrap();
    let message = opened.blueprint(&ResourceReference::named("bp")).await.err().unwrap().to_string();
    assert!(message.ends_with(&format!("its blob {blob} has another content")), "{message}");
}

#[tokio::test]
async fn a_bad_archive_is_one_sentence() {
    let place = "the blueprint in resource bp of a:1: ";
    let same = |_: &mut Value| {};
    let bomb = gzip(&tar(&[("x", &vec![0; 8 << 20])]));
    assert_eq!(
        blueprint_fault(&bomb, same).await,
        format!("{place}it has more than 200 times its compressed size; that is no honest archive of its kind")
    );
    let clash = tar(&[("a", b""), ("a/b", b"")]);
    assert_eq!(blueprint_fault(&clash, same).await, format!("{place}\"a/b\" lies in a file, not in a folder"));
    let cut = blueprint_fault(&blueprint()[..600], same).await;
    assert!(cut.starts_with(&format!("{place}it is no complete tar archive: ")), "{cut}");
}
