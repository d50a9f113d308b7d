//! Every place that a component version may be in.

use std::fs;

use orangery_ocm::{
    ComponentRequest, ComponentSource, ComponentVersions, DescriptorSchema, INLINE_LABEL, ResourceReference,
};
use serde_json::{Value, json};

use crate::kit::*;

/// A shop with a blueprint, and the database that it needs.
fn shop(archive: &mut Transport) {
    let blob = archive.blob(&blueprint());
    let resources = json!([resource("bp", BLUEPRINT_TYPE, local_blob(&blob, "application/x-tar"))]);
    let shop = descriptor("example.com/shop", "1.0.0+b1", &[("db", "example.com/db", "2.0.0")], resources);
    archive.version(&shop, true);
    archive.version(&in_v3(&descriptor("example.com/db", "2.0.0", &[], json!([]))), false);
}

/// What is in the shop, however it was found.
async fn is_whole(host: &Host, context: Value) {
    let shop = host.open(context, "example.com/shop", "1.0.0+b1").await.unwrap();
    let names: Vec<String> = shop.descriptors().iter().map(|descriptor| descriptor.to_string()).collect();
    assert_eq!(names, ["example.com/shop:1.0.0+b1", "example.com/db:2.0.0"]);
    assert_eq!((shop.schema(), shop.descriptors()[1].schema), (DescriptorSchema::V2, DescriptorSchema::V3Alpha1));
    let files = shop.blueprint(&ResourceReference::named("bp")).await.unwrap();
    assert_eq!(files.read("blueprint.yaml").unwrap(), BLUEPRINT);
    assert_eq!(files.list("templates").unwrap(), ["a.yaml"]);
}

#[tokio::test]
async fn a_transport_archive_is_a_folder_or_packed_or_compressed() {
    let host = Host::new();
    let mut archive = Transport::default();
    shop(&mut archive);
    archive.write_folder(&host.components().join("folder"));
    fs::write(host.components().join("plain.tar"), archive.archive()).unwrap();
    fs::write(host.components().join("packed.tgz"), gzip(&archive.archive())).unwrap();
    for path in ["folder", "plain.tar", "packed.tgz"] {
        is_whole(&host, transport(path)).await;
    }
}

#[tokio::test]
async fn an_archive_that_changes_is_read_again() {
    let host = Host::new();
    let path = host.components().join("a.tar");
    let write = |resource_name: &str| {
        let mut archive = Transport::default();
        let name = "x".repeat(resource_name.len() % 7);
        archive.version(&descriptor("c", "1", &[], json!([resource(resource_name, "t", Value::Null)])), false);
        archive.blob(name.as_bytes());
        fs::write(&path, archive.archive()).unwrap();
    };
    for name in ["one", "another-one"] {
        write(name);
        let modified = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(name.len() as u64);
        fs::File::options().append(true).open(&path).unwrap().set_modified(modified).unwrap();
        let opened = host.open(transport("a.tar"), "c", "1").await.unwrap();
        assert_eq!(opened.descriptor().resources[0].element.name, name);
    }
}

#[tokio::test]
async fn a_component_archive_has_one_component_version() {
    let host = Host::new();
    let blueprint = blueprint();
    let digest = sha256(&blueprint).to_string();
    let resources = json!([
        resource("bp", BLUEPRINT_TYPE, local_blob(&digest, "application/x-tar")),
        resource("old", BLUEPRINT_TYPE, json!({ "type": "localFilesystemBlob", "filename": "old.tar" })),
    ]);
    let document = descriptor("c", "1", &[], resources).to_string();
    let blob = format!("blobs/{}", digest.replacen(':', ".", 1));
    let files =
        [("component-descriptor.yaml", document.as_bytes()), (&blob, &blueprint), ("blobs/old.tar", &blueprint)];
    for (name, content) in files {
        let path = host.components().join("folder").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    fs::write(host.components().join("packed.tgz"), gzip(&tar(&files))).unwrap();
    for path in ["folder", "packed.tgz"] {
        let opened = host.open(json!({ "type": "ComponentArchive", "filePath": path }), "c", "1").await.unwrap();
        for name in ["bp", "old"] {
            let files = opened.blueprint(&ResourceReference::named(name)).await.unwrap();
            assert_eq!(files.read("templates/a.yaml").unwrap(), b"a");
        }
    }
}

#[tokio::test]
async fn a_local_repository_has_a_descriptor_in_every_file_and_blueprints_may_be_folders() {
    let host = Host::new();
    let root = host.components();
    fs::create_dir_all(root.join("blobs/bp/templates")).unwrap();
    fs::write(root.join("blobs/bp/blueprint.yaml"), BLUEPRINT).unwrap();
    fs::write(root.join("blobs/bp/templates/a.yaml"), "a").unwrap();
    let blob = local_blob("bp", "application/vnd.gardener.landscaper.blueprint.layer.v1.tar");
    let references = [("db", "example.com/db", "2.0.0")];
    let shop = descriptor("example.com/shop", "1.0.0+b1", &references, json!([resource("bp", "blueprint", blob)]));
    fs::write(root.join("shop.yaml"), shop.to_string()).unwrap();
    let db = in_v3(&descriptor("example.com/db", "2.0.0", &[], json!([])));
    fs::write(root.join("db.json"), db.to_string()).unwrap();
    is_whole(&host, json!({ "type": "local", "filePath": "." })).await;
    is_whole(&host, json!({ "type": "local" })).await;
}

#[tokio::test]
async fn descriptors_in_the_installation_come_before_any_repository() {
    let host = Host::new();
    let inner = descriptor("example.com/inner", "3", &[], json!([resource("bp", BLUEPRINT_TYPE, Value::Null)]));
    let mut middle = descriptor("example.com/middle", "2", &[("inner", "example.com/inner", "3")], json!([]));
    middle["component"]["componentReferences"][0]["labels"] = json!([{ "name": INLINE_LABEL, "value": inner }]);
    let mut outer = descriptor("example.com/outer", "1", &[("middle", "example.com/middle", "2")], json!([]));
    outer["component"]["componentReferences"][0]["labels"] = json!([{ "name": INLINE_LABEL, "value": middle }]);
    let opened = host.repositories.open(&ComponentRequest::of(ComponentSource::Inline(outer.into()))).await.unwrap();
    let names: Vec<String> = opened.descriptors().iter().map(|descriptor| descriptor.to_string()).collect();
    assert_eq!(names, ["example.com/outer:1", "example.com/middle:2", "example.com/inner:3"]);
}

#[tokio::test]
async fn an_inline_descriptor_has_its_blobs_and_references_in_its_repository_context() {
    let host = Host::new();
    let mut archive = Transport::default();
    shop(&mut archive);
    archive.write_folder(&host.components().join("a"));
    let stored = host.open(transport("a"), "example.com/shop", "1.0.0+b1").await.unwrap();
    let mut inline = stored.descriptor().render(DescriptorSchema::V2);
    inline["component"]["repositoryContexts"] = json!([{ "type": "ignored" }, transport("a")]);
    let opened = host.repositories.open(&ComponentRequest::of(ComponentSource::Inline(inline.into()))).await.unwrap();
    assert_eq!(opened.descriptors().len(), 2);
    let files = opened.blueprint(&ResourceReference::named("bp")).await.unwrap();
    assert_eq!(files.read("blueprint.yaml").unwrap(), BLUEPRINT);
}

#[tokio::test]
async fn the_context_gives_the_repository_that_the_reference_lacks() {
    let host = Host::new();
    let mut archive = Transport::default();
    shop(&mut archive);
    archive.write_folder(&host.components().join("a"));
    let mut request = request(Value::Null, "example.com/shop", "1.0.0+b1");
    let message = host.repositories.open(&request).await.err().unwrap().to_string();
    assert!(
        message.starts_with("RepositoryContextMissing: nothing says where the component example.com/shop:1.0.0+b1 is;")
    );
    request.repository_context = Some(transport("a").into());
    host.repositories.open(&request).await.unwrap();
    let config = r#"{"type": "generic.config.ocm.software/v1", "configurations": [{"type": "ocm.config.ocm.software",
        "resolvers": [{"prefix": "example.com", "repository": {"type": "CommonTransportFormat", "filePath": "a"}}]}]}"#;
    request.repository_context = None;
    request.credentials.ocm_config = Some(("ocm".to_owned(), orangery_ocm::Secret(config.as_bytes().to_vec())));
    host.repositories.open(&request).await.unwrap();
}
