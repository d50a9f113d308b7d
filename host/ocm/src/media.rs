//! Media types and resource types (`docs/wire.md` §4.1).

/// Resource types of blueprints.
pub const BLUEPRINT_TYPES: [&str; 2] = ["landscaper.gardener.cloud/blueprint", "blueprint"];

/// Resource types of JSON schemas.
pub const JSON_SCHEMA_TYPES: [&str; 2] = ["landscaper.gardener.cloud/jsonschema", "jsonschema"];

/// A blueprint as a tar archive; `+gzip` may follow.
pub const BLUEPRINT_LAYER: &str = "application/vnd.gardener.landscaper.blueprint.layer.v1.tar";

/// The configuration of an OCI artifact that holds a blueprint in its first layer.
pub const BLUEPRINT_CONFIG: &str = "application/vnd.gardener.landscaper.blueprint.config.v1";

/// A blueprint as a compressed tar archive, as older tools wrote it.
pub const BLUEPRINT_LEGACY: &str = "application/vnd.gardener.landscaper.blueprint.v1+tar+gzip";

/// A JSON schema.
pub const JSON_SCHEMA_LAYER: &str = "application/vnd.gardener.landscaper.jsonschema.layer.v1.json";

/// A JSON schema, as older tools wrote it.
pub const JSON_SCHEMA_LEGACY: &str = "application/vnd.gardener.landscaper.jsonscheme.v1+json";

/// Bytes of no other type: templates get them in base64.
pub const OCTET_STREAM: &str = "application/octet-stream";

/// Whether a layer of this media type is a blueprint's archive. Compression is told from the bytes.
pub fn is_blueprint(media_type: &str) -> bool {
    let base = media_type.split(';').next().unwrap_or_default().trim();
    [BLUEPRINT_LAYER, BLUEPRINT_LEGACY].contains(&base)
        || base.strip_suffix("+gzip") == Some(BLUEPRINT_LAYER)
        || ["application/x-tar", "application/tar", "application/x-tgz", "application/gzip", "application/tar+gzip"]
            .contains(&base)
        || base == "application/x-tar+gzip"
}
