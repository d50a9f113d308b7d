//! Manifests of images and of indexes, as registries serve them: of OCI and of docker's second schema.

use std::collections::BTreeMap;

use orangery_core::{digest::content::ContentDigest, memory};
use serde::{Deserialize, Serialize};

/// The manifests that are asked for.
pub(super) const ACCEPTED: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json";

/// Bytes of memory of the value of a manifest: some 10,000 layers.
const MOST_UNFOLDED_BYTES: u64 = 16 << 20;

/// An annotation beside its texts: the first one takes a place for eleven.
const ANNOTATION: u64 = 640;

/// What a manifest says about a blob or about another manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OciDescriptor {
    /// What the content is.
    #[serde(default)]
    pub media_type: String,
    /// The content's name.
    #[serde(deserialize_with = "digest", serialize_with = "text")]
    pub digest: ContentDigest,
    /// In bytes.
    pub size: u64,
    /// What its maker says about it.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

/// The manifest of one artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The name of the manifest itself.
    #[serde(deserialize_with = "digest", serialize_with = "text")]
    pub digest: ContentDigest,
    /// The name of the artifact: of the index that led to the manifest, or of the manifest.
    #[serde(deserialize_with = "digest", serialize_with = "text")]
    pub artifact: ContentDigest,
    /// What the manifest is, as it or its server says.
    pub media_type: String,
    /// What the artifact is, where it says so; else the media type of `config` says it.
    pub artifact_type: Option<String>,
    /// The blob that describes the layers.
    pub config: OciDescriptor,
    /// The content, in order.
    pub layers: Vec<OciDescriptor>,
    /// What its maker says about it.
    pub annotations: BTreeMap<String, String>,
}

/// What a registry has under a tag or a digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManifestDocument {
    /// One artifact.
    Manifest(Box<Manifest>),
    /// The manifests of an index, in its order.
    Index(Vec<OciDescriptor>),
}

/// A manifest as it is pushed.
pub const IMAGE_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// An index of manifests as it is pushed.
pub(super) const IMAGE_INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// The layer of a chart, as Helm pushes it.
pub const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// The layer of a chart's provenance, as Helm pushes it.
pub const PROVENANCE: &str = "application/vnd.cncf.helm.chart.provenance.v1.prov";

/// Layers that are WebAssembly components, as `wkg`, `oras` and older tools push them.
const WASM_LAYERS: [&str; 3] = [
    "application/wasm",
    "application/vnd.bytecodealliance.wasm.component.layer.v0+wasm",
    "application/vnd.wasm.content.layer.v1+wasm",
];

impl OciDescriptor {
    /// Bytes of memory that it takes, at most.
    fn memory(&self) -> u64 {
        let texts = memory::of_text(self.media_type.len()) + memory::of_text(self.digest.hex().len());
        size_of::<Self>() as u64 + texts + of_annotations(&self.annotations)
    }
}

fn of_annotations(annotations: &BTreeMap<String, String>) -> u64 {
    annotations
        .iter()
        .map(|(name, value)| ANNOTATION + memory::of_text(name.len()) + memory::of_text(value.len()))
        .sum()
}

impl Manifest {
    /// Bytes of memory that it takes, at most.
    pub(crate) fn memory(&self) -> u64 {
        self.blobs().map(OciDescriptor::memory).sum::<u64>() + of_annotations(&self.annotations)
    }

    /// The config and the layers.
    pub fn blobs(&self) -> impl Iterator<Item = &OciDescriptor> {
        std::iter::once(&self.config).chain(&self.layers)
    }

    /// The layer that is the artifact's content: the chart where it has one, as Helm finds it, else the first. The error is
    /// the rest of a sentence about the artifact.
    pub fn content_layer(&self) -> Result<&OciDescriptor, String> {
        let chart = self.layers.iter().find(|layer| layer.media_type == CHART);
        chart.or_else(|| self.layers.first()).ok_or_else(|| "has no layer, so no content".to_owned())
    }

    /// The layer that is a WebAssembly component; the error is the rest of a sentence about the artifact.
    pub fn wasm_layer(&self) -> Result<&OciDescriptor, String> {
        let is_wasm = |layer: &&OciDescriptor| WASM_LAYERS.contains(&layer.media_type.as_str());
        let mut found = self.layers.iter().filter(is_wasm);
        match (found.next(), found.next()) {
            (Some(only), None) => Ok(only),
            (Some(_), Some(_)) => Err("has more than one WebAssembly layer, and only one can be meant".to_owned()),
            (None, _) => {
                let types = self.layers.iter().take(5).map(|layer| layer.media_type.chars().take(120).collect());
                let types: Vec<String> = types.collect();
                let there = if types.is_empty() { "no layer at all".to_owned() } else { types.join(", ") };
                Err(format!("has no layer of media type {}; there is {there}", WASM_LAYERS[0]))
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManifestFields {
    schema_version: u64,
    media_type: Option<String>,
    artifact_type: Option<String>,
    config: Option<OciDescriptor>,
    layers: Option<Vec<OciDescriptor>>,
    manifests: Option<Vec<OciDescriptor>>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// Reads what came under a digest; `content_type` counts where the document does not say what it is. The error is the
/// rest of a sentence.
pub fn read(bytes: &[u8], digest: ContentDigest, content_type: &str) -> Result<ManifestDocument, String> {
    if memory::of_json(bytes) > MOST_UNFOLDED_BYTES {
        return Err(format!("it takes more than the {MOST_UNFOLDED_BYTES} bytes of memory that are allowed"));
    }
    let wire: ManifestFields = serde_json::from_slice(bytes).map_err(|error| {
        let words: String = error.to_string().chars().take(200).collect();
        format!("it is no manifest: {}", words.escape_debug())
    })?;
    if wire.schema_version != 2 {
        return Err(format!("it is of schema version {}; push it with a tool of today", wire.schema_version));
    }
    let media_type = wire.media_type.unwrap_or_else(|| content_type.to_owned());
    match (wire.config, wire.layers, wire.manifests) {
        (Some(config), layers, None) => Ok(ManifestDocument::Manifest(Box::new(Manifest {
            artifact: digest.clone(),
            digest,
            media_type,
            artifact_type: wire.artifact_type,
            config,
            layers: layers.unwrap_or_default(),
            annotations: wire.annotations,
        }))),
        (None, None, Some(manifests)) => Ok(ManifestDocument::Index(manifests)),
        (None, _, None) => Err("it has neither a config nor manifests".to_owned()),
        // One document that is read as two things by two readers hides one of them.
        _ => Err("it is a manifest and an index in one, which no tool makes by mistake".to_owned()),
    }
}

fn text<S: serde::Serializer>(digest: &ContentDigest, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(digest)
}

fn digest<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<ContentDigest, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use orangery_core::digest::content::Algorithm;
    use serde_json::{Value, json};

    use super::*;

    fn parsed(value: &Value) -> Result<ManifestDocument, String> {
        read(value.to_string().as_bytes(), ContentDigest::of(Algorithm::Sha256, b"m"), "from/header")
    }

    fn blob(content: &[u8]) -> (Value, OciDescriptor) {
        let digest = ContentDigest::of(Algorithm::Sha256, content);
        let value = json!({"mediaType": "a/b", "digest": digest.to_string(), "size": content.len()});
        let size = content.len() as u64;
        (value, OciDescriptor { media_type: "a/b".to_owned(), digest, size, annotations: BTreeMap::new() })
    }

    #[test]
    fn manifests_and_indexes_are_told_apart() {
        let (wire, descriptor) = blob(b"x");
        let manifest =
            parsed(&json!({"schemaVersion": 2, "config": wire, "layers": [wire], "annotations": {"a": "b"}}));
        let expected = Manifest {
            digest: ContentDigest::of(Algorithm::Sha256, b"m"),
            artifact: ContentDigest::of(Algorithm::Sha256, b"m"),
            media_type: "from/header".to_owned(),
            artifact_type: None,
            config: descriptor.clone(),
            layers: vec![descriptor.clone()],
            annotations: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
        };
        let kept = serde_json::to_vec(&expected).expect("JSON");
        assert_eq!(serde_json::from_slice::<Manifest>(&kept).expect("a manifest"), expected);
        assert_eq!(manifest, Ok(ManifestDocument::Manifest(Box::new(expected))));
        let index = parsed(&json!({"schemaVersion": 2, "mediaType": "i", "manifests": [wire]}));
        assert_eq!(index, Ok(ManifestDocument::Index(vec![descriptor])));
    }

    #[test]
    fn the_wasm_layer_of_an_artifact_is_the_only_one() {
        let layer = |media_type: &str| {
            let mut wire = blob(b"x").0;
            wire["mediaType"] = json!(media_type);
            wire
        };
        let found = |layers: Vec<Value>| {
            let manifest = parsed(&json!({"schemaVersion": 2, "config": blob(b"{}").0, "layers": layers}));
            let Ok(ManifestDocument::Manifest(manifest)) = manifest else { panic!("a manifest") };
            manifest.wasm_layer().map(|layer| layer.media_type.clone())
        };
        for media_type in WASM_LAYERS {
            assert_eq!(found(vec![layer("text/plain"), layer(media_type)]), Ok(media_type.to_owned()));
        }
        let both = found(vec![layer(WASM_LAYERS[0]), layer(WASM_LAYERS[1])]);
        assert_eq!(both, Err("has more than one WebAssembly layer, and only one can be meant".to_owned()));
        let other = found(vec![layer("text/plain")]);
        assert_eq!(other, Err("has no layer of media type application/wasm; there is text/plain".to_owned()));
        let none = found(Vec::new());
        assert_eq!(none, Err("has no layer of media type application/wasm; there is no layer at all".to_owned()));
    }

    #[test]
    fn what_is_no_manifest_is_told() {
        let (wire, _) = blob(b"x");
        let cases = [
            (json!({"schemaVersion": 1, "fsLayers": []}), "schema version 1"),
            (json!({"schemaVersion": 2}), "neither a config nor manifests"),
            (json!({"schemaVersion": 2, "config": wire, "manifests": [wire]}), "in one"),
            (json!({"schemaVersion": 2, "config": {"digest": "sha256:x", "size": 1}}), "no digest"),
            (json!({"schemaVersion": 2, "config": {"digest": wire["digest"], "size": -1}}), "invalid value"),
            (json!("x"), "no manifest"),
        ];
        for (value, expected) in cases {
            let error = parsed(&value).expect_err("no manifest");
            assert!(error.contains(expected), "{error}");
        }
    }
}
