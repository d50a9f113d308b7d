//! Component versions as OCI artifacts: which repository and tag has one, and the descriptor in its first layer
//! (`docs/wire.md` §10).

use std::{collections::BTreeMap, io::Read, sync::Arc};

use orangery_core::{
    digest::content::{Algorithm, ContentDigest},
    error::{Code, Fault},
};
use orangery_ocm::NameMapping;
use serde::Deserialize;
use tar::EntryType;

use super::{
    client::{Client, Pull},
    content::{HeldMemory, ReservedContent},
    keyring::Keyring,
    manifest::{Manifest, OciDescriptor},
    reference::{ArtifactReference, ArtifactSelector, OciRepository, Registry, split_base},
};

/// Where descriptors lie below the address of a repository.
const DESCRIPTORS: &str = "component-descriptors";
/// What stands in a tag for the `+` of a version, which no tag may have.
const BUILD: &str = ".build-";
/// The file in a layer that is an archive.
const FILE: &str = "component-descriptor.yaml";
/// Bytes of the document that names the descriptor's layer.
const MOST_OF_A_CONFIG: u64 = 1 << 20;
/// Bytes of a descriptor's layer.
const MOST_OF_A_DESCRIPTOR: u64 = 16 << 20;

const CONFIGS: [&str; 3] = [
    "application/vnd.ocm.software.component.config.v1+json",
    "application/vnd.gardener.cloud.cnudie.component.config.v1+json",
    "application/vnd.oci.gardener.cloud.cnudie.component-descriptor-metadata.config.v2+json",
];
const PLAIN_LAYERS: [&str; 4] = [
    "application/vnd.ocm.software.component-descriptor.v2+json",
    "application/vnd.ocm.software.component-descriptor.v2+yaml",
    "application/vnd.gardener.cloud.cnudie.component-descriptor.v2+json",
    "application/vnd.gardener.cloud.cnudie.component-descriptor.v2+yaml",
];
const ARCHIVE_LAYERS: [&str; 3] = [
    "application/vnd.ocm.software.component-descriptor.v2+yaml+tar",
    "application/vnd.gardener.cloud.cnudie.component-descriptor.v2+yaml+tar",
    "application/vnd.oci.gardener.cloud.cnudie.component-descriptor.config.v2+yaml+tar",
];

/// The component versions below one address, reached with one Context's credentials.
#[derive(Clone)]
pub struct RegistryVersions<P = Client> {
    from: Arc<P>,
    keyring: Arc<Keyring>,
    registry: Registry,
    prefix: String,
    mapping: NameMapping,
}

/// A component version that was found.
#[derive(Clone, Debug)]
pub struct FoundArtifact {
    /// Where its local blobs are.
    pub repository: OciRepository,
    /// Its layers are the local blobs.
    pub manifest: Arc<Manifest>,
    /// The text of the component descriptor, JSON or YAML.
    pub descriptor: String,
    /// The room in memory of that text.
    #[expect(dead_code, reason = "it is held for as long as the text is there")]
    room: HeldMemory,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    component_descriptor_layer: Option<OciDescriptor>,
}

/// The repository of a component below `base_url`.
pub(crate) fn component_repository(
    base_url: &str,
    mapping: NameMapping,
    component: &str,
) -> Result<OciRepository, Fault> {
    let (registry, prefix) = base(base_url)?;
    below((&registry, &prefix), mapping, component)
}

fn base(base_url: &str) -> Result<(Registry, String), Fault> {
    split_base(base_url)
        .map_err(|error| Fault::invalid(Code::ConfigurationProblem, format!("the repository context: {error}")))
}

fn below((registry, prefix): (&Registry, &str), mapping: NameMapping, component: &str) -> Result<OciRepository, Fault> {
    let hashed = ContentDigest::of(Algorithm::Sha256, component.as_bytes());
    let names = match mapping {
        NameMapping::UrlPath => [prefix, DESCRIPTORS, component],
        NameMapping::Sha256Digest => [prefix, "", hashed.hex()],
    };
    OciRepository::new(registry.clone(), &names).map_err(|error| {
        let message = format!("the component {component:?} cannot be in a registry: {error}");
        Fault::invalid(Code::ConfigurationProblem, message)
    })
}

impl<P: Pull> RegistryVersions<P> {
    /// The component versions below `base_url`, such as `registry.example/components`.
    pub fn new(from: Arc<P>, keyring: Arc<Keyring>, base_url: &str, mapping: NameMapping) -> Result<Self, Fault> {
        let (registry, prefix) = base(base_url)?;
        Ok(Self { from, keyring, registry, prefix, mapping })
    }

    /// The repository of a component.
    pub fn repository(&self, component: &str) -> Result<OciRepository, Fault> {
        below((&self.registry, &self.prefix), self.mapping, component)
    }

    /// A component version; `None` where the registry says that there is none.
    pub async fn find(&self, component: &str, version: &str) -> Result<Option<FoundArtifact>, Fault> {
        let Some(manifest) = self.manifest(component, version).await? else { return Ok(None) };
        self.described(component, version, manifest).await.map(Some)
    }

    /// Its manifest alone.
    pub(crate) async fn manifest(&self, component: &str, version: &str) -> Result<Option<Arc<Manifest>>, Fault> {
        self.from.manifest_if_any(&self.reference(component, version)?, &self.keyring).await
    }

    fn reference(&self, component: &str, version: &str) -> Result<ArtifactReference, Fault> {
        let tag: ArtifactSelector = tag_of_version(version).parse().map_err(|why| {
            let message =
                format!("the version {version:?} of the component {component} cannot be in a registry: {why}");
            Fault::invalid(Code::ConfigurationProblem, message)
        })?;
        Ok(self.repository(component)?.artifact(tag))
    }

    /// The component version of a manifest, with its descriptor.
    pub(crate) async fn described(
        &self,
        component: &str,
        version: &str,
        manifest: Arc<Manifest>,
    ) -> Result<FoundArtifact, Fault> {
        let reference = self.reference(component, version)?;
        let unusable = |why: String| {
            let message = format!("{reference} is no component version: {why}; push it with the tools of OCM");
            Fault::invalid(Code::ConfigurationProblem, message)
        };
        check_config(&manifest).map_err(unusable)?;
        let repository = reference.repository.clone();
        let config = self.content(&repository, &manifest.config, MOST_OF_A_CONFIG).await?;
        let layer = DescriptorLayer::of_descriptor(&manifest, &config.into_bytes()).map_err(unusable)?;
        let (bytes, room) = self.content(&repository, &layer.blob, MOST_OF_A_DESCRIPTOR).await?.into_parts();
        let descriptor = layer.text(Arc::unwrap_or_clone(bytes)).map_err(unusable)?;
        Ok(FoundArtifact { repository, manifest, descriptor, room })
    }

    /// The client and the credentials, for the blobs of what was found.
    pub fn transport(&self) -> (&Arc<P>, &Arc<Keyring>) {
        (&self.from, &self.keyring)
    }

    async fn content(
        &self,
        repository: &OciRepository,
        blob: &OciDescriptor,
        most: u64,
    ) -> Result<ReservedContent, Fault> {
        self.from.content(repository, blob, most, &self.keyring).await
    }
}

/// The layer of a component version that has its descriptor.
pub(crate) struct DescriptorLayer {
    /// Where it is.
    pub(crate) blob: OciDescriptor,
    is_archive: bool,
}

impl DescriptorLayer {
    /// Reads the config of a component version's manifest. The error is the end of a sentence.
    pub(crate) fn of_descriptor(manifest: &Manifest, config: &[u8]) -> Result<Self, String> {
        check_config(manifest)?;
        let config: Config =
            serde_json::from_slice(config).map_err(|error| format!("its config cannot be read: {error}"))?;
        let layer = config.component_descriptor_layer;
        let blob = layer.ok_or_else(|| "its config names no componentDescriptorLayer".to_owned())?;
        // Nothing counts what its annotations take, while the descriptor is on its way.
        let blob = OciDescriptor { annotations: BTreeMap::new(), ..blob };
        let kind = blob.media_type.as_str();
        let is_archive = ARCHIVE_LAYERS.contains(&kind);
        if !is_archive && !PLAIN_LAYERS.contains(&kind) {
            return Err(format!("its descriptor has the media type {:?}", short(kind)));
        }
        Ok(Self { blob, is_archive })
    }

    /// The descriptor in the layer's bytes. The error is the end of a sentence.
    pub(crate) fn text(&self, bytes: Vec<u8>) -> Result<String, String> {
        let bytes = if self.is_archive { file_of(&bytes)? } else { bytes };
        String::from_utf8(bytes).map_err(|_| "its descriptor is no UTF-8".to_owned())
    }
}

/// A tag cannot have the `+` of a version.
pub(crate) fn tag_of_version(version: &str) -> String {
    version.replace('+', BUILD)
}

fn check_config(manifest: &Manifest) -> Result<(), String> {
    let media_type = manifest.config.media_type.as_str();
    if CONFIGS.contains(&media_type) {
        return Ok(());
    }
    Err(format!("its config has the media type {:?}", short(media_type)))
}

impl FoundArtifact {
    /// The layer behind a `localReference`.
    pub fn layer(&self, digest: &ContentDigest) -> Option<&OciDescriptor> {
        self.manifest.layers.iter().find(|layer| layer.digest == *digest)
    }
}

fn short(text: &str) -> String {
    text.chars().take(120).collect()
}

/// The descriptor in the archive that a layer is.
fn file_of(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let cut = |error: std::io::Error| format!("the archive with its descriptor cannot be read: {error}");
    let mut archive = tar::Archive::new(bytes);
    for entry in archive.entries().map_err(cut)? {
        let mut entry = entry.map_err(cut)?;
        let name = entry.path_bytes();
        let name = name.strip_prefix(b"./").or_else(|| name.strip_prefix(b"/")).unwrap_or(&name);
        if name == FILE.as_bytes() {
            // What is said to be sparse has as many zeros as it says.
            if !matches!(entry.header().entry_type(), EntryType::Regular | EntryType::Continuous) {
                return Err(format!("{FILE} in the archive with its descriptor is no plain file"));
            }
            let mut content = Vec::new();
            entry.read_to_end(&mut content).map_err(cut)?;
            if content.len() as u64 != entry.size() {
                return Err("the archive with its descriptor is cut off".to_owned());
            }
            return Ok(content);
        }
    }
    Err(format!("the archive with its descriptor has no file {FILE}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oci::RegistrySettings;

    fn versions(base: &str, mapping: NameMapping) -> RegistryVersions {
        let client = Arc::new(Client::new(RegistrySettings::default()).expect("a client"));
        RegistryVersions::new(client, Arc::default(), base, mapping).expect("an address")
    }

    #[test]
    fn a_component_has_its_repository() {
        let of = |base: &str, mapping| {
            versions(base, mapping).repository("example.org/a").expect("a repository").to_string()
        };
        let cases = ["r.example", "https://r.example/", "oci://r.example"];
        for base in cases {
            assert_eq!(of(base, NameMapping::UrlPath), "r.example/component-descriptors/example.org/a");
        }
        assert_eq!(of("http://r.example:5000/x/y/", NameMapping::UrlPath), {
            "http://r.example:5000/x/y/component-descriptors/example.org/a"
        });
        // `printf example.org/a | sha256sum`
        let hashed = "94584207f807e901fa3f47eaaf3d3ff3e62e2edaaf9edcf3d7accf0391740f58";
        assert_eq!(of("r.example/x", NameMapping::Sha256Digest), format!("r.example/x/{hashed}"));
    }

    #[test]
    fn a_component_that_no_registry_can_have_is_told() {
        let fault = versions("r.example", NameMapping::UrlPath).repository("example.org/../a").expect_err("no name");
        assert!(
            fault.to_string().starts_with("the component \"example.org/../a\" cannot be in a registry: "),
            "{fault}"
        );
        let client = Arc::new(Client::new(RegistrySettings::default()).expect("a client"));
        for base in ["", "r.example/A", "ftp://r.example", "user@r.example"] {
            let fault = RegistryVersions::new(Arc::clone(&client), Arc::default(), base, NameMapping::UrlPath).err();
            let fault = fault.expect("no address").to_string();
            assert!(fault.starts_with("the repository context: "), "{fault}");
        }
    }

    #[test]
    fn c_281_of_the_config_of_a_component_version_nothing_is_kept_but_where_its_descriptor_is() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let layer =
            serde_json::json!({"mediaType": PLAIN_LAYERS[0], "digest": digest, "size": 1, "annotations": {"a": "b"}});
        let config = serde_json::json!({"componentDescriptorLayer": layer}).to_string();
        let blob = |media_type: &str| OciDescriptor {
            media_type: media_type.to_owned(),
            digest: digest.parse().expect("a digest"),
            size: 1,
            annotations: BTreeMap::new(),
        };
        let manifest = Manifest {
            digest: digest.parse().expect("a digest"),
            artifact: digest.parse().expect("a digest"),
            media_type: String::new(),
            artifact_type: None,
            config: blob(CONFIGS[0]),
            layers: Vec::new(),
            annotations: BTreeMap::new(),
        };
        let found = DescriptorLayer::of_descriptor(&manifest, config.as_bytes()).expect("a layer");
        assert_eq!(found.blob, blob(PLAIN_LAYERS[0]));
    }

    #[test]
    fn the_descriptor_is_found_in_its_archive() {
        let archive = |name: &str| {
            let mut builder = tar::Builder::new(Vec::new());
            let mut header = tar::Header::new_gnu();
            header.set_size(4);
            header.set_mode(0o644);
            builder.append_data(&mut header, name, &b"a: b"[..]).expect("an entry");
            builder.into_inner().expect("an archive")
        };
        assert_eq!(file_of(&archive("component-descriptor.yaml")), Ok(b"a: b".to_vec()));
        let other = file_of(&archive("other.yaml")).expect_err("another file");
        assert_eq!(other, "the archive with its descriptor has no file component-descriptor.yaml");
        let whole = archive("component-descriptor.yaml");
        for length in [100, 514] {
            let error = file_of(&whole[..length]).expect_err("cut off");
            assert!(error.contains("cannot be read") || error.contains("cut off"), "{error}");
        }
    }

    #[test]
    fn c_299_limits_components_a_descriptor_is_no_sparse_file_in_its_archive() {
        let mut header = tar::Header::new_gnu();
        header.set_path(FILE).expect("a path");
        header.set_entry_type(EntryType::GNUSparse);
        header.set_size(0);
        let gnu = header.as_gnu_mut().expect("a header");
        gnu.sparse[0].set_offset(1 << 40);
        gnu.sparse[0].set_length(0);
        gnu.set_real_size(1 << 40);
        header.set_cksum();
        let mut archive = tar::Builder::new(Vec::new());
        archive.append(&header, std::io::empty()).expect("an entry");
        let refused = file_of(&archive.into_inner().expect("an archive")).expect_err("sparse");
        assert_eq!(refused, "component-descriptor.yaml in the archive with its descriptor is no plain file");
    }
}
