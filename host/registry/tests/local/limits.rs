//! Limits of repositories on this machine (`docs/limits.md`), each met from both sides where that is cheap.

use std::{fs, path::Path};

use orangery_ocm::{ComponentRequest, ComponentSource, ComponentVersions, INLINE_LABEL, ResourceReference};
use orangery_registry::oci;
use serde_json::{Value, json};

use crate::kit::*;

/// A file of which nothing is written but its size.
fn sparse(path: &Path, size: u64) {
    fs::File::create(path).unwrap().set_len(size).unwrap();
}

/// A component version without references.
fn alone(name: &str) -> Value {
    descriptor(name, "1", &[], json!([]))
}

/// A component that refers to `c1`, `c2` and so on, so that it and they are so many.
async fn wide(count: usize) -> Result<usize, String> {
    let host = Host::new();
    let mut archive = Transport::default();
    let names: Vec<String> = (1..count).map(|index| format!("c{index}")).collect();
    let references: Vec<_> = names.iter().map(|name| (name.as_str(), name.as_str(), "1")).collect();
    archive.version(&descriptor("a", "1", &references, json!([])), false);
    names.iter().for_each(|name| archive.version(&alone(name), false));
    archive.write_folder(&host.components().join("a"));
    let opened = host.open(transport("a"), "a", "1").await.map_err(|fault| fault.to_string())?;
    Ok(opened.descriptors().len())
}

#[tokio::test]
async fn limits_registry_a_component_version_needs_so_many_others_and_no_more() {
    assert_eq!(wide(2_000).await, Ok(2_000));
    assert_eq!(wide(2_001).await, Err("the component a:1 refers to more than 2000 component versions".to_owned()));
}

/// A component that refers to so many others, each of which takes about a mebibyte of memory.
async fn heavy(count: usize) -> Result<usize, String> {
    let limits = oci::PullLimits { component_versions: 8 << 20, ..oci::PullLimits::default() };
    let folder = tempfile::tempdir().unwrap();
    let host = Host { repositories: repositories_within(folder.path(), limits), folder };
    let mut archive = Transport::default();
    let names: Vec<String> = (1..=count).map(|index| format!("c{index}")).collect();
    let references: Vec<_> = names.iter().map(|name| (name.as_str(), name.as_str(), "1")).collect();
    archive.version(&descriptor("a", "1", &references, json!([])), false);
    for name in &names {
        let mut heavy = alone(name);
        heavy["component"]["labels"] = json!([{"name": "l", "value": vec![json!({"": 0}); 1_000]}]);
        archive.version(&heavy, false);
    }
    archive.write_folder(&host.components().join("a"));
    let opened = host.open(transport("a"), "a", "1").await.map_err(|fault| fault.to_string())?;
    Ok(opened.descriptors().len())
}

#[tokio::test]
async fn c_320_limits_registry_the_descriptors_of_a_component_version_share_a_memory() {
    assert_eq!(heavy(2).await, Ok(3));
    let refused = heavy(6).await.unwrap_err();
    let why = "the component version, with what is read of it, takes more than the 3670016 bytes of \
               memory that are allowed; refer to fewer or smaller ones, or have the operator given more memory (resources of its chart)";
    assert!(refused.starts_with("component reference c") && refused.ends_with(why), "{refused}");
}

/// A host whose component versions have so many mebibytes of memory, of which one namespace has less than half.
fn within(mib: u64) -> Host {
    let limits = oci::PullLimits { component_versions: mib << 20, ..oci::PullLimits::default() };
    let folder = tempfile::tempdir().unwrap();
    Host { repositories: repositories_within(folder.path(), limits), folder }
}

/// A label that takes about so many thousandths of a mebibyte of memory.
fn heavy_label(thousandths: usize) -> Value {
    json!([{"name": "l", "value": vec![json!({"": 0}); thousandths]}])
}

const TOO_MUCH: &str = "the component version, with what is read of it, takes more than the ";

#[tokio::test]
async fn c_320_descriptors_of_an_installation_and_of_a_folder_count() {
    let mut heavy = alone("a");
    heavy["component"]["labels"] = heavy_label(5_000);
    let host = within(8);
    let inline = ComponentRequest::of(ComponentSource::Inline(heavy.clone().into()));
    let refused = host.repositories.open(&inline).await.err().unwrap().to_string();
    assert!(refused.starts_with(TOO_MUCH), "{refused}");
    fs::create_dir_all(host.components().join("c")).unwrap();
    fs::write(host.components().join("c/component-descriptor.yaml"), heavy.to_string()).unwrap();
    let archive = json!({"type": "ComponentArchive", "filePath": "c"});
    let refused = host.refused(archive.clone(), "a", "1").await;
    assert!(refused.starts_with(TOO_MUCH), "{refused}");
    let host = Host { repositories: repositories(host.folder.path()), folder: host.folder };
    assert!(host.open(archive, "a", "1").await.is_ok() && host.repositories.open(&inline).await.is_ok());
}

#[tokio::test]
async fn c_320_unpacked_blueprints_count_also_those_that_are_kept() {
    let host = within(8);
    let mut archive = Transport::default();
    let mut of = |name: &str, bytes: usize, labels: usize| {
        let files = vec![b' '; bytes];
        let blob = archive.blob(&tar(&[("blueprint.yaml", BLUEPRINT), ("f", &files)]));
        let access = local_blob(&blob, "application/vnd.gardener.landscaper.blueprint.v1+tar");
        let mut document = descriptor(name, "1", &[], json!([resource("b", BLUEPRINT_TYPE, access)]));
        document["component"]["labels"] = heavy_label(labels);
        archive.version(&document, false);
    };
    of("large", 5 << 20, 0);
    of("small", 900 << 10, 0);
    // Three mebibytes, of which it has three and a half.
    let thousand = orangery_core::memory::of(&heavy_label(1_000));
    of("small-beside-much", 900 << 10, usize::try_from((3_000 << 20) / thousand).unwrap());
    archive.write_folder(&host.components().join("a"));
    let told = async |name: &str| {
        let version = host.open(transport("a"), name, "1").await.unwrap();
        version.blueprint(&ResourceReference::named("b")).await.map(drop).map_err(|fault| fault.to_string())
    };
    let is_refused = async |name: &str| {
        let refused = told(name).await.unwrap_err();
        assert!(refused.starts_with(&format!("resource b of {name}:1: {TOO_MUCH}")), "{refused}");
    };
    is_refused("large").await;
    assert_eq!(told("small").await, Ok(()));
    // It is kept, and counts all the same.
    is_refused("small-beside-much").await;
}

/// A descriptor that carries one that carries another one, and so on; the innermost takes about half a mebibyte of memory.
async fn nested(levels: usize) -> Result<usize, String> {
    let limits = oci::PullLimits { component_versions: 8 << 20, ..oci::PullLimits::default() };
    let folder = tempfile::tempdir().unwrap();
    let host = Host { repositories: repositories_within(folder.path(), limits), folder };
    let mut document = alone("c0");
    document["component"]["labels"] = json!([{"name": "l", "value": vec![json!({"": 0}); 500]}]);
    for level in 1..=levels {
        let (name, below) = (format!("c{level}"), format!("c{}", level - 1));
        let mut above = descriptor(&name, "1", &[("below", &below, "1")], json!([]));
        above["component"]["componentReferences"][0]["labels"] = json!([{ "name": INLINE_LABEL, "value": document }]);
        document = above;
    }
    let opened = host.repositories.open(&ComponentRequest::of(ComponentSource::Inline(document.into()))).await;
    Ok(opened.map_err(|fault| fault.to_string())?.descriptors().len())
}

#[tokio::test]
async fn c_320_descriptors_within_one_another_count_for_each_level() {
    assert_eq!(nested(4).await, Ok(5));
    let refused = nested(16).await.unwrap_err();
    assert!(refused.starts_with("the component version, with what is read of it, takes more than the "), "{refused}");
}

/// A descriptor that carries so many others.
async fn carrying(count: usize) -> Result<usize, String> {
    let names: Vec<String> = (0..count).map(|index| format!("c{index}")).collect();
    let references: Vec<_> = names.iter().map(|name| (name.as_str(), name.as_str(), "1")).collect();
    let mut document = descriptor("a", "1", &references, json!([]));
    let references = document["component"]["componentReferences"].as_array_mut().unwrap();
    for (reference, name) in references.iter_mut().zip(&names) {
        reference["labels"] = json!([{ "name": INLINE_LABEL, "value": alone(name) }]);
    }
    let host = Host::new();
    let opened = host.repositories.open(&ComponentRequest::of(ComponentSource::Inline(document.into()))).await;
    Ok(opened.map_err(|fault| fault.to_string())?.descriptors().len())
}

#[tokio::test]
async fn limits_registry_a_descriptor_carries_so_many_others_and_no_more() {
    assert_eq!(carrying(1_000).await, Ok(1_001));
    assert_eq!(carrying(1_001).await, Err("the component descriptor carries more than 1000 others".to_owned()));
}

#[tokio::test]
async fn limits_registry_an_index_a_manifest_and_a_descriptor_on_this_machine_have_a_size() {
    let host = Host::new();
    let mut archive = Transport::default();
    archive.version(&alone("a"), false);
    let folder = host.components().join("a");
    archive.write_folder(&folder);
    let index: Value = serde_json::from_slice(&fs::read(folder.join("artifact-index.json")).unwrap()).unwrap();
    let file = |digest: &Value| format!("blobs/{}", digest.as_str().unwrap().replacen(':', ".", 1));
    let manifest = file(&index["artifacts"][0]["digest"]);
    let document: Value = serde_json::from_slice(&fs::read(folder.join(&manifest)).unwrap()).unwrap();
    let layer = file(&document["layers"][0]["digest"]);
    // The last one first: who reads the index finds it as it was.
    for (name, most) in [(layer.as_str(), 16 << 20), (&manifest, 4 << 20), ("artifact-index.json", 64 << 20)] {
        sparse(&folder.join(name), most + 1);
        let expected = format!("the folder DIR/components/a: its file {name}: it has more than {most} bytes");
        assert_eq!(host.refused(transport("a"), "a", "1").await, expected);
    }
}

#[tokio::test]
async fn limits_registry_a_blob_on_this_machine_has_a_size() {
    let host = Host::new();
    let mut archive = Transport::default();
    let blob = archive.blob(b"small");
    let resources = json!([resource("far", "plain", local_blob(&blob, "text/plain"))]);
    archive.version(&descriptor("a", "1", &[], resources), false);
    let folder = host.components().join("a");
    archive.write_folder(&folder);
    let name = format!("blobs/{}", blob.replacen(':', ".", 1));
    sparse(&folder.join(&name), (512 << 20) + 1);
    let opened = host.open(transport("a"), "a", "1").await.unwrap();
    let message = opened.content(&ResourceReference::named("far")).await.unwrap_err().to_string();
    assert!(message.ends_with(&format!("its file {name}: it has more than 536870912 bytes")), "{message}");
}

#[tokio::test]
async fn limits_registry_indexes_within_indexes_on_this_machine_end() {
    for (indexes, expected) in [(2, None), (3, Some("more than 3 indexes stand in one another"))] {
        let host = Host::new();
        let mut archive = Transport::default();
        archive.version(&alone("a"), false);
        (0..indexes).for_each(|_| archive.index_before_the_last());
        archive.write_folder(&host.components().join("a"));
        let opened = host.open(transport("a"), "a", "1").await.err().map(|fault| fault.to_string());
        let ends = expected.map(|why| opened.as_ref().is_some_and(|message| message.ends_with(why)));
        assert!(ends.unwrap_or(opened.is_none()), "{indexes}: {opened:?}");
    }
}
