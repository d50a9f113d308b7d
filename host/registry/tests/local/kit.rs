//! Descriptors, archives and repositories for the tests.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use flate2::{Compression, write::GzEncoder};
use orangery_core::{
    digest::content::{Algorithm, ContentDigest},
    error::Fault,
};
use orangery_ocm::{
    ComponentRequest, ComponentSource, ComponentVersion, ComponentVersions, SignaturePolicy, VersionReference,
};
use orangery_registry::{Repositories, RepositorySettings, oci};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A host with a folder of components and a cache.
pub(crate) struct Host {
    pub(crate) folder: TempDir,
    pub(crate) repositories: Repositories,
}

impl Host {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let repositories = repositories(folder.path());
        Self { folder, repositories }
    }

    pub(crate) fn components(&self) -> PathBuf {
        self.folder.path().join("components")
    }

    /// Opens `name:version` in a repository.
    pub(crate) async fn open(
        &self,
        context: Value,
        name: &str,
        version: &str,
    ) -> Result<Arc<dyn ComponentVersion>, Fault> {
        self.repositories.open(&request(context, name, version)).await
    }

    /// The sentence of the fault.
    pub(crate) async fn refused(&self, context: Value, name: &str, version: &str) -> String {
        let folder = self.folder.path().canonicalize().unwrap().display().to_string();
        match self.open(context, name, version).await {
            Ok(_) => panic!("{name}:{version} was opened"),
            Err(fault) => fault.to_string().replace(&folder, "DIR"),
        }
    }
}

pub(crate) fn repositories(folder: &Path) -> Repositories {
    repositories_within(folder, oci::PullLimits::default())
}

/// The same with other limits.
pub(crate) fn repositories_within(folder: &Path, limits: oci::PullLimits) -> Repositories {
    fs::create_dir_all(folder.join("components")).unwrap();
    let settings = RepositorySettings {
        folders: vec![folder.join("components")],
        cache: folder.join("cache"),
        cache_bytes: 64 << 20,
        oci: oci::RegistrySettings { limits, ..oci::RegistrySettings::default() },
        signatures: SignaturePolicy::default(),
    };
    Repositories::new(settings).unwrap()
}

pub(crate) fn request(context: Value, name: &str, version: &str) -> ComponentRequest {
    ComponentRequest::of(ComponentSource::Reference(VersionReference {
        repository_context: (!context.is_null()).then(|| context.into()),
        name: name.to_owned(),
        version: version.to_owned(),
    }))
}

/// A descriptor in schema v2.
pub(crate) fn descriptor(name: &str, version: &str, references: &[(&str, &str, &str)], resources: Value) -> Value {
    let references: Vec<_> = references
        .iter()
        .map(|(name, component, version)| json!({ "name": name, "componentName": component, "version": version }))
        .collect();
    json!({
        "meta": { "schemaVersion": "v2" },
        "component": {
            "name": name, "version": version, "provider": "us",
            "repositoryContexts": [{ "type": "OCIRegistry", "baseUrl": "registry.invalid" }],
            "sources": [], "componentReferences": references, "resources": resources,
        },
    })
}

/// The same in schema v3alpha1.
pub(crate) fn in_v3(document: &Value) -> Value {
    let descriptor = orangery_ocm::Descriptor::parse(document).unwrap();
    descriptor.render(orangery_ocm::DescriptorSchema::V3Alpha1)
}

pub(crate) fn resource(name: &str, type_: &str, access: Value) -> Value {
    json!({ "name": name, "version": "1", "type": type_, "relation": "local", "access": access })
}

pub(crate) fn local_blob(reference: &str, media_type: &str) -> Value {
    json!({ "type": "localBlob", "localReference": reference, "mediaType": media_type })
}

pub(crate) fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn sha256(bytes: &[u8]) -> ContentDigest {
    ContentDigest::of(Algorithm::Sha256, bytes)
}

pub(crate) const BLUEPRINT: &[u8] = b"apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: Blueprint\n";

pub(crate) const BLUEPRINT_TYPE: &str = "landscaper.gardener.cloud/blueprint";

/// A blueprint of two files, as a tar archive.
pub(crate) fn blueprint() -> Vec<u8> {
    tar(&[("blueprint.yaml", BLUEPRINT), ("templates/a.yaml", b"a")])
}

/// A transport archive under construction.
#[derive(Default)]
pub(crate) struct Transport {
    blobs: BTreeMap<String, Vec<u8>>,
    artifacts: Vec<Value>,
}

impl Transport {
    /// Adds a blob; its digest as text.
    pub(crate) fn blob(&mut self, bytes: &[u8]) -> String {
        let digest = sha256(bytes);
        self.blobs.insert(format!("blobs/sha256.{}", digest.hex()), bytes.to_vec());
        digest.to_string()
    }

    fn described(&mut self, media_type: &str, bytes: &[u8]) -> Value {
        json!({ "mediaType": media_type, "digest": self.blob(bytes), "size": bytes.len() })
    }

    /// Adds a component version; in an archive, or as it is.
    pub(crate) fn version(&mut self, document: &Value, packed: bool) {
        let text = document.to_string();
        let layer = if packed {
            let archive = tar(&[("component-descriptor.yaml", text.as_bytes())]);
            self.described("application/vnd.ocm.software.component-descriptor.v2+yaml+tar", &archive)
        } else {
            self.described("application/vnd.ocm.software.component-descriptor.v2+json", text.as_bytes())
        };
        let descriptor = orangery_ocm::Descriptor::parse(document).unwrap();
        self.version_at(&descriptor.name, &descriptor.version, layer);
    }

    fn version_at(&mut self, name: &str, version: &str, layer: Value) {
        let config = json!({ "componentDescriptorLayer": layer }).to_string();
        let config = self.described("application/vnd.ocm.software.component.config.v1+json", config.as_bytes());
        let manifest = json!({ "schemaVersion": 2, "config": config, "layers": [layer] }).to_string();
        let digest = self.blob(manifest.as_bytes());
        self.artifacts.push(json!({
            "repository": format!("component-descriptors/{name}"),
            "tag": version.replace('+', ".build-"),
            "digest": digest,
        }));
    }

    /// Puts an index between the list of artifacts and what the last of them is.
    pub(crate) fn index_before_the_last(&mut self) {
        let digest = self.artifacts.last().unwrap()["digest"].clone();
        let index = json!({ "schemaVersion": 2, "manifests": [{ "digest": digest, "size": 1 }] }).to_string();
        let digest = self.blob(index.as_bytes());
        self.artifacts.last_mut().unwrap()["digest"] = json!(digest);
    }

    fn index(&self) -> Vec<u8> {
        json!({ "schemaVersion": 1, "artifacts": self.artifacts }).to_string().into_bytes()
    }

    pub(crate) fn archive(&self) -> Vec<u8> {
        let index = self.index();
        let blobs = self.blobs.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
        let files: Vec<_> = [("artifact-index.json", index.as_slice())].into_iter().chain(blobs).collect();
        tar(&files)
    }

    pub(crate) fn write_folder(&self, folder: &Path) {
        fs::create_dir_all(folder.join("blobs")).unwrap();
        fs::write(folder.join("artifact-index.json"), self.index()).unwrap();
        for (name, bytes) in &self.blobs {
            fs::write(folder.join(name), bytes).unwrap();
        }
    }
}

pub(crate) fn transport(path: &str) -> Value {
    json!({ "type": "CommonTransportFormat", "filePath": path })
}
