//! A folder with images, in the form of the OCI image layout 1.0.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{
    error::Error,
    files::{sha256, write},
};

pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// What the tag of an entry of `index.json` is called.
const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// The folder of a layout that is written.
pub(crate) struct Layout {
    folder: PathBuf,
    entries: Vec<Value>,
}

impl Layout {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), entries: Vec::new() }
    }

    /// Writes a blob; the answer is its descriptor.
    pub(crate) fn blob(&self, media_type: &str, bytes: &[u8]) -> Result<Value, Error> {
        let hex = sha256(bytes);
        write(&self.folder.join("blobs/sha256").join(&hex), bytes)?;
        Ok(json!({"mediaType": media_type, "digest": format!("sha256:{hex}"), "size": bytes.len()}))
    }

    /// Writes a document as a blob; the answer is its descriptor.
    pub(crate) fn document(&self, media_type: &str, document: &Value) -> Result<Value, Error> {
        self.blob(media_type, document.to_string().as_bytes())
    }

    /// Writes a manifest; the answer is its descriptor.
    pub(crate) fn manifest(&self, config: &Value, layers: &[Value], annotations: &Value) -> Result<Value, Error> {
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers, "annotations": annotations,
        });
        self.document(MANIFEST, &manifest)
    }

    /// Names a manifest or an index of it by a tag.
    pub(crate) fn tag(&mut self, descriptor: &Value, tag: &str) {
        let mut entry = descriptor.clone();
        if let Some(fields) = entry.as_object_mut() {
            fields.insert("annotations".to_owned(), json!({REF_NAME: tag}));
        }
        self.entries.push(entry);
    }

    /// Writes what makes the folder a layout.
    pub(crate) fn finish(self) -> Result<(), Error> {
        write(&self.folder.join("oci-layout"), json!({"imageLayoutVersion": "1.0.0"}).to_string().as_bytes())?;
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": self.entries});
        write(&self.folder.join("index.json"), index.to_string().as_bytes())
    }
}

/// The digest (`sha256:…`) that a descriptor names.
pub(crate) fn digest(descriptor: &Value) -> &str {
    descriptor.get("digest").and_then(Value::as_str).unwrap_or_default()
}
