//! Artifacts: which of their layers is wanted, also where an artifact is packed into one archive (an artifact set).

use std::collections::BTreeMap;

use flate2::{Compression, write::GzEncoder};
use orangery_core::digest::content::ContentDigest;
use orangery_ocm::media;
use serde::Deserialize;
use serde_json::json;

use crate::{
    archive::{self, ArchiveLimits},
    cache::Bytes,
    oci::{Manifest, ManifestDocument, OciDescriptor, manifest_document},
};

/// Whether a blob is an artifact packed into an archive.
pub(crate) fn is_archive(media_type: &str) -> bool {
    let manifests = [
        "application/vnd.oci.image.manifest.v1",
        "application/vnd.oci.image.index.v1",
        "application/vnd.docker.distribution.manifest.v2",
    ];
    let base = media_type.strip_suffix("+gzip").unwrap_or(media_type);
    base.strip_suffix("+tar").is_some_and(|base| manifests.contains(&base.strip_suffix("+json").unwrap_or(base)))
}

/// The media type of an artifact that is packed into an archive.
pub(crate) fn archive_type(manifest: &str) -> String {
    format!("{}+tar+gzip", manifest.strip_suffix("+json").unwrap_or(manifest))
}

/// Packs an artifact with its blobs into an archive, with the same bytes each time; what [`Packed::open`] reads.
pub(crate) fn pack(
    manifest: &Manifest,
    tag: Option<&str>,
    blobs: &[(ContentDigest, Bytes)],
) -> std::io::Result<Vec<u8>> {
    let size = blobs.iter().find(|(digest, _)| *digest == manifest.digest).map_or(0, |(_, bytes)| bytes.len());
    let digest = manifest.digest.to_string();
    let described = match tag {
        None => json!({"mediaType": manifest.media_type, "digest": digest, "size": size}),
        Some(tag) => json!({
            "mediaType": manifest.media_type,
            "digest": digest,
            "size": size,
            "annotations": {"org.opencontainers.image.ref.name": tag, "software.ocm/tags": tag},
        }),
    };
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [described],
        "annotations": {"software.ocm/main": digest},
    });
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut add = |name: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, bytes)
    };
    add("index.json", index.to_string().as_bytes())?;
    add("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    for (digest, bytes) in blobs {
        add(&format!("blobs/{}", digest.to_string().replacen(':', ".", 1)), bytes)?;
    }
    builder.into_inner()?.finish()
}

/// The layer that is wanted. The error is the end of a sentence.
pub(crate) fn layer(manifest: &Manifest, wanted: impl Fn(&str) -> bool) -> Result<&OciDescriptor, String> {
    if let Some(layer) = manifest.layers.iter().find(|layer| wanted(&layer.media_type)) {
        return Ok(layer);
    }
    let is_told = manifest.config.media_type == media::BLUEPRINT_CONFIG;
    manifest.layers.first().filter(|_| is_told).ok_or_else(|| {
        let layers = manifest.layers.iter().take(5);
        let mut found: Vec<_> = layers.map(|layer| format!("{:?}", layer.media_type)).collect();
        if found.is_empty() {
            found.push("none".to_owned());
        }
        format!(
            "is an artifact of another kind: its config is {:?}, its layers are {}",
            manifest.config.media_type,
            found.join(", ")
        )
    })
}

#[derive(Deserialize)]
struct ImageIndex {
    #[serde(default)]
    manifests: Vec<OciDescriptor>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// An artifact in an archive.
pub(crate) struct Packed {
    files: BTreeMap<String, Vec<u8>>,
    main: ContentDigest,
}

impl Packed {
    /// Reads an artifact set: an index, and blobs by digest. The error is the end of a sentence.
    pub(crate) fn open(bytes: &[u8]) -> Result<Self, String> {
        let files = archive::files(bytes, ArchiveLimits::BLUEPRINT).map_err(|error| error.to_string())?;
        let files: BTreeMap<_, _> = files.into_iter().collect();
        let index = files.get("index.json").or_else(|| files.get("artifact-descriptor.json"));
        let index = index.ok_or("it has neither index.json nor artifact-descriptor.json")?;
        let index: ImageIndex =
            serde_json::from_slice(index).map_err(|error| format!("its index cannot be read: {error}"))?;
        let named =
            ["software.ocm/main", "cloud.gardener.ocm/main"].iter().find_map(|name| index.annotations.get(*name));
        let main = match (named, index.manifests.into_iter().next()) {
            (Some(named), _) => named.parse().map_err(|error| format!("{error}"))?,
            (None, Some(first)) => first.digest,
            (None, None) => return Err("its index names no manifest".to_owned()),
        };
        Ok(Self { files, main })
    }

    /// The bytes of a layer of its main artifact.
    pub(crate) fn layer(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<u8>, String> {
        match manifest_document(self.blob(&self.main)?, self.main.clone(), "")? {
            ManifestDocument::Manifest(manifest) => Ok(self.blob(&layer(&manifest, wanted)?.digest)?.to_vec()),
            ManifestDocument::Index(_) => Err("its artifact is an index of others".to_owned()),
        }
    }

    fn blob(&self, digest: &ContentDigest) -> Result<&[u8], String> {
        let names = [".", "/"].map(|separator| format!("blobs/{}", digest.to_string().replacen(':', separator, 1)));
        let found = names.iter().find_map(|name| self.files.get(name));
        let found = found.ok_or_else(|| format!("it has no blob {digest}"))?;
        if ContentDigest::of(digest.algorithm(), found) == *digest {
            return Ok(found);
        }
        Err(format!("its blob {digest} has another content"))
    }
}

/// The digest of the artifact in an archive.
pub(crate) fn main_digest(bytes: &[u8]) -> Result<ContentDigest, String> {
    let packed = Packed::open(bytes)?;
    packed.blob(&packed.main)?;
    Ok(packed.main)
}
