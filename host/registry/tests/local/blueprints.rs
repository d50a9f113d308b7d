//! Blueprints and JSON schemas in all their forms.

use orangery_ocm::ResourceReference;
use orangery_registry::oci;
use serde_json::{Value, json};

use crate::kit::*;

const LAYER: &str = "application/vnd.gardener.landscaper.blueprint.layer.v1.tar";
const CONFIG: &str = "application/vnd.gardener.landscaper.blueprint.config.v1";
const SCHEMA: &str = "application/vnd.gardener.landscaper.jsonschema.layer.v1.json";

/// One resource in a component of its own.
async fn opened(
    host: &Host,
    resource: Value,
    archive: &mut Transport,
) -> std::sync::Arc<dyn orangery_ocm::ComponentVersion> {
    archive.version(&descriptor("c", "1", &[], json!([resource])), false);
    archive.write_folder(&host.components().join("a"));
    host.open(transport("a"), "c", "1").await.unwrap()
}

/// An artifact packed into an archive, as component versions carry it.
fn artifact(config_type: &str, layer_type: &str, layer: &[u8], oci_layout: bool) -> Vec<u8> {
    let name = |bytes: &[u8]| {
        let digest = sha256(bytes).to_string();
        format!("blobs/{}", digest.replacen(':', if oci_layout { "/" } else { "." }, 1))
    };
    let described = |kind: &str, bytes: &[u8]| json!({ "mediaType": kind, "digest": sha256(bytes).to_string(), "size": bytes.len() });
    let manifest = json!({
        "schemaVersion": 2, "config": described(config_type, b"{}"), "layers": [described(layer_type, layer)],
    })
    .to_string();
    let manifest = manifest.as_bytes();
    let index = json!({ "schemaVersion": 2, "manifests": [described("m", manifest)] }).to_string();
    let index_name = if oci_layout { "index.json" } else { "artifact-descriptor.json" };
    tar(&[(index_name, index.as_bytes()), (&name(b"{}"), b"{}"), (&name(layer), layer), (&name(manifest), manifest)])
}

#[tokio::test]
async fn a_blueprint_has_any_of_its_media_types() {
    let plain = blueprint();
    let packed = gzip(&plain);
    let artifact_type = "application/vnd.oci.image.manifest.v1+tar+gzip";
    let cases = [
        (LAYER.to_owned(), plain.clone()),
        (format!("{LAYER}+gzip"), packed.clone()),
        ("application/vnd.gardener.landscaper.blueprint.v1+tar+gzip".to_owned(), packed.clone()),
        ("application/vnd.gardener.landscaper.blueprint.v1+tar".to_owned(), plain.clone()),
        ("application/x-tar".to_owned(), plain.clone()),
        ("application/x-tgz".to_owned(), packed.clone()),
        ("application/gzip".to_owned(), packed.clone()),
        (artifact_type.to_owned(), gzip(&artifact("other", LAYER, &plain, true))),
        (artifact_type.to_owned(), gzip(&artifact("other", &format!("{LAYER}+gzip"), &packed, false))),
        (artifact_type.to_owned(), gzip(&artifact(CONFIG, "application/octet-stream", &packed, true))),
    ];
    for type_ in [BLUEPRINT_TYPE, "blueprint"] {
        for (media_type, bytes) in &cases {
            let host = Host::new();
            let mut archive = Transport::default();
            let blob = archive.blob(bytes);
            let opened = opened(&host, resource("bp", type_, local_blob(&blob, media_type)), &mut archive).await;
            let files = opened.blueprint(&ResourceReference::named("bp")).await;
            let files = files.unwrap_or_else(|fault| panic!("{media_type}: {fault}"));
            assert_eq!(files.read("blueprint.yaml").unwrap(), BLUEPRINT);
        }
    }
}

#[tokio::test]
async fn an_artifact_of_another_kind_is_no_blueprint() {
    let host = Host::new();
    let mut archive = Transport::default();
    let image =
        artifact("application/vnd.oci.image.config.v1+json", "application/vnd.oci.image.layer.v1.tar", b"x", true);
    let blob = archive.blob(&image);
    let access = local_blob(&blob, "application/vnd.oci.image.manifest.v1+tar");
    let opened = opened(&host, resource("bp", BLUEPRINT_TYPE, access), &mut archive).await;
    let message = opened.blueprint(&ResourceReference::named("bp")).await.err().unwrap().to_string();
    assert_eq!(
        message,
        "the blueprint in resource bp of c:1: is an artifact of another kind: its config is \
         \"application/vnd.oci.image.config.v1+json\", its layers are \"application/vnd.oci.image.layer.v1.tar\""
    );
}

#[tokio::test]
async fn a_json_schema_is_plain_or_compressed_or_an_artifact() {
    let schema = json!({ "type": "string" });
    let plain = schema.to_string().into_bytes();
    let cases = [
        (SCHEMA.to_owned(), plain.clone()),
        (SCHEMA.to_owned(), gzip(&plain)),
        ("application/vnd.gardener.landscaper.jsonscheme.v1+json".to_owned(), plain.clone()),
        ("application/vnd.oci.image.manifest.v1+tar+gzip".to_owned(), gzip(&artifact("x", SCHEMA, &plain, true))),
    ];
    for (media_type, bytes) in cases {
        let host = Host::new();
        let mut archive = Transport::default();
        let blob = archive.blob(&bytes);
        let resource = resource("s", "landscaper.gardener.cloud/jsonschema", local_blob(&blob, &media_type));
        let opened = opened(&host, resource, &mut archive).await;
        let read = opened.json_schema(&ResourceReference::named("s")).await;
        assert_eq!(read.unwrap_or_else(|fault| panic!("{media_type}: {fault}")), schema);
    }
}

#[tokio::test]
async fn c_320_schemas_count_as_long_as_their_component_version_is_open() {
    let limits = oci::PullLimits { component_versions: 1 << 20, ..oci::PullLimits::default() };
    let folder = tempfile::tempdir().unwrap();
    let host = Host { repositories: repositories_within(folder.path(), limits), folder };
    let mut archive = Transport::default();
    let schemas = ["a", "b"].map(|name| {
        let schema = json!({"description": name, "enum": vec![json!({"": 0}); 300]});
        resource(name, "jsonschema", local_blob(&archive.blob(schema.to_string().as_bytes()), SCHEMA))
    });
    archive.version(&descriptor("c", "1", &[], json!(schemas)), false);
    archive.write_folder(&host.components().join("a"));
    let opened = host.open(transport("a"), "c", "1").await.unwrap();
    for _ in 0..3 {
        assert!(opened.json_schema(&ResourceReference::named("a")).await.is_ok(), "it counts once");
    }
    let refused = opened.json_schema(&ResourceReference::named("b")).await.unwrap_err().to_string();
    let begin = "the schema in resource b of c:1: the component version, with what is read of it, takes more than the 458752 bytes";
    assert!(refused.starts_with(begin), "{refused}");
}

#[tokio::test]
async fn what_is_no_schema_is_told() {
    let cases: [(Vec<u8>, &str); 3] = [
        (b"type: string".to_vec(), "it is no JSON: expected ident at line 1 column 2"),
        (gzip(&vec![b' '; (4 << 20) + 1]), "it has more than 4194304 bytes"),
        (gzip(b"{}")[..12].to_vec(), "it cannot be unpacked: incomplete deflate stream"),
    ];
    for (bytes, why) in cases {
        let host = Host::new();
        let mut archive = Transport::default();
        let blob = archive.blob(&bytes);
        let opened = opened(&host, resource("s", "jsonschema", local_blob(&blob, SCHEMA)), &mut archive).await;
        let message = opened.json_schema(&ResourceReference::named("s")).await.unwrap_err().to_string();
        assert_eq!(message, format!("the schema in resource s of c:1: {why}"));
    }
}

#[test]
fn an_archive_at_hand_is_read_as_one_of_a_repository() {
    let (plain, layer) = (blueprint(), gzip(&blueprint()));
    let packed = |oci_layout| gzip(&artifact("other", &format!("{LAYER}+gzip"), &layer, oci_layout));
    let files = orangery_registry::blueprint(&plain).unwrap();
    for archive in [layer.clone(), packed(true), packed(false)] {
        assert_eq!(orangery_registry::blueprint(&archive), Ok(files.clone()));
    }
    let message = orangery_registry::blueprint(&gzip(&artifact("other", "text/plain", b"x", true))).unwrap_err();
    assert_eq!(message, "is an artifact of another kind: its config is \"other\", its layers are \"text/plain\"");
    assert_eq!(orangery_registry::blueprint(&tar(&[])).unwrap_err(), "it is empty");
}

/// The same bytes are an archive with a blueprint, and an artifact whose layer has another one.
#[tokio::test]
async fn c_299_a_blueprint_is_what_its_own_access_says_also_after_the_same_bytes_were_opened_otherwise() {
    let inner = tar(&[("blueprint.yaml", b"inner")]);
    let mut both = tar(&[("blueprint.yaml", b"outer")]);
    // Without the two blocks that end it.
    both.truncate(both.len() - 1024);
    both.extend(artifact("other", LAYER, &inner, true));
    for first in ["plain", "packed"] {
        let host = Host::new();
        let mut archive = Transport::default();
        let blob = archive.blob(&both);
        let plain = resource("plain", BLUEPRINT_TYPE, local_blob(&blob, "application/x-tar"));
        let access = local_blob(&blob, "application/vnd.oci.image.manifest.v1+tar");
        let packed = resource("packed", BLUEPRINT_TYPE, access);
        archive.version(&descriptor("c", "1", &[], json!([plain, packed])), false);
        archive.write_folder(&host.components().join("a"));
        let of = async |name: &str| {
            let version = host.open(transport("a"), "c", "1").await.unwrap();
            let files = version.blueprint(&ResourceReference::named(name)).await.unwrap();
            String::from_utf8(files.read("blueprint.yaml").unwrap()).unwrap()
        };
        of(first).await;
        assert_eq!([of("plain").await, of("packed").await], ["outer", "inner"], "{first} first");
    }
}
